import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { addToWorkspace, createUser, type Person, register } from '../../support/person.ts';

let app: TestApp;
let api: Calls;
let owner: Person;
let colleague: Person;
let guest: Person;
let stranger: Person;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
  owner = await register(app, { username: 'olivia' });
  colleague = await createUser(app, owner, { username: 'carl' });
  guest = await register(app, { username: 'gustav' });
  await addToWorkspace(app, owner, colleague.userId);
  await addToWorkspace(app, owner, guest.userId);
  stranger = await register(app, { username: 'stella' });
  // the others see the address of somebody who has used the organization
  expect((await guest.call('GET', owner.home)).status).toBe(200);
});
afterAll(() => app.close());

const names = async (query: string, user = owner) => {
  const answer = await api.get(`/v1/users?workspace_id=${owner.workspaceId}${query}`, user.headers);
  expect(answer.statusCode).toBe(200);
  return answer.json<{ users: { username: string }[] }>().users.map((one) => one.username);
};

describe('the list of users', () => {
  it('has the envelope of the spec and the members of the workspace, newest accounts first', async () => {
    const answer = await api.get(`/v1/users?workspace_id=${owner.workspaceId}`, owner.headers);
    expect(Object.keys(answer.json())).toEqual(['total', 'has_more', 'next_cursor', 'users']);
    expect(answer.json()).toMatchObject({ total: 3, has_more: false, next_cursor: null });
    expect(await names('')).toEqual(['gustav', 'carl', 'olivia']);
  });

  it('gives all of them in pages', async () => {
    const seen: string[] = [];
    let cursor = '';
    for (let page = 0; page < 3; page++) {
      const { users, next_cursor, total } = (
        await api.get(`/v1/users?workspace_id=${owner.workspaceId}&limit=1${cursor}`, owner.headers)
      ).json();
      expect(total).toBe(3);
      seen.push(...users.map((one: { username: string }) => one.username));
      cursor = `&cursor=${next_cursor}`;
    }
    expect(seen).toEqual(['gustav', 'carl', 'olivia']);
    expect(cursor).toBe('&cursor=null');
  });

  it('finds by a part of the name, the full name or the e-mail address, ignoring case', async () => {
    await api.put(`/v1/users/${guest.userId}`, { full_name: 'Gustav Ångström 100%_\\' }, guest.headers);
    expect(await names('&search=ARL')).toEqual(['carl']);
    expect(await names('&search=ångström')).toEqual(['gustav']);
    expect(await names('&search=olivia%40example')).toEqual(['olivia']);
    expect(await names('&search=nobody')).toEqual([]);
  });

  it.each([
    ['100%', ['gustav']],
    ['%_', ['gustav']],
    ['_\\', ['gustav']],
    ['\\', ['gustav']],
    ['%', ['gustav']],
    ['_', ['gustav']],
    ['o%a', []],
    ['carl_', []],
    ["' or true --", []],
  ])('takes %j literally', async (search, expected) => {
    await api.put(`/v1/users/${guest.userId}`, { full_name: 'Gustav Ångström 100%_\\' }, guest.headers);
    expect(await names(`&search=${encodeURIComponent(search)}`)).toEqual(expected);
  });

  it('counts what it found, and refuses a cursor of another search', async () => {
    const found = (
      await api.get(`/v1/users?workspace_id=${owner.workspaceId}&search=example&limit=1`, owner.headers)
    ).json();
    expect(found).toMatchObject({ total: 3, has_more: true });
    const answer = await api.get(
      `/v1/users?workspace_id=${owner.workspaceId}&search=other&limit=1&cursor=${found.next_cursor}`,
      owner.headers,
    );
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail[0].loc).toEqual(['query', 'cursor']);
  });

  it('takes an empty search for none', async () => {
    expect(await names('&search=')).toHaveLength(3);
  });

  it('is for members of the workspace: 403 user:read for others, whether or not it is there', async () => {
    const bodies = [];
    for (const id of [owner.workspaceId, 'ws_00000000000000000000000000']) {
      const answer = await api.get(`/v1/users?workspace_id=${id}`, stranger.headers);
      expect(answer.statusCode).toBe(403);
      expect(answer.json().details).toEqual({ required_permission: 'user:read' });
      bodies.push(answer.body.replace(/"timestamp":"[^"]*"/, ''));
    }
    expect(bodies[0]).toBe(bodies[1]);
    expect(await names('', guest)).toHaveLength(3);
  });

  it.each([
    ['', 'workspace_id', 'missing'],
    ['?workspace_id=ws_x&limit=0', 'limit', 'greater_than_equal'],
    ['?workspace_id=ws_x&limit=201', 'limit', 'less_than_equal'],
    ['?workspace_id=ws_x&limit=x', 'limit', 'int_parsing'],
  ])('answers %j with 422 on %s', async (query, name, type) => {
    const answer = await api.get(`/v1/users${query}`, owner.headers);
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail).toMatchObject([{ loc: ['query', name], type }]);
  });
});

describe('a user', () => {
  it('is shown with all fields of the spec, and what is private only to the user', async () => {
    await api.patch('/v1/users/me/preferences', { preferences: { theme: 'dark' } }, colleague.headers);
    const own = (await api.get(`/v1/users/${colleague.userId}`, colleague.headers)).json();
    const seen = (await api.get(`/v1/users/${colleague.userId}`, owner.headers)).json();
    expect(Object.keys(seen)).toEqual(Object.keys(own));
    expect(own).toMatchObject({ preferences: { theme: 'dark' }, settings: { current_org_id: owner.orgId } });
    expect(seen).toMatchObject({
      user_id: colleague.userId,
      email: colleague.email,
      preferences: {},
      settings: {},
      roles: ['member'],
    });
  });

  it('never shows the password or its hash', async () => {
    for (const url of [
      `/v1/users/${colleague.userId}`,
      '/v1/users/me',
      '/v1/auth/me/profile',
      `/v1/users?workspace_id=${owner.workspaceId}`,
    ]) {
      expect((await api.get(url, owner.headers)).body).not.toMatch(/argon2|password_hash/);
    }
  });

  it('tells in the profile alone whether there is a password', async () => {
    expect((await api.get('/v1/auth/me/profile', owner.headers)).json().has_password).toBe(true);
    expect((await api.get('/v1/auth/me', owner.headers)).json()).not.toHaveProperty('has_password');
  });

  it('is the caller under /me, by either path', async () => {
    const bodies = await Promise.all(
      ['/v1/users/me', '/v1/auth/me', `/v1/users/${owner.userId}`].map((url) => api.get(url, owner.headers)),
    );
    expect(new Set(bodies.map((answer) => answer.body)).size).toBe(1);
  });

  it('is found with and without the workspace, by those who share the organization', async () => {
    for (const query of ['', `?workspace_id=${owner.workspaceId}`]) {
      expect((await api.get(`/v1/users/${guest.userId}${query}`, owner.headers)).json().username).toBe('gustav');
      expect((await api.get(`/v1/users/${owner.userId}${query}`, guest.headers)).json().roles).toContain('owner');
    }
  });

  it('of whom one shares nothing is the same 404 as one that is not there', async () => {
    const answers = await Promise.all(
      [stranger.userId, 'usr_00000000000000000000000000'].map((id) => api.get(`/v1/users/${id}`, owner.headers)),
    );
    expect(answers.map((answer) => answer.statusCode)).toEqual([404, 404]);
    expect(answers[0]!.json()).toMatchObject({
      error: 'RESOURCE_NOT_FOUND',
      details: { resource_type: 'user', resource_id: stranger.userId },
    });
  });

  it('is 404 in the context of a workspace whose organization it is not in', async () => {
    expect(
      (await api.get(`/v1/users/${owner.userId}?workspace_id=${guest.workspaceId}`, guest.headers)).statusCode,
    ).toBe(404);
  });

  it('is 403 in the context of a workspace that one cannot see', async () => {
    const answer = await api.get(`/v1/users/${owner.userId}?workspace_id=${stranger.workspaceId}`, owner.headers);
    expect(answer.json()).toMatchObject({ status_code: 403, details: { required_permission: 'user:read' } });
  });

  it('has its roles in the organization that it is seen in', async () => {
    expect(
      (await api.get(`/v1/users/${guest.userId}?workspace_id=${owner.workspaceId}`, owner.headers)).json().roles,
    ).toEqual(['member']);
    expect((await api.get('/v1/users/me', guest.headers)).json().roles).toEqual(['owner']);
  });

  it('who is a guest shows nothing of the organization it comes from', async () => {
    const { body } = await api.get(`/v1/users/${guest.userId}`, owner.headers);
    expect(body).not.toContain(guest.orgId);
    expect(body).not.toContain(guest.workspaceId);
  });

  it('is answered alike by GraphQL', async () => {
    const query = `query ($id: ID!) { user(id: $id) { id email username fullName roles isActive settings } }`;
    const { data } = (await api.graphql(query, { id: colleague.userId }, owner.headers)).json();
    const rest = (await api.get(`/v1/users/${colleague.userId}`, owner.headers)).json();
    expect(data.user).toEqual({
      id: rest.user_id,
      email: rest.email,
      username: rest.username,
      fullName: rest.full_name,
      roles: rest.roles,
      isActive: rest.is_active,
      settings: rest.settings,
    });
  });
});

describe('making a user', () => {
  const account = (username: string, more: object = {}) => ({
    username,
    email: `${username}@example.test`,
    password: 'correct horse',
    ...more,
  });

  it('gives an administrator of the current organization a member who can sign in', async () => {
    const answer = await api.post('/v1/users', account('maria'), owner.headers);
    expect(answer.statusCode).toBe(201);
    expect(answer.json()).toMatchObject({
      username: 'maria',
      roles: ['member'],
      is_verified: false,
      is_active: true,
      default_workspace_id: null,
    });
    const signedIn = await api.post('/v1/auth/login', { username: 'maria', password: 'correct horse' });
    expect(signedIn.json().user.settings).toEqual({
      current_org_id: owner.orgId,
      organizations: [{ org_id: owner.orgId, name: expect.any(String), role: 'member' }],
    });
    await app.jobsDone();
    expect(app.mails.findLast(({ to }) => to === 'maria@example.test')?.subject).toBe('Confirm your e-mail address');
  });

  it('is recorded with the account that was made', async () => {
    const { user_id } = (
      await api.post('/v1/users', account('norma'), { ...owner.headers, 'x-trace-id': 'making-norma' })
    ).json();
    expect(await app.database.prisma.activity.findMany({ where: { traceId: 'making-norma' } })).toMatchObject([
      { action: 'create', resourceType: 'user', resourceId: user_id, userId: owner.userId, orgId: owner.orgId },
    ]);
  });

  it('is 403 user:create for those who do not administer the organization', async () => {
    const answer = await api.post('/v1/users', account('nobody'), colleague.headers);
    expect(answer.json()).toMatchObject({ status_code: 403, details: { required_permission: 'user:create' } });
  });

  it('makes nobody of a role above the own', async () => {
    const admin = await createUser(app, owner, { username: 'adam', role: 'admin' });
    expect((await api.post('/v1/users', account('boss', { role: 'owner' }), admin.headers)).statusCode).toBe(403);
    expect((await api.post('/v1/users', account('helper', { role: 'admin' }), admin.headers)).json().roles).toEqual([
      'admin',
    ]);
  });

  it('is 409 for what is taken, 422 for a weak password and an unknown role', async () => {
    expect(
      (await api.post('/v1/users', account('CARL', { email: 'new@example.test' }), owner.headers)).json().details,
    ).toMatchObject({ field: 'username', value: 'CARL' });
    expect(
      (await api.post('/v1/users', account('new', { email: 'Carl@Example.TEST' }), owner.headers)).json().details,
    ).toMatchObject({ field: 'email' });
    expect(
      (await api.post('/v1/users', account('newcomer', { password: 'newcomer' }), owner.headers)).json().detail[0].loc,
    ).toEqual(['body', 'password']);
    expect(
      (await api.post('/v1/users', account('newcomer', { role: 'king' }), owner.headers)).json().detail[0].type,
    ).toBe('literal_error');
  });

  it('works where registration is closed', async () => {
    const closed = await startTestApp({
      env: { ALLOW_REGISTRATION: 'false', DATA_DIR: app.dataDir },
      databaseUrl: app.database.url,
    });
    try {
      expect((await callsOf(closed).post('/v1/users', account('inside'), owner.headers)).statusCode).toBe(201);
    } finally {
      await closed.close();
    }
  });
});
