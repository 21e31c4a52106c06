import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('an administrator adds a user who has an account, once', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob', fullName: 'Bob' })];
  const url = `/v1/orgs/${ann.orgId}/members`;
  expect((await bob.call('GET', url)).status).toBe(403);
  const added = await ann.call('POST', url, { user_id: bob.userId });
  expect(added).toEqual({
    status: 201,
    body: {
      org_id: ann.orgId,
      user_id: bob.userId,
      role: 'member',
      username: bob.username,
      // bob has not used the organization yet
      email: null,
      full_name: 'Bob',
      avatar_url: null,
      added_by: ann.userId,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    },
  });
  const members = await bob.call<{ members: { user_id: string }[] }>('GET', url);
  expect(members.body).toMatchObject({
    total: 2,
    has_more: false,
    next_cursor: null,
    members: [
      { user_id: ann.userId, role: 'owner' },
      { ...added.body, email: bob.email },
    ],
  });
  expect(await ann.call('POST', url, { user_id: bob.userId })).toMatchObject({
    status: 409,
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'organization_member', field: 'user_id', value: bob.userId },
    },
  });
  expect(await ann.call('POST', url, { user_id: 'usr_nobody' })).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'user' } },
  });
  expect(await eventsOf(app, bob.userId, ann.orgId)).toEqual(['organization_member.created']);
});

test('roles: administrators manage members, and nobody grants, changes or removes a role above their own', async () => {
  const owner = await register(app, { name: 'owner' });
  const target = await colleague(app, owner, 'member');
  const outsider = await register(app, { name: 'outsider' });
  const url = `/v1/orgs/${owner.orgId}/members`;
  for (const role of ['viewer', 'member', 'editor'] as const) {
    const somebody = await colleague(app, owner, role);
    expect((await somebody.call('GET', url)).status).toBe(200);
    expect(await somebody.call('POST', url, { user_id: outsider.userId })).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization_member:create' } },
    });
    expect(await somebody.call('PATCH', `${url}/${target.userId}`, { role: 'viewer' })).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization_member:update' } },
    });
    expect(await somebody.call('DELETE', `${url}/${target.userId}`)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization_member:delete' } },
    });
  }
  const admin = await colleague(app, owner, 'admin');
  expect((await admin.call('POST', url, { user_id: outsider.userId, role: 'owner' })).status).toBe(403);
  expect((await admin.call('PATCH', `${url}/${target.userId}`, { role: 'owner' })).status).toBe(403);
  expect((await admin.call('PATCH', `${url}/${owner.userId}`, { role: 'member' })).status).toBe(403);
  expect((await admin.call('DELETE', `${url}/${owner.userId}`)).status).toBe(403);
  expect((await admin.call('PATCH', `${url}/${target.userId}`, { role: 'nobody' })).status).toBe(422);
  expect(await admin.call('PATCH', `${url}/${target.userId}`, { role: 'admin' })).toMatchObject({
    status: 200,
    body: { user_id: target.userId, role: 'admin' },
  });
  expect((await changesOf(app, target.userId)).at(-1)).toMatchObject({
    action: 'update',
    resourceType: 'organization_member',
    orgId: owner.orgId,
    userId: admin.userId,
    metadata: { before: { role: 'member' }, after: { role: 'admin' } },
  });
});

test('a changed role acts at once', async () => {
  const owner = await register(app, { name: 'owner' });
  const admin = await colleague(app, owner, 'admin');
  const url = `/v1/orgs/${owner.orgId}`;
  expect((await admin.call('PUT', url, { name: 'mine' })).status).toBe(200);
  await owner.call('PATCH', `${url}/members/${admin.userId}`, { role: 'viewer' });
  expect((await admin.call('PUT', url, { name: 'mine' })).status).toBe(403);
});

test('a removed member loses the organization and all its workspaces at once, and keeps everything else', async () => {
  const owner = await register(app, { name: 'owner' });
  const member = await colleague(app, owner, 'member');
  expect((await member.call('GET', owner.home)).status).toBe(200);
  expect(await owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${member.userId}`)).toEqual({
    status: 204,
    body: null,
  });
  expect((await member.call('GET', owner.home)).status).toBe(403);
  expect((await member.call('GET', `/v1/orgs/${owner.orgId}`)).status).toBe(403);
  expect((await member.call('GET', member.home)).status).toBe(200);
  expect(
    await app.database.prisma.workspaceMember.count({ where: { userId: member.userId, orgId: owner.orgId } }),
  ).toBe(0);
  expect((await eventsOf(app, member.userId)).slice(-2)).toEqual([
    'organization_member.deleted',
    'workspace_member.deleted',
  ]);
  expect(await owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${member.userId}`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'organization_member' } },
  });
});

test('everyone may leave, but not the last owner', async () => {
  const owner = await register(app, { name: 'owner' });
  const viewer = await colleague(app, owner, 'viewer');
  const url = `/v1/orgs/${owner.orgId}/members`;
  expect((await viewer.call('DELETE', `${url}/${viewer.userId}`)).status).toBe(204);
  const lastOwner = {
    status: 409,
    body: {
      error: 'RESOURCE_CONFLICT',
      details: { resource_type: 'organization_member', resource_id: owner.userId, reason: 'last_owner' },
    },
  };
  expect(await owner.call('DELETE', `${url}/${owner.userId}`)).toMatchObject(lastOwner);
  expect(await owner.call('PATCH', `${url}/${owner.userId}`, { role: 'admin' })).toMatchObject(lastOwner);
  const second = await colleague(app, owner, 'owner');
  expect((await owner.call('DELETE', `${url}/${owner.userId}`)).status).toBe(204);
  expect((await second.call('GET', url)).body).toMatchObject({
    total: 1,
    members: [{ user_id: second.userId, role: 'owner' }],
  });
});

test('of two owners who demote each other at once exactly one succeeds', async () => {
  for (let round = 0; round < 5; round++) {
    const ann = await register(app, { name: 'ann' });
    const bob = await colleague(app, ann, 'owner');
    const demote = (who: typeof ann, whom: typeof ann) =>
      who.call('PATCH', `/v1/orgs/${ann.orgId}/members/${whom.userId}`, { role: 'member' });
    const statuses = (await Promise.all([demote(ann, bob), demote(bob, ann)])).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.every((status) => [200, 403, 409].includes(status))).toBe(true);
    expect(await app.database.prisma.organizationMember.count({ where: { orgId: ann.orgId, role: 'owner' } })).toBe(1);
  }
});

test('of two owners who leave at once one stays', async () => {
  const ann = await register(app, { name: 'ann' });
  const bob = await colleague(app, ann, 'owner');
  const leave = (who: typeof ann) => who.call('DELETE', `/v1/orgs/${ann.orgId}/members/${who.userId}`);
  const statuses = (await Promise.all([leave(ann), leave(bob)])).map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([204, 409]);
});
