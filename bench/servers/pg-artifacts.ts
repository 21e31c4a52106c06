import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { pageOf } from './common.ts';

const columnsWith = (text: (column: string) => string) => `id as artifact_id, workspace_id, namespace_id, thread_id,
  name, description, created_by, created_at, updated_at, artifact_type, version, root_artifact_id, is_latest,
  replaced_by_version, ${text('content')} as content, content_preview, ${text('content_text')} as content_text,
  file_name, mime_type, summary, size_bytes::float8 as size_bytes, file_id is not null as has_file, keywords, tags,
  metadata, source, source_execution_id, source_step_id, source_tool,
  case when promoted_to_source_id is not null then 'workspace' when thread_id is not null then 'thread'
    else 'namespace' end as scope,
  case when not is_latest then 'superseded' when expires_at <= now() then 'expired' else status end as status,
  ttl_seconds, expires_at, is_pinned, coalesce(expires_at <= now(), false) as is_expired, is_indexed, indexed_at,
  index_collection, index_error, embedding_model_id, index_attempts, chunk_count, promoted_to_source_id`;
const HEADS = `org_id = $1 and workspace_id = $2 and namespace_id = $3 and is_latest and deleted_at is null
  and (expires_at is null or expires_at > now())`;
const short = (column: string) => `case when octet_length(${column}) <= 8192 then ${column} end`;
const PAGE = `select ${columnsWith(short)} from artifacts where ${HEADS} order by id desc limit $4`;
const TOTAL = `select count(*)::int as n from artifacts where ${HEADS}`;
const ONE = `select ${columnsWith((column) => column)} from artifacts
  where org_id = $1 and workspace_id = $2 and namespace_id = $3 and id = $4 and deleted_at is null
    and (expires_at is null or expires_at > now() - interval '7 days')`;

interface Shelf {
  org: string;
  workspace: string;
  namespace: string;
}

/** A hand-written list of artifacts, and one of them. */
export function addArtifacts(server: FastifyInstance, pool: Pool): void {
  const shelf = '/v1/orgs/:org/workspaces/:workspace/namespaces/:namespace/artifacts';
  server.get<{ Params: Shelf; Querystring: { limit?: string } }>(shelf, async (request) => {
    const { org, workspace, namespace } = request.params;
    const limit = Number(request.query.limit ?? 50);
    const [page, total] = await Promise.all([
      pool.query<{ artifact_id: string }>({
        name: 'artifacts',
        text: PAGE,
        values: [org, workspace, namespace, limit + 1],
      }),
      pool.query<{ n: number }>({ name: 'artifact_total', text: TOTAL, values: [org, workspace, namespace] }),
    ]);
    const last = page.rows.length > limit ? page.rows[limit - 1]!.artifact_id : null;
    const cursor = last && Buffer.from(last).toString('base64url');
    return pageOf('artifacts', page.rows, limit, total.rows[0]!.n, cursor);
  });
  server.get<{ Params: Shelf & { id: string } }>(`${shelf}/:id`, async (request, reply) => {
    const { org, workspace, namespace, id } = request.params;
    const { rows } = await pool.query({ name: 'artifact', text: ONE, values: [org, workspace, namespace, id] });
    return rows[0] ?? reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
  });
}
