import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';

let app: TestApp;
let owner: Person;
let member: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
  member = await register(app);
  await join(app, owner, member, 'member');
});
afterAll(() => app.close());

/** Puts an account into the owner's organization, without a workspace. */
async function join(target: TestApp, into: Person, account: Person, role: string): Promise<void> {
  await target.database.prisma.organizationMember.create({
    data: { id: `om_${account.userId}`, orgId: into.orgId, userId: account.userId, role },
  });
}

interface Body {
  workspace_id: string;
  description: string | null;
  tags: string[];
  updated_at: string;
}

const url = (id = '') => `/v1/orgs/${owner.orgId}/workspaces${id && `/${id}`}`;
const send = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, payload?: object, as = owner) =>
  app.server.inject({ method, url: path, headers: as.headers, ...(payload ? { payload } : {}) });
const create = async (more: object = {}) =>
  (await send('POST', url(), { organization_id: owner.orgId, name: 'A workspace', ...more })).json<Body>();

describe('a workspace', () => {
  it('is made with every given field, its owner as a member, a default namespace, a record and an event', async () => {
    const answer = await send('POST', url(), {
      organization_id: owner.orgId,
      name: 'Research',
      description: 'For all',
      tags: ['a', 'b'],
      region: 'eu-1',
      unknown: 1,
    });
    expect(answer.statusCode).toBe(201);
    const body = answer.json<Body>();
    const id = body.workspace_id;
    expect(body).toEqual({
      workspace_id: expect.stringMatching(/^ws_[0-9A-HJKMNP-TV-Z]{26}$/),
      name: 'Research',
      description: 'For all',
      owner_id: owner.userId,
      subscription_plan_id: 'community',
      region: 'eu-1',
      storage_bucket: id.toLowerCase(),
      bucket_status: 'pending',
      is_active: true,
      tags: ['a', 'b'],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: expect.stringMatching(/Z$/),
    });
    const { prisma } = app.database;
    expect(
      await prisma.workspaceMember.findMany({ where: { workspaceId: id }, select: { userId: true, role: true } }),
    ).toEqual([{ userId: owner.userId, role: 'owner' }]);
    expect(await prisma.namespace.findMany({ where: { workspaceId: id }, select: { slug: true } })).toEqual([
      { slug: 'default' },
    ]);
    const record = await prisma.activity.findFirstOrThrow({ where: { resourceId: id, action: 'create' } });
    expect(record).toMatchObject({
      resourceType: 'workspace',
      orgId: owner.orgId,
      workspaceId: id,
      userId: owner.userId,
      principalType: 'user',
      statusCode: 201,
      success: true,
      method: 'POST',
      path: url(),
    });
    const event = await prisma.event.findFirstOrThrow({ where: { workspaceId: id, type: 'workspace.created' } });
    expect(event).toMatchObject({
      orgId: owner.orgId,
      workspaceId: id,
      actor: { principal_type: 'user', principal_id: owner.userId, username: owner.username },
    });
  });

  it('refuses an organization in the body that is not that of the path, and makes nothing', async () => {
    const before = await app.database.prisma.workspace.count();
    const answer = await send('POST', url(), { organization_id: 'org_other', name: 'x' });
    expect(answer.statusCode).toBe(422);
    expect(answer.json()).toMatchObject({
      detail: [{ type: 'value_error', loc: ['body', 'organization_id'], input: 'org_other' }],
    });
    const listed = await send('GET', `${url()}?organization_id=org_other`);
    expect(listed.json()).toMatchObject({ detail: [{ loc: ['query', 'organization_id'] }] });
    expect(await app.database.prisma.workspace.count()).toBe(before);
  });

  it('keeps what an update omits, clears what it sets to null, and refuses null for required values', async () => {
    const { workspace_id: id } = await create({ description: 'kept', tags: ['x'] });
    expect((await send('PUT', url(id), {})).json()).toMatchObject({
      name: 'A workspace',
      description: 'kept',
      tags: ['x'],
    });
    expect((await send('PUT', url(id), { name: 'New' })).json()).toMatchObject({
      name: 'New',
      description: 'kept',
      tags: ['x'],
    });
    expect((await send('PUT', url(id), { description: null })).json()).toMatchObject({
      name: 'New',
      description: null,
      tags: ['x'],
    });
    expect((await app.database.prisma.workspace.findUniqueOrThrow({ where: { id } })).description).toBeNull();
    const refused = await send('PUT', url(id), { name: null, tags: null, is_active: null });
    expect(refused.statusCode).toBe(422);
    expect(
      refused.json<{ detail: { loc: string[]; type: string }[] }>().detail.map((item) => [item.loc[1], item.type]),
    ).toEqual([
      ['name', 'string_type'],
      ['is_active', 'bool_type'],
      ['tags', 'list_type'],
    ]);
  });

  it('is gone after its deletion, with everything below it, for everybody; its row stays for 30 days', async () => {
    const { workspace_id: id } = await create();
    expect((await send('GET', `${url(id)}/members`)).statusCode).toBe(200);
    const deleted = await send('DELETE', url(id));
    expect([deleted.statusCode, deleted.json()]).toEqual([200, { message: 'Workspace deleted successfully' }]);
    for (const path of [url(id), `${url(id)}/members`]) {
      const answer = await send('GET', path);
      expect(answer.statusCode).toBe(404);
      expect(answer.json()).toMatchObject({
        error: 'RESOURCE_NOT_FOUND',
        details: { resource_type: 'workspace', resource_id: id },
      });
    }
    const { workspaces } = (await send('GET', `${url()}?limit=200`)).json<{ workspaces: Body[] }>();
    expect(workspaces.map((workspace) => workspace.workspace_id)).not.toContain(id);
    expect((await app.database.prisma.workspace.findUniqueOrThrow({ where: { id } })).deletedAt).not.toBeNull();
    expect((await send('DELETE', url(id))).statusCode).toBe(404);
  });
});

describe('a default workspace', () => {
  it('is none any more after its deletion, for everybody who started there', async () => {
    const [ann, bob] = await Promise.all([register(app), register(app)]);
    const home = `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}`;
    expect((await send('POST', `${home}/members`, { user_id: bob.userId }, ann)).statusCode).toBe(201);
    const { workspaceId: default_workspace_id } = ann;
    expect((await send('PUT', `/v1/users/${bob.userId}`, { default_workspace_id }, bob)).json()).toMatchObject({
      default_workspace_id,
    });
    expect((await send('DELETE', home, undefined, ann)).statusCode).toBe(200);
    for (const account of [ann, bob]) {
      expect(
        (await app.database.prisma.user.findUniqueOrThrow({ where: { id: account.userId } })).defaultWorkspaceId,
      ).toBeNull();
      expect((await send('GET', `/v1/users/${account.userId}`, undefined, account)).json()).toMatchObject({
        default_workspace_id: null,
      });
    }
  });
});

describe('the list', () => {
  it('shows administrators all, plain members their own, and counts what it shows', async () => {
    const { workspace_id: joined } = await create();
    await send('POST', `${url(joined)}/members`, { user_id: member.userId });
    const theirs = (await send('GET', url(), undefined, member)).json<{
      total: number;
      has_more: boolean;
      next_cursor: null;
      workspaces: Body[];
    }>();
    expect(theirs).toMatchObject({ total: 1, has_more: false, next_cursor: null });
    expect(theirs.workspaces.map((workspace) => workspace.workspace_id)).toEqual([joined]);
    const all = (await send('GET', `${url()}?limit=200`)).json<{ total: number; workspaces: Body[] }>();
    expect(all.total).toBe(
      await app.database.prisma.workspace.count({ where: { orgId: owner.orgId, deletedAt: null } }),
    );
    expect(all.workspaces).toHaveLength(all.total);
  });
});

describe('permissions', () => {
  it('an organization member outside the workspace gets the same 403 whether or not it exists', async () => {
    const { workspace_id: id } = await create();
    const hidden = await send('GET', url(id), undefined, member);
    const missing = await send('GET', url('ws_00000000000000000000000000'), undefined, member);
    expect([hidden.statusCode, missing.statusCode]).toEqual([403, 403]);
    const { timestamp: _a, ...one } = hidden.json<Record<string, unknown>>();
    const { timestamp: _b, ...other } = missing.json<Record<string, unknown>>();
    expect(one).toEqual(other);
    expect(one).toMatchObject({ error: 'FORBIDDEN', details: { required_permission: 'workspace:read' } });
  });

  it('plain members may not create workspaces, unless ALLOW_MEMBER_WORKSPACES says so', async () => {
    const refused = await send('POST', url(), { organization_id: owner.orgId, name: 'mine' }, member);
    expect([refused.statusCode, refused.json<{ details: object }>().details]).toEqual([
      403,
      { required_permission: 'workspace:create' },
    ]);
    const open = await startTestApp({ env: { ALLOW_MEMBER_WORKSPACES: 'true' } });
    const boss = await register(open);
    const plain = await register(open);
    const viewer = await register(open);
    await join(open, boss, plain, 'member');
    await join(open, boss, viewer, 'viewer');
    const attempt = (account: Person) =>
      open.server.inject({
        method: 'POST',
        url: `/v1/orgs/${boss.orgId}/workspaces`,
        headers: account.headers,
        payload: { organization_id: boss.orgId, name: 'mine' },
      });
    expect((await attempt(plain)).statusCode).toBe(201);
    expect((await attempt(viewer)).statusCode).toBe(403);
    await open.close();
  });
});
