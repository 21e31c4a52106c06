import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { eventsOf } from '../../support/person.ts';
import { createPipeline, type Endpoint } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('makes an endpoint, changes what is given, deletes it', async () => {
  const { who, url, appId, augmentation, endpoint } = await createPipeline(app);
  const { augmentation_id } = await augmentation();
  const { status, body } = await endpoint({ path: '/v1/chat', augmentation_id, metadata: { aB: 1 } });
  expect(status).toBe(201);
  expect(body).toEqual({
    endpoint_id: expect.stringMatching(/^ep_/),
    org_id: who.orgId,
    workspace_id: who.workspaceId,
    app_id: appId,
    name: 'Chat',
    description: null,
    path: '/v1/chat',
    method: 'POST',
    augmentation_id,
    enabled: true,
    metadata: { aB: 1 },
    created_by: who.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = `${url}/endpoints/${body.endpoint_id}`;
  const other = await augmentation({ name: 'Other' });
  const change = { path: '/chat', method: 'GET', augmentation_id: other.augmentation_id, enabled: false };
  const changed = await who.call<Endpoint>('PATCH', one, change);
  expect(changed.body).toEqual({ ...body, ...change, updated_at: expect.any(String) });
  expect((await who.call('GET', one)).body).toEqual(changed.body);
  // its own path is no other one's
  expect((await who.call('PATCH', one, { path: '/chat' })).status).toBe(200);
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
  expect(await eventsOf(app, body.endpoint_id)).toEqual([
    'endpoint.created',
    'endpoint.updated',
    'endpoint.updated',
    'endpoint.deleted',
  ]);
});

test('a path is taken once in an app, also by ten at once, and free in another app', async () => {
  const { who, url, augmentation, endpoint } = await createPipeline(app);
  const { augmentation_id } = await augmentation();
  const made = await Promise.all(Array.from({ length: 10 }, () => endpoint({ path: '/chat', augmentation_id })));
  const winner = made.find(({ status }) => status === 201)!.body;
  expect(made.filter(({ status }) => status === 409)).toHaveLength(9);
  const { body: second } = await endpoint({ path: '/second', augmentation_id });
  const refused = await who.call<{ error: string; details: unknown }>(
    'PATCH',
    `${url}/endpoints/${second.endpoint_id}`,
    { path: '/chat' },
  );
  expect([refused.status, refused.body.error]).toEqual([409, 'RESOURCE_ALREADY_EXISTS']);
  expect(refused.body.details).toEqual({
    resource_type: 'endpoint',
    field: 'path',
    value: '/chat',
    resource_id: winner.endpoint_id,
  });
  const elsewhere = await createPipeline(app, who);
  const own = await elsewhere.augmentation();
  expect((await elsewhere.endpoint({ path: '/chat', augmentation_id: own.augmentation_id })).status).toBe(201);
});

test('runs only an augmentation of its own app', async () => {
  const { who, url, augmentation, endpoint } = await createPipeline(app);
  const elsewhere = await createPipeline(app, who);
  const foreign = await elsewhere.augmentation();
  const refused = await endpoint({ path: '/chat', augmentation_id: foreign.augmentation_id });
  expect(refused.status).toBe(404);
  expect(refused.body).toMatchObject({
    details: { resource_type: 'augmentation', resource_id: foreign.augmentation_id },
  });
  const { augmentation_id } = await augmentation();
  const { body } = await endpoint({ path: '/chat', augmentation_id });
  const change = { augmentation_id: foreign.augmentation_id };
  expect((await who.call('PATCH', `${url}/endpoints/${body.endpoint_id}`, change)).status).toBe(404);
});

test.each(['chat', '/', '/Chat', '/a//b', '/a/', '/a b', '/../a', '/a?b', `/${'a'.repeat(128)}`])(
  'refuses the path %j',
  async (path) => {
    const { augmentation, endpoint } = await createPipeline(app);
    const { augmentation_id } = await augmentation();
    const { status, body } = await endpoint({ path, augmentation_id });
    expect(status).toBe(422);
    expect(body).toMatchObject({ detail: [{ loc: ['body', 'path'] }] });
  },
);
