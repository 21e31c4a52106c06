// The baseline: Fastify and `pg`, prepared statements, nothing else.
import { createHash } from 'node:crypto';
import path from 'node:path';
import Fastify from 'fastify';
import { credentialOf } from '../../src/access/authentication.ts';
import { openBaseline, pageOf, serve, workspaceCursor } from './common.ts';
import { addActivity } from './pg-activity.ts';
import { addArtifacts } from './pg-artifacts.ts';
import { addEntities } from './pg-entities.ts';
import { addFiles } from './pg-files.ts';
import { addInstances } from './pg-instances.ts';
import { addModels } from './pg-models.ts';
import { addSearch } from './pg-search.ts';
import { addSecrets } from './pg-secrets.ts';
import { addToolCalls } from './pg-tool-calls.ts';
import { addWrites } from './pg-writes.ts';

const { database, rootKeys, authentication } = await openBaseline();
const { pool } = database;
const COLUMNS = `id as workspace_id, name, description, owner_id, subscription_plan_id, region, storage_bucket,
  bucket_status, is_active, tags, created_at, updated_at`;
const PAGE = `select ${COLUMNS} from workspaces where org_id = $1 and deleted_at is null order by id desc limit $2`;
const TOTAL = `select coalesce(sum(n), 0)::int as n from resource_counts where org_id = $1 and resource = 'workspace'`;
const ONE = `select ${COLUMNS} from workspaces where org_id = $1 and id = $2 and deleted_at is null`;

const server = Fastify();
// looks up the token at each request: the usual first implementation
const TOKEN = `select t.id, t.org_id, t.workspace_ids, t.permissions, u.id as "userId"
  from api_tokens t join users u on u.id = t.created_by_user_id
  where t.token_hash = $1 and u.is_active and (t.expires_at is null or t.expires_at > now())
    and (t.revoked_at is null or t.revoked_at > now())`;

const callers = new WeakMap<object, { userId: string }>();
async function callerOf(header: string | undefined): Promise<{ userId: string } | null> {
  const token = /^Bearer (pat_\w+)$/.exec(header ?? '')?.[1];
  if (!token) return authentication.authenticate(credentialOf(header));
  const hash = createHash('sha256').update(token).digest('hex');
  return (await pool.query<{ userId: string }>({ name: 'token', text: TOKEN, values: [hash] })).rows[0] ?? null;
}
server.addHook('onRequest', async (request, reply) => {
  if (request.url.startsWith('/download/')) return undefined; // signed
  const caller = await callerOf(request.headers.authorization);
  if (!caller) return reply.code(401).send({ error: 'AUTHENTICATION_FAILED' });
  callers.set(request, caller);
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
    return pageOf('workspaces', page.rows, limit, total.rows[0]!.n, workspaceCursor(page.rows, limit));
  },
);
server.get<{ Params: { org: string; id: string } }>('/v1/orgs/:org/workspaces/:id', async (request, reply) => {
  const { rows } = await pool.query({ name: 'one', text: ONE, values: [request.params.org, request.params.id] });
  return rows[0] ?? reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
});
addActivity(server, pool);
addInstances(server, pool);
addEntities(server, pool);
addArtifacts(server, pool);
addModels(server, pool);
addSearch(server, pool);
addSecrets(server, pool, rootKeys, (request) => callers.get(request)!.userId);
addToolCalls(server, pool, rootKeys, (request) => callers.get(request)!.userId);
addWrites(server, pool, rootKeys, (request) => callers.get(request)!.userId);
await addFiles(server, pool, path.join(process.env.DATA_DIR!, 'files'), (request) => callers.get(request)!.userId);
await serve(server);
