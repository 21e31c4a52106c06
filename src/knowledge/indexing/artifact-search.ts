import type { CallerContext } from '../../data/request-cache.ts';
import type { Checked, NamespacePlace, OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { InputError, type InputIssue, invalidInput } from '../../kernel/errors.ts';
import type { Artifact } from '../artifacts/artifact.reads.ts';
import type { ArtifactService } from '../artifacts/artifact.service.ts';
import { startOf } from '../artifacts/artifact-content.ts';
import type { ThreadService } from '../threads/thread.service.ts';
import type { ArtifactConditions, RankedArtifact, SearchedPlaces, VectorUse } from './artifact-ranking.ts';
import { excerptOf } from './excerpt.ts';
import type { SearchScopes } from './search-scopes.ts';
import { partOf } from './text/grams.ts';
import type { TextRanking } from './text-ranking.ts';
import { fusedByRank } from './vectors/fused-ranks.ts';
import type { NearestArtifacts } from './vectors/nearest-artifacts.ts';

/** Sizes of an answer in characters (defaults §5). */
const EXCERPT = 500;
const CONTEXT = 8_000;
const DEFAULT_LIMIT = 10;
const BETWEEN = '\n\n---\n\n';

/** What to search for. */
export interface ArtifactQuery extends ArtifactConditions {
  query: string;
  /** Default 10. */
  limit?: number | null;
  /** Default 0. */
  minScore?: number | null;
  includeExpired?: boolean | null;
}

/** What to search a namespace for. */
export interface NamespaceQuery extends ArtifactQuery {
  threadId?: string | null;
}

/** What to search a workspace or an organization for. */
export interface WideQuery extends ArtifactQuery {
  /** Only in these; empty for all. */
  namespaceIds?: readonly string[] | null;
  workspaceIds?: readonly string[] | null;
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
  vectorUse: VectorUse;
  vectorReason: string | null;
}

interface SearchDeps {
  artifacts: Pick<ArtifactService, 'reads'>;
  threads: Pick<ThreadService, 'reads'>;
  scopes: SearchScopes;
  words: Pick<TextRanking, 'rank'>;
  vectors: Pick<NearestArtifacts, 'rank'>;
}

/** Searches the heads of artifacts, by what is indexed of their content and by their labels. */
export class ArtifactSearch {
  readonly #deps: SearchDeps;

  constructor(deps: SearchDeps) {
    this.#deps = deps;
  }

  /** @throws RESOURCE_NOT_FOUND for an unknown thread */
  async query(
    context: CallerContext,
    place: Checked<NamespacePlace>,
    input: NamespaceQuery,
  ): Promise<ArtifactQueryResult> {
    const { artifacts, threads } = this.#deps;
    const { threadId = null } = input;
    if (threadId !== null) await threads.reads.get(context, place, threadId);
    const places = { orgId: place.orgId, namespaceIds: [place.namespaceId] };
    return this.#found(context, places, input, threadId, (id) => artifacts.reads.find(context, place, id));
  }

  /** Searches the namespaces of a workspace that the caller may read. */
  async queryWorkspace(
    context: CallerContext,
    place: Checked<WorkspacePlace>,
    input: WideQuery,
  ): Promise<ArtifactQueryResult> {
    return this.#wide(context, await this.#deps.scopes.ofWorkspace(context.caller, place, input), input);
  }

  /** Searches the namespaces of all workspaces of an organization in which the caller may read artifacts. */
  async queryOrganization(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    input: WideQuery,
  ): Promise<ArtifactQueryResult> {
    return this.#wide(context, await this.#deps.scopes.ofOrganization(context.caller, place, input), input);
  }

  #wide(context: CallerContext, places: SearchedPlaces, input: WideQuery): Promise<ArtifactQueryResult> {
    const { reads } = this.#deps.artifacts;
    return this.#found(context, places, input, null, (id) => reads.findInTenant(context, places.orgId, id));
  }

  async #found(
    { caller }: CallerContext,
    places: SearchedPlaces,
    input: ArtifactQuery,
    threadId: string | null,
    find: (id: string) => Promise<Artifact | null>,
  ): Promise<ArtifactQueryResult> {
    demandMeaningful(input);
    const { query, limit: given, minScore, includeExpired, ...conditions } = input;
    const limit = given ?? DEFAULT_LIMIT;
    const asked = {
      text: query,
      conditions,
      threadId,
      minScore: minScore ?? 0,
      includeExpired: includeExpired ?? false,
      limit,
    };
    const { words, vectors } = this.#deps;
    const byWords = await words.rank(caller, places, asked);
    const byVectors = await vectors.rank(places, asked, byWords.embedded, caller.request.traceId);
    const fused =
      byVectors.artifacts.length > 0 ? fusedByRank(byWords.artifacts, byVectors.artifacts) : byWords.artifacts;
    const best = fused.slice(0, limit);
    const total = Math.max(fused.length, byWords.total);
    const found = await Promise.all(
      best.map(async (ranked) => {
        const artifact = await find(ranked.artifactId);
        return artifact ? { artifact, score: ranked.score, ...partsOf(artifact, ranked, query) } : null;
      }),
    );
    const results = found.filter((each) => each !== null);
    const { use: vectorUse, reason: vectorReason } = byVectors;
    return { results, combinedContext: contextOf(results), totalResults: total, query, vectorUse, vectorReason };
  }
}

const MOST_KEYS = 10;

/** @throws InputError for conditions that nothing can meet, and values that equality is not defined for */
function demandMeaningful({ metadata, createdFrom, createdTo, updatedFrom, updatedTo }: ArtifactConditions): void {
  if (createdFrom && createdTo && createdTo < createdFrom)
    throw invalidInput(['input', 'createdTo'], 'the end is before the start');
  if (updatedFrom && updatedTo && updatedTo < updatedFrom)
    throw invalidInput(['input', 'updatedTo'], 'the end is before the start');
  const entries = Object.entries(metadata ?? {});
  if (entries.length > MOST_KEYS) throw invalidInput(['input', 'metadata'], `at most ${MOST_KEYS} keys`);
  const issues = entries.flatMap(([key, value]): InputIssue[] => {
    if (value === null || typeof value !== 'object') return [];
    const error = 'a text, a number, true, false or null';
    return [
      {
        path: ['input', 'metadata', key],
        type: 'value_error',
        msg: `Value error, ${error}`,
        ctx: { error },
        input: value,
      },
    ];
  });
  if (issues.length > 0) throw new InputError(issues);
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
