import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, eventsOf, register } from '../../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Issued {
  application: { application_id: string; [field: string]: unknown };
  secret: string | null;
}

test('creates, lists, changes and deletes applications, with their events and records', async () => {
  const who = await register(app);
  const url = `/v1/orgs/${who.orgId}/applications`;
  const { status, body } = await who.call<Issued>('POST', url, {
    name: 'Notes',
    description: 'Of a test.',
    application_type: 'confidential',
    redirect_uris: ['https://notes.example.test/callback'],
  });
  expect([status, body]).toEqual([
    201,
    {
      application: {
        application_id: expect.stringMatching(/^apl_/),
        org_id: who.orgId,
        name: 'Notes',
        description: 'Of a test.',
        application_type: 'confidential',
        redirect_uris: ['https://notes.example.test/callback'],
        is_first_party: false,
        id_token_signed_response_alg: 'ES256',
        metadata_url: null,
        secret_changed_at: expect.any(String),
        created_by: who.userId,
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
      secret: expect.stringMatching(/^aps_[\w-]{43}$/),
    },
  ]);
  const id = body.application.application_id;
  const one = `${url}/${id}`;
  const list = await who.call<{ applications: object[]; total: number }>('GET', url);
  expect([list.body.total, list.body.applications]).toEqual([1, [body.application]]);
  const changed = { ...body.application, description: null, is_first_party: true, updated_at: expect.any(String) };
  expect((await who.call('PATCH', one, { description: null, is_first_party: true })).body).toEqual(changed);
  expect((await who.call('GET', one)).body).toEqual(changed);
  const rotated = await who.call<Issued>('POST', `${one}/rotate-secret`);
  expect([rotated.status, rotated.body.application.application_id]).toEqual([200, id]);
  expect(rotated.body.secret).not.toBe(body.secret);
  const { rows } = await app.database.pool.query<{ text: string }>('select a::text as text from applications a');
  expect(rows.map(({ text }) => text).join()).not.toContain(rotated.body.secret);
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
  expect((await who.call('GET', one)).status).toBe(404);
  expect(await eventsOf(app, id)).toEqual([
    'application.created',
    'application.updated',
    'application.updated',
    'application.deleted',
  ]);
  expect((await changesOf(app, id)).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', {}],
    ['update', { fields: ['description', 'isFirstParty'] }],
    ['update', { fields: ['secret'] }],
    ['delete', {}],
  ]);
});

test('a public application has no secret, and gets none', async () => {
  const who = await register(app);
  const url = `/v1/orgs/${who.orgId}/applications`;
  const input = { name: 'Shell', application_type: 'public', redirect_uris: [] };
  const { body } = await who.call<Issued>('POST', url, input);
  expect([body.secret, body.application.secret_changed_at]).toEqual([null, null]);
  const refused = await who.call('POST', `${url}/${body.application.application_id}/rotate-secret`);
  expect([refused.status, refused.body]).toMatchObject([409, { details: { reason: 'invalid_status' } }]);
  expect((await who.call('POST', `${url}/apl_nothing/rotate-secret`)).status).toBe(404);
});
