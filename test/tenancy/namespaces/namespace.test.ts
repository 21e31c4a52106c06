import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NamespaceFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Namespace = RestBody<NamespaceFragment>;

test('makes a namespace whose slug comes from its name, and shows it by id', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<Namespace>('POST', `${ann.home}/namespaces`, {
    name: 'Été à Paris, 2025!',
    description: 'Trips',
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    namespace_id: expect.stringMatching(/^ns_/),
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    name: 'Été à Paris, 2025!',
    slug: 'ete-a-paris-2025',
    description: 'Trips',
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  expect((await ann.call('GET', `${ann.home}/namespaces/${body.namespace_id}`)).body).toEqual(body);
  expect((await ann.call<Namespace>('POST', `${ann.home}/namespaces`, { name: '東京' })).body.slug).toMatch(
    /^ns-[0-9a-z]{26}$/,
  );
  expect(await eventsOf(app, body.namespace_id)).toEqual(['namespace.created']);
  expect(await changesOf(app, body.namespace_id)).toEqual([
    {
      action: 'create',
      resourceType: 'namespace',
      orgId: ann.orgId,
      workspaceId: ann.workspaceId,
      userId: ann.userId,
      statusCode: 201,
      metadata: {},
    },
  ]);
});

test('a slug is taken once per workspace: 409 names the namespace that has it', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  const { body: first } = await ann.call<Namespace>('POST', `${ann.home}/namespaces`, {
    name: 'One',
    slug: 'research',
  });
  const { body: second } = await ann.call<Namespace>('POST', `${ann.home}/namespaces`, { name: 'Two' });
  const taken = {
    status: 409,
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'namespace', field: 'slug', value: 'research', resource_id: first.namespace_id },
    },
  };
  expect(await ann.call('POST', `${ann.home}/namespaces`, { name: 'Research' })).toMatchObject(taken);
  expect(await ann.call('PUT', `${ann.home}/namespaces/${second.namespace_id}`, { slug: 'research' })).toMatchObject(
    taken,
  );
  expect((await bob.call('POST', `${bob.home}/namespaces`, { name: 'Research' })).status).toBe(201);
  expect((await ann.call('POST', `${ann.home}/namespaces`, { name: 'x', slug: 'No Slug' })).status).toBe(422);
});

test('the slug default stands for the id, in every path; no other slug does', async () => {
  const ann = await register(app, { name: 'ann' });
  const { body } = await ann.call<Namespace>('GET', `${ann.home}/namespaces/default`);
  expect(body).toMatchObject({ name: 'Default', slug: 'default', workspace_id: ann.workspaceId });
  expect((await ann.call('GET', `${ann.home}/namespaces/${body.namespace_id}`)).body).toEqual(body);
  await ann.call('POST', `${ann.home}/namespaces`, { name: 'x', slug: 'other' });
  expect(await ann.call('GET', `${ann.home}/namespaces/other`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'namespace', resource_id: 'other' } },
  });
  const thread = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces/default/threads`, {});
  expect(thread.body.namespace_id).toBe(body.namespace_id);
  expect(await ann.call('PUT', `${ann.home}/namespaces/default`, { name: 'Main' })).toMatchObject({
    status: 200,
    body: { name: 'Main', slug: 'default' },
  });
});

test('the default namespace is neither deleted nor given another slug', async () => {
  const ann = await register(app, { name: 'ann' });
  const { namespace_id } = (await ann.call<Namespace>('GET', `${ann.home}/namespaces/default`)).body;
  const refused = {
    status: 409,
    body: {
      error: 'RESOURCE_CONFLICT',
      details: { resource_type: 'namespace', resource_id: namespace_id, reason: 'default_namespace' },
    },
  };
  for (const id of ['default', namespace_id]) {
    expect(await ann.call('DELETE', `${ann.home}/namespaces/${id}`)).toMatchObject(refused);
    expect(await ann.call('PUT', `${ann.home}/namespaces/${id}`, { slug: 'main' })).toMatchObject(refused);
  }
  expect((await ann.call('PUT', `${ann.home}/namespaces/default`, { slug: 'default' })).status).toBe(200);
});

test('deletes a namespace with its threads', async () => {
  const ann = await register(app, { name: 'ann' });
  const { namespace_id } = (await ann.call<Namespace>('POST', `${ann.home}/namespaces`, { name: 'Gone soon' })).body;
  const url = `${ann.home}/namespaces/${namespace_id}`;
  await ann.call('POST', `${url}/threads`, { title: 'x' });
  expect(await ann.call('DELETE', url)).toEqual({ status: 204, body: null });
  expect((await ann.call('GET', url)).status).toBe(404);
  expect((await ann.call('GET', `${url}/threads`)).status).toBe(404);
  expect(await app.database.prisma.thread.count({ where: { namespaceId: namespace_id } })).toBe(0);
  expect(await eventsOf(app, namespace_id)).toEqual(['namespace.created', 'namespace.deleted']);
});

test('roles: everybody reads, editors change', async () => {
  const owner = await register(app, { name: 'owner' });
  const outcome: Record<string, number[]> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const url = `${owner.home}/namespaces`;
    const { namespace_id } = (await owner.call<Namespace>('POST', url, { name: `for ${role}` })).body;
    const answers = [
      await somebody.call('GET', url),
      await somebody.call('POST', url, { name: `of ${role}` }),
      await somebody.call('PUT', `${url}/${namespace_id}`, { description: role }),
      await somebody.call('DELETE', `${url}/${namespace_id}`),
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

test('a namespace of another workspace is missing, and in a foreign workspace one learns nothing', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const { namespace_id } = (await ann.call<Namespace>('GET', `${ann.home}/namespaces/default`)).body;
  for (const [method, payload] of [
    ['GET', undefined],
    ['PUT', { name: 'x' }],
    ['DELETE', undefined],
  ] as const) {
    expect(await eve.call(method, `${eve.home}/namespaces/${namespace_id}`, payload)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'namespace', resource_id: namespace_id } },
    });
    expect((await eve.call(method, `${ann.home}/namespaces/${namespace_id}`, payload)).status).toBe(403);
  }
  expect((await ann.call('GET', `${ann.home}/namespaces/default`)).body).toMatchObject({ name: 'Default' });
});

test('everything in a deleted workspace is unreachable', async () => {
  const ann = await register(app, { name: 'ann' });
  const app_ = (await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'x' })).body;
  await ann.call('DELETE', ann.home);
  for (const path of [
    'namespaces',
    'namespaces/default',
    'namespaces/default/threads',
    'apps',
    `apps/${app_.app_id}`,
    `apps/${app_.app_id}/releases`,
  ]) {
    expect(await ann.call('GET', `${ann.home}/${path}`)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'workspace' } },
    });
  }
});
