import * as client from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Beginning, codeOf, letFactorsAge, withPasskey, withTotp } from '../../support/factors.ts';
import { caller, changesOf, createUser, type Person, prove, register, signIn } from '../../support/person.ts';
import { openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';
import {
  ask,
  formIn,
  newApplication,
  openConsent,
  peerOf,
  signedInBrowser,
  submit,
  tokensOf,
} from '../oauth/oauth-browser.ts';
import {
  asOwner,
  atProvider,
  breakGlass,
  type EnforcingCompany,
  look,
  newCompany,
  SHUT_OUT,
  setPolicy,
} from './enforced.ts';
import { type OpenIdServer, startOpenIdServer } from './openid-server.ts';

/*
 * Who gets into an organization that demands single sign-on: those for whom one of its providers vouches, and nobody
 * else (docs/decisions/0066).
 */

let app: TestApp;
let server: OpenIdServer;
let clients = 0;
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

const asStranger = async (path: string, payload: object) => {
  clients += 1;
  const headers = { 'x-forwarded-for': `198.51.100.${clients}` };
  const answer = await app.server.inject({ method: 'POST', url: `/v1/auth/${path}`, headers, payload });
  await app.jobsDone();
  return answer;
};
const tokenMailedTo = (email: string): string => {
  const mail = app.mails.findLast(({ to, link }) => to === email && link);
  return new URL(mail!.link!).searchParams.get('token')!;
};
/** With another access token of the same account. */
const withToken = (person: Person, accessToken: string): Person => caller(app, { ...person, accessToken });
const codes = ({ errors }: { errors?: { extensions: Record<string, unknown> }[] }) =>
  errors?.map(({ extensions: { code, details } }) => {
    const { reason } = (details ?? {}) as { reason?: string };
    return reason ? `${code as string} ${reason}` : code;
  });
/** What was told to somebody of an organization. */
const told = async (who: Person, orgId: string): Promise<string[]> => {
  const { body } = await who.call<{ notifications: { title: string; scope_id: string }[] }>('GET', '/v1/notifications');
  return body.notifications.filter(({ scope_id: of }) => of === orgId).map(({ title }) => title);
};
const unread = async (who: Person): Promise<number> =>
  (await who.call<{ unread_count: number }>('GET', '/v1/notifications/unread-count')).body.unread_count;
const setRole = async (userId: string, role: string): Promise<void> => {
  const { errors } = await owner.ask(
    `mutation ($orgId: ID!, $userId: ID!, $role: Role!) {
      updateOrganizationMember(orgId: $orgId, userId: $userId, input: { role: $role }) { role }
    }`,
    { orgId: company.orgId, userId, role },
  );
  expect(errors).toBeUndefined();
};

let company: EnforcingCompany;
/** Signed in at the provider, with the role of an owner. */
let owner: Person;
/** A member with a password, whom no provider knows. */
let bob: Person;
/** A member whom the provider knows. */
let ann: Person;

const demand = async (input: object = { ssoRequired: true }) => {
  const answer = await setPolicy(owner, company.orgId, input);
  expect(answer.errors).toBeUndefined();
  return answer.data!.updateSignInPolicy;
};

describe('an organization that demands single sign-on', () => {
  beforeAll(async () => {
    company = await newCompany(app, server);
    owner = await asOwner(app, server, company);
    bob = await createUser(app, company.owner, { name: 'bob' });
    await prove(app, [bob]);
    ann = await atProvider(app, server, company);
  });

  test('is open to who signs in at its provider, and closed to passwords from then on', async () => {
    expect(await look(bob, company)).toBe('200');
    expect(await demand()).toEqual({
      orgId: company.orgId,
      ssoRequired: true,
      ssoRequiredDomains: [],
      breakGlass: true,
      membersWithoutIdentity: 1,
    });
    expect(await Promise.all([owner, ann, bob, company.owner].map((who) => look(who, company)))).toEqual([
      '200',
      '200',
      SHUT_OUT,
      SHUT_OUT,
    ]);
    expect(await changesOf(app, company.orgId)).toContainEqual(
      expect.objectContaining({
        action: 'update',
        userId: owner.userId,
        metadata: expect.objectContaining({
          fields: ['ssoRequired'],
          sso_required: true,
          sso_required_domains: [],
        }) as object,
      }),
    );
  });

  test('a new sign-in with the password opens a session that does not reach into it', async () => {
    const again = await signIn(app, bob);
    expect(await look(again, company)).toBe(SHUT_OUT);
    const graphql = await bob.ask<{ login: { accessToken: string } }>(
      'mutation ($input: LoginInput!) { login(input: $input) { accessToken } }',
      { input: { username: bob.username, password: bob.password } },
    );
    const other = withToken(bob, graphql.data.login.accessToken);
    expect(codes(await other.ask(`{ organization(id: "${company.orgId}") { name } }`))).toEqual([
      'FORBIDDEN sso_required',
    ]);
    expect((await other.call('GET', '/v1/auth/me')).status).toBe(200);
  });

  test('neither a refresh of an old session nor a switch opens it', async () => {
    const answer = await asStranger('refresh', { refresh_token: bob.refreshToken });
    expect(answer.statusCode).toBe(200);
    const refreshed = withToken(bob, answer.json<{ access_token: string }>().access_token);
    expect(await look(refreshed, company)).toBe(SHUT_OUT);
    const switched = await refreshed.call('POST', '/v1/auth/switch-org', { org_id: company.orgId });
    expect(switched).toMatchObject({ status: 403, body: { details: { reason: 'sso_required' } } });
  });

  test('nor does a reset of the password', async () => {
    expect((await asStranger('forgot-password', { email: bob.email })).statusCode).toBe(200);
    const password = 'the password after the reset';
    const reset = await asStranger('reset-password', { token: tokenMailedTo(bob.email), new_password: password });
    expect(reset.statusCode, reset.body).toBe(200);
    bob = caller(app, { ...(await signIn(app, { ...bob, password })), email: bob.email, orgId: company.orgId });
    expect(await look(bob, company)).toBe(SHUT_OUT);
  });

  test.each<[string, (who: Person) => Promise<unknown>]>([
    ['a read of the organization', (who) => who.call('GET', `/v1/orgs/${company.orgId}`)],
    ['a list of members', (who) => who.call('GET', `/v1/orgs/${company.orgId}/members`)],
    ['a workspace', (who) => who.call('GET', `${company.inside}/${company.owner.workspaceId}`)],
    ['a new API token', (who) => who.call('POST', `/v1/orgs/${company.orgId}/api-tokens`, { name: 'kept' })],
    ['the list of API tokens', (who) => who.call('GET', `/v1/orgs/${company.orgId}/api-tokens`)],
    ['own activity', (who) => who.call('GET', `/v1/orgs/${company.orgId}/users/${who.userId}/activity`)],
    ['secrets', (who) => who.call('GET', `/v1/orgs/${company.orgId}/secrets`)],
    ['its users', (who) => who.call('GET', `/v1/users?workspace_id=${company.owner.workspaceId}`)],
  ])('%s is refused to a session of a password', async (_what, send) => {
    expect(await send(bob)).toMatchObject({ status: 403 });
  });

  test.each([
    ['a mutation', () => `mutation { updateOrganization(id: "${company.orgId}", input: {name: "Bob's"}) { name } }`],
    ['its policy', () => `mutation { updateSignInPolicy(orgId: "${company.orgId}", input: {}) { orgId } }`],
    ['a look at its policy', () => `{ signInPolicy(orgId: "${company.orgId}") { ssoRequired } }`],
  ])('over GraphQL, %s is refused too', async (_what, query) => {
    expect(codes(await company.owner.ask(query()))).toEqual(['FORBIDDEN sso_required']);
  });

  test('a look for any object by its id finds none of its objects', async () => {
    const { data } = await company.owner.ask<{ node: null }>(`{ node(id: "${company.owner.workspaceId}") { id } }`);
    expect(data.node).toBeNull();
  });

  test('its workspaces are not in the list of own organizations', async () => {
    const { data, errors } = await company.owner.ask<{ organizations: { nodes: object[] } | null }>(
      '{ organizations { nodes { id workspaces { nodes { id } } } } }',
    );
    expect(codes({ errors: errors as never })).toEqual(['FORBIDDEN sso_required']);
    expect(JSON.stringify(data)).not.toContain(company.owner.workspaceId);
  });

  test('what it has told is not shown to a session of a password', async () => {
    const before = await unread(bob);
    await setRole(bob.userId, 'admin');
    expect(await told(bob, company.orgId)).toEqual([]);
    expect(await unread(bob)).toBe(before);
    await demand({ ssoRequired: false });
    expect(await told(bob, company.orgId)).toContainEqual(expect.stringContaining('Your role in'));
    expect(await unread(bob)).toBeGreaterThan(before);
    await demand();
    await setRole(bob.userId, 'member');
  });

  test('a stream that is open ends when single sign-on is demanded', async () => {
    await demand({ ssoRequired: false });
    const url = `${app.url}${company.inside}/${company.owner.workspaceId}/sync/stream`;
    const stream = await openEvents(url, { headers: company.owner.headers });
    await demand();
    await stream.ended;
    expect(stream.events.at(-1)!.data).toContain('membership_revoked');
  });

  test('an invitation that is accepted with a password opens nothing', async () => {
    const carl = await register(app, { name: 'carl' });
    const invited = await owner.call('POST', `/v1/orgs/${company.orgId}/invitations`, { email: carl.email });
    expect(invited.status, JSON.stringify(invited.body)).toBe(201);
    await app.jobsDone();
    const { errors } = await carl.ask(
      'mutation ($input: AcceptInvitationInput!) { acceptInvitation(input: $input) { __typename } }',
      { input: { token: tokenMailedTo(carl.email) } },
    );
    expect(errors).toBeUndefined();
    expect(await look(carl, company)).toBe(SHUT_OUT);
    expect((await carl.call('GET', `/v1/orgs/${carl.orgId}/workspaces`)).status).toBe(200);
  });

  test('a new session works in an organization that is open to it', async () => {
    const dora = await register(app, { name: 'dora' });
    expect((await owner.call('POST', `/v1/orgs/${company.orgId}/members`, { user_id: dora.userId })).status).toBe(201);
    await app.database.pool.query('update users set default_workspace_id = $2 where id = $1', [
      dora.userId,
      company.owner.workspaceId,
    ]);
    expect((await signIn(app, dora)).orgId).toBe(dora.orgId);
  });

  test('the provider of another organization vouches for nobody here', async () => {
    const other = await newCompany(app, server);
    const eve = await atProvider(app, server, other, { sub: 'eve' });
    await owner.call('POST', `/v1/orgs/${company.orgId}/members`, { user_id: eve.userId, role: 'admin' });
    expect(await look(eve, other)).toBe('200');
    expect(await look(eve, company)).toBe(SHUT_OUT);
  });

  test('who shares an open organization too is found in that one', async () => {
    const dora = await register(app, { name: 'dora' });
    const members = [
      await owner.call('POST', `/v1/orgs/${company.orgId}/members`, { user_id: dora.userId }),
      await dora.call('POST', `/v1/orgs/${dora.orgId}/members`, { user_id: bob.userId }),
    ];
    expect(members.map(({ status }) => status)).toEqual([201, 201]);
    expect((await bob.call('GET', `/v1/users/${dora.userId}`)).status).toBe(200);
    // who shares the closed one alone is not
    expect((await bob.call('GET', `/v1/users/${ann.userId}`)).status).not.toBe(200);
  });

  test('no API token changes the policy', async () => {
    const token = await issueToken(app, owner, { permissions: ['identity_provider:update', 'organization:access'] });
    const program = withToken(owner, token.plaintext_token);
    expect(codes(await setPolicy(program, company.orgId, { ssoRequired: false }))).toEqual(['FORBIDDEN']);
    expect(codes(await setPolicy(ann, company.orgId, { ssoRequired: false }))).toEqual(['FORBIDDEN']);
    expect(await look(bob, company)).toBe(SHUT_OUT);
  });

  test('an API token works while a provider knows its user', async () => {
    await demand({ ssoRequired: false });
    const [ofAnn, ofBob] = await Promise.all(
      [ann, bob].map((who) => issueToken(app, { ...who, orgId: company.orgId })),
    );
    await demand();
    expect(await look(withToken(ann, ofAnn!.plaintext_token), company)).toBe('200');
    expect(await look(withToken(bob, ofBob!.plaintext_token), company)).toBe(SHUT_OUT);
    const made = await app.server.inject({
      method: 'POST',
      url: `/v1/orgs/${company.orgId}/api-tokens`,
      headers: ofBob!.headers,
      payload: { name: 'another' },
    });
    expect(made.statusCode).toBe(403);
  });

  test('it stays closed when its provider is switched off or gone', async () => {
    const lonely = await newCompany(app, server);
    const theirs = await asOwner(app, server, lonely);
    const { errors } = await setPolicy(theirs, lonely.orgId, { ssoRequired: true });
    expect(errors).toBeUndefined();
    expect((await theirs.call('DELETE', lonely.url)).status).toBe(204);
    expect((await theirs.call('GET', '/v1/auth/me')).status).toBe(401);
    expect(await look(lonely.owner, lonely)).toBe(SHUT_OUT);
  });
});

describe('applications of an organization that demands single sign-on', () => {
  let peer: client.Configuration;
  let device: client.Configuration;
  let browser: BrowserWithCookies;
  let before: client.TokenEndpointResponse;
  let member: Person;
  const reads = async (token: string): Promise<string> => look(withToken(member, token), company);

  beforeAll(async () => {
    company = await newCompany(app, server);
    owner = await asOwner(app, server, company);
    member = await createUser(app, company.owner, { name: 'member' });
    [peer, device] = await Promise.all([
      peerOf(app, await newApplication(company.owner)),
      peerOf(app, await newApplication(company.owner, { name: 'Shell', redirect_uris: [] })),
    ]);
    browser = await signedInBrowser(app, member);
    before = await tokensOf(app, browser, peer, { scope: 'workspace:read offline_access openid', prompt: 'consent' });
    expect(await reads(before.access_token)).toBe('200');
    await demand();
  });

  test('what was granted in a session of a password is over, and is not refreshed', async () => {
    expect(await reads(before.access_token)).toBe(SHUT_OUT);
    await expect(client.refreshTokenGrant(peer, before.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });

  test('a new request is refused without a question', async () => {
    const { url } = await ask(peer, { scope: 'workspace:read' });
    const { at } = await openConsent(app, browser, url);
    expect(new URL(at).searchParams.get('error')).toBe('access_denied');
  });

  test('a cookie of a browser does not open it', async () => {
    const headers = { 'x-csrf': '1', origin: new URL(app.url).origin };
    expect((await browser.send(`${app.url}${company.inside}`, { headers })).status).toBe(403);
    expect((await browser.send(`${app.url}/v1/auth/me`, { headers })).status).toBe(200);
  });

  test('a device gets nothing from a session of a password', async () => {
    const begun = await client.initiateDeviceAuthorization(device, { scope: 'workspace:read' });
    const page = `${app.url}/oauth/device`;
    const code = formIn(await (await browser.send(page)).text());
    code.set('user_code', begun.user_code);
    const confirm = formIn(await (await submit(app, browser, page, code)).text());
    confirm.set('confirm', 'yes');
    const confirmed = await submit(app, browser, page, confirm);
    await openConsent(app, browser, new URL(confirmed.headers.get('location')!, app.url));
    await expect(
      client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
        device_code: begun.device_code,
      }),
    ).rejects.toMatchObject({ error: 'access_denied' });
  });

  test('in a session of the provider all of it works', async () => {
    const theirs = await signedInBrowser(app, member);
    // as if the browser had come from the provider
    await app.database.pool.query(
      `update sessions set method = 'oidc', identity_provider_id = $2
        where user_id = $1 and cookie_hash is not null and revoked_at is null`,
      [member.userId, company.idpId],
    );
    app.services.authentication.sessionsChanged();
    const tokens = await tokensOf(app, theirs, peer, { scope: 'workspace:read offline_access', prompt: 'consent' });
    expect(await reads(tokens.access_token)).toBe('200');
    const refreshed = await client.refreshTokenGrant(peer, tokens.refresh_token!);
    expect(await reads(refreshed.access_token)).toBe('200');
    // and it ends with the provider, although it was given for longer than the session
    expect((await owner.call('PUT', company.url, { is_active: false })).status).toBe(200);
    expect(await reads(refreshed.access_token)).toBe('401');
    await expect(client.refreshTokenGrant(peer, refreshed.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });
});

describe('the rules themselves', () => {
  beforeEach(async () => {
    company = await newCompany(app, server);
    owner = await asOwner(app, server, company);
  });

  test('are refused when no owner could sign in any more', async () => {
    const lonely = await register(app, { name: 'lonely' });
    const input = { ssoRequired: true, breakGlass: false };
    expect(codes(await setPolicy(lonely, lonely.orgId, input))).toEqual(['RESOURCE_CONFLICT nobody_left']);
    expect((await setPolicy(lonely, lonely.orgId, { ssoRequired: true })).errors).toBeUndefined();
    expect(codes(await setPolicy(lonely, lonely.orgId, { breakGlass: false }))).toEqual(['FORBIDDEN sso_required']);
    // a provider that an administrator has changed signs in no owner
    await app.database.pool.query(`update identity_providers set authority = 'admin' where id = $1`, [company.idpId]);
    expect(codes(await setPolicy(owner, company.orgId, input))).toEqual(['RESOURCE_CONFLICT nobody_left']);
    await app.database.pool.query(`update identity_providers set authority = 'owner' where id = $1`, [company.idpId]);
    expect((await setPolicy(owner, company.orgId, input)).errors).toBeUndefined();
  });

  test('can be for the people of a proven domain alone', async () => {
    const other = await newCompany(app, server);
    for (const domain of [other.domain, 'nobody.example.test', 'not a domain'])
      expect(codes(await setPolicy(owner, company.orgId, { ssoRequiredDomains: [domain] }))).toEqual([
        'VALIDATION_ERROR',
      ]);
    const inDomain = await createUser(app, company.owner, { name: 'in', email: `in@${company.domain}` });
    const guest = await createUser(app, company.owner, { name: 'guest' });
    expect(await demand({ ssoRequiredDomains: [company.domain.toUpperCase()] })).toMatchObject({
      ssoRequired: false,
      ssoRequiredDomains: [company.domain],
      membersWithoutIdentity: 1,
    });
    expect(await look(inDomain, company)).toBe(SHUT_OUT);
    expect(await look(guest, company)).toBe('200');
    // who cannot get in with the address gets no other one either
    const change = (email: string) =>
      inDomain.call('PUT', `/v1/users/${inDomain.userId}`, { email, current_password: inDomain.password });
    expect((await change('free@elsewhere.example.test')).status).toBe(422);
    // nor a spelling that mail takes for the same domain, and the rule for another one
    expect((await change(`in@${company.domain.replace(/t$/, '\uff54')}`)).status).toBe(422);
    expect((await change(`other@${company.domain}`)).status).toBe(200);
    // a provider that gives the domain up opens nothing
    expect((await owner.call('PUT', company.url, { verified_domains: [] })).status).toBe(200);
    expect(await look(inDomain, company)).toBe(SHUT_OUT);
  });

  test('an international domain is demanded in both of its spellings, and shown in one', async () => {
    const [ascii, letters] = [`xn--mnchen-3ya.${company.domain}`, `m\u00fcnchen.${company.domain}`];
    await app.database.pool.query('update identity_provider_domains set domain = $2 where org_id = $1', [
      company.orgId,
      ascii,
    ]);
    const people = await Promise.all(
      [ascii, letters].map((domain, index) =>
        createUser(app, company.owner, { name: `in${index}`, email: `in${index}@${domain}` }),
      ),
    );
    expect(await demand({ ssoRequiredDomains: [letters] })).toMatchObject({ ssoRequiredDomains: [ascii] });
    for (const person of people) expect(await look(person, company)).toBe(SHUT_OUT);
    // a change of another rule keeps both
    expect(await demand({ breakGlass: true })).toMatchObject({ ssoRequiredDomains: [ascii] });
    for (const person of people) expect(await look(person, company)).toBe(SHUT_OUT);
    expect(await demand({ ssoRequiredDomains: [ascii] })).toMatchObject({ ssoRequiredDomains: [ascii] });
    expect(await demand({ ssoRequiredDomains: [] })).toMatchObject({ ssoRequiredDomains: [] });
    for (const person of people) expect(await look(person, company)).toBe('200');
  });

  test('shut out no administrator of the platform, whom no provider signs in', async () => {
    const operator = await createUser(app, company.owner, { name: 'operator' });
    await app.database.pool.query('update users set is_platform_admin = true where id = $1', [operator.userId]);
    const refused = await setPolicy(owner, company.orgId, { ssoRequired: true });
    expect(codes(refused)).toEqual(['RESOURCE_CONFLICT nobody_left']);
    expect(refused.errors![0]).toMatchObject({
      message: expect.stringContaining('1 platform administrator') as string,
    });
    // owners break the glass
    await setRole(operator.userId, 'owner');
    await demand();
    expect(codes(await setPolicy(owner, company.orgId, { breakGlass: false }))).toEqual([
      'RESOURCE_CONFLICT nobody_left',
    ]);
  });

  test('a change of the address that waits for its link ends when its user becomes a member', async () => {
    const dora = await register(app, { name: 'dora' });
    const email = 'later@elsewhere.example.test';
    const body = { email, current_password: dora.password };
    expect((await dora.call('PUT', `/v1/users/${dora.userId}`, body)).status).toBe(200);
    await app.jobsDone();
    expect((await owner.call('POST', `/v1/orgs/${company.orgId}/members`, { user_id: dora.userId })).status).toBe(201);
    expect((await asStranger('verify-email', { token: tokenMailedTo(email) })).statusCode).toBe(401);
  });

  test('a change of the address that was asked for before comes too late', async () => {
    const inDomain = await createUser(app, company.owner, { name: 'in', email: `in@${company.domain}` });
    const email = 'late@elsewhere.example.test';
    const body = { email, current_password: inDomain.password };
    expect((await inDomain.call('PUT', `/v1/users/${inDomain.userId}`, body)).status).toBe(200);
    await app.jobsDone();
    await demand({ ssoRequiredDomains: [company.domain] });
    expect((await asStranger('verify-email', { token: tokenMailedTo(email) })).statusCode).toBe(422);
    expect(await look(inDomain, company)).toBe(SHUT_OUT);
  });
});

describe('owners can break the glass', () => {
  let second: Person;
  let admin: Person;
  beforeAll(async () => {
    company = await newCompany(app, server);
    owner = await asOwner(app, server, company);
    second = await createUser(app, company.owner, { name: 'second', role: 'owner' });
    admin = await createUser(app, company.owner, { name: 'admin', role: 'admin' });
    await prove(app, [second]);
    await demand();
  });

  test.each<[string, () => Promise<unknown>, string]>([
    ['who is no owner', () => breakGlass(admin, company.orgId, admin.password), 'FORBIDDEN'],
    ['another organization', async () => breakGlass(await register(app), company.orgId, 'x'), 'FORBIDDEN'],
    ['an unknown organization', () => breakGlass(second, 'org_unknown', second.password), 'FORBIDDEN'],
    ['a wrong password', () => breakGlass(second, company.orgId, 'not the password'), 'VALIDATION_ERROR'],
    ['no reason', () => breakGlass(second, company.orgId, second.password, ''), 'VALIDATION_ERROR'],
    [
      'an organization that demands nothing',
      async () => {
        const free = await register(app);
        return breakGlass(free, free.orgId, free.password);
      },
      'FORBIDDEN',
    ],
  ])('refused: %s', async (_what, send, code) => {
    expect(codes((await send()) as never)).toEqual([code]);
    expect(await look(second, company)).toBe(SHUT_OUT);
  });

  test('with their password: this session alone is in, it is recorded, and every owner is told', async () => {
    const another = await signIn(app, second);
    await app.jobsDone();
    const since = app.mails.length;
    const { data, errors } = await breakGlass(second, company.orgId, second.password);
    expect(errors).toBeUndefined();
    const { until } = data!.breakGlass as { until: string };
    expect(Date.parse(until) - Date.now()).toBeLessThanOrEqual(3_600_000);
    expect(await look(second, company)).toBe('200');
    expect(await look(another, company)).toBe(SHUT_OUT);
    expect((await changesOf(app, company.orgId)).at(-1)).toMatchObject({
      action: 'update',
      userId: second.userId,
      metadata: { break_glass: 'the provider is down', until },
    });
    await app.jobsDone();
    const title = expect.stringMatching(/^An owner has opened the organization '.+' with a password$/) as string;
    expect(await told(owner, company.orgId)).toEqual([title]);
    expect(await told(second, company.orgId)).toContainEqual(title);
    expect(await told(admin, company.orgId)).toEqual([]);
    await waitUntil(() => app.mails.length >= since + 2);
    const mailed = app.mails.slice(since);
    expect(mailed.map(({ to }) => to).sort()).toEqual([owner.email, second.email].sort());
    expect(mailed[0]!.text).toContain('the provider is down');
    expect(JSON.stringify([mailed, await changesOf(app, company.orgId)])).not.toContain(second.password);
  });

  test('it ends with the hour, with the role, and with the rule that allows it', async () => {
    const opened = async () => {
      expect((await breakGlass(second, company.orgId, second.password)).errors).toBeUndefined();
      expect(await look(second, company)).toBe('200');
    };
    await opened();
    await app.database.pool.query(`update sessions set break_glass_until = now() where break_glass_org_id = $1`, [
      company.orgId,
    ]);
    app.services.authentication.sessionsChanged();
    expect(await look(second, company)).toBe(SHUT_OUT);
    await opened();
    await setRole(second.userId, 'admin');
    expect(await look(second, company)).toBe(SHUT_OUT);
    await setRole(second.userId, 'owner');
    await opened();
    await demand({ breakGlass: false });
    expect(await look(second, company)).toBe(SHUT_OUT);
    expect(codes(await breakGlass(second, company.orgId, second.password))).toEqual(['FORBIDDEN']);
    // what was opened before does not come back
    await demand({ breakGlass: true });
    expect(await look(second, company)).toBe(SHUT_OUT);
  });

  test('nothing that is made meanwhile outlives the hour', async () => {
    expect((await breakGlass(second, company.orgId, second.password)).errors).toBeUndefined();
    expect(await look(second, company)).toBe('200');
    const refused = { status: 403, body: { details: { reason: 'sso_required' } } };
    for (const path of ['api-tokens', 'scim-tokens'])
      expect(await second.call('POST', `/v1/orgs/${company.orgId}/${path}`, { name: 'kept' })).toMatchObject(refused);
    expect((await owner.call('POST', `/v1/orgs/${company.orgId}/scim-tokens`, { name: 'kept' })).status).toBe(201);
  });

  /** A browser of the second owner, whose session has opened the organization. */
  async function openedBrowser(): Promise<BrowserWithCookies> {
    const browser = await signedInBrowser(app, second);
    const payload = {
      query: `mutation ($orgId: ID!, $input: BreakGlassInput!) { breakGlass(orgId: $orgId, input: $input) { until } }`,
      variables: { orgId: company.orgId, input: { password: second.password, reason: 'the provider is down' } },
    };
    const headers = { 'x-csrf': '1', origin: new URL(app.url).origin, 'content-type': 'application/json' };
    const answer = await browser.send(`${app.url}/graphql`, { method: 'POST', body: JSON.stringify(payload), headers });
    expect(await answer.json()).toMatchObject({ data: { breakGlass: {} } });
    expect((await browser.send(`${app.url}${company.inside}`, { headers })).status).toBe(200);
    return browser;
  }

  test('no application gets anything from it, in a browser or on a device', async () => {
    const browser = await openedBrowser();
    const [peer, device] = await Promise.all([
      peerOf(app, await newApplication(owner)),
      peerOf(app, await newApplication(owner, { name: 'Shell', redirect_uris: [] })),
    ]);
    const scope = 'workspace:read offline_access';
    await expect(tokensOf(app, browser, peer, { scope, prompt: 'consent' })).rejects.toThrow();
    const begun = await client.initiateDeviceAuthorization(device, { scope: 'workspace:read' });
    const page = `${app.url}/oauth/device`;
    const code = formIn(await (await browser.send(page)).text());
    code.set('user_code', begun.user_code);
    const confirm = formIn(await (await submit(app, browser, page, code)).text());
    confirm.set('confirm', 'yes');
    const confirmed = await submit(app, browser, page, confirm);
    const asked = await openConsent(app, browser, new URL(confirmed.headers.get('location')!, app.url));
    const form = formIn(asked.text);
    form.set('decision', 'allow');
    await submit(app, browser, asked.at, form);
    await expect(
      client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
        device_code: begun.device_code,
      }),
    ).rejects.toThrow();
  });

  test('neither a passkey, nor a new password opens it, and none of them takes the place of the act', async () => {
    const fourth = await createUser(app, owner, { name: 'fourth', role: 'owner' });
    await prove(app, [fourth]);
    const { authenticator } = await withPasskey(app, fourth);
    const post = (url: string, payload: object) => app.server.inject({ method: 'POST', url, payload });
    const { challenge, options } = (await post('/v1/auth/passkeys/sign-in/begin', {})).json<Beginning>();
    const signedIn = await post('/v1/auth/passkeys/sign-in', { challenge, credential: authenticator.get(options) });
    expect(signedIn.statusCode).toBe(200);
    const byPasskey = withToken(fourth, signedIn.json<{ access_token: string }>().access_token);
    expect(await look(byPasskey, company)).toBe(SHUT_OUT);
    // with the password it is opened, for the session of the passkey, which is a fresh factor
    expect((await breakGlass(byPasskey, company.orgId, fourth.password)).errors).toBeUndefined();
    expect(await look(byPasskey, company)).toBe('200');
    const refreshed = await asStranger('refresh', {
      refresh_token: signedIn.json<{ refresh_token: string }>().refresh_token,
    });
    expect(await look(withToken(fourth, refreshed.json<{ access_token: string }>().access_token), company)).toBe('200');
    // a reset ends the session, and what it had opened with it
    expect((await asStranger('forgot-password', { email: fourth.email })).statusCode).toBe(200);
    const password = 'the password after the reset';
    const token = tokenMailedTo(fourth.email);
    expect((await asStranger('reset-password', { token, new_password: password })).statusCode).toBe(200);
    expect(await look(byPasskey, company)).toBe('401');
  });

  test('the password alone is not enough of an owner with a second factor', async () => {
    const third = await createUser(app, owner, { name: 'third', role: 'owner' });
    await prove(app, [third]);
    const { secret } = await withTotp(app, third);
    await letFactorsAge(app, third);
    expect(codes(await breakGlass(third, company.orgId, third.password))).toEqual(['FORBIDDEN fresh_factor']);
    expect(await look(third, company)).toBe(SHUT_OUT);
    expect((await third.call('POST', '/v1/auth/factors/proof', { code: codeOf(secret) })).status).toBe(200);
    expect((await breakGlass(third, company.orgId, third.password)).errors).toBeUndefined();
    expect(await look(third, company)).toBe('200');
  });
});
