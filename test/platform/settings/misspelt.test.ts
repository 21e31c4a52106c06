import { expect, test } from 'vitest';
import { distanceBetween } from '../../../src/platform/settings/misspelt.ts';

test.each([
  ['PORT', 'PORT', 0],
  ['PROT', 'PORT', 1],
  ['DATABASE_URL', 'DATABSE_URL', 1],
  ['DATABASE_URL', 'DATABASE_URI', 1],
  ['', 'ABC', 3],
])('%s and %s differ by %d letters', (a, b, expected) => {
  expect(distanceBetween(a, b)).toBe(expected);
  expect(distanceBetween(b, a)).toBe(expected);
});

/** All words of up to four of three letters. */
const words = [''];
for (let from = 0; words.length < 121; from++) words.push(...['A', 'B', '_'].map((letter) => words[from]! + letter));

test('a bound changes no distance up to it, and tells all others apart', () => {
  const seen = new Set<number>();
  for (const a of words)
    for (const b of words) {
      const whole = distanceBetween(a, b);
      seen.add(whole);
      for (const most of [0, 1, 2]) {
        const bounded = distanceBetween(a, b, most);
        if (bounded !== (whole <= most ? whole : Infinity)) expect([a, b, most, bounded]).toEqual([a, b, most, whole]);
      }
    }
  expect(seen).toEqual(new Set([0, 1, 2, 3, 4]));
});
