import { builder } from '../../graphql/builder.ts';
import { inAppAndNamespace, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { appInNamespace } from '../../graphql/parent-kinds.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { appNamespaceArgs, idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';
import { RelationDirection } from './entity.enums.ts';
import { type Entity as EntityRow, MAX_MEMORIES } from './entity.reads.ts';
import { MAX_MERGES } from './entity-merge.ts';
import { MAX_NEWEST, type SeenRelation } from './entity-relation.reads.ts';
import { MAX_MERGED } from './merged-entities.ts';

export const Entity = builder.objectRef<EntityRow>('Entity').implement({
  description: 'What an app knows in a namespace: a person, a product, a concept. Relations connect entities.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', {
      description:
        'Unique among the entities of its type in the app and namespace, ignoring case, unless ' +
        '`metadata.external_id` differs.',
    }),
    entityType: t.exposeString('entityType', {
      description:
        '`person`, `organization`, `place`, `product`, `event`, `concept`, `project`, `document`, `other`, or ' +
        'another word.',
    }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    aliases: t.exposeStringList('aliases', { description: 'Other names.' }),
    tags: t.exposeStringList('tags', { description: 'Labels.' }),
    importance: t.exposeFloat('importance', { description: 'How important it is, 0 to 1.' }),
    mentionCount: t.exposeInt('mentionCount', {
      description: 'How often it was mentioned. Only an update and the creation of a relation change it; no read does.',
    }),
    lastReferencedAt: t.expose('lastReferencedAt', optionalTime('When it was last mentioned.')),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
    isIndexed: t.exposeBoolean('isIndexed', { description: 'Whether a search index has it.' }),
    sourceMemoryIds: t.exposeIDList('sourceMemoryIds', {
      description: `The memories that are about it, newest first, at most ${MAX_MEMORIES}.`,
    }),
  }),
});
inAppAndNamespace(Entity, 'entity');
tracked(Entity);
refersTo(Entity, { sourceMemoryIds: { kind: 'memory', name: 'sourceMemories', atMost: MAX_MEMORIES } });
readable(Entity, {
  kind: 'entity',
  plural: 'entities',
  below: {
    place: appInNamespace,
    lists: [
      { of: Namespace, reads: ({ entities }) => entities.ofNamespace },
      { of: App, reads: ({ entities }) => entities.ofApp },
    ],
  },
  reads: ({ entities }) => entities.reads,
  filters: () =>
    builder.args((t) => ({
      entityType: t.string({ constraints: bounds.open, description: 'Only entities of this type.' }),
      name: t.string({ constraints: bounds.name, description: 'Only entities with this name, ignoring case.' }),
      alias: t.string({ constraints: bounds.name, description: 'Only entities with this alias, ignoring case.' }),
      tag: t.string({ constraints: bounds.tags.item, description: 'Only entities with this tag, ignoring case.' }),
      externalId: t.string({
        constraints: bounds.name,
        description: 'Only entities with this `metadata.external_id`, ignoring case.',
      }),
      minImportance: t.float({
        constraints: { min: 0, max: 1 },
        description: 'Only entities of at least this importance, 0 to 1.',
      }),
    })),
  page: () => pageArgs({ min: 1, max: 1_000 }, 100),
});

/** A relation has no `id` here: a client's cache would take its two views for one object. */
export const EntityRelation = builder.objectRef<SeenRelation>('EntityRelation').implement({
  description: 'A relation, shown from one of its entities: the target is the other entity.',
  interfaces: [Versioned],
  fields: (t) => ({
    relationId: t.exposeID('id', { description: 'Identifier, `rel_…`. It is the same from both entities.' }),
    relationType: t.exposeString('relationType', { description: 'What the source is to the target: `works_at`.' }),
    direction: t.expose('direction', { type: RelationDirection, description: 'How the entity sees it.' }),
    targetEntityId: t.exposeID('targetEntityId', { description: 'The other entity.' }),
    targetName: t.exposeString('targetName', { description: 'The name of the other entity.' }),
    weight: t.exposeFloat('weight', { description: 'How strong it is, from 0. Default 1.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
    validFrom: t.expose('validFrom', optionalTime("Start of the relation's validity; `null` for no bound.")),
    validTo: t.expose('validTo', optionalTime("End of the relation's validity, exclusive; `null` for no bound.")),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'The user who created it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
  }),
});
refersTo(EntityRelation, { targetEntityId: { kind: 'entity', name: 'target', required: true }, createdBy: 'user' });

const EntityRelationConnection = pageType('EntityRelation', EntityRelation);

/** How much of a list without pages is shown. */
export const firstArg = (max: number, description: string) =>
  builder.args((t) => ({
    first: t.int({ required: true, defaultValue: 50, constraints: { min: 1, max }, description }),
  }));

builder.objectFields(Entity, (t) => ({
  mergedIds: t.idList({
    authorize: 'inherited',
    description: `The ids of entities that were merged into it, newest first, at most ${MAX_MERGED}: they lead to it.`,
    resolve: (row, _args, context) => context.services.entities.reads.mergedInto(context, row.id),
  }),
  relations: t.field({
    type: EntityRelationConnection,
    description: 'The relations of the entity in both directions, newest first.',
    authorize: { workspace: 'entity:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.entities.relations.list(context, inside.entity(row), args),
  }),
  newestRelations: t.field({
    type: [EntityRelation],
    description:
      'The newest relations of the entity in both directions. In an answer with more than 12 entities, the ' +
      'entities share 2,500 relations; each shows at least five, if it has as many.',
    authorize: { workspace: 'entity:read' },
    args: firstArg(MAX_NEWEST, 'Maximum number of relations.'),
    resolve: (row, { first }, context) => context.services.entities.newestRelations(context, inside.entity(row), first),
  }),
}));

/** Bounds of the fields of an entity. */
export const entityBounds = {
  aliases: { maxItems: 50, item: { minLength: 1, maxLength: 255 } },
  tags: { maxItems: bounds.tags.maxItems, item: bounds.tags.item },
  importance: { min: 0, max: 1 },
  mentionCount: { min: 0, max: 2_147_483_647 },
  metadata: { maxBytes: 16 * 1024 },
  memories: { maxItems: MAX_MEMORIES, item: bounds.id },
} as const;
/** Bounds of the fields of a relation. */
export const relationBounds = {
  relationType: { minLength: 1, maxLength: 64 },
  weight: { min: 0, max: 1_000_000 },
  metadata: { maxBytes: 2 * 1024 },
} as const;
const kept = { notNull: true } as const;

export const CreateEntityInput = builder.inputType('CreateEntityInput', {
  description: 'A new entity.',
  fields: (t) => ({
    name: t.string({
      required: true,
      constraints: bounds.name,
      description: 'Unique among the entities of its type, ignoring case, unless `metadata.external_id` differs.',
    }),
    entityType: t.string({ constraints: bounds.open, description: 'Default `other`.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    aliases: t.stringList({ constraints: entityBounds.aliases, description: 'Other names.' }),
    tags: t.stringList({ constraints: entityBounds.tags, description: 'Labels.' }),
    importance: t.float({
      constraints: entityBounds.importance,
      description: 'How important it is, 0 to 1. Default 0.5.',
    }),
    mentionCount: t.int({
      constraints: entityBounds.mentionCount,
      description: 'How often it was mentioned. Default 0.',
    }),
    lastReferencedAt: t.field({
      type: 'DateTime',
      description: 'When it was last mentioned. Default: now if `mentionCount` is given.',
    }),
    metadata: t.field({ type: 'JSONObject', constraints: entityBounds.metadata, description: 'Free-form data.' }),
    sourceMemoryIds: t.idList({ constraints: entityBounds.memories, description: 'The memories that are about it.' }),
  }),
});

const UpdateEntityInput = builder.inputType('UpdateEntityInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({
      constraints: bounds.keptName,
      description: 'Unique among the entities of its type, ignoring case, unless `metadata.external_id` differs.',
    }),
    entityType: t.string({ constraints: { ...bounds.open, ...kept }, description: 'What it is.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    aliases: t.stringList({
      constraints: { ...entityBounds.aliases, ...kept },
      description: 'Replaces the other names.',
    }),
    tags: t.stringList({ constraints: bounds.tags, description: 'Replaces the labels.' }),
    importance: t.float({
      constraints: { ...entityBounds.importance, ...kept },
      description: 'How important it is, 0 to 1.',
    }),
    mentionCount: t.int({
      constraints: { ...entityBounds.mentionCount, ...kept },
      description:
        'How often it was mentioned. A greater number than before also sets the time of the last mention to now.',
    }),
    lastReferencedAt: t.field({ type: 'DateTime', description: 'When it was last mentioned.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { ...entityBounds.metadata, ...kept },
      description: 'Replaces the free-form data.',
    }),
    sourceMemoryIds: t.idList({
      constraints: { ...entityBounds.memories, ...kept },
      description: 'Replaces the memories that are about it.',
    }),
  }),
});

const MergeEntitiesInput = builder.inputType('MergeEntitiesInput', {
  description: 'Entities that are the same as another one.',
  fields: (t) => ({
    mergedEntityIds: t.idList({
      required: true,
      constraints: { minItems: 1, maxItems: MAX_MERGES, item: bounds.id },
      description: 'The entities to merge: they end, and their ids lead to the one that is left.',
    }),
  }),
});

const RelateEntitiesInput = builder.inputType('RelateEntitiesInput', {
  description: 'A relation between two entities of the app and namespace.',
  fields: (t) => ({
    sourceEntityId: t.id({ required: true, constraints: bounds.id, description: 'The source of the relation.' }),
    targetEntityId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'The target of the relation. It must differ from the source.',
    }),
    relationType: t.string({
      required: true,
      constraints: relationBounds.relationType,
      description: 'What the source is to the target: `works_at`.',
    }),
    weight: t.float({
      constraints: relationBounds.weight,
      description: 'How strong it is. Default 1.',
    }),
    metadata: t.field({ type: 'JSONObject', constraints: relationBounds.metadata, description: 'Free-form data.' }),
    validFrom: t.field({
      type: 'DateTime',
      description: "Start of the relation's validity. `null` for no bound, which is the default of a new relation.",
    }),
    validTo: t.field({
      type: 'DateTime',
      description:
        "End of the relation's validity, exclusive, later than `validFrom`. Default of a new relation: no bound.",
    }),
  }),
});

const UpdateEntityRelationInput = builder.inputType('UpdateEntityRelationInput', {
  description: 'The fields of a relation to change. Omitted fields stay as they are.',
  fields: (t) => ({
    relationType: t.string({
      constraints: { ...relationBounds.relationType, ...kept },
      description: 'What the source is to the target. There is one relation of a type between two entities.',
    }),
    weight: t.float({ constraints: { ...relationBounds.weight, ...kept }, description: 'How strong it is.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: { ...relationBounds.metadata, ...kept },
      description: 'Replaces the free-form data.',
    }),
    validFrom: t.field({ type: 'DateTime', description: "Start of the relation's validity; `null` for no bound." }),
    validTo: t.field({
      type: 'DateTime',
      description: "End of the relation's validity, exclusive, later than `validFrom`; `null` for no bound.",
    }),
  }),
});

const UnrelateEntitiesPayload = deletePayload('UnrelateEntities', {
  noun: 'relation',
  in: ['orgId', 'workspaceId', 'appId', 'namespaceId', 'sourceEntityId', 'targetEntityId'],
});

const DeleteEntityPayload = deletePayload('DeleteEntity', {
  noun: 'entity',
  in: ['orgId', 'workspaceId', 'appId', 'namespaceId'],
});

builder.mutationFields((t) => ({
  createEntity: t.field({
    type: Entity,
    description: 'Creates an entity.',
    authorize: { workspace: 'entity:create', in: ['app', 'namespace'] },
    emits: ['entity.created'],
    args: { ...appNamespaceArgs(), ...inputArg(CreateEntityInput, 'The entity.') },
    resolve: ({ appNamespace }, { input }, { caller, services }) =>
      services.entities.create(caller, appNamespace, input),
  }),
  updateEntity: t.field({
    type: Entity,
    description: 'Changes an entity.',
    authorize: { workspace: 'entity:update', in: ['app', 'namespace'] },
    emits: ['entity.updated'],
    args: { ...appNamespaceArgs(), ...idArg('The entity.'), ...inputArg(UpdateEntityInput), ...versionArg() },
    resolve: ({ appNamespace }, { id, input }, { caller, services }) =>
      services.entities.update(caller, appNamespace, id, input),
  }),
  deleteEntity: t.field({
    type: DeleteEntityPayload,
    description: 'Deletes an entity with its relations.',
    authorize: { workspace: 'entity:delete', in: ['app', 'namespace'] },
    emits: ['entity.deleted'],
    args: { ...appNamespaceArgs(), ...idArg('The entity.'), ...versionArg() },
    resolve: ({ appNamespace }, { id }, { caller, services }) => services.entities.delete(caller, appNamespace, id),
  }),
  mergeEntities: t.field({
    type: Entity,
    description:
      'Merges entities into another one. Their relations and memories are its own, their names and aliases its ' +
      'aliases; what it does not say itself is said by them. Their ids lead to it from then on, wherever an entity ' +
      'is named but in `deleteEntity`. Of relations that become the same, its own is left, or else the oldest; ' +
      'relations between them end. Moves 20,000 relations at most. Also needs `entity:update`.',
    authorize: { workspace: 'entity:delete', in: ['app', 'namespace'] },
    activity: { action: 'merge', resourceType: 'entity' },
    emits: ['entity.updated', 'entity.merged'],
    args: {
      ...appNamespaceArgs(),
      ...idArg('The entity that is left.'),
      ...inputArg(MergeEntitiesInput, 'The entities to merge into it.'),
      ...versionArg(),
    },
    resolve: ({ appNamespace }, { id, input }, { caller, services }) =>
      services.entities.merge(caller, appNamespace, id, input.mergedEntityIds),
  }),
  relateEntities: t.field({
    type: EntityRelation,
    description:
      'Creates a relation between two entities, and counts a mention of both. If they have a relation of this ' +
      'type already, changes it; omitted fields stay as they are, and equal values change nothing. Returns the ' +
      'relation, shown from its source.',
    authorize: { workspace: 'entity:update', in: ['app', 'namespace'] },
    activity: { action: 'relate', resourceType: 'entity' },
    emits: ['entity.related'],
    args: { ...appNamespaceArgs(), ...inputArg(RelateEntitiesInput, 'The relation.') },
    resolve: ({ appNamespace }, { input }, { caller, services }) =>
      services.entities.relate(caller, appNamespace, input),
  }),
  updateEntityRelation: t.field({
    type: EntityRelation,
    description: 'Changes a relation between two entities. Returns the relation, shown from its source.',
    authorize: { workspace: 'entity:update', in: ['app', 'namespace'] },
    activity: { action: 'relate', resourceType: 'entity' },
    emits: ['entity.related'],
    args: {
      ...appNamespaceArgs(),
      relationId: t.arg.id({ required: true, description: 'The relation, `rel_…`.' }),
      ...inputArg(UpdateEntityRelationInput),
      ...versionArg('the relation'),
    },
    resolve: ({ appNamespace }, { relationId, input }, { caller, services }) =>
      services.entities.updateRelation(caller, appNamespace, relationId, input),
  }),
  unrelateEntities: t.field({
    type: UnrelateEntitiesPayload,
    description: 'Deletes a relation between two entities.',
    authorize: { workspace: 'entity:update', in: ['app', 'namespace'] },
    activity: { action: 'unrelate', resourceType: 'entity' },
    emits: ['entity.unrelated'],
    args: {
      ...appNamespaceArgs(),
      relationId: t.arg.id({ required: true, description: 'The relation, `rel_…`.' }),
      ...versionArg('the relation'),
    },
    resolve: ({ appNamespace }, { relationId }, { caller, services }) =>
      services.entities.unrelate(caller, appNamespace, relationId),
  }),
}));
