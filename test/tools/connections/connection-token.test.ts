import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { instancesOf, type Json } from '../tool-instances/instances.ts';
import { connect, makeInstanceAt, startConnectingApp } from './connecting.ts';

let app: TestApp;
let server: OAuthServer;
let ann: Person;
beforeAll(async () => {
  [app, server] = await Promise.all([startConnectingApp(), startOAuthServer()]);
});
beforeEach(async () => {
  server.misbehave.length = 0;
  server.lifetime = 3_600;
  server.grants = {};
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await server.close();
});

const urlOf = (id: string) => `${ann.home}/connections/${id}/token`;
const taken = (id: string, person = ann) => person.call<Json>('POST', urlOf(id));
const revealsOf = (connectionId: string) =>
  app.database.prisma.activity.findMany({ where: { resourceId: connectionId, action: 'reveal' } });

async function connectedOne() {
  const id = await makeInstanceAt(server, ann);
  const { connection_id } = await connect(ann, server, `${ann.home}/connections`, id);
  return { id, connectionId: connection_id };
}

test('a runner gets the access token with its expiry, and each time is recorded without it', async () => {
  const { id, connectionId } = await connectedOne();
  const { status, body } = await taken(id);
  expect(status).toBe(200);
  expect(body).toEqual({
    access_token: expect.any(String),
    token_type: 'bearer',
    auth_type: 'oauth2',
    expires_at: expect.any(String),
    scopes: expect.any(Array),
    status: 'connected',
    connection_id: connectionId,
    tool_instance_id: id,
  });
  expect(server.accessTokens).toContain(body.access_token);
  expect((await taken(id)).body.access_token).toBe(body.access_token);
  const records = await revealsOf(connectionId);
  expect(records).toHaveLength(2);
  expect(records[0]).toMatchObject({
    resourceType: 'connection',
    userId: ann.userId,
    success: true,
    metadata: { tool_instance_id: id, auth_type: 'oauth2' },
  });
  expect(JSON.stringify(records)).not.toContain(body.access_token);
});

test('an organization that wants to know why hands none out without a reason, which the record keeps', async () => {
  const { id, connectionId } = await connectedOne();
  await ann.ask(
    'mutation ($orgId: ID!) { updateSignInPolicy(orgId: $orgId, input: { requireRevealReason: true }) { orgId } }',
    { orgId: ann.orgId },
  );
  const { headers } = await issueToken(app, ann, { permissions: ['connection:use'] });
  const asked = async (query: string) => {
    const { statusCode, body } = await app.server.inject({ method: 'POST', url: `${urlOf(id)}${query}`, headers });
    return { status: statusCode, body };
  };
  for (const query of ['', '?reason=%20']) {
    const refused = await asked(query);
    expect([refused.status, refused.body]).toEqual([422, expect.stringContaining('"reason"')]);
    for (const token of server.accessTokens) expect(refused.body).not.toContain(token);
  }
  const inNamespace = `${ann.home}/namespaces/default/connections/${id}/token`;
  expect((await ann.call('POST', inNamespace)).status).toBe(422);
  expect(await revealsOf(connectionId)).toEqual([]);
  expect((await asked('?reason=Run%207')).status).toBe(200);
  expect((await ann.call('POST', `${inNamespace}?reason=Run%208`)).status).toBe(200);
  const reasons = (await revealsOf(connectionId)).map(({ metadata }) => (metadata as Json).reason);
  expect(new Set(reasons)).toEqual(new Set(['Run 7', 'Run 8']));
});

test('it is never answered again from before: each time is checked and recorded', async () => {
  const { id, connectionId } = await connectedOne();
  const twice = async () => {
    const headers = { ...ann.headers, 'idempotency-key': 'one' };
    const answer = await app.server.inject({ method: 'POST', url: urlOf(id), headers });
    return [answer.statusCode, answer.headers['idempotent-replayed']];
  };
  expect([await twice(), await twice()]).toEqual([
    [200, undefined],
    [200, undefined],
  ]);
  expect(await revealsOf(connectionId)).toHaveLength(2);
  await ann.call('POST', `${instancesOf(ann)}/${id}/toggle?is_active=false`);
  expect(await twice()).toEqual([409, undefined]);
});

test('a token that ends within five minutes is refreshed first, once for all who ask', async () => {
  server.lifetime = 240;
  const { id } = await connectedOne();
  const before = server.grants.refresh_token ?? 0;
  server.lifetime = 3_600;
  const all = await Promise.all([taken(id), taken(id), taken(id)]);
  const tokens = new Set(all.map(({ body }) => body.access_token));
  expect([...tokens]).toHaveLength(1);
  expect((server.grants.refresh_token ?? 0) - before).toBe(1);
  expect(new Date(String(all[0]!.body.expires_at)).getTime()).toBeGreaterThan(Date.now() + 1_800_000);
});

test('a provider that gives no other token leaves the one that still lives', async () => {
  server.lifetime = 240;
  const { id } = await connectedOne();
  server.misbehave.push({ status: 503, body: '' }, { status: 503, body: '' });
  expect(await taken(id)).toMatchObject({ status: 200, body: { access_token: expect.any(String) } });
});

test('nobody gets it without the permission, which neither read nor write scopes have', async () => {
  const { id, connectionId } = await connectedOne();
  const statusBy = async (given: Json) => {
    const { headers } = await issueToken(app, ann, given);
    return (await app.server.inject({ method: 'POST', url: urlOf(id), headers })).statusCode;
  };
  expect(await statusBy({ scopes: ['read', 'write'] })).toBe(403);
  expect(await statusBy({})).toBe(403);
  expect(await statusBy({ permissions: ['connection:use'] })).toBe(200);
  const other = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
    organization_id: ann.orgId,
    name: 'Other',
  });
  expect(await statusBy({ permissions: ['connection:use'], workspace_ids: [other.body.workspace_id] })).toBe(403);
  for (const role of ['viewer', 'member', 'editor'] as const)
    expect((await taken(id, await colleague(app, ann, role))).status, role).toBe(403);
  expect((await taken(id, await colleague(app, ann, 'admin'))).status).toBe(200);
  expect((await taken(id, await register(app, { name: 'mallory' }))).status).toBe(403);
  await app.services.activity.flush();
  const records = await revealsOf(connectionId);
  expect(records.filter(({ success }) => success)).toHaveLength(2);
});

test('a token for a namespace gets the connection of the namespace, and not that of the workspace', async () => {
  const { id } = await connectedOne();
  const { body: namespace } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
    name: 'Theirs',
    slug: 'theirs',
  });
  const home = `${ann.home}/namespaces/${namespace.namespace_id}/connections`;
  const { headers } = await issueToken(app, ann, {
    permissions: ['connection:use'],
    namespace_ids: [namespace.namespace_id],
  });
  const byToken = async (url: string) => (await app.server.inject({ method: 'POST', url, headers })).statusCode;
  expect([await byToken(urlOf(id)), await byToken(`${home}/${id}/token`)]).toEqual([403, 403]);
  // whoever is not confined to it may
  expect((await ann.call('POST', `${home}/${id}/token`)).status).toBe(200);
  await ann.call('POST', home, { tool_instance_id: id, api_key: 'key-of-namespace' });
  expect(await byToken(`${home}/${id}/token`)).toBe(200);
  expect((await ann.call<Json>('POST', `${home}/${id}/token`)).body).toMatchObject({
    access_token: 'key-of-namespace',
    auth_type: 'api_key',
    token_type: null,
    expires_at: null,
  });
});

test('there is none without a connection, of an inactive instance, or after the provider ended it', async () => {
  const unconnected = await makeInstanceAt(server, ann);
  expect(await taken(unconnected)).toMatchObject({ status: 404, body: { details: { resource_type: 'connection' } } });
  server.lifetime = 5;
  const { id } = await connectedOne();
  server.refreshTokens.clear();
  expect(await taken(id)).toMatchObject({ status: 409, body: { details: { reason: 'needs_reauth' } } });
  await ann.call('POST', `${instancesOf(ann)}/${id}/toggle?is_active=false`);
  expect(await taken(id)).toMatchObject({ status: 409, body: { details: { reason: 'instance_inactive' } } });
});
