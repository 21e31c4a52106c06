import { builder } from '../../graphql/builder.ts';
import { inAppAndNamespace, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { appInNamespace } from '../../graphql/parent-kinds.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { appNamespaceArgs, idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';
import { MAX_ENTITIES, type Memory as MemoryRow } from './memory.service.ts';

const Memory = builder.objectRef<MemoryRow>('Memory').implement({
  description: 'A memory of an app in a namespace.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    content: t.exposeString('content', { description: 'The text of the memory.' }),
    tags: t.exposeStringList('tags', { description: 'Labels.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
    entityIds: t.exposeIDList('entityIds', {
      description: `The entities that it is about, newest first, at most ${MAX_ENTITIES}.`,
    }),
  }),
});
inAppAndNamespace(Memory, 'memory');
tracked(Memory);
refersTo(Memory, { entityIds: { kind: 'entity', name: 'entities', atMost: MAX_ENTITIES } });
readable(Memory, {
  kind: 'memory',
  plural: 'memories',
  below: {
    place: appInNamespace,
    lists: [
      { of: Namespace, reads: ({ memories }) => memories.ofNamespace },
      { of: App, reads: ({ memories }) => memories.ofApp },
    ],
  },
  reads: ({ memories }) => memories.reads,
});

const content = { minLength: 1, maxLength: 8_000 } as const;
const metadata = { maxBytes: 16 * 1024 } as const;
const entityIds = { maxItems: MAX_ENTITIES, item: bounds.id } as const;

const CreateMemoryInput = builder.inputType('CreateMemoryInput', {
  description: 'A new memory.',
  fields: (t) => ({
    content: t.string({ required: true, constraints: content, description: 'The text of the memory.' }),
    tags: t.stringList({
      constraints: { maxItems: bounds.tags.maxItems, item: bounds.tags.item },
      description: 'Labels.',
    }),
    metadata: t.field({ type: 'JSONObject', constraints: metadata, description: 'Free-form data.' }),
    entityIds: t.idList({ constraints: entityIds, description: 'The entities that it is about.' }),
  }),
});

const UpdateMemoryInput = builder.inputType('UpdateMemoryInput', {
  description: 'The fields to change. Omitted fields stay as they are.',
  fields: (t) => ({
    content: t.string({ constraints: { ...content, notNull: true }, description: 'The text of the memory.' }),
    tags: t.stringList({ constraints: bounds.tags, description: 'Replaces the labels.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { ...metadata, notNull: true },
      description: 'Replaces the free-form data.',
    }),
    entityIds: t.idList({
      constraints: { ...entityIds, notNull: true },
      description: 'Replaces the entities that it is about.',
    }),
  }),
});

const DeleteMemoryPayload = deletePayload('DeleteMemory', {
  noun: 'memory',
  in: ['orgId', 'workspaceId', 'appId', 'namespaceId'],
});

builder.mutationFields((t) => ({
  createMemory: t.field({
    type: Memory,
    description: 'Creates a memory.',
    authorize: { workspace: 'memory:create', in: ['app', 'namespace'] },
    emits: ['memory.created'],
    args: { ...appNamespaceArgs(), ...inputArg(CreateMemoryInput, 'The memory.') },
    resolve: ({ appNamespace }, { input }, { caller, services }) =>
      services.memories.create(caller, appNamespace, input),
  }),
  updateMemory: t.field({
    type: Memory,
    description: 'Changes a memory.',
    authorize: { workspace: 'memory:update', in: ['app', 'namespace'] },
    emits: ['memory.updated'],
    args: { ...appNamespaceArgs(), ...idArg('The memory.'), ...inputArg(UpdateMemoryInput), ...versionArg() },
    resolve: ({ appNamespace }, { id, input }, { caller, services }) =>
      services.memories.update(caller, appNamespace, id, input),
  }),
  deleteMemory: t.field({
    type: DeleteMemoryPayload,
    description: 'Deletes a memory.',
    authorize: { workspace: 'memory:delete', in: ['app', 'namespace'] },
    emits: ['memory.deleted'],
    args: { ...appNamespaceArgs(), ...idArg('The memory.'), ...versionArg() },
    resolve: ({ appNamespace }, { id }, { caller, services }) => services.memories.delete(caller, appNamespace, id),
  }),
}));
