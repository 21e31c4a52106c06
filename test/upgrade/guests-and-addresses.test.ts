import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { addToWorkspace, createUser, type Person, register, registerProven } from '../support/person.ts';

/*
 * What the migration does to rows of before (docs/decisions/0027, 0028). The rows are made through the front door and
 * put as they were; then the statements of the migration run over them.
 */

const MIGRATION = 'prisma/migrations/20261124042400_guests_and_addresses_of_before/migration.sql';
const updates = readFileSync(MIGRATION, 'utf8')
  .split(/;\s*(?:\n|$)/)
  .map((statement) => statement.replaceAll(/^--.*\n/gm, '').trim())
  .filter((statement) => statement.startsWith('UPDATE'));

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());
beforeEach(async () => {
  owner = await registerProven(app, { name: 'owner' });
});

const migrate = async () => {
  expect(updates).toHaveLength(3);
  await app.services.activity.flush();
  for (const text of updates) await app.database.pool.query(text);
};
const roleOf = async (userId: string): Promise<string> => {
  const row = { orgId: owner.orgId, userId };
  return (await app.database.prisma.organizationMember.findUniqueOrThrow({ where: { orgId_userId: row } })).role;
};
/** Somebody who was added to a workspace as a viewer, as it was: the role in the organization was `member`. */
async function addedAsViewer(): Promise<Person> {
  const somebody = await register(app, { name: 'viewer' });
  await addToWorkspace(app, owner, somebody.userId, 'viewer');
  await app.database.pool.query(
    `update organization_members set role = 'member', updated_at = created_at where org_id = $1 and user_id = $2`,
    [owner.orgId, somebody.userId],
  );
  return somebody;
}
const membersOf = (url: string, { userId }: Person) => `${url}/members/${userId}`;
const organization = () => `/v1/orgs/${owner.orgId}`;
const patch = async (url: string, role: string) => {
  const { status, body } = await owner.call('PATCH', url, { role });
  expect(status, JSON.stringify(body)).toBe(200);
};

test('who was added to a workspace as a viewer is a guest', async () => {
  const viewer = await addedAsViewer();
  const version = async () =>
    (
      await app.database.prisma.organizationMember.findFirstOrThrow({
        where: { userId: viewer.userId, role: { not: 'owner' } },
      })
    ).resourceVersion;
  const before = await version();
  await migrate();
  expect(await roleOf(viewer.userId)).toBe('viewer');
  expect(await version()).toBe(before + 1);
});

test.each<[string, (viewer: Person) => Promise<unknown>]>([
  [
    'was given the role on purpose',
    async (viewer) => {
      await patch(membersOf(organization(), viewer), 'editor');
      await patch(membersOf(organization(), viewer), 'member');
    },
  ],
  ['has another role in the workspace now', (viewer) => patch(membersOf(owner.home, viewer), 'member')],
  [
    'has another role in another workspace',
    async (viewer) => {
      const made = await owner.call<{ workspace_id: string }>('POST', `${organization()}/workspaces`, {
        organization_id: owner.orgId,
        name: 'Second',
      });
      const url = `${organization()}/workspaces/${made.body.workspace_id}/members`;
      expect((await owner.call('POST', url, { user_id: viewer.userId, role: 'editor' })).status).toBe(201);
    },
  ],
  [
    'has asked for secrets of the organization',
    async (viewer) => expect((await viewer.call('GET', `${organization()}/secrets`)).status).toBe(200),
  ],
])('who %s stays a member', async (_title, given) => {
  const viewer = await addedAsViewer();
  await given(viewer);
  await migrate();
  expect(await roleOf(viewer.userId)).toBe('member');
});

test('whose account the organization manages stays a member', async () => {
  const managed = await createUser(app, owner);
  await addToWorkspace(app, owner, managed.userId, 'viewer');
  await migrate();
  expect(await roleOf(managed.userId)).toBe('member');
});

test('an account of a provider that proved nothing does not hold its address any more; others do', async () => {
  const users = {
    linked: await createUser(app, owner),
    proven: await createUser(app, owner),
    plain: await createUser(app, owner),
  };
  const { body } = await owner.call<{ idp_id: string }>('POST', `${organization()}/identity-providers`, {
    name: 'Company',
    protocol: 'saml',
  });
  for (const { userId } of [users.linked, users.proven])
    await app.database.pool.query(
      `insert into identity_links (id, org_id, identity_provider_id, subject, user_id, reason)
       values ('idl_' || $1, $2, $3, $1, $1, 'administrator')`,
      [userId, owner.orgId, body.idp_id],
    );
  await app.database.pool.query('update users set is_verified = true where id = $1', [users.proven.userId]);
  await migrate();
  const holds = async ({ userId }: Person) =>
    (await app.database.prisma.user.findUniqueOrThrow({ where: { id: userId } })).emailKey !== null;
  expect([await holds(users.linked), await holds(users.proven), await holds(users.plain)]).toEqual([false, true, true]);
});
