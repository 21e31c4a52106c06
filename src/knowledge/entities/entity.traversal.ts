import { selectList } from '../../data/paging.ts';
import type { ReadRunner } from '../../data/sql.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { type Entity, entityColumns } from './entity.reads.ts';
import { MAX_LOOKED_AT, valuesOf, type WalkFilters, writeWalk } from './walk-filters.ts';

/** Most entities that a traversal finds beside the root. */
export const MAX_FOUND = 500;

/** Most memories that a traversal shows. */
export const MAX_LINKED = 500;

export interface TraversalArgs extends WalkFilters {
  /** Levels to go, 1 to 3. */
  depth: number;
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
  /** Its entities, in the order in which the traversal found them. */
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
  /** Whether a limit ended it: there may be more than what was found. */
  isCut: boolean;
}

type TraversalRow = Entity &
  Pick<ConnectedEntity, 'depth' | 'relationType' | 'direction' | 'viaEntityId'> &
  Pick<EntityTraversal, 'isCut'>;

/**
 * The breadth-first search as one recursive statement. Each row of the recursion is a whole level, with the ids of all
 * entities seen so far: an entity is found once, at its least depth, so cycles end; and a level is limited to the
 * entities that are still missing to {@link MAX_FOUND}. Relations and entities are both held to the app and the
 * namespace.
 *
 * A level may have thousands of relations, and each step is cheap for the next one: one scan of the index for all
 * entities behind them, then only the most important ones, known ones among them (there are at most {@link MAX_FOUND}
 * of these, so enough others are left), and only for the new ones the relation that led there.
 *
 * A level knows that it was cut by finding one entity more than it may show, or by having looked at all relations that
 * it may look at.
 *
 * Parameters: 1 org, 2 app, 3 namespace, 4 root, 5 depth, then the filters.
 */
const traversalOf = writeWalk(
  5,
  'w.ids',
  ({ relations, entityFits }) => `
  with recursive walk(depth, ids, vias, types, directions, seen, cut) as (
    select 0, array[r.id], array[null::text], array[null::text], array[null::text], array[r.id], false
    from entities r where r.org_id = $1 and r.app_id = $2 and r.namespace_id = $3 and r.id = $4
    union all
    select w.depth + 1, n.ids, n.vias, n.types, n.directions, w.seen || n.ids, n.cut
    from walk w cross join lateral (
      with ${relations}, important as materialized (
        select o.id, o.importance from entities o
        where o.id = any(array(select a.other from edges a)) and o.app_id = $2 and o.namespace_id = $3 and ${entityFits}
        order by o.importance desc, o.id
        limit ${MAX_FOUND + 2}
      ), fresh as materialized (
        select i.id, i.importance from important i
        where not exists (select from unnest(w.seen) s(id) where s.id = i.id)
        order by i.importance desc, i.id
        limit ${MAX_FOUND + 2} - cardinality(w.seen)
      ), found as materialized (
        select * from fresh order by importance desc, id limit ${MAX_FOUND + 1} - cardinality(w.seen)
      )
      select array_agg(c.id order by c.importance desc, c.id) as ids,
        array_agg(c.via order by c.importance desc, c.id) as vias,
        array_agg(c.relation_type order by c.importance desc, c.id) as types,
        array_agg(c.direction order by c.importance desc, c.id) as directions,
        (select count(*) from fresh) > ${MAX_FOUND + 1} - cardinality(w.seen)
          or (select count(*) from looked) >= ${MAX_LOOKED_AT} as cut
      from (
        select distinct on (o.id) o.id, o.importance, e.via, e.relation_type, e.direction
        from found o join edges e on e.other = o.id
        order by o.id, e.at, e.relation desc
      ) c
    ) n
    where w.depth < $5 and cardinality(w.seen) <= ${MAX_FOUND} and (n.ids is not null or n.cut)
  )
  select ${selectList(entityColumns)}, w.depth, p.via as "viaEntityId", p.relation_type as "relationType", p.direction,
    (select bool_or(c.cut or c.depth < $5 and cardinality(c.seen) > ${MAX_FOUND}) from walk c) as "isCut"
  from walk w
  cross join lateral unnest(w.ids, w.vias, w.types, w.directions) with ordinality
    p(id, via, relation_type, direction, at)
  join entities t on t.id = p.id and t.app_id = $2 and t.namespace_id = $3
  order by w.depth, p.at`,
);

/**
 * Walks the relations of an entity, breadth first (defaults §7). What the filters leave out is not walked through; the
 * root is always there.
 * @returns `null` for a root that is not in the place
 */
export async function traverse(
  reads: ReadRunner,
  place: Checked<AppNamespacePlace>,
  id: string,
  { depth, includeMemories, ...filters }: TraversalArgs,
): Promise<EntityTraversal | null> {
  const { orgId, appId, namespaceId } = place;
  const values = [orgId, appId, namespaceId, id, depth, ...valuesOf(filters)];
  const [first, ...others] = await reads.read<TraversalRow>(traversalOf(filters), values);
  if (!first) return null;
  const { entity: root } = foundIn(first);
  const connectedEntities = others.map(foundIn);
  const entities = [root, ...connectedEntities.map(({ entity }) => entity)];
  return {
    root,
    connectedEntities,
    linkedMemories: includeMemories ? memoriesOf(orgId, entities) : [],
    depthReached: connectedEntities.at(-1)?.depth ?? 0,
    isCut: first.isCut,
  };
}

function foundIn(row: TraversalRow): ConnectedEntity {
  const { depth, relationType, direction, viaEntityId, isCut: _, ...entity } = row;
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
