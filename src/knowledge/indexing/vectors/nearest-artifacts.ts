import type { SlowReads } from '../../../data/slow-reads.ts';
import { type Embedder, EmbeddingUnavailable, type Vector } from '../../../kernel/embedding.ts';
import { ApiError } from '../../../kernel/errors.ts';
import { DAYS_AFTER_EXPIRY } from '../../artifacts/artifact.reads.ts';
import type {
  EmbeddedPlaces,
  RankedArtifact,
  RankingQuery,
  SearchedPlaces,
  VectorRanking,
} from '../artifact-ranking.ts';
import { conditionsOn, conditionValues, hasConditions } from '../ranking-conditions.ts';
import { FUSED, hasOperators } from '../text-ranking.ts';
import { arrayOf, signsOf } from './stored-vectors.ts';

/** How long the provider may take to embed a query: words have been found by then. */
const EMBED_MS = 2_000;
/** Chunks of a search whose vectors are looked at. */
export const MOST_SCANNED = 50_000;
/** Components that are multiplied: so many chunks are compared exactly, those whose signs agree most. */
const MOST_COMPONENTS = 600_000;
/** The same where `pgvector` multiplies: it takes about a tenth of the time. */
const MOST_COMPONENTS_OF_EXTENSION = 6_000_000;
const FEWEST_COMPARED = 4 * FUSED;

const meets = conditionsOn([11, 12, 13, 14, 15, 16, 17, 18, 19]);

/** Whether the database has the extension, in a schema where statements find its type and its operators. */
const HAS_EXTENSION = "select to_regtype('vector') is not null as has";

/** How like a vector `v` is the query, from -1 to 1: both have the length 1. */
const LIKENESS = '(select sum(x * y) from unnest(v.vector, $7::float8[]) u(x, y))';
const LIKENESS_OF_EXTENSION = '-(v.vector::vector <#> $7::float8[]::vector)';

/**
 * Parameters: organization, namespaces, model, its name at the provider, components, signs and components of the query,
 * chunks that are compared exactly, least score, whether expired artifacts count, the conditions, whether there is any.
 */
const nearest = (likeness: string) => `with spaces as materialized (select unnest($2::text[]) as space_id),
  scanned as materialized (
    select t.* from spaces s cross join lateral (
      select v.artifact_id, v.position, v.signs from artifact_chunk_vectors v
      where v.org_id = $1 and v.namespace_id = s.space_id and v.model_id = $3 and v.model_name = $4
        and v.dimensions = $5
        -- as a value, as in the ranking by words
        and (not $20 or (select ${meets('a')} from artifacts a where a.id = v.artifact_id))
      limit ${MOST_SCANNED + 1}) t limit ${MOST_SCANNED + 1}),
  alike as materialized (
    select artifact_id, position from scanned
    order by bit_count(signs # $6::varbit), artifact_id, position limit $8),
  compared as (
    select v.artifact_id, v.position, ${likeness} as likeness
    from alike k cross join lateral (select * from artifact_chunk_vectors
      where artifact_id = k.artifact_id and position = k.position offset 0) v),
  best as (
    select distinct on (artifact_id) artifact_id, position, likeness from compared
    order by artifact_id, likeness desc, position)
  select a.id as "artifactId", round(least(1, b.likeness)::numeric, 4)::float8 as score, k.content as chunk,
    (select count(*) > ${MOST_SCANNED} from scanned) as "isCut"
  from best b
  cross join lateral (select * from artifacts where id = b.artifact_id offset 0) a
  join artifact_chunks k on k.artifact_id = a.id and k.position = b.position
  where a.org_id = $1 and a.namespace_id = any($2) and a.is_latest and a.deleted_at is null
    and (a.expires_at is null or a.expires_at > now()
      or $10 and a.expires_at > now() - interval '${DAYS_AFTER_EXPIRY} days')
    and ${meets('a')} and b.likeness > 0 and b.likeness >= $9
  order by b.likeness desc, a.id desc limit ${FUSED}`;

/** The statement for a database without extensions. */
export const NEAREST = nearest(LIKENESS);
/** The statement for a database with `pgvector`. */
export const NEAREST_BY_EXTENSION = nearest(LIKENESS_OF_EXTENSION);

/** The parameters of {@link NEAREST}. */
export function nearestValues(
  orgId: string,
  { modelId, namespaceIds }: Pick<EmbeddedPlaces, 'modelId' | 'namespaceIds'>,
  modelName: string,
  vector: Vector,
  query: RankingQuery,
  { mostComponents = MOST_COMPONENTS }: { mostComponents?: number } = {},
): unknown[] {
  const compared = Math.max(FEWEST_COMPARED, Math.floor(mostComponents / vector.length));
  return [
    orgId,
    namespaceIds,
    modelId,
    modelName,
    vector.length,
    signsOf(vector),
    arrayOf(vector),
    compared,
    query.minScore,
    query.includeExpired,
    ...conditionValues(query),
    hasConditions(query),
  ];
}

/** Of the type, the operator or its library, after the extension was dropped or on a server that never had it. */
const MISSING = new Set(['42704', '42883', '58P01']);
const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && MISSING.has(error.code);

type NearestRow = RankedArtifact & { isCut: boolean };

interface NearestDeps {
  reads: SlowReads;
  embedder: Embedder;
  onFault: (error: unknown, what: string) => void;
}

/**
 * Ranks by what chunks mean: by the angle between their vectors and that of the query. The query is sent to the model
 * of the workspace once. All vectors of the namespaces are looked at, up to {@link MOST_SCANNED}: by their signs, and
 * those that agree most by all components, which up to 600,000 components are all of them, or 6,000,000 where the
 * database has `pgvector` (docs/decisions/0047). A failure is no failure of the search: vectors that fail, or take
 * longer than a search may, are left out.
 */
export class NearestArtifacts {
  readonly #deps: NearestDeps;
  #hasExtension: boolean | undefined;

  constructor(deps: NearestDeps) {
    this.#deps = deps;
  }

  async rank(
    { orgId }: Pick<SearchedPlaces, 'orgId'>,
    query: RankingQuery,
    embedded: readonly EmbeddedPlaces[],
    traceId: string,
  ): Promise<VectorRanking> {
    // a query that says what must be in a text finds nothing else
    if (embedded.length === 0 || hasOperators(query.text)) return { artifacts: [], use: 'none', reason: null };
    try {
      return await this.#rank(orgId, query, embedded, traceId);
    } catch (error) {
      if (error instanceof EmbeddingUnavailable) return unavailable(error.message);
      if (!(error instanceof ApiError)) this.#deps.onFault(error, 'vectors could not be searched');
      return unavailable('The vectors could not be searched in time.');
    }
  }

  async #rank(
    orgId: string,
    query: RankingQuery,
    embedded: readonly EmbeddedPlaces[],
    traceId: string,
  ): Promise<VectorRanking> {
    const { embedder } = this.#deps;
    const { workspaceId, modelId, namespaceIds } = mostOf(embedded);
    const model = await embedder.open({ orgId, workspaceId }, modelId, { timeoutMs: EMBED_MS, traceId });
    const [vector] = await model.embed([query.text]);
    const rows = await this.#nearest(orgId, (mostComponents) =>
      nearestValues(orgId, { modelId, namespaceIds }, model.modelName, vector!, query, { mostComponents }),
    );
    const artifacts = rows.map((row) => ({ ...row, lexemes: [] }));
    const isWhole = embedded.every((places) => places.modelId === modelId);
    if (!isWhole) return { artifacts, use: 'partial', reason: 'Some namespaces were embedded with other models.' };
    if (rows[0]?.isCut)
      return { artifacts, use: 'partial', reason: `Only ${MOST_SCANNED} of the chunks were compared with the query.` };
    return { artifacts, use: 'used', reason: null };
  }

  /** By the extension if the database has it; once without it if it no longer has. */
  async #nearest(orgId: string, valuesOf: (mostComponents: number) => unknown[]): Promise<NearestRow[]> {
    const reads = this.#deps.reads.searchesOf(orgId);
    if (await this.#knowsExtension(orgId)) {
      try {
        return await reads.read<NearestRow>(NEAREST_BY_EXTENSION, valuesOf(MOST_COMPONENTS_OF_EXTENSION));
      } catch (error) {
        if (!isMissing(error)) throw error;
        this.#hasExtension = undefined;
      }
    }
    return reads.read<NearestRow>(NEAREST, valuesOf(MOST_COMPONENTS));
  }

  /**
   * Asked once, by the first search with vectors, and again when the extension was lost: an operator who creates it
   * restarts the service.
   */
  async #knowsExtension(orgId: string): Promise<boolean> {
    if (this.#hasExtension === undefined) {
      const [row] = await this.#deps.reads.of(orgId).read<{ has: boolean }>(HAS_EXTENSION, []);
      this.#hasExtension = row!.has;
    }
    return this.#hasExtension;
  }
}

const unavailable = (reason: string): VectorRanking => ({ artifacts: [], use: 'unavailable', reason });

/** The model that most of the namespaces have, with those, as one of their workspaces may use it. */
function mostOf(embedded: readonly EmbeddedPlaces[]): EmbeddedPlaces {
  const byModel = new Map<string, EmbeddedPlaces>();
  for (const { workspaceId, modelId, namespaceIds } of embedded) {
    const same = byModel.get(modelId);
    byModel.set(modelId, {
      workspaceId: same?.workspaceId ?? workspaceId,
      modelId,
      namespaceIds: [...(same?.namespaceIds ?? []), ...namespaceIds],
    });
  }
  return [...byModel.values()].reduce((most, each) =>
    each.namespaceIds.length > most.namespaceIds.length ? each : most,
  );
}
