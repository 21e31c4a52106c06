import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ThreadFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Thread = RestBody<ThreadFragment>;

const threads = (owner: Person, namespaceId = 'default') => `${owner.home}/namespaces/${namespaceId}/threads`;
const start = async (who: Person, url: string, payload: object = {}) =>
  (await who.call<Thread>('POST', url, payload)).body;

test('starts a thread, changes what is given, clears what is null, deletes it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<Thread>('POST', threads(ann), {
    title: 'Hello',
    metadata: { aB: [1, null] },
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    thread_id: expect.stringMatching(/^thr_/),
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    namespace_id: expect.stringMatching(/^ns_/),
    title: 'Hello',
    metadata: { aB: [1, null] },
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const url = `${threads(ann)}/${body.thread_id}`;
  expect((await ann.call('GET', url)).body).toEqual(body);
  expect((await ann.call('PUT', url, { metadata: {} })).body).toMatchObject({ title: 'Hello', metadata: {} });
  expect((await ann.call('PUT', url, { title: null })).body).toMatchObject({ title: null, metadata: {} });
  expect((await ann.call('PUT', url, { metadata: null })).status).toBe(422);
  expect(await ann.call('DELETE', url)).toEqual({ status: 204, body: null });
  expect(await ann.call('DELETE', url)).toMatchObject({ status: 404, body: { details: { resource_type: 'thread' } } });
  expect(await eventsOf(app, body.thread_id)).toEqual([
    'thread.created',
    'thread.updated',
    'thread.updated',
    'thread.deleted',
  ]);
  expect(
    (await changesOf(app, body.thread_id))
      .filter(({ statusCode }) => statusCode < 400)
      .map(({ action, metadata }) => [action, metadata]),
  ).toEqual([
    ['create', {}],
    ['update', { fields: ['metadata'] }],
    ['update', { fields: ['title'] }],
    ['delete', {}],
  ]);
});

test('lists threads newest first, walked by cursor; a cursor of another list is refused', async () => {
  const ann = await register(app, { name: 'ann' });
  const made = [];
  for (const title of ['a', 'b', 'c']) made.push((await start(ann, threads(ann), { title })).thread_id);
  interface Page {
    total: number;
    has_more: boolean;
    next_cursor: string | null;
    threads: Thread[];
  }
  const first = (await ann.call<Page>('GET', `${threads(ann)}?limit=2`)).body;
  expect(first).toMatchObject({ total: 3, has_more: true });
  const second = (await ann.call<Page>('GET', `${threads(ann)}?limit=2&cursor=${first.next_cursor}`)).body;
  expect(second).toMatchObject({ total: 3, has_more: false, next_cursor: null });
  expect([...first.threads, ...second.threads].map((thread) => thread.thread_id)).toEqual(made.reverse());
  expect((await ann.call('GET', `${ann.home}/apps?cursor=${first.next_cursor}`)).status).toBe(422);
});

test('roles: members change and delete what they started, editors everything, viewers nothing', async () => {
  const owner = await register(app, { name: 'owner' });
  const url = threads(owner);
  const outcome: Record<string, unknown> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const foreign = await start(owner, url);
    const own = await somebody.call<Thread>('POST', url, {});
    const target = own.status === 201 ? own.body : foreign;
    outcome[role] = {
      read: (await somebody.call('GET', url)).status,
      create: own.status,
      own: [
        (await somebody.call('PUT', `${url}/${target.thread_id}`, { title: 'x' })).status,
        (await somebody.call('DELETE', `${url}/${target.thread_id}`)).status,
      ],
      others: [
        (await somebody.call('PUT', `${url}/${foreign.thread_id}`, { title: 'x' })).status,
        (await somebody.call('DELETE', `${url}/${foreign.thread_id}`)).status,
      ],
    };
  }
  expect(outcome).toEqual({
    viewer: { read: 200, create: 403, own: [403, 403], others: [403, 403] },
    member: { read: 200, create: 201, own: [200, 204], others: [403, 403] },
    editor: { read: 200, create: 201, own: [200, 204], others: [200, 204] },
    admin: { read: 200, create: 201, own: [200, 204], others: [200, 204] },
  });
});

test('a thread under another namespace is missing, as is one under a foreign namespace', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const { namespace_id } = (
    await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Other' })
  ).body;
  const { thread_id, namespace_id: home } = await start(ann, threads(ann), { title: 'kept' });
  for (const [method, payload] of [
    ['GET', undefined],
    ['PUT', { title: 'x' }],
    ['DELETE', undefined],
  ] as const) {
    expect(await ann.call(method, `${threads(ann, namespace_id)}/${thread_id}`, payload)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'thread', resource_id: thread_id } },
    });
    expect(await eve.call(method, `${threads(eve)}/${thread_id}`, payload)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'thread', resource_id: thread_id } },
    });
    expect(await eve.call(method, `${threads(eve, home as string)}/${thread_id}`, payload)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'namespace' } },
    });
    expect((await eve.call(method, `${threads(ann)}/${thread_id}`, payload)).status).toBe(403);
  }
  expect(await eve.call('POST', threads(eve, home as string), {})).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'namespace', resource_id: home } },
  });
  expect((await ann.call('GET', `${threads(ann)}/${thread_id}`)).body).toMatchObject({ title: 'kept' });
});
