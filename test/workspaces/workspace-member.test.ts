import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { colleague, eventsOf, type Person, person } from '../support/person.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** A member of the owner's organization who is an owner of the workspace, and nothing but a member of the organization. */
async function coOwner(owner: Person): Promise<Person> {
  const somebody = await colleague(app, owner, 'member');
  const { status } = await owner.call('PATCH', `${owner.home}/members/${somebody.userId}`, { role: 'owner' });
  if (status !== 200) throw new Error(`the role was not changed: ${status}`);
  return somebody;
}

test('of two owners of a workspace who demote each other at once exactly one succeeds', async () => {
  for (let round = 0; round < 5; round++) {
    const founder = await person(app, 'founder');
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
  const ann = await person(app, 'ann');
  const lastOwner = {
    status: 409,
    body: { details: { resource_type: 'workspace_member', resource_id: ann.userId, reason: 'last_owner' } },
  };
  expect(await ann.call('DELETE', `${ann.home}/members/${ann.userId}`)).toMatchObject(lastOwner);
  expect(await ann.call('PATCH', `${ann.home}/members/${ann.userId}`, { role: 'viewer' })).toMatchObject(lastOwner);
});

test('somebody from outside who is added to a workspace becomes a member of the organization', async () => {
  const [ann, bob] = [await person(app, 'ann'), await person(app, 'bob')];
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
