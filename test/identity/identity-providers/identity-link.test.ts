import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnyCaller } from '../../../src/kernel/caller.ts';
import { listOf } from '../../insight/notifications/told.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { certificate } from '../../support/certificate.ts';
import { colleague, createUser, type Person, prove, register } from '../../support/person.ts';

let app: TestApp;
let owner: Person;
let admin: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app, { name: 'owner' }); // the first account: it administers the platform
  admin = await createUser(app, owner, { role: 'admin' });
});
afterAll(() => app.close());

const domain = `d${randomBytes(6).toString('hex')}.example.test`;
const unique = () => randomBytes(6).toString('hex');
const newProvider = async (fields: object = {}) => {
  const { body } = await owner.call<{ idp_id: string }>('POST', `/v1/orgs/${owner.orgId}/identity-providers`, {
    name: 'Company',
    protocol: 'saml',
    ...fields,
  });
  return body.idp_id;
};
const LINK = 'id subject userId user { id } reason linkedBy createdAt lastSignInAt';
interface Answer {
  data: Record<string, unknown> | null;
  errors?: { message: string; extensions: { code: string; details: Record<string, unknown> } }[];
}
const link = async (by: Person, id: string, userId: string, subject = unique()) =>
  (await by.ask(
    `mutation ($orgId: ID!, $id: ID!, $input: LinkIdentityInput!) {
      linkIdentity(orgId: $orgId, id: $id, input: $input) { ${LINK} } }`,
    { orgId: owner.orgId, id, input: { userId, subject } },
  )) as unknown as Answer;
const unlink = async (by: Person, id: string, userId: string) =>
  (await by.ask(
    `mutation ($orgId: ID!, $id: ID!, $userId: ID!) { unlinkIdentity(orgId: $orgId, id: $id, userId: $userId) {
      id orgId identityProvider { id } userId user { id } } }`,
    { orgId: owner.orgId, id, userId },
  )) as unknown as Answer;
const linkOf = async (id: string, userId: string) =>
  (
    await admin.ask<{ identityLink: unknown }>(
      `query ($orgId: ID!, $id: ID!, $userId: ID!) {
        identityLink(orgId: $orgId, id: $id, userId: $userId) { ${LINK} } }`,
      { orgId: owner.orgId, id, userId },
    )
  ).data.identityLink;
const refusalOf = ({ errors }: Answer) => {
  const { code, details } = errors![0]!.extensions;
  return [code, details.required_permission ?? details.field ?? details.resource_type];
};

const browser = (): AnyCaller => ({
  principal: null,
  request: {
    traceId: unique(),
    method: 'POST',
    path: '/v1/auth/sso/callback/saml',
    ip: '127.0.0.1',
    successStatus: 200,
    startedAt: performance.now(),
    recorded: false,
    isRest: true,
  },
});

test('an administrator links a member, who is told; to unlink ends what the provider signed in', async () => {
  const id = await newProvider();
  const member = await createUser(app, owner);
  // whoever never proved their address would have to sign in with the provider from then on
  await prove(app, [member]);
  const subject = unique();
  const shown = {
    id: expect.stringMatching(/^idl_/) as string,
    subject,
    userId: member.userId,
    user: { id: member.userId },
    reason: 'administrator',
    linkedBy: admin.userId,
    createdAt: expect.any(String) as string,
    lastSignInAt: null,
  };
  expect(await linkOf(id, member.userId)).toBeNull();
  const made = (await link(admin, id, member.userId, subject)).data;
  expect(made).toEqual({ linkIdentity: shown });
  expect(await linkOf(id, member.userId)).toEqual(shown);
  const told = await member.call<{ notifications: object[] }>('GET', '/v1/notifications');
  expect(told.body.notifications[0]).toMatchObject({
    category: 'security',
    source_event: 'user.identity_linked',
    priority: 'high',
  });
  const provider = await app.database.prisma.identityProvider.findUniqueOrThrow({ where: { id } });
  const identity = { subject, email: null, emailVerified: false, groups: [], claims: {} };
  const { federatedSignIn } = app.services;
  const { accessToken, userId } = await federatedSignIn.signIn(provider, identity, browser());
  expect(userId).toBe(member.userId);
  const me = async (token: string) =>
    (await app.server.inject({ url: '/v1/auth/me', headers: { authorization: `Bearer ${token}` } })).statusCode;
  expect([await me(accessToken), await me(member.accessToken)]).toEqual([200, 200]);
  expect((await unlink(admin, id, member.userId)).data).toEqual({
    unlinkIdentity: {
      id: (made!.linkIdentity as { id: string }).id,
      orgId: owner.orgId,
      identityProvider: { id },
      userId: member.userId,
      user: { id: member.userId },
    },
  });
  expect([await me(accessToken), await me(member.accessToken)]).toEqual([401, 200]);
  expect(await linkOf(id, member.userId)).toBeNull();
  expect(refusalOf(await unlink(admin, id, member.userId))).toEqual(['RESOURCE_NOT_FOUND', 'user']);
});

describe('whom nobody links', () => {
  const forbidden = ['FORBIDDEN', 'identity_provider:update'];

  test('somebody above the administrator, whoever administers the platform, and strangers', async () => {
    const id = await newProvider();
    const other = await createUser(app, owner, { role: 'owner' });
    expect(refusalOf(await link(admin, id, other.userId))).toEqual(forbidden);
    expect((await link(owner, id, other.userId)).errors).toBeUndefined();
    expect(refusalOf(await link(owner, id, owner.userId))).toEqual(forbidden);
    const stranger = await register(app);
    for (const userId of [stranger.userId, 'usr_none'])
      expect(refusalOf(await link(owner, id, userId))).toEqual(['RESOURCE_NOT_FOUND', 'user']);
    const editor = await createUser(app, owner, { role: 'editor' });
    expect(refusalOf(await link(editor, id, editor.userId))).toEqual(forbidden);
    expect(refusalOf(await link(stranger, id, stranger.userId))).toEqual(['FORBIDDEN', 'organization:access']);
  });

  test('an account of other organizations too, unless its domain is proven', async () => {
    const id = await newProvider({ verified_domains: [domain] });
    const both = await colleague(app, owner, 'member');
    expect(refusalOf(await link(owner, id, both.userId))).toEqual(forbidden);
    const set = 'update users set email = $2, email_key = $2 where id = $1';
    await app.database.pool.query(set, [both.userId, `${unique()}@${domain}`]);
    expect(refusalOf(await link(owner, id, both.userId))).toEqual(forbidden);
    await app.database.pool.query(
      `update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`,
      [domain],
    );
    expect((await link(owner, id, both.userId)).errors).toBeUndefined();
  });

  test('an identity or a user twice', async () => {
    const id = await newProvider();
    const [ann, bob] = [await createUser(app, owner), await createUser(app, owner)];
    await link(owner, id, ann.userId, 's');
    expect(refusalOf(await link(owner, id, ann.userId))).toEqual(['RESOURCE_ALREADY_EXISTS', 'user_id']);
    expect(refusalOf(await link(owner, id, bob.userId, 's'))).toEqual(['RESOURCE_ALREADY_EXISTS', 'subject']);
    const at = await Promise.all([1, 2, 3].map((n) => link(owner, id, bob.userId, `t${n}`)));
    expect(at.filter(({ errors }) => !errors)).toHaveLength(1);
    // at another provider it is another identity
    expect((await link(owner, await newProvider(), ann.userId, 's')).errors).toBeUndefined();
  });
});

test('a test keeps what the provider said and what would happen, for its administrators and a day', async () => {
  const saml_config = { entity_id: 'e', sso_url: 'https://idp.test/sso', certificate: certificate.cert };
  const id = await newProvider({ saml_config });
  const begun = (await admin.ask(
    `mutation ($orgId: ID!, $id: ID!) { testIdentityProvider(orgId: $orgId, id: $id) { test { id } } }`,
    { orgId: owner.orgId, id },
  )) as unknown as { data: { testIdentityProvider: { test: { id: string } } } };
  const testId = begun.data.testIdentityProvider.test.id;
  const ask = async (by: Person) =>
    (await by.ask(
      `query ($orgId: ID!, $id: ID!, $testId: ID!) { identityProviderTest(orgId: $orgId, id: $id, testId: $testId) {
        id status failure startedByUser { id } subject email emailVerified groups claims outcome reason userId profile
        roles { workspaceId before after kept } } }`,
      { orgId: owner.orgId, id, testId },
    )) as unknown as Answer;
  expect((await ask(admin)).data!.identityProviderTest).toMatchObject({ id: testId, status: 'pending', outcome: null });
  const provider = await app.database.prisma.identityProvider.findUniqueOrThrow({ where: { id } });
  const claims = { sub: 's', team: ['g'] };
  const identity = { subject: 's', email: 'a@nowhere.test', emailVerified: true, groups: ['g'], claims };
  const evaluation = await app.services.federatedSignIn.evaluate(provider, identity);
  await app.database.prisma.identityProviderTest.update({
    where: { id: testId },
    data: { status: 'succeeded', finishedAt: new Date(), result: { identity, claims, evaluation } as never },
  });
  expect((await ask(admin)).data!.identityProviderTest).toEqual({
    id: testId,
    status: 'succeeded',
    failure: null,
    startedByUser: { id: admin.userId },
    subject: 's',
    email: 'a@nowhere.test',
    emailVerified: true,
    groups: ['g'],
    claims,
    outcome: 'refused',
    reason: 'domain_not_claimed',
    userId: null,
    profile: [],
    roles: [],
  });
  expect(refusalOf(await ask(await createUser(app, owner)))).toEqual(['FORBIDDEN', 'identity_provider:update']);
  await app.database.pool.query('update identity_provider_tests set expires_at = now() where id = $1', [testId]);
  expect(refusalOf(await ask(admin))).toEqual(['RESOURCE_NOT_FOUND', 'identity_provider_test']);
});

test('an administrator starts a test at a provider that is configured', async () => {
  const start = async (id: string, by = admin) =>
    (await by.ask(
      `mutation ($orgId: ID!, $id: ID!) { testIdentityProvider(orgId: $orgId, id: $id) {
        redirectUrl test { id status startedBy } } }`,
      { orgId: owner.orgId, id },
    )) as unknown as Answer;
  const bare = await newProvider();
  expect((await start(bare)).errors![0]!.extensions.details).toMatchObject({ reason: 'not_configured' });
  const samlConfig = { entity_id: 'e', sso_url: 'https://idp.test/sso', certificate: certificate.cert };
  const id = await newProvider({ saml_config: samlConfig });
  const { redirectUrl, test: started } = (await start(id)).data!.testIdentityProvider as {
    redirectUrl: string;
    test: { id: string };
  };
  expect(redirectUrl).toMatch(/^https:\/\/idp\.test\/sso\?/);
  expect(started).toEqual({ id: expect.stringMatching(/^idt_/) as string, status: 'pending', startedBy: admin.userId });
  expect(await app.database.prisma.ssoState.findMany({ where: { testId: started.id } })).toMatchObject([
    { kind: 'test', identityProviderId: id, redirectUri: null },
  ]);
  const editor = await createUser(app, owner, { role: 'editor' });
  expect(refusalOf(await start(id, editor))).toEqual(['FORBIDDEN', 'identity_provider:update']);
});

test('administrators are told 30, 7 and 1 days before the last certificate ends, once each', async () => {
  const samlConfig = { entity_id: 'e', sso_url: 'https://idp.test/sso', certificate: certificate.cert };
  const id = await newProvider({ name: 'Ending', saml_config: samlConfig });
  const other = await app.another();
  const editor = await createUser(app, owner, { role: 'editor' });
  const endsIn = (days: number) =>
    app.database.pool.query(
      `update identity_providers set certificate_ends_at = now() + $2 * interval '1 hour',
        certificate_noticed_at = certificate_noticed_at - interval '1 day' where id = $1`,
      [id, days * 24 - 1],
    );
  const look = async () =>
    (await Promise.all([app, other].map(({ services }) => services.identityProviderNotices.send()))).reduce(
      (a, b) => a + b,
    );
  const toldTo = async (who: Person) =>
    (await app.database.prisma.notification.findMany({ where: { recipientId: who.userId }, orderBy: { id: 'asc' } }))
      .filter(({ sourceEvent }) => sourceEvent === 'identity_provider.certificate_ending')
      .map(({ category, priority, title }) => [category, priority, title.replace(/\d{4}-\d\d-\d\d/, 'DAY')]);
  const told: string[][] = [];
  const title = 'The certificate of an identity provider ends on DAY';
  expect(await look()).toBe(0);
  for (const [days, priority] of [
    [30, 'normal'],
    [7, 'normal'],
    [1, 'high'],
  ] as const) {
    await endsIn(days + 1.5);
    expect(await look()).toBe(0);
    await endsIn(days);
    expect(await look()).toBe(1);
    expect(await look()).toBe(0);
    told.push(['system', priority, title]);
    expect(await toldTo(owner)).toEqual(told);
  }
  expect([await toldTo(admin), await toldTo(editor)]).toEqual([told, []]);
  // only of the last step, and not any more once it is switched off
  const open = async () => (await listOf(admin, '?category=system')).notifications.map(({ priority }) => priority);
  expect(await open()).toEqual(['high']);
  await admin.call('PUT', `/v1/orgs/${owner.orgId}/identity-providers/${id}`, { is_active: false });
  expect(await open()).toEqual([]);
  // one that is switched off signs nobody in anyway
  await app.database.pool.query(
    'update identity_providers set certificate_noticed_at = null, is_active = false where id = $1',
    [id],
  );
  expect(await look()).toBe(0);
});
