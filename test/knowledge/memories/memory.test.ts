import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf } from '../../support/person.ts';
import { createGraph, type Memory } from '../entities/graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('creates a memory of entities, changes it, deletes it; its entities name it', async () => {
  const graph = await createGraph(app);
  const { who, url, appId } = graph;
  const [a, b] = [(await graph.entity('a')).entity_id, (await graph.entity('b')).entity_id];
  const { status, body } = await who.call<Memory>('POST', `${url}/memories`, {
    content: 'They met in 1833.',
    tags: ['history'],
    metadata: { aB: 1 },
    entity_ids: [a, b, a],
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    memory_id: expect.stringMatching(/^mem_/),
    org_id: who.orgId,
    workspace_id: who.workspaceId,
    app_id: appId,
    namespace_id: expect.stringMatching(/^ns_/),
    content: 'They met in 1833.',
    tags: ['history'],
    metadata: { aB: 1 },
    entity_ids: [b, a],
    created_by: who.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = `${url}/memories/${body.memory_id}`;
  expect((await who.call('GET', one)).body).toEqual(body);
  for (const id of [a, b]) expect((await graph.get(id)).source_memory_ids).toEqual([body.memory_id]);
  const changed = { ...body, entity_ids: [b], updated_at: expect.any(String) };
  expect((await who.call('PUT', one, { entity_ids: [b] })).body).toEqual(changed);
  expect((await graph.get(a)).source_memory_ids).toEqual([]);
  expect((await who.call('PUT', one, { content: null })).status).toBe(422);
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
  expect((await graph.get(b)).source_memory_ids).toEqual([]);
  expect(await eventsOf(app, body.memory_id)).toEqual(['memory.created', 'memory.updated', 'memory.deleted']);
  expect((await changesOf(app, body.memory_id)).slice(0, 2).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', {}],
    ['update', { fields: ['entityIds'] }],
  ]);
});

test('links can be made from the side of the entity, newest memory first', async () => {
  const graph = await createGraph(app);
  const [first, second, third] = [await graph.memory('1'), await graph.memory('2'), await graph.memory('3')];
  const ids = [first.memory_id, second.memory_id, third.memory_id];
  const made = await graph.entity('Ada', { source_memory_ids: [ids[0], ids[1], ids[0]] });
  expect(made.source_memory_ids).toEqual([ids[1], ids[0]]);
  const url = `${graph.url}/entities/${made.entity_id}`;
  const put = { source_memory_ids: [ids[2], ids[1]] };
  expect((await graph.who.call('PUT', url, put)).body).toMatchObject({ source_memory_ids: [ids[2], ids[1]] });
  const get = (at: number) => graph.who.call<Memory>('GET', `${graph.url}/memories/${ids[at]}`);
  expect((await get(0)).body.entity_ids).toEqual([]);
  expect((await get(2)).body.entity_ids).toEqual([made.entity_id]);
  expect((await graph.who.call('PUT', url, { source_memory_ids: [] })).body).toMatchObject({ source_memory_ids: [] });
});

test('both sides of a link must be in the app and namespace: 404 names what is not', async () => {
  const graph = await createGraph(app);
  const other = await createGraph(app, graph.who);
  const entity = (await other.entity('Bob')).entity_id;
  const memory = (await other.memory('Something')).memory_id;
  const missing = (type: string, id: string) => ({
    status: 404,
    body: { details: { resource_type: type, resource_id: id } },
  });
  const post = (path: string, body: object) => graph.who.call('POST', `${graph.url}/${path}`, body);
  expect(await post('memories', { content: 'x', entity_ids: [entity] })).toMatchObject(missing('entity', entity));
  expect(await post('entities', { name: 'x', source_memory_ids: [memory] })).toMatchObject(missing('memory', memory));
  expect(await app.database.prisma.memory.count({ where: { appId: graph.appId } })).toBe(0);
  expect(await app.database.prisma.entity.count({ where: { appId: graph.appId } })).toBe(0);
  const many = Array.from({ length: 51 }, () => entity);
  expect((await post('memories', { content: 'x', entity_ids: many })).status).toBe(422);
  expect((await post('memories', { content: 'x'.repeat(8_001) })).status).toBe(422);
});

test('roles: members create and change memories, editors delete them', async () => {
  const graph = await createGraph(app);
  const outcome: Record<string, number[]> = {};
  for (const role of ['viewer', 'member', 'editor'] as const) {
    const somebody = await colleague(app, graph.who, role);
    const one = `${graph.url}/memories/${(await graph.memory(role)).memory_id}`;
    outcome[role] = [
      (await somebody.call('GET', one)).status,
      (await somebody.call('POST', `${graph.url}/memories`, { content: 'x' })).status,
      (await somebody.call('PUT', one, { content: 'x' })).status,
      (await somebody.call('DELETE', one)).status,
    ];
  }
  expect(outcome).toEqual({ viewer: [200, 403, 403, 403], member: [200, 201, 200, 403], editor: [200, 201, 200, 204] });
});
