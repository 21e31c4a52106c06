import type { RankedArtifact } from '../artifact-ranking.ts';

/** How much the first ranks count beside later ones (reciprocal rank fusion, as its authors measured it). */
const K = 60;

/**
 * The artifacts of two lists in one order: each counts `1 / (60 + rank)` in each list that has it. Scores of words and
 * of vectors do not compare, but ranks do. An artifact has the better score of both, and shows what its words found.
 */
export function fusedByRank(
  byWords: readonly RankedArtifact[],
  byVectors: readonly RankedArtifact[],
): RankedArtifact[] {
  const fused = new Map<string, { found: RankedArtifact; worth: number }>();
  for (const list of [byWords, byVectors])
    for (const [at, found] of list.entries()) {
      const other = fused.get(found.artifactId);
      const worth = (other?.worth ?? 0) + 1 / (K + at + 1);
      fused.set(found.artifactId, { found: other ? both(other.found, found) : found, worth });
    }
  return [...fused.values()]
    .sort(
      (a, b) =>
        b.worth - a.worth || b.found.score - a.found.score || (a.found.artifactId < b.found.artifactId ? 1 : -1),
    )
    .map(({ found }) => found);
}

const both = (byWords: RankedArtifact, byVectors: RankedArtifact): RankedArtifact => ({
  ...byWords,
  score: Math.max(byWords.score, byVectors.score),
  chunk: byWords.chunk ?? byVectors.chunk,
});
