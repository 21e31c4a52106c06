import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Access } from '../../src/access/access.ts';
import { KnownFacts } from '../../src/access/known-facts.ts';
import type { MembershipFacts } from '../../src/access/membership-facts.ts';
import { actorOf, addOrganizationOfAll } from '../support/actors.ts';
import { addOrganization, addWorkspace, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';
import { stopAges } from '../support/passing-time.ts';

let database: BareDatabase;
let access: Access;
let facts: MembershipFacts;
beforeAll(async () => {
  database = await openBareDatabase();
});
beforeEach(() => {
  // what was found is kept for less than a second, and a machine may take longer between two questions
  stopAges();
  access = new Access(database.sql, { requireVerifiedEmail: false, allowMemberWorkspaces: false });
  ({ facts } = access);
});
afterAll(() => database.close());

const forget = (table: 'organizations' | 'workspaces', id: string) =>
  database.pool.query(`update ${table} set deleted_at = now() where id = $1`, [id]);
const organizationOfAll = () => addOrganizationOfAll(database);

describe('a change of a membership on this node', () => {
  it('takes effect at once', async () => {
    const { orgId, viewer, member } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'viewer', [member]: 'viewer' });
    const role = (userId: string) => access.workspaceRole(actorOf(userId), orgId, workspaceId);
    expect([await role(viewer), await role(member)]).toEqual(['viewer', 'viewer']);
    await database.pool.query(`update workspace_members set role = 'editor' where workspace_id = $1`, [workspaceId]);
    facts.workspaceChanged(orgId, workspaceId, viewer);
    expect([await role(viewer), await role(member)]).toEqual(['editor', 'viewer']);
    facts.workspaceChanged(orgId, workspaceId);
    expect(await role(member)).toBe('editor');
    await database.pool.query(`delete from organization_members where org_id = $1`, [orgId]);
    facts.organizationChanged(orgId, viewer);
    expect([await role(viewer), await role(member)]).toEqual([null, 'editor']);
    facts.organizationDeleted(orgId);
    expect(await role(member)).toBeNull();
  });

  it('of factors has nobody but their user ask again, wherever they are a member', async () => {
    const { orgId, viewer, member } = await organizationOfAll();
    const other = await addOrganization(database, { [viewer]: 'viewer', [member]: 'viewer' });
    const demand = async (userId: string, of: string) => (await facts.organization(userId, of)).factor;
    const demands = (userId: string) => Promise.all([orgId, other].map((of) => demand(userId, of)));
    expect([await demands(viewer), await demands(member)]).toEqual([Array(2).fill('-'), Array(2).fill('-')]);
    await database.pool.query(
      `update organizations set factor_required_at = now() - interval '90 days', factor_grace_days = 0
        where id = any($1::text[])`,
      [[orgId, other]],
    );
    await database.pool.query(
      `update organization_members set created_at = now() - interval '90 days' where org_id = any($1::text[])`,
      [[orgId, other]],
    );
    facts.factorsChanged(viewer);
    expect([await demands(viewer), await demands(member)]).toEqual([Array(2).fill('lacking'), Array(2).fill('-')]);
  });

  it('has others ask again for nothing but what changed', async () => {
    const { orgId, viewer } = await organizationOfAll();
    const other = await addOrganization(database, { [viewer]: 'viewer' });
    const places = await Promise.all(
      [orgId, orgId, other].map(async (of) => ({ of, id: await addWorkspace(database, of, { [viewer]: 'viewer' }) })),
    );
    const known = () => Promise.all(places.map(({ of, id }) => access.workspaceRole(actorOf(viewer), of, id)));
    const inOrganizations = () => Promise.all([orgId, other].map((of) => access.organizationRole(actorOf(viewer), of)));
    expect([await known(), await inOrganizations()]).toEqual([Array(3).fill('viewer'), ['viewer', 'viewer']]);
    for (const table of ['organization_members', 'workspace_members'])
      await database.pool.query(`update ${table} set role = 'editor' where user_id = $1`, [viewer]);
    facts.workspaceChanged(orgId, places[0]!.id);
    expect(await known()).toEqual(['editor', 'viewer', 'viewer']);
    facts.organizationDeleted(orgId);
    expect([await known(), await inOrganizations()]).toEqual([
      ['editor', 'editor', 'viewer'],
      ['editor', 'viewer'],
    ]);
  });
});

describe('who was a member of an organization when it was deleted', () => {
  it('is known after it', async () => {
    const { orgId, owner, stranger } = await organizationOfAll();
    await forget('organizations', orgId);
    expect(await facts.wentWithOrganization(owner, orgId)).toBe(true);
    expect(await facts.wentWithOrganization(stranger, orgId)).toBe(false);
    const { orgId: living, viewer } = await organizationOfAll();
    expect(await facts.wentWithOrganization(viewer, living)).toBe(false);
  });
});

describe('facts about many readers', () => {
  it('are told where they changed, and known to the checks', async () => {
    const { orgId, viewer, admin, stranger } = await organizationOfAll();
    const workspaceId = await addWorkspace(database, orgId, { [viewer]: 'editor' });
    const gone = await addWorkspace(database, orgId, { [viewer]: 'viewer' });
    await forget('workspaces', gone);
    const readers = [
      { userId: viewer, orgId, workspaceId },
      { userId: admin, orgId, workspaceId: null },
      { userId: stranger, orgId, workspaceId },
      { userId: viewer, orgId, workspaceId: gone },
    ];
    const known = new KnownFacts(readers.map((reader) => ({ ...reader, facts: null })));
    const changes = await facts.changesOf(known);
    expect([...changes]).toEqual([
      [0, 'viewer - - - editor true'],
      [1, 'admin - - - - -'],
      [2, '- - - - - true'],
      [3, 'viewer - - - viewer false'],
    ]);
    expect(access.permits(actorOf(viewer), 'app:create', { orgId, workspaceId })).toBe(true);
    expect(access.permits(actorOf(stranger), 'app:read', { orgId, workspaceId })).toBe(false);
    expect(access.requireOrganization(actorOf(admin), orgId, 'model:create')).toMatchObject({ grant: 'all' });

    for (const [at, facts] of changes) known.learn(at, facts);
    expect((await facts.changesOf(known)).size).toBe(0);
    expect(access.permits(actorOf(viewer), 'app:create', { orgId, workspaceId })).toBe(true);
    await database.pool.query(`update workspace_members set role = 'viewer' where workspace_id = $1`, [workspaceId]);
    expect([...(await facts.changesOf(known))]).toEqual([[0, 'viewer - - - viewer true']]);
    expect(access.permits(actorOf(viewer), 'app:create', { orgId, workspaceId })).toBe(false);
    expect(await facts.changesOf(new KnownFacts([]))).toEqual(new Map());
  });
});
