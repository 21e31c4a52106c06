import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, colleague, eventsOf, type Person, register } from '../../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/**
 * A member of the owner's organization who is an owner of the workspace, and nothing but a member of the organization.
 */
async function coOwner(owner: Person): Promise<Person> {
  const somebody = await colleague(app, owner, 'member');
  const { status } = await owner.call('PATCH', `${owner.home}/members/${somebody.userId}`, { role: 'owner' });
  if (status !== 200) throw new Error(`the role was not changed: ${status}`);
  return somebody;
}

test('of two owners of a workspace who demote each other at once exactly one succeeds', async () => {
  for (let round = 0; round < 5; round++) {
    const founder = await register(app, { name: 'founder' });
    const [ann, bob] = [await coOwner(founder), await coOwner(founder)];
    expect((await founder.call('DELETE', `${founder.home}/members/${founder.userId}`)).status).toBe(204);
    const demote = (who: Person, whom: Person) =>
      who.call('PATCH', `${founder.home}/members/${whom.userId}`, { role: 'member' });
    const statuses = (await Promise.all([demote(ann, bob), demote(bob, ann)])).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.every((status) => [200, 403, 409].includes(status))).toBe(true);
    expect(
      await app.database.prisma.workspaceMember.count({ where: { workspaceId: founder.workspaceId, role: 'owner' } }),
    ).toBe(1);
  }
});

test('the last owner of a workspace neither leaves nor is demoted', async () => {
  const ann = await register(app, { name: 'ann' });
  const lastOwner = {
    status: 409,
    body: { details: { resource_type: 'workspace_member', resource_id: ann.userId, reason: 'last_owner' } },
  };
  expect(await ann.call('DELETE', `${ann.home}/members/${ann.userId}`)).toMatchObject(lastOwner);
  expect(await ann.call('PATCH', `${ann.home}/members/${ann.userId}`, { role: 'viewer' })).toMatchObject(lastOwner);
});

test('somebody from outside who is added to a workspace becomes a member of the organization', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  expect((await ann.call('POST', `${ann.home}/members`, { user_id: bob.userId, role: 'editor' })).body).toMatchObject({
    user_id: bob.userId,
    role: 'editor',
    added_by: ann.userId,
  });
  expect((await bob.call('GET', `/v1/orgs/${ann.orgId}`)).body).toMatchObject({ role: 'member' });
  expect(await eventsOf(app, bob.userId, ann.orgId)).toEqual([
    'organization_member.created',
    'workspace_member.created',
  ]);
  expect((await ann.call('POST', `${ann.home}/members`, { user_id: bob.userId })).status).toBe(409);
});

test('many role changes at once get through a small pool, although caches run cold under them', async () => {
  const founder = await register(app, { name: 'founder' });
  const owners = [founder, ...(await Promise.all(Array.from({ length: 5 }, () => coOwner(founder))))];
  const leavers = await Promise.all(Array.from({ length: 6 }, () => register(app, { name: 'leaver' })));
  const env = { DATABASE_POOL_SIZE: '4', DATA_DIR: app.dataDir };
  const node = await startTestApp({ env, databaseUrl: app.database.url });
  try {
    const [here, gone] = [owners, leavers].map((people) => people.map((somebody) => caller(node, somebody)));
    // each change drops what was known of one who is changing another at that moment
    const changes = Array.from({ length: 30 }, async (_, i) => {
      const [who, whom] = [here![i % owners.length]!, here![(i + 1) % owners.length]!];
      return who.call('PATCH', `${founder.home}/members/${whom.userId}`, { role: 'owner' });
    });
    const deletions = gone!.map(async (somebody) => somebody.call('DELETE', `/v1/orgs/${somebody.orgId}`));
    const [changed, deleted] = await Promise.all([Promise.all(changes), Promise.all(deletions)]);
    expect(changed.map(({ status }) => status)).toEqual(changed.map(() => 200));
    expect(deleted.map(({ status }) => status)).toEqual(deleted.map(() => 204));
  } finally {
    await node.close();
  }
});

test('a member removed from workspace and organization at once is gone, and neither answer is a fault', async () => {
  const owner = await register(app, { name: 'owner' });
  const people = await Promise.all(Array.from({ length: 24 }, () => colleague(app, owner, 'member')));
  const pairs = await Promise.all(
    people.map(({ userId }) =>
      Promise.all([
        owner.call('DELETE', `/v1/orgs/${owner.orgId}/members/${userId}`),
        owner.call('DELETE', `${owner.home}/members/${userId}`),
      ]),
    ),
  );
  for (const [fromOrganization, fromWorkspace] of pairs) {
    expect(fromOrganization.status).toBe(204);
    expect([204, 404]).toContain(fromWorkspace.status);
  }
  const userId = { in: people.map((somebody) => somebody.userId) };
  expect(await app.database.prisma.workspaceMember.count({ where: { userId, orgId: owner.orgId } })).toBe(0);
});

test('events of members say the role that they have now, and no event of a removal does', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  await ann.call('POST', `${ann.home}/members`, { user_id: bob.userId, role: 'editor' });
  await ann.call('PATCH', `${ann.home}/members/${bob.userId}`, { role: 'viewer' });
  await ann.call('DELETE', `${ann.home}/members/${bob.userId}`);
  const { rows } = await app.database.pool.query(
    `select type, data from events where resource_id = $1 and org_id = $2 order by xid, seq`,
    [bob.userId, ann.orgId],
  );
  expect(rows).toEqual([
    { type: 'organization_member.created', data: { role: 'member' } },
    { type: 'workspace_member.created', data: { role: 'editor' } },
    { type: 'workspace_member.updated', data: { role: 'viewer' } },
    { type: 'workspace_member.deleted', data: {} },
  ]);
});
