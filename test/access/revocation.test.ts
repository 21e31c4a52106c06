import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { stopAges } from '../support/passing-time.ts';
import { addToWorkspace, createUser, type Person, register } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';

let here: TestApp;
let there: TestApp;
let owner: Person;
let number = 0;

beforeAll(async () => {
  here = await startTestApp();
  there = await here.another();
});
afterAll(() => here.close());
beforeEach(async () => {
  owner = await register(here);
  number += 1;
});

const at = (node: TestApp, url: string, user: Person) =>
  callsOf(node)
    .get(url, user.headers)
    .then((answer) => answer.statusCode);

/**
 * Both nodes have just let the user in (so it is in their caches). After `revoke`, done on one node, that node refuses
 * at once; the other within a second.
 */
async function expectRevoked(
  url: string,
  user: Person,
  status: number,
  revoke: () => Promise<{ statusCode: number }>,
): Promise<void> {
  const ages = stopAges();
  expect([await at(here, url, user), await at(there, url, user)]).toEqual([200, 200]);
  expect((await revoke()).statusCode).toBeLessThan(300);
  expect(await at(here, url, user)).toBe(status);
  ages.pass(1_000);
  await waitFor(async () => expect(await at(there, url, user)).toBe(status));
}

describe('two nodes over one database and one folder of keys', () => {
  it('take each other’s tokens', async () => {
    expect(await at(there, '/v1/auth/me', owner)).toBe(200);
    const refreshed = await callsOf(there).post('/v1/auth/refresh', { refresh_token: owner.refreshToken });
    expect(refreshed.statusCode).toBe(200);
    expect((await callsOf(here).get('/v1/auth/me', { authorization: refreshed.json().access_token })).statusCode).toBe(
      200,
    );
  });

  it('take each other’s tokens right after a rotation of the keys', async () => {
    await SigningKeys.rotate(here.keysDir);
    const third = await startTestApp({ env: { DATA_DIR: here.dataDir }, databaseUrl: here.database.url });
    try {
      const user = await register(third);
      expect([await at(here, '/v1/auth/me', user), await at(there, '/v1/auth/me', user)]).toEqual([200, 200]);
    } finally {
      await third.close();
    }
  });

  it('give one successor when both refresh with one token at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        callsOf(index % 2 ? here : there).post('/v1/auth/refresh', { refresh_token: owner.refreshToken }),
      ),
    );
    expect(answers.map((answer) => answer.statusCode)).toEqual(Array(20).fill(200));
    expect(new Set(answers.map((answer) => answer.json().refresh_token)).size).toBe(1);
  });
});

describe('what acts at once on this node and within a second on the other', () => {
  it('signing out', async () => {
    await expectRevoked('/v1/auth/me', owner, 401, () =>
      callsOf(here).post('/v1/auth/logout', undefined, owner.headers),
    );
  });

  it('suspending an account', async () => {
    const user = await createUser(here, owner, { username: `suspended-${number}` });
    await expectRevoked('/v1/auth/me', user, 401, () =>
      callsOf(here).put(`/v1/users/${user.userId}`, { is_active: false }, owner.headers),
    );
  });

  it('deleting an account', async () => {
    const user = await createUser(here, owner, { username: `deleted-${number}` });
    await expectRevoked('/v1/auth/me', user, 401, () =>
      callsOf(here).delete(`/v1/users/${user.userId}`, owner.headers),
    );
  });

  it('the reuse of an old refresh token', async () => {
    const { refresh_token } = (
      await callsOf(here).post('/v1/auth/refresh', { refresh_token: owner.refreshToken })
    ).json();
    await callsOf(here).post('/v1/auth/refresh', { refresh_token });
    await here.database.pool.query(
      `update refresh_tokens set replaced_at = replaced_at - interval '61 seconds' where replaced_at is not null`,
    );
    const reuse = () => callsOf(here).post('/v1/auth/refresh', { refresh_token: owner.refreshToken });
    await expectRevoked('/v1/auth/me', owner, 401, async () => ({
      statusCode: (await reuse()).statusCode === 401 ? 200 : 500,
    }));
  });

  it('changing the password, for the other sessions', async () => {
    const { access_token } = (
      await callsOf(here).post('/v1/auth/login', { username: owner.username, password: owner.password })
    ).json();
    const other = { ...owner, headers: { authorization: `Bearer ${access_token}` } };
    const input = { currentPassword: owner.password, newPassword: 'another password' };
    await expectRevoked('/v1/auth/me', other, 401, () =>
      callsOf(here).graphql(
        'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
        { input },
        owner.headers,
      ),
    );
    expect([await at(here, '/v1/auth/me', owner), await at(there, '/v1/auth/me', owner)]).toEqual([200, 200]);
  });

  it('removing a member of a workspace', async () => {
    const user = await register(here);
    await addToWorkspace(here, owner, user.userId);
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    await expectRevoked(workspace, user, 403, () =>
      callsOf(here).delete(`${workspace}/members/${user.userId}`, owner.headers),
    );
  });

  it('lowering a role', async () => {
    const user = await register(here);
    await addToWorkspace(here, owner, user.userId, 'admin');
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    const rename = (node: TestApp) =>
      callsOf(node)
        .put(workspace, { name: 'renamed' }, user.headers)
        .then((answer) => answer.statusCode);
    const ages = stopAges();
    expect([await rename(here), await rename(there)]).toEqual([200, 200]);
    await callsOf(here).patch(`${workspace}/members/${user.userId}`, { role: 'viewer' }, owner.headers);
    expect(await rename(here)).toBe(403);
    ages.pass(1_000);
    await waitFor(async () => expect(await rename(there)).toBe(403));
    expect(await at(there, workspace, user)).toBe(200);
  });

  it('deleting a workspace', async () => {
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    await expectRevoked(workspace, owner, 404, () => callsOf(here).delete(workspace, owner.headers));
  });
});

describe('what acts at once on this node', () => {
  it('raising a role', async () => {
    const user = await register(here);
    await addToWorkspace(here, owner, user.userId, 'viewer');
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    expect((await callsOf(here).put(workspace, { name: 'renamed' }, user.headers)).statusCode).toBe(403);
    await callsOf(here).patch(`${workspace}/members/${user.userId}`, { role: 'admin' }, owner.headers);
    expect((await callsOf(here).put(workspace, { name: 'renamed' }, user.headers)).statusCode).toBe(200);
  });

  it('becoming a member', async () => {
    const user = await register(here);
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    expect(await at(here, workspace, user)).toBe(403);
    await addToWorkspace(here, owner, user.userId, 'viewer');
    expect(await at(here, workspace, user)).toBe(200);
  });
});
