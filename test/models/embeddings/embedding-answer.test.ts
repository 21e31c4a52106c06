import { expect, test } from 'vitest';
import { retryAfterOf, tokensOf, vectorsIn } from '../../../src/models/embeddings/embedding-answer.ts';

const answer = (...data: unknown[]) => ({ data });

test('vectors are in the order of the texts, and of the length 1', () => {
  const given = answer({ index: 1, embedding: [0, 2] }, { index: 0, embedding: [3, 4] });
  expect(vectorsIn(given, 2)).toEqual([
    [0.6, 0.8],
    [0, 1],
  ]);
  expect(vectorsIn(answer({ embedding: [5] }, { embedding: [-5] }), 2)).toEqual([[1], [-1]]);
});

test.each([
  null,
  [],
  {},
  answer(),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: [1] }, { index: 2, embedding: [1] }),
  answer({ index: 0, embedding: [1] }, { index: 0, embedding: [1] }),
  answer({ index: 0, embedding: [1] }, { index: 2, embedding: [1] }),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: [1, 0] }),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: [0] }),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: [] }),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: ['1'] }),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: [1e300, 1e300].map((n) => n * n) }),
  answer({ index: 0, embedding: [1] }, { index: 1, embedding: Array.from({ length: 4_097 }, () => 1) }),
  answer({ index: 0, embedding: [1] }, null),
])('%j is no answer to two texts', (given) => {
  expect(vectorsIn(given, 2)).toBeNull();
});

test('tokens are those that the provider counts, or about the length of the texts', () => {
  expect(tokensOf({ usage: { prompt_tokens: 12, total_tokens: 14 } }, ['a'])).toBe(12);
  expect(tokensOf({ usage: { total_tokens: 14 } }, ['a'])).toBe(14);
  for (const usage of [null, {}, { prompt_tokens: -1 }, { prompt_tokens: '5' }, { prompt_tokens: 1.5 }])
    expect(tokensOf({ usage }, ['four', 'four', 'f'])).toBe(3);
});

test('the wait that a provider asks for is at most an hour', () => {
  const now = Date.parse('2026-11-25T12:00:00Z');
  const after = (value?: string) => retryAfterOf(new Headers(value === undefined ? {} : { 'retry-after': value }), now);
  expect([after('7'), after('0'), after('99999'), after('Wed, 25 Nov 2026 12:00:30 GMT')]).toEqual([7, 1, 3_600, 30]);
  expect([after('soon'), after(), after('')]).toEqual([null, null, null]);
});
