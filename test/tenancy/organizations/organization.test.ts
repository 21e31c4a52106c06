import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OrganizationFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Organization = RestBody<OrganizationFragment>;

const make = async (owner: Person, payload: object = { name: 'Second' }) =>
  (await owner.call<Organization>('POST', '/v1/orgs', payload)).body;

test('any user creates an organization, owns it, and finds a default workspace and namespace in it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<Organization>('POST', '/v1/orgs', { name: 'Ann & Co', description: 'Ours' });
  expect(status).toBe(201);
  expect(body).toEqual({
    org_id: expect.stringMatching(/^org_[0-9A-Z]{26}$/),
    name: 'Ann & Co',
    description: 'Ours',
    role: 'owner',
    created_by: ann.userId,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    updated_at: body.created_at,
  });
  const workspaces = await ann.call<{ workspaces: { workspace_id: string; name: string; owner_id: string }[] }>(
    'GET',
    `/v1/orgs/${body.org_id}/workspaces`,
  );
  expect(workspaces.body.workspaces).toMatchObject([{ name: 'Default workspace', owner_id: ann.userId }]);
  const namespace = await ann.call(
    'GET',
    `/v1/orgs/${body.org_id}/workspaces/${workspaces.body.workspaces[0]!.workspace_id}/namespaces/default`,
  );
  expect(namespace.status).toBe(200);
  expect(await eventsOf(app, body.org_id)).toEqual(['organization.created']);
  expect(await changesOf(app, body.org_id)).toEqual([
    {
      action: 'create',
      resourceType: 'organization',
      orgId: body.org_id,
      workspaceId: null,
      userId: ann.userId,
      statusCode: 201,
      metadata: {
        also: [
          { action: 'create', resource_type: 'organization_member', resource_id: ann.userId, role: 'owner' },
          { action: 'create', resource_type: 'workspace', resource_id: workspaces.body.workspaces[0]!.workspace_id },
        ],
      },
    },
  ]);
});

test('lists the organizations of the caller alone, oldest first, walked by cursor', async () => {
  const bob = await register(app, { name: 'bob' });
  await register(app, { name: 'other' });
  const second = await make(bob);
  const third = await make(bob, { name: 'Third' });
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const {
      body,
    }: { body: { total: number; has_more: boolean; next_cursor: string | null; organizations: Organization[] } } =
      await bob.call('GET', `/v1/orgs?limit=1${cursor ? `&cursor=${cursor}` : ''}`);
    expect(body.total).toBe(3);
    expect(body.organizations).toHaveLength(1);
    seen.push(body.organizations[0]!.org_id);
    cursor = body.next_cursor;
  } while (cursor);
  expect(seen).toEqual([bob.orgId, second.org_id, third.org_id]);
});

test('changes what is given, clears what is null, leaves the rest', async () => {
  const cat = await register(app, { name: 'cat' });
  const { org_id } = await make(cat, { name: 'Before', description: 'text' });
  const url = `/v1/orgs/${org_id}`;
  expect((await cat.call('PUT', url, { name: 'After' })).body).toMatchObject({ name: 'After', description: 'text' });
  expect((await cat.call('PUT', url, { description: null })).body).toMatchObject({ name: 'After', description: null });
  expect((await cat.call('PUT', url, {})).body).toMatchObject({ name: 'After', description: null });
  expect((await cat.call('PUT', url, { name: null })).status).toBe(422);
  expect((await cat.call('GET', url)).body).toMatchObject({ name: 'After', description: null, role: 'owner' });
  expect(await eventsOf(app, org_id)).toEqual([
    'organization.created',
    ...Array<string>(3).fill('organization.updated'),
  ]);
});

test('roles: everybody reads, administrators change, owners delete; the missing permission is named', async () => {
  const owner = await register(app, { name: 'owner' });
  const outcome: Record<string, number[]> = {};
  const url = `/v1/orgs/${owner.orgId}`;
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const answers = [
      await somebody.call('GET', url),
      await somebody.call('PUT', url, { name: role }),
      await somebody.call<{ details: object }>('DELETE', url),
    ];
    outcome[role] = answers.map(({ status }) => status);
    expect(answers[0]!.body).toMatchObject({ role });
    expect(answers[2]!.body).toMatchObject({
      error: 'FORBIDDEN',
      details: { required_permission: 'organization:delete' },
    });
  }
  expect(outcome).toEqual({
    viewer: [200, 403, 403],
    member: [200, 403, 403],
    editor: [200, 403, 403],
    admin: [200, 200, 403],
  });
  expect((await owner.call('DELETE', url)).status).toBe(204);
});

test('an organization of others answers like one that does not exist', async () => {
  const [dan, eve] = [await register(app, { name: 'dan' }), await register(app, { name: 'eve' })];
  const without = ({ status, body }: { status: number; body: Record<string, unknown> }) => ({
    status,
    error: body.error,
    message: body.message,
    details: body.details,
  });
  for (const [method, payload] of [
    ['GET', undefined],
    ['PUT', { name: 'x' }],
    ['DELETE', undefined],
  ] as const) {
    const foreign = without(await eve.call(method, `/v1/orgs/${dan.orgId}`, payload));
    const missing = without(await eve.call(method, '/v1/orgs/org_00000000000000000000000000', payload));
    expect(foreign).toEqual(missing);
    expect(foreign).toMatchObject({ status: 403, details: { required_permission: 'organization:access' } });
  }
});

test('a deleted organization is gone at once with its workspaces; its sessions continue in other ones', async () => {
  const fay = await register(app, { name: 'fay' });
  const gus = await colleague(app, fay, 'member');
  const { org_id } = await make(fay);
  // warms what access checks keep
  expect((await gus.call('GET', fay.home)).status).toBe(200);
  expect(await fay.call('DELETE', `/v1/orgs/${fay.orgId}`)).toEqual({ status: 204, body: null });
  expect(await app.database.prisma.user.count({ where: { defaultWorkspaceId: fay.workspaceId } })).toBe(0);
  for (const who of [fay, gus]) {
    for (const url of [
      `/v1/orgs/${fay.orgId}`,
      `/v1/orgs/${fay.orgId}/workspaces`,
      fay.home,
      `${fay.home}/namespaces/default`,
    ]) {
      expect(await who.call('GET', url)).toMatchObject({
        status: 403,
        body: { details: { required_permission: 'organization:access' } },
      });
    }
  }
  expect(
    (await fay.call<{ organizations: Organization[] }>('GET', '/v1/orgs')).body.organizations.map((o) => o.org_id),
  ).toEqual([org_id]);
  expect((await fay.call('GET', `/v1/orgs/${org_id}`)).status).toBe(200);
  expect((await fay.call<{ roles: string[] }>('GET', '/v1/auth/me')).body.roles).not.toContain('owner');
  expect((await gus.call('GET', `/v1/orgs/${gus.orgId}`)).status).toBe(200);
  const row = await app.database.prisma.organization.findUniqueOrThrow({ where: { id: fay.orgId } });
  expect(row.deletedAt).toBeInstanceOf(Date);
  expect(await eventsOf(app, fay.orgId)).toContain('organization.deleted');
});

test('a user shows organizations to nobody but that user', async () => {
  const hal = await register(app, { name: 'hal' });
  const ida = await colleague(app, hal, 'member');
  const query = '{ me { organizations { totalCount nodes { id role } } } }';
  expect((await ida.ask(query)).data).toEqual({
    me: {
      organizations: {
        totalCount: 2,
        nodes: [
          { id: hal.orgId, role: 'member' },
          { id: ida.orgId, role: 'owner' },
        ],
      },
    },
  });
  const other = 'query ($id: ID!) { user(id: $id) { organizations { totalCount nodes { id } } } }';
  expect((await hal.ask(other, { id: ida.userId })).data).toEqual({
    user: { organizations: { totalCount: 0, nodes: [] } },
  });
});

test('a user makes so many organizations and no more, however many ask at once; a deleted one makes room', async () => {
  const few = await startTestApp({
    env: { DATA_DIR: app.dataDir, MAX_ORGANIZATIONS_PER_USER: '4' },
    databaseUrl: app.database.url,
  });
  try {
    const ann = await register(few, { name: 'ann' });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ann.call<Organization>('POST', '/v1/orgs', { name: 'One more' })),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(3); // registering made one
    for (const { body } of answers.filter(({ status }) => status !== 201))
      expect(body).toMatchObject({
        error: 'RESOURCE_CONFLICT',
        status_code: 409,
        details: { resource_type: 'user', resource_id: ann.userId, reason: 'limit_reached', limit: 4 },
      });
    expect((await ann.call('DELETE', `/v1/orgs/${made[0]!.body.org_id}`)).status).toBeLessThan(300);
    expect((await ann.call('POST', '/v1/orgs', { name: 'Again' })).status).toBe(201);
    expect((await ann.call('POST', '/v1/orgs', { name: 'Too many' })).status).toBe(409);
  } finally {
    await few.close();
  }
});
