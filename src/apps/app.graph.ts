import { builder } from '../graphql/builder.ts';
import { connectionType, pageArgs } from '../graphql/connections.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInWorkspace, registerNode } from '../graphql/node.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import { workspaceArgs } from '../workspaces/workspace-args.ts';

export const App = builder.prismaObject('App', {
  description: 'An application of a workspace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `app_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free data.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'Who made it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    workspace: t.field({
      type: Workspace,
      description: 'The workspace that it belongs to.',
      authorize: { workspace: 'workspace:read' },
      resolve: ({ orgId, workspaceId }, _args, context) =>
        context.services.workspaces.nestedOne(context, orgId, workspaceId),
    }),
  }),
});

export const AppConnection = connectionType('App', App);

registerNode('app', App, async (context, id) =>
  readableInWorkspace(context, 'app:read', await context.services.apps.reads.findAnywhere(id)),
);

builder.prismaObjectField(Workspace, 'apps', (t) =>
  t.field({
    type: AppConnection,
    description: 'The apps, newest first.',
    authorize: { workspace: 'app:read' },
    args: pageArgs(),
    resolve: ({ orgId, id }, args, context) => context.services.apps.nested(context, [orgId, id], args),
  }),
);

const target = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ id: t.id({ required: true, description: 'The app.' }) })),
});

builder.queryFields((t) => ({
  app: t.field({
    type: App,
    description: 'An app by its identifier.',
    authorize: { workspace: 'app:read' },
    args: target(),
    resolve: (_root, { orgId, workspaceId, id }, { services }) => services.apps.reads.get([orgId, workspaceId], id),
  }),
  apps: t.field({
    type: AppConnection,
    description: 'The apps of a workspace, newest first.',
    authorize: { workspace: 'app:read' },
    args: { ...workspaceArgs(), ...pageArgs() },
    resolve: (_root, { orgId, workspaceId, ...args }, { actor, services }) =>
      services.apps.list(actor, { orgId, workspaceId }, args),
  }),
}));

const CreateAppInput = builder.inputType('CreateAppInput', {
  description: 'A new app.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: bounds.json.maxBytes },
      description: 'Free data.',
    }),
  }),
});

const UpdateAppInput = builder.inputType('UpdateAppInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    metadata: t.field({ type: 'JSONObject', constraints: bounds.json, description: 'Replaces the free data.' }),
  }),
});

builder.mutationFields((t) => ({
  createApp: t.field({
    type: App,
    description: 'Makes an app.',
    authorize: { workspace: 'app:create' },
    args: { ...workspaceArgs(), input: t.arg({ type: CreateAppInput, required: true, description: 'The app.' }) },
    resolve: (_root, { input, ...place }, { actor, services }) => services.apps.create(actor, place, input),
  }),
  updateApp: t.field({
    type: App,
    description: 'Changes an app.',
    authorize: { workspace: 'app:update' },
    args: {
      ...target(),
      input: t.arg({ type: UpdateAppInput, required: true, description: 'The changes.' }),
      ...versionArg(),
    },
    resolve: (_root, { id, input, ...place }, { actor, services }) => services.apps.update(actor, place, id, input),
  }),
  deleteApp: t.boolean({
    description: 'Deletes an app with its releases.',
    authorize: { workspace: 'app:delete' },
    args: { ...target(), ...versionArg() },
    resolve: async (_root, { id, ...place }, { actor, services }) => {
      await services.apps.delete(actor, place, id);
      return true;
    },
  }),
}));
