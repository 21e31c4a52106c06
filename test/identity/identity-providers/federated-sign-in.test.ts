import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { QueryRunner } from '../../../src/data/find-row.ts';
import type { Statement } from '../../../src/data/writes.ts';
import type { IdentityProvider } from '../../../src/generated/prisma/client.ts';
import { admissionOf } from '../../../src/identity/identity-providers/sign-in-admission.ts';
import type { VerifiedIdentity } from '../../../src/identity/sso/verified-identity.ts';
import type { AnyCaller } from '../../../src/kernel/caller.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { stopAges } from '../../support/passing-time.ts';
import { addToWorkspace, caller, createUser, type Person, register } from '../../support/person.ts';
import { databaseChecksums } from '../../support/rows.ts';
import { waitUntil } from '../../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' }); // the first account administers the platform
});
afterAll(() => app.close());

const db = () => app.database.prisma;
const unique = () => randomBytes(6).toString('hex');
const aDomain = () => `d${unique()}.example.test`;

/** Somebody's browser. */
const browser = (): AnyCaller => ({
  principal: null,
  request: {
    traceId: unique(),
    method: 'GET',
    path: '/v1/auth/sso/callback/oidc',
    ip: '127.0.0.1',
    successStatus: 200,
    startedAt: performance.now(),
    recorded: false,
    isRest: true,
  },
});

interface Company {
  owner: Person;
  domain: string;
  provider: IdentityProvider;
  url: string;
}

/** An organization with a provider for a domain. */
async function company(fields: object = {}, { isProven = true } = {}): Promise<Company> {
  const owner = await register(app, { name: 'owner' });
  const domain = aDomain();
  const { status, body } = await owner.call<{ idp_id: string }>('POST', `/v1/orgs/${owner.orgId}/identity-providers`, {
    name: 'Company',
    protocol: 'oidc',
    oidc_config: { client_id: 'c', discovery_url: 'https://idp.test' },
    verified_domains: [domain],
    ...fields,
  });
  expect(status, JSON.stringify(body)).toBe(201);
  if (isProven) await prove(domain);
  const provider = await db().identityProvider.findUniqueOrThrow({ where: { id: body.idp_id } });
  return { owner, domain, provider, url: `/v1/orgs/${owner.orgId}/identity-providers/${body.idp_id}` };
}

const prove = (domain: string) =>
  app.database.pool.query(
    `update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`,
    [domain],
  );

const identityIn = (domain: string, more: Partial<VerifiedIdentity> = {}): VerifiedIdentity => ({
  subject: `sub-${unique()}`,
  email: `u${unique()}@${domain}`,
  emailVerified: false,
  groups: [],
  claims: {},
  ...more,
});

const signIn = (provider: IdentityProvider, identity: VerifiedIdentity) =>
  app.services.federatedSignIn.signIn(provider, identity, browser());

/** The reason of a refusal; `null` for somebody who is signed in. */
const refusalOf = (provider: IdentityProvider, identity: VerifiedIdentity): Promise<unknown> =>
  signIn(provider, identity).then(
    () => null,
    (error: { extensions: { code: string; details: { required_permission: string; reason: string } } }) => {
      const { code, details } = error.extensions;
      expect([code, details.required_permission]).toEqual(['FORBIDDEN', 'organization:access']);
      return details.reason;
    },
  );

/** What a sign-in could change; the rest moves by itself. */
const checksums = async () => {
  const all = await databaseChecksums(app.database.pool);
  const tables = 'users identity_links identity_grants organization_members workspace_members sessions notifications';
  return Object.fromEntries(tables.split(' ').map((table) => [table, all[table]!]));
};

const rolesOf = async (userId: string, orgId: string) => ({
  organization:
    (await db().organizationMember.findUnique({ where: { orgId_userId: { orgId, userId } } }))?.role ?? null,
  workspaces: (await db().workspaceMember.findMany({ where: { orgId, userId }, orderBy: { workspaceId: 'asc' } })).map(
    ({ role }) => role,
  ),
});

const loginsOf = async (orgId: string) => {
  await app.services.activity.flush();
  return db().activity.findMany({
    where: { orgId, action: 'login', method: 'GET' },
    orderBy: { id: 'asc' },
    select: { resourceId: true, userId: true, statusCode: true, errorCode: true, metadata: true },
  });
};

test('somebody new gets an account of the organization, and a session that says how it was made', async () => {
  const { owner, domain, provider } = await company({ default_role_id: 'editor' });
  const identity = identityIn(domain, {
    username: 'ann smith@elsewhere',
    fullName: 'Ann Smith',
    avatarUrl: 'https://idp.test/ann.png',
    locale: 'de-DE',
    sessionIndex: 'si',
    nameIdFormat: 'nf',
  });
  const made = await signIn(provider, identity);
  expect(made).toMatchObject({ tokenType: 'bearer', expiresIn: 1_800, orgId: owner.orgId });
  const user = await db().user.findUniqueOrThrow({ where: { id: made.userId } });
  expect(user).toMatchObject({
    email: identity.email,
    username: 'ann-smith',
    fullName: 'Ann Smith',
    avatarUrl: 'https://idp.test/ann.png',
    locale: 'de-DE',
    authProvider: 'oidc',
    homeOrgId: owner.orgId,
    isVerified: true,
    isPlatformAdmin: false,
    passwordHash: null,
    lastLogin: expect.any(Date) as Date,
  });
  expect(await rolesOf(user.id, owner.orgId)).toEqual({ organization: 'editor', workspaces: [] });
  expect(await db().session.findMany({ where: { userId: user.id } })).toMatchObject([
    {
      method: 'oidc',
      identityProviderId: provider.id,
      subject: identity.subject,
      sessionIndex: 'si',
      nameIdFormat: 'nf',
      orgId: owner.orgId,
    },
  ]);
  const self = caller(app, { ...owner, accessToken: made.accessToken });
  expect((await self.call('GET', '/v1/auth/me')).body).toMatchObject({ user_id: user.id, auth_provider: 'oidc' });
  const metadata = { identity_provider_id: provider.id, protocol: 'oidc', linked: 'created' };
  expect(await loginsOf(owner.orgId)).toMatchObject([
    { resourceId: user.id, userId: user.id, statusCode: 200, metadata },
  ]);
  // nobody is told of an account that they have just made
  expect(await db().notification.count({ where: { recipientId: user.id } })).toBe(0);
  const again = await signIn(provider, { ...identity, email: 'other@elsewhere.test', fullName: 'Ann Miller' });
  expect(again.userId).toBe(user.id);
  expect(await db().user.findUniqueOrThrow({ where: { id: user.id } })).toMatchObject({
    email: identity.email,
    fullName: 'Ann Miller',
  });
});

test('an address in a domain that is not proven is proven by mail first', async () => {
  const { domain, provider } = await company({}, { isProven: false });
  const identity = identityIn(domain, { emailVerified: true });
  const strict = await app.another({ REQUIRE_VERIFIED_EMAIL: 'true' });
  const held = strict.services.federatedSignIn.signIn(provider, identity, browser());
  await expect(held).rejects.toMatchObject({ extensions: { details: { required_permission: 'account:verified' } } });
  await app.jobsDone();
  const mails = app.mails.filter(({ to }) => to === identity.email);
  expect(mails.map(({ subject }) => subject)).toEqual(['Confirm your e-mail address']);
  const token = new URL(mails[0]!.link!).searchParams.get('token');
  await app.server.inject({ method: 'POST', url: '/v1/auth/verify-email', payload: { token } });
  const { userId } = await strict.services.federatedSignIn.signIn(provider, identity, browser());
  expect(await db().user.findUniqueOrThrow({ where: { id: userId } })).toMatchObject({ isVerified: true });
});

describe('who is linked to an account that is there', () => {
  interface Case {
    isProven?: true;
    /** What the provider says, and what the account has proven. */
    emailVerified?: true;
    isVerified?: true;
    /** What else is true of the account, its company and its provider. */
    given?: (of: Company, member: Person) => Promise<unknown>;
    outcome: string;
  }
  const both = { emailVerified: true, isVerified: true } as const;
  const alsoElsewhere = async (_of: Company, member: Person) => {
    const other = await register(app);
    const member_of = { user_id: member.userId, role: 'member' };
    expect((await other.call('POST', `/v1/orgs/${other.orgId}/members`, member_of)).status).toBe(201);
  };
  const leave = ({ owner }: Company, { userId }: Person) =>
    owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${userId}`);
  const asAdmin = async ({ owner, url, provider }: Company) => {
    const admin = await createUser(app, owner, { role: 'admin' });
    expect((await admin.call('PUT', url, { group_attribute: 'teams' })).status).toBe(200);
    await app.database.pool.query('update identity_providers set group_attribute = $2 where id = $1', [
      provider.id,
      'g',
    ]);
  };
  const promote =
    (role: string) =>
    async ({ owner }: Company, member: Person) => {
      const url = `/v1/orgs/${owner.orgId}/members/${member.userId}`;
      expect((await owner.call('PATCH', url, { role })).status).toBe(200);
    };
  const sql =
    (text: string) =>
    (_of: Company, { userId }: Person) =>
      app.database.pool.query(text, [userId]);

  test.each<[string, Case]>([
    ['the domain is proven', { isProven: true, outcome: 'proven_domain' }],
    [
      "the domain is proven, and the account is another organization's too",
      { isProven: true, given: alsoElsewhere, outcome: 'proven_domain' },
    ],
    ['both sides say that the address is verified', { ...both, outcome: 'verified_email' }],
    [
      'only the provider says so, of an account that the organization manages',
      { emailVerified: true, outcome: 'managed_account' },
    ],
    ['only the account has proven it', { isVerified: true, outcome: 'proof_required' }],
    ['nobody says so, of an account that the organization manages', { outcome: 'managed_account' }],
    [
      "both say so, but the account is another organization's too",
      { ...both, given: alsoElsewhere, outcome: 'proof_required' },
    ],
    [
      "both say so, but the domain is none of the provider's",
      {
        ...both,
        given: ({ owner, url }) => owner.call('PUT', url, { verified_domains: [] }),
        outcome: 'proof_required',
      },
    ],
    ['the account has left the organization', { isProven: true, ...both, given: leave, outcome: 'account_not_linked' }],
    [
      'the account administers the platform',
      {
        isProven: true,
        ...both,
        given: sql('update users set is_platform_admin = true where id = $1'),
        outcome: 'account_not_linked',
      },
    ],
    [
      'the account is deactivated',
      {
        isProven: true,
        ...both,
        given: sql('update users set is_active = false where id = $1'),
        outcome: 'account_inactive',
      },
    ],
    ['an owner, and an owner made the provider', { isProven: true, given: promote('owner'), outcome: 'proven_domain' }],
    [
      'an owner, and an administrator has changed the provider since',
      {
        isProven: true,
        given: async (of, member) => {
          await promote('owner')(of, member);
          await asAdmin(of);
        },
        outcome: 'role_above_provider',
      },
    ],
    [
      'an administrator, and an administrator has changed the provider',
      {
        isProven: true,
        given: async (of, member) => {
          await promote('admin')(of, member);
          await asAdmin(of);
        },
        outcome: 'proven_domain',
      },
    ],
    [
      'the account has another identity of the provider',
      {
        isProven: true,
        given: ({ provider }, { email }) => signIn(provider, identityIn('x.test', { email })),
        outcome: 'already_linked',
      },
    ],
    [
      'the provider is switched off',
      {
        isProven: true,
        given: ({ owner, url }) => owner.call('PUT', url, { is_active: false }),
        outcome: 'provider_disabled',
      },
    ],
  ])('%s', async (_title, { isProven, emailVerified, isVerified, given, outcome }) => {
    const of = await company({}, { isProven: isProven ?? false });
    const { owner, domain, provider } = of;
    const member = await createUser(app, owner, { email: `Member.${unique()}@${domain.toUpperCase()}` });
    await app.database.pool.query('update users set is_verified = $2 where id = $1', [
      member.userId,
      isVerified ?? false,
    ]);
    await given?.(of, member);
    const identity = identityIn(domain, { email: member.email.toLowerCase(), emailVerified: emailVerified ?? false });
    const before = await checksums();
    const expected = await app.services.federatedSignIn.evaluate(provider, identity);
    const isLinked = ['proven_domain', 'verified_email', 'managed_account'].includes(outcome);
    expect(expected).toMatchObject({ outcome: isLinked ? 'link' : 'refused', reason: outcome });
    const refusal = await refusalOf(provider, identity);
    expect(refusal).toBe(isLinked ? null : outcome);
    if (!isLinked) {
      expect(await checksums()).toEqual(before);
      const record = (await loginsOf(owner.orgId)).at(-1);
      // the user reads it, too, if the account is one of the organization
      expect([null, member.userId]).toContain(record?.userId);
      expect(record?.userId).toBe(record?.resourceId);
      expect(record).toMatchObject({
        statusCode: 403,
        errorCode: 'FORBIDDEN',
        metadata: {
          identity_provider_id: provider.id,
          reason: outcome,
          email: identity.email,
          client_address: '127.0.0.1',
        },
      });
      return;
    }
    expect(await db().identityLink.findMany({ where: { userId: member.userId } })).toMatchObject([
      {
        subject: identity.subject,
        reason: outcome,
        orgId: owner.orgId,
        identityProviderId: provider.id,
        linkedBy: null,
      },
    ]);
    expect(
      await db().notification.findMany({ where: { recipientId: member.userId, category: 'security' } }),
    ).toMatchObject([{ sourceEvent: 'user.identity_linked', message: expect.stringContaining("'Company'") as string }]);
    expect(await app.services.federatedSignIn.evaluate(provider, identity)).toMatchObject({ outcome: 'sign_in' });
  });
});

test('nobody of another organization is signed in, whatever a provider says', async () => {
  const [mine, theirs] = [await company(), await company()];
  const stranger = identityIn(mine.domain, { email: theirs.owner.email, emailVerified: true });
  await app.database.pool.query('update users set is_verified = true where id = $1', [theirs.owner.userId]);
  expect(await refusalOf(mine.provider, stranger)).toBe('account_not_linked');
  // nor is an account made in a domain of others, or in none
  expect(await refusalOf(mine.provider, identityIn(theirs.domain))).toBe('domain_not_claimed');
  for (const email of [null, '', 'no address', `a@b@${mine.domain}`, `<a@${mine.domain}>`, 'a@localhost'])
    expect(await refusalOf(mine.provider, identityIn(mine.domain, { email }))).toBe('email_missing');
  await mine.owner.call('PUT', mine.url, { auto_create_users: false });
  expect(await refusalOf(mine.provider, identityIn(mine.domain))).toBe('account_not_linked');
});

test('a linked account stays out once it has left, is deactivated, or administers the platform', async () => {
  const { owner, domain, provider } = await company();
  const identity = identityIn(domain);
  const { userId } = await signIn(provider, identity);
  const set = (columns: string) => app.database.pool.query(`update users set ${columns} where id = $1`, [userId]);
  await set('is_platform_admin = true');
  expect(await refusalOf(provider, identity)).toBe('account_not_linked');
  await set('is_platform_admin = false, is_active = false');
  expect(await refusalOf(provider, identity)).toBe('account_inactive');
  await set('is_active = true');
  expect(await refusalOf(provider, identity)).toBeNull();
  await owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${userId}`);
  expect(await refusalOf(provider, identity)).toBe('account_not_linked');
});

test('who has other roles by groups is told of each, and by which provider', async () => {
  const of = await company();
  const { owner, domain, provider } = of;
  const group_mappings = [
    { group: 'leads', role_id: 'admin' },
    { group: 'staff', role_id: 'viewer', workspace_id: owner.workspaceId },
    { group: 'leads', role_id: 'editor', workspace_id: owner.workspaceId },
  ];
  await owner.call('PUT', of.url, { group_mappings });
  const identity = identityIn(domain);
  const { userId } = await signIn(provider, { ...identity, groups: [] });
  /** What a sign-in with these groups tells its user. */
  const told = async (...groups: string[]) => {
    await db().notification.deleteMany({ where: { recipientId: userId } });
    await signIn(provider, { ...identity, groups });
    const rows = await db().notification.findMany({ where: { recipientId: userId }, orderBy: { sourceEvent: 'asc' } });
    return rows.map(({ title, message }) => [title, message]);
  };
  const { rows } = await app.database.pool.query<{ organization: string; workspace: string }>(
    `select o.name as organization, w.name as workspace from workspaces w join organizations o on o.id = w.org_id
     where w.id = $1`,
    [owner.workspaceId],
  );
  const organization = `the organization '${rows[0]!.organization}'`;
  const workspace = `the workspace '${rows[0]!.workspace}' of '${rows[0]!.organization}'`;
  const by = `The identity provider '${provider.name}'`;
  expect(await told('staff')).toEqual([
    [`You were added to ${workspace}`, `${by} added you to ${workspace}. You may leave at any time.`],
  ]);
  expect(await told('leads')).toEqual([
    [`Your role in ${organization} changed`, `${by} changed your role in ${organization} from member to admin.`],
    [`Your role in ${workspace} changed`, `${by} changed your role in ${workspace} from viewer to editor.`],
  ]);
  expect(await told('leads')).toEqual([]);
  expect(await told()).toEqual([
    [`Your role in ${organization} changed`, `${by} changed your role in ${organization} from admin to member.`],
    [`You were removed from ${workspace}`, `${by} removed you from ${workspace}.`],
  ]);
});

test('groups grant the highest role, take away only what they granted, and leave what was given by hand', async () => {
  const of = await company();
  const { owner, domain, provider } = of;
  const group_mappings = [
    { group: 'staff', role_id: 'viewer' },
    { group: 'leads', role_id: 'admin' },
    { group: 'staff', role_id: 'editor', workspace_id: owner.workspaceId },
    { group: 'leads', role_id: 'admin', workspace_id: owner.workspaceId },
  ];
  await owner.call('PUT', of.url, { group_mappings });
  const identity = identityIn(domain);
  const withGroups = async (...groups: string[]) => {
    const expected = await app.services.federatedSignIn.evaluate(provider, { ...identity, groups });
    const { userId } = await signIn(provider, { ...identity, groups });
    const { organization, workspaces } = await rolesOf(userId, owner.orgId);
    return { userId, roles: [organization, workspaces[0] ?? null], expected: expected.roles.map(({ after }) => after) };
  };
  const first = await withGroups('leads', 'staff');
  const { userId } = first;
  expect(first).toMatchObject({ roles: ['admin', 'admin'], expected: ['admin', 'admin'] });
  expect(await withGroups('leads', 'staff')).toMatchObject({ roles: ['admin', 'admin'], expected: [] });
  // the default role is the user's own: a group does not lower it
  expect(await withGroups('staff')).toMatchObject({ roles: ['member', 'editor'], expected: ['member', 'editor'] });
  expect(await withGroups('unknown')).toMatchObject({ roles: ['member', null], expected: [null] });
  expect(await db().identityGrant.count({ where: { userId } })).toBe(0);
  // by hand: a role in the workspace, which the groups raise and give back
  await addToWorkspace(app, owner, userId, 'viewer');
  expect(await withGroups('staff')).toMatchObject({ roles: ['member', 'editor'] });
  expect(await withGroups()).toMatchObject({ roles: ['member', 'viewer'] });
  // by hand over what a group granted: it is the user's own from then on
  await withGroups('leads');
  const members = `${owner.home}/members/${userId}`;
  expect((await owner.call('PATCH', members, { role: 'owner' })).status).toBe(200);
  expect((await owner.call('PATCH', members, { role: 'editor' })).status).toBe(200);
  expect(await withGroups()).toMatchObject({ roles: ['member', 'editor'] });
  expect((await loginsOf(owner.orgId)).at(-1)!.metadata).toMatchObject({
    roles: [{ workspace_id: null, before: 'admin', after: 'member' }],
  });
});

test('what another provider grants stays', async () => {
  const one = await company({ group_mappings: [{ group: 'g', role_id: 'editor' }] });
  const { owner, domain } = one;
  const made = await owner.call<{ idp_id: string }>('POST', `/v1/orgs/${owner.orgId}/identity-providers`, {
    name: 'Second',
    protocol: 'saml',
    group_mappings: [{ group: 'g', role_id: 'admin' }],
  });
  const second = await db().identityProvider.findUniqueOrThrow({ where: { id: made.body.idp_id } });
  const [a, b] = [identityIn(domain), identityIn(domain)];
  b.email = a.email;
  const { userId } = await signIn(one.provider, { ...a, groups: ['g'] });
  const roleAfter = async (provider: IdentityProvider, identity: VerifiedIdentity, groups: string[]) => {
    await signIn(provider, { ...identity, groups });
    return (await rolesOf(userId, owner.orgId)).organization;
  };
  expect(await roleAfter(second, b, ['g'])).toBe('admin');
  expect(await roleAfter(one.provider, a, [])).toBe('admin');
  expect(await roleAfter(one.provider, a, ['g'])).toBe('admin');
  expect(await roleAfter(second, b, [])).toBe('editor');
  expect(await roleAfter(one.provider, a, [])).toBe('member');
});

test('the last owner stays owner until there is another one', async () => {
  const { owner, domain, provider } = await company({ group_mappings: [{ group: 'o', role_id: 'owner' }] });
  const identity = identityIn(domain);
  const { userId } = await signIn(provider, { ...identity, groups: ['o'] });
  const role = async (id: string) => (await rolesOf(id, owner.orgId)).organization;
  expect(await role(userId)).toBe('owner');
  await app.database.pool.query(`update organization_members set role = 'admin' where user_id = $1`, [owner.userId]);
  expect(await app.services.federatedSignIn.evaluate(provider, identity)).toMatchObject({
    roles: [{ workspace_id: null, before: 'owner', after: 'owner', kept: 'last_owner' }],
  });
  await signIn(provider, identity);
  expect(await role(userId)).toBe('owner');
  expect((await loginsOf(owner.orgId)).at(-1)!.metadata).toMatchObject({ roles: [{ kept: 'last_owner' }] });
  await app.database.pool.query(`update organization_members set role = 'owner' where user_id = $1`, [owner.userId]);
  await signIn(provider, identity);
  expect(await role(userId)).toBe('member');
});

test('of many first sign-ins at once all get the one account', async () => {
  const { owner, domain, provider } = await company({ group_mappings: [{ group: 'g', role_id: 'editor' }] });
  const identity = identityIn(domain, { groups: ['g'], username: `many-${unique()}` });
  const all = await Promise.all(Array.from({ length: 6 }, () => signIn(provider, identity)));
  expect(new Set(all.map(({ userId }) => userId)).size).toBe(1);
  expect(await rolesOf(all[0]!.userId, owner.orgId)).toEqual({ organization: 'editor', workspaces: [] });
});

test('who was linked by another sign-in a moment ago is no one who is linked to somebody else', async () => {
  const { domain, provider } = await company();
  const identity = identityIn(domain);
  const { sql } = app.services;
  let meanwhile: Promise<{ userId: string }> | null = null;
  // between the look for the subject, which finds nothing, and the look for the address
  const db: QueryRunner = {
    async query<Row extends object>(statement: Statement) {
      const rows = await sql.query<Row>(statement);
      await (meanwhile ??= signIn(provider, identity));
      return rows;
    },
  };
  const admission = await admissionOf(db, provider, identity);
  expect(admission).toMatchObject({ kind: 'linked', account: { id: (await meanwhile!).userId } });
});

test('a taken user name gets an ending', async () => {
  const { domain, provider } = await company();
  const username = `name-${unique()}`;
  const made = [];
  for (let n = 0; n < 2; n++) made.push(await signIn(provider, identityIn(domain, { username })));
  const names = await Promise.all(made.map(({ userId }) => db().user.findUniqueOrThrow({ where: { id: userId } })));
  expect(names[0]!.username).toBe(username);
  expect(names[1]!.username).toMatch(new RegExp(`^${username}-[0-9a-f]{8}$`));
});

test.each(['is switched off', 'is deleted'])(
  'when a provider %s, its sessions end here at once, elsewhere within a second',
  async (how) => {
    const { owner, domain, provider, url } = await company();
    const other = await app.another();
    const { accessToken, refreshToken } = await signIn(provider, identityIn(domain));
    const me = async (on: TestApp) =>
      (await on.server.inject({ url: '/v1/auth/me', headers: { authorization: `Bearer ${accessToken}` } })).statusCode;
    const ages = stopAges();
    expect([await me(app), await me(other)]).toEqual([200, 200]);
    if (how === 'is deleted') expect((await owner.call('DELETE', url)).status).toBe(204);
    else expect((await owner.call('PUT', url, { is_active: false })).status).toBe(200);
    expect(await me(app)).toBe(401);
    ages.pass(1_000);
    await waitUntil(async () => (await me(other)) === 401);
    const refresh = { method: 'POST', url: '/v1/auth/refresh', payload: { refresh_token: refreshToken } } as const;
    expect((await app.server.inject(refresh)).statusCode).toBe(401);
    // those of a password go on
    expect((await owner.call('GET', '/v1/auth/me')).status).toBe(200);
  },
);

describe('a code for a session', () => {
  const exchange = (code: string) => app.services.federatedSignIn.exchange(browser(), code);
  const refused = { extensions: { code: 'AUTHENTICATION_FAILED' } };

  test('is exchanged once, also if many try at once', async () => {
    const { domain, provider } = await company();
    const code = await app.services.federatedSignIn.signInForCode(provider, identityIn(domain), browser(), null);
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => exchange(code)));
    const [signedIn, ...more] = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(more).toEqual([]);
    expect(await db().session.findMany({ where: { userId: signedIn!.userId } })).toMatchObject([
      { method: 'oidc', identityProviderId: provider.id },
    ]);
    await expect(exchange(code)).rejects.toMatchObject(refused);
  });

  test('is refused when it is unknown, too late, or its provider was switched off', async () => {
    const { owner, domain, provider, url } = await company();
    const code = () => app.services.federatedSignIn.signInForCode(provider, identityIn(domain), browser(), null);
    const late = await code();
    await app.database.pool.query(`update sso_codes set expires_at = now() where identity_provider_id = $1`, [
      provider.id,
    ]);
    const held = await code();
    await owner.call('PUT', url, { is_active: false });
    for (const wrong of ['', 'nobody', late, held]) await expect(exchange(wrong)).rejects.toMatchObject(refused);
  });
});
