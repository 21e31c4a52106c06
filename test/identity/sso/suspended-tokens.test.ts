import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, createUser, type Person, register } from '../../support/person.ts';
import { issueToken, type TestToken } from '../../support/tokens.ts';
import { newApplication, peerOf, signedInBrowser, tokensOf } from '../oauth/oauth-browser.ts';
import { newBrowser } from './companies.ts';
import { atProvider, breakGlass, type EnforcingCompany, newCompany, setPolicy } from './enforced.ts';
import { type OpenIdServer, startOpenIdServer } from './openid-server.ts';

/*
 * What ends with an identity provider, and with the link of a user: the sessions that it made, what was granted in
 * them, and the API tokens of its users, until they sign in again (docs/decisions/0067).
 */

let app: TestApp;
let server: OpenIdServer;
let company: EnforcingCompany;
let ann: Person;
let token: TestToken;
beforeAll(async () => {
  server = await startOpenIdServer();
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', SSO_REDIRECT_URIS: 'https://app.example.test' } });
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(async () => {
  await app.close();
  await server.close();
});
beforeEach(async () => {
  company = await newCompany(app, server);
  ann = await atProvider(app, server, company);
  token = await issueToken(app, ann);
});

const UNLINK = `mutation ($orgId: ID!, $id: ID!, $userId: ID!) {
  unlinkIdentity(orgId: $orgId, id: $id, userId: $userId) { userId }
}`;
const SUSPENDS = `mutation ($orgId: ID!, $id: ID!, $input: UpdateIdentityProviderInput!) {
  updateIdentityProvider(orgId: $orgId, id: $id, input: $input) { suspendsTokens isActive }
}`;
const unlink = async () => {
  const { errors } = await company.owner.ask(UNLINK, {
    orgId: company.orgId,
    id: company.idpId,
    userId: ann.userId,
  });
  expect(errors).toBeUndefined();
};
const switchTo = async (isActive: boolean) =>
  expect((await company.owner.call('PUT', company.url, { is_active: isActive })).status).toBe(200);
const keepTokens = async () => {
  const input = { suspendsTokens: false };
  const { data } = await company.owner.ask(SUSPENDS, { orgId: company.orgId, id: company.idpId, input });
  expect(data.updateIdentityProvider).toEqual({ suspendsTokens: false, isActive: true });
};
const statusWith = async (given: { authorization: string }): Promise<number> =>
  (await app.server.inject({ url: company.inside, headers: given })).statusCode;
const refresh = async ({ refresh_token_plaintext }: TestToken): Promise<number> =>
  (
    await app.server.inject({
      method: 'POST',
      url: `/v1/orgs/${company.orgId}/api-tokens/refresh`,
      payload: { refresh_token: refresh_token_plaintext },
    })
  ).statusCode;
/** The last record of a change of the provider. */
const recorded = async (): Promise<Record<string, unknown>> => {
  const found = await app.database.prisma.activity.findFirstOrThrow({
    where: { resourceId: company.idpId, resourceType: 'identity_provider', success: true, action: { not: 'read' } },
    orderBy: { id: 'desc' },
  });
  return found.metadata as Record<string, unknown>;
};

const ends: [string, () => Promise<unknown>][] = [
  ['a provider that is switched off', () => switchTo(false)],
  [
    'a provider that is deleted',
    async () => expect((await company.owner.call('DELETE', company.url)).status).toBe(204),
  ],
  ['a link that is removed', () => unlink()],
];

describe.each(ends)('%s', (_what, end) => {
  test('ends the session, and suspends the API tokens of its users', async () => {
    const bob = await createUser(app, company.owner, { name: 'bob' });
    const ofBob = await issueToken(app, bob);
    await end();
    expect((await ann.call('GET', '/v1/auth/me')).status).toBe(401);
    expect(await statusWith(token.headers)).toBe(401);
    expect(await refresh(token)).toBe(401);
    expect(await statusWith(ofBob.headers)).toBe(200);
    expect((await bob.call('GET', '/v1/auth/me')).status).toBe(200);
    expect(await recorded()).toMatchObject({ tokens_suspended: 1 });
  });

  test('leaves the API tokens alone where the provider says so', async () => {
    await keepTokens();
    await end();
    expect((await ann.call('GET', '/v1/auth/me')).status).toBe(401);
    expect(await statusWith(token.headers)).toBe(200);
    expect(await recorded()).not.toHaveProperty('tokens_suspended');
  });

  test('lets nobody use a code that waits', async () => {
    server.account = { sub: 'ann', email: ann.email, email_verified: true };
    const browser = newBrowser(app);
    const begun = await browser.begin(ann.email, { redirect_uri: 'https://app.example.test/in' });
    const { pathname, search } = server.authorize(begun);
    const back = await browser.send('GET', `${pathname}${search}`);
    const code = new URL(back.headers.location as string).searchParams.get('code');
    await end();
    const exchanged = await app.server.inject({
      method: 'POST',
      url: '/v1/auth/sso/exchange',
      payload: { code },
    });
    expect(exchanged.statusCode).toBe(401);
  });
});

test('a user who signs in again has the tokens back, and nobody else', async () => {
  const eva = await atProvider(app, server, company, { sub: 'eva' });
  const ofEva = await issueToken(app, eva);
  await switchTo(false);
  expect(await Promise.all([token, ofEva].map(({ headers }) => statusWith(headers)))).toEqual([401, 401]);
  await switchTo(true);
  expect(await Promise.all([token, ofEva].map(({ headers }) => statusWith(headers)))).toEqual([401, 401]);
  await atProvider(app, server, company);
  app.services.authentication.sessionsChanged();
  expect(await Promise.all([token, ofEva].map(({ headers }) => statusWith(headers)))).toEqual([200, 401]);
  expect(await refresh(token)).toBe(200);
});

describe('an administrator resumes the tokens of a member', () => {
  const RESUME = `mutation ($orgId: ID!, $userId: ID!) {
    resumeApiTokens(orgId: $orgId, userId: $userId) { orgId userId resumed }
  }`;
  const resume = (who: Person) =>
    who.ask(RESUME, { orgId: company.orgId, userId: ann.userId }) as Promise<{
      data: { resumeApiTokens: object } | null;
      errors?: { extensions: { code: string; details: { reason?: string } } }[];
    }>;
  const refusal = async (who: Person) => {
    const { extensions } = (await resume(who)).errors![0]!;
    return [extensions.code, extensions.details.reason];
  };

  test.each([ends[1]!, ends[2]!])('whom no provider knows any more: %s', async (_what, end) => {
    await end();
    const { orgId } = company;
    const { data } = await resume(company.owner);
    expect(data).toEqual({ resumeApiTokens: { orgId, userId: ann.userId, resumed: 1 } });
    expect(await statusWith(token.headers)).toBe(200);
    expect(await refresh(token)).toBe(200);
    const found = await app.database.prisma.activity.findFirst({
      where: { resourceId: ann.userId, resourceType: 'organization_member', action: 'update', success: true },
      orderBy: { id: 'desc' },
    });
    expect(found).toMatchObject({ userId: company.owner.userId, metadata: { tokens_resumed: 1 } });
    const again = await company.owner.call('POST', `/v1/orgs/${orgId}/members/${ann.userId}/resume-api-tokens`);
    expect(again).toMatchObject({ status: 200, body: { org_id: orgId, user_id: ann.userId, resumed: 0 } });
  });

  test('but not whom a provider knows, or has to', async () => {
    await switchTo(false);
    await switchTo(true);
    expect(await refusal(company.owner)).toEqual(['RESOURCE_CONFLICT', 'known_to_provider']);
    await unlink();
    const demanded = await setPolicy(company.owner, company.orgId, { ssoRequired: true });
    expect(demanded.errors).toBeUndefined();
    expect((await breakGlass(company.owner, company.orgId, company.owner.password)).errors).toBeUndefined();
    expect(await refusal(company.owner)).toEqual(['RESOURCE_CONFLICT', 'known_to_provider']);
    expect(await statusWith(token.headers)).toBe(401);
  });

  test('and nobody else does: a member, a token, an administrator for an owner, another organization', async () => {
    await unlink();
    const [admin, bob] = [
      await createUser(app, company.owner, { name: 'admin', role: 'admin' }),
      await createUser(app, company.owner, { name: 'bob' }),
    ];
    const ofOwner = await issueToken(app, company.owner, { scopes: ['admin'] });
    const program = caller(app, { ...company.owner, accessToken: ofOwner.plaintext_token });
    const stranger = await register(app, { name: 'stranger' });
    for (const who of [bob, program, stranger]) expect((await refusal(who))[0]).toBe('FORBIDDEN');
    await app.database.pool.query(`update organization_members set role = 'owner' where user_id = $1`, [ann.userId]);
    expect((await refusal(admin))[0]).toBe('FORBIDDEN');
    expect(await statusWith(token.headers)).toBe(401);
  });
});

test('tokens in other organizations work on', async () => {
  const other = await register(app, { name: 'other' });
  await other.call('POST', `/v1/orgs/${other.orgId}/members`, { user_id: ann.userId });
  const elsewhere = await issueToken(app, { ...ann, orgId: other.orgId });
  await unlink();
  const answer = await app.server.inject({ url: `/v1/orgs/${other.orgId}/workspaces`, headers: elsewhere.headers });
  expect(answer.statusCode).toBe(200);
});

test('an account that was never proven loses what it has granted to applications when it is linked', async () => {
  const email = `victim@${company.domain}`;
  const squatter = await register(app, { email });
  await company.owner.call('POST', `/v1/orgs/${company.orgId}/members`, { user_id: squatter.userId });
  const inside = caller(app, { ...squatter, orgId: company.orgId });
  expect((await inside.call('GET', company.inside)).status).toBe(200);
  const peer = await peerOf(app, await newApplication(company.owner));
  const browser = await signedInBrowser(app, squatter);
  const more = { scope: 'workspace:read offline_access', prompt: 'consent' };
  const granted = await tokensOf(app, browser, peer, more);
  const authorization = `Bearer ${granted.access_token}`;
  expect(await statusWith({ authorization })).toBe(200);
  const victim = await atProvider(app, server, company, { sub: 'the victim', email });
  expect(victim.userId).toBe(squatter.userId);
  expect(await statusWith({ authorization })).toBe(401);
  const headers = { 'x-csrf': '1', origin: new URL(app.url).origin };
  expect((await browser.send(`${app.url}/v1/auth/me`, { headers })).status).toBe(401);
});

describe('who arrives at a provider', () => {
  const SET = `mutation ($orgId: ID!, $id: ID!, $input: UpdateIdentityProviderInput!) {
    updateIdentityProvider(orgId: $orgId, id: $id, input: $input) { defaultWorkspaceId defaultWorkspaceRole }
  }`;
  const set = (who: Person, input: object) =>
    who.ask(SET, { orgId: company.orgId, id: company.idpId, input }) as Promise<{
      data: { updateIdentityProvider: object } | null;
      errors?: { extensions: { code: string } }[];
    }>;
  const titles = async (who: Person): Promise<string[]> =>
    (await who.call<{ notifications: { title: string }[] }>('GET', '/v1/notifications')).body.notifications.map(
      ({ title }) => title,
    );
  const arrived = expect.stringContaining('Somebody new has signed in to the organization') as string;

  test('joins its workspace with the role it gives, starts there, and its owners are told', async () => {
    const { owner } = company;
    const { data } = await set(owner, { defaultWorkspaceId: owner.workspaceId, defaultWorkspaceRole: 'viewer' });
    expect(data!.updateIdentityProvider).toEqual({
      defaultWorkspaceId: owner.workspaceId,
      defaultWorkspaceRole: 'viewer',
    });
    const before = (await titles(owner)).length;
    const cleo = await atProvider(app, server, company, { sub: 'cleo' });
    expect(cleo.workspaceId).toBe(owner.workspaceId);
    expect((await cleo.call('GET', cleo.home)).status).toBe(200);
    expect((await cleo.call('PUT', cleo.home, { name: 'mine' })).status).toBe(403);
    const members = await owner.call<{ members: { user_id: string; role: string }[] }>('GET', `${owner.home}/members`);
    expect(members.body.members).toContainEqual(expect.objectContaining({ user_id: cleo.userId, role: 'viewer' }));
    const told = await titles(owner);
    expect(told).toHaveLength(before + 1);
    expect(told[0]).toEqual(arrived);
    // who comes back has not arrived, and who does not want to know is not told
    await atProvider(app, server, company, { sub: 'cleo' });
    await owner.call('PUT', '/v1/notifications/preferences', { muted_categories: ['member'] });
    await atProvider(app, server, company, { sub: 'dora' });
    expect(await titles(owner)).toHaveLength(before + 1);
  });

  test('joins none that is of another organization, above the caller, or deleted meanwhile', async () => {
    const { owner } = company;
    const other = await register(app, { name: 'other' });
    const admin = await createUser(app, owner, { name: 'admin', role: 'admin' });
    const codes = (answer: { errors?: { extensions: { code: string } }[] }) =>
      answer.errors?.map(({ extensions }) => extensions.code);
    expect(codes(await set(owner, { defaultWorkspaceId: other.workspaceId }))).toEqual(['VALIDATION_ERROR']);
    expect(codes(await set(admin, { defaultWorkspaceRole: 'owner' }))).toEqual(['FORBIDDEN']);
    const made = await owner.call<{ workspace_id: string }>('POST', company.inside, {
      organization_id: company.orgId,
      name: 'Soon gone',
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    expect(codes(await set(owner, { defaultWorkspaceId: made.body.workspace_id }))).toBeUndefined();
    expect((await owner.call('DELETE', `${company.inside}/${made.body.workspace_id}`)).status).toBe(200);
    const cleo = await atProvider(app, server, company, { sub: 'cleo' });
    expect(cleo.workspaceId).toBeNull();
    expect((await cleo.call('GET', company.inside)).body).toMatchObject({ total: 0 });
  });

  test('gets the role of its group where that is for the same workspace', async () => {
    const { owner } = company;
    const mapping = { group: 'Builders', roleId: 'admin', workspaceId: owner.workspaceId };
    await set(owner, { defaultWorkspaceId: owner.workspaceId, groupMappings: [mapping] });
    server.account = { sub: 'bo', email: `bo@${company.domain}`, email_verified: true, groups: ['Builders'] };
    const browser = newBrowser(app);
    const { pathname, search } = server.authorize(await browser.begin(`bo@${company.domain}`));
    const answer = await browser.send('GET', `${pathname}${search}`);
    expect(answer.statusCode, answer.body).toBe(200);
    const { user } = answer.json<{ user: { user_id: string; default_workspace_id: string } }>();
    expect(user.default_workspace_id).toBe(owner.workspaceId);
    const members = await owner.call<{ members: object[] }>('GET', `${owner.home}/members`);
    expect(members.body.members).toContainEqual(expect.objectContaining({ user_id: user.user_id, role: 'admin' }));
  });
});
