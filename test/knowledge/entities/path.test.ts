import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { logQueries } from '../../support/query-log.ts';
import { createGraph, type Entity, type Graph, graphAt } from './graph.ts';
import { fitsByHand, insertRandom, lengthByHand, placeForRandom, randomGraph, stepsByHand } from './random-graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Found {
  path: {
    length: number;
    entities: Entity[];
    relations: { relation_id: string; relation_type: string; direction: string; target_entity_id: string }[];
  } | null;
  is_cut: boolean;
}

const pathOf = ({ who, url }: Graph, from: string, to: string, query = '') =>
  who.call<Found>('GET', `${url}/entities/${from}/path?target_entity_id=${to}${query}`);
const names = async (...args: Parameters<typeof pathOf>) => {
  const { path } = (await pathOf(...args)).body;
  return path?.entities.map(({ name }) => name).join(' ') ?? null;
};

/** A chain of six, and a detour of two between the first and the third. */
async function chain() {
  const graph = await createGraph(app);
  const ids: string[] = [];
  for (const name of ['A', 'B', 'C', 'D', 'E', 'F']) {
    const { entity_id: id } = await graph.entity(name, { importance: name === 'B' ? 0.1 : 0.5 });
    if (ids.length > 0) await graph.relate(ids.at(-1)!, id, 'next');
    ids.push(id);
  }
  const [x, y] = [(await graph.entity('X')).entity_id, (await graph.entity('Y')).entity_id];
  await graph.relate(ids[0]!, x, 'by');
  await graph.relate(x, y, 'by');
  await graph.relate(y, ids[2]!, 'by', { valid_to: '2020-01-01T00:00:00Z' });
  const [a, b, c, d, e, f] = ids as [string, string, string, string, string, string];
  return { graph, a, b, c, d, e, f };
}

test('the shortest path has its entities and relations in order, each as the entity before it sees it', async () => {
  const { graph, a, b, c } = await chain();
  const relation = (from: Entity, target: string) => from.relations.find((one) => one.target_entity_id === target)!;
  const [first, second, third] = [await graph.get(a), await graph.get(b), await graph.get(c)];
  const shown = { valid_from: null, valid_to: null };
  expect((await pathOf(graph, a, c)).body).toEqual({
    path: {
      length: 2,
      entities: [first, second, third],
      relations: [
        { ...relation(first, b), ...shown },
        { ...relation(second, c), ...shown },
      ],
    },
    is_cut: false,
  });
  const back = (await pathOf(graph, c, a)).body.path!;
  expect(back.entities.map(({ name }) => name)).toEqual(['C', 'B', 'A']);
  expect(back.relations.map(({ direction, target_entity_id }) => [direction, target_entity_id])).toEqual([
    ['incoming', b],
    ['incoming', a],
  ]);
});

test('filters are those of a traversal; both ends may be whatever they are', async () => {
  const { graph, a, c, f } = await chain();
  expect(await names(graph, a, f)).toBe('A B C D E F');
  expect(await names(graph, a, f, '&max_depth=5')).toBe('A B C D E F');
  expect((await pathOf(graph, a, f, '&max_depth=4')).body).toEqual({ path: null, is_cut: false });
  expect(await names(graph, a, f, '&direction=outgoing')).toBe('A B C D E F');
  expect(await names(graph, f, a, '&direction=incoming')).toBe('F E D C B A');
  expect((await pathOf(graph, a, f, '&direction=incoming')).body).toEqual({ path: null, is_cut: false });
  expect(await names(graph, a, c, '&min_importance=0.5')).toBe('A X Y C');
  expect(await names(graph, a, c, '&min_importance=0.6')).toBe(null);
  expect(await names(graph, a, c, '&relation_types=by')).toBe('A X Y C');
  expect(await names(graph, a, c, '&relation_types=by&as_of=2019-01-01T00:00:00Z')).toBe('A X Y C');
  expect(await names(graph, a, c, '&relation_types=by&as_of=2020-01-01T00:00:00Z')).toBe(null);
  expect(await names(graph, a, c, '&entity_types=person')).toBe(null);
});

test('from an entity to itself there is a path of no relation; an end that is not there is 404', async () => {
  const { graph, a } = await chain();
  expect((await pathOf(graph, a, a)).body).toEqual({
    path: { length: 0, entities: [await graph.get(a)], relations: [] },
    is_cut: false,
  });
  const { body: space } = await graph.who.call<{ namespace_id: string }>('POST', `${graph.who.home}/namespaces`, {
    name: 'Two',
  });
  const there = (await graphAt(graph.who, graph.appId, space.namespace_id).entity('there')).entity_id;
  for (const [from, to] of [
    [a, 'ent_nobody'],
    ['ent_nobody', a],
    [a, there],
    [there, a],
  ] as const) {
    const { status, body } = await pathOf(graph, from, to);
    expect([status, body]).toMatchObject([
      404,
      { details: { resource_type: 'entity', resource_id: from === a ? to : from } },
    ]);
  }
  expect((await graph.who.call('GET', `${graph.url}/entities/${a}/path`)).status).toBe(422);
  for (const query of ['&max_depth=0', '&max_depth=11', '&direction=up', '&as_of=x'])
    expect((await pathOf(graph, a, a, query)).status).toBe(422);
});

test('on random graphs and filters it is as short as by hand, and every step of it may be taken', async () => {
  const made = await placeForRandom(app);
  await fc.assert(
    fc.asyncProperty(
      randomGraph.filter(({ nodes, to }) => !nodes[to]!.isElsewhere),
      async (given) => {
        const { place, ids } = await insertRandom(app, made, given);
        const args = { ...given.filters, targetEntityId: ids[given.to]!, maxDepth: 10 };
        const { path, isCut } = await app.services.entities.path(place, ids[0]!, args);
        expect(isCut).toBe(false);
        const length = lengthByHand(given);
        if (length === null || length > 10) {
          expect(path).toBeNull();
          return;
        }
        expect([path!.length, path!.relations.length]).toEqual([length, length]);
        const places = path!.entities.map(({ id }) => ids.indexOf(id));
        expect([places[0], places.at(-1)]).toEqual([0, given.to]);
        for (const between of places.slice(1, -1)) expect(fitsByHand(given, between)).toBe(true);
        const steps = stepsByHand(given);
        for (const [at, { relationType: type, direction, entityId, targetEntityId }] of path!.relations.entries()) {
          expect([ids.indexOf(entityId), ids.indexOf(targetEntityId)]).toEqual([places[at], places[at + 1]]);
          expect(steps).toContainEqual({ from: places[at], to: places[at + 1], type, direction });
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('a search through large hubs is bounded, and says that it was cut', async () => {
  const graph = await createGraph(app);
  const [a, b, way] = [
    (await graph.entity('A')).entity_id,
    (await graph.entity('B')).entity_id,
    (await graph.entity('way', { importance: 0 })).entity_id,
  ];
  await graph.relate(a, way);
  await graph.relate(way, b);
  await fill(
    app,
    `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, identity_key)
      select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, 'n' || n,
        n::text
      from entities, generate_series(1, 12000) n where id = $1`,
    [a],
  );
  // what refers to them is checked by a plan that is made for as many as PostgreSQL has counted
  await fill(app, 'analyze entities');
  await fill(
    app,
    `insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type)
      select 'rel_' || right(t.id, 20) || n, org_id, workspace_id, app_id, namespace_id, e, t.id, 'has'
      from entities t, unnest(array[$1, $2]) with ordinality x(e, n) where app_id = $3 and name ~ '^n\\d'`,
    [a, b, graph.appId],
  );
  const log = logQueries(app.database.pool);
  let answer: Found | undefined;
  const statements = await log.during(async () => {
    answer = (await pathOf(graph, a, b, '&relation_types=knows')).body;
  });
  expect([answer?.path?.length, answer?.is_cut]).toEqual([2, false]);
  // both ends, two levels, and what is on the path
  expect(statements.filter((text) => /from (?:entities|looked)/.test(text))).toHaveLength(4);
  const far = (await graph.entity('far')).entity_id;
  await graph.relate(far, b);
  const cut = (await pathOf(graph, a, far)).body;
  expect([cut.path, cut.is_cut]).toEqual([null, true]);
});

test('GraphQL answers the same, and goes on from there', async () => {
  const { graph, a, c } = await chain();
  const query = `query ($id: ID!, $to: ID!, $orgId: ID!, $workspaceId: ID!, $appId: ID!) {
    entityPath(orgId: $orgId, workspaceId: $workspaceId, appId: $appId, namespaceId: "default", id: $id,
      targetEntityId: $to, asOf: "2026-01-01T00:00:00Z") {
      isCut path { length entities { name } relations { relationType target { name } } }
    }
    entityTraversal(orgId: $orgId, workspaceId: $workspaceId, appId: $appId, namespaceId: "default", id: $id,
      direction: incoming) { isCut connectedEntities { depth } }
  }`;
  const { who, appId } = graph;
  const { orgId, workspaceId } = who;
  expect(await who.ask(query, { id: a, to: c, orgId, workspaceId, appId })).toEqual({
    data: {
      entityPath: {
        isCut: false,
        path: {
          length: 2,
          entities: [{ name: 'A' }, { name: 'B' }, { name: 'C' }],
          relations: [
            { relationType: 'next', target: { name: 'B' } },
            { relationType: 'next', target: { name: 'C' } },
          ],
        },
      },
      entityTraversal: { isCut: false, connectedEntities: [] },
    },
  });
});
