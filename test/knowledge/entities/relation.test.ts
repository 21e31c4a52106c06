import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, eventsOf } from '../../support/person.ts';
import { createGraph } from './graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Relation {
  relation_id: string;
  created_at: string;
}

/** Ada works at Corp. */
async function related() {
  const graph = await createGraph(app);
  const [ada, corp] = [(await graph.entity('Ada')).entity_id, (await graph.entity('Corp')).entity_id];
  const url = `${graph.url}/entities/relations`;
  const put = (type: string, more: object = {}) =>
    graph.who.call<Relation>('PUT', url, {
      source_entity_id: ada,
      target_entity_id: corp,
      relation_type: type,
      ...more,
    });
  const { body } = await put('works_at', { weight: 2, metadata: { since: 'spring' } });
  return { graph, ada, corp, put, relation: body, url: `${url}/${body.relation_id}` };
}

test('a relation is changed by its id: what is given changes, and both of its entities see it', async () => {
  const { graph, ada, corp, relation, url } = await related();
  const { who } = graph;
  const wanted = {
    ...relation,
    direction: 'outgoing',
    target_entity_id: corp,
    target_name: 'Corp',
    relation_type: 'worked_at',
    weight: 2,
    metadata: { since: 'spring' },
    valid_from: null,
    valid_to: '2026-01-01T00:00:00.000Z',
  };
  const change = { relation_type: 'worked_at', valid_to: '2026-01-01T00:00:00Z' };
  expect(await who.call('PUT', url, change)).toMatchObject({ status: 200, body: wanted });
  const more = { weight: 0, metadata: {}, valid_from: '2025-01-01T00:00:00Z', valid_to: null };
  const changed = { ...wanted, ...more, valid_from: '2025-01-01T00:00:00.000Z' };
  expect((await who.call('PUT', url, more)).body).toEqual(changed);
  expect((await who.call('PUT', url, {})).body).toEqual(changed);
  expect((await graph.get(corp)).relations).toMatchObject([
    { relation_id: relation.relation_id, direction: 'incoming', relation_type: 'worked_at', weight: 0 },
  ]);
  // a relation is mentioned once: its change mentions nobody
  expect((await graph.get(ada)).mention_count).toBe(1);
});

test('each change is told with the relation, and leaves a record', async () => {
  const { graph, ada, relation, url } = await related();
  await graph.who.call('PUT', url, { weight: 5 });
  expect(await eventsOf(app, ada)).toEqual(['entity.created', 'entity.related', 'entity.related']);
  const changes = await changesOf(app, ada);
  expect(changes.filter(({ action }) => action === 'relate')).toHaveLength(2);
  expect(changes.at(-1)).toMatchObject({
    action: 'relate',
    metadata: { relation_id: relation.relation_id, relation_type: 'works_at' },
  });
});

test('what is wrong is refused, and nothing changes', async () => {
  const { graph, put, relation, url } = await related();
  const { who } = graph;
  const other = (await put('knows')).body;
  expect(await who.call('PUT', url, { relation_type: 'knows' })).toMatchObject({
    status: 409,
    body: { details: { resource_type: 'entity_relation', field: 'relation_type', value: 'knows' } },
  });
  const bad = [
    { relation_type: '' },
    { relation_type: null },
    { weight: -1 },
    { weight: null },
    { metadata: null },
    { valid_from: 'soon' },
    { valid_from: '2026-01-01T00:00:00Z', valid_to: '2026-01-01T00:00:00Z' },
  ];
  for (const body of bad) expect([body, (await who.call('PUT', url, body)).status]).toEqual([body, 422]);
  // the other bound is the one that is there
  await who.call('PUT', url, { valid_from: '2026-01-01T00:00:00Z' });
  expect(await who.call('PUT', url, { valid_to: '2025-01-01T00:00:00Z' })).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ['body', 'valid_to'] }] },
  });
  const elsewhere = await createGraph(app, who);
  for (const id of ['rel_nobody', other.relation_id]) {
    const answer = await who.call('PUT', `${elsewhere.url}/entities/relations/${id}`, { weight: 3 });
    expect(answer).toMatchObject({ status: 404, body: { details: { resource_id: id } } });
  }
  expect((await who.call('PUT', url, {})).body).toEqual({ ...relation, valid_from: '2026-01-01T00:00:00.000Z' });
});

test('a change can ask for the version that it knows, over REST and GraphQL', async () => {
  const { graph, relation, url } = await related();
  const { who, appId } = graph;
  const put = (weight: number, version: string) =>
    app.server.inject({ method: 'PUT', url, headers: { ...who.headers, 'if-match': version }, payload: { weight } });
  const first = await put(3, '"1"');
  expect([first.statusCode, first.headers.etag]).toEqual([200, '"2"']);
  expect((await put(4, '"1"')).statusCode).toBe(412);
  const { orgId, workspaceId } = who;
  const change = (weight: number, version: number) =>
    who.ask(
      `mutation ($orgId: ID!, $workspaceId: ID!, $appId: ID!, $id: ID!, $weight: Float!, $version: Int!) {
        updateEntityRelation(orgId: $orgId, workspaceId: $workspaceId, appId: $appId, namespaceId: "default",
          relationId: $id, input: { weight: $weight }, expectedVersion: $version) { weight resourceVersion }
      }`,
      { orgId, workspaceId, appId, id: relation.relation_id, weight, version },
    );
  expect(await change(5, 2)).toEqual({ data: { updateEntityRelation: { weight: 5, resourceVersion: 3 } } });
  expect(JSON.stringify(await change(6, 2))).toContain('PRECONDITION_FAILED');
  const remove = (version: string) =>
    app.server.inject({ method: 'DELETE', url, headers: { ...who.headers, 'if-match': version } });
  expect([(await remove('"2"')).statusCode, (await remove('"3"')).statusCode]).toEqual([412, 204]);
});
