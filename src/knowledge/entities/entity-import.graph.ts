import { builder } from '../../graphql/builder.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { appNamespaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { EntityImportOutcome, EntityMatch } from './entity.enums.ts';
import { CreateEntityInput, Entity, entityBounds, relationBounds } from './entity.graph.ts';
import type { EntityImportResult as Result } from './entity-import.ts';
import type { ResolvedEntity as Resolved } from './entity-resolution.ts';

/** Most entities and relations of one import. */
const MAX_ENTITIES = 1_000;
const MAX_RELATIONS = 2_000;

const ResolvedEntity = builder.objectRef<Resolved>('ResolvedEntity').implement({
  description: 'An entity that was found, or created because there was none.',
  fields: (t) => ({
    entity: t.expose('entity', { type: Entity, authorize: 'inherited', description: 'The entity.' }),
    created: t.exposeBoolean('created', { description: 'Whether the entity was created by this request.' }),
    matchedBy: t.expose('matchedBy', {
      type: EntityMatch,
      nullable: true,
      description: 'How the entity was found; `null` if it was created.',
    }),
  }),
});

const key = { minLength: 1, maxLength: 128 } as const;

const ImportedEntityInput = builder.inputType('ImportedEntityInput', {
  description:
    'An entity to create, or to change if it exists. It exists if an entity has the `id`; else if an entity of ' +
    'the type has the `metadata.external_id`, the name, or the name as an alias. Two entities with different ' +
    'external ids are never the same. Omitted fields stay as they are.',
  fields: (t) => ({
    key: t.string({ constraints: key, description: 'Names the entity in the relations of the same import.' }),
    id: t.id({ constraints: bounds.id, description: 'The entity to change. It gets the name.' }),
    name: t.string({ required: true, constraints: bounds.name, description: 'The name.' }),
    entityType: t.string({ constraints: bounds.open, description: 'Default `other`.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    aliases: t.stringList({ constraints: entityBounds.aliases, description: 'Replaces the other names.' }),
    tags: t.stringList({ constraints: entityBounds.tags, description: 'Replaces the labels.' }),
    importance: t.float({
      constraints: entityBounds.importance,
      description: 'How important it is, 0 to 1. Default 0.5.',
    }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: entityBounds.metadata,
      description: 'Replaces the free-form data.',
    }),
  }),
});

const EntityReferenceInput = builder.inputType('EntityReferenceInput', {
  description: 'Names an entity by exactly one of `key`, `id` and `name`.',
  fields: (t) => ({
    key: t.string({ constraints: key, description: 'The key of an entity of the same import.' }),
    id: t.id({ constraints: bounds.id, description: 'An entity of the app and namespace.' }),
    name: t.string({
      constraints: bounds.name,
      description: 'The name of an entity, or an alias if no entity has the name. Exactly one entity must have it.',
    }),
    entityType: t.string({ constraints: bounds.open, description: 'The type of the entity with the name.' }),
  }),
});

const ImportedRelationInput = builder.inputType('ImportedRelationInput', {
  description:
    'A relation to create, or to change if the two entities have a relation of this type. Omitted fields and ' +
    '`null` change nothing.',
  fields: (t) => ({
    source: t.field({ type: EntityReferenceInput, required: true, description: 'The source of the relation.' }),
    target: t.field({ type: EntityReferenceInput, required: true, description: 'The target of the relation.' }),
    relationType: t.string({
      required: true,
      constraints: relationBounds.relationType,
      description: 'What the source is to the target: `works_at`.',
    }),
    weight: t.float({ constraints: relationBounds.weight, description: 'How strong it is. Default 1.' }),
    metadata: t.field({
      type: 'JSONObject',
      constraints: relationBounds.metadata,
      description: 'Free-form data.',
    }),
    validFrom: t.field({ type: 'DateTime', description: "Start of the relation's validity. Default: no bound." }),
    validTo: t.field({
      type: 'DateTime',
      description: "End of the relation's validity, exclusive. Default: no bound.",
    }),
  }),
});

const ImportEntitiesInput = builder.inputType('ImportEntitiesInput', {
  description: 'Entities and relations to create or change.',
  fields: (t) => ({
    entities: t.field({
      type: [ImportedEntityInput],
      required: true,
      constraints: { maxItems: MAX_ENTITIES },
      description: 'The entities, at most 1,000; empty for relations alone.',
    }),
    relations: t.field({
      type: [ImportedRelationInput],
      constraints: { maxItems: MAX_RELATIONS },
      description: 'The relations, at most 2,000.',
    }),
  }),
});

const ImportedEntity = builder.objectRef<Result['entities'][number]>('ImportedEntity').implement({
  description: 'The result for an entity of an import.',
  fields: (t) => ({
    key: t.exposeString('key', { nullable: true, description: 'The `key` of the entity in the import.' }),
    entityId: t.exposeID('entityId', { description: 'The entity.' }),
    outcome: t.expose('outcome', { type: EntityImportOutcome, description: 'What became of it.' }),
  }),
});
refersTo(ImportedEntity, { entityId: { kind: 'entity', required: true } });

const EntityImport = builder.objectRef<Result>('EntityImport').implement({
  description: 'What an import did.',
  fields: (t) => ({
    entitiesCreated: t.exposeInt('entitiesCreated', { description: 'Number of entities that were created.' }),
    entitiesUpdated: t.exposeInt('entitiesUpdated', { description: 'Number of entities that were changed.' }),
    entitiesUnchanged: t.exposeInt('entitiesUnchanged', { description: 'Number of entities that did not change.' }),
    relationsCreated: t.exposeInt('relationsCreated', { description: 'Number of relations that were created.' }),
    relationsUpdated: t.exposeInt('relationsUpdated', { description: 'Number of relations that were changed.' }),
    relationsUnchanged: t.exposeInt('relationsUnchanged', { description: 'Number of relations that did not change.' }),
    entities: t.field({
      type: [ImportedEntity],
      authorize: 'inherited',
      args: builder.args((a) => ({
        first: a.int({
          required: true,
          defaultValue: 100,
          constraints: { min: 1, max: MAX_ENTITIES },
          description: 'Maximum number of entities.',
        }),
      })),
      description: 'The results for the entities, in the order of the request.',
      resolve: ({ entities }, { first }) => entities.slice(0, first),
    }),
  }),
});

builder.mutationFields((t) => ({
  resolveEntity: t.field({
    type: ResolvedEntity,
    description:
      'Finds an entity, or creates it if it does not exist. It exists if an entity of the type has the ' +
      '`metadata.external_id`, the name, or the name as an alias. Two entities with different external ids are ' +
      'never the same. A found entity does not change. Of several such requests at the same time, one creates the ' +
      'entity.',
    authorize: { workspace: 'entity:create', in: ['app', 'namespace'] },
    activity: { action: 'create', resourceType: 'entity' },
    mayEmit: ['entity.created'],
    args: { ...appNamespaceArgs(), ...inputArg(CreateEntityInput, 'The entity.') },
    resolve: ({ appNamespace }, { input }, { caller, services }) =>
      services.entities.resolve(caller, appNamespace, input),
  }),
  importEntities: t.field({
    type: EntityImport,
    description:
      'Creates and changes entities and relations in one change: all of them, or nothing if one is wrong. A new ' +
      'relation counts a mention of both ends. Also needs `entity:create`.',
    authorize: { workspace: 'entity:update', in: ['app', 'namespace'] },
    activity: { action: 'import', resourceType: 'entity' },
    emits: ['entity.imported'],
    args: { ...appNamespaceArgs(), ...inputArg(ImportEntitiesInput, 'The entities and relations.') },
    resolve: ({ appNamespace }, { input }, { caller, services }) =>
      services.entities.import(caller, appNamespace, input),
  }),
}));
