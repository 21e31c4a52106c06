import { describe, expect, test } from 'vitest';
import { nextTime } from '../../../src/pipelines/actions/next-time.ts';

describe('the next time', () => {
  test.each([
    ['every five minutes', '*/5 * * * *', 'UTC', '2026-11-22T15:47:01Z', '2026-11-22T15:50:00.000Z'],
    ['strictly after', '0 8 * * *', 'UTC', '2026-11-22T08:00:00Z', '2026-11-23T08:00:00.000Z'],
    ['in a time zone', '30 8 * * 1-5', 'America/New_York', '2026-11-20T13:30:00Z', '2026-11-23T13:30:00.000Z'],
    [
      'moved by an hour that is skipped',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00Z',
      '2026-03-29T01:00:00.000Z',
    ],
    ['in an hour that comes twice', '30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', '2026-10-25T00:30:00.000Z'],
    ['not in its second run', '30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30Z', '2026-10-26T01:30:00.000Z'],
    ['in a leap year', '0 0 29 2 *', 'UTC', '2026-11-22T00:00Z', '2028-02-29T00:00:00.000Z'],
  ])('is %s', (_what, cron, zone, after, next) => {
    expect(nextTime(cron, zone, new Date(after))?.toISOString()).toBe(next);
  });

  test('is none where there is none', () => expect(nextTime('0 0 31 4 *', 'UTC', new Date())).toBeNull());
});
