import { builder } from '../../graphql/builder.ts';
import { inNamespace, tracked } from '../../graphql/common-fields.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, namespaceArgs } from '../../graphql/place-args.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';

export const Thread = builder.prismaObject('Thread', {
  description: 'A conversation in a namespace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    title: t.exposeString('title', { nullable: true, description: 'What the thread is about.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
  }),
});
inNamespace(Thread, 'thread');
tracked(Thread, { by: 'The user who started it.', at: 'When it was started.' });
readable(Thread, { kind: 'thread', below: Namespace, reads: ({ threads }) => threads.reads });

const CreateThreadInput = builder.inputType('CreateThreadInput', {
  description: 'A new thread.',
  fields: (t) => ({
    title: t.string({ constraints: { maxLength: 255 }, description: 'What the thread is about.' }),
    metadata: t.field({ type: 'JSONObject', description: 'Free-form data.' }),
  }),
});

const UpdateThreadInput = builder.inputType('UpdateThreadInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    title: t.string({ constraints: { maxLength: 255 }, description: 'What the thread is about.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { notNull: true },
      description: 'Replaces the free-form data.',
    }),
  }),
});

const DeleteThreadPayload = deletePayload('DeleteThread', {
  noun: 'thread',
  in: ['orgId', 'workspaceId', 'namespaceId'],
});

builder.mutationFields((t) => ({
  createThread: t.field({
    type: Thread,
    description: 'Starts a thread.',
    authorize: { workspace: 'thread:create', in: 'namespace' },
    emits: ['thread.created'],
    args: { ...namespaceArgs(), ...inputArg(CreateThreadInput, 'The thread.') },
    resolve: ({ namespace }, { input }, { caller, services }) => services.threads.create(caller, namespace, input),
  }),
  updateThread: t.field({
    type: Thread,
    description: 'Changes a thread. Members may change only the threads that they started.',
    authorize: { workspace: 'thread:update', in: 'namespace' },
    emits: ['thread.updated'],
    args: { ...namespaceArgs(), ...idArg('The thread.'), ...inputArg(UpdateThreadInput), ...versionArg() },
    resolve: ({ namespace }, { id, input }, { caller, services }) =>
      services.threads.update(caller, namespace, id, input),
  }),
  deleteThread: t.field({
    type: DeleteThreadPayload,
    description: 'Deletes a thread. Members may delete only the threads that they started.',
    authorize: { workspace: 'thread:delete', in: 'namespace' },
    emits: ['thread.deleted'],
    args: { ...namespaceArgs(), ...idArg('The thread.'), ...versionArg() },
    resolve: ({ namespace }, { id }, { caller, services }) => services.threads.delete(caller, namespace, id),
  }),
}));
