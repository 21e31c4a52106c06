import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Role } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { addToWorkspace, createUser, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let api: Calls;
let owner: Person;
let number = 0;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
  await register(app, { username: 'the-first' });
});
afterAll(() => app.close());
beforeEach(async () => {
  number += 1;
  owner = await register(app);
});

const colleague = (role?: Role) => createUser(app, owner, { name: 'colleague', ...(role ? { role } : {}) });
const row = ({ userId }: Person) => app.database.prisma.user.findUniqueOrThrow({ where: { id: userId } });
const update = (user: Person, changes: object, by = user) => api.put(`/v1/users/${user.userId}`, changes, by.headers);
const permission = 'required_permission';

const waitingForLocks = () => lockWaits(app.database.pool);

describe('changing the own profile', () => {
  it('changes what is given and leaves the rest', async () => {
    const answer = await update(owner, {
      full_name: 'Olivia',
      timezone: 'Europe/Rome',
      locale: 'it-IT',
      avatar_url: 'https://example.test/a.png',
      bio: 'x',
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({
      full_name: 'Olivia',
      timezone: 'Europe/Rome',
      locale: 'it-IT',
      avatar_url: 'https://example.test/a.png',
      bio: 'x',
    });
    expect((await update(owner, { bio: 'y' })).json()).toMatchObject({ full_name: 'Olivia', bio: 'y' });
  });

  it('changes nothing in the row when the body is empty', async () => {
    await update(owner, { full_name: 'Olivia', bio: 'x' });
    const before = await row(owner);
    const answer = await update(owner, {});
    expect(answer.statusCode).toBe(200);
    expect(await row(owner)).toEqual(before);
    expect(answer.json().updated_at).toBe(before.updatedAt.toISOString());
  });

  it.each(['full_name', 'avatar_url', 'bio', 'timezone', 'locale', 'default_workspace_id'])(
    'clears %s by null, to the row',
    async (field) => {
      const column = field.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as 'fullName';
      const value =
        {
          avatar_url: 'https://example.test/a.png',
          default_workspace_id: owner.workspaceId,
          timezone: 'UTC',
          locale: 'en',
        }[field] ?? 'a text';
      await update(owner, { [field]: value });
      expect((await row(owner))[column]).toBe(value);
      expect((await update(owner, { [field]: null })).json()[field]).toBeNull();
      expect((await row(owner))[column]).toBeNull();
    },
  );

  it.each(['email', 'username', 'is_active'])('cannot clear %s', async (field) => {
    const answer = await update(owner, { [field]: null });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail).toMatchObject([{ loc: ['body', field] }]);
  });

  it('ignores fields that it does not know, and those that are not to be set', async () => {
    const answer = await update(owner, {
      is_verified: true,
      roles: ['platform_admin'],
      is_platform_admin: true,
      password_hash: 'x',
      user_id: 'usr_x',
      nonsense: 1,
    });
    expect(answer.statusCode).toBe(200);
    expect(await row(owner)).toMatchObject({ isVerified: false, isPlatformAdmin: false, id: owner.userId });
  });

  it('keeps the address verified when it is sent unchanged', async () => {
    await app.database.prisma.user.update({ where: { id: owner.userId }, data: { isVerified: true } });
    expect((await update(owner, { email: owner.email })).json().is_verified).toBe(true);
  });

  it('is 409 for an e-mail address or user name that is taken, ignoring case', async () => {
    const other = await register(app);
    expect((await update(owner, { email: other.email.toUpperCase() })).json()).toMatchObject({
      status_code: 409,
      details: { field: 'email', value: other.email.toUpperCase() },
    });
    expect((await update(owner, { username: other.username.toUpperCase() })).json()).toMatchObject({
      status_code: 409,
      details: { field: 'username' },
    });
    expect((await update(owner, { username: owner.username.toUpperCase() })).statusCode).toBe(200);
  });

  it('starts only in a workspace that one can see', async () => {
    const other = await register(app);
    for (const id of [other.workspaceId, 'ws_00000000000000000000000000']) {
      const answer = await update(owner, { default_workspace_id: id });
      expect(answer.statusCode).toBe(422);
      expect(answer.json().detail[0].loc).toEqual(['body', 'default_workspace_id']);
    }
  });

  it('cannot suspend oneself', async () => {
    expect((await update(owner, { is_active: false })).json().detail[0].loc).toEqual(['body', 'is_active']);
  });

  it.each([
    ['avatar_url', 'javascript:alert(1)'],
    ['avatar_url', 'not a url'],
    ['email', 'no address'],
    ['email', 'a@b\r\nBcc: c@d.test'],
    ['username', 'x'],
    ['username', 'with space'],
    ['timezone', 'Europe Rome'],
    ['full_name', 'x'.repeat(256)],
    ['bio', 'x'.repeat(4_001)],
  ])('refuses %s %j', async (field, value) => {
    const answer = await update(owner, { [field]: value });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail).toMatchObject([{ loc: ['body', field] }]);
  });
});

describe('changing the account of another', () => {
  it('is for administrators of the organization that manages it', async () => {
    const user = await colleague();
    expect((await update(user, { full_name: 'Changed' }, owner)).json()).toMatchObject({
      user_id: user.userId,
      full_name: 'Changed',
    });
  });

  it('is 403 user:update for its other members', async () => {
    const [user, peer] = [await colleague(), await colleague('editor')];
    expect((await update(user, { full_name: 'x' }, peer)).json()).toMatchObject({
      status_code: 403,
      details: { [permission]: 'user:update' },
    });
    expect((await update(owner, { full_name: 'x' }, peer)).json()).toMatchObject({
      status_code: 403,
      details: { [permission]: 'user:update' },
    });
  });

  it('is 404 for strangers', async () => {
    const stranger = await register(app);
    for (const id of [stranger.userId, 'usr_00000000000000000000000000']) {
      expect((await api.put(`/v1/users/${id}`, { full_name: 'x' }, owner.headers)).statusCode).toBe(404);
      expect((await api.delete(`/v1/users/${id}`, owner.headers)).statusCode).toBe(404);
    }
  });

  it('does not let administrators take over the account of a guest', async () => {
    const guest = await register(app);
    await addToWorkspace(app, owner, guest.userId);
    const before = await row(guest);
    for (const changes of [{ email: 'thief@example.test' }, { username: 'stolen' }, { is_active: false }]) {
      expect((await update(guest, changes, owner)).json()).toMatchObject({
        status_code: 403,
        details: { [permission]: 'user:update' },
      });
    }
    expect((await api.delete(`/v1/users/${guest.userId}`, owner.headers)).json()).toMatchObject({
      status_code: 403,
      details: { [permission]: 'user:delete' },
    });
    expect(await row(guest)).toEqual(before);
  });

  it('ends with the membership: one who left is managed no more, although both are guests elsewhere', async () => {
    const user = await colleague();
    const host = await register(app);
    await addToWorkspace(app, host, user.userId);
    await addToWorkspace(app, host, owner.userId);
    await app.database.prisma.organizationMember.deleteMany({ where: { orgId: owner.orgId, userId: user.userId } });
    expect((await update(user, { email: 'thief@example.test' }, owner)).statusCode).toBe(403);
  });

  it('does not reach those whose role is above the own', async () => {
    const [admin, second] = [await colleague('admin'), await colleague('owner')];
    expect((await update(second, { email: 'thief@example.test' }, admin)).statusCode).toBe(403);
    expect((await api.delete(`/v1/users/${second.userId}`, admin.headers)).statusCode).toBe(403);
    expect((await update(second, { full_name: 'x' }, owner)).statusCode).toBe(200);
  });

  it('does not reach an administrator of the platform, unless one is one', async () => {
    const user = await colleague();
    await app.database.prisma.user.update({ where: { id: user.userId }, data: { isPlatformAdmin: true } });
    expect((await update(user, { email: 'thief@example.test' }, owner)).statusCode).toBe(403);
  });

  it('suspends an account, which its administrators still see and can restore', async () => {
    const user = await colleague();
    expect((await update(user, { is_active: false }, owner)).json().is_active).toBe(false);
    expect((await api.post('/v1/auth/login', { username: user.username, password: user.password })).statusCode).toBe(
      401,
    );
    expect((await api.post('/v1/auth/refresh', { refresh_token: user.refreshToken })).statusCode).toBe(401);
    expect((await api.get(`/v1/users/${user.userId}`, owner.headers)).json().is_active).toBe(false);
    expect((await update(user, { is_active: true }, owner)).json().is_active).toBe(true);
    expect((await api.post('/v1/auth/login', { username: user.username, password: user.password })).statusCode).toBe(
      200,
    );
    expect((await api.get('/v1/auth/me', user.headers)).statusCode).toBe(401);
  });

  it('is recorded with the fields that were changed, not with their values', async () => {
    const user = await colleague();
    await api.put(
      `/v1/users/${user.userId}`,
      { bio: 'a marker' },
      { ...owner.headers, 'x-trace-id': `update-${number}` },
    );
    expect(await app.database.prisma.activity.findMany({ where: { traceId: `update-${number}` } })).toMatchObject([
      {
        action: 'update',
        resourceType: 'user',
        resourceId: user.userId,
        userId: owner.userId,
        orgId: owner.orgId,
        metadata: { fields: ['bio'] },
      },
    ]);
  });
});

describe('preferences', () => {
  const merge = (preferences: unknown) => api.patch('/v1/users/me/preferences', { preferences }, owner.headers);

  it('are merged by top-level key, and dropped by null', async () => {
    expect((await merge({ theme: 'dark', editor: { tabs: 2, wrap: true }, old: 1 })).json().preferences).toEqual({
      theme: 'dark',
      editor: { tabs: 2, wrap: true },
      old: 1,
    });
    expect((await merge({ editor: { tabs: 4 }, old: null, never: null })).json().preferences).toEqual({
      theme: 'dark',
      editor: { tabs: 4 },
    });
    expect((await merge({})).json().preferences).toEqual({ theme: 'dark', editor: { tabs: 4 } });
    expect((await row(owner)).preferences).toEqual({ theme: 'dark', editor: { tabs: 4 } });
  });

  it('keep nulls below the top level and keys of any spelling', async () => {
    const odd = { 'a.b': { c: null }, '': [1, null], ключ: 'ü', "it's": '"', 'x{y}': 1 };
    expect((await merge(odd)).json().preferences).toEqual(odd);
    expect((await merge({ 'a.b': null, '': null, "it's": null, 'x{y}': null })).json().preferences).toEqual({
      ключ: 'ü',
    });
  });

  it('lose nothing when many are merged at once', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => merge({ [`key-${index}`]: index })));
    expect(Object.keys((await row(owner)).preferences as object)).toHaveLength(20);
  });

  it('are bounded in total, and stay as they were when there are too many', async () => {
    expect((await merge({ a: 'x'.repeat(200_000) })).statusCode).toBe(200);
    const answer = await merge({ b: 'x'.repeat(100_000) });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail[0].loc).toEqual(['body', 'preferences']);
    expect(Object.keys((await row(owner)).preferences as object)).toEqual(['a']);
  });

  it.each([[null], ['text'], [[1]], [1]])('are an object, not %j', async (preferences) => {
    expect((await merge(preferences)).statusCode).toBe(422);
  });

  it('pollute no prototype', async () => {
    const answer = await app.server.inject({
      method: 'PATCH',
      url: '/v1/users/me/preferences',
      headers: { ...owner.headers, 'content-type': 'application/json' },
      payload: '{"preferences":{"__proto__":{"polluted":true}}}',
    });
    expect(answer.statusCode).toBe(422);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('deleting an account', () => {
  it('answers 204, ends its sessions and hides it at once', async () => {
    const user = await colleague();
    await addToWorkspace(app, owner, user.userId);
    const answer = await api.delete(`/v1/users/${user.userId}`, owner.headers);
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    expect((await api.get('/v1/auth/me', user.headers)).statusCode).toBe(401);
    expect((await api.post('/v1/auth/refresh', { refresh_token: user.refreshToken })).statusCode).toBe(401);
    expect((await api.post('/v1/auth/login', { username: user.username, password: user.password })).statusCode).toBe(
      401,
    );
    expect((await api.get(`/v1/users/${user.userId}`, owner.headers)).statusCode).toBe(404);
    expect((await api.get(`/v1/users?workspace_id=${owner.workspaceId}`, owner.headers)).body).not.toContain(
      user.userId,
    );
    expect((await api.delete(`/v1/users/${user.userId}`, owner.headers)).statusCode).toBe(404);
    expect((await update(user, { is_active: true }, owner)).statusCode).toBe(404);
  });

  it('happens once, and is not undone by a change that comes at the same moment', async () => {
    const user = await colleague();
    const other = new pg.Client({ connectionString: app.database.url });
    await other.connect();
    try {
      await other.query('begin');
      await other.query('select 1 from users where id = $1 for update', [user.userId]);
      const deleting = [0, 1].map(() => api.delete(`/v1/users/${user.userId}`, owner.headers));
      await waitFor(async () => expect(await waitingForLocks()).toBe(2));
      const activating = update(user, { is_active: true, bio: 'back again' }, owner);
      await waitFor(async () => expect(await waitingForLocks()).toBe(3));
      await other.query('commit');
      const statuses = (await Promise.all(deleting)).map(({ statusCode }) => statusCode);
      expect(new Set(statuses)).toEqual(new Set([204, 404]));
      expect((await activating).statusCode).toBe(404);
    } finally {
      await other.end();
    }
    expect(await row(user)).toMatchObject({ isActive: false, bio: null, deactivatedAt: expect.any(Date) });
    const records = await app.database.prisma.activity.findMany({
      where: { resourceId: user.userId, action: 'delete', success: true },
    });
    expect(records).toHaveLength(1);
  });

  it('is allowed to oneself', async () => {
    const user = await colleague();
    expect((await api.delete(`/v1/users/${user.userId}`, user.headers)).statusCode).toBe(204);
    expect((await api.get('/v1/auth/me', user.headers)).statusCode).toBe(401);
  });

  it('is 409 last_owner for the last owner of an organization, and changes nothing', async () => {
    const answer = await api.delete(`/v1/users/${owner.userId}`, owner.headers);
    expect(answer.statusCode).toBe(409);
    expect(answer.json()).toMatchObject({
      error: 'RESOURCE_CONFLICT',
      details: { resource_type: 'user', resource_id: owner.userId, reason: 'last_owner', references: [owner.orgId] },
    });
    expect((await api.get('/v1/auth/me', owner.headers)).statusCode).toBe(200);
  });

  it('is allowed to an owner when there is another, and to one of two at once', async () => {
    const second = await colleague('owner');
    const holder = new pg.Client({ connectionString: app.database.url });
    await holder.connect();
    try {
      // so that both are surely under way before either has ended
      await holder.query('begin');
      await holder.query('select 1 from organizations where id = $1 for update', [owner.orgId]);
      const deletions = [owner, second].map((user) => api.delete(`/v1/users/${user.userId}`, user.headers));
      await waitFor(async () => expect(await waitingForLocks()).toBe(2));
      await holder.query('commit');
      expect((await Promise.all(deletions)).map((answer) => answer.statusCode).sort((a, b) => a - b)).toEqual([
        204, 409,
      ]);
    } finally {
      await holder.end();
    }
  });

  it('counts a suspended owner for none', async () => {
    const second = await colleague('owner');
    await update(second, { is_active: false }, owner);
    expect((await api.delete(`/v1/users/${owner.userId}`, owner.headers)).statusCode).toBe(409);
  });

  it('is 403 for suspending an account that belongs to another organization, too', async () => {
    const user = await colleague();
    const elsewhere = await register(app);
    await app.database.prisma.organizationMember.updateMany({
      where: { orgId: elsewhere.orgId },
      data: { userId: user.userId },
    });
    const answer = await update(user, { is_active: false }, owner);
    expect(answer.json()).toMatchObject({ status_code: 403, details: { [permission]: 'user:update' } });
    expect((await row(user)).isActive).toBe(true);
    expect((await api.get('/v1/auth/me', user.headers)).statusCode).toBe(200);
  });

  it('is 403 user:delete for those who do not administer the organization', async () => {
    const [user, peer] = [await colleague(), await colleague('editor')];
    expect((await api.delete(`/v1/users/${user.userId}`, peer.headers)).json()).toMatchObject({
      status_code: 403,
      details: { [permission]: 'user:delete' },
    });
  });

  it('is recorded', async () => {
    const user = await colleague();
    await api.delete(`/v1/users/${user.userId}`, { ...owner.headers, 'x-trace-id': `delete-${number}` });
    expect(await app.database.prisma.activity.findMany({ where: { traceId: `delete-${number}` } })).toMatchObject([
      {
        action: 'delete',
        resourceType: 'user',
        resourceId: user.userId,
        userId: owner.userId,
        orgId: owner.orgId,
        statusCode: 204,
        success: true,
      },
    ]);
  });
});
