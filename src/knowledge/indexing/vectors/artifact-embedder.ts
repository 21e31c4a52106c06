import type { Changes } from '../../../data/changes.ts';
import { runsBeside } from '../../../data/running-jobs.ts';
import type { Sql } from '../../../data/sql.ts';
import type { Tx } from '../../../data/tx.ts';
import { statement } from '../../../data/writes.ts';
import type { WorkspacePlace } from '../../../kernel/checked-place.ts';
import { type Embedder, EmbeddingUnavailable, type OpenEmbedding, type Vector } from '../../../kernel/embedding.ts';
import type { Owner } from '../../../kernel/owner.ts';
import { systemCaller } from '../../../kernel/system-caller.ts';
import type { Attempt, Task } from '../../../kernel/tasks.ts';
import { lockHead } from '../artifact-head.ts';
import { embeddingChangesTask } from './embedding-changes.ts';
import { arrayOf, HAS_VECTOR, signsOf } from './stored-vectors.ts';

/** Attempts at what is a fault of the service. For what the provider is at fault, there are jobs of their own. */
const TRIES = 5;
/** Jobs that a node runs at once: they wait for others. */
const AT_ONCE = 2;
/** Chunks of one request, and about the most bytes of them. */
const BATCH = 64;
const BATCH_BYTES = 128 * 1024;
/** Requests of one job; the rest has another turn. */
const REQUESTS = 8;
/** Limit of a request, with all targets that are tried. */
const TIMEOUT_MS = 30_000;

/** The waits after failures of the provider: they double from the first to an hour, which comes about a week long. */
const FIRST_WAIT_SECONDS = 5;
const MOST_WAIT_SECONDS = 3_600;
const MOST_WAITS = 180;
/** How long text is waited for that is not indexed yet, or that another job embeds. */
const WAIT_SECONDS = 10;

const NAME = 'embed_artifact';
/** What `index_error` says of an artifact whose text is indexed. */
const NO_VECTORS = 'Only the words are indexed, without embeddings.';

/** The text of one version. */
export interface EmbedJob {
  artifactId: string;
  version: number;
  /** How often the provider has failed. */
  waits?: number;
}

interface EmbedderDeps {
  sql: Sql;
  changes: Changes;
  embedder: Embedder;
}

interface Head extends WorkspacePlace {
  isIndexed: boolean;
  hasFailed: boolean;
  /** The model of the workspace. */
  modelId: string;
}

interface PendingChunk {
  position: number;
  content: string;
  digest: string;
}

/** The head of a version whose workspace has a model: nothing else is embedded. */
const HEAD = `select a.org_id as "orgId", a.workspace_id as "workspaceId", a.is_indexed as "isIndexed",
    a.index_error is not null as "hasFailed", w.embedding_model_id as "modelId"
  from artifacts a join workspaces w on w.id = a.workspace_id
  where a.id = $1 and a.version = $2 and a.is_latest and a.deleted_at is null and w.embedding_model_id is not null`;

const PENDING = `select k.position, k.content, md5(k.content) as digest from artifact_chunks k
  where k.artifact_id = $1 and not ${HAS_VECTOR} order by k.position limit ${BATCH}`;

/** Says what an artifact is embedded with, once all of its chunks are. */
const EMBEDDED = `update artifacts a set embedding_model_id = $2, index_error = null
  where a.id = $1 and a.is_latest and a.is_indexed
    and (a.embedding_model_id is distinct from $2 or a.index_error is not null)
    and exists (select 1 from workspaces w where w.id = a.workspace_id and w.embedding_model_id = $2)
    and exists (select 1 from artifact_chunks k where k.artifact_id = a.id)
    and not exists (select 1 from artifact_chunks k where k.artifact_id = a.id and not ${HAS_VECTOR})`;

const FAILED = `update artifacts set index_error = $3
  where id = $1 and version = $2 and is_latest and deleted_at is null and is_indexed`;

/**
 * Embeds the chunks of artifacts, in jobs after their text was indexed, with the model that their workspace chose. What
 * was embedded is kept request by request. A failure leaves the words searchable: `index_error` says why there are no
 * vectors, and the job waits for its provider, or until somebody changes what is in its way (see `EmbeddingChange`).
 */
export class ArtifactEmbedder implements Owner {
  readonly tasks: readonly Task[];
  readonly #task: Task<EmbedJob>;
  readonly #deps: EmbedderDeps;

  constructor(deps: EmbedderDeps) {
    this.#deps = deps;
    this.#task = { name: NAME, tries: TRIES, atOnce: AT_ONCE, run: (job, attempt) => this.#run(job, attempt) };
    const follow = (tx: Tx, artifact: { id: string; orgId: string; version: number }) => this.follow(tx, artifact);
    this.tasks = [this.#task as Task, embeddingChangesTask({ ...deps, follow })];
  }

  /** Embeds the text of an artifact after the change. */
  follow(tx: Tx, { id, orgId, version }: { id: string; orgId: string; version: number }): void {
    tx.enqueue(this.#task, { artifactId: id, version }, { key: keyOf(id), turnOf: orgId });
  }

  async #run(job: EmbedJob, attempt: Attempt): Promise<void> {
    const { embedder, sql } = this.#deps;
    const [head] = await sql.read<Head>(HEAD, [job.artifactId, job.version]);
    if (!head) return;
    // when it is indexed, the indexer asks for it, unless it has read before that the workspace has no model
    if (!head.isIndexed && head.hasFailed) return;
    // two at once would pay for the same texts; if both give way, the jobs that follow them are one, by their key
    if (!head.isIndexed || (await runsBeside(sql, NAME, attempt, { artifactId: job.artifactId }))) {
      await this.#later(job, head, WAIT_SECONDS);
      return;
    }
    try {
      const model = await embedder.open(head, head.modelId, { timeoutMs: TIMEOUT_MS });
      if (!(await this.#embed(job, head, model))) await this.#later({ ...job, waits: 0 }, head, 0);
    } catch (error) {
      if (!(error instanceof EmbeddingUnavailable)) throw error;
      await this.#fail(job, head, error);
    }
  }

  /** @returns whether nothing is left @throws EmbeddingUnavailable */
  async #embed(job: EmbedJob, head: Head, model: OpenEmbedding): Promise<boolean> {
    const { sql } = this.#deps;
    const same = [job.artifactId, head.modelId, model.modelName];
    for (let requests = 0; requests < REQUESTS; requests += 1) {
      const pending = batchOf(await sql.read<PendingChunk>(PENDING, same));
      if (pending.length === 0) {
        await sql.write(EMBEDDED, same);
        return true;
      }
      const vectors = await model.embed(pending.map(({ content }) => content));
      const isWanted = await this.#store(job, head, model.modelName, pending, vectors);
      if (!isWanted) return true;
    }
    return false;
  }

  /**
   * Keeps the vectors of chunks that still say the same.
   * @returns whether the version is still the latest, and the workspace still has the model
   */
  async #store(
    job: EmbedJob,
    { workspaceId, modelId }: Head,
    modelName: string,
    chunks: readonly PendingChunk[],
    vectors: readonly Vector[],
  ): Promise<boolean> {
    return this.#deps.changes.run(systemCaller(NAME), async (tx) => {
      // until the end: what removes the vectors of a model that is chosen no more comes before this or after it
      const workspace = await tx.lock('workspaces', { id: workspaceId }, 'share');
      if (workspace?.embeddingModelId !== modelId) return false;
      if (!(await lockHead(tx, job))) return false;
      const positions = chunks.map(({ position }) => position);
      const digests = chunks.map(({ digest }) => digest);
      tx.write(statement`insert into artifact_chunk_vectors
          (artifact_id, position, org_id, namespace_id, model_id, model_name, dimensions, signs, vector)
        select k.artifact_id, k.position, k.org_id, k.namespace_id, ${modelId}, ${modelName},
          ${vectors[0]!.length}::int, u.signs::varbit, u.vector::real[]
        from unnest(${positions}::int[], ${digests}::text[], ${vectors.map(signsOf)}::text[],
            ${vectors.map(arrayOf)}::text[]) u(position, digest, signs, vector)
          join artifact_chunks k on k.artifact_id = ${job.artifactId} and k.position = u.position
            and md5(k.content) = u.digest
        on conflict (artifact_id, position) do update set model_id = excluded.model_id,
          model_name = excluded.model_name, dimensions = excluded.dimensions, signs = excluded.signs,
          vector = excluded.vector`);
      return true;
    });
  }

  async #fail(job: EmbedJob, head: Head, { message, isFinal, retryAfterSeconds }: EmbeddingUnavailable): Promise<void> {
    const { artifactId, version, waits = 0 } = job;
    await this.#deps.sql.write(FAILED, [artifactId, version, `${NO_VECTORS} ${message}`]);
    if (isFinal || waits >= MOST_WAITS) return;
    const doubled = Math.min(MOST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** Math.min(waits, 10));
    await this.#later({ ...job, waits: waits + 1 }, head, Math.max(doubled, retryAfterSeconds ?? 0));
  }

  /**
   * Another try, unless a newer version came meanwhile: its job has the key of this one, and would be replaced. A text
   * that was indexed meanwhile does not wait for that any longer.
   */
  async #later(job: EmbedJob, { orgId, isIndexed }: Head, seconds: number): Promise<void> {
    await this.#deps.changes.run(systemCaller(NAME), async (tx) => {
      const artifact = await lockHead(tx, job);
      if (!artifact) return;
      const wait = !isIndexed && artifact.isIndexed ? 0 : seconds;
      const runAt = new Date(Date.now() + wait * 1_000);
      tx.enqueue(this.#task, job, { key: keyOf(job.artifactId), runAt, turnOf: orgId });
    });
  }
}

const keyOf = (artifactId: string): string => `embed ${artifactId}`;

/** The first chunks, as many as a request takes, and at least one. */
function batchOf(pending: readonly PendingChunk[]): readonly PendingChunk[] {
  let bytes = 0;
  const beyond = pending.findIndex(({ content }, at) => {
    bytes += Buffer.byteLength(content);
    return at > 0 && bytes > BATCH_BYTES;
  });
  return beyond < 0 ? pending : pending.slice(0, beyond);
}
