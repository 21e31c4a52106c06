import fc from 'fast-check';
import { expect, test } from 'vitest';
import { difference } from '../../console/src/ground/difference.ts';

const shown = (before: string, after: string) =>
  difference(before, after)?.map(({ kind, text }) => ({ same: ' ', added: '+', removed: '-' })[kind] + text);

test('the lines that differ stand where they were and are', () => {
  expect(shown('a\nb\nc', 'a\nx\nc\nd')).toEqual([' a', '-b', '+x', ' c', '+d']);
  expect(shown('', '')).toEqual([' ']);
  expect(shown('a', '')).toEqual(['-a', '+']);
});

test('both texts can be read from it, with as few changes as there can be', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = difference(before, after)!;
      const without = (kind: string) => lines.flatMap((line) => (line.kind === kind ? [] : [line.text])).join('\n');
      expect([without('added'), without('removed')]).toEqual([before, after]);
      expect(lines.filter(({ kind }) => kind === 'same')).toHaveLength(common(before.split('\n'), after.split('\n')));
    }),
  );
});

/** The length of the longest list of lines that both have in their order. */
function common(one: readonly string[], other: readonly string[]): number {
  let row = Array.from({ length: other.length + 1 }, () => 0);
  for (const line of one) {
    const next = [0];
    for (const [at, text] of other.entries())
      next.push(line === text ? row[at]! + 1 : Math.max(row[at + 1]!, next[at]!));
    row = next;
  }
  return row.at(-1)!;
}

test('texts that have nothing in common are not compared for ever', () => {
  const lines = (word: string) => Array.from({ length: 5_000 }, (_, at) => `${word}${at}`).join('\n');
  expect(difference(lines('a'), lines('b'))).toBeNull();
});
