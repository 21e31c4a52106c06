import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Access } from '../../src/access/access.ts';
import { newId } from '../../src/kernel/ids.ts';
import type { Role } from '../../src/kernel/roles.ts';
import { actorOf, addOrganizationOfAll, checked, forbidden, missing, tokenOf } from '../support/actors.ts';
import {
  addOrganization,
  addUser,
  addWorkspace,
  type BareDatabase,
  openBareDatabase,
} from '../support/bare-database.ts';
import { stopAges } from '../support/passing-time.ts';

const lenient = { requireVerifiedEmail: false, allowMemberWorkspaces: false };
let database: BareDatabase;
let access: Access;
beforeAll(async () => {
  database = await openBareDatabase();
});
beforeEach(() => {
  // what was found is kept for less than a second, and a machine may take longer between two questions
  stopAges();
  access = new Access(database.sql, lenient);
});
afterAll(() => database.close());

/** A user who was made a member of an organization, and has never come. */
async function addNewcomer(role: Role, given?: string) {
  const { id: userId } = await addUser(database);
  const orgId = given ?? (await addOrganization(database));
  await database.add('organization_members', { id: newId('organization_member'), orgId, userId, role });
  return { userId, orgId };
}

/** When a member first used an organization, in milliseconds; `null` for never. */
async function firstUse(orgId: string, userId: string): Promise<number | null> {
  const { rows } = await database.pool.query<{ used_at: Date | null }>(
    'select used_at from organization_members where org_id = $1 and user_id = $2',
    [orgId, userId],
  );
  return rows[0]!.used_at?.getTime() ?? null;
}

describe('a member who comes for the first time', () => {
  it('is remembered, in the organization and in any of its workspaces', async () => {
    const { userId, orgId } = await addNewcomer('admin');
    const { userId: other } = await addNewcomer('admin', orgId);
    const workspaceId = await addWorkspace(database, orgId);
    expect(await checked(() => access.requireOrganization(actorOf(userId), orgId, 'model:create'))).toMatchObject({
      grant: 'all',
    });
    expect([await firstUse(orgId, userId), await firstUse(orgId, other)]).toEqual([expect.any(Number), null]);
    expect(
      await checked(() => access.requireWorkspace(actorOf(other), orgId, workspaceId, 'thread:update')),
    ).toMatchObject({ grant: 'all' });
    expect(await firstUse(orgId, other)).not.toBeNull();
  });

  it('is remembered for this organization alone', async () => {
    const { userId, orgId } = await addNewcomer('viewer');
    const { orgId: other } = await addNewcomer('viewer');
    await database.add('organization_members', {
      id: newId('organization_member'),
      orgId: other,
      userId,
      role: 'viewer',
    });
    await access.requireOrganization(actorOf(userId), orgId, 'organization:access');
    expect(await firstUse(other, userId)).toBeNull();
  });

  it('is remembered by a program of theirs too', async () => {
    const { userId, orgId } = await addNewcomer('admin');
    expect(await access.requireOrganization(tokenOf(userId, orgId), orgId, 'model:create')).toMatchObject({
      grant: 'all',
    });
    expect(await firstUse(orgId, userId)).not.toBeNull();
  });

  it('is not remembered for what is refused', async () => {
    const { userId, orgId } = await addNewcomer('viewer');
    const workspaceId = await addWorkspace(database, orgId, { [userId]: 'viewer' });
    const caller = actorOf(userId);
    await expect(checked(() => access.requireOrganization(caller, orgId, 'model:create'))).rejects.toEqual(
      forbidden('model:create'),
    );
    await expect(checked(() => access.requireWorkspace(caller, orgId, workspaceId, 'thread:update'))).rejects.toEqual(
      forbidden('thread:update'),
    );
    expect(await firstUse(orgId, userId)).toBeNull();
  });

  it('is not remembered for a role that is looked at, or an event', async () => {
    const { userId, orgId } = await addNewcomer('viewer');
    await access.organizationRole(actorOf(userId), orgId);
    await access.permits(actorOf(userId), 'model:read', { orgId });
    expect(await firstUse(orgId, userId)).toBeNull();
  });

  it('is not new again: the time is that of the first use, and the next check writes nothing', async () => {
    const { userId, orgId } = await addNewcomer('admin');
    const workspaceId = await addWorkspace(database, orgId);
    const caller = actorOf(userId);
    await access.requireOrganization(caller, orgId, 'model:create');
    const first = await firstUse(orgId, userId);
    await access.organizationRole(caller, orgId);
    // answered from what is known, at once
    expect(access.requireOrganization(caller, orgId, 'model:create')).toMatchObject({ grant: 'all' });
    await access.requireWorkspace(caller, orgId, workspaceId, 'thread:update');
    expect(access.requireWorkspace(caller, orgId, workspaceId, 'thread:update')).toMatchObject({ grant: 'all' });
    expect(await firstUse(orgId, userId)).toBe(first);
  });

  it('is not written over by another node that still takes them for new', async () => {
    const { userId, orgId } = await addNewcomer('admin');
    const nodes = [access, new Access(database.sql, lenient)];
    await Promise.all(nodes.map((node) => node.organizationRole(actorOf(userId), orgId)));
    await database.pool.query(`update organization_members set used_at = to_timestamp(1) where user_id = $1`, [userId]);
    await nodes[1]!.requireOrganization(actorOf(userId), orgId, 'model:create');
    expect(await firstUse(orgId, userId)).toBe(1_000);
  });
});

describe('the addresses of other members', () => {
  it('are seen by everybody but guests and strangers', async () => {
    const { orgId, viewer, member, editor, admin, owner, stranger } = await addOrganizationOfAll(database);
    const see = async (userId: string) => access.seesAddresses(actorOf(userId), orgId);
    const people = [viewer, member, editor, admin, owner, stranger];
    const expected = [false, true, true, true, true, false];
    expect(await Promise.all(people.map(see))).toEqual(expected);
    // the same from what is known, at once
    expect(people.map((userId) => access.seesAddresses(actorOf(userId), orgId))).toEqual(expected);
  });

  it('are seen by a token of this organization, and by none of another', async () => {
    const { orgId, owner } = await addOrganizationOfAll(database);
    expect(await access.seesAddresses(tokenOf(owner, orgId), orgId)).toBe(true);
    expect(await access.seesAddresses(tokenOf(owner, 'org_2'), orgId)).toBe(false);
  });
});

describe('a token for some places', () => {
  it('must name one of them for a change, and none outside for a read', async () => {
    const { orgId, admin } = await addOrganizationOfAll(database);
    const workspaceId = await addWorkspace(database, orgId);
    const token = tokenOf(admin, orgId, { environmentIds: ['env_1'] });
    const ask = (permission: 'secret:update' | 'secret:read', place?: { environmentId: string }) =>
      Promise.all([
        access.requireWorkspace(token, orgId, workspaceId, permission, place),
        access.requireOrganization(token, orgId, permission, { workspaceId, ...place }),
      ]);
    expect(await ask('secret:update', { environmentId: 'env_1' })).toMatchObject([{ grant: 'all' }, { grant: 'all' }]);
    expect(await ask('secret:read')).toMatchObject([{ grant: 'all' }, { grant: 'all' }]);
    await expect(ask('secret:update')).rejects.toEqual(forbidden('secret:update'));
    await expect(ask('secret:read', { environmentId: 'env_2' })).rejects.toEqual(forbidden('secret:read'));
  });

  it('is refused outside of its workspaces, whether or not there is such a workspace', async () => {
    const { orgId, admin } = await addOrganizationOfAll(database);
    const [own, other] = [await addWorkspace(database, orgId), await addWorkspace(database, orgId)];
    const unknown = newId('workspace');
    const token = tokenOf(admin, orgId, { workspaceIds: [own] });
    const ask = (workspaceId: string, by = token) => access.requireWorkspace(by, orgId, workspaceId, 'thread:read');
    expect(await ask(own)).toMatchObject({ grant: 'all' });
    await expect(ask(other)).rejects.toEqual(forbidden('thread:read'));
    await expect(ask(unknown)).rejects.toEqual(forbidden('thread:read'));
    await expect(ask(unknown, tokenOf(admin, orgId))).rejects.toEqual(missing('workspace', unknown));
    const inOrganization = (workspaceId?: string) =>
      access.requireOrganization(token, orgId, 'environment:read', { workspaceId });
    expect(await inOrganization()).toMatchObject({ grant: 'all' });
    expect(await inOrganization(own)).toMatchObject({ grant: 'all' });
    await expect(inOrganization(other)).rejects.toEqual(forbidden('environment:read'));
  });

  it('has no workspaces at all if what it names is gone', async () => {
    const { orgId, admin } = await addOrganizationOfAll(database);
    const workspaceId = await addWorkspace(database, orgId);
    const token = tokenOf(admin, orgId, { namespaceIds: ['ns_1'], impliedWorkspaceIds: [] });
    expect(await access.workspaceRole(token, orgId, workspaceId)).toBeNull();
    expect(await access.permits(token, 'thread:read', { orgId, workspaceId })).toBe(false);
  });
});
