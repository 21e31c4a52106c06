import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../../src/kernel/ids.ts';
import { markChecked } from '../../../src/kernel/mark-checked.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { createGraph, type Entity, type Graph, graphAt } from './graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Traversal {
  root: Entity;
  connected_entities: (Entity & Found)[];
  linked_memories: { memory_id: string; entity_ids: string[] }[];
  depth_reached: number;
}
interface Found {
  depth: number;
  relation_type: string;
  direction: string;
  via_entity_id: string;
}

const traverse = async ({ who, url }: Graph, id: string, query = '') =>
  (await who.call<Traversal>('POST', `${url}/entities/${id}/traverse${query}`)).body;
const seen = ({ connected_entities }: Traversal) =>
  connected_entities.map(({ name, depth, relation_type, direction }) => [name, depth, relation_type, direction]);

/** Ada knows Bob, Bob works at Corp, Corp is in Dresden; Eve knows Ada. A circle leads back. */
async function circle() {
  const graph = await createGraph(app);
  const make = async (name: string, importance: number) => (await graph.entity(name, { importance })).entity_id;
  const [ada, bob, corp, dresden, eve] = [
    await make('Ada', 0.5),
    await make('Bob', 0.4),
    await make('Corp', 0.6),
    await make('Dresden', 0.1),
    await make('Eve', 0.9),
  ];
  await graph.relate(ada, bob, 'knows');
  await graph.relate(bob, corp, 'works_at');
  await graph.relate(corp, dresden, 'in');
  await graph.relate(eve, ada, 'knows');
  await graph.relate(bob, eve, 'knows');
  return { graph, ada, bob, corp, dresden, eve };
}

test('walks relations in both directions, by depth and importance, and says what led where', async () => {
  const { graph, ada, bob, corp, eve } = await circle();
  const one = await traverse(graph, ada);
  expect(one.root).toEqual(await graph.get(ada));
  const [first, second] = one.connected_entities;
  expect(first).toEqual({
    ...(await graph.get(eve)),
    depth: 1,
    relation_type: 'knows',
    direction: 'incoming',
    via_entity_id: ada,
  });
  expect(second).toEqual({
    ...(await graph.get(bob)),
    depth: 1,
    relation_type: 'knows',
    direction: 'outgoing',
    via_entity_id: ada,
  });
  expect(one).toMatchObject({ linked_memories: [], depth_reached: 1 });
  const three = await traverse(graph, ada, '?depth=3');
  expect(seen(three)).toEqual([
    ['Eve', 1, 'knows', 'incoming'],
    ['Bob', 1, 'knows', 'outgoing'],
    ['Corp', 2, 'works_at', 'outgoing'],
    ['Dresden', 3, 'in', 'outgoing'],
  ]);
  expect(three.connected_entities[2]!.via_entity_id).toBe(bob);
  expect(three.connected_entities[3]!.via_entity_id).toBe(corp);
  expect(three.depth_reached).toBe(3);
});

test('depth_reached is the deepest level that found something; relation_types narrow the walk', async () => {
  const { graph, ada, dresden } = await circle();
  expect(await traverse(graph, (await graph.entity('Alone')).entity_id, '?depth=3')).toMatchObject({
    connected_entities: [],
    depth_reached: 0,
  });
  const knows = await traverse(graph, ada, '?depth=3&relation_types=knows');
  expect(seen(knows).map(([name]) => name)).toEqual(['Eve', 'Bob']);
  expect(knows.depth_reached).toBe(1);
  const two = await traverse(graph, ada, '?depth=3&relation_types=knows&relation_types=works_at&relation_types=knows');
  expect(seen(two).map(([name]) => name)).toEqual(['Eve', 'Bob', 'Corp']);
  expect(seen(await traverse(graph, dresden, '?depth=3')).map(([name]) => name)).toEqual(['Corp', 'Bob', 'Eve', 'Ada']);
  const status = async (query: string) =>
    (await graph.who.call('POST', `${graph.url}/entities/${ada}/traverse${query}`)).status;
  const bad = ['?depth=0', '?depth=4', '?depth=x', '?relation_types=', '?include_memories=perhaps'];
  expect(await Promise.all(bad.map(status))).toEqual(bad.map(() => 422));
  const tooMany = Array.from({ length: 51 }, (_, n) => `relation_types=t${n}`).join('&');
  expect(await status(`?${tooMany}`)).toBe(422);
});

test('linked memories are those of the root and what was found, newest first; none when they are off', async () => {
  const { graph, ada, bob, corp } = await circle();
  const first = (await graph.memory('About Ada and Bob.', [bob, ada])).memory_id;
  const second = (await graph.memory('About Bob.', [bob])).memory_id;
  await graph.memory('About Corp.', [corp]);
  expect((await traverse(graph, ada)).linked_memories).toEqual([
    { memory_id: second, entity_ids: [bob] },
    { memory_id: first, entity_ids: [ada, bob] },
  ]);
  expect((await traverse(graph, ada, '?include_memories=false')).linked_memories).toEqual([]);
});

test('rows of another namespace end the walk, however they came about', async () => {
  const graph = await createGraph(app);
  const { body: space } = await graph.who.call<{ namespace_id: string }>('POST', `${graph.who.home}/namespaces`, {
    name: 'Two',
  });
  const elsewhere = graphAt(graph.who, graph.appId, space.namespace_id);
  const [here, near, there] = [
    (await graph.entity('here')).entity_id,
    (await graph.entity('near')).entity_id,
    (await elsewhere.entity('there')).entity_id,
  ];
  await graph.relate(here, near);
  const { pool } = app.database;
  const client = await pool.connect();
  try {
    await client.query('begin');
    const relation = (namespace: string) =>
      client.query(
        `insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id,
            target_entity_id, relation_type)
          select $1, org_id, workspace_id, app_id, $2, $3, $4, 'leaks' from entities where id = $3`,
        [newId('entity_relation'), namespace, near, there],
      );
    const { namespace_id: own } = await graph.get(near);
    // the keys to both ends allow no such row
    for (const namespace of [own, space.namespace_id]) {
      await client.query('savepoint before');
      await expect(relation(namespace)).rejects.toThrow(/foreign key/);
      await client.query('rollback to before');
    }
    // a database without these keys, as a restored one might be
    await client.query('set local session_replication_role = replica');
    await relation(own);
    await client.query('commit');
  } finally {
    client.release();
  }
  expect(seen(await traverse(graph, here, '?depth=3')).map(([name]) => name)).toEqual(['near']);
  expect(seen(await traverse(elsewhere, there, '?depth=3'))).toEqual([]);
});

interface Random {
  nodes: { importance: number; isElsewhere: boolean }[];
  edges: { source: number; target: number; type: string }[];
  depth: number;
  types: string[];
}

const types = ['a', 'b', 'c'];
const random: fc.Arbitrary<Random> = fc.integer({ min: 1, max: 40 }).chain((size) =>
  fc.record({
    nodes: fc.array(
      fc.record({
        importance: fc.integer({ min: 0, max: 3 }).map((n) => n / 3),
        isElsewhere: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
      }),
      { minLength: size, maxLength: size },
    ),
    edges: fc.uniqueArray(
      fc.record({
        source: fc.integer({ min: 0, max: size - 1 }),
        target: fc.integer({ min: 0, max: size - 1 }),
        type: fc.constantFrom(...types),
      }),
      { maxLength: 80, selector: ({ source, target, type }) => `${source} ${target} ${type}` },
    ),
    depth: fc.integer({ min: 1, max: 3 }),
    types: fc.subarray(types),
  }),
);

interface Level {
  id: string;
  depth: number;
  via: string;
  type: string;
  direction: string;
}

/** The same walk by hand: level by level, the first of the level before, then the newest relation. */
function naive(ids: string[], { nodes, edges, depth, types: only }: Random): Level[] {
  const isHere = (at: number) => !nodes[at]!.isElsewhere;
  const among = edges
    .map((edge, at) => ({ ...edge, at }))
    .filter(({ source, target, type }) => source !== target && isHere(source) && isHere(target) && keeps(type))
    .sort((x, y) => y.at - x.at);
  function keeps(type: string) {
    return only.length === 0 || only.includes(type);
  }
  const known = new Set([0]);
  const found: Level[] = [];
  let frontier = [0];
  for (let level = 1; level <= depth && frontier.length > 0; level++) {
    const next: { at: number; row: Level }[] = [];
    for (const from of frontier)
      for (const { source, target, type } of among) {
        if (source !== from && target !== from) continue;
        const other = source === from ? target : source;
        if (known.has(other)) continue;
        known.add(other);
        const direction = source === from ? 'outgoing' : 'incoming';
        next.push({ at: other, row: { id: ids[other]!, depth: level, via: ids[from]!, type, direction } });
      }
    next.sort((x, y) => nodes[y.at]!.importance - nodes[x.at]!.importance || (ids[x.at]! < ids[y.at]! ? -1 : 1));
    found.push(...next.map(({ row }) => row));
    frontier = next.map(({ at }) => at);
  }
  return found;
}

test('on random graphs it finds the same as a walk by hand, in the same order', async () => {
  const graph = await createGraph(app);
  const { body: space } = await graph.who.call<{ namespace_id: string }>('POST', `${graph.who.home}/namespaces`, {
    name: 'Two',
  });
  const { namespace_id: here, workspace_id: workspaceId } = await graph.entity('place');
  const place = markChecked({ orgId: graph.who.orgId, workspaceId, appId: graph.appId, namespaceId: here });
  const { orgId } = graph.who;
  const { prisma } = app.database;
  const common = { orgId, workspaceId, appId: graph.appId };
  await fc.assert(
    fc.asyncProperty(random, async (given) => {
      const ids = given.nodes.map(() => newId('entity'));
      const namespaceOf = (at: number) => (at > 0 && given.nodes[at]!.isElsewhere ? space.namespace_id : here);
      const nodes = given.nodes.map((node, at) => ({ ...node, isElsewhere: at > 0 && node.isElsewhere }));
      await prisma.entity.createMany({
        data: ids.map((id, at) => ({
          ...common,
          id,
          namespaceId: namespaceOf(at),
          name: id,
          importance: nodes[at]!.importance,
          identityKey: id,
        })),
      });
      await prisma.entityRelation.createMany({
        data: given.edges
          .filter(({ source, target }) => source !== target && namespaceOf(source) === namespaceOf(target))
          .map(({ source, target, type }) => ({
            ...common,
            id: newId('entity_relation'),
            namespaceId: namespaceOf(source),
            sourceEntityId: ids[source]!,
            targetEntityId: ids[target]!,
            relationType: type,
          })),
      });
      const { depth, types: relationTypes } = given;
      const args = { depth, relationTypes, includeMemories: true };
      const { connectedEntities, depthReached } = await app.services.entities.traverse(place, ids[0]!, args);
      const wanted = naive(ids, { ...given, nodes });
      expect(
        connectedEntities.map(({ entity, viaEntityId, relationType, ...row }) => ({
          id: entity.id,
          depth: row.depth,
          via: viaEntityId,
          type: relationType,
          direction: row.direction,
        })),
      ).toEqual(wanted);
      expect(depthReached).toBe(wanted.at(-1)?.depth ?? 0);
    }),
    { numRuns: 60 },
  );
});

test('a hub with 12,000 relations gives its 500 most important neighbours, and not one relation more', async () => {
  const graph = await createGraph(app);
  const { entity_id: hub } = await graph.entity('Hub');
  // as important as the first of them, and already seen
  const behind = (await graph.entity('Behind', { importance: 1 })).entity_id;
  const { pool } = app.database;
  await pool.query(
    `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, importance, identity_key)
      select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, 'n' || n,
        n / 12000.0, n::text
      from entities, generate_series(1, 12000) n where id = $1`,
    [hub],
  );
  // what refers to them is checked by a plan that is made for as many as PostgreSQL has counted
  await pool.query('analyze entities');
  await pool.query(
    `insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type)
      select 'rel_' || substr(t.id, 5), org_id, workspace_id, app_id, namespace_id,
        case when right(name, 1) < '5' then $1 else id end, case when right(name, 1) < '5' then id else $1 end, 'has'
      from entities t where app_id = $2 and name ~ '^n\\d'`,
    [hub, graph.appId],
  );
  await graph.relate(behind, hub);
  const found = await traverse(graph, behind, '?depth=3');
  expect(found.connected_entities).toHaveLength(500);
  expect(found.depth_reached).toBe(2);
  expect(found.connected_entities[0]).toMatchObject({ name: 'Hub', depth: 1 });
  expect(found.connected_entities.slice(1).map(({ name }) => name)).toEqual(
    Array.from({ length: 499 }, (_, n) => `n${12_000 - n}`),
  );
  // together they show no more relations than an answer may have
  const shown = [found.root, ...found.connected_entities].map(({ relations }) => relations.length);
  expect(Math.max(...shown)).toBe(5);
});

test('a traversal with an idempotency key is repeated to the byte, also where it is written in portions', async () => {
  const graph = await createGraph(app);
  const { entity_id: hub } = await graph.entity('Hub');
  await app.database.pool.query(
    `with other as (
      insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, identity_key)
        select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, 'é' || n,
          n::text
        from entities, generate_series(1, 120) n where id = $1
        returning *)
    insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type)
      select 'rel_' || substr(id, 5), org_id, workspace_id, app_id, namespace_id, $1, id, 'has' from other`,
    [hub],
  );
  const ask = (key: object = {}) =>
    app.server.inject({
      method: 'POST',
      url: `${graph.url}/entities/${hub}/traverse`,
      headers: { ...graph.who.headers, ...key },
      payload: {},
    });
  const key = { 'idempotency-key': 'around' };
  const [plain, first, again] = [await ask(), await ask(key), await ask(key)];
  expect(plain.json<Traversal>().connected_entities).toHaveLength(120);
  expect(plain.headers['content-length']).toBe(String(Buffer.byteLength(plain.body)));
  expect([first.body, again.body]).toEqual([plain.body, plain.body]);
  expect(again.headers['idempotent-replayed']).toBe('true');
});
