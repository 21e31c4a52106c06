import { selectList } from '../../data/paging.ts';
import type { ReadRunner } from '../../data/sql.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { type Entity, entityColumns } from './entity.source.ts';

/** Most entities that a traversal finds beside the root. */
export const MAX_FOUND = 500;

/** Most memories that a traversal shows. */
export const MAX_LINKED = 500;

/**
 * Most relations that a traversal looks at on each level, the newest of each entity first: a hub with more of them
 * costs no more.
 */
const MAX_LOOKED_AT = 20_000;

export interface TraversalArgs {
  /** Levels to go, 1 to 3. */
  depth: number;
  /** Only relations of these types; all if empty. */
  relationTypes?: readonly string[] | null;
  includeMemories: boolean;
}

/** An entity that was found, and how. */
export interface ConnectedEntity {
  entity: Entity;
  /** Relations between the root and the entity. */
  depth: number;
  /** The type and direction of the relation that led to it, as the entity before it sees that relation. */
  relationType: string;
  direction: 'outgoing' | 'incoming';
  /** The entity before it. */
  viaEntityId: string;
  orgId: string;
}

/** A memory of entities of a traversal. */
interface LinkedMemory {
  memoryId: string;
  /** Those entities, in the order of the traversal. */
  entityIds: string[];
  orgId: string;
}

export interface EntityTraversal {
  root: Entity;
  /** Ordered by depth, then by importance. */
  connectedEntities: ConnectedEntity[];
  linkedMemories: LinkedMemory[];
  /** The deepest level on which something was found; 0 if nothing was. */
  depthReached: number;
}

type TraversalRow = Entity & Pick<ConnectedEntity, 'depth' | 'relationType' | 'direction' | 'viaEntityId'>;

/** The relations of an entity `f` in one direction. Parameters: 1 org, 2 app, 3 namespace, 4 root, 5 depth, 6 types. */
const relationsOf = (own: string, other: string, direction: string, ofType: boolean) => `
  (select r.${other} as other, r.relation_type, '${direction}' as direction, r.id
    from entity_relations r
    where r.${own} = f.id and r.app_id = $2 and r.namespace_id = $3${ofType ? ' and r.relation_type = y.type' : ''}
    order by r.id desc limit ${MAX_LOOKED_AT})`;

/**
 * The breadth-first search as one recursive statement. Each row of the recursion is a whole level, with the ids of all
 * entities seen so far: an entity is found once, at its least depth, so cycles end; and a level is limited to the
 * entities that are still missing to {@link MAX_FOUND}. Relations and entities are both held to the app and the
 * namespace.
 *
 * A level may have thousands of relations, and each step is cheap for the next one: one scan of the index for all
 * entities behind them, then only the most important ones, known ones among them (there are at most {@link MAX_FOUND}
 * of these, so enough others are left), and only for the new ones the relation that led there.
 */
const traversalOf = (ofType: boolean): string => `
  with recursive walk(depth, ids, vias, types, directions, seen) as (
    select 0, array[r.id], array[null::text], array[null::text], array[null::text], array[r.id]
    from entities r where r.org_id = $1 and r.app_id = $2 and r.namespace_id = $3 and r.id = $4
    union all
    select w.depth + 1, n.ids, n.vias, n.types, n.directions, w.seen || n.ids
    from walk w cross join lateral (
      with edges as materialized (
        select x.*, f.id as via, f.at
        from unnest(w.ids) with ordinality f(id, at)
        ${ofType ? 'cross join unnest($6::text[]) y(type)' : ''}
        cross join lateral (
          ${relationsOf('source_entity_id', 'target_entity_id', 'outgoing', ofType)}
          union all
          ${relationsOf('target_entity_id', 'source_entity_id', 'incoming', ofType)}
        ) x(other, relation_type, direction, relation)
        limit ${MAX_LOOKED_AT}
      ), important as materialized (
        select o.id, o.importance from entities o
        where o.id = any(array(select a.other from edges a)) and o.app_id = $2 and o.namespace_id = $3
        order by o.importance desc, o.id
        limit ${MAX_FOUND + 1}
      ), found as materialized (
        select i.id, i.importance from important i
        where not exists (select from unnest(w.seen) s(id) where s.id = i.id)
        order by i.importance desc, i.id
        limit ${MAX_FOUND + 1} - cardinality(w.seen)
      )
      select array_agg(c.id order by c.importance desc, c.id) as ids,
        array_agg(c.via order by c.importance desc, c.id) as vias,
        array_agg(c.relation_type order by c.importance desc, c.id) as types,
        array_agg(c.direction order by c.importance desc, c.id) as directions
      from (
        select distinct on (o.id) o.id, o.importance, e.via, e.relation_type, e.direction
        from found o join edges e on e.other = o.id
        order by o.id, e.at, e.relation desc
      ) c
    ) n
    where w.depth < $5 and cardinality(w.seen) <= ${MAX_FOUND} and n.ids is not null
  )
  select ${selectList(entityColumns)}, w.depth, p.via as "viaEntityId", p.relation_type as "relationType", p.direction
  from walk w
  cross join lateral unnest(w.ids, w.vias, w.types, w.directions) with ordinality
    p(id, via, relation_type, direction, at)
  join entities t on t.id = p.id and t.app_id = $2 and t.namespace_id = $3
  order by w.depth, p.at`;

const ALL = traversalOf(false);
const OF_TYPES = traversalOf(true);

/**
 * Walks the relations of an entity in both directions, breadth first (defaults §7).
 * @throws RESOURCE_NOT_FOUND for a root that is not in the place
 */
export async function traverse(
  reads: ReadRunner,
  place: Checked<AppNamespacePlace>,
  id: string,
  { depth, relationTypes, includeMemories }: TraversalArgs,
): Promise<EntityTraversal> {
  const { orgId, appId, namespaceId } = place;
  const types = [...new Set(relationTypes ?? [])];
  const values = [orgId, appId, namespaceId, id, depth];
  const [first, ...others] = await (types.length > 0
    ? reads.read<TraversalRow>(OF_TYPES, [...values, types])
    : reads.read<TraversalRow>(ALL, values));
  if (!first) throw notFound('entity', id);
  const { entity: root } = foundIn(first);
  const connectedEntities = others.map(foundIn);
  const entities = [root, ...connectedEntities.map(({ entity }) => entity)];
  return {
    root,
    connectedEntities,
    linkedMemories: includeMemories ? memoriesOf(orgId, entities) : [],
    depthReached: connectedEntities.at(-1)?.depth ?? 0,
  };
}

function foundIn({ depth, relationType, direction, viaEntityId, ...entity }: TraversalRow): ConnectedEntity {
  return { entity, depth, relationType, direction, viaEntityId, orgId: entity.orgId };
}

/** The newest memories of these entities, each with the entities that show it. */
function memoriesOf(orgId: string, entities: readonly Entity[]): LinkedMemory[] {
  const entityIds = new Map<string, string[]>();
  for (const { id, sourceMemoryIds } of entities)
    for (const memoryId of sourceMemoryIds) {
      const known = entityIds.get(memoryId);
      if (known) known.push(id);
      else entityIds.set(memoryId, [id]);
    }
  return [...entityIds]
    .sort(([a], [b]) => (a < b ? 1 : -1))
    .slice(0, MAX_LINKED)
    .map(([memoryId, ids]) => ({ memoryId, entityIds: ids, orgId }));
}
