import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { appNamespaceArgs, idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { RelationDirection, WalkDirection } from './entity.enums.ts';
import { Entity, EntityRelation, entityBounds, firstArg, relationBounds } from './entity.graph.ts';
import {
  type ConnectedEntity as Connected,
  MAX_FOUND,
  MAX_LINKED,
  type EntityTraversal as Traversal,
} from './entity.traversal.ts';
import type { EntityPathResult as FoundPath, EntityPath as Path } from './entity-path.ts';

/** The filters of a walk. */
const walkArgs = () =>
  builder.args((t) => ({
    relationTypes: t.stringList({
      constraints: { maxItems: 50, item: relationBounds.relationType },
      description: 'Only relations of these types. Default: all.',
    }),
    direction: t.field({ type: WalkDirection, description: 'Which way relations are followed. Default `both`.' }),
    asOf: t.field({
      type: 'DateTime',
      description: 'Only relations that hold at this time: from `validFrom` on, and before `validTo`. Default: all.',
    }),
    entityTypes: t.stringList({
      constraints: { maxItems: 50, item: bounds.open },
      description: 'Only entities of these types. Default: all.',
    }),
    minImportance: t.float({
      constraints: entityBounds.importance,
      description: 'Only entities of at least this importance, 0 to 1.',
    }),
  }));

const ConnectedEntity = builder.objectRef<Connected>('ConnectedEntity').implement({
  description: 'An entity that a traversal found, and the relation that led to it.',
  fields: (t) => ({
    entity: t.field({
      type: Entity,
      authorize: 'inherited',
      description: 'The entity.',
      resolve: ({ entity }) => entity,
    }),
    depth: t.exposeInt('depth', { description: 'The least number of relations between the root and the entity.' }),
    relationType: t.exposeString('relationType', { description: 'The type of the relation that led to it.' }),
    direction: t.expose('direction', {
      type: RelationDirection,
      description: '`outgoing` if that relation points to the entity, `incoming` if it points away from it.',
    }),
    viaEntityId: t.exposeID('viaEntityId', { description: 'The entity before it on the way.' }),
  }),
});
refersTo(ConnectedEntity, { viaEntityId: { kind: 'entity', required: true } });

const LinkedMemory = builder.objectRef<Traversal['linkedMemories'][number]>('LinkedMemory').implement({
  description: 'A memory about entities of a traversal.',
  fields: (t) => ({
    memoryId: t.exposeID('memoryId', { description: 'The memory.' }),
    entityIds: t.exposeIDList('entityIds', {
      description: 'Its entities, in the order in which the traversal found them.',
    }),
  }),
});
refersTo(LinkedMemory, { memoryId: { kind: 'memory', required: true } });

const EntityTraversal = builder.objectRef<Traversal>('EntityTraversal').implement({
  description: 'What is around an entity.',
  fields: (t) => ({
    root: t.field({
      type: Entity,
      authorize: 'inherited',
      description: 'The entity where the traversal starts.',
      resolve: ({ root }) => root,
    }),
    connectedEntities: t.field({
      type: [ConnectedEntity],
      authorize: 'inherited',
      args: firstArg(MAX_FOUND, 'Maximum number of entities.'),
      description: 'The entities around it, ordered by depth, then by importance.',
      resolve: ({ connectedEntities }, { first }) => connectedEntities.slice(0, first),
    }),
    linkedMemories: t.field({
      type: [LinkedMemory],
      authorize: 'inherited',
      args: firstArg(MAX_LINKED, 'Maximum number of memories.'),
      description: 'The memories about any of these entities, newest first.',
      resolve: ({ linkedMemories }, { first }) => linkedMemories.slice(0, first),
    }),
    depthReached: t.exposeInt('depthReached', {
      description: 'The deepest level on which something was found; 0 if nothing was.',
    }),
    isCut: t.exposeBoolean('isCut', {
      description:
        'Whether a limit ended the traversal: 500 entities were found, or 20,000 relations of a level were looked ' +
        'at, so there may be more. `depth` is no such limit.',
    }),
  }),
});

builder.queryField('entityTraversal', (t) =>
  t.field({
    type: EntityTraversal,
    description:
      'Follows the relations of an entity, breadth first, until 500 entities are found; the last level keeps the ' +
      'most important entities. On each level it reads 20,000 relations, the newest of each entity first, and ' +
      'nothing beyond them. It does not go through entities that the filters exclude.',
    authorize: { workspace: 'entity:read', in: ['app', 'namespace'] },
    extensions: { cost: 500 }, // what it finds beside its root is found by one statement
    args: {
      ...appNamespaceArgs(),
      ...idArg('The entity where the path or traversal starts.'),
      depth: t.arg.int({
        required: true,
        defaultValue: 1,
        constraints: { min: 1, max: 3 },
        description: 'Maximum number of relations from the start.',
      }),
      ...walkArgs(),
      includeMemories: t.arg.boolean({
        required: true,
        defaultValue: true,
        description: 'Whether to show linked memories.',
      }),
    },
    resolve: ({ appNamespace }, { id, ...args }, { services }) => services.entities.traverse(appNamespace, id, args),
  }),
);

const EntityPath = builder.objectRef<Path>('EntityPath').implement({
  description: 'A way from one entity to another.',
  fields: (t) => ({
    length: t.exposeInt('length', {
      description: 'How many relations it has; 0 if both ends are the same entity.',
    }),
    entities: t.expose('entities', {
      type: [Entity],
      authorize: 'inherited',
      description: 'The entities on it, both ends among them, in order.',
    }),
    relations: t.expose('relations', {
      type: [EntityRelation],
      authorize: 'inherited',
      description:
        'The relations of the path, in order. Each leads from an entity to the next, and is shown from the first ' +
        'of the two.',
    }),
  }),
});

const EntityPathResult = builder.objectRef<FoundPath>('EntityPathResult').implement({
  description: 'What a search for a path found.',
  fields: (t) => ({
    path: t.expose('path', {
      type: EntityPath,
      nullable: true,
      authorize: 'inherited',
      description: 'A shortest path; `null` if none was found.',
    }),
    isCut: t.exposeBoolean('isCut', {
      description:
        'Whether a limit was reached: 10,000 visited entities, or 20,000 relations on a level. Then there may be ' +
        'a path although none was found, or a shorter path. `maxDepth` is no such limit.',
    }),
  }),
});

builder.queryField('entityPath', (t) =>
  t.field({
    type: EntityPathResult,
    description:
      'The shortest path between two entities, with the filters of a traversal. The filters do not apply to the ' +
      'two ends. Fails with RESOURCE_NOT_FOUND if an end does not exist; `path` is null if no path was found.',
    authorize: { workspace: 'entity:read', in: ['app', 'namespace'] },
    extensions: { cost: 500 }, // it visits thousands of entities
    args: {
      ...appNamespaceArgs(),
      ...idArg('The entity where the path or traversal starts.'),
      targetEntityId: t.arg.id({ required: true, description: 'The entity where the path ends.' }),
      maxDepth: t.arg.int({
        required: true,
        defaultValue: 6,
        constraints: { min: 1, max: 10 },
        description: 'Maximum number of relations of the path.',
      }),
      ...walkArgs(),
    },
    resolve: ({ appNamespace }, { id, ...args }, { services }) => services.entities.path(appNamespace, id, args),
  }),
);
