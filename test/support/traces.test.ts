import { expect, test } from 'vitest';
import { comparable, expectAlike } from './traces.ts';

const start = Date.parse('2030-01-01T00:00:00Z');
const at = (seconds: number) => new Date(start + seconds * 1_000).toISOString();
const row = (id: string, seconds: number) => ({ id, expires_at: at(seconds) });
const seen = (...rows: object[]) => comparable(rows, new Set(), start);

test('rows are alike in another order, and when their second half ran minutes later', () => {
  expectAlike(seen(row('a', 3_600), row('b', 29)), seen(row('b', 31), row('a', 3_770)), 'rows');
});

test('rows are not alike with another value, another number of rows, or a time of another meaning', () => {
  const wanted = seen(row('a', 3_600));
  expect(() => expectAlike(seen(row('b', 3_600)), wanted, 'rows')).toThrow(/rows/);
  expect(() => expectAlike(seen(row('a', 3_600), row('a', 3_600)), wanted, 'rows')).toThrow(/rows/);
  expect(() => expectAlike(seen(row('a', 3_900)), wanted, 'rows')).toThrow(/65 minutes away, and 60/);
});

test('a secret is one, also where it happens to begin as an identifier does', () => {
  const [secret, other] = [`aps_${'A'.repeat(26)}-${'b'.repeat(16)}`, `aps_${'_b-'.repeat(14)}c`];
  expect(seen({ secret })).toEqual(seen({ secret: other }));
  expect(seen({ id: `apl_${'A'.repeat(26)}`, secret })).toEqual([{ id: 'apl#0', secret: '<secret>' }]);
});
