import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { addToWorkspace, createUser, type Person, register, registerProven } from '../../support/person.ts';
import { waitUntil } from '../../support/wait.ts';

/** Who sees whose e-mail address in an organization (docs/decisions/0028). */

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());

interface Shown {
  user_id: string;
  email: string | null;
}
const emails = (rows: readonly Shown[]) => Object.fromEntries(rows.map(({ user_id, email }) => [user_id, email]));

/** The addresses that somebody sees of a user, on each face of the service. */
async function addressesOf(looker: Person, { userId, username }: Person, owner: Person): Promise<unknown[]> {
  const get = async <T>(url: string): Promise<T> => {
    const { status, body } = await looker.call<T>('GET', url);
    expect([url, status]).toEqual([url, 200]);
    return body;
  };
  const { orgId, workspaceId } = owner;
  const organization = await get<{ members: Shown[] }>(`/v1/orgs/${orgId}/members`);
  const workspace = await get<{ members: Shown[] }>(`${owner.home}/members`);
  const list = await get<{ users: Shown[] }>(`/v1/users?workspace_id=${workspaceId}`);
  const one = await get<Shown>(`/v1/users/${userId}?workspace_id=${workspaceId}`);
  const { data } = await looker.ask<{
    user: { email: string | null };
    workspace: { members: { nodes: { email: string | null; user: { id: string; email: string | null } }[] } };
  }>(
    `query ($orgId: ID!, $workspaceId: ID!, $id: ID!) {
      user(id: $id, workspaceId: $workspaceId) { email }
      workspace(orgId: $orgId, id: $workspaceId) { members { nodes { email user { id email } } } }
    }`,
    { orgId, workspaceId, id: userId },
  );
  const member = data.workspace.members.nodes.find(({ user }) => user.id === userId)!;
  const byAddress = await get<{ users: Shown[] }>(
    `/v1/users?workspace_id=${workspaceId}&search=${encodeURIComponent(`${username}@`)}`,
  );
  const isFound = byAddress.users.some(({ user_id }) => user_id === userId);
  const seen = [
    emails(organization.members)[userId],
    emails(workspace.members)[userId],
    emails(list.users)[userId],
    one.email,
    data.user.email,
    member.email,
    member.user.email,
  ];
  expect(new Set(seen).size).toBe(1);
  if (looker.userId !== userId) expect(isFound).toBe(seen[0] !== null);
  return seen;
}

const all = (email: string | null) => Array.from({ length: 7 }, () => email);

describe('somebody who was added by their id', () => {
  test('is told, keeps their address to themselves until they come, and may leave at once', async () => {
    const owner = await register(app, { name: 'owner' });
    const stranger = await register(app, { name: 'stranger' });
    const added = await owner.call<Shown>('POST', `${owner.home}/members`, {
      user_id: stranger.userId,
      role: 'editor',
    });
    expect([added.status, added.body]).toMatchObject([201, { user_id: stranger.userId, email: null }]);
    expect(await addressesOf(owner, stranger, owner)).toEqual(all(null));
    const told = await stranger.call<{ notifications: { message: string }[] }>('GET', '/v1/notifications');
    expect(told.body.notifications.map(({ message }) => message)).toEqual(
      ['workspace', 'organization'].map((kind) =>
        expect.stringMatching(
          new RegExp(`^${owner.username} added you to the ${kind} .* You may leave at any time\\.$`),
        ),
      ),
    );
    // the list of one's own organizations uses none of them
    await stranger.call('GET', '/v1/auth/me');
    expect(await addressesOf(owner, stranger, owner)).toEqual(all(null));
    const gone = await stranger.call('DELETE', `/v1/orgs/${owner.orgId}/members/${stranger.userId}`);
    expect(gone.status).toBe(204);
    expect((await stranger.call('GET', owner.home)).status).toBe(403);
  });

  test('shows the address by using the organization', async () => {
    const owner = await register(app, { name: 'owner' });
    const stranger = await register(app, { name: 'stranger' });
    await addToWorkspace(app, owner, stranger.userId, 'member');
    expect((await stranger.call('GET', owner.home)).status).toBe(200);
    expect(await addressesOf(owner, stranger, owner)).toEqual(all(stranger.email));
    // what they see of themselves was never hidden
    expect(await addressesOf(stranger, stranger, owner)).toEqual(all(stranger.email));
  });

  test('an invitation to their address does not tell that they are a member, before they come', async () => {
    const owner = await registerProven(app, { name: 'owner' });
    const stranger = await register(app, { name: 'stranger' });
    await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: stranger.userId });
    const invite = () => owner.call('POST', `/v1/orgs/${owner.orgId}/invitations`, { email: stranger.email });
    expect((await invite()).status).toBe(201);
    await app.database.pool.query('delete from invitations where org_id = $1', [owner.orgId]);
    expect((await stranger.call('GET', `/v1/orgs/${owner.orgId}/tools`)).status).toBe(200);
    expect([await invite()]).toMatchObject([
      { status: 409, body: { details: { resource_type: 'organization_member' } } },
    ]);
  });

  test('shows it to an organization that has proven its domain, or made the account', async () => {
    const owner = await register(app, { name: 'owner' });
    const domain = `d${Math.random().toString(36).slice(2)}.example.test`;
    const colleague = await register(app, { name: 'colleague', email: `Colleague@${domain.toUpperCase()}` });
    await addToWorkspace(app, owner, colleague.userId);
    const provider = { name: 'Company', protocol: 'saml', verified_domains: [domain] };
    expect((await owner.call('POST', `/v1/orgs/${owner.orgId}/identity-providers`, provider)).status).toBe(201);
    const addressOf = async (id: string) =>
      (await owner.call<Shown>('GET', `/v1/users/${id}?workspace_id=${owner.workspaceId}`)).body.email;
    expect(await addressOf(colleague.userId)).toBeNull();
    await app.database.pool.query(
      `update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`,
      [domain],
    );
    expect(await addressOf(colleague.userId)).toBe(colleague.email);
    const made = await owner.call<Shown>('POST', '/v1/users', {
      email: 'made@elsewhere.example.test',
      username: `made-${domain.split('.')[0]}`,
      password: 'a long enough password',
    });
    expect([made.status, made.body.email]).toEqual([201, 'made@elsewhere.example.test']);
  });
});

describe('who is added to a workspace as a viewer', () => {
  test('is a guest: sees the organization and the workspace, no secrets and no addresses', async () => {
    const owner = await register(app, { name: 'owner' });
    const member = await createUser(app, owner);
    await addToWorkspace(app, owner, member.userId);
    await owner.call('POST', `/v1/orgs/${owner.orgId}/secrets`, {
      name: 'prod-db',
      secret_type: 'token',
      value: { token: 'x' },
    });
    const guest = await register(app, { name: 'guest' });
    await addToWorkspace(app, owner, guest.userId, 'viewer');
    const roles = await owner.call<{ members: { user_id: string; role: string }[] }>(
      'GET',
      `/v1/orgs/${owner.orgId}/members`,
    );
    expect(roles.body.members.find(({ user_id }) => user_id === guest.userId)).toMatchObject({ role: 'viewer' });
    for (const path of [`/v1/orgs/${owner.orgId}`, owner.home, `${owner.home}/environments`])
      expect([path, (await guest.call('GET', path)).status]).toEqual([path, 200]);
    const secrets = await guest.call('GET', `/v1/orgs/${owner.orgId}/secrets`);
    expect([secrets.status, secrets.body]).toMatchObject([403, { details: { required_permission: 'secret:read' } }]);
    expect(await addressesOf(guest, member, owner)).toEqual(all(null));
    expect(await addressesOf(member, guest, owner)).toEqual(all(guest.email));
    expect(await addressesOf(guest, guest, owner)).toEqual(all(guest.email));
  });

  test('becomes a member of the organization by an administrator alone, and then sees addresses', async () => {
    const owner = await register(app, { name: 'owner' });
    const guest = await register(app, { name: 'guest' });
    await addToWorkspace(app, owner, guest.userId, 'viewer');
    const seen = async () => (await addressesOf(guest, owner, owner))[0];
    expect((await owner.call('PATCH', `${owner.home}/members/${guest.userId}`, { role: 'editor' })).status).toBe(200);
    expect(await seen()).toBeNull();
    const url = `/v1/orgs/${owner.orgId}/members/${guest.userId}`;
    expect((await owner.call('PATCH', url, { role: 'member' })).status).toBe(200);
    await waitUntil(async () => (await seen()) === owner.email);
  });
});
