import { inBatches } from '../../../data/batches.ts';
import type { Changes } from '../../../data/changes.ts';
import type { Sql } from '../../../data/sql.ts';
import type { Tx } from '../../../data/tx.ts';
import type { Embedder } from '../../../kernel/embedding.ts';
import { systemCaller } from '../../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../../kernel/tasks.ts';

interface EmbeddingChangesDeps {
  sql: Sql;
  changes: Changes;
  embedder: Pick<Embedder, 'nameOf'>;
  /** Embeds an artifact after the change. */
  follow: (tx: Tx, artifact: OtherArtifact) => void;
}

/** A head that is embedded otherwise, or not yet. */
interface OtherArtifact {
  id: string;
  orgId: string;
  version: number;
}

interface Due {
  workspaceId: string;
  orgId: string;
  /** The model that the workspace has now. */
  modelId: string | null;
  changedAt: string;
}

const NAME = 'embedding_changes';
/** Artifacts that are looked at together, and vectors that are removed together. */
const BATCH = 200;
const VECTORS = 5_000;

const DUE = 'from embedding_changes where not is_marked';
const NEXT = `select c.workspace_id as "workspaceId", w.org_id as "orgId", w.embedding_model_id as "modelId",
    c.changed_at::text as "changedAt"
  from (select workspace_id, changed_at ${DUE} order by changed_at limit 1) c
  join workspaces w on w.id = c.workspace_id`;
// unless something changed again
const MARKED = `update embedding_changes set is_marked = true
  where workspace_id = $1 and changed_at = $2::timestamptz`;

/** Heads that are not embedded with the model and name, or not indexed yet. */
const OTHERS = `select a.id, a.org_id as "orgId", a.version
  from namespaces n join artifacts a on a.namespace_id = n.id
  where n.workspace_id = $1 and a.id > $2 and a.is_latest and a.deleted_at is null
    and (not a.is_indexed or a.chunk_count > 0 and (
      a.embedding_model_id is distinct from $3 or a.index_error is not null
      or exists (select 1 from artifact_chunk_vectors v
        where v.artifact_id = a.id and v.model_name is distinct from $4)))
  order by a.id limit ${BATCH}`;

const FORGET_VECTORS = `delete from artifact_chunk_vectors where (artifact_id, position) in (
  select v.artifact_id, v.position from namespaces n
  join artifact_chunk_vectors v on v.org_id = n.org_id and v.namespace_id = n.id
  where n.workspace_id = $1 limit ${VECTORS})`;
const FORGET = `update artifacts a set embedding_model_id = null, index_error = null where a.id in (
  select o.id from namespaces n join artifacts o on o.namespace_id = n.id
  where n.workspace_id = $1 and o.is_latest and o.is_indexed
    and (o.embedding_model_id is not null or o.index_error is not null)
  order by o.id limit ${BATCH} for no key update of o)`;

/**
 * Sees to the artifacts of workspaces for which something changed that decides how they are embedded: those that are
 * not embedded so are, and without a model nothing of it is left.
 */
async function seeToChanges(deps: EmbeddingChangesDeps, signal: AbortSignal): Promise<void> {
  const { sql } = deps;
  const next = async () => (await sql.read<Due>(NEXT, []))[0];
  for (let due = await next(); due && !signal.aborted; due = await next()) {
    const { workspaceId, modelId, changedAt } = due;
    if (modelId === null) {
      await inBatches(VECTORS, () => sql.write(FORGET_VECTORS, [workspaceId]));
      await inBatches(BATCH, () => sql.write(FORGET, [workspaceId]));
    } else await embedOthers(deps, { ...due, modelId });
    await sql.write(MARKED, [workspaceId, changedAt]);
  }
}

async function embedOthers(
  { sql, changes, embedder, follow }: EmbeddingChangesDeps,
  { workspaceId, orgId, modelId }: Due & { modelId: string },
): Promise<void> {
  const modelName = await embedder.nameOf({ orgId, workspaceId }, modelId);
  let after = '';
  await inBatches(BATCH, async () => {
    const others = await sql.read<OtherArtifact>(OTHERS, [workspaceId, after, modelId, modelName]);
    if (others.length > 0)
      await changes.run(systemCaller(NAME), async (tx) => {
        for (const artifact of others) follow(tx, artifact);
      });
    after = others.at(-1)?.id ?? after;
    return others.length;
  });
}

/** The task that does so. */
export const embeddingChangesTask = (deps: EmbeddingChangesDeps): Task =>
  scheduled(NAME, { everySeconds: 1, ifAny: `select 1 ${DUE}` }, ({ signal }) => seeToChanges(deps, signal));
