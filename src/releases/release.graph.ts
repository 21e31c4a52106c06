import { App } from '../apps/app.graph.ts';
import { builder } from '../graphql/builder.ts';
import { connectionType, pageArgs } from '../graphql/connections.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInWorkspace, registerNode } from '../graphql/node.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { workspaceArgs } from '../workspaces/workspace-args.ts';

export const Release = builder.prismaObject('Release', {
  description: 'A release of an app. It does not change.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `rls_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    appId: t.exposeID('appId', { description: 'The app.' }),
    number: t.exposeInt('number', { description: 'Counts from 1 within the app, without gaps.' }),
    version: t.exposeString('version', { description: 'A label, unique in the app.' }),
    notes: t.exposeString('notes', { nullable: true, description: 'What is new.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free data.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'Who made it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    app: t.field({
      type: App,
      description: 'The app that it is a release of.',
      authorize: { workspace: 'app:read' },
      resolve: ({ orgId, workspaceId, appId }, _args, context) =>
        context.services.apps.reads.nested(context, [orgId, workspaceId], appId),
    }),
  }),
});

export const ReleaseConnection = connectionType('Release', Release);

registerNode('release', Release, async (context, id) =>
  readableInWorkspace(context, 'release:read', await context.services.releases.reads.findAnywhere(id)),
);

builder.prismaObjectField(App, 'releases', (t) =>
  t.field({
    type: ReleaseConnection,
    description: 'The releases, newest first.',
    authorize: { workspace: 'release:read' },
    args: pageArgs(),
    resolve: ({ orgId, workspaceId, id }, args, context) =>
      context.services.releases.reads.list.nested(context, [orgId, workspaceId, id], args),
  }),
);

const appArgs = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ appId: t.id({ required: true, description: 'The app.' }) })),
});
const target = () => ({
  ...appArgs(),
  ...builder.args((t) => ({ id: t.id({ required: true, description: 'The release.' }) })),
});

builder.queryFields((t) => ({
  release: t.field({
    type: Release,
    description: 'A release by its identifier.',
    authorize: { workspace: 'release:read' },
    args: target(),
    resolve: (_root, { id, ...place }, { services }) => services.releases.get(place, id),
  }),
  releases: t.field({
    type: ReleaseConnection,
    description: 'The releases of an app, newest first.',
    authorize: { workspace: 'release:read' },
    args: { ...appArgs(), ...pageArgs() },
    resolve: (_root, { first, after, ...place }, { services }) => services.releases.list(place, { first, after }),
  }),
}));

const CreateReleaseInput = builder.inputType('CreateReleaseInput', {
  description: 'A new release.',
  fields: (t) => ({
    version: t.string({
      constraints: { minLength: 1, maxLength: 128 },
      description: 'A label, unique in the app; the number unless told.',
    }),
    notes: t.string({ constraints: bounds.description, description: 'What is new.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: bounds.json.maxBytes },
      description: 'Free data.',
    }),
  }),
});

builder.mutationFields((t) => ({
  createRelease: t.field({
    type: Release,
    description: 'Makes the next release of an app.',
    authorize: { workspace: 'release:create' },
    args: { ...appArgs(), input: t.arg({ type: CreateReleaseInput, required: true, description: 'The release.' }) },
    resolve: (_root, { input, ...place }, { actor, services }) => services.releases.create(actor, place, input),
  }),
  deleteRelease: t.boolean({
    description: 'Deletes a release.',
    authorize: { workspace: 'release:delete' },
    args: { ...target(), ...versionArg() },
    resolve: async (_root, { id, ...place }, { actor, services }) => {
      await services.releases.delete(actor, place, id);
      return true;
    },
  }),
}));
