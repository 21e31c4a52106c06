import { expect, it } from 'vitest';
import { etagOf, versionsOf } from '../../rest/if-match.ts';

it.each([
  ['*', null],
  [' * ', null],
  ['"1"', [1]],
  ['"1","22" ,\t"333"', [1, 22, 333]],
  [',, "1",,"2",', [1, 2]],
  ['W/"1"', []],
  ['W/"1", "2"', [2]],
  ['"01", "1.0", "+1", "abc", "", "1-gzip"', []],
  ['"99999999999"', []],
  ['"é", "3"', [3]],
  [
    ['"1"', '"2"'],
    [1, 2],
  ],
])('%j names the versions %j', (header, versions) => {
  expect(versionsOf(header)).toEqual(versions);
});

it('asks for nothing where it is absent', () => {
  expect(versionsOf(undefined)).toBeNull();
});

it.each([
  '',
  ' ',
  ',',
  '1',
  '"1',
  '1"',
  '"1" "2"',
  '"1";',
  'W/',
  'w/"1"',
  'W/ "1"',
  '*, "1"',
  '"1", *',
  '"a b"',
  '"a\tb"',
  "'1'",
])('%j is unusable', (header) => {
  expect(() => versionsOf(header)).toThrow(
    expect.objectContaining({
      code: 'INVALID_REQUEST',
      details: { reason: 'if_match' },
      message: 'The header If-Match must be `*` or entity tags between quotes, such as the ETag of an earlier answer.',
    }),
  );
});

it('the tag of a version names that version', () => {
  expect(etagOf(7)).toBe('"7"');
  expect(versionsOf(etagOf(2_147_483_647))).toEqual([2_147_483_647]);
});
