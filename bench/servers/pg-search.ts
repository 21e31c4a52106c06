import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { RANK, rankingValues } from '../../src/knowledge/indexing/text-ranking.ts';

const COLUMNS = `id as artifact_id, workspace_id, namespace_id, thread_id, name, description, created_by, created_at,
  updated_at, artifact_type, version, root_artifact_id, is_latest, replaced_by_version, content, content_preview,
  content_text, file_name, mime_type, summary, size_bytes::float8 as size_bytes, file_id is not null as has_file,
  keywords, tags, metadata, source, source_execution_id, source_step_id, source_tool, status, ttl_seconds, expires_at,
  is_pinned, is_indexed, indexed_at, index_collection, index_error, embedding_model_id, index_attempts, chunk_count,
  promoted_to_source_id`;
const BY_ID = `select ${COLUMNS} from artifacts where org_id = $1 and namespace_id = $2 and id = any($3)`;

interface Ranked {
  /** `null` in the one row that there is if nothing is found. */
  artifactId: string | null;
  score: number;
  chunk: string | null;
  total: number;
}

/** The query of artifacts, by the same SQL as the product's. */
export function addSearch(server: FastifyInstance, pool: pg.Pool): void {
  server.post<{ Params: { org: string; ns: string }; Body: { query: string } }>(
    '/v1/orgs/:org/workspaces/:ws/namespaces/:ns/artifacts/query',
    async (request) => {
      const { org, ns } = request.params;
      const { query } = request.body;
      const asked = { text: query, conditions: {}, threadId: null, minScore: 0, includeExpired: false, limit: 10 };
      const values = rankingValues({ orgId: org, namespaceIds: [ns] }, asked);
      const ranked = await pool.query<Ranked>({ name: 'rank', text: RANK, values });
      const rows = ranked.rows.filter((row): row is Ranked & { artifactId: string } => row.artifactId !== null);
      const ids = rows.map(({ artifactId }) => artifactId);
      const found = await pool.query<{ artifact_id: string }>({ name: 'found', text: BY_ID, values: [org, ns, ids] });
      const byId = new Map(found.rows.map((row) => [row.artifact_id, row]));
      return {
        results: rows.map(({ artifactId, score, chunk }) => ({
          artifact: byId.get(artifactId),
          score,
          matched_chunk: chunk?.slice(0, 500) ?? '',
        })),
        combined_context: rows
          .map(({ chunk }) => chunk)
          .join('\n\n---\n\n')
          .slice(0, 8_000),
        total_results: rows[0]?.total ?? 0,
        query,
      };
    },
  );
}
