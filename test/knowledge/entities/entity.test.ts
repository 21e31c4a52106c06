import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { createGraph, type Entity, graphAt } from './graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Page {
  total: number;
  has_more: boolean;
  next_cursor: string | null;
  entities: Entity[];
}
const ids = ({ entities }: Page) => entities.map(({ entity_id }) => entity_id);
const notFound = (type: string, id: string) => ({
  status: 404,
  body: { error: 'RESOURCE_NOT_FOUND', details: { resource_type: type, resource_id: id } },
});

test('creates an entity with every field of its shape, changes what is given, deletes it', async () => {
  const { who, url, appId } = await createGraph(app);
  const { status, body } = await who.call<Entity>('POST', `${url}/entities`, {
    name: 'Ada Lovelace',
    entity_type: 'person',
    description: 'Wrote the first program.',
    aliases: ['Ada', 'Countess of Lovelace'],
    tags: ['science'],
    importance: 0.9,
    metadata: { external_id: 'crm-17', deep: { aB: [1, null] } },
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    entity_id: expect.stringMatching(/^ent_[0-9A-Z]{26}$/),
    workspace_id: who.workspaceId,
    namespace_id: expect.stringMatching(/^ns_/),
    name: 'Ada Lovelace',
    entity_type: 'person',
    description: 'Wrote the first program.',
    aliases: ['Ada', 'Countess of Lovelace'],
    relations: [],
    source_memory_ids: [],
    tags: ['science'],
    importance: 0.9,
    mention_count: 0,
    last_referenced_at: null,
    metadata: { external_id: 'crm-17', deep: { aB: [1, null] } },
    is_indexed: false,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = `${url}/entities/${body.entity_id}`;
  expect((await who.call('GET', one)).body).toEqual(body);
  expect((await who.call('PUT', one, {})).body).toEqual(body);
  const changed = { ...body, description: null, importance: 1, aliases: [], updated_at: expect.any(String) };
  expect((await who.call('PUT', one, { description: null, importance: 1, aliases: [] })).body).toEqual(changed);
  expect(await who.call('DELETE', one)).toEqual({ status: 200, body: null });
  expect(await who.call('GET', one)).toMatchObject(notFound('entity', body.entity_id));
  expect(await who.call('DELETE', one)).toMatchObject(notFound('entity', body.entity_id));
  expect(await eventsOf(app, body.entity_id)).toEqual([
    'entity.created',
    'entity.updated',
    'entity.updated',
    'entity.deleted',
  ]);
  const event = await app.database.prisma.event.findFirstOrThrow({ where: { resourceId: body.entity_id } });
  expect(event).toMatchObject({ workspaceId: who.workspaceId, namespaceId: body.namespace_id, appId });
  const records = (await changesOf(app, body.entity_id)).filter(({ statusCode }) => statusCode < 400);
  expect(records.map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', { entity_type: 'person' }],
    ['update', { fields: [] }],
    ['update', { fields: ['description', 'aliases', 'importance'] }],
    ['delete', {}],
  ]);
});

test('a name alone is enough: the rest has defaults', async () => {
  const graph = await createGraph(app);
  const body = await graph.entity('Berlin');
  expect(body).toMatchObject({ entity_type: 'other', importance: 0.5, description: null, tags: [], metadata: {} });
});

test('what is out of bounds is refused with its place, all at once', async () => {
  const { who, url } = await createGraph(app);
  const { status, body } = await who.call<{ detail: { loc: unknown[]; type: string }[] }>('POST', `${url}/entities`, {
    name: '',
    entity_type: 'Not A Word',
    aliases: [''],
    tags: Array.from({ length: 51 }, (_, n) => `t${n}`),
    importance: 1.5,
    mention_count: -1,
    metadata: { text: 'x'.repeat(17_000) },
  });
  expect(status).toBe(422);
  expect(body.detail.map(({ loc, type }) => [loc.join('.'), type])).toEqual([
    ['body.name', 'string_too_short'],
    ['body.entity_type', 'string_pattern_mismatch'],
    ['body.aliases.0', 'string_too_short'],
    ['body.tags', 'too_long'],
    ['body.importance', 'less_than_equal'],
    ['body.mention_count', 'greater_than_equal'],
    ['body.metadata', 'too_long'],
  ]);
  const limits = async (query: string) => (await who.call('GET', `${url}/entities?${query}`)).status;
  expect(await Promise.all(['limit=1000', 'limit=1', 'limit=0', 'limit=1001', 'depth=9'].map(limits))).toEqual([
    200, 200, 422, 422, 200,
  ]);
});

test('a name is taken once per type, ignoring case: 409 names the entity that has it', async () => {
  const graph = await createGraph(app);
  const { who, url } = graph;
  const first = await graph.entity('Émile', { entity_type: 'person' });
  const taken = {
    status: 409,
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'entity', field: 'name', resource_id: first.entity_id },
    },
  };
  const post = (body: object) => who.call('POST', `${url}/entities`, body);
  expect(await post({ name: 'ÉMILE', entity_type: 'person' })).toMatchObject(taken);
  expect((await post({ name: 'Émile', entity_type: 'place' })).status).toBe(201);
  const other = { name: 'émile', entity_type: 'person', metadata: { external_id: 7 } };
  expect((await post(other)).status).toBe(201);
  expect((await post({ ...other, metadata: { external_id: '7' } })).status).toBe(201);
  expect((await post(other)).status).toBe(409);
  expect((await post({ ...other, metadata: { external_id: 'x'.repeat(10_000) } })).status).toBe(201);
  const { entity_id: id } = await graph.entity('Zoë', { entity_type: 'person' });
  const put = (body: object) => who.call('PUT', `${url}/entities/${id}`, body);
  expect(await put({ name: 'émilE' })).toMatchObject(taken);
  expect((await put({ name: 'émilE', metadata: { external_id: 'own' } })).status).toBe(200);
  expect(await put({ metadata: {} })).toMatchObject(taken);
  expect((await put({ name: 'ÉMILE' })).status).toBe(200);
  // another app, another namespace
  const second = await createGraph(app, who);
  expect((await second.entity('Émile', { entity_type: 'person' })).entity_id).toMatch(/^ent_/);
  const { body: space } = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Two' });
  const elsewhere = graphAt(who, graph.appId, space.namespace_id);
  expect((await elsewhere.entity('Émile', { entity_type: 'person' })).namespace_id).toBe(space.namespace_id);
});

test('twenty creates of one name at once: one is created, the others name it', async () => {
  const { who, url } = await createGraph(app);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      who.call<Entity & { details: object }>('POST', `${url}/entities`, { name: 'One' }),
    ),
  );
  const made = answers.filter(({ status }) => status === 201);
  expect(made).toHaveLength(1);
  const refused = answers.filter(({ status }) => status === 409).map(({ body }) => body.details);
  expect(refused).toHaveLength(19);
  for (const details of refused) expect(details).toMatchObject({ resource_id: made[0]!.body.entity_id });
});

test('lists entities newest first by type, walked by cursor, within their app and namespace', async () => {
  const graph = await createGraph(app);
  const { who, url } = graph;
  const made: string[] = [];
  for (const [at, name] of ['a', 'b', 'c', 'd'].entries())
    made.push((await graph.entity(name, { entity_type: at % 2 ? 'place' : 'person' })).entity_id);
  await (await createGraph(app, who)).entity('of another app');
  made.reverse();
  const list = async (query: string) => (await who.call<Page>('GET', `${url}/entities?${query}`)).body;
  const first = await list('limit=3');
  expect(first).toMatchObject({ total: 4, has_more: true });
  const rest = await list(`limit=3&cursor=${first.next_cursor}`);
  expect(rest).toMatchObject({ total: 4, has_more: false, next_cursor: null });
  expect([...ids(first), ...ids(rest)]).toEqual(made);
  expect(await list('entity_type=place')).toMatchObject({ total: 2, has_more: false });
  expect(ids(await list('entity_type=place'))).toEqual([made[0], made[2]]);
  expect((await who.call('GET', `${url}/entities?entity_type=place&cursor=${first.next_cursor}`)).status).toBe(422);
});

test('what is of another app, namespace or tenant is not there', async () => {
  const graph = await createGraph(app);
  const { who } = graph;
  const { entity_id: id } = await graph.entity('Ada');
  const other = await createGraph(app, who);
  const stranger = await createGraph(app);
  for (const [method, suffix, body] of [
    ['GET', '', undefined],
    ['PUT', '', { name: 'Taken over' }],
    ['DELETE', '', undefined],
    ['POST', '/traverse', undefined],
  ] as const)
    for (const { who: caller, url } of [other, stranger])
      expect(await caller.call(method, `${url}/entities/${id}${suffix}`, body)).toMatchObject(notFound('entity', id));
  const apps = `${who.home}/apps`;
  expect(await who.call('GET', `${apps}/${stranger.appId}/namespaces/default/entities`)).toMatchObject(
    notFound('app', stranger.appId),
  );
  expect(await who.call('GET', `${apps}/${graph.appId}/namespaces/ns_none/entities`)).toMatchObject(
    notFound('namespace', 'ns_none'),
  );
  const mine = (await stranger.entity('Bob')).entity_id;
  expect(await stranger.relate(id, mine)).toMatchObject(notFound('entity', id));
  expect(await stranger.relate(mine, id)).toMatchObject(notFound('entity', id));
  expect(await graph.get(id)).toMatchObject({ name: 'Ada', relations: [], mention_count: 0 });
});

test('a relation shows on both ends, counts a mention of both, and is created once', async () => {
  const graph = await createGraph(app);
  const [ada, charles] = [await graph.entity('Ada'), await graph.entity('Charles')];
  const [from, to] = [ada.entity_id, charles.entity_id];
  expect(await graph.relate(from, to, 'works with', { weight: 0.5, metadata: { since: 1833 } })).toEqual({
    status: 200,
    body: null,
  });
  const shown = {
    relation_id: expect.stringMatching(/^rel_/),
    relation_type: 'works with',
    weight: 0.5,
    metadata: { since: 1833 },
    created_at: expect.any(String),
  };
  const once = await graph.get(from);
  expect(once).toEqual({
    ...ada,
    relations: [{ ...shown, direction: 'outgoing', target_entity_id: to, target_name: 'Charles' }],
    mention_count: 1,
    last_referenced_at: expect.any(String),
  });
  expect((await graph.get(to)).relations).toEqual([
    { ...shown, direction: 'incoming', target_entity_id: from, target_name: 'Ada' },
  ]);
  // the same again is no change
  expect(await graph.relate(from, to, 'works with', { weight: 0.5 })).toEqual({ status: 200, body: null });
  expect(await graph.get(from)).toEqual(once);
  await graph.relate(to, from, 'works with');
  await graph.relate(from, to, 'teaches');
  const both = await graph.get(from);
  expect(both.relations.map(({ relation_type, direction }) => [relation_type, direction])).toEqual([
    ['teaches', 'outgoing'],
    ['works with', 'incoming'],
    ['works with', 'outgoing'],
  ]);
  expect(both.mention_count).toBe(3);
  expect(await eventsOf(app, from)).toEqual(['entity.created', 'entity.related', 'entity.related']);
  const event = await app.database.prisma.event.findFirstOrThrow({
    where: { resourceId: from, type: 'entity.related' },
    orderBy: { seq: 'asc' },
  });
  expect(event.data).toEqual({
    relation_id: once.relations[0]!.relation_id,
    target_entity_id: to,
    relation_type: 'works with',
  });
  // relations go with their entity, and reads count nothing
  await graph.who.call('DELETE', `${graph.url}/entities/${to}`);
  expect(await graph.get(from)).toEqual({ ...both, relations: [] });
});

test('a relation to itself, of a bad type or with too much data is refused', async () => {
  const graph = await createGraph(app);
  const { entity_id: id } = await graph.entity('Ada');
  const other = (await graph.entity('Bob')).entity_id;
  expect(await graph.relate(id, id)).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ['body', 'target_entity_id'], type: 'value_error' }] },
  });
  expect((await graph.relate(id, other, '')).status).toBe(422);
  expect((await graph.relate(id, other, 'x'.repeat(65))).status).toBe(422);
  expect((await graph.relate(id, other, 'x', { metadata: { much: 'x'.repeat(2_100) } })).status).toBe(422);
  expect((await graph.relate(id, other, 'x', { weight: -1 })).status).toBe(422);
  expect(await graph.relate(id, 'ent_none')).toMatchObject(notFound('entity', 'ent_none'));
  expect(await graph.get(id)).toMatchObject({ relations: [], mention_count: 0 });
});

test('relations in both directions at once lose no mention', async () => {
  const graph = await createGraph(app);
  const [a, b] = [(await graph.entity('a')).entity_id, (await graph.entity('b')).entity_id];
  const all = Array.from({ length: 20 }, (_, n) => (n % 2 ? graph.relate(a, b, `t${n}`) : graph.relate(b, a, `t${n}`)));
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual(all.map(() => 200));
  const same = await Promise.all(Array.from({ length: 10 }, () => graph.relate(a, b, 'same')));
  expect(same.map(({ status }) => status)).toEqual(same.map(() => 200));
  for (const id of [a, b]) expect(await graph.get(id)).toMatchObject({ mention_count: 21 });
  expect((await graph.get(a)).relations).toHaveLength(21);
});

test('a greater mention_count says that it was mentioned now; the version rises with what a client sets', async () => {
  const graph = await createGraph(app);
  const { who, url } = graph;
  const { entity_id: id } = await graph.entity('Ada');
  const put = async (body: object) => (await who.call<Entity>('PUT', `${url}/entities/${id}`, body)).body;
  expect(await put({ mention_count: 4 })).toMatchObject({ mention_count: 4, last_referenced_at: expect.any(String) });
  const at = '2025-01-02T03:04:05.678Z';
  expect(await put({ last_referenced_at: at })).toMatchObject({ mention_count: 4, last_referenced_at: at });
  expect(await put({ mention_count: 2 })).toMatchObject({ mention_count: 2, last_referenced_at: at });
  expect(await put({ last_referenced_at: null, mention_count: 9 })).toMatchObject({
    mention_count: 9,
    last_referenced_at: null,
  });
  const etag = async () =>
    (await app.server.inject({ url: `${url}/entities/${id}`, headers: who.headers })).headers.etag;
  expect(await etag()).toBe('"5"');
  await graph.relate(id, (await graph.entity('Bob')).entity_id);
  expect(await etag()).toBe('"5"');
  const stale = await app.server.inject({
    method: 'PUT',
    url: `${url}/entities/${id}`,
    headers: { ...who.headers, 'if-match': '"4"' },
    payload: { name: 'Late' },
  });
  expect([stale.statusCode, stale.json()]).toEqual([412, expect.objectContaining({ details: { current_version: 5 } })]);
});

test('an entity shows its 200 newest relations; the relations of a page are read with one statement', async () => {
  const graph = await createGraph(app);
  const { who, url } = graph;
  const { entity_id: hub, namespace_id, workspace_id } = await graph.entity('Hub');
  await app.database.pool.query(
    `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, identity_key)
      select 'ent_' || lpad(n::text, 26, 'X') || $1, $2, $3, $4, $5, 'Spoke ' || n, n::text
      from generate_series(1, 250) n`,
    [hub.slice(-6), who.orgId, workspace_id, graph.appId, namespace_id],
  );
  await app.database.pool.query(
    `insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type)
      select 'rel_' || lpad(substr(name, 7), 26, '0') || $1, org_id, workspace_id, app_id, namespace_id, $2, id, 'has'
      from entities where app_id = $3 and name like 'Spoke %'`,
    [hub.slice(-6), hub, graph.appId],
  );
  const names = (await graph.get(hub)).relations.map(({ target_name }) => target_name);
  expect(names).toEqual(Array.from({ length: 200 }, (_, n) => `Spoke ${250 - n}`));
  const log = logQueries(app.database.pool);
  // on a slow machine, what is known of the caller is read again in between, with the identity providers
  const list = async (limit: number) =>
    (await log.during(() => who.call('GET', `${url}/entities?limit=${limit}`))).filter((text) => /\bentit/.test(text));
  const few = await list(2);
  const many = await list(250);
  expect(many.filter((text) => text.includes('entity_relations'))).toHaveLength(1);
  expect(many.length).toBe(few.length);
});

test('roles: members create, change and relate, editors delete, viewers only read', async () => {
  const graph = await createGraph(app);
  const outcome: Record<string, unknown> = {};
  for (const role of ['viewer', 'member', 'editor'] as const) {
    const somebody = await colleague(app, graph.who, role);
    const { url } = graph;
    const [a, b] = [await graph.entity(`${role} a`), await graph.entity(`${role} b`)];
    const theirs = graphAt(somebody, graph.appId, 'default', graph.who.home);
    const one = `${url}/entities/${a.entity_id}`;
    outcome[role] = [
      (await somebody.call('GET', one)).status,
      (await somebody.call('POST', `${one}/traverse`)).status,
      (await somebody.call('POST', `${url}/entities`, { name: `by ${role}` })).status,
      (await somebody.call('PUT', one, { tags: ['x'] })).status,
      (await theirs.relate(a.entity_id, b.entity_id)).status,
      (await somebody.call('DELETE', one)).status,
    ];
  }
  expect(outcome).toEqual({
    viewer: [200, 200, 403, 403, 403, 403],
    member: [200, 200, 201, 200, 200, 403],
    editor: [200, 200, 201, 200, 200, 200],
  });
});

test('a repeated create with an idempotency key creates one entity', async () => {
  const graph = await createGraph(app);
  const create = () =>
    app.server.inject({
      method: 'POST',
      url: `${graph.url}/entities`,
      headers: { ...graph.who.headers, 'idempotency-key': 'once' },
      payload: { name: 'Ada' },
    });
  const [first, second] = [await create(), await create()];
  expect([first.statusCode, second.statusCode]).toEqual([201, 201]);
  expect(second.json()).toEqual(first.json());
  expect(await app.database.prisma.entity.count({ where: { appId: graph.appId } })).toBe(1);
});

test('entities go with their app and with their namespace', async () => {
  const who = await register(app, { name: 'ann' });
  const { body: space } = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Two' });
  const one = await createGraph(app, who);
  const two = await createGraph(app, who, space.namespace_id);
  for (const graph of [one, two]) {
    const [a, b] = [(await graph.entity('a')).entity_id, (await graph.entity('b')).entity_id];
    await graph.relate(a, b);
    await graph.memory('They know each other.', [a, b]);
  }
  const left = async () => {
    const { entity, entityRelation, memory, memoryEntity } = app.database.prisma;
    const where = { appId: { in: [one.appId, two.appId] } };
    return [entity, entityRelation, memory, memoryEntity].map((table) =>
      (table.count as (of: object) => Promise<number>)({ where }),
    );
  };
  expect(await Promise.all(await left())).toEqual([4, 2, 2, 4]);
  expect((await who.call('DELETE', `${who.home}/apps/${one.appId}`)).status).toBe(204);
  expect(await Promise.all(await left())).toEqual([2, 1, 1, 2]);
  expect((await who.call('DELETE', `${who.home}/namespaces/${space.namespace_id}`)).status).toBe(204);
  expect(await Promise.all(await left())).toEqual([0, 0, 0, 0]);
});

test('a relation can be deleted, with its event and its record', async () => {
  const graph = await createGraph(app);
  const [a, b] = [(await graph.entity('a')).entity_id, (await graph.entity('b')).entity_id];
  await graph.relate(a, b);
  const [relation] = (await graph.get(a)).relations;
  const url = `${graph.url}/entities/relations/${relation!.relation_id}`;
  expect(await graph.who.call('DELETE', url)).toEqual({ status: 204, body: null });
  expect(await graph.who.call('DELETE', url)).toMatchObject(notFound('entity_relation', relation!.relation_id));
  expect(await graph.get(b)).toMatchObject({ relations: [], mention_count: 1 });
  expect(await eventsOf(app, a)).toEqual(['entity.created', 'entity.related', 'entity.unrelated']);
  expect((await changesOf(app, a)).map(({ action }) => action)).toEqual(['create', 'relate', 'unrelate']);
});

test('the same relation again is changed to what is given, and its id is answered', async () => {
  const graph = await createGraph(app);
  const [a, b] = [(await graph.entity('a')).entity_id, (await graph.entity('b')).entity_id];
  const put = (more: object = {}) =>
    graph.who.call<{ relation_id: string }>('PUT', `${graph.url}/entities/relations`, {
      source_entity_id: a,
      target_entity_id: b,
      relation_type: 'knows',
      ...more,
    });
  const first = await put({ weight: 2, metadata: { since: 1 }, valid_from: '2020-01-01T00:00:00Z' });
  const shown = {
    relation_id: first.body.relation_id,
    relation_type: 'knows',
    direction: 'outgoing',
    target_entity_id: b,
    target_name: 'b',
    weight: 2,
    metadata: { since: 1 },
    valid_from: '2020-01-01T00:00:00.000Z',
    valid_to: null,
    created_at: expect.any(String),
  };
  expect(first).toEqual({ status: 200, body: shown });
  expect(await put()).toEqual(first);
  expect(await put({ weight: null, metadata: { since: 1 } })).toEqual(first);
  expect(await eventsOf(app, a)).toEqual(['entity.created', 'entity.related']);
  expect(await graph.relate(a, b, 'knows', { weight: 3 })).toEqual({ status: 200, body: null });
  const changed = await put({ metadata: {}, valid_from: null, valid_to: '2021-01-01T00:00:00Z' });
  expect(changed.body).toEqual({
    ...shown,
    weight: 3,
    metadata: {},
    valid_from: null,
    valid_to: '2021-01-01T00:00:00.000Z',
  });
  expect(await eventsOf(app, a)).toEqual(['entity.created', ...Array.from({ length: 3 }, () => 'entity.related')]);
  expect(await graph.get(b)).toMatchObject({ mention_count: 1, relations: [{ weight: 3, metadata: {} }] });
  const late = await put({ valid_from: '2021-01-01T00:00:00Z' });
  expect(late).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'valid_to'] }] } });
  expect((await put()).body).toEqual(changed.body);
});
