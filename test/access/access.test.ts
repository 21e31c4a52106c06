import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Access } from '../../src/access/access.ts';
import { expand } from '../../src/access/scopes.ts';
import { newId } from '../../src/kernel/ids.ts';
import { type Role, roles } from '../../src/kernel/roles.ts';
import { actorOf, addOrganizationOfAll, checked, forbidden, missing, tokenOf } from '../support/actors.ts';
import { addOrganization, addWorkspace, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';
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

const forget = (table: 'organizations' | 'workspaces', id: string) =>
  database.pool.query(`update ${table} set deleted_at = now() where id = $1`, [id]);
const organizationOfAll = () => addOrganizationOfAll(database);

describe('in an organization', () => {
  it('everybody has a role or none', async () => {
    const { orgId, stranger, ...people } = await organizationOfAll();
    for (const role of roles) expect(await access.organizationRole(actorOf(people[role]), orgId)).toBe(role);
    expect(await access.organizationRole(actorOf(stranger), orgId)).toBeNull();
    expect(await access.organizationRole(actorOf(people.owner), newId('organization'))).toBeNull();
    expect(await access.organizationRole(actorOf(people.owner), '\u0000')).toBeNull();
    expect(await access.organizationRole(tokenOf(people.admin, orgId), orgId)).toBe('admin');
    expect(await access.organizationRole(tokenOf(people.admin, 'org_2'), orgId)).toBeNull();
  });

  it('a role decides, for who is a member', async () => {
    const { orgId, viewer, admin, stranger } = await organizationOfAll();
    const ask = (userId: string) => checked(() => access.requireOrganization(actorOf(userId), orgId, 'model:create'));
    expect(await ask(admin)).toMatchObject({ grant: 'all' });
    await expect(ask(viewer)).rejects.toEqual(forbidden('model:create'));
    await expect(ask(stranger)).rejects.toEqual(forbidden('organization:access'));
    // the same from the cache, and at once
    expect(access.requireOrganization(actorOf(admin), orgId, 'model:create')).toMatchObject({ grant: 'all' });
    expect(() => access.requireOrganization(actorOf(viewer), orgId, 'model:create')).toThrow(forbidden('model:create'));
    expect(await checked(() => access.requireOrganization(actorOf(viewer), orgId, 'activity:read'))).toMatchObject({
      grant: 'own',
    });
  });

  it('what is found is the permission, its extent and the role by which it is granted', async () => {
    const { orgId, ...people } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [people.member]: 'editor', [people.admin]: 'viewer' });
    for (const role of roles)
      expect(await access.requireOrganization(actorOf(people[role]), orgId, 'organization:access')).toEqual({
        permission: 'organization:access',
        grant: 'all',
        role,
      });
    for (const [userId, role] of [
      [people.member, 'editor'],
      [people.admin, 'admin'],
    ] as const)
      expect(await access.requireWorkspace(actorOf(userId), orgId, workspaceId, 'workspace:read')).toEqual({
        permission: 'workspace:read',
        grant: 'all',
        role,
      });
  });

  it('members may make workspaces where the operator lets them', async () => {
    const { orgId, viewer, member } = await organizationOfAll();
    const open = new Access(database.sql, { ...lenient, allowMemberWorkspaces: true });
    const ask = (checks: Access, userId: string) =>
      checked(() => checks.requireOrganization(actorOf(userId), orgId, 'workspace:create'));
    await expect(ask(access, member)).rejects.toEqual(forbidden('workspace:create'));
    expect(await ask(open, member)).toMatchObject({ grant: 'all' });
    await expect(ask(open, viewer)).rejects.toEqual(forbidden('workspace:create'));
    await expect(checked(() => open.requireOrganization(actorOf(member), orgId, 'model:create'))).rejects.toEqual(
      forbidden('model:create'),
    );
  });

  it('nobody has a role after its deletion', async () => {
    const { orgId, owner } = await organizationOfAll();
    await forget('organizations', orgId);
    await expect(
      checked(() => access.requireOrganization(actorOf(owner), orgId, 'organization:access')),
    ).rejects.toEqual(forbidden('organization:access'));
  });

  it('an address must be proven where the operator asks for it', async () => {
    const { orgId, owner } = await organizationOfAll();
    const strict = new Access(database.sql, { ...lenient, requireVerifiedEmail: true });
    const unproven = actorOf(owner, false);
    await expect(
      checked(() => strict.requireOrganization(unproven, orgId, 'organization:access')),
    ).rejects.toMatchObject({
      message: 'Confirm your e-mail address first.',
      details: { required_permission: 'account:verified' },
    });
    expect(strict.permits(unproven, 'organization:access', { orgId })).toBe(false);
    expect(await strict.organizationRole(actorOf(owner), orgId)).toBe('owner');
    expect(await access.organizationRole(unproven, orgId)).toBe('owner');
  });

  it('many are read at once, each with their own role', async () => {
    const { orgId, stranger, ...people } = await organizationOfAll();
    const found = await Promise.all(
      [...roles, 'none'].map((role) =>
        access.organizationRole(actorOf(role === 'none' ? stranger : people[role as Role]), orgId),
      ),
    );
    expect(found).toEqual([...roles, null]);
  });
});

describe('in a workspace', () => {
  it('administrators of the organization have their role, and members their own', async () => {
    const { orgId, viewer, admin, owner, member, stranger } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'editor', [admin]: 'viewer' });
    const role = (userId: string) => access.workspaceRole(actorOf(userId), orgId, workspaceId);
    expect(await Promise.all([viewer, admin, owner, member, stranger].map(role))).toEqual([
      'editor',
      'admin',
      'owner',
      null,
      null,
    ]);
    expect(await access.workspaceRole(actorOf(owner), orgId, newId('workspace'))).toBeNull();
    expect(await access.workspaceRole(actorOf(owner), orgId, '\u0000')).toBeNull();
    const restricted = tokenOf(owner, orgId, { workspaceIds: ['ws_1'] });
    expect(await access.workspaceRole(restricted, orgId, workspaceId)).toBeNull();
    expect(await access.workspaceRole(tokenOf(owner, orgId, { workspaceIds: [workspaceId] }), orgId, workspaceId)).toBe(
      'owner',
    );
    expect(await access.workspaceRole(tokenOf(owner, 'org_2'), orgId, workspaceId)).toBeNull();
  });

  it('who cannot see it is refused alike whether it exists or not', async () => {
    const { orgId, viewer, admin, stranger, member } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'viewer', [member]: 'member' });
    const ask = (userId: string, id = workspaceId, orgIdOf = orgId) =>
      checked(() => access.requireWorkspace(actorOf(userId), orgIdOf, id, 'thread:update'));
    const unknown = newId('workspace');
    await expect(ask(stranger)).rejects.toEqual(forbidden('organization:access'));
    await expect(ask(stranger, unknown)).rejects.toEqual(forbidden('organization:access'));
    await expect(ask(member, unknown)).rejects.toEqual(forbidden('thread:update'));
    await expect(ask(admin, unknown)).rejects.toEqual(missing('workspace', unknown));
    await expect(ask(viewer)).rejects.toEqual(forbidden('thread:update'));
    expect(await ask(member)).toMatchObject({ grant: 'own' });
    expect(await ask(admin)).toMatchObject({ grant: 'all' });
    // the same from the cache, and at once
    expect(access.requireWorkspace(actorOf(admin), orgId, workspaceId, 'thread:update')).toMatchObject({
      grant: 'all',
    });
    const other = await addOrganization(database, { [admin]: 'owner' });
    await expect(ask(admin, workspaceId, other)).rejects.toEqual(missing('workspace', workspaceId));
  });

  it('that was deleted is missing for who could see it', async () => {
    const { orgId, viewer, admin, member } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'viewer' });
    await forget('workspaces', workspaceId);
    const ask = (userId: string) =>
      checked(() => access.requireWorkspace(actorOf(userId), orgId, workspaceId, 'thread:read'));
    await expect(ask(viewer)).rejects.toEqual(missing('workspace', workspaceId));
    await expect(ask(admin)).rejects.toEqual(missing('workspace', workspaceId));
    await expect(ask(member)).rejects.toEqual(forbidden('thread:read'));
    expect(await access.workspaceRole(actorOf(admin), orgId, workspaceId)).toBeNull();
    expect(await access.permits(actorOf(viewer), 'thread:read', { orgId, workspaceId })).toBe(true);
  });

  it('an administrator of the organization has what only the organization grants', async () => {
    const { orgId, admin, member } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [member]: 'owner' });
    const ask = (userId: string) =>
      checked(() => access.requireWorkspace(actorOf(userId), orgId, workspaceId, 'model_entitlement:create'));
    expect(await ask(admin)).toMatchObject({ grant: 'all' });
    await expect(ask(member)).rejects.toEqual(forbidden('model_entitlement:create'));
    expect(
      await checked(() => access.requireWorkspace(actorOf(member), orgId, workspaceId, 'workspace:delete')),
    ).toMatchObject({ grant: 'all' });
  });
});

describe('an event', () => {
  it('reaches who may read all that a place has of its kind', async () => {
    const { orgId, viewer, member, admin, stranger } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'viewer', [member]: 'member' });
    const where = { orgId, workspaceId };
    expect(await access.permits(actorOf(member), 'secret:read', where)).toBe(true);
    expect(access.permits(actorOf(member), 'secret:read', where)).toBe(true);
    expect(await access.permits(actorOf(viewer), 'secret:read', where)).toBe(false);
    expect(await access.permits(actorOf(member), 'thread:update', where)).toBe(false);
    expect(await access.permits(actorOf(stranger), 'thread:read', where)).toBe(false);
    expect(await access.permits(actorOf(admin), 'model:read', { orgId })).toBe(true);
    expect(await access.permits(actorOf(viewer), 'activity:read', { orgId })).toBe(false);
    expect(await access.permits(actorOf(viewer), 'thread:read', { orgId, workspaceId: newId('workspace') })).toBe(
      false,
    );
    expect(await access.maySee(actorOf(member), 'secret', where)).toBe(true);
    expect(await access.maySee(actorOf(viewer), 'deployment', where)).toBe(true);
    expect(await access.maySee(actorOf(admin), 'session', where)).toBe(false);
  });

  it('reaches a token within its restrictions', async () => {
    const { orgId, admin } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId);
    const where = { orgId, workspaceId };
    expect(await access.permits(tokenOf(admin, orgId), 'thread:read', where)).toBe(true);
    expect(await access.permits(tokenOf(admin, orgId, { workspaceIds: ['ws_1'] }), 'thread:read', where)).toBe(false);
    expect(await access.permits(tokenOf(admin, 'org_2'), 'thread:read', where)).toBe(false);
    expect(access.permits(tokenOf(admin, orgId), 'api_token:create', { orgId })).toBe(false);
  });
});

describe('a token', () => {
  it('has the rights of its user within its own', async () => {
    const { orgId, viewer, admin } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'viewer' });
    const token = tokenOf(admin, orgId, { permissions: expand([], ['thread:read', 'model:read']) });
    expect(await access.requireWorkspace(token, orgId, workspaceId, 'thread:read')).toMatchObject({ grant: 'all' });
    expect(await access.requireOrganization(token, orgId, 'model:read')).toMatchObject({ grant: 'all' });
    await expect(access.requireWorkspace(token, orgId, workspaceId, 'thread:update')).rejects.toEqual(
      forbidden('thread:update'),
    );
    await expect(access.requireOrganization(token, orgId, 'model:create')).rejects.toEqual(forbidden('model:create'));
    const weak = tokenOf(viewer, orgId);
    await expect(access.requireWorkspace(weak, orgId, workspaceId, 'thread:create')).rejects.toEqual(
      forbidden('thread:create'),
    );
    await expect(access.requireOrganization(weak, orgId, 'model:create')).rejects.toEqual(forbidden('model:create'));
  });

  it('enters no other organization, even one of its user', async () => {
    const { orgId, admin } = await organizationOfAll();
    const other = await addOrganization(database, { [admin]: 'owner' });
    await expect(access.requireOrganization(tokenOf(admin, orgId), other, 'model:read')).rejects.toEqual(
      forbidden('organization:access'),
    );
    await access.requireToken(actorOf(admin), 'model:read', { orgId: other });
  });

  it('for a namespace finds it by its id and by `default`', async () => {
    const { orgId, admin } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId);
    const id = newId('namespace');
    await database.add('namespaces', { id, orgId, workspaceId, name: 'n', slug: 'default' });
    const ask = (namespaceIds: string[], namespaceId: string, workspace = workspaceId) =>
      access.requireToken(tokenOf(admin, orgId, { namespaceIds }), 'thread:create', {
        orgId,
        workspaceId: workspace,
        namespaceId,
      });
    await ask([id], id);
    await ask([id], 'default');
    await ask([], 'default');
    await expect(
      access.requireToken(tokenOf(admin, orgId, { namespaceIds: [id] }), 'thread:read', {
        orgId,
        workspaceId: newId('workspace'),
        namespaceId: 'default',
      }),
    ).rejects.toEqual(forbidden('thread:read'));
    await expect(ask(['ns_1'], 'default')).rejects.toEqual(forbidden('thread:create'));
    await expect(ask(['ns_1'], id)).rejects.toEqual(forbidden('thread:create'));
    await expect(ask([id], 'ns_1')).rejects.toEqual(forbidden('thread:create'));
    await expect(ask([id], 'default', '\u0000')).rejects.toEqual(forbidden('thread:create'));
    await expect(ask([id], 'default', newId('workspace'))).rejects.toEqual(forbidden('thread:create'));
  });
});

describe('what a user may do somewhere', () => {
  it('is by a role in the organization or in any of its workspaces', async () => {
    const { orgId, viewer, member, admin, stranger } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'editor', [member]: 'member' });
    const rights = async (userId: string) => access.rightsSomewhere(actorOf(userId), orgId);
    const asEditor = await rights(viewer);
    expect([asEditor('app:create'), asEditor('environment:create'), asEditor('model_entitlement:create')]).toEqual([
      true,
      false,
      false,
    ]);
    const own = await rights(member);
    expect([own('thread:update'), own('app:create')]).toEqual([true, false]);
    const all = await rights(admin);
    expect([all('environment:create'), all('model_entitlement:create'), all('organization:delete')]).toEqual([
      true,
      true,
      false,
    ]);
    expect((await rights(stranger))('organization:access')).toBe(false);
    await forget('workspaces', workspaceId);
    expect((await rights(viewer))('app:create')).toBe(false);
  });

  it('is nothing for who is in a workspace, and no longer in its organization', async () => {
    const { orgId, stranger } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [stranger]: 'owner' });
    expect((await access.rightsSomewhere(actorOf(stranger), orgId))('app:create')).toBe(false);
    expect(await access.workspaceRole(actorOf(stranger), orgId, workspaceId)).toBeNull();
    expect(await access.permits(actorOf(stranger), 'app:create', { orgId, workspaceId })).toBe(false);
  });

  it('is to make a workspace, for members where the operator lets them', async () => {
    const { orgId, viewer, member } = await organizationOfAll();
    const open = new Access(database.sql, { ...lenient, allowMemberWorkspaces: true });
    const may = async (checks: Access, userId: string) =>
      (await checks.rightsSomewhere(actorOf(userId), orgId))('workspace:create');
    expect(await Promise.all([may(access, member), may(open, member), may(open, viewer)])).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('is what they may do now, whenever it is asked for', async () => {
    const { orgId, viewer } = await organizationOfAll();
    const makes = async () => (await access.rightsSomewhere(actorOf(viewer), orgId))('app:create');
    expect(await makes()).toBe(false);
    await addWorkspace(database, orgId, { [viewer]: 'editor' });
    expect(await makes()).toBe(true);
  });

  it('is read for many at once', async () => {
    const { orgId, viewer, member } = await organizationOfAll();
    await addWorkspace(database, orgId, { [viewer]: 'editor' });
    const [first, second] = await Promise.all(
      [viewer, member].map((userId) => access.rightsSomewhere(actorOf(userId), orgId)),
    );
    expect([first!('app:create'), second!('app:create')]).toEqual([true, false]);
  });
});

describe('a grant of own content', () => {
  it('covers what the user made', () => {
    const caller = actorOf('usr_1');
    access.demandCovers(caller, 'all', 'thread:update', 'usr_2');
    access.demandCovers(caller, 'own', 'thread:update', 'usr_1');
    const ask = (grant: 'own' | 'none', createdBy: string | null) => () =>
      access.demandCovers(caller, grant, 'thread:update', createdBy);
    expect(ask('own', 'usr_2')).toThrow(forbidden('thread:update'));
    expect(ask('own', null)).toThrow(forbidden('thread:update'));
    expect(ask('none', 'usr_1')).toThrow(forbidden('thread:update'));
  });
});
