import { describe, expect, test } from 'vitest';
import { parseDateTime } from '../../src/graphql/scalars.ts';

describe('a point in time', () => {
  test.each([
    ['2025-01-02', '2025-01-02T00:00:00.000Z'],
    ['2025-01-02T03:04:05.678+02:00', '2025-01-02T01:04:05.678Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['0001-01-01T00:00:00-00:01', '0001-01-01T00:01:00.000Z'],
  ])('%s is %s', (given, read) => {
    expect(parseDateTime(given).toISOString()).toBe(read);
  });

  test.each([
    '2025-02-29T00:00:00Z',
    '2025-13-01T00:00:00Z',
    '0000-12-31T00:00:00Z',
    '0001-01-01T00:00:00+23:59', // a year that PostgreSQL writes in another way
    '9999-12-31T23:59:59.999-23:59', // one that JSON clients cannot read
    '2025-01-02T25:00:00Z',
  ])('%s does not exist', (given) => {
    expect(() => parseDateTime(given)).toThrow(
      'Input should be a valid datetime, day or time value is outside expected range',
    );
  });
});
