import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { issueToken } from '../support/tokens.ts';
import { waitUntil } from '../support/wait.ts';
import { instancesOf, newInstance, newTool } from '../tools/tool-instances/instances.ts';
import { connect } from './mcp-client.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const tokenOf = async (person: Person, given: Record<string, unknown> = { scopes: ['admin'] }) =>
  issueToken(app, person, given);
const KEY = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } };
const GET = { name: 'get', method: 'GET', url_template: 'https://api.example.test/get' };
const pathOf = (person = ann) => `/mcp/w/${person.workspaceId}`;

describe.each(['modern', 'legacy'] as const)('a client of the %s revision', (era) => {
  test('is told that the tools of the workspace have changed, and of no other', async () => {
    const bob = await register(app, { name: 'bob' });
    await waitUntil(() => app.services.tail.size === 0);
    const told = { ann: 0, bob: 0 };
    const { plaintext_token: token } = await tokenOf(ann);
    const client = await connect(app, token, { era, path: pathOf(), onListChanged: () => told.ann++ });
    const theirs = await tokenOf(bob);
    const other = await connect(app, theirs.plaintext_token, {
      era,
      path: pathOf(bob),
      onListChanged: () => told.bob++,
    });
    expect(client.client.getServerCapabilities()?.tools).toEqual({ listChanged: true });
    const toolId = await newTool(ann, { config_schema: [], credential_schema: [KEY], action_schemas: [GET] });
    const instance = await newInstance(ann, toolId, { configuration: { api_key: 'a-key' } });
    // both are listening
    await waitUntil(() => app.services.tail.size === 2);
    await waitUntil(async () => {
      // the stream of an earlier client opens after its first answer: what happened before is not told
      if (told.ann === 0) await ann.call('POST', `${instancesOf(ann)}/${instance.instance_id}/toggle?is_active=true`);
      return told.ann > 0;
    });
    expect((await client.client.listTools()).tools.map(({ name }) => name.split('__')[1])).toContain('get');
    expect(told.bob).toBe(0);
    await Promise.all([client.client.close(), other.client.close()]);
  });
});

const GET_HEADERS = { accept: 'text/event-stream' };
const follow = (token: string, path = pathOf(), headers: Record<string, string> = GET_HEADERS) =>
  fetch(`${app.url}${path}`, { headers: { ...headers, authorization: `Bearer ${token}` } });
const listen = (token: string, path = pathOf()) =>
  fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'subscriptions/listen',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 3,
      method: 'subscriptions/listen',
      params: {
        notifications: { toolsListChanged: true },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  });

test.each([
  ['GET', follow],
  ['subscriptions/listen', listen],
] as const)('a stream by %s ends with its token', async (_how, open) => {
  const issued = await tokenOf(ann);
  const stream = await open(issued.plaintext_token);
  expect([stream.status, ...['content-type', 'connection'].map((name) => stream.headers.get(name))]).toEqual([
    200,
    'text/event-stream',
    'close',
  ]);
  await ann.call('DELETE', `/v1/orgs/${ann.orgId}/api-tokens/${issued.id}`);
  expect(await stream.text()).not.toContain('"id":3,"error"');
});

test.each([
  ['GET', follow],
  ['subscriptions/listen', listen],
] as const)('a stream by %s is over when its client has left', async (_how, open) => {
  const { plaintext_token: token } = await tokenOf(ann);
  const stream = await open(token);
  await waitUntil(() => app.services.tail.size > 0);
  await stream.body!.cancel();
  await waitUntil(() => app.services.tail.size === 0);
});

test('streams of workspaces that the caller does not reach are refused', async () => {
  const { plaintext_token: token } = await tokenOf(ann);
  const eve = await register(app, { name: 'eve' });
  for (const path of [pathOf(eve), '/mcp/w/ws_of_nobody'])
    for (const open of [follow, listen]) expect([403, 404]).toContain((await open(token, path)).status);
  expect((await follow(ann.accessToken)).status).toBe(401);
  expect((await follow(token, `/mcp/%77/${ann.workspaceId}`)).status).toBe(404);
  expect((await follow(token, pathOf(), { ...GET_HEADERS, origin: 'http://rebound.example.test' })).status).toBe(403);
});

test('a token that may not follow events has no stream, and is not promised one', async () => {
  const { plaintext_token: token } = await tokenOf(ann, { permissions: ['tool_instance:read', 'workspace:read'] });
  expect((await follow(token)).status).toBe(405);
  expect((await follow((await tokenOf(ann)).plaintext_token, pathOf(), { accept: 'text/html' })).status).toBe(405);
  const { client } = await connect(app, token, { path: pathOf() });
  expect(client.getServerCapabilities()?.tools).toEqual({});
  // it is acknowledged with nothing, and ends
  expect(await (await listen(token)).text()).toContain('"notifications":{}');
});
