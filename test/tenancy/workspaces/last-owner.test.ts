import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Role } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { bucketsMade } from '../../support/buckets.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { type Answer, addToWorkspace, colleague, createUser, type Person, register } from '../../support/person.ts';
import { thinned } from '../../support/thinned.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** An account that the founder's organization manages; in its workspace it has `role`. */
async function managed(founder: Person, role: Role): Promise<Person> {
  const somebody = await createUser(app, founder, { name: 'managed' });
  await addToWorkspace(app, founder, somebody.userId, role);
  return somebody;
}

/** The owner of the organization, who owns its workspace no more, and those who do. */
async function withOwners(n: number): Promise<{ founder: Person; owners: Person[] }> {
  const founder = await register(app, { name: 'founder' });
  const owners: Person[] = [];
  for (let i = 0; i < n; i++) owners.push(await managed(founder, 'owner'));
  expect((await founder.call('DELETE', `${founder.home}/members/${founder.userId}`)).status).toBe(204);
  return { founder, owners };
}

const livingOwners = ({ workspaceId }: Person) =>
  app.database.prisma.workspaceMember.count({ where: { workspaceId, role: 'owner', user: { isActive: true } } });

/** Every way in which somebody stops being an owner of a workspace. */
const waysOut: Record<string, (founder: Person, owner: Person) => Promise<Answer>> = {
  'being demoted': (founder, { userId }) =>
    founder.call('PATCH', `${founder.home}/members/${userId}`, { role: 'editor' }),
  'being removed from the workspace': (founder, { userId }) =>
    founder.call('DELETE', `${founder.home}/members/${userId}`),
  'being removed from the organization': (founder, { userId }) =>
    founder.call('DELETE', `/v1/orgs/${founder.orgId}/members/${userId}`),
  'leaving the organization': (founder, owner) =>
    owner.call('DELETE', `/v1/orgs/${founder.orgId}/members/${owner.userId}`),
  'being deleted': (founder, { userId }) => founder.call('DELETE', `/v1/users/${userId}`),
  'deleting oneself': (_founder, owner) => owner.call('DELETE', `/v1/users/${owner.userId}`),
  'being suspended': (founder, { userId }) => founder.call('PUT', `/v1/users/${userId}`, { is_active: false }),
};
const names = Object.keys(waysOut);

describe('the last living owner of a workspace', () => {
  it.each(names)('stays: %s is 409 last_owner', async (name) => {
    const { founder, owners } = await withOwners(1);
    const answer = await waysOut[name]!(founder, owners[0]!);
    expect(answer).toMatchObject({
      status: 409,
      body: { error: 'RESOURCE_CONFLICT', details: { resource_id: owners[0]!.userId, reason: 'last_owner' } },
    });
    expect(await livingOwners(founder)).toBe(1);
    expect((await owners[0]!.call('GET', founder.home)).status).toBe(200);
  });

  it.each(names)('is not saved by owners who were deleted or suspended: %s is 409', async (name) => {
    const { founder, owners } = await withOwners(3);
    const [last, deleted, suspended] = owners;
    expect((await waysOut['being deleted']!(founder, deleted!)).status).toBe(204);
    expect((await waysOut['being suspended']!(founder, suspended!)).status).toBe(200);
    expect((await waysOut[name]!(founder, last!)).status).toBe(409);
  });

  it.each(names)('may go once somebody else is an owner: %s', async (name) => {
    const { founder, owners } = await withOwners(2);
    expect((await waysOut[name]!(founder, owners[0]!)).status).toBeLessThan(300);
    expect(await livingOwners(founder)).toBe(1);
  });

  it('is told all the workspaces that would be without an owner, but none that is deleted or has another', async () => {
    const founder = await register(app, { name: 'founder' });
    const somebody = await managed(founder, 'owner');
    const make = async (name: string) =>
      (
        await founder.call<{ workspace_id: string }>('POST', `/v1/orgs/${founder.orgId}/workspaces`, {
          organization_id: founder.orgId,
          name,
        })
      ).body.workspace_id;
    const ids = [await make('Alone'), await make('Alone too'), await make('Deleted')];
    for (const id of ids) {
      const members = `/v1/orgs/${founder.orgId}/workspaces/${id}/members`;
      await founder.call('POST', members, { user_id: somebody.userId, role: 'owner' });
      expect((await founder.call('DELETE', `${members}/${founder.userId}`)).status).toBe(204);
    }
    expect((await founder.call('DELETE', `/v1/orgs/${founder.orgId}/workspaces/${ids[2]}`)).status).toBe(200);
    const references = ids.slice(0, 2);
    expect((await waysOut['being removed from the organization']!(founder, somebody)).body).toMatchObject({
      message: expect.stringContaining("'Alone', 'Alone too'"),
      details: { resource_type: 'organization_member', resource_id: somebody.userId, references },
    });
    expect((await waysOut['being deleted']!(founder, somebody)).body).toMatchObject({
      details: { resource_type: 'user', resource_id: somebody.userId, references },
    });
  });

  it('may go with an organization that is deleted', async () => {
    const ann = await register(app, { name: 'ann' });
    expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}`)).status).toBe(204);
    expect((await ann.call('DELETE', `/v1/users/${ann.userId}`)).status).toBe(204);
  });
});

/** Runs `work` while the workspace is held, and lets go when `waiting` statements wait for locks. */
async function whileHeld<T>({ workspaceId }: Person, waiting: number, work: () => Promise<T>): Promise<T> {
  // the making of a bucket would wait for its workspace too
  await bucketsMade(app);
  const holder = new pg.Client({ connectionString: app.database.url });
  await holder.connect();
  try {
    await holder.query('begin');
    await holder.query('select 1 from workspaces where id = $1 for update', [workspaceId]);
    const result = work();
    await waitFor(async () => expect(await lockWaits(holder)).toBe(waiting));
    await holder.query('commit');
    return await result;
  } finally {
    await holder.end();
  }
}

describe('of two owners of a workspace who go at once one stays', () => {
  const pairs = names.flatMap((one, index) => names.slice(index).map((other) => [one, other] as const));
  it.each(thinned(pairs, 'ways out'))('%s and %s', async (one, other) => {
    const { founder, owners } = await withOwners(2);
    const answers = await whileHeld(founder, 2, () =>
      Promise.all([waysOut[one]!(founder, owners[0]!), waysOut[other]!(founder, owners[1]!)]),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status < 300)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(1);
    expect(await livingOwners(founder)).toBe(1);
  });
});

describe('who becomes an owner while the account goes', () => {
  it.each(['being deleted', 'being suspended'])('%s: the owner before cannot leave on that account', async (name) => {
    const { founder, owners } = await withOwners(1);
    const heir = await managed(founder, 'editor');
    // the deletion has looked at what the heir owns, and is held before it has ended
    const holder = new pg.Client({ connectionString: app.database.url });
    await holder.connect();
    try {
      await holder.query('begin');
      await holder.query('select 1 from users where id = $1 for key share', [heir.userId]);
      const going = waysOut[name]!(founder, heir);
      await waitFor(async () => expect(await lockWaits(holder)).toBe(1));
      const promotion = founder.call('PATCH', `${founder.home}/members/${heir.userId}`, { role: 'owner' });
      await holder.query('commit');
      const [gone, promoted] = await Promise.all([going, promotion]);
      await waysOut['being demoted']!(founder, owners[0]!);
      expect(gone.status).toBeLessThan(300);
      expect([200, 404]).toContain(promoted.status);
      expect(await livingOwners(founder)).toBe(1);
    } finally {
      await holder.end();
    }
  });
});

describe('the last living owner of an organization', () => {
  it('is not saved by one who was deleted or suspended, on any way out', async () => {
    const ann = await register(app, { name: 'ann' });
    const [deleted, suspended] = [await managed(ann, 'owner'), await managed(ann, 'owner')];
    const url = `/v1/orgs/${ann.orgId}/members`;
    for (const { userId } of [deleted, suspended])
      expect((await ann.call('PATCH', `${url}/${userId}`, { role: 'owner' })).status).toBe(200);
    expect((await waysOut['being deleted']!(ann, deleted)).status).toBe(204);
    expect((await waysOut['being suspended']!(ann, suspended)).status).toBe(200);
    for (const answer of [
      await ann.call('PATCH', `${url}/${ann.userId}`, { role: 'admin' }),
      await ann.call('DELETE', `${url}/${ann.userId}`),
      await ann.call('DELETE', `/v1/users/${ann.userId}`),
    ])
      expect(answer).toMatchObject({ status: 409, body: { details: { reason: 'last_owner' } } });
  });

  it('stays when two go at once on different ways', async () => {
    for (let round = 0; round < 5; round++) {
      const ann = await register(app, { name: 'ann' });
      const bob = await colleague(app, ann, 'owner');
      await bob.call('DELETE', `/v1/orgs/${bob.orgId}`);
      const answers = await Promise.all([
        bob.call('DELETE', `/v1/users/${bob.userId}`),
        ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${ann.userId}`, { role: 'admin' }),
      ]);
      expect(answers.map(({ status }) => status).filter((status) => status < 300)).toHaveLength(1);
      const where = { orgId: ann.orgId, role: 'owner', user: { isActive: true } };
      expect(await app.database.prisma.organizationMember.count({ where })).toBe(1);
    }
  });
});

it('a workspace that is made while its maker is removed is not made: it would be nobody’s', async () => {
  const ann = await register(app, { name: 'ann' });
  const bob = await colleague(app, ann, 'admin');
  const removal = await app.database.pool.connect();
  await removal.query('begin');
  await removal.query('select 1 from organizations where id = $1 for no key update', [ann.orgId]);
  const input = { organization_id: ann.orgId, name: 'Nobody’s' };
  const making = bob.call('POST', `/v1/orgs/${ann.orgId}/workspaces`, input);
  await waitFor(async () => expect(await lockWaits(app.database.pool)).toBe(1));
  await removal.query('delete from organization_members where org_id = $1 and user_id = $2', [ann.orgId, bob.userId]);
  await removal.query('commit');
  removal.release();
  expect(await making).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'organization:access' } },
  });
  expect(await app.database.prisma.workspace.count({ where: { name: 'Nobody’s' } })).toBe(0);
});
