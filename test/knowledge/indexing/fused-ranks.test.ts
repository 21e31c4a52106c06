import { expect, test } from 'vitest';
import { fusedByRank } from '../../../src/knowledge/indexing/vectors/fused-ranks.ts';

const found = (artifactId: string, score: number, chunk: string | null = null) => ({
  artifactId,
  score,
  chunk,
  lexemes: [],
});

test('what both lists have comes first, then what is first in one of them', () => {
  const words = [found('a', 0.9), found('b', 0.2), found('c', 0.1)];
  const vectors = [found('d', 0.8), found('b', 0.7), found('e', 0.3)];
  expect(fusedByRank(words, vectors).map(({ artifactId }) => artifactId)).toEqual(['b', 'a', 'd', 'e', 'c']);
});

test('an artifact of both has the better score, and the chunk of its words if these are in one', () => {
  const [one, other] = fusedByRank(
    [found('a', 0.2, 'words'), found('b', 0.9)],
    [found('a', 0.6, 'meant'), found('b', 0.5, 'meant')],
  );
  expect([one, other]).toEqual([found('a', 0.6, 'words'), found('b', 0.9, 'meant')]);
});

test('the order of equals is that of their ids', () => {
  const order = (ids: string[]) =>
    fusedByRank(
      ids.map((id) => found(id, 0.5)),
      [],
    ).map(({ artifactId }) => artifactId);
  expect(order(['a', 'b'])).toEqual(['a', 'b']);
  expect(fusedByRank([found('a', 0.5)], [found('b', 0.5)]).map(({ artifactId }) => artifactId)).toEqual(['b', 'a']);
});
