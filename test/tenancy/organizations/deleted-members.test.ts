import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { addToWorkspace, colleague, createUser, eventsOf, type Person, register } from '../../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** An account that the owner's organization manages, a member of its workspace too. */
async function managed(owner: Person): Promise<Person> {
  const somebody = await createUser(app, owner, { name: 'managed' });
  await addToWorkspace(app, owner, somebody.userId);
  return somebody;
}

interface Members {
  total: number;
  members: { user_id: string }[];
}

const MEMBERS = `query ($org: ID!, $workspace: ID!) {
  organizationMembers(orgId: $org) { totalCount nodes { userId } }
  workspaceMembers(orgId: $org, workspaceId: $workspace) { totalCount nodes { userId } }
  organization(id: $org) {
    members { totalCount nodes { userId } }
    workspaces { nodes { members { totalCount nodes { userId } } } }
  }
}`;

/** Everything that lists the members of the owner's organization and workspace. */
async function membersSeenBy(owner: Person): Promise<{ total: number; ids: string[] }[]> {
  const rest = await Promise.all(
    [`/v1/orgs/${owner.orgId}/members`, `${owner.home}/members`].map((url) => owner.call<Members>('GET', url)),
  );
  interface List {
    totalCount: number;
    nodes: { userId: string }[];
  }
  const { data } = await owner.ask<{
    organizationMembers: List;
    workspaceMembers: List;
    organization: { members: List; workspaces: { nodes: { members: List }[] } };
  }>(MEMBERS, { org: owner.orgId, workspace: owner.workspaceId });
  const lists = [data.organizationMembers, data.workspaceMembers, data.organization.members];
  return [
    ...rest.map(({ body }) => ({ total: body.total, ids: body.members.map(({ user_id }) => user_id) })),
    ...[...lists, data.organization.workspaces.nodes[0]!.members].map(({ totalCount, nodes }) => ({
      total: totalCount,
      ids: nodes.map(({ userId }) => userId),
    })),
  ];
}

test('a deleted user leaves every member list and count, at once', async () => {
  const owner = await register(app, { name: 'owner' });
  const somebody = await managed(owner);
  const before = Array(6).fill({ total: 2, ids: [owner.userId, somebody.userId] });
  expect(await membersSeenBy(owner)).toEqual(before);
  expect((await owner.call('DELETE', `/v1/users/${somebody.userId}`)).status).toBe(204);
  expect(await membersSeenBy(owner)).toEqual(Array(6).fill({ total: 1, ids: [owner.userId] }));
});

test('a deleted user is no member to read by id, change or remove: 404, as for one who never was', async () => {
  const owner = await register(app, { name: 'owner' });
  const somebody = await managed(owner);
  const memberships = await owner.ask<Record<string, { nodes: { id: string; userId: string }[] }>>(
    `query ($org: ID!, $workspace: ID!) { organizationMembers(orgId: $org) { nodes { id userId } }
      workspaceMembers(orgId: $org, workspaceId: $workspace) { nodes { id userId } } }`,
    { org: owner.orgId, workspace: owner.workspaceId },
  );
  await owner.call('DELETE', `/v1/users/${somebody.userId}`);
  for (const url of [`/v1/orgs/${owner.orgId}/members`, `${owner.home}/members`]) {
    const changed = await owner.call('PATCH', `${url}/${somebody.userId}`, { role: 'viewer' });
    expect(changed).toMatchObject({ status: 404, body: { details: { resource_id: somebody.userId } } });
    expect((await owner.call('DELETE', `${url}/${somebody.userId}`)).status).toBe(404);
    expect((await owner.call('POST', url, { user_id: somebody.userId })).status).toBe(404);
  }
  for (const { nodes } of Object.values(memberships.data)) {
    const { id } = nodes.find(({ userId }) => userId === somebody.userId)!;
    expect((await owner.ask('query ($id: ID!) { node(id: $id) { id } }', { id })).data).toEqual({ node: null });
  }
});

test('streams hear that a deleted user is no member any more', async () => {
  const owner = await register(app, { name: 'owner' });
  const somebody = await managed(owner);
  await owner.call('DELETE', `/v1/users/${somebody.userId}`);
  expect((await eventsOf(app, somebody.userId, owner.orgId)).slice(-2).toSorted()).toEqual([
    'organization_member.deleted',
    'workspace_member.deleted',
  ]);
});

test('a suspended user stays in the lists, because administrators can let the account in again', async () => {
  const owner = await register(app, { name: 'owner' });
  const somebody = await managed(owner);
  expect((await owner.call('PUT', `/v1/users/${somebody.userId}`, { is_active: false })).status).toBe(200);
  const both = Array(6).fill({ total: 2, ids: [owner.userId, somebody.userId] });
  expect(await membersSeenBy(owner)).toEqual(both);
});

test('a deleted user is no colleague of anybody', async () => {
  const [owner, host] = [await register(app, { name: 'owner' }), await register(app, { name: 'host' })];
  const guest = await colleague(app, host, 'viewer');
  expect((await guest.call('DELETE', `/v1/orgs/${guest.orgId}`)).status).toBe(204);
  expect((await guest.call('DELETE', `/v1/users/${guest.userId}`)).status).toBe(204);
  expect((await host.call<Members>('GET', `${host.home}/members`)).body).toMatchObject({ total: 1 });
  expect((await owner.call('GET', `${host.home}/members`)).status).toBe(403);
});
