import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { addToWorkspace, caller, eventsOf, type Person, register, signIn } from '../../support/person.ts';
import {
  accountOf,
  type Company,
  clientOf,
  company,
  entraUser,
  newToken,
  patch,
  provision,
  rolesOf,
  USER,
  unique,
} from './directories.ts';

let app: TestApp;
let firm: Company;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' }); // the first account administers the platform
  firm = await company(app);
});
afterAll(() => app.close());

const db = () => app.database.prisma;

/** Somebody in the directory who has a password, and is signed in. */
async function working(of: Company = firm): Promise<{ id: string; person: Person }> {
  const { id } = await provision(of);
  const userId = await accountOf(app, id);
  const passwordHash = (await db().user.findUniqueOrThrow({ where: { id: of.owner.userId } })).passwordHash;
  const { username, email } = await db().user.update({ where: { id: userId }, data: { passwordHash } });
  const account = await signIn(app, { username, password: of.owner.password });
  return { id, person: caller(app, { ...account, email, orgId: of.owner.orgId, workspaceId: of.owner.workspaceId }) };
}

test('creates a member with an account, as the resource says', async () => {
  const userName = `Ann.${unique()}@${firm.domain}`;
  const { status, body, headers } = await firm.scim('POST', '/Users', entraUser(userName, { externalId: 'e-1' }));
  expect([status, headers['content-type']]).toEqual([201, 'application/scim+json; charset=utf-8']);
  expect(body).toEqual({
    schemas: [USER],
    id: expect.stringMatching(/^scu_/),
    externalId: 'e-1',
    userName,
    name: { formatted: 'Ann Example', givenName: 'Ann', familyName: 'Example' },
    displayName: 'Ann Example',
    active: true,
    emails: [{ value: userName, type: 'work', primary: true }],
    meta: {
      resourceType: 'User',
      created: expect.any(String),
      lastModified: expect.any(String),
      location: expect.stringMatching(new RegExp(`/scim/v2/${firm.owner.orgId}/Users/${body.id}$`)),
      version: 'W/"1a"',
    },
  });
  expect([headers.etag, headers.location]).toEqual([body.meta.version, body.meta.location]);
  const userId = await accountOf(app, body.id);
  const user = await db().user.findUniqueOrThrow({ where: { id: userId } });
  expect(user).toMatchObject({
    email: userName,
    emailKey: userName.toLowerCase(),
    authProvider: 'scim',
    homeOrgId: firm.owner.orgId,
    isVerified: true,
    passwordHash: null,
    fullName: 'Ann Example',
    isPlatformAdmin: false,
  });
  expect(await rolesOf(app, firm.owner.orgId, userId)).toEqual({ organization: 'member', workspaces: [] });
  expect(await eventsOf(app, userId)).toEqual(['organization_member.created']);
  const [event] = await db().event.findMany({ where: { resourceId: userId } });
  expect(event?.actor).toEqual({ principal_type: 'system', principal_id: firm.tokenId, username: 'SCIM' });
  const record = await db().activity.findFirstOrThrow({ where: { resourceId: body.id } });
  expect(record).toMatchObject({
    action: 'create',
    resourceType: 'scim_user',
    principalType: 'system',
    principalId: firm.tokenId,
    userId: null,
    statusCode: 201,
    path: `${firm.base}/Users`,
    metadata: expect.objectContaining({ user_id: userId, scim_token_id: firm.tokenId }),
  });
  expect((await firm.scim('GET', `/Users/${body.id}`)).body).toEqual(body);
});

describe('somebody who leaves', () => {
  test.each([
    [
      'is deactivated',
      (id: string) => firm.scim('PATCH', `/Users/${id}`, patch({ op: 'Replace', path: 'active', value: 'False' })),
    ],
    ['is deleted', (id: string) => firm.scim('DELETE', `/Users/${id}`)],
  ])('%s: sessions, tokens and grants in the organization end, and the account stays elsewhere', async (_, leave) => {
    const { id, person } = await working();
    const { orgId } = firm.owner;
    await addToWorkspace(app, firm.owner, person.userId, 'editor');
    const issued = await person.call<{ plaintext_token: string }>('POST', `/v1/orgs/${orgId}/api-tokens`, {
      name: 'script',
      scopes: ['read'],
    });
    expect(issued.status).toBe(201);
    const token = caller(app, { ...person, accessToken: issued.body.plaintext_token });
    // another organization, with a session that works there
    const own = await person.call<{ organization_id?: string; org_id?: string }>('POST', '/v1/orgs', { name: 'Own' });
    expect(own.status, JSON.stringify(own.body)).toBe(201);
    const ownId = (own.body.org_id ?? own.body.organization_id)!;
    const again = await signIn(app, { username: person.username, password: firm.owner.password });
    await db().session.updateMany({ where: { id: sessionOf(again.accessToken) }, data: { orgId: ownId } });
    await db().session.updateMany({ where: { id: sessionOf(person.accessToken) }, data: { orgId } });
    const grant = await grantOf(orgId, person.userId);
    expect((await token.call('GET', `/v1/orgs/${orgId}/workspaces`)).status).toBe(200);

    expect((await leave(id)).status).toBeLessThan(300);

    expect((await person.call('GET', '/v1/auth/me')).status).toBe(401);
    expect((await token.call('GET', `/v1/orgs/${orgId}/workspaces`)).status).toBe(401);
    expect(await rolesOf(app, orgId, person.userId)).toEqual({ organization: null, workspaces: [] });
    expect((await db().oauthGrant.findUniqueOrThrow({ where: { id: grant } })).revokedAt).not.toBeNull();
    expect((await again.call('GET', `/v1/orgs/${ownId}`)).status).toBe(200);
    expect((await again.call('GET', `/v1/orgs/${orgId}/workspaces`)).status).toBe(403);
    expect((await db().user.findUniqueOrThrow({ where: { id: person.userId } })).isActive).toBe(true);
    expect((await eventsOf(app, person.userId)).slice(-2)).toEqual([
      'organization_member.deleted',
      'workspace_member.deleted',
    ]);
  });

  test('comes back with the roles of before, without the tokens of before', async () => {
    const { id, person } = await working();
    const { orgId } = firm.owner;
    await addToWorkspace(app, firm.owner, person.userId, 'editor');
    await firm.owner.call('PATCH', `/v1/orgs/${orgId}/members/${person.userId}`, { role: 'editor' });
    await firm.scim('PATCH', `/Users/${id}`, patch({ op: 'replace', value: { active: false } }));
    const away = await firm.scim('GET', `/Users/${id}`);
    expect([away.status, away.body.active]).toEqual([200, false]);
    const { status, body } = await firm.scim(
      'PATCH',
      `/Users/${id}`,
      patch({ op: 'replace', value: { active: true } }),
    );
    expect([status, body.active]).toEqual([200, true]);
    expect(await rolesOf(app, orgId, person.userId)).toEqual({ organization: 'editor', workspaces: ['editor'] });
    expect((await person.call('GET', '/v1/auth/me')).status).toBe(401);
    expect((await db().scimUser.findUniqueOrThrow({ where: { id } })).savedRoles).toBeNull();
  });

  test('is not made active again once the account has another address', async () => {
    const { id, person } = await working();
    await firm.scim('PATCH', `/Users/${id}`, patch({ op: 'replace', path: 'active', value: false }));
    await db().user.update({ where: { id: person.userId }, data: { email: `x${unique()}@elsewhere.test` } });
    const { status, body } = await firm.scim(
      'PATCH',
      `/Users/${id}`,
      patch({ op: 'replace', path: 'active', value: true }),
    );
    expect([status, body.detail]).toEqual([409, expect.stringContaining('another address')]);
    expect(await rolesOf(app, firm.owner.orgId, person.userId)).toEqual({ organization: null, workspaces: [] });
  });

  test('a member who is removed by hand is not active, and comes back by the directory', async () => {
    const { id, person } = await working();
    const url = `/v1/orgs/${firm.owner.orgId}/members/${person.userId}`;
    expect((await firm.owner.call('DELETE', url)).status).toBe(204);
    const away = await firm.scim('GET', `/Users/${id}`);
    expect(away.body).toMatchObject({ active: false, meta: { version: 'W/"1i"' } });
    expect((await firm.scim('PUT', `/Users/${id}`, { ...away.body, active: 'True' })).body.active).toBe(true);
    expect(await rolesOf(app, firm.owner.orgId, person.userId)).toEqual({ organization: 'member', workspaces: [] });
  });

  test('the last owner of a workspace stays, the maker of the token too, and the answers say why', async () => {
    const { owner, domain } = firm;
    const email = `o${unique()}@${domain}`;
    await db().user.update({ where: { id: owner.userId }, data: { email, emailKey: email, isVerified: true } });
    const { status, body } = await firm.scim('POST', '/Users', entraUser(email));
    expect(status, JSON.stringify(body)).toBe(201);
    expect(await accountOf(app, body.id)).toBe(owner.userId);
    const leave = patch({ op: 'replace', path: 'active', value: 'false' });
    const maker = await firm.scim('PATCH', `/Users/${body.id}`, leave);
    expect([maker.status, maker.body.detail]).toEqual([409, expect.stringContaining('made the token')]);
    const second = await register(app, { name: 'second' });
    const members = `/v1/orgs/${owner.orgId}/members`;
    expect((await owner.call('POST', members, { user_id: second.userId, role: 'admin' })).status).toBe(201);
    const scim = clientOf(app, firm.base, (await newToken(second, owner.orgId)).token);
    const above = await scim('PATCH', `/Users/${body.id}`, leave);
    expect([above.status, above.body.detail]).toEqual([403, expect.stringContaining("'admin'")]);
    expect((await owner.call('PATCH', `${members}/${second.userId}`, { role: 'owner' })).status).toBe(200);
    const last = await scim('DELETE', `/Users/${body.id}`);
    expect([last.status, last.body]).toEqual([
      409,
      {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
        status: '409',
        detail: expect.stringContaining("last owner of 'Default workspace'"),
      },
    ]);
    expect(await rolesOf(app, owner.orgId, owner.userId)).toMatchObject({ organization: 'owner' });
    expect((await owner.call('GET', '/v1/auth/me')).status).toBe(200);
  });
});

const sessionOf = (accessToken: string): string =>
  (JSON.parse(Buffer.from(accessToken.split('.')[1]!, 'base64url').toString()) as { sid: string }).sid;

async function grantOf(orgId: string, userId: string): Promise<string> {
  const application = await db().application.create({
    data: { id: `apl_${unique()}`, orgId, name: 'App', applicationType: 'public' },
  });
  const id = `gnt_${unique()}`;
  await db().oauthGrant.create({ data: { id, orgId, applicationId: application.id, userId, scopes: ['read'] } });
  return id;
}

test('a change of the name reaches the profile of an account that the organization manages', async () => {
  const { id } = await provision(firm);
  const userId = await accountOf(app, id);
  await firm.scim('PATCH', `/Users/${id}`, patch({ op: 'Replace', path: 'displayName', value: 'Bea' }));
  expect((await db().user.findUniqueOrThrow({ where: { id: userId } })).fullName).toBe('Bea');
});
