import { selectList } from '../../data/paging.ts';
import type { ReadRunner } from '../../data/sql.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { type Entity, entityColumns } from './entity.reads.ts';
import { type SeenRelation, seenRelations } from './entity-relation.reads.ts';
import { MAX_LOOKED_AT, valuesOf, type WalkFilters, writeWalk } from './walk-filters.ts';

/** Most entities that the search for a path visits, of both ends together. */
export const MAX_VISITED = 10_000;

export interface PathArgs extends WalkFilters {
  targetEntityId: string;
  /** Most relations of the path. */
  maxDepth: number;
}

export interface EntityPath {
  /** How many relations it has. */
  length: number;
  /** From the first end to the other one. */
  entities: Entity[];
  /** One less than entities: each as the entity before it sees it. */
  relations: SeenRelation[];
}

export interface EntityPathResult {
  /** `null` if there is none. */
  path: EntityPath | null;
  /** Whether a limit was reached: there may be a path, or a shorter one. */
  isCut: boolean;
}

/** How an entity was reached: the entity before it, and the relation as that one sees it. */
interface PathStep {
  id: string;
  via: string;
  relationId: string;
  direction: SeenRelation['direction'];
}
type Level = PathStep & { isCut: boolean };

/** What one end has reached. */
interface Side {
  /** The other end: it is walked to whatever the filters say. */
  wanted: string;
  reached: Map<string, PathStep | null>;
  /** The entities of the last level. */
  frontier: string[];
  filters: WalkFilters;
}

/**
 * What is one relation away from entities, and was not reached. Parameters: 1 org, 2 app, 3 namespace, 4 these
 * entities, 5 those that were reached, 6 the wanted end, then the filters.
 */
const levelOf = writeWalk(
  6,
  '$4::text[]',
  ({ relations, entityFits }) => `
  with ${relations}
  select coalesce(n.id, '') as id, n.via, n.relation as "relationId", n.direction, l.cut as "isCut"
  from (select count(*) >= ${MAX_LOOKED_AT} as cut from looked) l left join lateral (
    select o.id, o.importance, s.via, s.relation, s.direction
    from (
      select distinct on (e.other) e.other, e.via, e.relation, e.direction
      from edges e order by e.other, e.at, e.relation desc
    ) s join entities o on o.id = s.other and o.org_id = $1 and o.app_id = $2 and o.namespace_id = $3
    where (o.id = $6 or ${entityFits}) and not exists (select from unnest($5::text[]) r(id) where r.id = o.id)
    order by o.id = $6 desc, o.importance desc, o.id
    limit ${MAX_VISITED + 1}
  ) n on true
  order by n.id = $6 desc, n.importance desc, n.id`,
);

/**
 * The shortest path between two entities. Both ends are searched from, level by level, the one with the fewer entities
 * first: so a path of six relations is found by two walks of three. Of paths of the same length it is one through the
 * most important entity where the two meet.
 * @returns `null` if an end is not in the place
 */
export async function findPath(
  reads: ReadRunner,
  place: Checked<AppNamespacePlace>,
  from: string,
  { targetEntityId: to, maxDepth, ...filters }: PathArgs,
): Promise<EntityPathResult | null> {
  if (!(await areThere(reads, place, [from, to]))) return null;
  const ends: [Side, Side] = [
    sideOf(from, to, filters),
    sideOf(to, from, { ...filters, direction: reversed(filters) }),
  ];
  const { meeting, isCut } = from === to ? { meeting: from, isCut: false } : await meet(reads, place, ends, maxDepth);
  if (meeting === null) return { path: null, isCut };
  const path = await read(reads, place, stepsThrough(meeting, ends), from);
  // part of it was deleted while it was searched for
  return path ? { path, isCut } : { path: null, isCut: true };
}

const sideOf = (id: string, wanted: string, filters: WalkFilters): Side => ({
  wanted,
  reached: new Map([[id, null]]),
  frontier: [id],
  filters,
});

const opposite = { outgoing: 'incoming', incoming: 'outgoing' } as const;
const reversed = ({ direction }: WalkFilters) =>
  direction === 'outgoing' || direction === 'incoming' ? opposite[direction] : direction;

/** Searches from both ends until they meet. @returns where */
async function meet(
  reads: ReadRunner,
  place: AppNamespacePlace,
  ends: readonly [Side, Side],
  maxDepth: number,
): Promise<{ meeting: string | null; isCut: boolean }> {
  const [a, b] = ends;
  let isCut = false;
  for (let depth = 0; depth < maxDepth && a.frontier.length > 0 && b.frontier.length > 0; depth++) {
    const [side, other] = a.frontier.length <= b.frontier.length ? [a, b] : [b, a];
    const room = MAX_VISITED - a.reached.size - b.reached.size;
    const level = await nextOf(reads, place, side);
    isCut ||= level.isCut || level.steps.length > room;
    const steps = level.steps.slice(0, Math.max(0, room));
    for (const step of steps) side.reached.set(step.id, step);
    side.frontier = steps.map(({ id }) => id);
    const meeting = side.frontier.find((id) => other.reached.has(id));
    if (meeting !== undefined) return { meeting, isCut };
  }
  return { meeting: null, isCut };
}

async function nextOf(
  reads: ReadRunner,
  { orgId, appId, namespaceId }: AppNamespacePlace,
  { frontier, reached, wanted, filters }: Side,
): Promise<{ steps: PathStep[]; isCut: boolean }> {
  const values = [orgId, appId, namespaceId, frontier, [...reached.keys()], wanted, ...valuesOf(filters)];
  const rows = await reads.read<Level>(levelOf(filters), values);
  return { steps: rows.filter(({ id }) => id !== ''), isCut: rows.some((row) => row.isCut) };
}

/** The way from the first end to the second through what both have reached, each step as its start sees it. */
function stepsThrough(meeting: string, [from, to]: readonly [Side, Side]): PathStep[] {
  const before: PathStep[] = [];
  for (let step = from.reached.get(meeting); step; step = from.reached.get(step.via)) before.unshift(step);
  const after: PathStep[] = [];
  for (let step = to.reached.get(meeting); step; step = to.reached.get(step.via))
    after.push({ ...step, id: step.via, via: step.id, direction: opposite[step.direction] });
  return [...before, ...after];
}

async function areThere(
  reads: ReadRunner,
  { orgId, appId, namespaceId }: AppNamespacePlace,
  ends: string[],
): Promise<boolean> {
  const found = await reads.read<{ id: string }>(
    'select id from entities where id = any($4) and org_id = $1 and app_id = $2 and namespace_id = $3',
    [orgId, appId, namespaceId, ends],
  );
  return ends.every((end) => found.some(({ id }) => id === end));
}

const READ_ENTITIES = `select ${selectList(entityColumns)} from entities t
  where t.id = any($4) and t.org_id = $1 and t.app_id = $2 and t.namespace_id = $3`;

/** @returns `null` if something of it is not there any more */
async function read(
  reads: ReadRunner,
  of: AppNamespacePlace,
  steps: readonly PathStep[],
  from: string,
): Promise<EntityPath | null> {
  const ids = [from, ...steps.map(({ id }) => id)];
  const rows = await reads.read<Entity>(READ_ENTITIES, [of.orgId, of.appId, of.namespaceId, ids]);
  const entities = new Map(rows.map((entity) => [entity.id, entity]));
  const seenAs = (wanted: string) =>
    steps.filter(({ direction }) => direction === wanted).map(({ relationId }) => relationId);
  const seen = steps.length > 0 ? await seenRelations(reads, of, seenAs('outgoing'), seenAs('incoming')) : [];
  const relations = new Map(seen.map((relation) => [relation.id, relation]));
  const path = {
    length: steps.length,
    entities: ids.flatMap((id) => entities.get(id) ?? []),
    relations: steps.flatMap(({ relationId }) => relations.get(relationId) ?? []),
  };
  return path.entities.length === ids.length && path.relations.length === steps.length ? path : null;
}
