import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { describe, expect, test } from 'vitest';
import { chunksOf, chunkTokens } from '../../../src/knowledge/indexing/text/chunks.ts';
import { PART } from '../../../src/knowledge/indexing/text/grams.ts';

const words = fc.oneof(
  fc.lorem({ maxCount: 12 }),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme', minLength: 50, maxLength: 400 }),
  fc.constantFrom('\n\n', '    ', 'Donaudampfschifffahrtsgesellschaft ', '日本語の文章。', '👩‍👩‍👧‍👦', '0123456789'),
);
const texts = fc.array(fc.tuple(words, fc.integer({ min: 1, max: 60 })), { maxLength: 12 }).map((parts) =>
  parts
    .map(([word, times]) => `${word} `.repeat(times))
    .join('')
    .toWellFormed(),
);

test('a word that means something to a model is a word like all others', () => {
  const text = 'before <|endoftext|> after <|fim_prefix|>';
  const [chunk] = chunksOf(text);
  expect(text.slice(chunk!.start, chunk!.end)).toBe(text);
});

describe('chunks', () => {
  test('are all of the text, in order, each at most 500 tokens with at most 50 of the one before', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const chunks = chunksOf(text);
        let covered = 0;
        for (const { start, end, tokens } of chunks) {
          // what is between two chunks is white space alone
          expect(text.slice(covered, start).trim()).toBe('');
          expect(end).toBeGreaterThan(covered);
          expect(tokens).toBeLessThanOrEqual(chunkTokens.most);
          // more of characters that are several tokens each: as many as an exact part of a text may have
          if (covered - start > PART + LONGEST)
            expect(countTokens(text.slice(start, covered))).toBeLessThanOrEqual(chunkTokens.overlap + SLACK);
          expect(text.slice(start, end).isWellFormed()).toBe(true);
          expect(text.slice(start, end).trim()).not.toBe('');
          covered = end;
        }
        expect(text.slice(covered).trim()).toBe('');
      }),
      { numRuns: 150 },
    );
  });

  test('share so much that a short part of the text is whole in one of them', () => {
    fc.assert(
      fc.property(texts, fc.nat(), (text, place) => {
        const at = place % (text.length + 1);
        const part = text.slice(at, at + PART);
        // chunks are without white space at their ends
        if (part === '' || part !== part.trim()) return;
        expect(chunksOf(text).some(({ start, end }) => start <= at && at + part.length <= end)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('of words are exactly as large as their tokens say', () => {
    const text = Array.from({ length: 1_200 }, (_, index) => `Word ${index}, then another.`).join(' ');
    const chunks = chunksOf(text);
    expect(chunks.map(({ start, end }) => countTokens(text.slice(start, end)))).toEqual(
      chunks.map(({ tokens }) => tokens),
    );
    expect(chunks.slice(0, -1).every(({ tokens }) => tokens > 490)).toBe(true);
    for (const [index, { start }] of chunks.entries()) {
      if (index === 0) continue;
      const shared = countTokens(text.slice(start, chunks[index - 1]!.end));
      expect(shared).toBeGreaterThan(40);
      expect(shared).toBeLessThanOrEqual(50);
    }
  });

  test('of a text without spaces take one pass', () => {
    const text = 'abcdefghijklmnopqrstuvwxyz'.repeat(40_000);
    const chunks = chunksOf(text);
    expect(chunks.at(-1)!.end).toBe(text.length);
    expect(chunks.length).toBeLessThan(1_000);
  });

  test('of nothing are none', () => {
    expect([chunksOf(''), chunksOf(' \n\t ')]).toEqual([[], []]);
  });
});

// the white space before a word and its first part, in UTF-16 units
const LONGEST = 64 + 2 * 32;
// where a word of more than 32 characters is cut, its parts and the whole need not have the same number of tokens
const SLACK = 10;
