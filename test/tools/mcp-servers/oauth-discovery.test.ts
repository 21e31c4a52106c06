import type http from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CLIENT, type ExampleProvider, startExampleProvider } from '../../../scripts/example-provider.ts';
import { bearerChallenge } from '../../../src/tools/mcp-servers/challenge.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type McpServerOfOthers, startMcpServer } from '../../support/mcp-server.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { issueToken } from '../../support/tokens.ts';
import { makeTool } from '../../support/tool-instance.ts';
import { waitFor } from '../../support/wait.ts';
import { initiate, rowOf } from '../connections/connecting.ts';
import { instancesOf, type Json, newInstance } from '../tool-instances/instances.ts';

let app: TestApp;
let ann: Person;
let server: McpServerOfOthers;
let provider: ExampleProvider;
/** An authorization server that says what a test wants. */
let other: TargetServer;
/** What a stranger publishes, by its path; a function answers itself. */
const published = new Map<string, unknown>();

beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1,localhost' } });
  await app.listen();
  server = await startMcpServer('sessions');
  provider = await startExampleProvider({
    port: 0,
    callbackUrl: `${app.url}/connections/callback`,
    resource: server.url,
  });
  other = await startTarget((request, response) => publishedAt(request, response) || response.writeHead(404).end());
});
afterAll(async () => {
  await app.close();
  for (const one of [server, provider, other]) await one.close();
});
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
  server.first = guarded;
  published.clear();
  for (const one of [server, other]) one.requests.length = 0;
});

const METADATA = '/.well-known/oauth-protected-resource/mcp';
const originOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`;
const challenge = () => `Bearer realm="x, y", resource_metadata="${originOf(server)}${METADATA}", scope="read write"`;
const resourceBy = (issuer: string, more: Json = {}) => ({
  resource: server.url,
  authorization_servers: [issuer],
  scopes_supported: ['read'],
  ...more,
});

function publishedAt({ url }: http.IncomingMessage, response: http.ServerResponse): boolean {
  const found = published.get(url!);
  if (found === undefined) return false;
  if (typeof found === 'function') (found as (response: http.ServerResponse) => void)(response);
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found));
  return true;
}

/** Lets only tokens in that the provider has made for this server. */
async function guarded(request: http.IncomingMessage, response: http.ServerResponse): Promise<boolean> {
  if (publishedAt(request, response)) return true;
  const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1];
  const found = token ? await provider.provider.AccessToken.find(token) : undefined;
  if (found?.isValid && found.aud === server.url) return false;
  response.writeHead(401, { 'www-authenticate': challenge() }).end();
  return true;
}

interface Preview extends Json {
  authorization: Json & { outcome: string; message: string; scopes: string[] };
  credential_schema: Json[];
  total: number;
}
interface Tool extends Json {
  tool_id: string;
  credential_schema: Json[];
  action_schemas: Json[];
}
const imports = () => `/v1/orgs/${ann.orgId}/tools/import`;
const asked = async <Body>(path: string, body: Json, status: number, who = ann) => {
  const answer = await who.call<Body>('POST', path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(status);
  return answer.body;
};
const preview = (body: Json = {}) =>
  asked<Preview>(`${imports()}/preview`, { kind: 'mcp', url: server.url, ...body }, 200);
const refusalOf = async (body: Json = {}) => {
  const given = { kind: 'mcp', url: server.url, ...body };
  const { detail } = await asked<{ detail: { loc: string[]; msg: string }[] }>(`${imports()}/preview`, given, 422);
  return detail.map(({ loc, msg }) => `${loc.at(-1)}: ${msg.replace('Value error, ', '')}`).join();
};

describe('a server that takes tokens of a certified authorization server', () => {
  test('is imported, signed in at, read with the connection, and called', async () => {
    published.set(METADATA, resourceBy(provider.url));
    const shown = await preview();
    const oauth = {
      name: 'oauth',
      display_name: 'Sign in',
      type: 'oauth2',
      authorization_url: `${provider.url}/auth`,
      token_url: `${provider.url}/token`,
      revocation_url: `${provider.url}/token/revocation`,
      scopes: ['read', 'write'],
      pkce: true,
      token_endpoint_auth_method: 'client_secret_basic',
      resource: server.url,
      issuer: provider.url,
      authorization_response_iss_parameter_supported: true,
      required: true,
    };
    expect(shown).toMatchObject({ format: 'unknown', total: 0, operations: [], credential_schema: [oauth] });
    expect(shown.authorization).toEqual({
      outcome: 'found',
      message: `The server takes tokens of the authorization server ${provider.url}/.`,
      issuer: provider.url,
      resource: server.url,
      scopes: ['read', 'write'],
      client_id: null,
    });
    const { document_digest } = shown;
    const given = { kind: 'mcp', url: server.url, slug: 'others', name: 'Others', document_digest };
    const tool = await asked<Tool>(imports(), { ...given, operations: [] }, 201);
    expect([tool.credential_schema, tool.action_schemas]).toEqual([[oauth], []]);

    // the administrator brings the client, as for other tools
    const secret = { name: 'others', secret_type: 'oauth2', value: { client_secret: CLIENT.secret } };
    const { secret_id } = await asked<{ secret_id: string }>(`/v1/orgs/${ann.orgId}/secrets`, secret, 201);
    const { instance_id: id } = await newInstance(ann, tool.tool_id, {
      configuration: {},
      auth_mode: 'oauth2',
      connection_credentials: { client_id: CLIENT.id, client_secret_vault_id: secret_id },
    });
    const again = `/v1/orgs/${ann.orgId}/tools/${tool.tool_id}/import`;
    const early = await ann.call<Json>('POST', `${again}/preview`, { tool_instance_id: id });
    expect([early.status, early.body.details]).toMatchObject([409, { reason: 'no_credentials' }]);
    const begun = await initiate(ann, `${ann.home}/connections`, id);
    expect(new URL(begun.authorization_url).searchParams.get('resource')).toBe(server.url);
    const back = await newBrowserWithCookies().follow(begun.authorization_url, `${app.url}/connections/callback`);
    const code = back.searchParams.get('code')!;
    // another server cannot have this code redeemed as its own (RFC 9207)
    const finish = (iss: string | null) => {
      const query = new URLSearchParams({ code, state: begun.state, ...(iss && { iss }) }).toString();
      return ann.call<{ detail: { loc: string[] }[] }>('POST', `/v1/connections/oauth/exchange?${query}`);
    };
    for (const iss of [null, 'https://evil.example.com']) {
      const refused = await finish(iss);
      expect([refused.status, refused.body.detail[0]!.loc]).toEqual([422, ['query', 'iss']]);
    }
    expect((await finish(back.searchParams.get('iss'))).status).toBe(200);

    const compared = await asked<Json>(`${again}/preview`, { tool_instance_id: id }, 200);
    // it is recorded whose credential the server got
    await waitFor(async () =>
      expect(
        await app.database.prisma.activity.findFirst({ where: { action: 'view', resourceId: begun.connection_id } }),
      ).toMatchObject({ resourceType: 'connection', userId: ann.userId, metadata: { tool_instance_id: id } }),
    );
    expect(compared).toMatchObject({
      total: 3,
      other_credentials: false,
      changes: [{ operation: 'echo', change: 'added' }, {}, {}],
      authorization: { outcome: 'found' },
    });
    await asked<Tool>(again, { operations: ['echo'], tool_instance_id: id }, 200);
    const run = () =>
      asked<Json>(`${instancesOf(ann)}/${id}/execute`, { action: 'echo', parameters: { text: 'x' } }, 200);
    expect(await run()).toMatchObject({ success: true, result: 'echo was called' });

    // a token that is refreshed is for the same server
    const refreshAt = new Date(0);
    await app.database.prisma.connection.update({ where: { id: begun.connection_id }, data: { refreshAt } });
    await app.services.connectionRefresh.refreshDue({ signal: new AbortController().signal });
    await waitFor(async () => expect((await rowOf(app, begun.connection_id)).lastRefreshedAt).not.toBeNull());
    expect(await run()).toMatchObject({ success: true });
  });

  test('is read with a connection only at its own address, and by those who may use it', async () => {
    published.set(METADATA, resourceBy(provider.url));
    const tool = await asked<Tool>(imports(), { kind: 'mcp', url: server.url, slug: 'others', operations: [] }, 201);
    const { instance_id: id } = await newInstance(ann, tool.tool_id, { configuration: {} });
    const again = `/v1/orgs/${ann.orgId}/tools/${tool.tool_id}/import/preview`;
    const elsewhere = await ann.call<Json>('POST', again, { tool_instance_id: id, url: `${originOf(other)}/mcp` });
    expect([elsewhere.status, JSON.stringify(elsewhere.body)]).toEqual([
      422,
      expect.stringContaining('address of the tool'),
    ]);
    const bob = await register(app, { name: 'bob' });
    const strange = await bob.call('POST', again.replace(ann.orgId, bob.orgId), { tool_instance_id: id });
    expect(strange.status).toBe(404);
    const own = await newInstance(
      ann,
      (await asked<Tool>(imports(), { kind: 'mcp', url: server.url, slug: 'two', operations: [] }, 201)).tool_id,
      { configuration: {} },
    );
    expect((await ann.call('POST', again, { tool_instance_id: own.instance_id })).status).toBe(404);
    const { headers } = await issueToken(app, ann, { permissions: ['tool:update', 'tool:read', 'connection:read'] });
    const answer = await app.server.inject({ method: 'POST', url: again, headers, payload: { tool_instance_id: id } });
    expect([answer.statusCode, answer.body]).toEqual([403, expect.stringContaining('connection:use')]);
    expect(other.requests).toEqual([]);
  });

  test('is not read with a connection of a tool that is of another server now, or does not run', async () => {
    server.first = null;
    const credential = { credential: 'a-key-for-the-import' };
    const body = { kind: 'mcp', url: server.url, slug: 'others', operations: ['echo'], ...credential };
    const tool = await asked<Tool>(imports(), body, 201);
    const at = `/v1/orgs/${ann.orgId}/tools/${String(tool.tool_id)}`;
    const { instance_id: id } = await newInstance(ann, String(tool.tool_id), { configuration: {} });
    const connected = { tool_instance_id: id, api_key: 'the-key-of-the-vendor' };
    await asked(`${ann.home}/connections/api-key`, connected, 201);
    const put = async (path: string, given: Json) => {
      const answer = await ann.call('PUT', path, given);
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    };
    const again = () => ann.call<Json>('POST', `${at}/import/preview`, { tool_instance_id: id });
    expect((await again()).status).toBe(200);
    await put(`${instancesOf(ann)}/${id}`, { is_active: false });
    const inactive = await again();
    expect([inactive.status, inactive.body.details]).toMatchObject([409, { reason: 'instance_inactive' }]);
    await put(`${instancesOf(ann)}/${id}`, { is_active: true });

    const [action] = tool.action_schemas;
    server.requests.length = 0;
    const oauth = { name: 'oauth', type: 'oauth2', authorization_url: `${originOf(other)}/a` };
    const ofVendor = { ...oauth, token_url: `${originOf(other)}/t`, resource: `${originOf(other)}/mcp` };
    for (const now of [
      { action_schemas: [{ ...action, url_template: `${originOf(other)}/mcp` }] },
      { action_schemas: [] },
      { action_schemas: [], credential_schema: [...tool.credential_schema, ofVendor] },
    ]) {
      await put(at, now);
      const refused = await again();
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([422, expect.stringContaining('elsewhere')]);
      expect(refused.body.detail).toMatchObject([{ loc: ['body', 'tool_instance_id'] }]);
    }
    expect(server.requests).toEqual([]);
  });

  test('has its tools listed with a token that is given, and both entries then', async () => {
    published.set(METADATA, resourceBy(provider.url));
    server.first = (request, response) => {
      if (publishedAt(request, response)) return true;
      if (request.headers.authorization === 'Bearer its-own-key') return false;
      response.writeHead(401, { 'www-authenticate': challenge() }).end();
      return true;
    };
    const shown = await preview({ credential: 'its-own-key' });
    expect([shown.total, shown.authorization.outcome]).toEqual([3, 'found']);
    expect(shown.credential_schema).toMatchObject([
      { name: 'oauth', scopes: ['read', 'write'], required: true },
      { name: 'credential', placement: { name: 'Authorization' }, required: false },
    ]);
    // nobody but the server gets it
    const others = server.requests.filter(({ path }) => path !== '/mcp');
    expect([others.length > 0, others.every(({ headers }) => headers.authorization === undefined)]).toEqual([
      true,
      true,
    ]);
    expect(await refusalOf({ credential: 'another' })).toMatch(/^credential: The server answers 401/);
  });
});

describe('metadata of strangers', () => {
  const WELL_KNOWN = '/.well-known/oauth-authorization-server';
  const issuer = () => originOf(other);
  const metadata = (more: Json = {}) => ({
    issuer: issuer(),
    authorization_endpoint: `${issuer()}/authorize`,
    token_endpoint: `${issuer()}/token`,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_post'],
    ...more,
  });
  const publish = (resource: Json, ofServer: Json | null) => {
    published.set(METADATA, { ...resourceBy(issuer()), ...resource });
    if (ofServer) published.set(WELL_KNOWN, metadata(ofServer));
  };

  test('is found where RFC 8414 and OpenID have it, at issuers with a path too, and without a challenge', async () => {
    publish({}, {});
    server.first = publishedAt; // it lists its tools to everybody
    const open = await preview();
    expect([open.total, open.authorization.outcome, open.authorization.scopes]).toEqual([3, 'found', ['read']]);
    expect(open.credential_schema).toMatchObject([
      { name: 'oauth', token_endpoint_auth_method: 'client_secret_post', required: false },
    ]);
    for (const place of [
      '/.well-known/oauth-authorization-server/tenant',
      '/.well-known/openid-configuration/tenant',
      '/tenant/.well-known/openid-configuration',
    ]) {
      published.clear();
      published.set('/.well-known/oauth-protected-resource', {
        resource: originOf(server),
        authorization_servers: [`${issuer()}/tenant`],
      });
      published.set(place, metadata({ issuer: `${issuer()}/tenant`, scopes_supported: ['a', 'offline_access'] }));
      const { authorization } = await preview();
      expect([authorization.outcome, authorization.resource, authorization.scopes]).toEqual([
        'found',
        originOf(server),
        ['offline_access'],
      ]);
    }
    published.clear();
    const none = await preview();
    expect([none.authorization.outcome, none.credential_schema[0]!.name]).toEqual(['none', 'credential']);
  });

  test.each<[string, Json, Json | null, RegExp]>([
    ['of another resource', { resource: 'https://mcp.example.com/mcp' }, {}, /that of another resource/],
    ['of a resource beside it', { resource: '/other' }, {}, /that of another resource/],
    ['of a resource that others read in another way', { resource: '/x/..' }, {}, /that of another resource/],
    ['of a resource with backslashes', { resource: '\\' }, {}, /that of another resource/],
    ['without an authorization server', { authorization_servers: [] }, {}, /names no authorization server/],
    ['of a server that publishes nothing', {}, null, /publishes no metadata/],
    ['of another issuer', {}, { issuer: 'https://evil.example.com' }, /names another issuer/],
    ['without PKCE', {}, { code_challenge_methods_supported: ['plain'] }, /PKCE with S256/],
    ['that does not speak of PKCE', {}, { code_challenge_methods_supported: undefined }, /PKCE with S256/],
    ['without codes', {}, { grant_types_supported: ['client_credentials'] }, /by an authorization code/],
    ['with clients of its own kind', {}, { token_endpoint_auth_methods_supported: ['tls_client_auth'] }, /no client/],
    [
      'with a token address inside',
      {},
      { token_endpoint: 'https://169.254.169.254/token' },
      /'token_endpoint'.*does not call/,
    ],
    // what the operator has opened by its name
    [
      'with tokens at a host inside',
      {},
      { token_endpoint: 'https://localhost/token' },
      /'token_endpoint'.*does not call/,
    ],
    [
      'with a revocation at a host inside',
      {},
      { revocation_endpoint: 'https://localhost:8443/revoke' },
      /'revocation_endpoint'.*does not call/,
    ],
    [
      'with a page inside',
      {},
      { authorization_endpoint: 'https://10.0.0.1/' },
      /'authorization_endpoint'.*does not call/,
    ],
    ['with a script', {}, { authorization_endpoint: 'javascript:alert(1)' }, /none of an authorization server/],
    ['with an issuer inside', { authorization_servers: ['https://10.0.0.1'] }, {}, /cannot be read.*does not call/],
    ['that sends tokens in the query only', { bearer_methods_supported: ['query'] }, {}, /in the header Authorization/],
  ])('%s is not used, and the reason is told', async (_what, resource, ofServer, why) => {
    const { resource: named } = resource;
    const below = typeof named === 'string' && /^[/\\]/.test(named) ? { resource: `${server.url}${named}` } : {};
    publish({ ...resource, ...below }, ofServer);
    expect(await refusalOf()).toMatch(why);
    // a server that lists its tools has them taken all the same
    server.first = publishedAt;
    const { total, authorization, credential_schema: schema } = await preview();
    expect([total, authorization.outcome, schema.map(({ type }) => type)]).toEqual([3, 'unusable', ['secret']]);
    expect(authorization.message).toMatch(why);
  });

  test('at an inside address that the operator has opened is not opened for a server elsewhere', async () => {
    publish({ authorization_servers: [`http://localhost:${other.port}`] }, {});
    expect(await refusalOf()).toMatch(/cannot be read.*does not call/);
    expect(other.requests).toEqual([]);
  });

  test('of another issuer than that of the tool is shown as other credentials', async () => {
    server.first = publishedAt;
    publish({}, {});
    const body = { kind: 'mcp', url: server.url, slug: 'others', operations: ['echo'] };
    const { tool_id } = await asked<Tool>(imports(), body, 201);
    const again = () => asked<Json>(`/v1/orgs/${ann.orgId}/tools/${tool_id}/import/preview`, {}, 200);
    expect(await again()).toMatchObject({ other_credentials: false });
    publish({ authorization_servers: [`${issuer()}/b`] }, null);
    published.set(`${WELL_KNOWN}/b`, metadata({ issuer: `${issuer()}/b` }));
    expect(await again()).toMatchObject({ other_credentials: true });
  });

  test('that is huge, nested, endless or elsewhere is left', async () => {
    const reasons: RegExp[] = [];
    const told = async (why: RegExp, answer: (response: http.ServerResponse) => void) => {
      published.set(METADATA, answer);
      reasons.push(why);
      expect(await refusalOf()).toMatch(why);
    };
    await told(/too large/, (response) => void response.end(JSON.stringify({ resource: 'x'.repeat(70_000) })));
    await told(/too many parts/, (response) => void response.end(`{"a":${'['.repeat(50)}${']'.repeat(50)}}`));
    await told(/no metadata/, (response) => void response.writeHead(302, { location: `${issuer()}/x` }).end());
    await told(/no metadata/, (response) => void response.end('<html>'));
    await told(/did not answer in time/, (response) => {
      const more = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(more));
    });
    expect(other.requests).toEqual([]);
    server.first = (_request, response) => {
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${issuer()}/x"` }).end();
      return true;
    };
    expect(await refusalOf()).toMatch(/not at its own host/);
    expect(other.requests).toEqual([]);
  });
});

test('a service at an https address is a client by its own document, where servers take such', async () => {
  const at = 'https://platform.example.com';
  const secure = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', PUBLIC_URL: at } });
  const dora = await register(secure, { name: 'dora' });
  published.set(METADATA, resourceBy(originOf(other)));
  const publish = (more: Json = {}) =>
    published.set('/.well-known/oauth-authorization-server', {
      issuer: originOf(other),
      authorization_endpoint: `${originOf(other)}/authorize`,
      token_endpoint: `${originOf(other)}/token`,
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
      registration_endpoint: `${originOf(other)}/register`,
      ...more,
    });
  publish();
  const path = `/v1/orgs/${dora.orgId}/tools/import/preview`;
  const { authorization } = await asked<Preview>(path, { kind: 'mcp', url: server.url }, 200, dora);
  const clientId = `${at}/connections/client-metadata.json`;
  expect(authorization).toMatchObject({
    client_id: clientId,
    message: expect.stringContaining('registers clients by itself, which this service does not use'),
  });
  const document = await secure.server.inject('/connections/client-metadata.json');
  expect(document.json()).toEqual({
    client_id: clientId,
    client_name: 'Platform at platform.example.com',
    client_uri: at,
    redirect_uris: [`${at}/connections/own-callback`],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'web',
  });

  // where codes do not say whose they are, those of others would come to this client
  publish({ authorization_response_iss_parameter_supported: false });
  const silent = await asked<Preview>(path, { kind: 'mcp', url: server.url }, 200, dora);
  expect(silent.authorization).toMatchObject({ outcome: 'found', client_id: null });

  const begunAt = async (service: Json, connection_credentials: Json) => {
    const toolId = await makeTool(dora, { name: 'oauth', type: 'oauth2', ...ENDPOINTS, ...service });
    const given = { configuration: {}, auth_mode: 'oauth2', connection_credentials };
    const begun = await initiate(
      dora,
      `${dora.home}/connections`,
      (await newInstance(dora, toolId, given)).instance_id,
    );
    return { ...begun, redirectUri: new URL(begun.authorization_url).searchParams.get('redirect_uri') };
  };
  const others = await begunAt({}, { client_id: 'registered' });
  expect([others.redirectUri, others.state.startsWith('own_')]).toEqual([`${at}/connections/callback`, false]);
  // whatever the tool says of its server, the answer must name it
  for (const service of [{}, { issuer: originOf(other) }]) {
    const own = await begunAt(service, { client_id: clientId });
    expect([own.redirectUri, own.state.startsWith('own_')]).toEqual([`${at}/connections/own-callback`, true]);
    for (const iss of [null, 'https://honest.example.com']) {
      const query = new URLSearchParams({ code: 'of-the-honest', state: own.state, ...(iss && { iss }) });
      const refused = await dora.call<Json>('POST', `/v1/connections/oauth/exchange?${query.toString()}`);
      expect([refused.status, refused.body.detail]).toMatchObject([422, [{ loc: ['query', 'iss'] }]]);
    }
  }
  expect(other.requests.filter(({ method }) => method === 'POST')).toEqual([]);
  await secure.close();
});

/** Of an authorization server that nobody calls. */
const ENDPOINTS = {
  authorization_url: 'https://evil.example.com/authorize',
  token_url: 'https://evil.example.com/token',
};

test.each([
  [null, null],
  ['Basic realm="bearer x"', null],
  ['Bearer', { resourceMetadata: null, scope: null }],
  [
    'Basic realm="a", bearer scope=read, resource_metadata = "https://a/\\"b"',
    { resourceMetadata: 'https://a/"b', scope: 'read' },
  ],
  ['Bearer scope="one", DPoP scope="two"', { resourceMetadata: null, scope: 'one' }],
])('the challenge %s is read', (header, found) => {
  expect(bearerChallenge(header)).toEqual(found);
});

test('a challenge with a long word is read, and a long one is not', () => {
  const word = `Bearer ${'a'.repeat(3_000)}=1, scope=x`;
  expect(bearerChallenge(word)).toEqual({ resourceMetadata: null, scope: 'x' });
  expect(bearerChallenge(`Bearer scope="${'x'.repeat(4_096)}"`)).toBeNull();
});
