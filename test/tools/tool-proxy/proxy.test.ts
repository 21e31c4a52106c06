import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { whileOpen } from '../../../src/http/tool-proxy-routes.ts';
import { ApiError } from '../../../src/kernel/errors.ts';
import { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { ConnectionRefusals } from '../../../src/tools/connections/connection-refusals.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { hurryTimers } from '../../support/passing-time.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { type Answering, startRawTarget, startTarget, type TargetServer } from '../../support/target-server.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';
import { connect, makeInstanceAt, rowOf } from '../connections/connecting.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool } from '../tool-instances/instances.ts';

let app: TestApp;
let url: string;
let target: TargetServer;
let oauth: OAuthServer;
let ann: Person;
let answer: Answering;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  [target, oauth] = await Promise.all([
    startTarget((request, response, body) => answer(request, response, body)),
    startOAuthServer(),
  ]);
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
  url = await app.listen();
});
beforeEach(async () => {
  answer = (_request, response) => response.end('{"ok":true}');
  target.requests.length = 0;
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  for (const close of closers) await close();
  await app.close();
  await Promise.all([target.close(), oauth.close()]);
});

const KEY = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } };

/** An instance whose actions go to a port of this machine, with a key of its own. */
async function instanceAt(port = target.port, tool: Json = {}, configuration: Json = {}): Promise<Instance> {
  const toolId = await newTool(ann, {
    config_schema: [{ name: 'base_url', type: 'string' }],
    credential_schema: [KEY],
    action_schemas: [{ name: 'run', method: 'GET', url_template: '{{base_url}}/things' }],
    ...tool,
  });
  return newInstance(ann, toolId, {
    configuration: { base_url: `http://127.0.0.1:${port}/v1`, api_key: 'a-key-of-theirs', ...configuration },
  });
}

const pathOf = ({ instance_id }: { instance_id: string }, path = 'things') =>
  `${instancesOf(ann)}/${instance_id}/proxy/${path}`;

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
  isWhole: boolean;
}

/** A request as it is written: nothing resolves its path first. */
async function ask(
  path: string,
  { method = 'GET', headers = ann.headers, body }: { method?: string; headers?: Json; body?: string } = {},
): Promise<Answer> {
  const request = http.request(url, { path, method, headers: headers as Record<string, string> });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  const isWhole = await (async () => {
    try {
      for await (const chunk of response) chunks.push(chunk as Buffer);
      return true;
    } catch {
      return false;
    }
  })();
  return { status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks).toString(), isWhole };
}

const errorOf = ({ status, body }: Answer) => {
  const { error, details } = JSON.parse(body) as { error: string; details: Json };
  return { status, error, details };
};

async function recordsOf({ instance_id }: Instance) {
  await app.services.activity.flush();
  return app.database.prisma.activity.findMany({
    where: { resourceId: instance_id, action: 'execute' },
    orderBy: { timestamp: 'asc' },
  });
}

/** Also of one that is reset. */
const closed = (socket: net.Socket) => new Promise((resolve) => socket.once('close', resolve));

/** A server that does with a connection what the test says. */
async function raw(bytes: (socket: net.Socket) => void, configuration: Json = {}): Promise<Instance> {
  const server = await startRawTarget((socket) => {
    socket.once('data', () => bytes(socket));
  });
  closers.push(() => server.close());
  return instanceAt(server.port, {}, configuration);
}

const connectKey = ({ instance_id }: Instance, key = 'of-all', at = `${ann.home}/connections/api-key`) =>
  ann.call<{ connection_id: string }>('POST', at, { tool_instance_id: instance_id, api_key: key });

/** A connection of its own, for what is written and read as it is. */
function socketTo(path: string, head: string): { socket: net.Socket; text: () => string } {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined);
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString();
  });
  onTestFinished(() => void socket.destroy());
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${ann.headers.authorization}\r\n${head}\r\n\r\n`);
  return { socket, text: () => text };
}

describe('a call', () => {
  test('goes to the provider with the credential, and its answer comes back', async () => {
    answer = (_request, response) =>
      response
        .writeHead(201, { 'content-type': 'text/html', 'set-cookie': 'a=1', 'x-kind': 'pot', etag: '"7"' })
        .end('<script>1</script>');
    const instance = await instanceAt();
    const given = {
      ...ann.headers,
      'content-type': 'text/plain',
      'x-api-key': 'mine',
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
    };
    const { status, headers, body } = await ask(pathOf(instance, 'a%2Fb/c?q=1&q=%20'), {
      method: 'POST',
      headers: given,
      body: 'tea',
    });
    expect([status, body]).toEqual([201, '<script>1</script>']);
    expect(headers).toMatchObject({
      'content-type': 'text/html',
      'x-kind': 'pot',
      etag: '"7"',
      'x-tool-status': '201',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cache-control': 'no-store',
      'x-trace-id': expect.any(String),
    });
    expect(headers).not.toHaveProperty('set-cookie');
    expect(target.requests).toEqual([
      {
        method: 'POST',
        path: '/v1/a%2Fb/c?q=1&q=%20',
        body: 'tea',
        headers: {
          host: `127.0.0.1:${target.port}`,
          connection: 'close',
          'user-agent': 'platform-management-api',
          'content-type': 'text/plain',
          'content-length': '3',
          'x-api-key': 'a-key-of-theirs',
          ...(target.requests[0]?.headers.traceparent && { traceparent: target.requests[0].headers.traceparent }),
        },
      },
    ]);
  });

  test.each(['application/json; charset=latin1', 'json', 'a/b, a/b', 'x y/z'])(
    'has the type that the provider gave it, also if that is none: %s',
    async (type) => {
      answer = (_request, response) => response.writeHead(200, { 'content-type': type }).end('tea');
      const instance = await instanceAt();
      for (const method of ['GET', 'POST']) {
        const { status, headers, body } = await ask(pathOf(instance, 'x'), { method, headers: ann.headers });
        expect([status, headers['content-type'], body]).toEqual([200, type, 'tea']);
      }
    },
  );

  test('goes over a connection that calls of its organization have kept, and no other organization has', async () => {
    const instance = await instanceAt();
    const requests = () => target.requests.length;
    /** How many connections the provider sees of some calls. */
    const seen = async (calls: () => Promise<unknown>) => {
      const before = target.connections;
      await calls();
      return target.connections - before;
    };
    const get = () => ask(pathOf(instance));
    // a machine that is busy for seconds may let one end
    await waitUntil(async () => (await seen(get)) === 0);
    const sent = requests();
    expect(await seen(() => ask(pathOf(instance), { method: 'POST', body: 'tea' }))).toBe(1);
    target.cut();
    expect((await get()).status).toBe(200);
    expect(requests()).toBe(sent + 2);
    ann = await register(app, { name: 'zoe' });
    const other = await instanceAt();
    expect(await seen(() => ask(pathOf(other)))).toBe(1);
  });

  test('reads all that it needs in one statement', async () => {
    const instance = await instanceAt();
    const log = logQueries(app.database.pool);
    const call = () => app.server.inject({ url: pathOf(instance), headers: ann.headers });
    await call();
    // who may do what is read once a second
    await waitUntil(async () => (await log.by(call)).length <= 1);
    expect((await app.server.inject('/metrics')).body).toMatch(
      /platform_tool_proxy_calls_total\{outcome="answered"\} \d/,
    );
  });

  test('is recorded once with its sizes, without any value of it', async () => {
    const instance = await instanceAt();
    await ask(pathOf(instance, 'people/zoe@example.test?token=tell-nobody'), { method: 'PUT', body: 'tea' });
    const records = await waitUntil(async () => {
      const found = await recordsOf(instance);
      return found.length > 0 && found;
    });
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({
      method: 'PUT',
      path: `${instancesOf(ann)}/${instance.instance_id}/proxy/…`,
      resourceType: 'tool_instance',
      userId: ann.userId,
      workspaceId: ann.home.split('/').at(-1),
      statusCode: 200,
      success: true,
      durationMs: expect.any(Number),
      metadata: { proxy: true, code: 'answered', status: 200, request_bytes: 3, response_bytes: 11 },
    });
    expect(JSON.stringify(records)).not.toMatch(/zoe@|tell-nobody|a-key/);
  });

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('is %s', async (method) => {
    answer = (_request, response) => response.setHeader('content-length', 4).end('tea!');
    const instance = await instanceAt();
    const got = await ask(pathOf(instance), { method });
    expect([got.status, got.headers['content-length'], got.body]).toEqual([200, '4', method === 'HEAD' ? '' : 'tea!']);
    expect(target.requests[0]!.method).toBe(method);
  });

  test('of another method is none', async () => {
    const instance = await instanceAt();
    expect(errorOf(await ask(pathOf(instance), { method: 'PROPFIND' }))).toMatchObject({
      status: 405,
      error: 'METHOD_NOT_ALLOWED',
    });
  });

  test.each([204, 304])('is answered %s without a body', async (status) => {
    answer = (_request, response) => response.writeHead(status, { etag: '"1"' }).end();
    const got = await ask(pathOf(await instanceAt()));
    expect([got.status, got.headers.etag, got.body]).toEqual([status, '"1"', '']);
  });

  test('that is redirected is not followed, and its client does not follow it by itself', async () => {
    answer = (_request, response) => response.writeHead(307, { location: `${url}/v1/users/me` }).end();
    const got = await ask(pathOf(await instanceAt()), { method: 'DELETE' });
    expect(got).toMatchObject({ status: 307, headers: { 'x-tool-location': `${url}/v1/users/me` } });
    expect(got.headers).not.toHaveProperty('location');
    expect(target.requests).toHaveLength(1);
  });

  test('sends the credential where the tool says', async () => {
    const sent = async (tool: Json, configuration: Json = {}) => {
      target.requests.length = 0;
      const { status } = await ask(pathOf(await instanceAt(target.port, tool, configuration), 'x?key=mine'));
      expect(status).toBe(200);
      const [{ path, headers }] = target.requests as [TargetServer['requests'][0]];
      return { path, authorization: headers.authorization, key: headers['x-key'] };
    };
    expect(await sent({ credential_schema: [{ ...KEY, placement: { in: 'query', name: 'key' } }] })).toMatchObject({
      path: '/v1/x?key=a-key-of-theirs',
    });
    expect(
      await sent({
        credential_schema: [{ ...KEY, placement: { in: 'header', name: 'Authorization', prefix: 'Basic ' } }],
      }),
    ).toMatchObject({ authorization: 'Basic a-key-of-theirs' });
    expect(
      await sent({
        credential_schema: [{ name: 'api_key', type: 'secret' }],
        action_schemas: [{ name: 'run', url_template: '{{base_url}}/x', headers: { 'X-Key': 'v={{api_key}}' } }],
      }),
    ).toMatchObject({ key: 'v=a-key-of-theirs' });
  });

  test('goes to another host of the tool only if that is named', async () => {
    const other = await startTarget((_request, response) => response.end('other'));
    closers.push(() => other.close());
    const instance = await instanceAt(target.port, {
      action_schemas: [
        { name: 'run', url_template: '{{base_url}}/x' },
        { name: 'upload', url_template: `http://127.0.0.1:${other.port}/up` },
      ],
    });
    const at = (host: string) => ask(pathOf(instance), { headers: { ...ann.headers, 'x-tool-host': host } });
    expect((await at(`127.0.0.1:${other.port}`)).body).toBe('other');
    expect(other.requests[0]!.path).toBe('/things');
    expect(errorOf(await at('evil.test'))).toEqual({
      status: 400,
      error: 'INVALID_REQUEST',
      details: { reason: 'tool_host', hosts: [`127.0.0.1:${target.port}`, `127.0.0.1:${other.port}`] },
    });
  });
});

describe('who may', () => {
  test('needs the permission, which neither read nor write scopes have', async () => {
    const instance = await instanceAt();
    const statusBy = async (given: Json) =>
      (await ask(pathOf(instance), { headers: (await issueToken(app, ann, given)).headers })).status;
    expect(await statusBy({ scopes: ['read', 'write'] })).toBe(403);
    expect(await statusBy({ permissions: ['tool_instance:execute'] })).toBe(403);
    expect(await statusBy({ permissions: ['connection:use'] })).toBe(200);
    const end = `${instancesOf(ann)}/${instance.instance_id}`;
    expect(await statusBy({ permissions: ['connection:use'], endpoint_paths: [`${end}/proxy`] })).toBe(200);
    expect(await statusBy({ permissions: ['connection:use'], endpoint_paths: [`${end}/execute`] })).toBe(403);
    for (const role of ['viewer', 'member', 'editor'] as const)
      expect((await ask(pathOf(instance), { headers: (await colleague(app, ann, role)).headers })).status).toBe(403);
    const mallory = await register(app, { name: 'mallory' });
    expect((await ask(pathOf(instance), { headers: mallory.headers })).status).toBe(403);
    const elsewhere = pathOf(instance).replace(ann.home, mallory.home);
    expect(errorOf(await ask(elsewhere, { headers: mallory.headers })).details).toMatchObject({
      resource_type: 'tool_instance',
    });
    expect(errorOf(await ask(pathOf(instance), { headers: {} }))).toMatchObject({ status: 401 });
    expect(target.requests).toHaveLength(2);
    const refused = (await recordsOf(instance)).filter(({ success }) => !success);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]).toMatchObject({ statusCode: 403, errorCode: 'FORBIDDEN', path: expect.stringMatching(/…$/) });
  });

  test('a token for a namespace takes nothing out that the workspace keeps', async () => {
    const instance = await instanceAt(target.port, {}, { api_key: null });
    await ann.call('POST', `${ann.home}/connections/api-key`, {
      tool_instance_id: instance.instance_id,
      api_key: 'of-all',
    });
    const { body: namespace } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
      name: 'Theirs',
      slug: 'theirs',
    });
    const { headers } = await issueToken(app, ann, {
      permissions: ['connection:use'],
      namespace_ids: [namespace.namespace_id],
    });
    const inside = pathOf(instance).replace('/tool-instances', `/namespaces/${namespace.namespace_id}/tool-instances`);
    expect([(await ask(pathOf(instance), { headers })).status, (await ask(inside, { headers })).status]).toEqual([
      403, 403,
    ]);
    expect((await ask(inside)).status).toBe(200);
    expect(target.requests[0]!.headers['x-api-key']).toBe('of-all');
    const home = `${ann.home}/namespaces/${namespace.namespace_id}/connections`;
    await ann.call('POST', home, { tool_instance_id: instance.instance_id, api_key: 'of-theirs' });
    expect((await ask(inside, { headers })).status).toBe(200);
    expect(target.requests[1]!.headers['x-api-key']).toBe('of-theirs');
    expect((await ask(pathOf(instance))).status).toBe(200);
    expect(target.requests[2]!.headers['x-api-key']).toBe('of-all');
  });

  test('a token for a namespace does not send what the instance keeps beside a connection', async () => {
    const instance = await instanceAt(
      target.port,
      {
        credential_schema: [
          { name: 'api_key', type: 'secret' },
          { name: 'app_secret', type: 'secret', required: false },
        ],
        action_schemas: [
          {
            name: 'run',
            url_template: '{{base_url}}/x',
            headers: { 'X-Api-Key': '{{api_key}}', 'X-App': '{{app_secret}}' },
          },
        ],
      },
      { api_key: null, app_secret: 'of-the-workspace' },
    );
    const { body: namespace } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
      name: 'Beside',
      slug: 'beside',
    });
    const home = `/namespaces/${namespace.namespace_id}`;
    await connectKey(instance, 'of-theirs', `${ann.home}${home}/connections`);
    const { headers } = await issueToken(app, ann, {
      permissions: ['connection:use'],
      namespace_ids: [namespace.namespace_id],
    });
    const inside = pathOf(instance).replace('/tool-instances', `${home}/tool-instances`);
    expect((await ask(inside, { headers })).status).toBe(403);
    expect(target.requests).toEqual([]);
    expect((await ask(inside)).status).toBe(200);
    expect(target.requests[0]!.headers).toMatchObject({ 'x-app': 'of-the-workspace', 'x-api-key': 'of-theirs' });
  });

  test('a host that a secret is a part of is told to nobody, and none before the permission', async () => {
    const instance = await instanceAt(
      target.port,
      {
        credential_schema: [{ name: 'tenant', type: 'secret' }],
        action_schemas: [{ name: 'run', url_template: 'https://{{tenant}}.hooks.invalid/a' }],
      },
      { api_key: undefined, tenant: 'secret-of-the-workspace' },
    );
    const { body: namespace } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
      name: 'Other',
      slug: 'other',
    });
    const { headers } = await issueToken(app, ann, {
      permissions: ['connection:use'],
      namespace_ids: [namespace.namespace_id],
    });
    const inside = pathOf(instance).replace('/tool-instances', `/namespaces/${namespace.namespace_id}/tool-instances`);
    for (const host of [{}, { 'x-tool-host': 'nope' }, { 'x-tool-host': 'secret-of-the-workspace.hooks.invalid' }])
      expect(errorOf(await ask(inside, { headers: { ...headers, ...host } }))).toMatchObject({
        status: 403,
        error: 'FORBIDDEN',
      });
    const by = async (host: Json) => errorOf(await ask(pathOf(instance), { headers: { ...ann.headers, ...host } }));
    const hosts = ['{{tenant}}.hooks.invalid'];
    expect(await by({ 'x-tool-host': 'nope' })).toMatchObject({ status: 400, details: { reason: 'tool_host', hosts } });
    for (const host of [{}, { 'x-tool-host': hosts[0] }])
      expect(await by(host)).toMatchObject({ status: 502, details: { upstream: hosts[0] } });
  });

  test('an instance must run, have an address and a credential', async () => {
    const instance = await instanceAt();
    await ann.call('POST', `${instancesOf(ann)}/${instance.instance_id}/toggle?is_active=false`);
    expect(errorOf(await ask(pathOf(instance))).details).toMatchObject({ reason: 'instance_inactive' });
    const nowhere = await instanceAt(target.port, { action_schemas: [{ name: 'run' }] });
    expect(errorOf(await ask(pathOf(nowhere)))).toMatchObject({ status: 409, details: { reason: 'no_base_address' } });
    const keyless = await instanceAt(target.port, {}, { api_key: null });
    expect(errorOf(await ask(pathOf(keyless)))).toMatchObject({ status: 409, details: { reason: 'no_credentials' } });
    expect(errorOf(await ask(pathOf({ instance_id: 'ins_none' })))).toMatchObject({ status: 404 });
    expect(target.requests).toEqual([]);
  });
});

describe('a path', () => {
  test.each(['..', '../x', '%2e%2e/x', '..%2fx', '/evil.test', '%5cevil.test', 'a%00', '..;/x', '%252e%252e'])(
    'cannot be %s',
    async (path) => {
      const instance = await instanceAt();
      expect(errorOf(await ask(pathOf(instance, path)))).toMatchObject({ status: 400, error: 'INVALID_REQUEST' });
      expect(target.requests).toEqual([]);
    },
  );

  test('is no whole address, and has no fragment', async () => {
    const instance = await instanceAt();
    for (const path of [`http://evil.test${pathOf(instance)}`, `${pathOf(instance)}#x`]) {
      const got = await ask(path);
      expect(got.status).toBe(400);
    }
    expect(target.requests).toEqual([]);
  });
});

describe('a provider', () => {
  test('that refuses a key moves its connection, which the next success heals', async () => {
    const instance = await instanceAt(target.port, {}, { api_key: null });
    const { body } = await ann.call<{ connection_id: string }>('POST', `${ann.home}/connections/api-key`, {
      tool_instance_id: instance.instance_id,
      api_key: 'of-all',
    });
    answer = (_request, response) => response.writeHead(401, { 'www-authenticate': 'Basic' }).end('no');
    const refused = await ask(pathOf(instance));
    expect(refused).toMatchObject({ status: 401, body: 'no', headers: { 'x-tool-status': '401' } });
    expect(refused.headers).not.toHaveProperty('www-authenticate');
    expect((await rowOf(app, body.connection_id)).status).toBe('needs_reauth');
    answer = (_request, response) => response.end();
    await ask(pathOf(instance));
    expect((await rowOf(app, body.connection_id)).status).toBe('connected');
  });

  test.each([401, 200])('whose answer %i breaks before it is passed on gives an error of ours', async (status) => {
    let socket: net.Socket | undefined;
    const instance = await raw(
      (opened) => {
        socket = opened;
        opened.write(`HTTP/1.1 ${status} X\r\nx-kind: pot\r\ncontent-length: 10\r\n\r\nhalf`);
      },
      { api_key: null },
    );
    const { body } = await connectKey(instance);
    await app.database.prisma.connection.update({
      where: { id: body.connection_id },
      data: { status: status === 200 ? 'needs_reauth' : 'connected' },
    });
    const opened = vi.spyOn(Outbound.prototype, 'open');
    const told = vi.spyOn(ConnectionRefusals.prototype, status === 200 ? 'accepted' : 'refused');
    onTestFinished(() => void vi.restoreAllMocks());
    told.mockImplementation(async () => {
      socket!.resetAndDestroy();
      const answer = await (opened.mock.results.at(-1)!.value as ReturnType<Outbound['open']>);
      await answer.ended;
    });
    const got = await ask(pathOf(instance));
    expect(told).toHaveBeenCalledOnce();
    expect(errorOf(got)).toMatchObject({ status: 502, error: 'UPSTREAM_ERROR', details: { reason: 'network' } });
    expect(got.headers).not.toHaveProperty('x-tool-status');
    expect(got.headers).not.toHaveProperty('x-kind');
    expect(await recordsOf(instance)).toMatchObject([{ statusCode: 502, success: false }]);
    expect(app.services.toolProxy.running).toBe(0);
  });

  test('whose answer breaks when nothing of it is sent gives an error of ours', async () => {
    const instance = await instanceAt();
    const body = new Readable({ read: () => undefined });
    body.pipe = (to) => {
      Readable.prototype.pipe.call(body, to);
      body.destroy(new OutboundError('network'));
      return to;
    };
    const call = vi.spyOn(app.services.toolProxy, 'call').mockResolvedValue({
      status: 200,
      headers: { 'x-tool-status': '200', 'x-kind': 'pot', 'content-encoding': 'gzip' },
      body,
      takeWhole: () => null,
      failed: () => new ApiError('UPSTREAM_ERROR', { upstream: 'x', reason: 'network' }),
    });
    onTestFinished(() => call.mockRestore());
    const got = await ask(pathOf(instance));
    expect(errorOf(got)).toMatchObject({ status: 502, error: 'UPSTREAM_ERROR', details: { reason: 'network' } });
    for (const name of ['x-tool-status', 'x-kind', 'content-encoding']) expect(got.headers).not.toHaveProperty(name);
  });

  test('whose answer cannot be passed on has it ended', async () => {
    const instance = await instanceAt();
    const body = new Readable({ read: () => undefined });
    const call = vi.spyOn(app.services.toolProxy, 'call').mockResolvedValue({
      status: 999,
      headers: { 'x-tool-status': '999' },
      body,
      takeWhole: () => null,
      failed: (error) => error,
    });
    onTestFinished(() => call.mockRestore());
    const got = await ask(pathOf(instance));
    expect([got.status, body.destroyed]).toEqual([500, true]);
    expect(got.headers).not.toHaveProperty('x-tool-status');
  });

  test('gets an access token that lives five minutes longer, and a fresh one after it refused', async () => {
    oauth.lifetime = 240;
    const toolId = await newTool(ann, {
      connection_service_name: 'tracker',
      supports_connection: true,
      config_schema: [],
      credential_schema: [oauth.service],
      action_schemas: [{ name: 'me', url_template: `http://127.0.0.1:${target.port}/me` }],
    });
    const id = await makeInstanceAt(oauth, ann, { toolId });
    const { connection_id } = await connect(ann, oauth, `${ann.home}/connections`, id);
    const refreshed = () => oauth.grants.refresh_token ?? 0;
    const before = refreshed();
    oauth.lifetime = 3_600;
    answer = (request, response) => response.setHeader('x-echo', request.headers.authorization!).end();
    // the token that was sent is hidden, also if it is a newer one
    expect(await ask(pathOf({ instance_id: id }))).toMatchObject({
      status: 200,
      headers: { 'x-echo': 'Bearer ********' },
    });
    expect(refreshed() - before).toBe(1);
    const first = target.requests[0]!.headers.authorization;
    expect(first).toBe(`Bearer ${[...oauth.accessTokens].at(-1)}`);
    // refused within a minute after that: the connection is in trouble, whoever asked
    answer = (_request, response) => response.writeHead(401).end();
    expect((await ask(pathOf({ instance_id: id }), { method: 'POST', body: 'x' })).status).toBe(401);
    expect((await rowOf(app, connection_id)).status).toBe('connected');
  });

  test('that asks for fewer requests stops the calls of its group', async () => {
    answer = (_request, response) => response.writeHead(429, { 'retry-after': '60' }).end('slow');
    const instance = await instanceAt();
    expect(await ask(pathOf(instance))).toMatchObject({
      status: 429,
      body: 'slow',
      headers: { 'x-tool-status': '429' },
    });
    const ours = await ask(pathOf(instance));
    expect(errorOf(ours)).toMatchObject({ status: 429, error: 'RATE_LIMIT_EXCEEDED' });
    expect(ours.headers).not.toHaveProperty('x-tool-status');
    expect(target.requests).toHaveLength(1);
  });

  test.each([
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n', 502, 'bad_response'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na', 502, 'bad_response'],
    ['a head that is too large', `HTTP/1.1 200 OK\r\na: ${'a'.repeat(20_000)}\r\n\r\n`, 502, 'too_large'],
    ['nothing', '', 502, 'network'],
    ['a status that is none', 'HTTP/1.1 999 X\r\ncontent-length: 2\r\n\r\nab', 502, 'bad_response'],
    ['a status above the last', 'HTTP/1.1 600 X\r\ncontent-length: 2\r\n\r\nab', 502, 'bad_response'],
    ['a change of protocols to none', 'HTTP/1.1 101 X\r\n\r\nab', 502, 'bad_response'],
    ['another protocol', 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 502, 'network'],
  ])('that answers %s gives a clear error', async (_what, bytes, status, reason) => {
    const instance = await raw((socket) => socket.end(bytes));
    expect(errorOf(await ask(pathOf(instance)))).toMatchObject({
      status,
      error: 'UPSTREAM_ERROR',
      details: { reason, upstream: expect.stringMatching(/^127\.0\.0\.1:/) },
    });
    expect((await recordsOf(instance)).at(-1)).toMatchObject({ statusCode: status, metadata: { code: reason } });
  });

  test.each([
    ['less than it announced', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'],
    ['a chunk that is cut', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf'],
    ['a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n'],
  ])('that sends %s has its answer cut off', async (_what, bytes) => {
    const instance = await raw((socket) => socket.end(bytes));
    const got = await ask(pathOf(instance)).catch(() => null);
    // an error of ours is whole, if the cut was seen before the head was passed on
    expect(got?.headers['x-tool-status'] ? got.isWhole : (got?.status ?? 502)).toBe(
      got?.headers['x-tool-status'] ? false : 502,
    );
    const record = await waitUntil(async () => (await recordsOf(instance)).at(-1));
    expect(record).toMatchObject({ success: false, metadata: { code: expect.stringMatching(/network|bad/) } });
  });

  test('that sends more than it announced has only that passed on', async () => {
    const instance = await raw((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nteas and more'));
    expect(await ask(pathOf(instance))).toMatchObject({ status: 200, body: 'teas' });
  });

  test('that is silent is given up: without a head it is an error, and in a body a cut', async () => {
    const time = hurryTimers();
    let sockets = 0;
    const instance = await raw(() => void sockets++);
    const silent = ask(pathOf(instance));
    await waitUntil(() => sockets > 0);
    time.pass(120_000);
    expect(errorOf(await silent)).toMatchObject({ status: 504, error: 'UPSTREAM_TIMEOUT' });
    const stuck = await raw((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nhalf'));
    const request = http.request(url, { path: pathOf(stuck), headers: ann.headers });
    request.end();
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    await once(response, 'data');
    const cut = once(response, 'error');
    time.pass(45_000);
    await cut;
    expect((await waitUntil(async () => (await recordsOf(stuck)).at(-1))).metadata).toMatchObject({ code: 'timeout' });
  });

  test('does not read what the platform may not call', async () => {
    const instance = await instanceAt(target.port, {}, { base_url: 'http://169.254.169.254/latest' });
    expect(errorOf(await ask(pathOf(instance)))).toMatchObject({ status: 502, details: { reason: 'blocked_address' } });
  });
});

describe('bodies', () => {
  test('pass through as they come, and nobody reads ahead of the slower side', async () => {
    let written = 0;
    const socketOf = new Promise<net.Socket>((resolve) => {
      void raw((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        const more = (): void => {
          while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) written += 65_536;
        };
        socket.on('drain', more);
        more();
        resolve(socket);
      }).then((instance) => {
        const request = http.request(url, { path: pathOf(instance), headers: ann.headers });
        request.on('error', () => undefined).end();
        request.on('response', (response) => {
          response.pause().on('error', () => undefined);
          clients.push(request);
        });
      });
    });
    const clients: http.ClientRequest[] = [];
    const socket = await socketOf;
    await waitUntil(() => clients.length > 0);
    // it fills what lies between, and no more
    let [last, looks] = [-1, 0];
    await waitUntil(() => {
      looks = written === last ? looks + 1 : 0;
      last = written;
      return looks === 20;
    });
    expect(written).toBeLessThan(32 * 1024 * 1024);
    const gone = closed(socket);
    clients[0]!.destroy();
    await gone;
    await waitUntil(() => app.services.toolProxy.running === 0);
  });

  test('of requests arrive while they are sent, and their answer may come first', async () => {
    let first = '';
    const instance = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n');
      socket.on('data', (chunk) => {
        first += chunk.toString();
        if (first.includes('second')) socket.end('3\r\nend\r\n0\r\n\r\n');
      });
    });
    const request = http.request(url, { path: pathOf(instance), method: 'POST', headers: ann.headers });
    request.write('first');
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const [piece] = (await once(response, 'data')) as [Buffer];
    expect(piece.toString()).toBe('hi');
    request.end('second');
    const [rest] = (await once(response, 'data')) as [Buffer];
    expect(rest.toString()).toBe('end');
  });

  test('of a client that goes away end the call to the provider', async () => {
    let socket: net.Socket | undefined;
    const instance = await raw((opened) => {
      socket = opened;
    });
    const request = http.request(url, { path: pathOf(instance), method: 'POST', headers: ann.headers });
    request.on('error', () => undefined).write('half');
    const opened = await waitUntil(() => socket);
    const gone = closed(opened);
    request.destroy();
    await gone;
    expect((await waitUntil(async () => (await recordsOf(instance)).at(-1))).metadata).toMatchObject({
      code: expect.any(String),
    });
  });
});

describe('an upload whose answer comes early', () => {
  const refusing = (socket: net.Socket) => {
    socket.pause();
    socket.write('HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno');
  };

  test('is taken to its end, and the connection goes on', async () => {
    const path = pathOf(await raw(refusing));
    const { socket, text } = socketTo(path, 'content-length: 4194304');
    socket.write(Buffer.alloc(4_194_304));
    await waitUntil(() => text().includes('413'));
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await waitUntil(() => text().includes('HTTP/1.1 401'));
  });

  test('is cut off if it has no end', async () => {
    const { socket, text } = socketTo(pathOf(await raw(refusing)), 'content-length: 1000000000');
    const more = (): void => {
      while (!socket.destroyed && socket.write(Buffer.alloc(1_048_576)));
    };
    const gone = closed(socket);
    socket.on('drain', more);
    more();
    await waitUntil(() => text().includes('413'));
    await gone;
  });
});

test('calls of clients that went before they began are not kept', () => {
  const open = new Set<AbortController>();
  const request = new http.IncomingMessage(new net.Socket());
  const [gone, here] = [new http.ServerResponse(request), new http.ServerResponse(request)];
  gone.destroy();
  expect([whileOpen(gone, open).aborted, open.size]).toEqual([true, 0]);
  const signal = whileOpen(here, open);
  expect([signal.aborted, open.size]).toEqual([false, 1]);
  here.emit('close');
  expect([signal.aborted, open.size]).toEqual([true, 0]);
});

test('browsers of allowed origins may read what the proxy says', async () => {
  const got = await ask(pathOf(await instanceAt()), { headers: { ...ann.headers, origin: 'https://front.example' } });
  expect(String(got.headers['access-control-expose-headers']).split(', ')).toEqual(
    expect.arrayContaining([
      'x-tool-status',
      'x-tool-location',
      'x-tool-ratelimit-limit',
      'x-tool-ratelimit-remaining',
      'x-tool-ratelimit-reset',
    ]),
  );
});

test('a connection is not upgraded', async () => {
  const instance = await instanceAt();
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(
    `GET ${pathOf(instance)} HTTP/1.1\r\nhost: x\r\nauthorization: ${ann.headers.authorization}\r\n` +
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  expect(bytes.toString()).toMatch(/^HTTP\/1\.1 400 /);
  expect(target.requests).toEqual([]);
});

test('no more than eight calls of an instance run at once, and others wait', async () => {
  const waiting: http.ServerResponse[] = [];
  answer = (_request, response) => void waiting.push(response);
  const instance = await instanceAt();
  const calls = Array.from({ length: 9 }, () => ask(pathOf(instance)));
  await waitUntil(() => waiting.length === 8);
  expect(app.services.toolProxy.running).toBe(8);
  answer = (_request, response) => response.end();
  for (const response of waiting) response.end();
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(9).fill(200));
});
