import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  allow,
  CALLBACK,
  newApplication,
  peerOf,
  type RegisteredApplication,
  signedInBrowser,
  tokensOf,
} from '../identity/oauth/oauth-browser.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import type { BrowserWithCookies } from '../support/browser-with-cookies.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { issueToken } from '../support/tokens.ts';
import { calledOf } from './mcp-client.ts';

let app: TestApp;
let ann: Person;
let application: RegisteredApplication;
let browser: BrowserWithCookies;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  ann = await register(app, { name: 'ann' });
  application = await newApplication(ann);
  browser = await signedInBrowser(app, ann);
});
afterAll(() => app.close());

const grantedTo = async (scope: string, as = browser) =>
  tokensOf(app, as, await peerOf(app, application), { scope, resource: `${app.url}/mcp` });
const naming = (name: string) =>
  `mutation { createNamespace(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", input: {name: "${name}"}) {
    id } }`;
const call = (name: string, args: object, as: string, url = '/mcp') =>
  app.server.inject({
    method: 'POST',
    url,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${as}`,
    },
    payload: { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: args } },
  });
const challenge = (scope: string) =>
  'Bearer error="insufficient_scope", error_description="The access token does not name what this needs.", ' +
  `scope="${scope}", resource_metadata="${app.url}/.well-known/oauth-protected-resource/mcp"`;

test('a client of the protocol asks its user for what a call needs, and makes it again', async () => {
  let tokens: { access_token: string; token_type: string; scope?: string | undefined } =
    await grantedTo('workspace:read');
  let verifier = '';
  let back: URL | null = null;
  const asked: string[] = [];
  const transport = new StreamableHTTPClientTransport(new URL(`${app.url}/mcp`), {
    authProvider: {
      redirectUrl: CALLBACK,
      clientMetadata: { redirect_uris: [CALLBACK], client_name: 'Notes' },
      clientInformation: () => ({ client_id: application.id }),
      tokens: () => tokens,
      saveTokens: (given) => {
        tokens = given;
      },
      saveCodeVerifier: (given) => {
        verifier = given;
      },
      codeVerifier: () => verifier,
      redirectToAuthorization: async (url) => {
        asked.push(url.searchParams.get('scope') ?? '');
        back = await allow(app, browser, url);
      },
    },
  });
  const client = new Client(
    { name: 'a-test', version: '1.0.0' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } }, capabilities: {} },
  );
  await client.connect(transport);
  const make = () => client.callTool({ name: 'change', arguments: { mutation: naming('Stepped up') } });
  await expect(make()).rejects.toThrow();
  expect(asked).toEqual([expect.stringMatching(/^workspace:read namespace:create\b/)]);
  await transport.finishAuth(back!.searchParams);
  const made = calledOf((await make()) as Parameters<typeof calledOf>[0]);
  expect(made).toMatchObject({ isError: false, json: { data: { createNamespace: { id: expect.any(String) } } } });
  await client.close();
});

test('a call that the token does not name is refused with all that must be asked for', async () => {
  const { access_token: token } = await grantedTo('workspace:read');
  const refused = await call('change', { mutation: naming('Refused') }, token);
  expect([refused.statusCode, refused.headers['www-authenticate']]).toEqual([
    403,
    challenge('workspace:read namespace:create'),
  ]);
  expect(refused.json()).toEqual({
    jsonrpc: '2.0',
    id: 7,
    error: {
      code: -32600,
      message: 'The access token does not name what this needs.',
      data: { code: 'FORBIDDEN', required_permissions: ['namespace:create'], trace_id: expect.any(String) },
    },
  });
  const { rows } = await app.database.pool.query("select 1 from namespaces where name = 'Refused'");
  expect(rows).toEqual([]);
  // nobody is asked to agree to what cannot be made
  const remove = { mutation: `mutation { deleteSecret(orgId: "${ann.orgId}", id: "sec_1") { id } }` };
  expect((await call('change', remove, token)).headers['www-authenticate']).toBe(
    challenge('workspace:read secret:delete'),
  );
  const read = { query: `{ secrets(orgId: "${ann.orgId}") { totalCount } }` };
  expect((await call('read', read, token)).headers['www-authenticate']).toBe(challenge('workspace:read secret:read'));
  const ofWorkspace = await call('search_tools', {}, token, `/mcp/w/${ann.workspaceId}`);
  expect(ofWorkspace.headers['www-authenticate']).toBe(challenge('workspace:read tool_instance:read'));
});

test('nobody is asked for what would not help', async () => {
  const { access_token: token } = await grantedTo('workspace:read');
  const eve = await register(app, { name: 'eve' });
  const plain = async (args: object, as = token) => {
    const { statusCode, headers, body } = await call('change', args, as);
    expect([statusCode, headers['www-authenticate']]).toEqual([200, undefined]);
    return body;
  };
  // another organization, whether or not it is there
  for (const orgId of [eve.orgId, 'org_of_nobody'])
    await plain({ mutation: naming('N').replace(ann.orgId, orgId) }).then((text) =>
      expect(text).toContain('FORBIDDEN'),
    );
  // what no application gets
  const stream = 'mutation($i: CreateAuditStreamInput!) { createAuditStream(orgId: "o", input: $i) { id } }';
  await plain({ mutation: stream });
  // a user who has the right nowhere
  const viewer = await colleague(app, ann, 'viewer');
  const theirs = await grantedTo('workspace:read', await signedInBrowser(app, viewer));
  expect(await plain({ mutation: naming('N') }, theirs.access_token)).toContain('FORBIDDEN');
  // a token that somebody made
  const made = await issueToken(app, ann, { permissions: ['workspace:read'] });
  expect(await plain({ mutation: naming('N') }, made.plaintext_token)).toContain('FORBIDDEN');
});
