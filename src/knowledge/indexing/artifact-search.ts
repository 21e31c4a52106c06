import type { ReadContext } from '../../data/request-cache.ts';
import type { Checked, NamespacePlace } from '../../kernel/checked-place.ts';
import type { Artifact } from '../artifacts/artifact.reads.ts';
import type { ArtifactService } from '../artifacts/artifact.service.ts';
import { startOf } from '../artifacts/artifact-content.ts';
import type { ThreadService } from '../threads/thread.service.ts';
import type { ArtifactRanking, RankedArtifact, RankedList } from './artifact-ranking.ts';
import { excerptOf } from './excerpt.ts';
import { partOf } from './text/grams.ts';

/** Sizes of an answer in characters (defaults §5). */
const EXCERPT = 500;
const CONTEXT = 8_000;
const DEFAULT_LIMIT = 10;
const BETWEEN = '\n\n---\n\n';

/** What to search for. */
export interface ArtifactQuery {
  query: string;
  /** Default 10. */
  limit?: number | null;
  artifactTypes?: readonly string[] | null;
  threadId?: string | null;
  /** Default 0. */
  minScore?: number | null;
  includeExpired?: boolean | null;
}

/** An artifact that was found. */
export interface FoundArtifact {
  artifact: Artifact;
  score: number;
  matchedChunk: string;
}

/** What was found. */
export interface ArtifactQueryResult {
  results: FoundArtifact[];
  combinedContext: string;
  totalResults: number;
  query: string;
}

interface SearchDeps {
  artifacts: Pick<ArtifactService, 'reads'>;
  threads: Pick<ThreadService, 'reads'>;
  /** One or more; an artifact has the best score that one gives it. */
  rankings: readonly ArtifactRanking[];
}

/** Searches the heads of a namespace's artifacts, by what is indexed of their content and by their labels. */
export class ArtifactSearch {
  readonly #deps: SearchDeps;

  constructor(deps: SearchDeps) {
    this.#deps = deps;
  }

  /** @throws RESOURCE_NOT_FOUND for an unknown thread */
  async query(
    context: ReadContext,
    place: Checked<NamespacePlace>,
    input: ArtifactQuery,
  ): Promise<ArtifactQueryResult> {
    const { artifacts, threads, rankings } = this.#deps;
    const { query, threadId = null, artifactTypes } = input;
    const limit = input.limit ?? DEFAULT_LIMIT;
    if (threadId !== null) await threads.reads.get(context, place, threadId);
    const types = artifactTypes && artifactTypes.length > 0 ? artifactTypes : null;
    const asked = {
      text: query,
      artifactTypes: types,
      threadId,
      minScore: input.minScore ?? 0,
      includeExpired: input.includeExpired ?? false,
      limit,
    };
    const { artifacts: best, total } = fused(await Promise.all(rankings.map((each) => each.rank(place, asked))), limit);
    const found = await Promise.all(
      best.map(async (ranked) => {
        const artifact = await artifacts.reads.find(context, place, ranked.artifactId);
        return artifact ? { artifact, score: ranked.score, ...partsOf(artifact, ranked, query) } : null;
      }),
    );
    const results = found.filter((each) => each !== null);
    return { results, combinedContext: contextOf(results), totalResults: total, query };
  }
}

/** One list of several. How many were found by all together is at least how many the longest has. */
function fused(lists: readonly RankedList[], limit: number): RankedList {
  const best = new Map<string, RankedArtifact>();
  for (const ranked of lists.flatMap(({ artifacts }) => artifacts)) {
    const other = best.get(ranked.artifactId);
    if (!other || other.score < ranked.score) best.set(ranked.artifactId, ranked);
  }
  const artifacts = [...best.values()].sort((a, b) => b.score - a.score).slice(0, limit);
  return { artifacts, total: Math.max(best.size, ...lists.map(({ total }) => total)) };
}

/** Of an artifact that only its labels found, the beginning is shown. */
function partsOf({ contentPreview, description, name }: Artifact, { chunk, lexemes }: RankedArtifact, query: string) {
  const text = chunk ?? contentPreview ?? description ?? name;
  return { chunk: text, matchedChunk: excerptOf(text, lexemes, EXCERPT, partOf(query)?.text) };
}

/** The chunks, the best first, as many as fit; the last one may be cut. */
function contextOf(results: readonly { chunk: string }[]): string {
  return startOf(results.map(({ chunk }) => chunk).join(BETWEEN), CONTEXT);
}
