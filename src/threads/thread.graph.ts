import { builder } from '../graphql/builder.ts';
import { connectionType, pageArgs } from '../graphql/connections.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInWorkspace, registerNode } from '../graphql/node.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Namespace } from '../namespaces/namespace.graph.ts';
import { workspaceArgs } from '../workspaces/workspace-args.ts';

export const Thread = builder.prismaObject('Thread', {
  description: 'A conversation in a namespace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `thr_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    namespaceId: t.exposeID('namespaceId', { description: 'The namespace.' }),
    title: t.exposeString('title', { nullable: true, description: 'What it is about.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free data.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'Who started it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was started.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
    namespace: t.field({
      type: Namespace,
      description: 'The namespace that it belongs to.',
      authorize: { workspace: 'namespace:read' },
      resolve: ({ orgId, workspaceId, namespaceId }, _args, context) =>
        context.services.namespaces.reads.nested(context, [orgId, workspaceId], namespaceId),
    }),
  }),
});

export const ThreadConnection = connectionType('Thread', Thread);

registerNode('thread', Thread, async (context, id) =>
  readableInWorkspace(context, 'thread:read', await context.services.threads.reads.findAnywhere(id)),
);

builder.prismaObjectField(Namespace, 'threads', (t) =>
  t.field({
    type: ThreadConnection,
    description: 'The threads, newest first.',
    authorize: { workspace: 'thread:read' },
    args: pageArgs(),
    resolve: ({ orgId, workspaceId, id }, args, context) =>
      context.services.threads.reads.list.nested(context, [orgId, workspaceId, id], args),
  }),
);

const namespaceArgs = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ namespaceId: t.id({ required: true, description: 'The namespace, or `default`.' }) })),
});
const target = () => ({
  ...namespaceArgs(),
  ...builder.args((t) => ({ id: t.id({ required: true, description: 'The thread.' }) })),
});

builder.queryFields((t) => ({
  thread: t.field({
    type: Thread,
    description: 'A thread by its identifier.',
    authorize: { workspace: 'thread:read' },
    args: target(),
    resolve: (_root, { id, ...place }, { services }) => services.threads.get(place, id),
  }),
  threads: t.field({
    type: ThreadConnection,
    description: 'The threads of a namespace, newest first.',
    authorize: { workspace: 'thread:read' },
    args: { ...namespaceArgs(), ...pageArgs() },
    resolve: (_root, { first, after, ...place }, { services }) => services.threads.list(place, { first, after }),
  }),
}));

const CreateThreadInput = builder.inputType('CreateThreadInput', {
  description: 'A new thread.',
  fields: (t) => ({
    title: t.string({ constraints: { maxLength: 255 }, description: 'What it is about.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: bounds.json.maxBytes },
      description: 'Free data.',
    }),
  }),
});

const UpdateThreadInput = builder.inputType('UpdateThreadInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    title: t.string({ constraints: { maxLength: 255 }, description: 'What it is about.' }),
    metadata: t.field({ type: 'JSONObject', constraints: bounds.json, description: 'Replaces the free data.' }),
  }),
});

builder.mutationFields((t) => ({
  createThread: t.field({
    type: Thread,
    description: 'Starts a thread.',
    authorize: { workspace: 'thread:create' },
    args: { ...namespaceArgs(), input: t.arg({ type: CreateThreadInput, required: true, description: 'The thread.' }) },
    resolve: (_root, { input, ...place }, { actor, services }) => services.threads.create(actor, place, input),
  }),
  updateThread: t.field({
    type: Thread,
    description: 'Changes a thread; members only what they started.',
    authorize: { workspace: 'thread:update' },
    args: {
      ...target(),
      input: t.arg({ type: UpdateThreadInput, required: true, description: 'The changes.' }),
      ...versionArg(),
    },
    resolve: (_root, { id, input, ...place }, { actor, services }) => services.threads.update(actor, place, id, input),
  }),
  deleteThread: t.boolean({
    description: 'Deletes a thread; members only what they started.',
    authorize: { workspace: 'thread:delete' },
    args: { ...target(), ...versionArg() },
    resolve: async (_root, { id, ...place }, { actor, services }) => {
      await services.threads.delete(actor, place, id);
      return true;
    },
  }),
}));
