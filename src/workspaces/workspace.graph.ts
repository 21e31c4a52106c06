import { emptyPage } from '../data/page.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { refersTo } from '../graphql/references.ts';
import { MessageResult } from '../graphql/results.ts';
import { inside } from '../graphql/row-places.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { isSelf, User } from '../users/user.graph.ts';

export const Workspace = builder.prismaObject('Workspace', {
  description: 'A workspace: where an organization keeps namespaces, apps and everything in them.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `ws_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization it belongs to.' }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    ownerId: t.exposeID('ownerId', {
      nullable: true,
      description: 'The user who owns it; null after that account is gone.',
    }),
    subscriptionPlanId: t.exposeString('subscriptionPlanId', { description: 'The plan it is billed under.' }),
    region: t.exposeString('region', { description: 'Where it is hosted.' }),
    storageBucket: t.exposeString('storageBucket', { description: 'Where its files are kept.' }),
    bucketStatus: t.exposeString('bucketStatus', { description: '`pending`, `ready`, `failed` or `deleting`.' }),
    isActive: t.exposeBoolean('isActive', { description: 'Whether it is in use.' }),
    tags: t.exposeStringList('tags', { description: 'Labels to find it by.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
  }),
});

refersTo(Workspace, {
  orgId: { kind: 'organization', required: true, description: 'The organization that it belongs to.' },
  ownerId: 'user',
});

export const WorkspaceConnection = pageType('Workspace', Workspace);

registerNode('workspace', Workspace, async (context, id, orgId) => {
  const { actor, services } = context;
  const { reads } = services.workspaces;
  const workspace = await (orgId ? reads.findInTenant(context, orgId, id) : reads.findUnscoped(context, id));
  if (workspace) await services.access.requireWorkspace(actor, workspace.orgId, id, 'workspace:read');
  return workspace;
});

builder.objectField(User, 'workspaces', (t) =>
  t.field({
    type: WorkspaceConnection,
    nullable: true,
    description:
      'The workspaces of the user in the current organization, newest first. Empty for others; null, with an error, for tokens that may not read workspaces.',
    authorize: { service: 'workspace:read' },
    args: pageArgs(),
    resolve: async (user, args, context) => {
      const { contextOrgId: orgId } = user;
      const { access, workspaces } = context.services;
      if (!orgId || !isSelf(user, context) || !(await access.organizationRole(context.actor, orgId))) return emptyPage;
      return workspaces.own.list(context, inside.organization({ id: orgId }), args);
    },
  }),
);

builder.queryFields((t) => ({
  workspace: t.field({
    type: Workspace,
    description: 'A workspace by its identifier.',
    authorize: { workspace: 'workspace:read', by: 'id' },
    args: {
      orgId: t.arg.id({ required: true, description: 'Its organization.' }),
      id: t.arg.id({ required: true, description: 'The workspace.' }),
    },
    resolve: ({ organization }, { id }, context) => context.services.workspaces.reads.get(context, organization, id),
  }),
  workspaces: t.field({
    type: WorkspaceConnection,
    description: 'The workspaces of an organization that the caller may read, newest first.',
    authorize: { organization: 'organization:access', service: 'workspace:read' },
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization.' }),
      organizationId: t.arg.id({
        constraints: { sameAs: 'orgId' },
        description: 'Must be the same organization where it is given.',
      }),
      ...pageArgs(),
    },
    resolve: ({ organization }, args, context) => context.services.workspaces.list(context, organization, args),
  }),
}));

const CreateWorkspaceInput = builder.inputType('CreateWorkspaceInput', {
  description: 'A new workspace.',
  fields: (t) => ({
    organizationId: t.id({
      required: true,
      constraints: { ...bounds.id, sameAs: 'orgId' },
      description: 'The organization; the same as the one it is made in.',
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    region: t.string({ constraints: bounds.open, description: 'Where it is hosted; `default` unless told.' }),
    subscriptionPlanId: t.string({
      constraints: bounds.open,
      description: 'The plan it is billed under; `community` unless told.',
    }),
    tags: t.stringList({
      constraints: { ...bounds.tags, notNull: false },
      description: 'At most 50 labels of 64 characters.',
    }),
  }),
});

const UpdateWorkspaceInput = builder.inputType('UpdateWorkspaceInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    isActive: t.boolean({ constraints: { notNull: true }, description: 'Whether it is in use.' }),
    tags: t.stringList({ constraints: bounds.tags, description: 'Replaces all labels.' }),
  }),
});

builder.mutationFields((t) => ({
  createWorkspace: t.field({
    type: Workspace,
    description: 'Makes a workspace with a namespace `default`; the caller becomes its owner.',
    authorize: { organization: 'workspace:create' },
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization.' }),
      input: t.arg({ type: CreateWorkspaceInput, required: true, description: 'The workspace.' }),
    },
    resolve: (_root, { orgId, input }, { actor, services }) => services.workspaces.create(actor, orgId, input),
  }),
  updateWorkspace: t.field({
    type: Workspace,
    description: 'Changes a workspace.',
    authorize: { workspace: 'workspace:update', by: 'id' },
    args: {
      orgId: t.arg.id({ required: true, description: 'Its organization.' }),
      id: t.arg.id({ required: true, description: 'The workspace.' }),
      input: t.arg({ type: UpdateWorkspaceInput, required: true, description: 'The changes.' }),
      ...versionArg(),
    },
    resolve: (_root, { orgId, id, input }, { actor, services }) => services.workspaces.update(actor, orgId, id, input),
  }),
  deleteWorkspace: t.field({
    type: MessageResult,
    description:
      'Deletes a workspace. It can be restored by an operator for 30 days; its content is unreachable at once.',
    authorize: { workspace: 'workspace:delete', by: 'id' },
    args: {
      orgId: t.arg.id({ required: true, description: 'Its organization.' }),
      id: t.arg.id({ required: true, description: 'The workspace.' }),
      ...versionArg(),
    },
    resolve: (_root, { orgId, id }, { actor, services }) => services.workspaces.delete(actor, orgId, id),
  }),
}));
