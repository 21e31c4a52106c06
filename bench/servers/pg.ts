// The baseline: Fastify and `pg`, prepared statements, nothing else.
import Fastify from 'fastify';
import { openBaseline, pageOf, serve } from './common.ts';

const { database, authentication } = await openBaseline();
const { pool } = database;
const COLUMNS = `id as workspace_id, name, description, owner_id, subscription_plan_id, region, storage_bucket, bucket_status, is_active, tags,
  created_at, updated_at`;
const PAGE = `select ${COLUMNS} from workspaces where org_id = $1 and deleted_at is null order by id desc limit $2`;
const TOTAL = `select coalesce(sum(n), 0)::int as n from resource_counts where org_id = $1 and resource = 'workspace'`;
const ONE = `select ${COLUMNS} from workspaces where org_id = $1 and id = $2 and deleted_at is null`;

const server = Fastify();
server.addHook('onRequest', async (request, reply) => {
  if (!(await authentication.authenticate(request.headers.authorization)))
    return reply.code(401).send({ error: 'AUTHENTICATION_FAILED' });
  return undefined;
});
server.get<{ Params: { org: string }; Querystring: { limit?: string } }>(
  '/v1/orgs/:org/workspaces',
  async (request) => {
    const limit = Number(request.query.limit ?? 50);
    const [page, total] = await Promise.all([
      pool.query<{ workspace_id: string }>({ name: 'page', text: PAGE, values: [request.params.org, limit + 1] }),
      pool.query<{ n: number }>({ name: 'total', text: TOTAL, values: [request.params.org] }),
    ]);
    return pageOf(page.rows, limit, total.rows[0]!.n, (row) =>
      Buffer.from((row as { workspace_id: string }).workspace_id).toString('base64url'),
    );
  },
);
server.get<{ Params: { org: string; id: string } }>('/v1/orgs/:org/workspaces/:id', async (request, reply) => {
  const { rows } = await pool.query({ name: 'one', text: ONE, values: [request.params.org, request.params.id] });
  return rows[0] ?? reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
});
await serve(server);
