import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, eventsOf, register } from '../../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Application {
  application_id: string;
  [field: string]: unknown;
}

test('creates, lists, changes and deletes applications, with their events and records', async () => {
  const who = await register(app);

  const url = `/v1/orgs/${who.orgId}/applications`;
  const { status, body } = await who.call<Application>('POST', url, { name: 'First', description: 'Of a test.' });
  expect(status).toBe(201);
  expect(body).toEqual({
    application_id: expect.stringMatching(/^apl_/),
    org_id: who.orgId,
    name: 'First',
    description: 'Of a test.',
    created_by: who.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = `${url}/${body.application_id}`;
  const list = await who.call<{ applications: Application[]; total: number }>('GET', url);
  expect([list.body.total, list.body.applications]).toEqual([1, [body]]);
  const changed = { ...body, description: null, updated_at: expect.any(String) };
  expect((await who.call('PATCH', one, { description: null })).body).toEqual(changed);
  expect((await who.call('GET', one)).body).toEqual(changed);
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
  expect((await who.call('GET', one)).status).toBe(404);
  expect(await eventsOf(app, body.application_id)).toEqual([
    'application.created',
    'application.updated',
    'application.deleted',
  ]);
  expect((await changesOf(app, body.application_id)).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', {}],
    ['update', { fields: ['description'] }],
    ['delete', {}],
  ]);
});
