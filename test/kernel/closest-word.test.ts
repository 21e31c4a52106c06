import { expect, test } from 'vitest';
import { closestWord } from '../../src/kernel/closest-word.ts';

test.each<[string, string[], string | null]>([
  ['regoin', ['religion', 'region', 'reg'], 'region'],
  ['requird', ['reacquired', 'required'], 'required'],
  ['Region', ['region'], 'region'],
  ['header', ['placement', 'name'], null],
  ['url', ['id', 'name', 'urls'], 'urls'],
  ['q', ['a', 'b'], null],
  ['', ['a'], null],
  ['x'.repeat(1_000), ['x'.repeat(999)], null],
  ['ab'.repeat(60), [`${'ab'.repeat(59)}ax`, 'b'], `${'ab'.repeat(59)}ax`],
])('%j of %j is %j', (given, known, closest) => {
  expect(closestWord(given, known)).toBe(closest);
});
