import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { addToWorkspace, createUser, type Person, register } from '../../support/person.ts';
import { issueToken, type TestToken } from '../../support/tokens.ts';

let app: TestApp;
let owner: Person;
let namespaceId: string;
let otherWorkspaceId: string;
let number = 0;

beforeAll(async () => {
  app = await startTestApp();
  await register(app);
});
afterAll(() => app.close());
beforeEach(async () => {
  number += 1;
  owner = await register(app);
  const { post } = callsOf(app);
  const orgs = `/v1/orgs/${owner.orgId}/workspaces`;
  const workspace = await post(orgs, { organization_id: owner.orgId, name: 'second' }, owner.headers);
  otherWorkspaceId = workspace.json().workspace_id;
  const namespace = await post(`${orgs}/${owner.workspaceId}/namespaces`, { name: 'one' }, owner.headers);
  namespaceId = namespace.json().namespace_id;
});

const DAY = 86_400_000;
type Maker = Pick<Person | TestToken, 'headers'>;
const mint = (maker: Maker, body: object) =>
  callsOf(app).post(`/v1/orgs/${owner.orgId}/api-tokens`, { name: 'minted', ...body }, maker.headers);
const locsOf = async (maker: Maker, body: object) => {
  const answer = await mint(maker, body);
  return answer.statusCode === 422
    ? answer.json().detail.map(({ loc }: { loc: (string | number)[] }) => loc.slice(1).join('.'))
    : answer.statusCode;
};

describe('a user cannot issue more than they have', () => {
  it('a permission must be theirs somewhere in the organization, be it for own content only', async () => {
    const member = await createUser(app, owner, { username: `somewhere-${number}`, role: 'member' });
    expect(await locsOf(member, { permissions: ['workspace:read', 'thread:update'] })).toBe(201);
    expect(
      await locsOf(member, { permissions: ['workspace:read', 'secret:reveal'], scopes: ['organization:update'] }),
    ).toEqual(['scopes.0', 'permissions.1']);
    await addToWorkspace(app, owner, member.userId, 'admin');
    expect(await locsOf(member, { permissions: ['secret:reveal'] })).toBe(201);
  });

  it('a wide name must give at least something; a word always does', async () => {
    const viewer = await createUser(app, owner, { username: `viewer-${number}`, role: 'viewer' });
    expect(await locsOf(viewer, { scopes: ['app_token', 'model'], permissions: ['secret:*'] })).toEqual([
      'scopes.0',
      'permissions.0',
    ]);
    expect(await locsOf(viewer, { scopes: ['admin'] })).toBe(201);
  });

  it('places must be seen by them', async () => {
    const member = await createUser(app, owner, { username: `places-${number}`, role: 'member' });
    await addToWorkspace(app, owner, member.userId, 'viewer');
    const body = { workspace_ids: [owner.workspaceId, otherWorkspaceId], namespace_ids: [namespaceId] };
    expect(await locsOf(member, body)).toEqual(['workspace_ids.1']);
    expect(await locsOf(owner, body)).toBe(201);
    expect(await locsOf(owner, { workspace_ids: [otherWorkspaceId], namespace_ids: [namespaceId] })).toEqual([
      'namespace_ids.0',
    ]);
  });

  it('and what they issue with `admin` still has only their live rights', async () => {
    const viewer = await createUser(app, owner, { username: `admin-scope-${number}`, role: 'viewer' });
    const { headers } = await issueToken(app, viewer, { scopes: ['admin'] });
    expect((await callsOf(app).put(`/v1/orgs/${owner.orgId}`, {}, headers)).statusCode).toBe(403);
  });
});

describe('a token makes no tokens unless it says so by name', () => {
  it.each([[{}], [{ scopes: ['admin'] }], [{ scopes: ['write', '*:create'] }], [{ permissions: ['api_token:read'] }]])(
    'not with %j',
    async (body) => {
      const parent = await issueToken(app, owner, body);
      const answer = await mint(parent, { scopes: ['read'] });
      expect([answer.statusCode, answer.json().details]).toEqual([403, { required_permission: 'api_token:create' }]);
    },
  );

  it.each([[{ scopes: ['read'], permissions: ['api_token:create'] }], [{ scopes: ['read', 'api_token'] }]])(
    'but with %j',
    async (body) => {
      const parent = await issueToken(app, owner, body);
      const minted = await mint(parent, { scopes: ['read'] });
      expect(minted.statusCode).toBe(201);
      expect(minted.json().token).toMatchObject({ owner_id: owner.userId, token_type: 'pat' });
    },
  );
});

describe('a token cannot make one beyond itself', () => {
  const named = { permissions: ['api_token:create', 'workspace:read', 'workspace:update'] };

  it('in what it may do', async () => {
    const parent = await issueToken(app, owner, named);
    expect(await locsOf(parent, { permissions: ['workspace:read', 'workspace:delete'] })).toEqual(['permissions.1']);
    expect(await locsOf(parent, { scopes: ['read', 'workspace', 'workspace:update', 'admin'] })).toEqual([
      'scopes.0',
      'scopes.1',
      'scopes.3',
    ]);
    expect(await locsOf(parent, {})).toEqual(['permissions']);
    expect(await locsOf(parent, { permissions: ['workspace:read', 'api_token:create'] })).toBe(201);
  });

  it('in where it may do it: no other place, and not everywhere', async () => {
    const parent = await issueToken(app, owner, {
      ...named,
      workspace_ids: [owner.workspaceId],
      namespace_ids: [namespaceId],
      endpoint_paths: ['/v1/orgs/*/workspaces/**', '/v1/orgs/*/api-tokens'],
    });
    const permissions = ['workspace:read'];
    expect(await locsOf(parent, { permissions })).toEqual(
      ['workspaceIds', 'namespaceIds', 'endpointPaths'].map((name) =>
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      ),
    );
    const within = { permissions, workspace_ids: [owner.workspaceId], namespace_ids: [namespaceId] };
    expect(await locsOf(parent, { ...within, endpoint_paths: ['/v1', '/v1/orgs/*/workspaces/*', '/graphql'] })).toEqual(
      ['endpoint_paths.0', 'endpoint_paths.2'],
    );
    expect(
      await locsOf(parent, {
        ...within,
        workspace_ids: [owner.workspaceId, otherWorkspaceId],
        endpoint_paths: ['/v1/orgs/a/workspaces'],
      }),
    ).toContain('workspace_ids.1');
    expect(await locsOf(parent, { ...within, endpoint_paths: ['/v1/orgs/a/workspaces'] })).toBe(201);
  });

  it('by the list of places that it leaves empty: a change needs to be in one of the two only', async () => {
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    const made = await callsOf(app).post(`${workspace}/environments`, { name: 'e', slug: 'e' }, owner.headers);
    const { environment_id } = made.json().environment ?? made.json();
    const permissions = ['api_token:create', 'environment:update', 'namespace:update'];
    const inNamespace = await issueToken(app, owner, { permissions, namespace_ids: [namespaceId] });
    const inEnvironment = await issueToken(app, owner, { permissions, environment_ids: [environment_id] });
    const both = { permissions, namespace_ids: [namespaceId], environment_ids: [environment_id] };
    expect(await locsOf(inNamespace, both)).toEqual(['environment_ids.0']);
    expect(await locsOf(inEnvironment, both)).toEqual(['namespace_ids.0']);
    expect(await locsOf(inNamespace, { permissions, namespace_ids: [namespaceId] })).toBe(201);
    expect(await locsOf(await issueToken(app, owner, both), both)).toBe(201);
  });

  it('in how long and how fast', async () => {
    const parent = await issueToken(app, owner, {
      ...named,
      expires_in_days: 5,
      rate_limit_rps: 10,
      rate_limit_burst: 20,
    });
    const body = { permissions: ['workspace:read'], rate_limit_rps: 10, rate_limit_burst: 20 };
    expect(await locsOf(parent, { ...body, expires_in_days: 6 })).toEqual(['expires_in_days']);
    expect(await locsOf(parent, { ...body, expires_at: new Date(Date.now() + 6 * DAY) })).toEqual(['expires_at']);
    expect(await locsOf(parent, { ...body, rate_limit_rps: 11, rate_limit_burst: 21 })).toEqual([
      'rate_limit_rps',
      'rate_limit_burst',
    ]);
    expect(await locsOf(parent, { permissions: ['workspace:read'] })).toEqual(['rate_limit_rps', 'rate_limit_burst']);
    const minted = await mint(parent, body);
    expect(minted.json().token.expires_at).toBe(parent.token.expires_at);
    // a burst that follows from the rate binds as one that is set does
    const plain = await issueToken(app, owner, { ...named, rate_limit_rps: 5 });
    const wanted = { permissions: ['workspace:read'], rate_limit_rps: 5 };
    expect(await locsOf(plain, { ...wanted, rate_limit_burst: 11 })).toEqual(['rate_limit_burst']);
    expect(await locsOf(plain, wanted)).toBe(201);
  });
});

it('what a token made is revoked with it, over generations and refreshes; what others made is not', async () => {
  const permissions = ['api_token:create', 'api_token:revoke', 'workspace:read'];
  const parent = await issueToken(app, owner, { permissions });
  const sibling = await issueToken(app, owner, { permissions });
  const child = await issueToken(app, { orgId: owner.orgId, headers: parent.headers }, { permissions });
  const grandchild = await issueToken(app, { orgId: owner.orgId, headers: child.headers }, { permissions });
  const { post, get } = callsOf(app);
  const tokens = `/v1/orgs/${owner.orgId}/api-tokens`;
  const refreshed = await post(`${tokens}/refresh`, { refresh_token: grandchild.refresh_token_plaintext });
  const heir = { authorization: `Bearer ${refreshed.json().plaintext_token}` };
  const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
  const statuses = async () =>
    Promise.all(
      [parent.headers, child.headers, grandchild.headers, heir, sibling.headers].map(
        async (headers) => (await get(workspace, headers)).statusCode,
      ),
    );
  expect(await statuses()).toEqual([200, 200, 200, 200, 200]);
  await callsOf(app).delete(`${tokens}/${parent.id}`, owner.headers);
  expect(await statuses()).toEqual([401, 401, 401, 401, 200]);
  const list = (await get(tokens, owner.headers)).json().tokens as { token_id: string; revoked_reason: string }[];
  const reasonOf = (id: string) => list.find(({ token_id }) => token_id === id)?.revoked_reason ?? null;
  expect([parent.id, child.id, refreshed.json().token.token_id, sibling.id].map(reasonOf)).toEqual([
    'revoked_by_user',
    'maker_revoked',
    'maker_revoked',
    null,
  ]);
});

describe('tokens of apps', () => {
  let appId: string;
  beforeEach(async () => {
    const url = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/apps`;
    appId = (await callsOf(app).post(url, { name: 'an app' }, owner.headers)).json().app_id;
  });
  const tokens = () => `/v1/orgs/${owner.orgId}/apps/${appId}/tokens`;

  it('are issued, listed and revoked by editors of the workspace; they belong to the app', async () => {
    const { get, post, delete: remove } = callsOf(app);
    const editor = await createUser(app, owner, { username: `editor-${number}`, role: 'member' });
    await addToWorkspace(app, owner, editor.userId, 'editor');
    const issued = await post(tokens(), { name: 'runtime' }, editor.headers);
    expect(issued.statusCode).toBe(201);
    const { token, plaintext_token } = issued.json();
    expect(plaintext_token).toMatch(/^app_[0-9A-Za-z]{8}_/);
    expect(token).toMatchObject({
      token_type: 'app',
      owner_type: 'app',
      owner_id: appId,
      created_by_user_id: editor.userId,
    });
    expect((await get(tokens(), owner.headers)).json()).toEqual({ tokens: [token] });
    expect((await get(`/v1/orgs/${owner.orgId}/api-tokens`, editor.headers)).json()).toEqual({ tokens: [] });
    const viewer = await createUser(app, owner, { username: `viewing-${number}`, role: 'viewer' });
    await addToWorkspace(app, owner, viewer.userId, 'viewer');
    const refused = await get(tokens(), viewer.headers);
    expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'app_token:read' }]);
    expect((await remove(`${tokens()}/${token.token_id}`, owner.headers)).statusCode).toBe(204);
    expect((await remove(`${tokens()}/${token.token_id}`, owner.headers)).statusCode).toBe(204);
    const [row] = (await get(tokens(), owner.headers)).json().tokens;
    expect(row).toMatchObject({ revoked_reason: 'revoked_by_admin' });
    const { rows } = await app.database.pool.query(
      `select type, workspace_id, resource_type from events where resource_id = $1 order by seq`,
      [token.token_id],
    );
    const where = { workspace_id: owner.workspaceId, resource_type: 'app_token' };
    expect(rows).toEqual([
      { type: 'app_token.created', ...where },
      { type: 'app_token.revoked', ...where },
    ]);
  });

  it('act for their maker, named as the app’s token in records', async () => {
    const { id, headers } = await issueToken(app, owner, { app_id: appId });
    const url = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/namespaces/default/threads`;
    const made = await callsOf(app).post(url, {}, headers);
    expect([made.statusCode, made.json().created_by]).toEqual([201, owner.userId]);
    const { rows } = await app.database.pool.query(
      'select principal_type, principal_id, token_type, user_id from activity where resource_id = $1',
      [made.json().thread_id],
    );
    expect(rows).toEqual([{ principal_type: 'app_token', principal_id: id, token_type: 'app', user_id: owner.userId }]);
  });

  it.each(['app_none', 'foreign', 'unseen'])('of an app that is %s are 404, all alike', async (which) => {
    const stranger = await register(app);
    const outsider = await createUser(app, owner, { username: `outsider-${which}-${number}`, role: 'member' });
    const foreign = await callsOf(app).post(
      `/v1/orgs/${stranger.orgId}/workspaces/${stranger.workspaceId}/apps`,
      { name: 'x' },
      stranger.headers,
    );
    const id = which === 'foreign' ? foreign.json().app_id : which === 'unseen' ? appId : which;
    const { headers } = which === 'unseen' ? outsider : owner;
    const url = `/v1/orgs/${owner.orgId}/apps/${id}/tokens`;
    for (const answer of [
      await callsOf(app).get(url, headers),
      await callsOf(app).post(url, { name: 'x' }, headers),
      await callsOf(app).delete(`${url}/tok_x`, headers),
    ]) {
      expect(answer.statusCode).toBe(404);
      expect(answer.json().details).toEqual({ resource_type: 'app', resource_id: id });
    }
  });

  it("one app's path does not revoke another's token, nor an API token", async () => {
    const pat = await issueToken(app, owner);
    const answer = await callsOf(app).delete(`${tokens()}/${pat.id}`, owner.headers);
    expect([answer.statusCode, answer.json().details]).toEqual([
      404,
      { resource_type: 'app_token', resource_id: pat.id },
    ]);
    const own = await issueToken(app, owner, { app_id: appId });
    expect((await callsOf(app).delete(`/v1/orgs/${owner.orgId}/api-tokens/${own.id}`, owner.headers)).statusCode).toBe(
      404,
    );
  });

  it('stay in the workspace of the app', async () => {
    const answer = await callsOf(app).post(tokens(), { name: 'x', workspace_ids: [otherWorkspaceId] }, owner.headers);
    expect([answer.statusCode, answer.json().detail[0].loc]).toEqual([422, ['body', 'workspace_ids', 0]]);
  });

  it('make tokens of their own app where they name it, never a user’s', async () => {
    const parent = await issueToken(app, owner, {
      app_id: appId,
      permissions: ['app_token:create', 'api_token:create', 'thread:create'],
    });
    const body = { name: 'x', permissions: ['thread:create'] };
    expect((await callsOf(app).post(tokens(), body, parent.headers)).statusCode).toBe(201);
    expect((await mint(parent, body)).json().details).toEqual({ required_permission: 'api_token:create' });
  });

  it('die with their app, at once', async () => {
    const { headers } = await issueToken(app, owner, { app_id: appId });
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    expect((await callsOf(app).get(workspace, headers)).statusCode).toBe(200);
    expect((await callsOf(app).delete(`${workspace}/apps/${appId}`, owner.headers)).statusCode).toBeLessThan(300);
    expect((await callsOf(app).get(workspace, headers)).statusCode).toBe(401);
  });
});
