import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import {
  addToWorkspace,
  changesOf,
  colleague,
  createUser,
  eventsOf,
  type Person,
  register,
} from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Deleted {
  workspace_id: string;
  deleted_at: string;
  restorable_until: string;
}
interface DeletedPage {
  total: number;
  next_cursor: string | null;
  workspaces: Deleted[];
}

const deletedOf = async (who: Person, orgId = who.orgId, query = '') =>
  (await who.call<DeletedPage>('GET', `/v1/orgs/${orgId}/deleted-workspaces${query}`)).body;
const idsOf = async (who: Person, orgId?: string) =>
  (await deletedOf(who, orgId)).workspaces.map(({ workspace_id }) => workspace_id);
const remove = async (who: Person, home = who.home) => expect((await who.call('DELETE', home)).status).toBe(200);
const age = (id: string, interval: string) =>
  app.database.pool.query('update workspaces set deleted_at = deleted_at - $2::interval where id = $1', [id, interval]);
const dropCaches = ({ orgId, workspaceId }: Person) => app.services.access.facts.workspaceChanged(orgId, workspaceId);

test('a deleted workspace comes back with everything in it, a record and an event', async () => {
  const ann = await register(app, { name: 'ann' });
  const editor = await colleague(app, ann, 'editor');
  const outsider = await register(app, { name: 'outsider' });
  const { body: app1 } = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'App' });
  const { body: lab } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Lab' });
  const namespace = `${ann.home}/namespaces/${lab.namespace_id}`;
  const { body: artifact } = await ann.call<{ artifact_id: string }>('POST', `${namespace}/artifacts`, {
    name: 'Plan',
    content: 'text',
  });
  const token = await issueToken(app, ann, { workspace_ids: [ann.workspaceId], permissions: ['workspace:read'] });
  const places = [
    ann.home,
    namespace,
    `${ann.home}/apps/${app1.app_id}`,
    `${namespace}/artifacts/${artifact.artifact_id}`,
    `${ann.home}/members`,
  ];
  const seen = (who: Person) => Promise.all(places.map(async (place) => (await who.call('GET', place)).status));
  const byToken = async () => (await app.server.inject({ url: ann.home, headers: token.headers })).statusCode;
  await waitFor(async () => expect((await ann.call('GET', ann.home)).body).toMatchObject({ bucket_status: 'ready' }));
  const { body: before } = await ann.call('GET', ann.home);
  await remove(ann);
  expect(new Set([...(await seen(ann)), ...(await seen(editor)), await byToken()])).toEqual(new Set([404]));

  const url = `${ann.home}/restore`;
  expect((await outsider.call('POST', url)).status).toBe(403);
  expect(await editor.call('POST', url)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'workspace:delete' } },
  });
  const answer = await ann.call('POST', url);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ ...(before as object), bucket_status: 'pending', updated_at: expect.any(String) });
  expect(new Set([...(await seen(ann)), ...(await seen(editor)), await byToken()])).toEqual(new Set([200]));
  await waitFor(async () => expect((await ann.call('GET', ann.home)).body).toMatchObject({ bucket_status: 'ready' }));
  expect((await changesOf(app, ann.workspaceId)).at(-1)).toMatchObject({
    action: 'restore',
    resourceType: 'workspace',
    orgId: ann.orgId,
    userId: ann.userId,
  });
  const events = await app.database.prisma.event.findMany({
    where: { type: 'workspace.restored', resourceId: ann.workspaceId },
    orderBy: { seq: 'asc' },
  });
  // one for who follows the workspace, one for who follows the organization
  expect(events.map(({ workspaceId }) => workspaceId)).toEqual(expect.arrayContaining([ann.workspaceId, null]));
  expect(events).toHaveLength(2);
  expect(await idsOf(ann)).toEqual([]);
});

test('the list says what can be restored, when and by whom it was deleted, and until when', async () => {
  const ann = await register(app, { name: 'ann' });
  const made: string[] = [];
  for (const name of ['One', 'Two']) {
    const payload = { organization_id: ann.orgId, name };
    const { body } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, payload);
    made.unshift(body.workspace_id);
    await remove(ann, `/v1/orgs/${ann.orgId}/workspaces/${body.workspace_id}`);
  }
  const page = await deletedOf(ann, ann.orgId, '?limit=1');
  expect(page).toEqual({
    total: 2,
    has_more: true,
    next_cursor: expect.any(String),
    workspaces: [
      {
        workspace_id: made[0],
        org_id: ann.orgId,
        name: 'Two',
        description: null,
        owner_id: ann.userId,
        created_at: expect.stringMatching(/Z$/),
        deleted_at: expect.stringMatching(/Z$/),
        deleted_by: ann.userId,
        restorable_until: new Date(Date.parse(page.workspaces[0]!.deleted_at) + 30 * 86_400_000).toISOString(),
      },
    ],
  });
  const rest = await deletedOf(ann, ann.orgId, `?limit=1&cursor=${page.next_cursor}`);
  expect(rest.workspaces.map(({ workspace_id }) => workspace_id)).toEqual([made[1]]);
  const { data } = await ann.ask(
    'query ($orgId: ID!) { deletedWorkspaces(orgId: $orgId) { nodes { id deletedByUser { id } owner { id } } } }',
    { orgId: ann.orgId },
  );
  const [deletedByUser, owner] = [{ id: ann.userId }, { id: ann.userId }];
  expect(data).toEqual({ deletedWorkspaces: { nodes: made.map((id) => ({ id, deletedByUser, owner })) } });
});

test('30 days after its deletion it is gone', async () => {
  const ann = await register(app, { name: 'ann' });
  await remove(ann);
  await age(ann.workspaceId, '29 days 23 hours');
  expect(await idsOf(ann)).toEqual([ann.workspaceId]);
  await age(ann.workspaceId, '1 hour');
  expect(await idsOf(ann)).toEqual([]);
  expect(await ann.call('POST', `${ann.home}/restore`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'workspace', resource_id: ann.workspaceId } },
  });
  expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/workspaces/ws_missing/restore`)).status).toBe(404);
});

test('its owners and the administrators of the organization may restore it, others do not see it', async () => {
  const ann = await register(app, { name: 'ann' });
  const owner = await createUser(app, ann, { role: 'viewer' });
  await addToWorkspace(app, ann, owner.userId, 'owner');
  const member = await createUser(app, ann);
  await addToWorkspace(app, ann, member.userId, 'admin');
  await remove(ann);
  dropCaches(ann);
  expect(await member.call('GET', `/v1/orgs/${ann.orgId}/deleted-workspaces`)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'workspace:delete' } },
  });
  expect((await member.call('POST', `${ann.home}/restore`)).status).toBe(403);
  expect((await member.call('POST', `/v1/orgs/${ann.orgId}/workspaces/ws_missing/restore`)).status).toBe(403);
  expect(await idsOf(owner, ann.orgId)).toEqual([ann.workspaceId]);
  expect((await owner.call('POST', `${ann.home}/restore`)).status).toBe(200);
  expect(await idsOf(owner, ann.orgId)).toEqual([]);
});

test('a token restores what it may delete: with the permission, and in its places', async () => {
  const ann = await register(app, { name: 'ann' });
  const { body } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
    organization_id: ann.orgId,
    name: 'Other',
  });
  const permissions = ['organization:access', 'workspace:delete'];
  const bearer = async (given: Record<string, unknown>) => (await issueToken(app, ann, given)).headers;
  const all = await bearer({ permissions });
  const elsewhere = await bearer({ permissions, workspace_ids: [body.workspace_id] });
  const reading = await bearer({ permissions: ['organization:access', 'workspace:read'] });
  await remove(ann);
  const restore = async (headers: object) =>
    (await app.server.inject({ method: 'POST', url: `${ann.home}/restore`, headers: { ...headers } })).statusCode;
  const list = (headers: object) =>
    app.server.inject({ url: `/v1/orgs/${ann.orgId}/deleted-workspaces`, headers: { ...headers } });
  expect((await list(reading)).statusCode).toBe(403);
  expect((await list(elsewhere)).json()).toMatchObject({ total: 0, workspaces: [] });
  expect((await list(all)).json()).toMatchObject({ total: 1 });
  expect([await restore(reading), await restore(elsewhere), await restore(all)]).toEqual([403, 403, 200]);
});

test('what is not deleted stays as it is, and an unexpected version is refused', async () => {
  const ann = await register(app, { name: 'ann' });
  await app.jobsDone();
  expect((await ann.call('POST', `${ann.home}/restore`)).status).toBe(200);
  expect(await eventsOf(app, ann.workspaceId)).not.toContain('workspace.restored');
  await remove(ann);
  const once = (headers: object) =>
    app.server.inject({ method: 'POST', url: `${ann.home}/restore`, headers: { ...ann.headers, ...headers } });
  expect((await once({ 'if-match': '"1"' })).statusCode).toBe(412);
  const answers = await Promise.all([once({}), once({}), once({})]);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  expect((await eventsOf(app, ann.workspaceId)).filter((type) => type === 'workspace.restored')).toHaveLength(2);
});

test('whoever restores what nobody owns any more owns it', async () => {
  const ann = await register(app, { name: 'ann' });
  const admin = await createUser(app, ann, { role: 'admin' });
  const owner = await createUser(app, ann);
  await addToWorkspace(app, ann, admin.userId, 'viewer');
  await addToWorkspace(app, ann, owner.userId, 'owner');
  expect((await ann.call('DELETE', `${ann.home}/members/${ann.userId}`)).status).toBe(204);
  await remove(ann);
  expect((await ann.call('DELETE', `/v1/users/${owner.userId}`)).status).toBe(204);
  expect(await admin.call('POST', `${ann.home}/restore`)).toMatchObject({
    status: 200,
    body: { owner_id: admin.userId },
  });
  const { body } = await admin.call<{ members: { user_id: string; role: string }[] }>('GET', `${ann.home}/members`);
  expect(body.members.map(({ user_id, role }) => [user_id, role])).toEqual([[admin.userId, 'owner']]);
});
