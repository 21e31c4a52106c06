import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { operations } from '../support/operations.ts';
import { createWorld, must, PASSWORD, type World } from '../support/world.ts';

const O = '/v1/orgs/{org_id}';
const W = `${O}/workspaces/{workspace_id}`;

/** The tables of the spec that are built: method, path, error set, status of success (defaults §0.2). Copied by hand. */
const spec: [method: string, path: string, errors: string, status: number][] = [
  ['GET', '/v1/auth/config', 'A0', 200],
  ['GET', '/v1/auth/invite-info', 'A', 200],
  ['GET', '/v1/auth/me', 'A', 200],
  ['POST', '/v1/auth/register', 'A', 201],
  ['POST', '/v1/auth/login', 'A', 200],
  ['POST', '/v1/auth/logout', 'A', 200],
  ['POST', '/v1/auth/verify-email', 'A', 200],
  ['POST', '/v1/auth/resend-verification', 'A', 200],
  ['POST', '/v1/auth/refresh', 'A', 200],
  ['POST', '/v1/auth/switch-org', 'A', 200],
  ['POST', '/v1/auth/forgot-password', 'A', 200],
  ['POST', '/v1/auth/reset-password', 'A', 200],
  ['GET', '/v1/auth/me/profile', 'A', 200],
  ['GET', '/v1/users', 'B', 200],
  ['POST', '/v1/users', 'B', 201],
  ['GET', '/v1/users/me', 'B', 200],
  ['GET', '/v1/users/{user_id}', 'B', 200],
  ['PUT', '/v1/users/{user_id}', 'B', 200],
  ['DELETE', '/v1/users/{user_id}', 'B', 204],
  ['PATCH', '/v1/users/me/preferences', 'B', 200],
  ['GET', `${O}/workspaces`, 'B', 200],
  ['POST', `${O}/workspaces`, 'B', 201],
  ['GET', W, 'B', 200],
  ['PUT', W, 'B', 200],
  ['DELETE', W, 'B', 200],
  ['GET', `${W}/members`, 'B', 200],
  ['POST', `${W}/members`, 'B', 201],
  ['PATCH', `${W}/members/{member_user_id}`, 'B', 200],
  ['DELETE', `${W}/members/{member_user_id}`, 'B', 204],
];

test('the routes of the spec are there, with their methods, paths, error sets and statuses, and no other', () => {
  const lines = (routes: readonly { method: string; path: string; errors: string; status: number }[]) =>
    routes.map(({ method, path, errors, status }) => `${method} ${path} ${errors} ${status}`).sort();
  const wanted = spec.map(([method, path, errors, status]) => ({ method, path, errors, status }));
  expect(lines(operations.filter(({ isAddition }) => !isAddition))).toEqual(lines(wanted));
  expect(spec).toHaveLength(29);
});

test('an addition takes no path of the spec', () => {
  const taken = new Set(spec.map(([method, path]) => `${method} ${path}`));
  for (const { method, path, isAddition } of operations)
    if (isAddition) expect(taken).not.toContain(`${method} ${path}`);
});

/** The fields of the spec, in any order. Copied by hand. */
const shapes = {
  User: 'user_id email username full_name auth_provider avatar_url bio timezone locale default_workspace_id is_active is_verified roles preferences settings created_at updated_at last_login',
  Workspace:
    'workspace_id name description owner_id subscription_plan_id region storage_bucket bucket_status is_active tags created_at updated_at',
  Member: 'workspace_id user_id org_id role username email full_name avatar_url added_by created_at updated_at',
  TokenPair: 'access_token refresh_token token_type expires_in user',
  Refreshed: 'access_token refresh_token token_type expires_in',
  Switched: 'access_token token_type expires_in org_id',
  Config: 'allow_registration',
  InviteInfo: 'email valid',
  Users: 'total has_more next_cursor users',
  Workspaces: 'total has_more next_cursor workspaces',
  Members: 'members total',
  Message: 'message',
};
type Shape = keyof typeof shapes;

describe('the shapes of the spec', () => {
  let app: TestApp;
  let world: World;
  beforeAll(async () => {
    app = await startTestApp();
    world = await createWorld(app, { withResources: false });
  });
  afterAll(() => app.close());

  const hasShape = (value: unknown, shape: Shape, more: string[] = []) =>
    expect(Object.keys(value as object).sort()).toEqual([...shapes[shape].split(' '), ...more].sort());
  const get = <Body = Record<string, unknown>>(url: string, role: 'owner' | 'viewer' = 'owner') =>
    must<Body>(app, { url, headers: world.as(role) });
  const send = <Body = Record<string, unknown>>(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    payload?: object,
  ) => must<Body>(app, { method, url, headers: world.as('owner'), ...(payload ? { payload } : {}) });

  test('User, with has_password only in the profile; what is private is empty for others', async () => {
    for (const url of ['/v1/auth/me', '/v1/users/me', `/v1/users/${world.accounts.owner.userId}`])
      hasShape(await get(url), 'User');
    const profile = await get('/v1/auth/me/profile');
    hasShape(profile, 'User', ['has_password']);
    expect(profile).toMatchObject({
      has_password: true,
      auth_provider: 'local',
      is_active: true,
      is_verified: false,
      roles: ['owner'],
    });
    expect(profile.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const settings = profile.settings as Record<string, unknown>;
    expect(settings).toEqual({
      current_org_id: world.ids.org_id,
      organizations: [
        { org_id: world.ids.org_id, name: expect.stringContaining(world.marker) as string, role: 'owner' },
      ],
    });
    expect(await get(`/v1/users/${world.accounts.owner.userId}`, 'viewer')).toMatchObject({
      preferences: {},
      settings: {},
    });
  });

  test('Token pair, refresh and switch', async () => {
    const pair = await send<Record<string, unknown>>('POST', '/v1/auth/login', {
      username: world.username,
      password: PASSWORD,
    });
    hasShape(pair, 'TokenPair');
    hasShape(pair.user, 'User');
    expect(pair).toMatchObject({ token_type: 'bearer', expires_in: 1800 });
    const registered = await send<Record<string, unknown>>('POST', '/v1/auth/register', {
      email: 'shape@example.test',
      username: 'shape',
      password: PASSWORD,
    });
    hasShape(registered, 'TokenPair');
    const refreshed = await send('POST', '/v1/auth/refresh', { refresh_token: pair.refresh_token as string });
    hasShape(refreshed, 'Refreshed');
    const switched = await send('POST', '/v1/auth/switch-org', { org_id: world.ids.org_id });
    hasShape(switched, 'Switched');
    expect(switched).toMatchObject({ token_type: 'bearer', org_id: world.ids.org_id });
  });

  test('public configuration and invitation', async () => {
    expect(await must(app, { url: '/v1/auth/config' })).toEqual({ allow_registration: true });
    expect(await must(app, { url: '/v1/auth/invite-info?token=unknown' })).toEqual({ email: '', valid: false });
  });

  test('Workspace and its list', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces`;
    const made = await send('POST', url, { organization_id: world.ids.org_id, name: 'Plain' });
    hasShape(made, 'Workspace');
    expect(made).toMatchObject({
      description: null,
      bucket_status: 'pending',
      region: 'default',
      subscription_plan_id: 'community',
      is_active: true,
      tags: [],
      owner_id: world.accounts.owner.userId,
    });
    hasShape(await get(`${url}/${made.workspace_id as string}`), 'Workspace');
    hasShape(await send('PUT', `${url}/${made.workspace_id as string}`, {}), 'Workspace');
    const list = await get<{ workspaces: unknown[] }>(url);
    hasShape(list, 'Workspaces');
    hasShape(list.workspaces[0], 'Workspace');
    expect(await send('DELETE', `${url}/${made.workspace_id as string}`)).toEqual({
      message: 'Workspace deleted successfully',
    });
  });

  test('absent and null stay different all the way to the row', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces`;
    const { workspace_id: id } = await send('POST', url, {
      organization_id: world.ids.org_id,
      name: 'Kept',
      description: 'kept',
      tags: ['kept'],
    });
    const before = await get(`${url}/${id as string}`);
    const unchanged = await send('PUT', `${url}/${id as string}`, {});
    expect({ ...unchanged, updated_at: '', bucket_status: '' }).toEqual({
      ...before,
      updated_at: '',
      bucket_status: '',
    });
    expect(await send('PUT', `${url}/${id as string}`, { description: null })).toMatchObject({
      name: 'Kept',
      description: null,
      tags: ['kept'],
    });
  });

  test('Member and its list', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/members`;
    const added = await send('POST', url, { user_id: world.guest.userId });
    hasShape(added, 'Member');
    expect(added).toMatchObject({ role: 'member', added_by: world.accounts.owner.userId, org_id: world.ids.org_id });
    hasShape(await send('PATCH', `${url}/${world.guest.userId}`, { role: 'viewer' }), 'Member');
    const list = await get<{ members: unknown[]; total: number }>(url);
    hasShape(list, 'Members');
    expect(list.members).toHaveLength(list.total);
    hasShape(list.members[0], 'Member');
    const removed = await app.server.inject({
      method: 'DELETE',
      url: `${url}/${world.guest.userId}`,
      headers: world.as('owner'),
    });
    expect([removed.statusCode, removed.body]).toEqual([204, '']);
  });

  test('Users in a workspace', async () => {
    const list = await get<{ users: unknown[] }>(`/v1/users?workspace_id=${world.ids.workspace_id}`);
    hasShape(list, 'Users');
    hasShape(list.users[0], 'User');
  });

  test('what is untyped answers the text null', async () => {
    for (const [url, payload] of [
      ['/v1/auth/resend-verification', { email: 'nobody@example.test' }],
      ['/v1/auth/forgot-password', { email: 'nobody@example.test' }],
    ] as const) {
      const answer = await app.server.inject({ method: 'POST', url, payload });
      expect([answer.statusCode, answer.body, answer.headers['content-type']]).toEqual([
        200,
        'null',
        'application/json; charset=utf-8',
      ]);
    }
  });
});
