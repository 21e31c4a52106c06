import { builder } from '../graphql/builder.ts';
import { connectionType, pageArgs } from '../graphql/connections.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInWorkspace, registerNode } from '../graphql/node.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import { workspaceArgs } from '../workspaces/workspace-args.ts';

export const Namespace = builder.prismaObject('Namespace', {
  description:
    'A part of a workspace. Each workspace has one with the slug `default`, which stands for its id wherever a namespace is named.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `ns_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    slug: t.exposeString('slug', { description: 'A short name, unique in the workspace.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'Who made it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    workspace: t.field({
      type: Workspace,
      description: 'The workspace that it is a part of.',
      authorize: { workspace: 'workspace:read' },
      resolve: ({ orgId, workspaceId }, _args, context) =>
        context.services.workspaces.nestedOne(context, orgId, workspaceId),
    }),
  }),
});

export const NamespaceConnection = connectionType('Namespace', Namespace);

registerNode('namespace', Namespace, async (context, id) =>
  readableInWorkspace(context, 'namespace:read', await context.services.namespaces.reads.findAnywhere(id)),
);

builder.prismaObjectField(Workspace, 'namespaces', (t) =>
  t.field({
    type: NamespaceConnection,
    description: 'The namespaces, newest first.',
    authorize: { workspace: 'namespace:read' },
    args: pageArgs(),
    resolve: ({ orgId, id }, args, context) => context.services.namespaces.nested(context, [orgId, id], args),
  }),
);

const target = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ id: t.id({ required: true, description: 'The namespace, or `default`.' }) })),
});

builder.queryFields((t) => ({
  namespace: t.field({
    type: Namespace,
    description: 'A namespace by its identifier, or by `default`.',
    authorize: { workspace: 'namespace:read' },
    args: target(),
    resolve: (_root, { id, ...place }, { services }) => services.namespaces.get(place, id),
  }),
  namespaces: t.field({
    type: NamespaceConnection,
    description: 'The namespaces of a workspace, newest first.',
    authorize: { workspace: 'namespace:read' },
    args: { ...workspaceArgs(), ...pageArgs() },
    resolve: (_root, { orgId, workspaceId, ...args }, { actor, services }) =>
      services.namespaces.list(actor, { orgId, workspaceId }, args),
  }),
}));

const CreateNamespaceInput = builder.inputType('CreateNamespaceInput', {
  description: 'A new namespace.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    slug: t.string({
      constraints: bounds.slug,
      description: 'A short name, unique in the workspace; made from the name unless told.',
    }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

const UpdateNamespaceInput = builder.inputType('UpdateNamespaceInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    slug: t.string({
      constraints: { ...bounds.slug, notNull: true },
      description: 'A short name, unique in the workspace; `default` stays.',
    }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

builder.mutationFields((t) => ({
  createNamespace: t.field({
    type: Namespace,
    description: 'Makes a namespace.',
    authorize: { workspace: 'namespace:create' },
    args: {
      ...workspaceArgs(),
      input: t.arg({ type: CreateNamespaceInput, required: true, description: 'The namespace.' }),
    },
    resolve: (_root, { input, ...place }, { actor, services }) => services.namespaces.create(actor, place, input),
  }),
  updateNamespace: t.field({
    type: Namespace,
    description: 'Changes a namespace.',
    authorize: { workspace: 'namespace:update' },
    args: {
      ...target(),
      input: t.arg({ type: UpdateNamespaceInput, required: true, description: 'The changes.' }),
      ...versionArg(),
    },
    resolve: (_root, { id, input, ...place }, { actor, services }) =>
      services.namespaces.update(actor, place, id, input),
  }),
  deleteNamespace: t.boolean({
    description: 'Deletes a namespace with everything in it. The namespace `default` stays.',
    authorize: { workspace: 'namespace:delete' },
    args: { ...target(), ...versionArg() },
    resolve: async (_root, { id, ...place }, { actor, services }) => {
      await services.namespaces.delete(actor, place, id);
      return true;
    },
  }),
}));
