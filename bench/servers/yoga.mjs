// Not TypeScript: a second schema builder would share Pothos' global types with the product's. The usual first
// implementation with the same libraries: graphql-yoga, Pothos and its Prisma plugin, with Prisma's relations for what
// is nested.
import SchemaBuilder from '@pothos/core';
import PrismaPlugin, { queryFromInfo } from '@pothos/plugin-prisma';
import Fastify from 'fastify';
import { createYoga } from 'graphql-yoga';
import { credentialOf } from '../../src/access/authentication.ts';
import { getDatamodel } from '../../src/generated/pothos-prisma.ts';
import { openBaseline, serve } from './common.ts';

const { database, authentication } = await openBaseline();
const { prisma } = database;

const builder = new SchemaBuilder({
  plugins: [PrismaPlugin],
  defaultFieldNullability: false,
  prisma: { client: prisma, dmmf: getDatamodel() },
});

builder.scalarType('DateTime', { serialize: (value) => value.toISOString() });

const Namespace = builder.prismaObject('Namespace', {
  fields: (t) => ({ id: t.exposeID('id'), name: t.exposeString('name'), slug: t.exposeString('slug') }),
});

const Member = builder.prismaObject('WorkspaceMember', {
  select: { user: true },
  fields: (t) => ({
    id: t.exposeID('id'),
    userId: t.exposeID('userId'),
    role: t.exposeString('role'),
    username: t.string({ resolve: ({ user }) => user.username }),
    email: t.string({ resolve: ({ user }) => user.email }),
  }),
});

const PageInfo = builder.objectRef('PageInfo').implement({
  fields: (t) => ({
    hasNextPage: t.boolean({ resolve: ({ rows, limit }) => rows.length > limit }),
    endCursor: t.string({
      nullable: true,
      resolve: ({ rows, limit }) =>
        rows.length > limit ? Buffer.from(rows[limit - 1].id).toString('base64url') : null,
    }),
  }),
});

const first = 50;
const MemberConnection = builder.objectRef('WorkspaceMemberConnection');
MemberConnection.implement({
  fields: (t) => ({ nodes: t.field({ type: [Member], resolve: ({ nodes }) => nodes }) }),
});
const NamespaceConnection = builder.objectRef('NamespaceConnection');
NamespaceConnection.implement({
  fields: (t) => ({ nodes: t.field({ type: [Namespace], resolve: ({ nodes }) => nodes }) }),
});

const Workspace = builder.prismaObject('Workspace', {
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    description: t.exposeString('description', { nullable: true }),
    ownerId: t.exposeID('ownerId', { nullable: true }),
    subscriptionPlanId: t.exposeString('subscriptionPlanId'),
    region: t.exposeString('region'),
    storageBucket: t.exposeString('storageBucket'),
    bucketStatus: t.exposeString('bucketStatus'),
    isActive: t.exposeBoolean('isActive'),
    tags: t.exposeStringList('tags'),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
    members: t.field({
      type: MemberConnection,
      args: { first: t.arg.int({ required: true, defaultValue: first }) },
      select: (args, _context, nested) => ({
        members: nested({ take: args.first, orderBy: { id: 'asc' } }, ['nodes']),
      }),
      resolve: ({ members }) => ({ nodes: members }),
    }),
    namespaces: t.field({
      type: NamespaceConnection,
      args: { first: t.arg.int({ required: true, defaultValue: first }) },
      select: (args, _context, nested) => ({
        namespaces: nested({ take: args.first, orderBy: { id: 'desc' } }, ['nodes']),
      }),
      resolve: ({ namespaces }) => ({ nodes: namespaces }),
    }),
  }),
});

const WorkspaceConnection = builder.objectRef('WorkspaceConnection').implement({
  fields: (t) => ({
    nodes: t.field({ type: [Workspace], resolve: ({ rows, limit }) => rows.slice(0, limit) }),
    pageInfo: t.field({ type: PageInfo, resolve: (page) => page }),
    totalCount: t.int({ resolve: ({ total }) => total() }),
  }),
});

const Organization = builder.prismaObject('Organization', {
  fields: (t) => ({
    id: t.exposeID('id'),
    name: t.exposeString('name'),
    workspaces: t.field({
      type: WorkspaceConnection,
      args: { first: t.arg.int({ required: true, defaultValue: first }) },
      select: (args, _context, nested) => ({
        workspaces: nested({ where: { deletedAt: null }, take: args.first + 1, orderBy: { id: 'desc' } }, ['nodes']),
      }),
      resolve: ({ id, workspaces }, args) => ({ rows: workspaces, limit: args.first, total: () => totalOf(id) }),
    }),
  }),
});

async function totalOf(orgId) {
  const count = await prisma.resourceCount.aggregate({ where: { orgId, resource: 'workspace' }, _sum: { n: true } });
  return Number(count._sum.n ?? 0);
}

builder.queryType({
  fields: (t) => ({
    organization: t.prismaField({
      type: Organization,
      args: { id: t.arg.id({ required: true }) },
      resolve: (query, _root, { id }) => prisma.organization.findUniqueOrThrow({ ...query, where: { id } }),
    }),
    workspace: t.prismaField({
      type: Workspace,
      args: { orgId: t.arg.id({ required: true }), id: t.arg.id({ required: true }) },
      resolve: (query, _root, { orgId, id }) =>
        prisma.workspace.findFirstOrThrow({ ...query, where: { orgId, id, deletedAt: null } }),
    }),
    workspaces: t.field({
      type: WorkspaceConnection,
      args: { orgId: t.arg.id({ required: true }), first: t.arg.int({ required: true, defaultValue: first }) },
      resolve: async (_root, { orgId, first: limit }, context, info) => {
        const query = queryFromInfo({ context, info, typeName: 'Workspace', path: ['nodes'] });
        const where = { orgId, deletedAt: null };
        const rows = await prisma.workspace.findMany({ ...query, where, orderBy: { id: 'desc' }, take: limit + 1 });
        return { rows, limit, total: () => totalOf(orgId) };
      },
    }),
  }),
});

const server = Fastify();
server.addHook('onRequest', async (request, reply) => {
  if (!(await authentication.authenticate(credentialOf(request.headers.authorization))))
    return reply.code(401).send({ error: 'AUTHENTICATION_FAILED' });
  return undefined;
});
const yoga = createYoga({
  schema: builder.toSchema(),
  logging: false,
  graphiql: false,
});
// the integration that yoga's documentation shows for Fastify
server.addContentTypeParser('multipart/form-data', {}, (_request, _payload, done) => done(null));
server.route({
  url: yoga.graphqlEndpoint,
  method: ['GET', 'POST', 'OPTIONS'],
  handler: (req, reply) => yoga.handleNodeRequestAndResponse(req, reply, { req, reply }),
});
await serve(server);
