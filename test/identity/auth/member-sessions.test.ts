import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { makeGrant } from '../../support/application-grant.ts';
import { addToWorkspace, caller, createUser, type Person, register, signIn } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { newApplication } from '../oauth/oauth-browser.ts';
import { atProvider, newCompany } from '../sso/enforced.ts';
import { type OpenIdServer, startOpenIdServer } from '../sso/openid-server.ts';

/* Whose sessions the administrators of an organization see and end (docs/decisions/0099). */

const LIST = `query ($orgId: ID!, $userId: ID) {
  memberSessions(orgId: $orgId, userId: $userId, first: 100) {
    totalCount
    nodes {
      sessionId userId user { username } role method identityProviderId address browser system isCurrent createdAt
      lastUsedAt
    }
  }
}`;
const END = `mutation ($orgId: ID!, $userId: ID!, $sessionId: ID) {
  endMemberSessions(orgId: $orgId, userId: $userId, sessionId: $sessionId) { orgId userId endedCount }
}`;

interface Session {
  sessionId: string;
  userId: string;
  user: { username: string };
  role: Role;
  method: string;
  identityProviderId: string | null;
  address: string | null;
  browser: string | null;
  system: string | null;
  isCurrent: boolean;
  createdAt: string;
  lastUsedAt: string | null;
}
type Place = Pick<Person, 'orgId'>;

let app: TestApp;
let server: OpenIdServer;
beforeAll(async () => {
  server = await startOpenIdServer();
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', TRUSTED_PROXIES: '127.0.0.1' } });
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(async () => {
  await app.close();
  await server.close();
});

async function sessionsOf(who: Person, { orgId }: Place, userId?: string): Promise<Session[]> {
  const { data, errors } = await who.ask<{ memberSessions: { nodes: Session[] } }>(LIST, { orgId, userId });
  expect(errors).toBeUndefined();
  return data.memberSessions.nodes;
}
const end = (who: Person, { orgId }: Place, userId: string, sessionId?: string) =>
  who.ask<{ endMemberSessions: { endedCount: number } }>(END, { orgId, userId, sessionId });
const codesOf = ({ errors }: Awaited<ReturnType<typeof end>>) => errors?.map(({ extensions }) => extensions.code);
const statusOf = async (who: Person) => (await who.call('GET', '/v1/auth/me')).status;

/** Somebody with an account of their own who joins the owner's organization, and works in their own. */
async function guestOf(owner: Person, role: Role = 'member'): Promise<Person> {
  const guest = await register(app, { name: 'guest' });
  const added = await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: guest.userId, role });
  expect(added.status).toBe(201);
  return guest;
}
const workIn = (who: Person, { orgId }: Place) => who.call('POST', '/v1/auth/switch-org', { org_id: orgId });

describe('the sessions of members', () => {
  test('of an account of this organization alone are all seen: who, since when, in which way, from where', async () => {
    const owner = await register(app);
    const member = await createUser(app, owner, { name: 'mia' });
    await app.services.tokenUses.flush();
    const [seen, ...others] = await sessionsOf(owner, owner, member.userId);
    expect(others).toEqual([]);
    expect(seen).toMatchObject({
      userId: member.userId,
      user: { username: member.username },
      role: 'member',
      method: 'password',
      identityProviderId: null,
      address: '127.0.0.1',
      browser: null,
      system: null,
      isCurrent: false,
      lastUsedAt: null,
    });
    expect(Math.abs(Date.parse(seen!.createdAt) - Date.now())).toBeLessThan(600_000);
    expect(await statusOf(member)).toBe(200);
    await waitFor(async () => {
      await app.services.tokenUses.flush();
      expect((await sessionsOf(owner, owner, member.userId))[0]!.lastUsedAt).not.toBeNull();
    });
    const own = await sessionsOf(owner, owner, owner.userId);
    expect(own.map(({ isCurrent }) => isCurrent)).toEqual([true]);
  });

  test('tell the browser in words', async () => {
    const owner = await register(app);
    const member = await createUser(app, owner);
    const headers = {
      ...member.headers,
      'x-csrf': '1',
      origin: app.url,
      'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) CriOS/140.0 Mobile Safari/604.1',
    };
    expect((await fetch(`${app.url}/account/session`, { method: 'POST', headers })).status).toBe(204);
    expect(await sessionsOf(owner, owner, member.userId)).toMatchObject([{ browser: 'Chrome', system: 'iPhone' }]);
  });

  test('of an account that others have as well are seen while they work here, and not those of elsewhere', async () => {
    const owner = await register(app);
    const guest = await guestOf(owner);
    expect(await sessionsOf(owner, owner, guest.userId)).toEqual([]);
    await workIn(guest, owner);
    const [here] = await sessionsOf(owner, owner, guest.userId);
    const elsewhere = await signIn(app, guest);
    await workIn(elsewhere, guest);
    expect(await sessionsOf(owner, owner, guest.userId)).toMatchObject([{ sessionId: here!.sessionId }]);
    // an account of one's own is not whole either once somebody else has it as a member
    const mine = await createUser(app, owner);
    const other = await register(app);
    await addToWorkspace(app, other, mine.userId);
    const theirs = await signIn(app, mine);
    await workIn(theirs, other);
    expect(await sessionsOf(owner, owner, mine.userId)).toHaveLength(1);
    expect(await sessionsOf(other, other, mine.userId)).toHaveLength(1);
  });

  test('are left out once nothing can go on with them', async () => {
    const owner = await register(app);
    const member = await createUser(app, owner);
    const [idle] = await sessionsOf(owner, owner, member.userId);
    await signIn(app, member);
    expect(await sessionsOf(owner, owner, member.userId)).toHaveLength(2);
    const pass = (change: string) => app.database.pool.query(`${change} where session_id = $1`, [idle!.sessionId]);
    await pass(`update refresh_tokens set expires_at = now() - interval '1 second'`);
    const left = await sessionsOf(owner, owner, member.userId);
    expect([left.length, left[0]!.sessionId === idle!.sessionId]).toEqual([1, false]);
    // as after the retention of its tokens
    await pass('delete from refresh_tokens');
    expect(await sessionsOf(owner, owner, member.userId)).toEqual(left);
  });

  test('that a provider opened are seen by the organization whose provider it is, and by no other', async () => {
    const company = await newCompany(app, server);
    const user = await atProvider(app, server, company, { sub: 'pia' });
    const other = await register(app);
    await addToWorkspace(app, other, user.userId);
    await workIn(user, other);
    const seen = await sessionsOf(company.owner, company.owner, user.userId);
    expect(seen).toMatchObject([{ method: 'oidc', identityProviderId: company.idpId }]);
    expect(await sessionsOf(other, other, user.userId)).toEqual([]);
    expect(codesOf(await end(other, other, user.userId, seen[0]!.sessionId))).toEqual(['RESOURCE_NOT_FOUND']);
    expect(await statusOf(user)).toBe(200);
  });

  test('are for those who may remove members, and tokens that name it', async () => {
    const owner = await register(app);
    const editor = await createUser(app, owner, { role: 'editor' });
    expect((await editor.ask(LIST, { orgId: owner.orgId })).errors![0]!.extensions.code).toBe('FORBIDDEN');
    expect(codesOf(await end(editor, owner, owner.userId))).toEqual(['FORBIDDEN']);
    const stranger = await register(app);
    expect((await stranger.ask(LIST, { orgId: owner.orgId })).errors).toHaveLength(1);
    const { plaintext_token } = await issueToken(app, owner, {
      permissions: ['organization_member:delete', 'user:read'],
    });
    const program = caller(app, { ...owner, accessToken: plaintext_token });
    expect((await sessionsOf(program, owner)).map(({ isCurrent }) => isCurrent)).toEqual([false, false]);
    expect((await end(program, owner, editor.userId)).data.endMemberSessions.endedCount).toBe(1);
    const { plaintext_token: other } = await issueToken(app, owner, { scopes: ['write'] });
    expect(codesOf(await end(caller(app, { ...owner, accessToken: other }), owner, owner.userId))).toEqual([
      'FORBIDDEN',
    ]);
  });
});

describe('ending sessions of a member', () => {
  test('ends one, is recorded, and leaves the others', async () => {
    const owner = await register(app);
    const member = await createUser(app, owner);
    const second = await signIn(app, member);
    const sessions = await sessionsOf(owner, owner, member.userId);
    expect(sessions).toHaveLength(2);
    // newest first
    const { data } = await end(owner, owner, member.userId, sessions[0]!.sessionId);
    expect(data.endMemberSessions).toEqual({ orgId: owner.orgId, userId: member.userId, endedCount: 1 });
    expect([await statusOf(member), await statusOf(second)]).toEqual([200, 401]);
    const refreshed = await app.server.inject({
      method: 'POST',
      url: '/v1/auth/refresh',
      payload: { refresh_token: second.refreshToken },
    });
    expect(refreshed.statusCode).toBe(401);
    const { rows } = await app.database.pool.query<{ metadata: object }>(
      `select metadata from activity where org_id = $1 and action = 'update' and resource_type = 'organization_member'
        and resource_id = $2`,
      [owner.orgId, member.userId],
    );
    expect(rows).toMatchObject([{ metadata: { sessions_ended: 1, session_id: sessions[0]!.sessionId } }]);
    expect(codesOf(await end(owner, owner, member.userId, sessions[0]!.sessionId))).toEqual(['RESOURCE_NOT_FOUND']);
  });

  test('ends all that concern the organization, with grants of applications, and not the one that asks', async () => {
    const owner = await register(app);
    const member = await createUser(app, owner);
    const guest = await guestOf(owner);
    const other = await register(app);
    const [one] = await sessionsOf(owner, owner, member.userId);
    const { id: applicationId } = await newApplication(owner);
    const granted = { orgId: owner.orgId, applicationId, userId: member.userId, sessionId: one!.sessionId };
    await makeGrant(app, granted);
    await signIn(app, member);
    expect((await end(owner, owner, member.userId)).data.endMemberSessions.endedCount).toBe(2);
    expect(await statusOf(member)).toBe(401);
    const { body } = await owner.call<{ application_grants: object[] }>(
      'GET',
      `/v1/orgs/${owner.orgId}/application-grants`,
    );
    expect(body.application_grants).toEqual([]);
    // of somebody who works elsewhere there is none to end
    expect((await end(owner, owner, guest.userId)).data.endMemberSessions.endedCount).toBe(0);
    expect(await statusOf(guest)).toBe(200);
    await signIn(app, owner);
    expect((await end(owner, owner, owner.userId)).data.endMemberSessions.endedCount).toBe(1);
    expect(await statusOf(owner)).toBe(200);
    expect(codesOf(await end(owner, owner, other.userId))).toEqual(['RESOURCE_NOT_FOUND']);
  });

  test('is refused for a role above one’s own', async () => {
    const owner = await register(app);
    const admin = await createUser(app, owner, { role: 'admin' });
    const equal = await createUser(app, owner, { role: 'admin' });
    expect(codesOf(await end(admin, owner, owner.userId))).toEqual(['FORBIDDEN']);
    expect(await statusOf(owner)).toBe(200);
    expect((await end(admin, owner, equal.userId)).data.endMemberSessions.endedCount).toBe(1);
  });
});
