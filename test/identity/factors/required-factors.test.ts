import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { codeOf, forgetCodes, letFactorsAge, withPasskey, withTotp } from '../../support/factors.ts';
import {
  addToWorkspace,
  caller,
  changesOf,
  colleague,
  createUser,
  type Person,
  personOf,
  prove,
  register,
  type SignedIn,
  signIn,
} from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { expectOk } from '../../support/requests.ts';
import { openAcknowledged, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { ask, newApplication, openConsent, peerOf, signedInBrowser, tokensOf } from '../oauth/oauth-browser.ts';
import { atProvider, type EnforcingCompany, newCompany, setPolicy } from '../sso/enforced.ts';
import { type OpenIdServer, startOpenIdServer } from '../sso/openid-server.ts';

/*
 * Who gets into an organization that demands a second factor, who gets at what it asks a fresh one for, and whose
 * factors its administrators may reset (docs/decisions/0072).
 */

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

const MISSING = '403 factor_missing';
const UNPROVEN = '403 factor_unproven';
const STALE = '403 fresh_factor';

type Refused = { details?: { reason?: string; required_permission?: string } };
const verdictOf = ({ status, body }: { status: number; body: unknown }): string => {
  const reason = (body as Refused | undefined)?.details?.reason;
  return reason ? `${status} ${reason}` : `${status}`;
};
const get = async (who: Pick<Person, 'call'>, path: string) => verdictOf(await who.call('GET', path));
const inside = ({ orgId }: Pick<Person, 'orgId'>) => `/v1/orgs/${orgId}/workspaces`;
const policyOf = ({ orgId }: Pick<Person, 'orgId'>) => `/v1/orgs/${orgId}/sign-in-policy`;
const look = (who: Pick<Person, 'call'>, at: Pick<Person, 'orgId'>) => get(who, inside(at));
const withToken = (person: Person, accessToken: string): Person => caller(app, { ...person, accessToken });
const codes = ({ errors }: { errors?: readonly object[] | undefined }) =>
  (errors as { extensions: { code: string; details?: Refused['details'] } }[] | undefined)?.map(
    ({ extensions: { code, details } }) => `${code} ${details?.reason}`,
  );

/** What checks know of an organization is read again. */
function forget(orgId: string): void {
  app.services.access.facts.demandsChanged(orgId);
  app.services.authentication.sessionsChanged();
}
const set = (who: Person, rules: object) => who.call('PATCH', policyOf(who), rules);
/** The owner demands a factor; the grace of everybody is over, if there is none. */
async function demand(owner: Person, rules: object = {}): Promise<void> {
  const answer = await set(owner, { require_factor: true, factor_grace_days: 0, ...rules });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
}
async function letDaysPass(orgId: string, days: number): Promise<void> {
  const { pool } = app.database;
  const past = `- make_interval(days => $2)`;
  await pool.query(`update organizations set factor_required_at = factor_required_at ${past} where id = $1`, [
    orgId,
    days,
  ]);
  await pool.query(`update organization_members set created_at = created_at ${past} where org_id = $1`, [orgId, days]);
  forget(orgId);
}
/** An owner with an app for codes. */
async function newOwner(): Promise<{ owner: Person; secret: string }> {
  const owner = await register(app);
  return { owner, ...(await withTotp(app, owner)) };
}
async function signInWithCode(person: Person, secret: string): Promise<Person> {
  await forgetCodes(app, person);
  const { username, password } = person;
  const begun = await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload: { username, password } });
  const { challenge } = begun.json<{ details: { challenge: string } }>().details;
  const payload = { challenge, code: codeOf(secret) };
  const signedIn = await expectOk<SignedIn>(app, { method: 'POST', url: '/v1/auth/login/complete', payload });
  return personOf(app, signedIn, password);
}
async function proveFactor(person: Person, secret: string): Promise<void> {
  await forgetCodes(app, person);
  expect((await person.call('POST', '/v1/auth/factors/proof', { code: codeOf(secret) })).status).toBe(200);
}

describe('demanding a factor', () => {
  test('takes one of the own account, proven a moment ago, and no token', async () => {
    const owner = await register(app);
    expect(verdictOf(await set(owner, { require_factor: true }))).toBe('409 no_factor');
    expect(verdictOf(await set(owner, { step_up: ['secret_reveal'] }))).toBe('409 no_factor');
    expect((await set(owner, { factor_grace_days: 3 })).status).toBe(200);
    const { secret } = await withTotp(app, owner);
    await letFactorsAge(app, owner);
    expect(verdictOf(await set(owner, { require_factor: true }))).toBe(STALE);
    await proveFactor(owner, secret);
    const { plaintext_token } = await issueToken(app, owner, { permissions: ['identity_provider:update'] });
    expect((await set(withToken(owner, plaintext_token), { require_factor: true })).status).toBe(403);
    expect((await owner.call<{ require_factor: boolean }>('GET', policyOf(owner))).body.require_factor).toBe(false);
    await demand(owner, { factor_grace_days: 3 });
    await demand(owner, { factor_grace_days: 3, step_up: ['secret_reveal'] });
    // neither more nor less of it without a fresh one: a stolen session takes nothing back
    await letFactorsAge(app, owner);
    for (const change of [
      { require_factor: false },
      { factor_grace_days: 2 },
      { factor_grace_days: 30 },
      { step_up: [] },
    ])
      expect(verdictOf(await set(owner, change))).toBe(STALE);
    const admin = await createUser(app, owner, { role: 'admin' });
    expect(verdictOf(await set(admin, { step_up: [] }))).toBe(STALE);
    expect((await set(owner, { factor_grace_days: 31 })).status).toBe(422);
    expect((await set(owner, { step_up: ['everything'] })).status).toBe(422);
    // who demands a factor asks a fresh one for each change of these rules, also for what stays as it is
    expect(verdictOf(await set(owner, { require_factor: true, sso_required: false }))).toBe(STALE);
    await proveFactor(owner, secret);
    expect((await set(owner, { require_factor: false, step_up: [] })).status).toBe(200);
    await letFactorsAge(app, owner);
    expect((await set(owner, { require_factor: false, sso_required: false })).status).toBe(200);
  });

  test('is recorded, told to who lacks one, and shows them to administrators, not to members', async () => {
    const { owner } = await newOwner();
    const [bob, dora] = [await createUser(app, owner), await createUser(app, owner)];
    await withTotp(app, dora);
    const earlier = await owner.call<{ members: object[]; total: number }>(
      'GET',
      `/v1/orgs/${owner.orgId}/members-without-factor`,
    );
    expect(earlier.body).toMatchObject({
      total: 1,
      members: [{ user_id: bob.userId, since: null, until: null, has_identity: false, role: 'member' }],
    });
    await demand(owner, { factor_grace_days: 7 });
    await app.jobsDone();
    const { body } = await owner.call<{ members: { user_id: string; since: string; until: string }[] }>(
      'GET',
      `/v1/orgs/${owner.orgId}/members-without-factor?limit=1`,
    );
    expect(body.members.map(({ user_id }) => user_id)).toEqual([bob.userId]);
    const { since, until } = body.members[0]!;
    expect(Date.parse(until) - Date.parse(since)).toBe(7 * 86_400_000);
    expect(await get(bob, `/v1/orgs/${owner.orgId}/members-without-factor`)).toMatch(/^403/);
    const policy = await owner.call('GET', policyOf(owner));
    expect(policy.body).toMatchObject({ require_factor: true, factor_required_at: since, factor_grace_days: 7 });
    const mailed = app.mails.filter(({ subject }) => subject.includes('demands a second factor'));
    expect(mailed.filter(({ to }) => to === bob.email)).toHaveLength(1);
    expect(mailed.filter(({ to }) => to === dora.email || to === owner.email)).toEqual([]);
    expect(await changesOf(app, owner.orgId)).toContainEqual(
      expect.objectContaining({
        action: 'update',
        userId: owner.userId,
        metadata: expect.objectContaining({ factor_required: true, factor_grace_days: 7, step_up: [] }) as object,
      }),
    );
    // a demand that stands goes on: nobody's grace begins anew
    await demand(owner, { factor_grace_days: 7 });
    expect((await owner.call('GET', policyOf(owner))).body).toMatchObject({ factor_required_at: since });
  });
});

describe('an organization that demands a factor', () => {
  let owner: Person;
  let ownerSecret: string;
  let bob: Person;
  let bobSecret: string;
  let older: Person;
  let token: string;
  let away: Person;
  let browser: Awaited<ReturnType<typeof signedInBrowser>>;
  let peer: client.Configuration;
  let granted: Awaited<ReturnType<typeof tokensOf>>;

  beforeAll(async () => {
    ({ owner, secret: ownerSecret } = await newOwner());
    bob = await colleague(app, owner, 'admin');
    // what holds in the organization of somebody else does not in their own
    away = await register(app);
    await addToWorkspace(app, owner, away.userId, 'member');
    older = caller(app, { ...(await signIn(app, bob)), orgId: owner.orgId });
    ({ plaintext_token: token } = await issueToken(app, { ...bob, orgId: owner.orgId }));
    peer = await peerOf(app, await newApplication(owner));
    browser = await signedInBrowser(app, bob);
    const scope = 'workspace:read offline_access openid';
    granted = await tokensOf(app, browser, peer, { scope, prompt: 'consent' });
  });

  test('lets members in without one during the grace, each from when they joined', async () => {
    await demand(owner, { factor_grace_days: 7 });
    expect(await look(bob, owner)).toBe('200');
    await letDaysPass(owner.orgId, 6);
    const late = await createUser(app, owner);
    expect(await look(late, owner)).toBe('200');
    const stream = await openEvents(`${app.url}${inside(owner)}/${owner.workspaceId}/sync/stream`, {
      headers: bob.headers,
    });
    await letDaysPass(owner.orgId, 2);
    // who joined yesterday has time, whose time is over is out, with what is open
    await stream.ended;
    expect(stream.events.at(-1)!.data).toContain('membership_revoked');
    expect(await look(bob, owner)).toBe(MISSING);
    expect(await look(late, owner)).toBe('200');
    await letDaysPass(owner.orgId, 7);
    expect(await look(late, owner)).toBe(MISSING);
  });

  test.each<[string, (who: Person) => Promise<unknown>]>([
    ['a member', (who) => who.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: 'usr_x' })],
    ['an API token', (who) => who.call('POST', `/v1/orgs/${owner.orgId}/api-tokens`, { name: 'kept' })],
    ['secrets', (who) => who.call('GET', `/v1/orgs/${owner.orgId}/secrets`)],
    ['its policy', (who) => who.call('PATCH', policyOf(owner), { require_factor: false })],
    ['its switch', (who) => who.call('POST', '/v1/auth/switch-org', { org_id: owner.orgId })],
    ['the list of who lacks one', (who) => who.call('GET', `/v1/orgs/${owner.orgId}/members-without-factor`)],
    ['a reset', (who) => who.call('POST', `/v1/orgs/${owner.orgId}/members/${who.userId}/reset-factors`)],
    ['its events', (who) => who.call('GET', `${inside(owner)}/${owner.workspaceId}/sync/stream`)],
  ])('%s is refused over REST', async (_what, send) => {
    expect(await send(bob)).toMatchObject({ status: 403 });
  });

  test('over GraphQL and a socket it is refused too', async () => {
    expect(codes(await bob.ask(`{ organization(id: "${owner.orgId}") { name } }`))).toEqual([
      'FORBIDDEN factor_missing',
    ]);
    const query = `subscription { organizationEvents(orgId: "${owner.orgId}") { type } }`;
    const socket = await openAcknowledged(app.url, `Bearer ${bob.accessToken}`);
    socket.send({ id: '1', type: 'subscribe', payload: { query } });
    const refused = await socket.next(({ id }) => id === '1');
    expect(JSON.stringify(refused)).toContain('factor_missing');
    socket.close();
  });

  test('neither another sign-in, nor a refresh, nor a token, nor what was granted gets in', async () => {
    expect(await look(await signIn(app, bob), owner)).toBe(MISSING);
    const payload = { refresh_token: older.refreshToken };
    const refreshed = await expectOk<SignedIn>(app, { method: 'POST', url: '/v1/auth/refresh', payload });
    older = caller(app, { ...older, accessToken: refreshed.access_token, refreshToken: refreshed.refresh_token });
    expect(await look(older, owner)).toBe(MISSING);
    expect(await look(withToken(bob, token), owner)).toBe(MISSING);
    expect(await look(withToken(bob, granted.access_token), owner)).toBe(MISSING);
    await expect(client.refreshTokenGrant(peer, granted.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
    const { url } = await ask(peer, { scope: 'workspace:read' });
    const { at } = await openConsent(app, browser, url);
    expect(new URL(at).searchParams.get('error')).toBe('access_denied');
    const headers = { 'x-csrf': '1', origin: new URL(app.url).origin };
    expect((await browser.send(`${app.url}${inside(owner)}`, { headers })).status).toBe(403);
  });

  test('leaves their own account and other organizations to them', async () => {
    expect(await get(bob, '/v1/auth/me')).toBe('200');
    expect(await get(bob, '/v1/auth/factors')).toBe('200');
    expect(await look(away, away)).toBe('200');
    expect(await look(away, owner)).toBe(MISSING);
    expect((await signIn(app, away)).orgId).toBe(away.orgId);
    // a policy is that of its own organization
    expect((await away.call('GET', policyOf(away))).body).toMatchObject({ require_factor: false });
  });

  test('is open at once to the session that adds one, and to tokens; not to older sessions', async () => {
    ({ secret: bobSecret } = await withTotp(app, bob));
    expect(await look(bob, owner)).toBe('200');
    expect(await look(withToken(bob, token), owner)).toBe('200');
    expect(await look(older, owner)).toBe(UNPROVEN);
    expect(await look(withToken(bob, granted.access_token), owner)).toBe(UNPROVEN);
    const signedIn = await signInWithCode(bob, bobSecret);
    expect(await look(signedIn, owner)).toBe('200');
    await proveFactor(older, bobSecret);
    expect(await look(older, owner)).toBe('200');
  });

  test('is closed again at once when the factor is removed', async () => {
    expect((await bob.call('DELETE', '/v1/auth/factors/totp')).status).toBe(200);
    expect(await look(bob, owner)).toBe(MISSING);
    expect(await look(older, owner)).toBe(MISSING);
    expect(await look(withToken(bob, token), owner)).toBe(MISSING);
    // an app that was only begun is none
    const payload = { current_password: bob.password };
    expect((await bob.call('POST', '/v1/auth/factors/totp', payload)).status).toBe(200);
    expect(await look(bob, owner)).toBe(MISSING);
  });

  test('is open to who signs in with a passkey', async () => {
    const { authenticator } = await withPasskey(app, away);
    const post = { method: 'POST' } as const;
    const begun = await expectOk<{ challenge: string; options: { challenge: string } }>(app, {
      ...post,
      url: '/v1/auth/passkeys/sign-in/begin',
    });
    const credential = authenticator.get(begun.options as never);
    const payload = { challenge: begun.challenge, credential };
    const signedIn = await expectOk<SignedIn>(app, { ...post, url: '/v1/auth/passkeys/sign-in', payload });
    expect(await look(personOf(app, signedIn, ''), owner)).toBe('200');
  });

  test('costs no statement more', async () => {
    const log = logQueries(app.database.pool);
    const cost = async () => {
      forget(owner.orgId);
      return (await log.by(() => look(owner, owner))).length;
    };
    await proveFactor(owner, ownerSecret);
    expect((await set(owner, { require_factor: false })).status).toBe(200);
    const before = await cost();
    await demand(owner, { step_up: ['secret_reveal', 'sign_in_settings'] });
    expect(await cost()).toBe(before);
  });
});

test('a sign-in at its own identity provider needs no factor, and a password of the same account does', async () => {
  const company = await newCompany(app, server);
  const ann = await atProvider(app, server, company);
  const bob = await createUser(app, company.owner);
  const { plaintext_token } = await issueToken(app, { ...ann, orgId: company.orgId });
  await withTotp(app, company.owner);
  await demand(company.owner);
  expect(await look(ann, company)).toBe('200');
  expect(await look(withToken(ann, plaintext_token), company)).toBe('200');
  expect(await look(bob, company)).toBe(MISSING);
  const { members } = (
    await company.owner.call<{ members: { user_id: string; has_identity: boolean }[] }>(
      'GET',
      `/v1/orgs/${company.orgId}/members-without-factor`,
    )
  ).body;
  expect(members.map(({ user_id, has_identity }) => [user_id, has_identity])).toEqual([
    [ann.userId, true],
    [bob.userId, false],
  ]);
  // the provider of one organization vouches in no other one
  const { owner } = await newOwner();
  await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: ann.userId });
  await demand(owner);
  expect(await look(ann, owner)).toBe(MISSING);
  // single sign-on comes first
  expect((await setPolicy(company.owner, company.orgId, { ssoRequired: true })).errors).toBeUndefined();
  expect(await look(bob, company)).toBe('403 sso_required');
});

describe('an organization that demands a factor lets nobody in past it by its sign-in settings', () => {
  let company: EnforcingCompany;
  let owner: Person;
  let ownerSecret: string;
  let token: Person;
  let scim: { scim_token: { scim_token_id: string }; plaintext_token: string };
  let applicationId: string;
  beforeAll(async () => {
    company = await newCompany(app, server);
    ({ owner } = company);
    ({ secret: ownerSecret } = await withTotp(app, owner));
    // the scope `admin` leaves out what makes other credentials
    const permissions = ['scim_token:create', 'application:create', 'application:update'];
    const { plaintext_token } = await issueToken(app, owner, { scopes: ['admin'], permissions });
    token = withToken(owner, plaintext_token);
    const made = await owner.call<typeof scim>('POST', `/v1/orgs/${owner.orgId}/scim-tokens`, { name: 'Okta' });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    scim = made.body;
    ({ id: applicationId } = await newApplication(owner, { application_type: 'confidential' }));
    await demand(owner);
    expect((await owner.call('GET', policyOf(owner))).body).toMatchObject({ require_factor: true, step_up: [] });
    await letFactorsAge(app, owner);
    forget(owner.orgId);
  });

  const redirects = 'redirectUris: ["https://evil.example.test/callback"]';
  test.each<[string, () => string]>([
    ['createIdentityProvider', () => `input: { name: "Evil", protocol: oidc }`],
    ['updateIdentityProvider', () => `id: "${company.idpId}", input: { isActive: true }`],
    ['deleteIdentityProvider', () => `id: "${company.idpId}"`],
    ['testIdentityProvider', () => `id: "${company.idpId}"`],
    ['linkIdentity', () => `id: "${company.idpId}", input: { userId: "${owner.userId}", subject: "evil" }`],
    ['unlinkIdentity', () => `id: "${company.idpId}", userId: "${owner.userId}"`],
    ['startDomainProof', () => `id: "${company.idpId}", input: { domain: "${company.domain}", method: dns }`],
    ['checkDomainProof', () => `id: "${company.idpId}", input: { domain: "${company.domain}" }`],
    ['createScimToken', () => `input: { name: "Evil" }`],
    ['deleteScimToken', () => `id: "${scim.scim_token.scim_token_id}"`],
    ['createApplication', () => `input: { name: "Evil", applicationType: public, ${redirects} }`],
    ['updateApplication', () => `id: "${applicationId}", input: { ${redirects} }`],
    ['rotateApplicationSecret', () => `id: "${applicationId}"`],
    ['updateSignInPolicy', () => `input: { ssoRequired: false }`],
    ['resumeApiTokens', () => `userId: "${owner.userId}"`],
  ])('%s is refused to an API token, and to a session without a fresh factor', async (name, input) => {
    const query = `mutation { ${name}(orgId: "${owner.orgId}", ${input()}) { __typename } }`;
    expect(codes(await owner.ask(query))).toEqual(['FORBIDDEN fresh_factor']);
    expect(codes(await token.ask(query))).toEqual(['FORBIDDEN fresh_factor']);
  });

  test('and goes on with what it has: sign-ins, its directory, a look, and all else of tokens', async () => {
    expect(await look(await atProvider(app, server, company), company)).toBe('200');
    const headers = { authorization: `Bearer ${scim.plaintext_token}` };
    const users = await app.server.inject({ method: 'GET', url: `/scim/v2/${owner.orgId}/Users`, headers });
    expect(users.statusCode, users.body).toBe(200);
    expect(await get(token, `/v1/orgs/${owner.orgId}/identity-providers`)).toBe('200');
    const made = await token.call('POST', inside(owner), { name: 'More', organization_id: owner.orgId });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    await proveFactor(owner, ownerSecret);
    expect((await owner.call('PUT', company.url, { is_active: true })).status).toBe(200);
  });
});

describe('an administrator resets the factors of a member', () => {
  const reset = (who: Person, userId: string, { orgId }: Pick<Person, 'orgId'> = who) =>
    who.call<{ methods: string[] }>('POST', `/v1/orgs/${orgId}/members/${userId}/reset-factors`);

  test('of an account that the organization has made: sessions end, it is recorded and mailed', async () => {
    const { owner } = await newOwner();
    const bob = await createUser(app, owner);
    expect(verdictOf(await reset(owner, bob.userId))).toBe('409 no_factor');
    await withTotp(app, bob);
    const answer = await reset(owner, bob.userId);
    expect(answer).toMatchObject({
      status: 200,
      body: { org_id: owner.orgId, user_id: bob.userId, methods: ['totp', 'recovery_code'] },
    });
    expect(await get(bob, '/v1/auth/me')).toBe('401');
    // the password is enough again, for this is what it is for
    const again = await signIn(app, bob);
    expect((await again.call<{ methods: string[] }>('GET', '/v1/auth/factors')).body.methods).toEqual([]);
    expect(await changesOf(app, bob.userId)).toContainEqual(
      expect.objectContaining({
        resourceType: 'organization_member',
        userId: owner.userId,
        metadata: expect.objectContaining({ factors_reset: ['totp', 'recovery_code'] }) as object,
      }),
    );
    await app.jobsDone();
    expect(app.mails.filter(({ to, text }) => to === bob.email && text.includes('has removed all'))).toHaveLength(1);
  });

  test('ends what was granted with the factor, and suspends API tokens until there is another one', async () => {
    const { owner } = await newOwner();
    const bob = await createUser(app, owner, { role: 'admin' });
    const peer = await peerOf(app, await newApplication(owner));
    const browser = await signedInBrowser(app, bob);
    const { plaintext_token } = await issueToken(app, bob);
    await withTotp(app, bob);
    // as if the page had asked for it
    await app.database.pool.query('update sessions set factor_at = now() where user_id = $1', [bob.userId]);
    app.services.authentication.sessionsChanged();
    const scope = 'workspace:read offline_access openid';
    const granted = await tokensOf(app, browser, peer, { scope, prompt: 'consent' });
    await demand(owner);
    const program = withToken(bob, granted.access_token);
    expect(await look(program, owner)).toBe('200');
    expect((await reset(owner, bob.userId)).status).toBe(200);
    expect(await look(program, owner)).toBe('401');
    expect(await look(withToken(bob, plaintext_token), owner)).toBe(MISSING);
    // whoever holds the old factor gets nothing by the new one of the user
    await withTotp(app, await signIn(app, bob));
    expect(await look(program, owner)).toBe('401');
    await expect(client.refreshTokenGrant(peer, granted.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
    expect(await look(withToken(bob, plaintext_token), owner)).toBe('200');
  });

  test('of an account in a proven domain, and only with a confirmed address', async () => {
    const company = await newCompany(app, server);
    await withTotp(app, company.owner);
    const dora = await register(app, { email: `dora@${company.domain}` });
    await company.owner.call('POST', `/v1/orgs/${company.orgId}/members`, { user_id: dora.userId });
    await withTotp(app, dora);
    // still a member of an organization of her own
    expect(verdictOf(await reset(company.owner, dora.userId))).toBe('409 account_not_managed');
    expect(await get(dora, '/v1/auth/me')).toBe('200');
    const { pool } = app.database;
    await pool.query('update users set home_org_id = null where id = $1', [dora.userId]);
    await pool.query('update organizations set deleted_at = now() where id = $1', [dora.orgId]);
    // also one that may come back
    expect(verdictOf(await reset(company.owner, dora.userId))).toBe('409 account_not_managed');
    await pool.query('delete from organization_members where user_id = $1 and org_id = $2', [dora.userId, dora.orgId]);
    expect(verdictOf(await reset(company.owner, dora.userId))).toBe('409 account_not_managed');
    await prove(app, [dora]);
    await pool.query(`update identity_provider_domains set state = 'claimed', proven_at = null where domain = $1`, [
      company.domain,
    ]);
    expect(verdictOf(await reset(company.owner, dora.userId))).toBe('409 account_not_managed');
    await pool.query(`update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`, [
      company.domain,
    ]);
    expect((await reset(company.owner, dora.userId)).status).toBe(200);
  });

  test('of nobody else', async () => {
    const { owner, secret } = await newOwner();
    const bob = await createUser(app, owner);
    await withTotp(app, bob);
    const { owner: stranger } = await newOwner();
    expect((await reset(stranger, bob.userId)).status).toBe(404);
    expect((await reset(stranger, bob.userId, owner)).status).toBe(403);
    expect((await reset(bob, bob.userId)).status).toBe(403);
    expect(verdictOf(await reset(owner, owner.userId))).toBe('409 account_not_managed');
    // an account that joins another organization is nobody's alone, although this one has made it
    const joined = await stranger.call('POST', `/v1/orgs/${stranger.orgId}/members`, { user_id: bob.userId });
    expect(joined.status).toBe(201);
    expect(verdictOf(await reset(owner, bob.userId))).toBe('409 account_not_managed');
    // an administrator resets no owner, a stale session nobody, and a token neither
    const admin = await createUser(app, owner, { role: 'admin' });
    const chief = await createUser(app, owner, { role: 'owner' });
    await withTotp(app, chief);
    expect(verdictOf(await reset(admin, chief.userId))).toBe('403');
    const { plaintext_token } = await issueToken(app, owner, { permissions: ['identity_provider:update'] });
    expect(verdictOf(await reset(withToken(owner, plaintext_token), chief.userId))).toBe('403');
    await letFactorsAge(app, owner);
    expect(verdictOf(await reset(owner, chief.userId))).toBe(STALE);
    await proveFactor(owner, secret);
    expect((await reset(owner, chief.userId)).status).toBe(200);
  });
});

describe('an organization that asks for a fresh factor', () => {
  let owner: Person;
  let secret: string;
  let admin: Person;
  let secretId: string;
  const value = (who: Person) => get(who, `/v1/orgs/${owner.orgId}/secrets/${secretId}?include_value=true`);
  const mint = (who: Person, permissions: string[]) =>
    who.call<{ plaintext_token: string }>('POST', `/v1/orgs/${owner.orgId}/api-tokens`, { name: 'kept', permissions });
  const stale = async (who: Person) => {
    await letFactorsAge(app, who);
    forget(owner.orgId);
  };

  beforeAll(async () => {
    ({ owner, secret } = await newOwner());
    admin = await createUser(app, owner, { role: 'admin' });
    const made = await owner.call<{ secret_id: string }>('POST', `/v1/orgs/${owner.orgId}/secrets`, {
      name: 'key',
      secret_type: 'api_key',
      value: { key: 'hunter2' },
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    secretId = made.body.secret_id;
  });

  test('for the values of secrets: over REST and GraphQL, by history, and by a new token', async () => {
    const { plaintext_token } = await issueToken(app, owner, { permissions: ['secret:read', 'secret:reveal'] });
    const before = await set(owner, { step_up: ['secret_reveal'] });
    expect(before.body).toMatchObject({ step_up: ['secret_reveal'] });
    expect(await value(owner)).toBe('200');
    await stale(owner);
    expect(await value(owner)).toBe(STALE);
    const query = `{ secret(orgId: "${owner.orgId}", id: "${secretId}", includeValue: true) { value } }`;
    expect(codes(await owner.ask(query))).toEqual(['FORBIDDEN fresh_factor']);
    const history = await owner.call('GET', `/v1/orgs/${owner.orgId}/secrets/${secretId}/history`);
    expect(JSON.stringify(history.body)).not.toContain('hunter2');
    expect(verdictOf(await mint(owner, ['secret:read', 'secret:reveal']))).toBe(STALE);
    expect((await mint(owner, ['secret:read'])).status).toBe(201);
    // what runners were given goes on, and everything else that is not asked for
    expect(await value(withToken(owner, plaintext_token))).toBe('200');
    expect(await get(owner, `/v1/orgs/${owner.orgId}/secrets/${secretId}`)).toBe('200');
    expect(await value(admin)).toBe(STALE);
    await proveFactor(owner, secret);
    expect(await value(owner)).toBe('200');
    expect((await mint(owner, ['secret:read', 'secret:reveal'])).status).toBe(201);
  });

  test('for the secrets that webhooks sign with, but not for other changes; for all of audit streams', async () => {
    const webhooks = `/v1/orgs/${owner.orgId}/webhooks`;
    const hook = { name: 'Hook', url: 'https://hooks.example.test/', event_types: ['workspace.*'] };
    const { plaintext_token } = await issueToken(app, owner, {
      permissions: ['webhook:create', 'webhook:update', 'workspace:read'],
    });
    const made = await owner.call<{ webhook: { webhook_id: string } }>('POST', webhooks, hook);
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    const rotate = `mutation { rotateWebhookSecret(orgId: "${owner.orgId}", id: "${made.body.webhook.webhook_id}") {
      secret
    } }`;
    const streams = `/v1/orgs/${owner.orgId}/audit-streams`;
    const audit = { name: 'Audit', target_type: 'http', url: 'https://logs.example.test/', is_enabled: false };
    const stream = await owner.call<{ audit_stream_id: string }>('POST', streams, audit);
    expect(stream.status).toBe(201);
    const at = `${streams}/${stream.body.audit_stream_id}`;
    await stale(owner);
    expect(verdictOf(await owner.call('POST', webhooks, hook))).toBe(STALE);
    expect(codes(await owner.ask(rotate))).toEqual(['FORBIDDEN fresh_factor']);
    const renamed = await owner.call('PATCH', `${webhooks}/${made.body.webhook.webhook_id}`, { name: 'Other' });
    expect(renamed.status, JSON.stringify(renamed.body)).toBe(200);
    // where an audit stream sends its secret is asked for with each change
    expect(verdictOf(await owner.call('PATCH', at, { url: 'https://other.example.test/' }))).toBe(STALE);
    // API tokens keep what they were made for
    expect(codes(await withToken(owner, plaintext_token).ask(rotate))).toBeUndefined();
    await proveFactor(owner, secret);
    expect(codes(await owner.ask(rotate))).toBeUndefined();
    expect((await owner.call('PATCH', at, { url: 'https://other.example.test/' })).status).toBe(200);
  });

  test('what was granted to an application reveals nothing, and makes no webhook', async () => {
    const peer = await peerOf(app, await newApplication(owner));
    const browser = await signedInBrowser(app, admin);
    const scope = 'admin openid';
    const tokens = await tokensOf(app, browser, peer, { scope, prompt: 'consent' });
    const program = withToken(admin, tokens.access_token);
    expect(await value(program)).toBe(STALE);
    const hook = { name: 'Hook', url: 'https://hooks.example.test/', event_types: ['workspace.*'] };
    expect(verdictOf(await program.call('POST', `/v1/orgs/${owner.orgId}/webhooks`, hook))).toBe(STALE);
  });

  test('for sign-in settings, but not for a look at them; no token changes them', async () => {
    await proveFactor(owner, secret);
    expect((await set(owner, { step_up: ['sign_in_settings'] })).status).toBe(200);
    const provider = { name: 'Okta', protocol: 'oidc' };
    const { plaintext_token } = await issueToken(app, owner, { permissions: ['identity_provider:create'] });
    await stale(owner);
    expect(await value(owner)).toBe('200');
    const providers = `/v1/orgs/${owner.orgId}/identity-providers`;
    expect(verdictOf(await set(owner, { step_up: [] }))).toBe(STALE);
    expect(codes(await setPolicy(owner, owner.orgId, { ssoRequired: false }))).toEqual(['FORBIDDEN fresh_factor']);
    expect(verdictOf(await owner.call('POST', providers, provider))).toBe(STALE);
    expect(verdictOf(await withToken(owner, plaintext_token).call('POST', providers, provider))).toBe(STALE);
    expect(verdictOf(await owner.call('POST', `/v1/orgs/${owner.orgId}/scim-tokens`, { name: 'Okta' }))).toBe(STALE);
    expect(await get(owner, policyOf(owner))).toBe('200');
    // who may not change them learns nothing of it
    const member = await createUser(app, owner);
    expect(verdictOf(await set({ ...member, orgId: owner.orgId }, {}))).toBe('403');
    // another organization asks for nothing
    const other = await register(app);
    expect((await set(other, { factor_grace_days: 2 })).status).toBe(200);
  });

  test('for new members and other roles, which programs get no other way', async () => {
    await proveFactor(owner, secret);
    expect((await set(owner, { step_up: ['member_changes'] })).status).toBe(200);
    const permissions = ['organization_member', 'workspace_member', 'invitation'].flatMap((word) => [
      `${word}:create`,
      `${word}:update`,
    ]);
    const { plaintext_token } = await issueToken(app, owner, { permissions: [...permissions, 'user:create'] });
    const token = withToken(owner, plaintext_token);
    const member = await createUser(app, owner);
    const invitations = `/v1/orgs/${owner.orgId}/invitations`;
    const invited = { email: 'ida@example.test', role: 'member' };
    const { body: invitation } = await owner.call<{ invitation_id: string }>('POST', invitations, invited);
    const other = await register(app);
    await stale(owner);
    const org = `orgId: "${owner.orgId}"`;
    const workspace = `${org}, workspaceId: "${owner.workspaceId}"`;
    for (const mutation of [
      `addOrganizationMember(${org}, input: { userId: "${other.userId}" }) { id }`,
      `updateOrganizationMember(${org}, userId: "${member.userId}", input: { role: admin }) { id }`,
      `addWorkspaceMember(${workspace}, input: { userId: "${member.userId}" }) { id }`,
      `updateWorkspaceMember(${workspace}, userId: "${owner.userId}", input: { role: admin }) { id }`,
      `createInvitation(${org}, input: { email: "eve@example.test", role: admin }) { id }`,
      `resendInvitation(${org}, id: "${invitation.invitation_id}") { id }`,
      `createUser(input: { username: "eve", email: "eve@example.test", password: "a long password 1" }) { id }`,
    ]) {
      expect(codes(await owner.ask(`mutation { ${mutation} }`)), mutation).toEqual(['FORBIDDEN fresh_factor']);
      expect(codes(await token.ask(`mutation { ${mutation} }`)), mutation).toEqual(['FORBIDDEN fresh_factor']);
    }
    // who could let a directory or a provider do the same is asked, too
    for (const [path, body] of [
      ['scim-tokens', { name: 'Okta' }],
      ['identity-providers', { name: 'Company', protocol: 'saml' }],
    ] as const)
      expect(verdictOf(await owner.call('POST', `/v1/orgs/${owner.orgId}/${path}`, body)), path).toBe(STALE);
    // who leaves takes nothing, and what is read neither
    expect((await owner.call('GET', `/v1/orgs/${owner.orgId}/members`)).status).toBe(200);
    expect((await owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${member.userId}`)).status).toBe(204);
    await proveFactor(owner, secret);
    expect((await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: other.userId })).status).toBe(201);
  });

  test('of what there is: the database keeps no other word, and no other number of days', async () => {
    const write = (set: string) =>
      app.database.pool.query(`update organizations set ${set} where id = $1`, [owner.orgId]);
    for (const [set, constraint] of [
      [`step_up = '{anything}'`, 'organizations_step_up'],
      ['step_up = null', 'organizations_step_up'],
      ['factor_grace_days = 31', 'organizations_factor_grace_days'],
      ['factor_grace_days = -1', 'organizations_factor_grace_days'],
    ] as const)
      await expect(write(set)).rejects.toMatchObject({ constraint });
  });

  test('for its deletion', async () => {
    await proveFactor(owner, secret);
    expect((await set(owner, { step_up: ['organization_deletion'] })).status).toBe(200);
    await stale(owner);
    const remove = () => owner.call('DELETE', `/v1/orgs/${owner.orgId}`);
    expect(verdictOf(await remove())).toBe(STALE);
    const { errors } = await owner.ask(`mutation { deleteOrganization(id: "${owner.orgId}") { id } }`);
    expect(codes({ errors })).toEqual(['FORBIDDEN fresh_factor']);
    await proveFactor(owner, secret);
    expect((await remove()).status).toBeLessThan(300);
  });
});
