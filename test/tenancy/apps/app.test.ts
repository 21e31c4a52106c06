import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AppFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type AppBody = RestBody<AppFragment>;

test('makes an app, changes what is given, clears what is null, deletes it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<AppBody>('POST', `${ann.home}/apps`, {
    name: 'Shop',
    description: 'Sells',
    metadata: { colour: 'red' },
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    app_id: expect.stringMatching(/^app_/),
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    name: 'Shop',
    description: 'Sells',
    metadata: { colour: 'red' },
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const url = `${ann.home}/apps/${body.app_id}`;
  expect((await ann.call('GET', url)).body).toEqual(body);
  expect((await ann.call('PUT', url, { description: null })).body).toMatchObject({
    name: 'Shop',
    description: null,
    metadata: { colour: 'red' },
  });
  expect((await ann.call('PUT', url, { name: '' })).status).toBe(422);
  expect((await ann.call('POST', `${ann.home}/apps`, {})).status).toBe(422);
  expect(await ann.call('DELETE', url)).toEqual({ status: 204, body: null });
  expect(await ann.call('GET', url)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'app', resource_id: body.app_id } },
  });
  expect(await eventsOf(app, body.app_id)).toEqual(['app.created', 'app.updated', 'app.deleted']);
  expect((await changesOf(app, body.app_id)).filter(({ statusCode }) => statusCode < 400)).toMatchObject([
    {
      action: 'create',
      resourceType: 'app',
      orgId: ann.orgId,
      workspaceId: ann.workspaceId,
      userId: ann.userId,
      statusCode: 201,
    },
    { action: 'update', statusCode: 200, metadata: { fields: ['description'] } },
    { action: 'delete', statusCode: 204 },
  ]);
});

test('roles: everybody reads, editors change', async () => {
  const owner = await register(app, { name: 'owner' });
  const url = `${owner.home}/apps`;
  const outcome: Record<string, number[]> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const { app_id } = (await owner.call<AppBody>('POST', url, { name: role })).body;
    const answers = [
      await somebody.call('GET', url),
      await somebody.call('POST', url, { name: 'x' }),
      await somebody.call('PUT', `${url}/${app_id}`, { name: 'y' }),
      await somebody.call('DELETE', `${url}/${app_id}`),
    ];
    outcome[role] = answers.map(({ status }) => status);
  }
  expect(outcome).toEqual({
    viewer: [200, 403, 403, 403],
    member: [200, 403, 403, 403],
    editor: [200, 201, 200, 204],
    admin: [200, 201, 200, 204],
  });
});

test('an app of another workspace is missing', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const { app_id } = (await ann.call<AppBody>('POST', `${ann.home}/apps`, { name: 'secret plans' })).body;
  for (const [method, payload] of [
    ['GET', undefined],
    ['PUT', { name: 'x' }],
    ['DELETE', undefined],
  ] as const) {
    expect(await eve.call(method, `${eve.home}/apps/${app_id}`, payload)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'app', resource_id: app_id } },
    });
    expect((await eve.call(method, `${ann.home}/apps/${app_id}`, payload)).status).toBe(403);
  }
  expect((await ann.call('GET', `${ann.home}/apps/${app_id}`)).body).toMatchObject({ name: 'secret plans' });
  expect((await eve.call('GET', `${eve.home}/apps`)).body).toMatchObject({ total: 0, apps: [] });
});
