import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import {
  caller,
  changesOf,
  createUser,
  type Person,
  personOf,
  register,
  registerProven,
  type SignedIn,
} from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';
import { type Company, newBrowser, openIdCompany, SAML_ENTITY, samlCompany } from './companies.ts';
import { type OpenIdServer, startOpenIdServer } from './openid-server.ts';
import { base64, inflated, newIdpKey, responseXml, signXml } from './saml-idp.ts';

/*
 * Whoever registers with the address of somebody else neither keeps them from signing in at their company, nor shares
 * an account with them; and no mail of the service ends a sign-in that worked (docs/decisions/0027).
 */

let app: TestApp;
const nodes: TestApp[] = [];
let server: OpenIdServer;
const key = newIdpKey();
let clients = 0;
beforeAll(async () => {
  server = await startOpenIdServer();
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', TRUSTED_PROXIES: '127.0.0.1' } });
  nodes.push(app);
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(async () => {
  await app.close();
  await server.close();
});

const addressAt = ({ domain }: Company): string => `victim${Math.random().toString(36).slice(2)}@${domain}`;

const unproven = async (company: Company): Promise<Company> => {
  await app.database.pool.query(
    `update identity_provider_domains set state = 'claimed', proven_at = null where domain = $1`,
    [company.domain],
  );
  return company;
};

/** Signs in at the OpenID provider of a company. */
async function atOpenId(email: string, node = app): Promise<{ status: number; body: SignedIn }> {
  server.account = { sub: `sub-of-${email}`, email, email_verified: false };
  const browser = newBrowser(node);
  const { pathname, search } = server.authorize(await browser.begin(email));
  const answer = await browser.send('GET', `${pathname}${search}`);
  return { status: answer.statusCode, body: answer.json() };
}

/** Signs in at the SAML provider of a company, on any node of the service. */
async function atSaml(
  company: Company,
  email: string,
  node = app,
  nameId = email,
): Promise<{ status: number; body: SignedIn }> {
  const browser = newBrowser(node);
  const redirectUrl = await browser.begin(email);
  const [, requestId = ''] = / ID="([^"]+)"/.exec(await inflated(redirectUrl)) ?? [];
  const facts = {
    issuer: SAML_ENTITY,
    acsUrl: `${app.url}/v1/auth/sso/callback/saml`,
    audience: `${app.url}/v1/auth/sso/metadata/${company.idpId}`,
    requestId,
    nameId,
  };
  const form = new URLSearchParams({
    SAMLResponse: base64(signXml(responseXml(facts), 'assertion', key)),
    RelayState: new URL(redirectUrl).searchParams.get('RelayState') ?? '',
  });
  const answer = await browser.send('POST', '/v1/auth/sso/callback/saml', form.toString(), {
    origin: 'https://idp.test',
  });
  return { status: answer.statusCode, body: answer.json() };
}

/** A request without sign-in, from an address of its own: none has used up a budget. */
const asStranger = async (path: string, payload: object, node = app): Promise<number> => {
  clients += 1;
  const headers = { 'x-forwarded-for': `198.51.100.${clients}` };
  const answer = await node.server.inject({ method: 'POST', url: `/v1/auth/${path}`, headers, payload });
  await node.jobsDone();
  return answer.statusCode;
};
const login = (username: string, password: string) => asStranger('login', { username, password });
/** What was mailed to an address, by any node. */
const mailsTo = (email: string) => app.mails.filter(({ to }) => to === email);
const subjectsTo = (email: string): string[] => mailsTo(email).map(({ subject }) => subject);
const tokenIn = (email: string, subject: string): string | null => {
  const mail = mailsTo(email).findLast((sent) => sent.subject === subject);
  return new URL(mail!.link!).searchParams.get('token');
};
const another = async (env: Record<string, string> = {}): Promise<TestApp> => {
  const node = await app.another({ TRUSTED_PROXIES: '127.0.0.1', OUTBOUND_ALLOW: '127.0.0.1', ...env });
  nodes.push(node);
  return node;
};
const me = async ({ accessToken }: Pick<Person, 'accessToken'>) => {
  const answer = await app.server.inject({
    url: '/v1/auth/me',
    headers: { authorization: `Bearer ${accessToken}` },
  });
  return { status: answer.statusCode, body: answer.json<Record<string, unknown>>() };
};

const LINK = `mutation ($orgId: ID!, $id: ID!, $input: LinkIdentityInput!) {
  linkIdentity(orgId: $orgId, id: $id, input: $input) { subject }
}`;
const linkByHand = async ({ owner, idpId }: Pick<Company, 'owner' | 'idpId'>, userId: string, subject: string) => {
  const { errors } = await owner.ask(LINK, { orgId: owner.orgId, id: idpId, input: { userId, subject } });
  expect(errors).toBeUndefined();
};
const proveDomain = ({ domain }: Company) =>
  app.database.pool.query(
    `update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`,
    [domain],
  );
/** Asks, signed in, for the link that confirms the address. */
const askToConfirm = async (signedIn: SignedIn, email: string): Promise<string | null> => {
  // of two mails that are sent at once, that of an earlier registration may be the last one
  await app.jobsDone();
  const before = mailsTo(email).length;
  await personOf(app, signedIn, '').call('POST', '/v1/auth/resend-verification', { email });
  await app.jobsDone();
  return mailsTo(email).length === before ? null : tokenIn(email, 'Confirm your e-mail address');
};

test('who registered with an address does not block its owner, and loses it where the domain is proven', async () => {
  const company = await openIdCompany(app, server);
  const email = addressAt(company);
  const squatter = await register(app, { email });
  const { status, body } = await atOpenId(email);
  expect([status, body.user]).toMatchObject([200, { email, is_verified: true }]);
  expect(body.user.user_id).not.toBe(squatter.userId);
  expect((await me({ accessToken: body.access_token })).status).toBe(200);
  // the account stays that of whoever made it, under its name alone
  expect(await login(email, squatter.password)).toBe(401);
  expect(await login(squatter.username, squatter.password)).toBe(200);
  const { body: notes } = await squatter.call<{ notifications: { title: string; category: string }[] }>(
    'GET',
    '/v1/notifications',
  );
  expect(notes.notifications).toMatchObject([
    { category: 'security', title: 'Somebody else has proven the e-mail address of your account' },
  ]);
  // the link that was mailed at the registration leads to the owner of the address, and proves nothing any more
  expect(await asStranger('verify-email', { token: tokenIn(email, 'Confirm your e-mail address') })).toBe(401);
  expect((await me(squatter)).body).toMatchObject({ is_verified: false });
});

test('an administrator who adds the account of a squatter gives them nothing of its owner', async () => {
  const company = await openIdCompany(app, server);
  const email = addressAt(company);
  const squatter = await register(app, { email });
  const token = await issueToken(app, squatter, { name: 'kept' });
  const { owner } = company;
  expect((await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: squatter.userId })).status).toBe(201);
  expect((await squatter.call('GET', `/v1/orgs/${owner.orgId}/tools`)).status).toBe(200);
  const { status, body } = await atOpenId(email);
  expect([status, body.user]).toMatchObject([200, { user_id: squatter.userId, is_verified: true }]);
  // nothing of before leads there
  expect((await squatter.call('GET', `/v1/orgs/${owner.orgId}/tools`)).status).toBe(401);
  expect(await asStranger('refresh', { refresh_token: squatter.refreshToken })).toBe(401);
  expect(await login(squatter.username, squatter.password)).toBe(401);
  const withToken = { url: `/v1/orgs/${squatter.orgId}/workspaces`, headers: token.headers };
  expect((await app.server.inject(withToken)).statusCode).toBe(401);
  const rows = await app.database.prisma.apiToken.findMany({ where: { createdByUserId: squatter.userId } });
  expect(rows.map(({ revokedReason }) => revokedReason)).toEqual(['identity_linked']);
  const records = await changesOf(app, squatter.userId);
  expect(records.find(({ metadata }) => Object.hasOwn(metadata as object, 'linked'))).toMatchObject({
    action: 'login',
    metadata: { linked: 'proven_domain', password_removed: true, tokens_revoked: 1 },
  });
  const victim = caller(app, { ...squatter, accessToken: body.access_token });
  expect((await victim.call('GET', `/v1/orgs/${owner.orgId}/tools`)).status).toBe(200);
});

test('an account that has proven its address keeps its password and its sessions when it is linked', async () => {
  const company = await openIdCompany(app, server);
  const email = addressAt(company);
  const member = await register(app, { email });
  await app.jobsDone();
  expect(await asStranger('verify-email', { token: tokenIn(email, 'Confirm your e-mail address') })).toBe(200);
  const { owner } = company;
  await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: member.userId });
  expect((await atOpenId(email)).body.user.user_id).toBe(member.userId);
  expect((await me(member)).status).toBe(200);
  expect(await login(email, member.password)).toBe(200);
});

test('where no domain is proven, nobody holds an address because a provider says it', async () => {
  const company = await unproven(await openIdCompany(app, server));
  const email = addressAt(company);
  const squatter = await register(app, { email });
  await company.owner.call('POST', `/v1/orgs/${company.owner.orgId}/members`, { user_id: squatter.userId });
  const first = await atOpenId(email);
  expect([first.status, first.body.user]).toMatchObject([200, { email, is_verified: false }]);
  expect(first.body.user.user_id).not.toBe(squatter.userId);
  expect((await atOpenId(email)).body.user.user_id).toBe(first.body.user.user_id);
  // who registered with the address still holds it, and its owner takes it from them as ever
  expect(await login(email, squatter.password)).toBe(200);
  const free = addressAt(company);
  expect((await atOpenId(free)).status).toBe(200);
  expect((await register(app, { email: free })).email).toBe(free);
});

test('an account that the organization manages is linked without a proof, and its first password ends', async () => {
  const company = await unproven(await openIdCompany(app, server));
  const member = await createUser(app, company.owner, { email: addressAt(company) });
  const { status, body } = await atOpenId(member.email);
  expect([status, body.user]).toMatchObject([200, { user_id: member.userId, is_verified: false }]);
  expect((await me(member)).status).toBe(401);
  expect(await login(member.username, member.password)).toBe(401);
});

test('the proof of a domain gives the accounts of its provider their addresses, at their next sign-in', async () => {
  const company = await unproven(await openIdCompany(app, server));
  const email = addressAt(company);
  const { body } = await atOpenId(email);
  const squatter = await register(app, { email });
  await proveDomain(company);
  const again = await atOpenId(email);
  expect(again.body.user).toMatchObject({ user_id: body.user.user_id, is_verified: true });
  expect(await login(email, squatter.password)).toBe(401);
});

test('no mail that anybody can ask for ends a sign-in at a provider without a proof', async () => {
  const company = await unproven(await samlCompany(app, key));
  const email = addressAt(company);
  expect((await atSaml(company, email)).status).toBe(200);
  for (const path of ['resend-verification', 'forgot-password']) expect(await asStranger(path, { email })).toBe(200);
  expect(subjectsTo(email)).toEqual([]);
  const signedIn = await atSaml(company, email);
  // somebody who is signed in confirms the address, and holds it from then on
  const headers = { authorization: `Bearer ${signedIn.body.access_token}` };
  const post = async (path: string, payload: object) =>
    (await app.server.inject({ method: 'POST', url: `/v1/auth/${path}`, headers, payload })).statusCode;
  expect(await post('resend-verification', { email })).toBe(200);
  await app.jobsDone();
  expect(await post('verify-email', { token: tokenIn(email, 'Confirm your e-mail address') })).toBe(200);
  const again = await atSaml(company, email);
  expect([again.status, again.body.user]).toMatchObject([
    200,
    { user_id: signedIn.body.user.user_id, is_verified: true },
  ]);
  // and a reset of the password ends it neither; another node has another budget of mails
  expect(await asStranger('forgot-password', { email }, await another())).toBe(200);
  const reset = { token: tokenIn(email, 'Reset your password'), new_password: 'a whole new password' };
  expect(await asStranger('reset-password', reset)).toBe(200);
  expect((await atSaml(company, email)).body.user.user_id).toBe(signedIn.body.user.user_id);
  expect(await login(email, reset.new_password)).toBe(200);
});

test('where addresses must be proven, the link in the mail opens the sign-in that waited for it', async () => {
  const strict = await another({ REQUIRE_VERIFIED_EMAIL: 'true', PUBLIC_URL: app.url });
  const company = await unproven(await samlCompany(app, key));
  const email = addressAt(company);
  const held = await atSaml(company, email, strict);
  expect([held.status, held.body]).toMatchObject([403, { details: { required_permission: 'account:verified' } }]);
  await atSaml(company, email, strict);
  await strict.jobsDone();
  expect(subjectsTo(email)).toEqual(['Confirm your e-mail address']);
  const token = tokenIn(email, 'Confirm your e-mail address');
  expect(await asStranger('verify-email', { token })).toBe(200);
  const opened = await atSaml(company, email, strict);
  expect([opened.status, opened.body.user]).toMatchObject([200, { email, is_verified: true }]);
  // the address leads nobody else to the account: it is not held by who a provider says has it
  expect(await asStranger('forgot-password', { email })).toBe(200);
  expect(subjectsTo(email)).not.toContain('Reset your password');
  expect((await register(app, { email })).email).toBe(email);
});

test('without its provider, an account gets its address back', async () => {
  const company = await unproven(await openIdCompany(app, server));
  const email = addressAt(company);
  expect((await atOpenId(email)).status).toBe(200);
  expect((await company.owner.call('DELETE', company.url)).status).toBe(204);
  expect(await asStranger('forgot-password', { email })).toBe(200);
  const reset = { token: tokenIn(email, 'Reset your password'), new_password: 'a whole new password' };
  expect(await asStranger('reset-password', reset)).toBe(200);
  expect(await login(email, reset.new_password)).toBe(200);
});

test('an account that is linked by hand, and never proved its address, ends for whoever made it', async () => {
  const company = await openIdCompany(app, server);
  const member = await createUser(app, company.owner, { email: 'somebody@elsewhere.example.test' });
  await linkByHand(company, member.userId, 'by-hand');
  expect((await me(member)).status).toBe(401);
  expect(await login(member.username, member.password)).toBe(401);
});

test('an account linked by hand is left by the providers of other organizations', async () => {
  const company = await samlCompany(app, key);
  const email = addressAt(company);
  const squatter = await register(app, { email });
  // the squatter's own organization links the account to a provider of the squatter's
  const evilDomain = `evil${Math.random().toString(36).slice(2)}.example.test`;
  const made = await squatter.call<{ idp_id: string }>('POST', `/v1/orgs/${squatter.orgId}/identity-providers`, {
    name: 'Evil',
    protocol: 'saml',
    verified_domains: [evilDomain],
    saml_config: { entity_id: SAML_ENTITY, sso_url: 'https://idp.test/sso', certificate: key.certificate },
  });
  const evil: Company = { owner: squatter, domain: evilDomain, idpId: made.body.idp_id, url: '' };
  await linkByHand(evil, squatter.userId, `back-door@${evilDomain}`);
  const atEvil = () => atSaml(evil, `any@${evilDomain}`, app, `back-door@${evilDomain}`);
  expect((await atEvil()).body.user.user_id).toBe(squatter.userId);
  await company.owner.call('POST', `/v1/orgs/${company.owner.orgId}/members`, { user_id: squatter.userId });
  await linkByHand(company, squatter.userId, email);
  expect((await atSaml(company, email)).body.user.user_id).toBe(squatter.userId);
  const after = await atEvil();
  expect(after.body.user?.user_id).not.toBe(squatter.userId);
});

test('a provider without a proof reaches no organization that its account is invited to', async () => {
  const company = await unproven(await samlCompany(app, key));
  const email = addressAt(company);
  const { body } = await atSaml(company, email);
  const other = await registerProven(app, { name: 'other' });
  await other.call('POST', `/v1/orgs/${other.orgId}/invitations`, { email, role: 'admin' });
  await app.jobsDone();
  const [mail] = mailsTo(email).filter(({ subject }) => subject.includes('invited'));
  const token = new URL(mail!.link!).searchParams.get('token');
  const accept = () => personOf(app, body, '').call('POST', '/v1/invitations/accept', { token });
  expect(await accept()).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'token'] }] } });
  await proveDomain(company);
  expect((await atSaml(company, email)).status).toBe(200);
  expect((await accept()).status).toBe(200);
});

test('whoever confirmed the address by the link alone gets it by the proof of the domain, or signed in', async () => {
  const company = await unproven(await samlCompany(app, key));
  const accounts = [];
  for (const email of [addressAt(company), addressAt(company)]) {
    const { body } = await atSaml(company, email);
    expect(await asStranger('verify-email', { token: await askToConfirm(body, email) })).toBe(200);
    accounts.push({ email, id: body.user.user_id, squatter: await register(app, { email }) });
  }
  const [proven, confirmed] = accounts as [(typeof accounts)[0], (typeof accounts)[0]];
  const { body } = await atSaml(company, confirmed.email);
  const token = await askToConfirm(body, confirmed.email);
  expect((await personOf(app, body, '').call('POST', '/v1/auth/verify-email', { token })).status).toBe(200);
  expect(await login(confirmed.email, confirmed.squatter.password)).toBe(401);
  expect(await login(proven.email, proven.squatter.password)).toBe(200);
  await proveDomain(company);
  expect((await atSaml(company, proven.email)).body.user.user_id).toBe(proven.id);
  expect(await login(proven.email, proven.squatter.password)).toBe(401);
});

test('a user name that is the lost address still signs in', async () => {
  const company = await openIdCompany(app, server);
  const email = addressAt(company);
  const member = await register(app, { email, username: email });
  expect((await atOpenId(email)).status).toBe(200);
  expect(await login(email, member.password)).toBe(200);
});

test.each([
  ['is removed', (of: Company, id: string) => of.owner.call('DELETE', `/v1/orgs/${of.owner.orgId}/members/${id}`)],
  ['loses the organization', (of: Company) => of.owner.call('DELETE', `/v1/orgs/${of.owner.orgId}`)],
])('who %s gets the address back, and the provider signs in nobody in their place', async (_how, leave) => {
  const company = await unproven(await samlCompany(app, key));
  const email = addressAt(company);
  const { body } = await atSaml(company, email);
  const other = await register(app, { name: 'other' });
  await other.call('POST', `/v1/orgs/${other.orgId}/members`, { user_id: body.user.user_id });
  expect((await leave(company, body.user.user_id)).status).toBe(204);
  expect(await app.database.prisma.user.count({ where: { email } })).toBe(1);
  expect(await asStranger('forgot-password', { email })).toBe(200);
  const reset = { token: tokenIn(email, 'Reset your password'), new_password: 'a whole new password' };
  expect(await asStranger('reset-password', reset)).toBe(200);
  expect(await login(email, reset.new_password)).toBe(200);
});

test('who was removed stays out, and is linked anew after coming back', async () => {
  const company = await unproven(await samlCompany(app, key));
  const { owner } = company;
  const email = addressAt(company);
  const { body } = await atSaml(company, email);
  const id = body.user.user_id;
  await owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${id}`);
  expect(await atSaml(company, email)).toMatchObject({
    status: 403,
    body: { details: { reason: 'account_not_linked' } },
  });
  expect(await app.database.prisma.user.count({ where: { email } })).toBe(1);
  await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: id });
  await linkByHand(company, id, email);
  expect((await atSaml(company, email)).body.user.user_id).toBe(id);
});

const waiting = () => lockWaits(app.database.pool);

test.each<[string, (squatter: Person, orgId: string) => Promise<{ status: number }>]>([
  ['a new token', (squatter, orgId) => squatter.call('POST', `/v1/orgs/${orgId}/api-tokens`, { name: 'kept' })],
  [
    'a change of the address',
    (squatter) => squatter.call('PUT', `/v1/users/${squatter.userId}`, { email: 'evil@attacker.example.test' }),
  ],
])('%s that was asked for before the first link comes too late', async (_what, late) => {
  const company = await samlCompany(app, key);
  const email = addressAt(company);
  const squatter = await register(app, { email });
  const { orgId } = company.owner;
  await company.owner.call('POST', `/v1/orgs/${orgId}/members`, { user_id: squatter.userId });
  expect((await squatter.call('GET', `/v1/orgs/${orgId}/tools`)).status).toBe(200);
  const holder = await app.database.pool.connect();
  await holder.query('begin');
  await holder.query('select 1 from users where id = $1 for update', [squatter.userId]);
  const linked = atSaml(company, email);
  await waitUntil(async () => (await waiting()) === 1);
  const asked = late(squatter, orgId);
  await waitUntil(async () => (await waiting()) === 2);
  await holder.query('commit');
  holder.release();
  expect((await linked).body.user.user_id).toBe(squatter.userId);
  expect((await asked).status).toBe(401);
  expect(await app.database.prisma.apiToken.count({ where: { createdByUserId: squatter.userId } })).toBe(0);
  expect(mailsTo('evil@attacker.example.test')).toEqual([]);
});
