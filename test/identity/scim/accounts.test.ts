import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { createUser, type Person, prove, register } from '../../support/person.ts';
import { accountOf, type Company, company, entraUser, rolesOf, unique } from './directories.ts';

/*
 * What a directory may do with an account that is there already: docs/decisions/0068. Each test begins with what
 * somebody would try.
 */

let app: TestApp;
let operator: Person;
beforeAll(async () => {
  app = await startTestApp();
  operator = await register(app, { name: 'operator' }); // the first account administers the platform
});
afterAll(() => app.close());

const db = () => app.database.prisma;
const at = (domain: string) => `u${unique()}@${domain}`;
const userOf = (id: string) => db().user.findUniqueOrThrow({ where: { id } });

/** An account with an address, of nobody's organization. */
async function stranger(email: string, { isProven = true } = {}): Promise<Person> {
  const person = await register(app, { name: 'stranger', email });
  if (isProven) await prove(app, [person]);
  return person;
}

const join = async ({ owner }: Company, person: Person, { hasCome = true } = {}) => {
  const added = await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: person.userId, role: 'viewer' });
  expect(added.status).toBe(201);
  if (hasCome) expect((await person.call('GET', `/v1/orgs/${owner.orgId}/workspaces`)).status).toBe(200);
};

/** Waits until the first use of a membership is written. */
const hasCome = async ({ owner }: Company, person: Person) => {
  await app.database.pool.query('update organization_members set used_at = now() where org_id = $1 and user_id = $2', [
    owner.orgId,
    person.userId,
  ]);
};

const refusal = async (firm: Company, email: string) => {
  const { status, body } = await firm.scim('POST', '/Users', entraUser(email));
  return [status, body.scimType, String(body.detail).replace(email.split('@')[1]!, '…')];
};

test('outside of its proven domains it learns nothing, and gets nobody', async () => {
  const firm = await company(app);
  const other = await company(app);
  const [known, unproven, added, quiet, fromOther] = [
    await stranger(at('gmail.test')),
    await stranger(at('gmail.test'), { isProven: false }),
    await stranger(at('gmail.test'), { isProven: false }),
    await stranger(at('gmail.test')),
    at(other.domain),
  ];
  // a member who never proved the address, and one whose address the organization does not see
  await join(firm, added!);
  await hasCome(firm, added!);
  await join(firm, quiet!, { hasCome: false });
  const answers = [
    await refusal(firm, at('gmail.test')),
    ...(await Promise.all([known!, unproven!, added!, quiet!].map(({ email }) => refusal(firm, email)))),
    await refusal(firm, fromOther),
    await refusal(firm, operator.email),
  ];
  const one = [400, 'invalidValue', expect.stringContaining("has not proven the domain '…'")];
  expect(answers).toEqual(answers.map(() => one));
  expect(await db().scimUser.count({ where: { orgId: firm.owner.orgId } })).toBe(0);
});

test('who squats an address of its domain loses the address, keeps their own, and is let in nowhere', async () => {
  const firm = await company(app);
  const squatter = await stranger(at(firm.domain), { isProven: false });
  const { status, body } = await firm.scim('POST', '/Users', entraUser(squatter.email));
  expect(status).toBe(201);
  const userId = await accountOf(app, body.id);
  expect(userId).not.toBe(squatter.userId);
  expect((await userOf(userId)).emailKey).toBe(squatter.email.toLowerCase());
  expect((await userOf(squatter.userId)).emailKey).toBeNull();
  expect((await squatter.call('GET', `/v1/orgs/${firm.owner.orgId}/workspaces`)).status).toBe(403);
  const login = { username: squatter.email, password: squatter.password };
  expect((await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload: login })).statusCode).toBe(401);
});

test('a squatter whom an administrator added by id keeps no way in', async () => {
  const firm = await company(app);
  const squatter = await stranger(at(firm.domain), { isProven: false });
  await join(firm, squatter);
  const { status, body } = await firm.scim('POST', '/Users', entraUser(squatter.email));
  expect([status, await accountOf(app, body.id)]).toEqual([201, squatter.userId]);
  expect(await userOf(squatter.userId)).toMatchObject({ passwordHash: null, isVerified: true });
  expect((await squatter.call('GET', '/v1/auth/me')).status).toBe(401);
});

test('an account that has proven its address comes by invitation only', async () => {
  const firm = await company(app);
  const employee = await stranger(at(firm.domain));
  const before = await userOf(employee.userId);
  expect(await refusal(firm, employee.email)).toEqual([409, 'uniqueness', expect.stringContaining('invite')]);
  expect(await userOf(employee.userId)).toEqual(before);
  expect((await rolesOf(app, firm.owner.orgId, employee.userId)).organization).toBeNull();
  await join(firm, employee);
  const { status, body } = await firm.scim('POST', '/Users', entraUser(employee.email.toUpperCase()));
  expect([status, await accountOf(app, body.id)]).toEqual([201, employee.userId]);
  // the account is theirs: the directory only decides about the membership
  expect(await userOf(employee.userId)).toEqual(before);
  expect((await employee.call('GET', '/v1/auth/me')).status).toBe(200);
  expect((await rolesOf(app, firm.owner.orgId, employee.userId)).organization).toBe('viewer');
  await firm.scim('DELETE', `/Users/${body.id}`);
  expect((await employee.call('GET', '/v1/auth/me')).status).toBe(200);
  expect((await rolesOf(app, employee.orgId, employee.userId)).organization).toBe('owner');
});

test('a member of another domain whose address is proven and seen is managed as a member', async () => {
  const firm = await company(app);
  const contractor = await stranger(at('gmail.test'));
  await join(firm, contractor);
  await hasCome(firm, contractor);
  const { status, body } = await firm.scim('POST', '/Users', entraUser(contractor.email));
  expect([status, await accountOf(app, body.id)]).toEqual([201, contractor.userId]);
  expect((await userOf(contractor.userId)).fullName).not.toBe('Ann Example');
  expect((await contractor.call('GET', '/v1/auth/me')).status).toBe(200);
});

test('an account that the organization made is its own, in any domain', async () => {
  const firm = await company(app);
  const made = await createUser(app, firm.owner, { name: 'made', email: at('gmail.test') });
  const { status, body } = await firm.scim('POST', '/Users', entraUser(made.email));
  expect([status, await accountOf(app, body.id)]).toEqual([201, made.userId]);
  expect(await refusal(firm, made.email)).toEqual([409, 'uniqueness', expect.any(String)]);
});

test('nobody who administers the platform, and no account that is suspended, is in a directory', async () => {
  const firm = await company(app);
  const admin = await stranger(at(firm.domain));
  await join(firm, admin);
  await db().user.update({ where: { id: admin.userId }, data: { isPlatformAdmin: true } });
  const suspended = await stranger(at(firm.domain));
  await join(firm, suspended);
  await db().user.update({ where: { id: suspended.userId }, data: { isActive: false } });
  for (const { email } of [admin, suspended])
    expect(await refusal(firm, email)).toEqual([409, 'uniqueness', expect.stringContaining('may not manage')]);
});

test('a proof that is taken back ends what the directory may make, and no membership', async () => {
  const firm = await company(app);
  const { body } = await firm.scim('POST', '/Users', entraUser(at(firm.domain)));
  await app.database.pool.query(
    `update identity_provider_domains set state = 'claimed', proven_at = null where domain = $1`,
    [firm.domain],
  );
  expect((await refusal(firm, at(firm.domain)))[0]).toBe(400);
  expect((await firm.scim('GET', `/Users/${body.id}`)).body.active).toBe(true);
});

test('somebody who is made inactive at first has no account until they are active', async () => {
  const firm = await company(app);
  const email = at(firm.domain);
  const { status, body } = await firm.scim('POST', '/Users', entraUser(email, { active: 'False' }));
  expect([status, body.active]).toEqual([201, false]);
  expect(await db().user.count({ where: { email } })).toBe(0);
  const active = await firm.scim('PUT', `/Users/${body.id}`, entraUser(email));
  expect([active.status, active.body.active, active.body.id]).toEqual([200, true, body.id]);
  const userId = await accountOf(app, body.id);
  expect((await rolesOf(app, firm.owner.orgId, userId)).organization).toBe('member');
});

test('what is personal goes with an account that is purged', async () => {
  const firm = await company(app);
  const { body } = await firm.scim('POST', '/Users', entraUser(at(firm.domain)));
  const userId = await accountOf(app, body.id);
  await db().user.update({ where: { id: userId }, data: { isActive: false, deactivatedAt: new Date() } });
  expect((await firm.scim('GET', `/Users/${body.id}`)).body.active).toBe(false);
  await db().user.update({ where: { id: userId }, data: { purgedAt: new Date() } });
  for (const text of app.services.scimUsers.retention) await app.services.sql.write(text, []);
  expect((await firm.scim('GET', `/Users/${body.id}`)).status).toBe(404);
});
