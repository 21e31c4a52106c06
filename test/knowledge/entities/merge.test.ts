import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { stopAges } from '../../support/passing-time.ts';
import { changesOf, eventsOf, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { issueToken } from '../../support/tokens.ts';
import { createGraph, type Entity, type Graph } from './graph.ts';

let app: TestApp;
let graph: Graph;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  graph = await createGraph(app);
});

interface Refused {
  error: string;
  detail: { loc: unknown[]; msg: string }[];
}
const merge = ({ who, url }: Graph, into: string, ...merged: string[]) =>
  who.call<Entity & Refused>('POST', `${url}/entities/${into}/merge`, { merged_entity_ids: merged });
const get = (id: string) => graph.who.call<Entity>('GET', `${graph.url}/entities/${id}`);
const seen = (entity: Entity) =>
  entity.relations.map((r) => [r.direction, r.relation_type, r.target_name, r.weight]).sort((a, b) => (a < b ? -1 : 1));

/** Places as arguments of GraphQL. */
const placeOf = () => {
  const [, orgId, workspaceId, appId, namespaceId] =
    /orgs\/([^/]+)\/workspaces\/([^/]+)\/apps\/([^/]+)\/namespaces\/([^/]+)/.exec(graph.url)!;
  return `orgId: "${orgId}", workspaceId: "${workspaceId}", appId: "${appId}", namespaceId: "${namespaceId}"`;
};

test('names, relations and memories become those of the one that is left, which says itself what it can', async () => {
  const ada = await graph.entity('Ada Lovelace', {
    aliases: ['Ada'],
    tags: ['person'],
    importance: 0.3,
    metadata: { born: 1815 },
  });
  const countess = await graph.entity('Countess of Lovelace', {
    aliases: ['ADA', 'A. L.'],
    tags: ['Person', 'noble'],
    importance: 0.9,
    description: 'She wrote notes.',
    metadata: { born: 0, external_id: 17 },
  });
  const [babbage, engine] = [await graph.entity('Babbage'), await graph.entity('Engine')];
  await graph.relate(ada.entity_id, babbage.entity_id, 'knows', { weight: 1 });
  await graph.relate(countess.entity_id, babbage.entity_id, 'knows', { weight: 5 });
  await graph.relate(babbage.entity_id, countess.entity_id, 'writes_to');
  await graph.relate(countess.entity_id, engine.entity_id, 'describes');
  await graph.relate(ada.entity_id, countess.entity_id, 'is');
  const memories = [
    await graph.memory('Both.', [ada.entity_id, countess.entity_id]),
    await graph.memory('One.', [countess.entity_id]),
  ];
  const { status, body } = await merge(graph, ada.entity_id, countess.entity_id);
  expect([status, body]).toMatchObject([
    200,
    {
      entity_id: ada.entity_id,
      name: 'Ada Lovelace',
      aliases: ['Ada', 'Countess of Lovelace', 'A. L.'],
      tags: ['person', 'noble'],
      importance: 0.9,
      description: 'She wrote notes.',
      metadata: { born: 1815, external_id: 17 },
      mention_count: 6,
      source_memory_ids: memories.map(({ memory_id }) => memory_id).reverse(),
    },
  ]);
  expect(seen(body)).toEqual([
    ['incoming', 'writes_to', 'Babbage', 1],
    ['outgoing', 'describes', 'Engine', 1],
    ['outgoing', 'knows', 'Babbage', 1],
  ]);
  expect(await graph.get(ada.entity_id)).toEqual(body);
  // what is known by the external id and by the names is the one that is left
  const resolve = (name: string, metadata = {}) =>
    graph.who.call<{ entity: Entity }>('POST', `${graph.url}/entities/resolve`, { name, metadata });
  expect((await resolve('Somebody', { external_id: 17 })).body.entity.entity_id).toBe(ada.entity_id);
  expect((await resolve('countess of lovelace')).body.entity.entity_id).toBe(ada.entity_id);
});

test('an id that was merged leads to the one that is left, wherever an entity is named', async () => {
  const [a, b, c] = [await graph.entity('A'), await graph.entity('B'), await graph.entity('C')];
  await graph.relate(b.entity_id, c.entity_id);
  await merge(graph, a.entity_id, b.entity_id);
  const [old, own] = [b.entity_id, a.entity_id];
  const { who, url } = graph;
  const base = `${url}/entities`;
  const now = await graph.get(own);
  expect(await get(old)).toEqual({ status: 200, body: now });
  expect((await who.call('PUT', `${base}/${old}`, { description: 'By its old id.' })).body).toMatchObject({
    entity_id: own,
    description: 'By its old id.',
  });
  expect((await who.call('POST', `${base}/${old}/traverse`, {})).body).toMatchObject({
    root: { entity_id: own },
    connected_entities: [{ entity_id: c.entity_id, via_entity_id: own }],
  });
  expect((await who.call('GET', `${base}/${c.entity_id}/path?target_entity_id=${old}`)).body).toMatchObject({
    path: { length: 1, entities: [{ entity_id: c.entity_id }, { entity_id: own }] },
  });
  await graph.relate(c.entity_id, old, 'likes');
  await graph.relate(old, c.entity_id, 'likes');
  expect(seen(await graph.get(own)).map(([direction, type]) => `${direction} ${type}`)).toEqual([
    'incoming likes',
    'outgoing knows',
    'outgoing likes',
  ]);
  const self = await graph.relate(old, own, 'is');
  expect([self.status, (self.body as Refused).detail[0]!.loc]).toEqual([422, ['body', 'target_entity_id']]);
  const memory = await graph.memory('About it.', [old, own]);
  expect(memory.entity_ids).toEqual([own]);
  const changed = await who.call<{ entity_ids: string[] }>('PUT', `${url}/memories/${memory.memory_id}`, {
    entity_ids: [old],
  });
  expect(changed.body.entity_ids).toEqual([own]);
  const imported = await who.call<{ entities: { entity_id: string }[]; relations_created: number }>(
    'POST',
    `${base}/import`,
    {
      entities: [{ id: old, name: 'A', tags: ['imported'] }],
      relations: [{ source: { id: c.entity_id }, target: { id: old }, relation_type: 'imports' }],
    },
  );
  expect(imported.body).toMatchObject({ entities: [{ entity_id: own, outcome: 'updated' }], relations_created: 1 });
  const { data } = await who.ask<Record<string, { id: string; mergedIds: string[] }>>(
    `{ entity(${placeOf()}, id: "${old}") { id mergedIds } node(id: "${old}") { ... on Entity { id mergedIds } } }`,
  );
  expect(data).toEqual({ entity: { id: own, mergedIds: [old] }, node: { id: own, mergedIds: [old] } });
});

test('ids lead over several merges to the last entity, until that is deleted; the old id deletes nothing', async () => {
  const entities = [];
  for (const name of ['A', 'B', 'C', 'D']) entities.push(await graph.entity(name));
  const [a, b, c, d] = entities.map(({ entity_id }) => entity_id) as [string, string, string, string];
  await merge(graph, b, a);
  await merge(graph, c, b);
  await merge(graph, d, a);
  for (const id of [a, b, c]) expect((await get(id)).body).toMatchObject({ entity_id: d, aliases: ['C', 'B', 'A'] });
  // each id leads there in one step
  const { rows } = await app.database.pool.query('select distinct entity_id from entity_merges where id = any($1)', [
    [a, b, c],
  ]);
  expect(rows).toEqual([{ entity_id: d }]);
  // what is merged already stays, also into itself by another name
  expect((await merge(graph, a, b, c)).body).toMatchObject({ entity_id: d });
  expect((await graph.who.call('DELETE', `${graph.url}/entities/${a}`)).status).toBe(404);
  await graph.who.call('DELETE', `${graph.url}/entities/${d}`);
  for (const id of [a, b, c, d])
    expect([
      (await get(id)).status,
      (await graph.who.call('POST', `${graph.url}/entities/${id}/traverse`, {})).status,
    ]).toEqual([404, 404]);
});

test('a merge is recorded, and told for each entity that ends', async () => {
  const [a, b, c] = [await graph.entity('A'), await graph.entity('B'), await graph.entity('C')];
  await merge(graph, a.entity_id, b.entity_id, c.entity_id);
  const merged_entity_ids = [b.entity_id, c.entity_id];
  expect((await changesOf(app, a.entity_id)).at(-1)).toMatchObject({
    action: 'merge',
    metadata: { merged_entity_ids },
  });
  expect(await eventsOf(app, a.entity_id)).toEqual(['entity.created', 'entity.updated']);
  for (const id of merged_entity_ids) {
    expect(await eventsOf(app, id)).toEqual(['entity.created', 'entity.merged']);
    const event = await app.database.prisma.event.findFirstOrThrow({
      where: { resourceId: id, type: 'entity.merged' },
    });
    expect(event.data).toEqual({ into_entity_id: a.entity_id });
  }
});

test('what cannot be merged is refused, and nothing is changed', async () => {
  const [a, b] = [await graph.entity('A'), await graph.entity('B')];
  const other = await createGraph(app, graph.who);
  const elsewhere = await other.entity('Elsewhere');
  expect(await merge(graph, a.entity_id, b.entity_id, a.entity_id)).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ['body', 'merged_entity_ids', 1] }] },
  });
  for (const [into, merged] of [
    [a.entity_id, 'ent_none'],
    ['ent_none', b.entity_id],
    [a.entity_id, elsewhere.entity_id],
  ] as const)
    expect((await merge(graph, into, b.entity_id, merged)).status).toBe(404);
  expect((await merge(graph, a.entity_id)).status).toBe(422);
  const crowded = await graph.entity('Crowded', { metadata: { x: 'x'.repeat(9_000) } });
  const full = await graph.entity('Full', { metadata: { y: 'y'.repeat(9_000) } });
  expect((await merge(graph, crowded.entity_id, full.entity_id)).body.detail[0]!.loc).toEqual([
    'body',
    'merged_entity_ids',
  ]);
  const named = [];
  for (let n = 0; n < 5; n++)
    named.push(await graph.entity(`N${n}`, { aliases: Array.from({ length: 50 }, (_, at) => `N${n} ${at}`) }));
  const [first, ...rest] = named.map(({ entity_id }) => entity_id);
  expect((await merge(graph, first!, ...rest)).status).toBe(422);
  for (const entity of [a, b, crowded, full, ...named]) expect(await graph.get(entity.entity_id)).toEqual(entity);
  expect((await other.who.call('GET', `${other.url}/entities/${elsewhere.entity_id}`)).body).toEqual(elsewhere);
});

test('If-Match guards it, and nobody else sees where an id leads', async () => {
  const [a, b] = [await graph.entity('A'), await graph.entity('B')];
  const url = `${graph.url}/entities/${a.entity_id}/merge`;
  const body = { merged_entity_ids: [b.entity_id] };
  const { who } = graph;
  const send = (authorization: string, headers = {}) =>
    app.server.inject({ method: 'POST', url, payload: body, headers: { authorization, ...headers } });
  expect((await send(`Bearer ${who.accessToken}`, { 'if-match': '"7"' })).statusCode).toBe(412);
  // it changes one, and ends others
  for (const permission of ['entity:update', 'entity:delete']) {
    const weak = await issueToken(app, who, { permissions: ['entity:read', permission] });
    expect((await send(weak.headers.authorization)).statusCode).toBe(403);
  }
  expect((await send(`Bearer ${who.accessToken}`, { 'if-match': '"1"' })).statusCode).toBe(200);
  const stranger = await createGraph(app, await register(app, { name: 'stranger' }));
  expect((await stranger.who.call('GET', `${stranger.url}/entities/${b.entity_id}`)).status).toBe(404);
  const { data } = await stranger.who.ask<{ node: object | null }>(`{ node(id: "${b.entity_id}") { id } }`);
  expect(data.node).toBeNull();
  expect((await stranger.relate((await stranger.entity('S')).entity_id, b.entity_id)).status).toBe(404);
  const sibling = await createGraph(app, who);
  expect((await sibling.who.call('GET', `${sibling.url}/entities/${b.entity_id}`)).status).toBe(404);
});

test('entities that are merged into one another at once end as one', async () => {
  const [a, b, c] = [await graph.entity('A'), await graph.entity('B'), await graph.entity('C')];
  await graph.relate(a.entity_id, b.entity_id);
  await graph.relate(b.entity_id, c.entity_id, 'likes');
  const answers = await Promise.all([
    merge(graph, a.entity_id, b.entity_id),
    merge(graph, b.entity_id, a.entity_id),
    graph.relate(c.entity_id, b.entity_id, 'sees'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const [one, two] = [await get(a.entity_id), await get(b.entity_id)];
  expect(one).toEqual(two);
  expect(seen(one.body)).toEqual([
    ['incoming', 'sees', 'C', 1],
    ['outgoing', 'likes', 'C', 1],
  ]);
});

test('as many statements merge fifty entities as one', async () => {
  stopAges(); // making fifty would outlast what access checks keep
  const mergeOf = async (count: number) => {
    const { body } = await graph.who.call<{ entities: { entity_id: string }[] }>(
      'POST',
      `${graph.url}/entities/import`,
      {
        entities: Array.from({ length: count + 1 }, (_, n) => ({ key: `${n}`, name: `${count} ${n}` })),
        relations: Array.from({ length: count }, (_, n) => ({
          source: { key: `${n}` },
          target: { key: `${n + 1}` },
          relation_type: 'next',
        })),
      },
    );
    const [into, ...merged] = body.entities.map(({ entity_id }) => entity_id);
    const sent = await logQueries(app.database.pool).by(async () => {
      expect((await merge(graph, into!, ...merged)).status).toBe(200);
    });
    expect(sent.length).toBeGreaterThan(0);
    return sent.length;
  };
  expect(await mergeOf(1)).toBe(await mergeOf(50));
});

test('an entity that is not merged and would be the same as the one that is left refuses the merge', async () => {
  const acme = await graph.entity('Acme');
  const other = await graph.entity('Other', { metadata: { external_id: 'e1' } });
  const same = await graph.entity('acme', { metadata: { external_id: 'e1' } });
  const { status, body } = await merge(graph, acme.entity_id, other.entity_id);
  expect([status, body]).toMatchObject([409, { error: 'RESOURCE_ALREADY_EXISTS' }]);
  expect(JSON.stringify(body)).toContain(same.entity_id);
  expect((await get(other.entity_id)).body).toMatchObject({ entity_id: other.entity_id, name: 'Other' });
});

test('the version of an entity that was merged is not one of the entity that is left', async () => {
  const { who, url } = graph;
  const [left, gone] = [await graph.entity('Left'), await graph.entity('Gone')];
  const change = (id: string, version: number, description: string) =>
    app.server.inject({
      method: 'PUT',
      url: `${url}/entities/${id}`,
      headers: { ...who.headers, 'if-match': `"${version}"` },
      payload: { description },
    });
  expect((await change(gone.entity_id, 1, 'second')).statusCode).toBe(200);
  expect((await merge(graph, left.entity_id, gone.entity_id)).status).toBe(200);
  expect((await change(gone.entity_id, 2, 'too late')).statusCode).toBe(412);
  expect((await change(gone.entity_id, 3, 'seen')).statusCode).toBe(200);
});
