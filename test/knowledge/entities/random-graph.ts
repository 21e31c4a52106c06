import fc from 'fast-check';
import { newId } from '../../../src/kernel/ids.ts';
import { markChecked } from '../../../src/kernel/mark-checked.ts';
import type { WalkFilters } from '../../../src/knowledge/entities/walk-filters.ts';
import type { TestApp } from '../../support/app.ts';
import { createGraph } from './graph.ts';

/** A graph, a walk from its first entity, and the other end of a path. */
export interface RandomGraph {
  nodes: { importance: number; isElsewhere: boolean; entityType: string }[];
  edges: { source: number; target: number; type: string; validFrom: Date | null; validTo: Date | null }[];
  depth: number;
  filters: WalkFilters;
  to: number;
}

const types = ['a', 'b', 'c'];
const entityTypes = ['person', 'place', 'other'];
const day = (n: number) => new Date(Date.UTC(2026, 0, n));
const importance = fc.integer({ min: 0, max: 3 }).map((n) => n / 3);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null, freq: 1 });

export const randomGraph: fc.Arbitrary<RandomGraph> = fc.integer({ min: 1, max: 40 }).chain((size) =>
  fc.record({
    nodes: fc
      .array(
        fc.record({
          importance,
          isElsewhere: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
          entityType: fc.constantFrom(...entityTypes),
        }),
        { minLength: size, maxLength: size },
      )
      .map((nodes) => nodes.map((node, at) => ({ ...node, isElsewhere: at > 0 && node.isElsewhere }))),
    edges: fc.uniqueArray(
      fc
        .record({
          source: fc.integer({ min: 0, max: size - 1 }),
          target: fc.integer({ min: 0, max: size - 1 }),
          type: fc.constantFrom(...types),
          from: fc.option(fc.integer({ min: 1, max: 9 }), { nil: null }),
          days: fc.option(fc.integer({ min: 1, max: 9 }), { nil: null }),
        })
        .map(({ from, days, ...edge }) => ({
          ...edge,
          validFrom: from === null ? null : day(from),
          validTo: days === null ? null : day((from ?? 1) + days),
        })),
      { maxLength: 80, selector: ({ source, target, type }) => `${source} ${target} ${type}` },
    ),
    depth: fc.integer({ min: 1, max: 3 }),
    filters: fc.record({
      direction: fc.constantFrom(null, 'both', 'outgoing', 'incoming'),
      relationTypes: fc.subarray(types),
      asOf: maybe(fc.integer({ min: 0, max: 19 }).map(day)),
      minImportance: maybe(importance),
      entityTypes: maybe(fc.subarray(entityTypes)),
    }),
    to: fc.integer({ min: 0, max: size - 1 }),
  }),
);

type Place = Awaited<ReturnType<typeof placeForRandom>>;

/** Where random graphs are: one namespace, and another one of the same workspace. */
export async function placeForRandom(app: TestApp) {
  const graph = await createGraph(app);
  const { who, appId } = graph;
  const { body } = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Two' });
  const { namespace_id: here, workspace_id: workspaceId } = await graph.entity('place');
  return { orgId: who.orgId, workspaceId, appId, here, elsewhere: body.namespace_id };
}

/** Writes a graph, and says the ids of its nodes. */
export async function insertRandom(app: TestApp, { here, elsewhere, ...common }: Place, { nodes, edges }: RandomGraph) {
  const { prisma } = app.database;
  const ids = nodes.map(() => newId('entity'));
  const namespaceOf = (at: number) => (nodes[at]!.isElsewhere ? elsewhere : here);
  await prisma.entity.createMany({
    data: nodes.map(({ importance: weight, entityType }, at) => ({
      ...common,
      importance: weight,
      entityType,
      id: ids[at]!,
      namespaceId: namespaceOf(at),
      name: ids[at]!,
      identityKey: ids[at]!,
    })),
  });
  const within = edges.filter(({ source, target }) => source !== target && namespaceOf(source) === namespaceOf(target));
  await prisma.entityRelation.createMany({
    data: within.map(({ source, target, type, ...period }) => ({
      ...common,
      ...period,
      id: newId('entity_relation'),
      namespaceId: namespaceOf(source),
      sourceEntityId: ids[source]!,
      targetEntityId: ids[target]!,
      relationType: type,
    })),
  });
  return { ids, place: markChecked({ ...common, namespaceId: here }) };
}

/** The relations that may be followed, the newest first, as the entity sees them from which they are followed. */
export function stepsByHand({ nodes, edges, filters }: RandomGraph) {
  const { direction, relationTypes, asOf } = filters;
  return edges
    .filter(
      ({ source, target, type, validFrom, validTo }) =>
        source !== target &&
        nodes[source]!.isElsewhere === nodes[target]!.isElsewhere &&
        (!relationTypes?.length || relationTypes.includes(type)) &&
        (!asOf || ((!validFrom || validFrom <= asOf) && (!validTo || asOf < validTo))),
    )
    .reverse()
    .flatMap(({ source, target, type }) => [
      ...(direction === 'incoming' ? [] : [{ from: source, to: target, type, direction: 'outgoing' }]),
      ...(direction === 'outgoing' ? [] : [{ from: target, to: source, type, direction: 'incoming' }]),
    ]);
}

/** Whether an entity may be walked through. */
export const fitsByHand = ({ nodes, filters }: RandomGraph, at: number): boolean =>
  nodes[at]!.importance >= (filters.minImportance ?? 0) &&
  (!filters.entityTypes?.length || filters.entityTypes.includes(nodes[at]!.entityType));

interface Level {
  id: string;
  depth: number;
  via: string;
  type: string;
  direction: string;
}

/** The walk by hand: level by level, the first of the level before, then the newest relation. */
export function walkByHand(ids: string[], given: RandomGraph): Level[] {
  const steps = stepsByHand(given);
  const known = new Set([0]);
  const found: Level[] = [];
  let frontier = [0];
  for (let level = 1; level <= given.depth && frontier.length > 0; level++) {
    const next: { at: number; row: Level }[] = [];
    for (const from of frontier)
      for (const step of steps) {
        if (step.from !== from || known.has(step.to) || !fitsByHand(given, step.to)) continue;
        known.add(step.to);
        const { type, direction } = step;
        next.push({ at: step.to, row: { id: ids[step.to]!, depth: level, via: ids[from]!, type, direction } });
      }
    const weight = (at: number) => given.nodes[at]!.importance;
    next.sort((x, y) => weight(y.at) - weight(x.at) || (ids[x.at]! < ids[y.at]! ? -1 : 1));
    found.push(...next.map(({ row }) => row));
    frontier = next.map(({ at }) => at);
  }
  return found;
}

/** How many relations the shortest path has, by hand; `null` if there is none. */
export function lengthByHand(given: RandomGraph): number | null {
  const steps = stepsByHand(given);
  const distances = new Map([[0, 0]]);
  for (const [at, distance] of distances)
    for (const { from, to } of steps)
      if (from === at && !distances.has(to) && (to === given.to || fitsByHand(given, to)))
        distances.set(to, distance + 1);
  return distances.get(given.to) ?? null;
}
