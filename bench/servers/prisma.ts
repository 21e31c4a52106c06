// What a hand-written service with Prisma does: Fastify and Prisma, no GraphQL.
import Fastify from 'fastify';
import { credentialOf } from '../../src/access/authentication.ts';
import type { Workspace } from '../../src/generated/prisma/client.ts';
import { openBaseline, pageOf, serve, workspaceCursor } from './common.ts';

const { database, authentication } = await openBaseline();
const { prisma } = database;

const shown = (row: Workspace) => ({
  workspace_id: row.id,
  name: row.name,
  description: row.description,
  owner_id: row.ownerId,
  subscription_plan_id: row.subscriptionPlanId,
  region: row.region,
  storage_bucket: row.storageBucket,
  bucket_status: row.bucketStatus,
  is_active: row.isActive,
  tags: row.tags,
  created_at: row.createdAt,
  updated_at: row.updatedAt,
});

const server = Fastify();
server.addHook('onRequest', async (request, reply) => {
  if (!(await authentication.authenticate(credentialOf(request.headers.authorization))))
    return reply.code(401).send({ error: 'AUTHENTICATION_FAILED' });
  return undefined;
});
server.get<{ Params: { org: string }; Querystring: { limit?: string } }>(
  '/v1/orgs/:org/workspaces',
  async (request) => {
    const limit = Number(request.query.limit ?? 50);
    const orgId = request.params.org;
    const [rows, count] = await Promise.all([
      prisma.workspace.findMany({ where: { orgId, deletedAt: null }, orderBy: { id: 'desc' }, take: limit + 1 }),
      prisma.resourceCount.aggregate({ where: { orgId, resource: 'workspace' }, _sum: { n: true } }),
    ]);
    const workspaces = rows.map(shown);
    return pageOf('workspaces', workspaces, limit, Number(count._sum.n ?? 0), workspaceCursor(workspaces, limit));
  },
);
server.get<{ Params: { org: string; id: string } }>('/v1/orgs/:org/workspaces/:id', async (request, reply) => {
  const row = await prisma.workspace.findFirst({
    where: { orgId: request.params.org, id: request.params.id, deletedAt: null },
  });
  return row ? shown(row) : reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
});
await serve(server);
