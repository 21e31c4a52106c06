import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '../../../src/kernel/ids.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { createGraph, type Entity, type Graph, graphAt } from './graph.ts';
import { insertRandom, placeForRandom, randomGraph, walkByHand } from './random-graph.ts';

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

test('on random graphs and filters it finds the same as a walk by hand, in the same order', async () => {
  const made = await placeForRandom(app);
  await fc.assert(
    fc.asyncProperty(randomGraph, async (given) => {
      const { place, ids } = await insertRandom(app, made, given);
      const args = { ...given.filters, depth: given.depth, includeMemories: true };
      const { connectedEntities, depthReached, isCut } = await app.services.entities.traverse(place, ids[0]!, args);
      const wanted = walkByHand(ids, given);
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
      expect(isCut).toBe(false);
    }),
    { numRuns: 150 },
  );
});

test('filters leave out relations and entities, which are not walked through either', async () => {
  const { graph, ada, bob, eve } = await circle();
  const names = async (query: string) =>
    seen(await traverse(graph, ada, `?depth=3&${query}`)).map(([name, depth]) => `${name} ${depth}`);
  expect(await names('direction=both')).toEqual(['Eve 1', 'Bob 1', 'Corp 2', 'Dresden 3']);
  expect(await names('direction=outgoing')).toEqual(['Bob 1', 'Eve 2', 'Corp 2', 'Dresden 3']);
  expect(await names('direction=incoming')).toEqual(['Eve 1', 'Bob 2']);
  expect(await names('min_importance=0.45')).toEqual(['Eve 1']);
  expect(await names('min_importance=0.4&relation_types=knows&relation_types=works_at')).toEqual([
    'Eve 1',
    'Bob 1',
    'Corp 2',
  ]);
  await graph.who.call('PUT', `${graph.url}/entities/${bob}`, { entity_type: 'person' });
  expect(await names('entity_types=person')).toEqual(['Bob 1']);
  expect(await names('entity_types=person&entity_types=other')).toEqual(['Eve 1', 'Bob 1', 'Corp 2', 'Dresden 3']);
  const period = { valid_from: '2020-01-01T00:00:00Z', valid_to: '2021-01-01T00:00:00Z' };
  await graph.relate(ada, bob, 'knows', period);
  expect(await names('direction=outgoing')).toEqual(['Bob 1', 'Eve 2', 'Corp 2', 'Dresden 3']);
  const at = (time: string) => names(`direction=outgoing&as_of=${time}`);
  expect(await at('2020-01-01T00:00:00Z')).toEqual(['Bob 1', 'Eve 2', 'Corp 2', 'Dresden 3']);
  expect(await at('2020-12-31T23:59:59.999Z')).toEqual(['Bob 1', 'Eve 2', 'Corp 2', 'Dresden 3']);
  expect([await at('2019-12-31T23:59:59.999Z'), await at('2021-01-01T00:00:00Z')]).toEqual([[], []]);
  await graph.relate(bob, eve, 'knows', { valid_to: '2020-06-01T00:00:00Z' });
  expect(await at('2020-07-01T00:00:00Z')).toEqual(['Bob 1', 'Corp 2', 'Dresden 3']);
  const bad = ['direction=up', 'as_of=soon', 'entity_types=', 'min_importance=1.1', 'min_importance=x'];
  const places = bad.map(async (query) => {
    const { status, body } = await graph.who.call<{ detail: { loc: string[] }[] }>(
      'POST',
      `${graph.url}/entities/${ada}/traverse?${query}`,
    );
    return [status, body.detail[0]!.loc.slice(0, 2).join('.')];
  });
  expect(await Promise.all(places)).toEqual([
    [422, 'query.direction'],
    [422, 'query.as_of'],
    [422, 'query.entity_types'],
    [422, 'query.min_importance'],
    [422, 'query.min_importance'],
  ]);
});

test('the neighborhood is the traversal with a flag, which tells of more than 500 entities', async () => {
  const graph = await createGraph(app);
  const { entity_id: hub } = await graph.entity('Hub');
  const around = async (query = '') =>
    (await graph.who.call<Traversal & { is_cut: boolean }>('GET', `${graph.url}/entities/${hub}/neighborhood${query}`))
      .body;
  await addNeighbours(hub, 1, 500);
  const exact = await around();
  expect(exact).toEqual({ ...(await traverse(graph, hub)), is_cut: false });
  expect(exact.connected_entities).toHaveLength(500);
  expect(Object.keys(await traverse(graph, hub))).toEqual([
    'root',
    'connected_entities',
    'linked_memories',
    'depth_reached',
  ]);
  // another level might have something: it was not looked at
  expect((await around('?depth=2')).is_cut).toBe(true);
  await addNeighbours(hub, 501, 501);
  const cut = await around();
  expect([cut.connected_entities.length, cut.is_cut]).toEqual([500, true]);
  expect((await around('?direction=incoming')).is_cut).toBe(false);
});

test('20,000 relations of a level are looked at, and a level that has them is cut', async () => {
  const graph = await createGraph(app);
  const { entity_id: hub } = await graph.entity('Hub');
  const { entity_id: one } = await graph.entity('One');
  const relations = (from: number, to: number) =>
    fill(
      app,
      `insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id,
          target_entity_id, relation_type, valid_to)
        select 'rel_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, $1, $2,
          't' || n, '2000-01-01'
        from entities, generate_series($3::int, $4::int) n where id = $1`,
      [hub, one, from, to],
    );
  await relations(1, 19_999);
  const around = async (query: string) => {
    const { body } = await graph.who.call<Traversal & { is_cut: boolean }>(
      'GET',
      `${graph.url}/entities/${hub}/neighborhood${query}`,
    );
    return [body.connected_entities.length, body.is_cut];
  };
  const now = 'as_of=2026-01-01T00:00:00Z';
  expect([await around(''), await around(`?${now}`)]).toEqual([
    [1, false],
    [0, false],
  ]);
  await relations(20_000, 20_000);
  // what a filter leaves out was looked at too
  expect([await around(''), await around(`?${now}`), await around(`?${now}&depth=3`)]).toEqual([
    [1, true],
    [0, true],
    [0, true],
  ]);
});

/** Adds entities that a hub has. */
const addNeighbours = (hub: string, from: number, to: number) =>
  fill(
    app,
    `with other as (
      insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, identity_key)
        select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, 'n' || n,
          n::text
        from entities, generate_series($2::int, $3::int) n where id = $1
        returning *)
    insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type)
      select 'rel_' || substr(id, 5), org_id, workspace_id, app_id, namespace_id, $1, id, 'has' from other`,
    [hub, from, to],
  );

test('a hub with 12,000 relations gives its 500 most important neighbours, and not one relation more', async () => {
  const graph = await createGraph(app);
  const { entity_id: hub } = await graph.entity('Hub');
  // as important as the first of them, and already seen
  const behind = (await graph.entity('Behind', { importance: 1 })).entity_id;
  await fill(
    app,
    `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, importance, identity_key)
      select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, 'n' || n,
        n / 12000.0, n::text
      from entities, generate_series(1, 12000) n where id = $1`,
    [hub],
  );
  // what refers to them is checked by a plan that is made for as many as PostgreSQL has counted
  await fill(app, 'analyze entities');
  await fill(
    app,
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
