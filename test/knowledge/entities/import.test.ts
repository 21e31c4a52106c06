import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, eventsOf } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { issueToken } from '../../support/tokens.ts';
import { createGraph, type Entity, type Graph } from './graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Resolved {
  entity: Entity;
  created: boolean;
  matched_by: string | null;
}
interface Imported {
  entities_created: number;
  entities_updated: number;
  entities_unchanged: number;
  relations_created: number;
  relations_updated: number;
  relations_unchanged: number;
  entities: { key: string | null; entity_id: string; outcome: string }[];
  detail: { loc: unknown[]; msg: string }[];
}

const resolve = ({ who, url }: Graph, body: object) => who.call<Resolved>('POST', `${url}/entities/resolve`, body);
const load = ({ who, url }: Graph, body: object) => who.call<Imported>('POST', `${url}/entities/import`, body);
const counts = ({ body }: { body: Imported }) => Object.values({ ...body, entities: undefined }).slice(0, 6);

test('resolves by external id, name and alias, and creates what is not there', async () => {
  const graph = await createGraph(app);
  const ada = await graph.entity('Ada Lovelace', {
    entity_type: 'person',
    aliases: ['Countess of Lovelace'],
    metadata: { external_id: 17 },
  });
  const person = { entity_type: 'person' };
  const found = (by: string) => ({ status: 200, body: { entity: ada, created: false, matched_by: by } });
  expect(await resolve(graph, { ...person, name: 'A. L.', metadata: { external_id: 17 } })).toEqual(
    found('external_id'),
  );
  expect(await resolve(graph, { ...person, name: ' ada  LOVELACE ' })).toEqual(found('name'));
  expect(await resolve(graph, { ...person, name: 'countess of lovelace' })).toEqual(found('alias'));
  expect(await resolve(graph, { ...person, name: 'Ada Lovelace', metadata: { external_id: 17 } })).toEqual(
    found('external_id'),
  );
  // the text is another external id than the number, and then the name is that of somebody else
  const other = await resolve(graph, { ...person, name: 'Ada Lovelace', metadata: { external_id: '17' } });
  expect(other.body).toMatchObject({ created: true, matched_by: null, entity: { name: 'Ada Lovelace' } });
  expect((await resolve(graph, { name: 'Ada Lovelace' })).body).toMatchObject({ created: true });
  expect((await resolve(graph, { name: ' ' })).status).toBe(422);
  const { entity } = (await resolve(graph, { name: 'New', aliases: [' N '], importance: 1 })).body;
  expect(entity).toMatchObject({ name: 'New', aliases: ['N'], importance: 1, entity_type: 'other' });
  expect(entity).toEqual(await graph.get(entity.entity_id));
  expect(await eventsOf(app, entity.entity_id)).toEqual(['entity.created']);
  expect(await eventsOf(app, ada.entity_id)).toEqual(['entity.created']);
});

test('twenty that resolve one name, alias or external id at once: one creates it', async () => {
  const graph = await createGraph(app);
  await graph.entity('other');
  for (const bodies of [
    [{ name: 'One' }],
    [
      { name: 'Two', aliases: ['Deux'] },
      { name: 'Deux', aliases: ['Two'] },
    ],
    [
      { name: 'Three', metadata: { external_id: 3 } },
      { name: 'Trois', metadata: { external_id: 3 } },
    ],
  ]) {
    const asked = Array.from({ length: 20 }, (_, n) => resolve(graph, bodies[n % bodies.length]!));
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers.filter(({ body }) => body.created)).toHaveLength(1);
    expect(new Set(answers.map(({ body }) => body.entity.entity_id)).size).toBe(1);
  }
});

test('imports entities and relations in one change, by keys, ids and names, and again without a change', async () => {
  const graph = await createGraph(app);
  const { who } = graph;
  const old = await graph.entity('Old', { aliases: ['Ancient'], description: 'stays' });
  const given = {
    entities: [
      { key: 'a', name: ' Ada ', entity_type: 'person', aliases: ['Countess'], metadata: { external_id: 1, b: 2 } },
      { key: 'b', name: 'Bob', importance: 0.25, tags: ['x'], description: 'Somebody.' },
      { id: old.entity_id, name: 'Older', importance: 1 },
    ],
    relations: [
      { source: { key: 'a' }, target: { key: 'b' }, relation_type: 'knows', weight: 2, metadata: { since: 1 } },
      { source: { name: 'bob' }, target: { id: old.entity_id }, relation_type: 'knows' },
      {
        source: { name: 'ANCIENT', entity_type: 'other' },
        target: { name: 'Ada' },
        relation_type: 'knows',
        valid_from: '2020-01-01T00:00:00Z',
        valid_to: '2021-01-01T00:00:00Z',
      },
    ],
  };
  const first = await load(graph, given);
  expect(first.status).toBe(200);
  expect(counts(first)).toEqual([2, 1, 0, 3, 0, 0]);
  expect(first.body.entities.map(({ key, outcome }) => [key, outcome])).toEqual([
    ['a', 'created'],
    ['b', 'created'],
    [null, 'updated'],
  ]);
  const [ada, bob] = first.body.entities.map(({ entity_id }) => entity_id) as [string, string];
  expect(await graph.get(ada)).toMatchObject({
    name: 'Ada',
    entity_type: 'person',
    aliases: ['Countess'],
    tags: [],
    importance: 0.5,
    description: null,
    metadata: { external_id: 1, b: 2 },
    mention_count: 2,
    last_referenced_at: expect.any(String),
    relations: [
      { relation_type: 'knows', direction: 'incoming', target_name: 'Older', weight: 1, metadata: {} },
      { relation_type: 'knows', direction: 'outgoing', target_name: 'Bob', weight: 2, metadata: { since: 1 } },
    ],
  });
  expect(await graph.get(bob)).toMatchObject({ importance: 0.25, tags: ['x'], description: 'Somebody.' });
  expect(await graph.get(old.entity_id)).toMatchObject({
    name: 'Older',
    aliases: ['Ancient'],
    description: 'stays',
    importance: 1,
    mention_count: 2,
  });
  expect(await app.database.prisma.entityRelation.findFirst({ where: { targetEntityId: ada } })).toMatchObject({
    sourceEntityId: old.entity_id,
    validFrom: new Date('2020-01-01T00:00:00Z'),
    validTo: new Date('2021-01-01T00:00:00Z'),
  });
  expect(await eventsOf(app, ada)).toEqual(['entity.imported']);
  const event = await app.database.prisma.event.findFirstOrThrow({ where: { resourceId: ada } });
  const done = { entities_created: 2, entities_updated: 1, relations_created: 3, relations_updated: 0 };
  expect(event).toMatchObject({ data: done, appId: graph.appId, workspaceId: who.workspaceId });
  expect((await changesOf(app, ada)).map(({ action, metadata }) => [action, metadata])).toEqual([['import', done]]);
  const before = [await graph.get(ada), await graph.get(bob)];
  expect(counts(await load(graph, given))).toEqual([0, 0, 3, 0, 0, 3]);
  expect([await graph.get(ada), await graph.get(bob)]).toEqual(before);
  // by the external id, with another name; and a relation with another weight
  const again = await load(graph, {
    entities: [{ name: 'A.', entity_type: 'person', tags: ['new'], metadata: { b: 3, external_id: 1 } }],
    relations: [{ source: { id: ada }, target: { id: bob }, relation_type: 'knows', weight: 3 }],
  });
  expect(counts(again)).toEqual([0, 1, 0, 0, 1, 0]);
  expect(await graph.get(ada)).toMatchObject({ name: 'Ada', tags: ['new'], metadata: { b: 3, external_id: 1 } });
  expect((await graph.get(bob)).relations).toContainEqual(
    expect.objectContaining({ target_entity_id: ada, weight: 3, metadata: { since: 1 } }),
  );
});

test('one that is wrong stops all: each is named by its place, at most 50 of them', async () => {
  const graph = await createGraph(app);
  await graph.entity('Twin', { entity_type: 'person' });
  await graph.entity('Twin', { entity_type: 'place' });
  const elsewhere = await (await createGraph(app, graph.who)).entity('Elsewhere');
  const wrong = await load(graph, {
    entities: [
      { key: 'a', name: 'A' },
      { key: 'a', name: ' ' },
    ],
  });
  expect(wrong.status).toBe(422);
  expect(wrong.body.detail.map(({ loc }) => loc.join('.'))).toEqual(['body.entities.1.name', 'body.entities.1.key']);
  const all = await load(graph, {
    entities: [{ key: 'a', name: 'A' }, { name: 'a' }, { id: elsewhere.entity_id, name: 'B' }, { key: 'c', name: 'C' }],
    relations: [
      { source: { key: 'a' }, target: { key: 'none' }, relation_type: 'r' },
      { source: { key: 'a' }, target: { id: elsewhere.entity_id }, relation_type: 'r' },
      { source: { key: 'a' }, target: { name: 'Twin' }, relation_type: 'r' },
      { source: { key: 'a' }, target: { name: 'Nobody' }, relation_type: 'r' },
      { source: { key: 'a' }, target: { key: 'a' }, relation_type: 'r' },
      { source: { key: 'a', name: 'A' }, target: {}, relation_type: 'r' },
      { source: { key: 'a' }, target: { key: 'c' }, relation_type: 'r' },
      { source: { name: 'A' }, target: { name: 'C' }, relation_type: 'r' },
      {
        source: { key: 'c' },
        target: { key: 'a' },
        relation_type: 'r',
        valid_from: '2021-01-01T00:00:00Z',
        valid_to: '2021-01-01T00:00:00Z',
      },
      { source: { key: 'c' }, target: { name: 'Twin', entity_type: 'place' }, relation_type: 'fine' },
    ],
  });
  expect(all.status).toBe(422);
  expect(
    all.body.detail.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg.replace('Value error, ', '')}`),
  ).toEqual([
    'entities.1.name: is the same entity as entities.0',
    `entities.2.id: names no entity of the app and namespace: '${elsewhere.entity_id}'`,
    "relations.0.target.key: names no entity of the import: 'none'",
    `relations.1.target.id: names no entity of the app and namespace: '${elsewhere.entity_id}'`,
    "relations.2.target.name: is the name of 2 entities: 'Twin'",
    "relations.3.target.name: names no entity of the app and namespace: 'Nobody'",
    'relations.4.target: must be another entity than the source',
    'relations.5.source: must have one of key, id and name',
    'relations.5.target: must have one of key, id and name',
    'relations.7: is the same relation as relations.6',
    'relations.8.valid_to: must be later than valid_from',
  ]);
  const many = await load(graph, { entities: Array.from({ length: 1_000 }, () => ({ name: 'Same' })) });
  expect(many.body.detail).toHaveLength(51);
  expect(many.body.detail.at(-1)).toMatchObject({ loc: ['body'], msg: 'Value error, has 949 more errors' });
  const statuses = [
    {},
    { entities: [] },
    { entities: Array.from({ length: 1_001 }, (_, n) => ({ name: `n${n}` })) },
    {
      entities: [],
      relations: Array.from({ length: 2_001 }, () => ({
        source: { key: 'a' },
        target: { key: 'a' },
        relation_type: 'r',
      })),
    },
  ].map(async (body) => (await load(graph, body)).status);
  expect(await Promise.all(statuses)).toEqual([422, 422, 422, 422]);
  expect(await app.database.prisma.entity.count({ where: { appId: graph.appId } })).toBe(2);
});

test('a thousand entities and two thousand relations take as many statements as two do', async () => {
  const graph = await createGraph(app);
  await graph.entity('warm');
  const given = (entities: number, relations: number, name: string) => ({
    entities: Array.from({ length: entities }, (_, n) => ({ key: `${n}`, name: `${name} ${n}` })),
    relations: Array.from({ length: relations }, (_, n) => ({
      source: { key: `${n % entities}` },
      target: { key: `${(n + 1 + Math.floor(n / entities)) % entities}` },
      relation_type: `r${n % 3}`,
    })),
  });
  const log = logQueries(app.database.pool);
  const statements = async (body: object) => {
    const texts = await log.by(async () => expect((await load(graph, body)).body.detail).toBeUndefined());
    return texts.filter((text) => /\bentit/.test(text)).length;
  };
  const few = await statements(given(2, 1, 'few'));
  expect(await statements(given(1_000, 2_000, 'many'))).toBe(few);
  expect(await app.database.prisma.entity.count({ where: { appId: graph.appId } })).toBe(1_003);
  expect(await app.database.prisma.entityRelation.count({ where: { appId: graph.appId } })).toBe(2_001);
});

test('imports at once, and beside creates, make each entity once', async () => {
  const graph = await createGraph(app);
  const names = Array.from({ length: 40 }, (_, n) => `Entity ${n}`);
  const entities = names.map((name) => ({ name, aliases: [`${name}!`] }));
  const answers = await Promise.all([
    ...Array.from({ length: 4 }, (_, n) => load(graph, { entities: n % 2 ? entities : [...entities].reverse() })),
    ...names.slice(0, 10).map((name) => graph.who.call('POST', `${graph.url}/entities`, { name })),
  ]);
  expect(answers.slice(0, 4).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const rows = await app.database.prisma.entity.findMany({ where: { appId: graph.appId } });
  expect(rows.map(({ name }) => name).sort()).toEqual([...names].sort());
});

test('an import needs both permissions, and stays within the places of a token', async () => {
  const graph = await createGraph(app);
  const { namespace_id: namespaceId } = await graph.entity('here');
  const { body: space } = await graph.who.call<{ namespace_id: string }>('POST', `${graph.who.home}/namespaces`, {
    name: 'Two',
  });
  const status = async (grant: Record<string, unknown>) => {
    const { headers } = await issueToken(app, graph.who, grant);
    const url = `${graph.url}/entities/import`;
    return (await app.server.inject({ method: 'POST', url, headers, payload: { entities: [{ name: 'x' }] } }))
      .statusCode;
  };
  expect([
    await status({ permissions: ['entity:create'] }),
    await status({ permissions: ['entity:update'] }),
    await status({ permissions: ['entity:update', 'entity:create'] }),
    await status({ namespace_ids: [namespaceId] }),
    await status({ namespace_ids: [space.namespace_id] }),
  ]).toEqual([403, 403, 200, 200, 403]);
});
