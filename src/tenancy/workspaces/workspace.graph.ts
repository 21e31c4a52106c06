import { emptyPage } from '../../data/page.ts';
import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { TextLanguageEnum } from '../../graphql/shared-enums.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { isSelf, User } from '../users/user.graph.ts';

const BucketStatus = wordEnum('BucketStatus', 'Status of the bucket of a workspace.', {
  pending: 'It is being made.',
  ready: 'Files can be stored.',
  failed: 'It could not be made. The service tries again.',
  deleting: 'The workspace was deleted, and its files are removed.',
});

export const Workspace = builder.prismaObject('Workspace', {
  description: 'A part of an organization. Contains namespaces, apps and everything in them.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `ws_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization that the workspace belongs to.' }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    ownerId: t.exposeID('ownerId', {
      nullable: true,
      description: 'The user who owns the workspace. `null` once that account is gone.',
    }),
    subscriptionPlanId: t.exposeString('subscriptionPlanId', {
      description: 'The plan that the workspace is billed under.',
    }),
    region: t.exposeString('region', { description: 'The region that hosts the workspace.' }),
    storageBucket: t.exposeString('storageBucket', { description: "The bucket that stores the workspace's files." }),
    bucketStatus: t.expose('bucketStatus', { type: BucketStatus, description: 'Status of the bucket.' }),
    isActive: t.exposeBoolean('isActive', { description: 'Whether the workspace is in use.' }),
    tags: t.exposeStringList('tags', { description: 'Labels to find the workspace by.' }),
    language: t.expose('language', {
      type: TextLanguageEnum,
      nullable: true,
      description:
        'The language of its artifacts without a language of their own, as ISO 639-1; `null` for the operator’s ' +
        'setting, else the detected language.',
    }),
    embeddingModelId: t.exposeString('embeddingModelId', {
      nullable: true,
      description:
        'The model of the catalogue that embeds its artifacts, so that searches find what they mean; `null` for none.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the workspace was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the workspace last changed.' }),
  }),
});

refersTo(Workspace, {
  orgId: { kind: 'organization', required: true, description: 'The organization that the workspace belongs to.' },
  ownerId: 'user',
});

export const WorkspaceConnection = pageType('Workspace', Workspace);

registerNode('workspace', Workspace, async (context, id, orgId) => {
  const { caller, services } = context;
  const { reads } = services.workspaces;
  const workspace = await (orgId ? reads.findInTenant(context, orgId, id) : reads.findUnscoped(context, id));
  if (workspace) await services.access.requireWorkspace(caller, workspace.orgId, id, 'workspace:read');
  return workspace;
});

builder.objectField(User, 'workspaces', (t) =>
  t.field({
    type: WorkspaceConnection,
    nullable: true,
    description:
      "The user's workspaces in the current organization, newest first. Empty unless the user is the caller. `null`, " +
      'with an error, for tokens that may not read workspaces.',
    authorize: { service: 'workspace:read' },
    args: pageArgs(),
    resolve: async (user, args, context) => {
      const { contextOrgId: orgId } = user;
      const { access, workspaces } = context.services;
      if (!orgId || !isSelf(user, context) || !(await access.organizationRole(context.caller, orgId))) return emptyPage;
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
      orgId: t.arg.id({ required: true, description: 'The organization.' }),
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
        description: 'If given, must be the same organization.',
      }),
      ...pageArgs(),
    },
    resolve: ({ organization }, args, context) =>
      context.services.workspaces.list(context, organization, organization.asked.role, args),
  }),
}));

const CreateWorkspaceInput = builder.inputType('CreateWorkspaceInput', {
  description: 'A new workspace.',
  fields: (t) => ({
    organizationId: t.id({
      required: true,
      constraints: { ...bounds.id, sameAs: 'orgId' },
      description: 'The organization. Must be the one that the workspace is created in.',
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    region: t.string({
      constraints: bounds.open,
      description: 'The region that hosts the workspace. Default `default`.',
    }),
    subscriptionPlanId: t.string({
      constraints: bounds.open,
      description: 'The plan that the workspace is billed under. Default `community`.',
    }),
    tags: t.stringList({
      constraints: { ...bounds.tags, notNull: false },
      description: 'At most 50 labels of up to 64 characters each.',
    }),
  }),
});

const UpdateWorkspaceInput = builder.inputType('UpdateWorkspaceInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    isActive: t.boolean({ constraints: { notNull: true }, description: 'Whether the workspace is in use.' }),
    tags: t.stringList({ constraints: bounds.tags, description: 'The new labels. They replace all previous labels.' }),
    language: t.field({
      type: TextLanguageEnum,
      description:
        'The language of its artifacts without a language of their own, as ISO 639-1; they are indexed again in ' +
        'the background. `null` applies the operator’s setting, else the detected language.',
    }),
    embeddingModelId: t.string({
      constraints: { minLength: 1, maxLength: 128 },
      description:
        'A model of the catalogue, of the type `embedding`: the texts of its artifacts and of searches are sent to ' +
        'its targets at accounts of the type `openai_compatible`, while the workspace is entitled to it. They are ' +
        'embedded in the background. `null` removes all vectors.',
    }),
  }),
});

const DeleteWorkspacePayload = deletePayload('DeleteWorkspace', {
  noun: 'workspace',
  in: ['orgId'],
  message: 'Workspace deleted successfully',
});

builder.mutationFields((t) => ({
  createWorkspace: t.field({
    type: Workspace,
    description: 'Creates a workspace with the namespace `default`. The caller becomes its owner.',
    authorize: { organization: 'workspace:create' },
    emits: ['workspace.created'],
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization.' }),
      input: t.arg({ type: CreateWorkspaceInput, required: true, description: 'The workspace.' }),
    },
    resolve: (_root, { orgId, input }, { caller, services }) => services.workspaces.create(caller, orgId, input),
  }),
  updateWorkspace: t.field({
    type: Workspace,
    description: 'Changes a workspace.',
    authorize: { workspace: 'workspace:update', by: 'id' },
    emits: ['workspace.updated'],
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization.' }),
      id: t.arg.id({ required: true, description: 'The workspace.' }),
      input: t.arg({ type: UpdateWorkspaceInput, required: true, description: 'The changes.' }),
      ...versionArg(),
    },
    resolve: (_root, { orgId, id, input }, { caller, services }) =>
      services.workspaces.update(caller, orgId, id, input),
  }),
  deleteWorkspace: t.field({
    type: DeleteWorkspacePayload,
    description:
      'Deletes a workspace. Its content becomes unreachable at once. `restoreWorkspace` restores it for 30 days.',
    authorize: { workspace: 'workspace:delete', by: 'id' },
    emits: ['workspace.deleted'],
    args: {
      orgId: t.arg.id({ required: true, description: 'The organization.' }),
      id: t.arg.id({ required: true, description: 'The workspace.' }),
      ...versionArg(),
    },
    resolve: (_root, { orgId, id }, { caller, services }) => services.workspaces.delete(caller, orgId, id),
  }),
}));
