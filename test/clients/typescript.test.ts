import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  ApiError,
  bearer,
  Client,
  ConflictError,
  ForbiddenError,
  InvalidInputError,
  NotFoundError,
  Session,
  type SessionTokens,
} from 'platform-management-client';
import { MeDocument, WorkspaceEventsDocument, WorkspacesDocument } from 'platform-management-client/documents';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startOwnApp, type TestApp } from '../support/app.ts';
import { collectGarbage } from '../support/garbage.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

const WORKSPACES = '/v1/orgs/{org_id}/workspaces';
const WORKSPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}';
const SECRETS = '/v1/orgs/{org_id}/secrets';

let app: TestApp;
let url: string;
let ann: Person;
beforeAll(async () => {
  app = await startOwnApp();
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const clientOf = (person: Person, more: object = {}) =>
  new Client({ url, credentials: person.accessToken, webSocket: WebSocket, ...more });
/** What one collection finds may hold what the next one finds. */
async function collectAllGarbage(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await immediate().then(collectGarbage);
}
const placeOf = (person: Person) => ({ org_id: person.orgId, workspace_id: person.workspaceId });

/** Something between a client and the service: the first requests that `broken` says are answered by it. */
async function between(broken: (method: string, path: string, nth: number) => 'hide' | number | null) {
  const seen: { method: string; path: string; key: string | undefined }[] = [];
  const server: Server = createServer((request, response) => void answered(request, response));
  const answered = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await request.reduce<Buffer>((all, chunk: Buffer) => Buffer.concat([all, chunk]), Buffer.alloc(0));
    const { method = 'GET', url: path = '/', headers } = request;
    seen.push({ method, path, key: headers['idempotency-key'] as string | undefined });
    const fault = broken(method, path, seen.filter((one) => one.method === method && one.path === path).length);
    if (typeof fault === 'number') return void response.writeHead(fault, { 'retry-after': '0' }).end();
    const { host: _host, connection: _connection, 'content-length': _length, ...sent } = headers;
    const answer = await fetch(url + path, {
      method,
      headers: sent as Record<string, string>,
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    // it was done, and the answer is lost
    if (fault === 'hide') return void request.socket.destroy();
    response
      .writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
      .end(bytes);
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test('calls give the body of the success and the response, with the types of the operation', async () => {
  const { rest } = clientOf(ann);
  const path = { org_id: ann.orgId };
  const { data, response } = await rest.POST(WORKSPACES, {
    params: { path },
    body: { organization_id: ann.orgId, name: 'Research' },
  });
  expect([data.name, response.status, response.headers.get('etag')]).toEqual(['Research', 201, '"1"']);
  const at = { path: { ...path, workspace_id: data.workspace_id }, header: { 'if-match': '"1"' } };
  expect((await rest.PUT(WORKSPACE, { params: at, body: { name: 'Renamed' } })).data.name).toBe('Renamed');
  await expect(rest.PUT(WORKSPACE, { params: at, body: { name: 'Late' } })).rejects.toMatchObject({
    name: 'PreconditionFailedError',
    details: { current_version: 2 },
  });
});

test('refusals are errors of their class, with code, status, details and trace id', async () => {
  const { rest } = clientOf(ann);
  const path = { org_id: ann.orgId };
  const none = rest.GET(WORKSPACE, { params: { path: { ...path, workspace_id: 'ws_none' } } });
  const error = await none.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(NotFoundError);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 404, code: 'RESOURCE_NOT_FOUND', details: { resource_id: 'ws_none' } });
  expect((error as ApiError).traceId).toMatch(/^[0-9a-f-]{16,}$/);

  const bad = rest.POST(WORKSPACES, { params: { path }, body: { organization_id: ann.orgId, name: '' } });
  await expect(bad).rejects.toBeInstanceOf(InvalidInputError);
  await expect(bad).rejects.toMatchObject({ issues: [{ loc: ['body', 'name'], type: 'string_too_short' }] });

  const NAMESPACES = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces';
  const namespace = { params: { path: placeOf(ann) }, body: { name: 'Twice', slug: 'twice' } };
  await rest.POST(NAMESPACES, namespace);
  await expect(rest.POST(NAMESPACES, namespace)).rejects.toBeInstanceOf(ConflictError);

  const bob = await register(app, { name: 'bob' });
  await expect(rest.GET(WORKSPACES, { params: { path: { org_id: bob.orgId } } })).rejects.toBeInstanceOf(
    ForbiddenError,
  );
  const anonymous = new Client({ url });
  await expect(anonymous.rest.GET(WORKSPACES, { params: { path } })).rejects.toMatchObject({
    name: 'AuthenticationFailedError',
    status: 401,
  });
});

test('a list is read page by page, however many there are', async () => {
  const carl = await register(app, { name: 'carl' });
  const client = clientOf(carl);
  for (let n = 1; n <= 5; n++)
    await client.rest.POST(WORKSPACES, {
      params: { path: { org_id: carl.orgId } },
      body: { organization_id: carl.orgId, name: `W${n}` },
    });
  const names: string[] = [];
  for await (const { name } of client.list(WORKSPACES, { path: { org_id: carl.orgId }, query: { limit: 2 } }))
    names.push(name);
  expect(names).toEqual(['W5', 'W4', 'W3', 'W2', 'W1', 'Default workspace']);
});

test('a POST whose answer is lost is sent again with the same key, and done once', async () => {
  const proxy = await between((method, _path, nth) => (method === 'POST' && nth === 1 ? 'hide' : null));
  try {
    const dora = await register(app, { name: 'dora' });
    const client = new Client({ url: proxy.url, credentials: dora.accessToken });
    const path = { org_id: dora.orgId };
    const body = { name: 'once', secret_type: 'api_key' as const, value: { api_key: 'k' } };
    const { data } = await client.rest.POST(SECRETS, { params: { path }, body });
    const keys = proxy.seen.filter(({ method }) => method === 'POST').map(({ key }) => key);
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
    const rows = await app.database.pool.query('select id from secrets where org_id = $1', [dora.orgId]);
    expect(rows.rows).toEqual([{ id: data.secret_id }]);
  } finally {
    proxy.close();
  }
});

test('a change that is no POST is not sent again after its answer is lost; what was refused at once is', async () => {
  const proxy = await between((method, _path, nth) => {
    if (method === 'PUT') return 'hide';
    return method === 'GET' && nth <= 2 ? 503 : null;
  });
  try {
    const client = new Client({ url: proxy.url, credentials: ann.accessToken });
    const params = { path: placeOf(ann) };
    await expect(client.rest.PUT(WORKSPACE, { params, body: { name: 'Once' } })).rejects.toBeInstanceOf(TypeError);
    expect(proxy.seen.filter(({ method }) => method === 'PUT')).toHaveLength(1);
    expect((await client.rest.GET(WORKSPACE, { params })).data.name).toBe('Once');
    expect(proxy.seen.filter(({ method }) => method === 'GET')).toHaveLength(3);
  } finally {
    proxy.close();
  }
});

test('what nobody knows to be done is not sent again: mutations, and changes of strangers; queries are', async () => {
  const proxy = await between((method, _path, nth) => (method === 'POST' && nth === 1 ? 'hide' : null));
  try {
    const gus = await register(app, { name: 'gus' });
    const client = new Client({ url: proxy.url, credentials: gus.accessToken });
    const input = { organizationId: gus.orgId, name: 'Twice?' };
    const create = `mutation ($org: ID!, $input: CreateWorkspaceInput!) {
      createWorkspace(orgId: $org, input: $input) { id } }`;
    await expect(client.query(create, { org: gus.orgId, input })).rejects.toBeInstanceOf(TypeError);
    expect(proxy.seen).toHaveLength(1);
    const { rows } = await app.database.pool.query('select name from workspaces where org_id = $1 order by name', [
      gus.orgId,
    ]);
    expect(rows).toEqual([{ name: 'Default workspace' }, { name: 'Twice?' }]);

    const stranger = new Client({ url: proxy.url });
    const login = { username: gus.username, password: gus.password };
    await expect(stranger.rest.POST('/v1/auth/login', { body: login })).rejects.toBeInstanceOf(TypeError);
    expect(proxy.seen).toHaveLength(2);
  } finally {
    proxy.close();
  }
  const other = await between((method, _path, nth) => (method === 'POST' && nth === 1 ? 'hide' : null));
  try {
    const client = new Client({ url: other.url, credentials: ann.accessToken });
    expect((await client.query(MeDocument, {})).me.email).toBe(ann.email);
    expect(other.seen).toHaveLength(2);
  } finally {
    other.close();
  }
});

test('what a program prints of its client and its session has no token', () => {
  const tokens = { access_token: 'the-access-token', refresh_token: 'the-refresh-token', expires_in: 1_800 };
  const session = new Session({ url, tokens });
  const printed = [session, new Client({ url, credentials: session }), new Client({ url, credentials: 'the-token' })];
  expect(inspect(printed, { depth: 9, showHidden: true }) + JSON.stringify(printed)).not.toMatch(/the-\w*-?token/);
});

test('below a path of a proxy, everything is asked there, and a proxy that cannot answer is unavailable', async () => {
  const paths: string[] = [];
  const fetchOfProxy: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    paths.push(new URL(request.url).pathname);
    return new Response('<h1>Bad gateway</h1>', { status: 502 });
  };
  const base = 'https://host.test/platform';
  const tokens = { access_token: 'a', refresh_token: 'r', expires_in: 0 };
  const session = new Session({ url: base, tokens, fetch: fetchOfProxy });
  const client = new Client({ url: base, credentials: session, fetch: fetchOfProxy });
  await expect(client.query(MeDocument, {})).rejects.toMatchObject({ name: 'UnavailableError', code: 'HTTP_502' });
  const path = { org_id: 'org_x' };
  const anonymous = new Client({ url: base, fetch: fetchOfProxy });
  await expect(anonymous.rest.GET(WORKSPACES, { params: { path } })).rejects.toMatchObject({
    name: 'UnavailableError',
  });
  expect(paths).toEqual(['/platform/v1/auth/refresh', '/platform/v1/orgs/org_x/workspaces']);
});

test('a session refreshes its tokens once, however many requests find the old one refused', async () => {
  const eve = await register(app, { name: 'eve' });
  const proxy = await between(() => null);
  try {
    const kept: SessionTokens[] = [];
    const session = new Session({
      url: proxy.url,
      // refused by the service, and not known to be old
      tokens: { access_token: 'worn.out.token', refresh_token: eve.refreshToken, expires_in: 1_800 },
      onTokens: (tokens) => void kept.push(tokens),
    });
    const client = new Client({ url: proxy.url, credentials: session });
    const params = { path: { org_id: eve.orgId } };
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.rest.GET(WORKSPACES, { params })));
    expect(answers.map(({ data }) => data.total)).toEqual(Array(8).fill(1));
    expect(proxy.seen.filter(({ path }) => path === '/v1/auth/refresh')).toHaveLength(1);
    expect(kept).toMatchObject([{ access_token: expect.any(String) as string }]);
    const { email } = (await client.query(MeDocument, {})).me;
    expect(email).toBe(eve.email);
  } finally {
    proxy.close();
  }
});

test('a session that has ended is an authentication error, and is asked once', async () => {
  const proxy = await between(() => null);
  try {
    const tokens = { access_token: 'worn.out.token', refresh_token: 'no such token', expires_in: 1_800 };
    const client = new Client({ url: proxy.url, credentials: new Session({ url: proxy.url, tokens }) });
    const asked = client.rest.GET(WORKSPACES, { params: { path: { org_id: ann.orgId } } });
    await expect(asked).rejects.toMatchObject({ name: 'AuthenticationFailedError' });
    expect(proxy.seen.map(({ path }) => path.split('/').at(-1))).toEqual(['workspaces', 'refresh']);
  } finally {
    proxy.close();
  }
});

test('GraphQL documents have types, and their errors are those of REST', async () => {
  const client = clientOf(ann);
  const { workspaces } = await client.query(WorkspacesDocument, { orgId: ann.orgId, first: 1 });
  expect(workspaces.nodes).toHaveLength(1);
  await expect(client.query(WorkspacesDocument, { orgId: 'org_none', first: 1 })).rejects.toBeInstanceOf(
    ForbiddenError,
  );
  await expect(client.query(WorkspacesDocument, { orgId: ann.orgId, first: 0 })).rejects.toMatchObject({
    name: 'InvalidInputError',
    issues: [{ loc: ['first'], type: 'greater_than_equal' }],
  });
  const secret = `mutation ($org: ID!, $input: CreateSecretInput!) { createSecret(orgId: $org, input: $input) { id } }`;
  const input = { name: 'same', secretType: 'api_key', value: { api_key: 'k' } };
  await client.query(secret, { org: ann.orgId, input });
  await expect(client.query(secret, { org: ann.orgId, input: { ...input, secretType: 'No' } })).rejects.toBeInstanceOf(
    ApiError,
  );
  await expect(client.query('{ nothing }', {})).rejects.toMatchObject({ code: 'GRAPHQL_VALIDATION_FAILED' });
});

const renamed = (name: string) => clientOf(ann).rest.PUT(WORKSPACE, { params: { path: placeOf(ann) }, body: { name } });

test('events go on without a gap or a repeat when connections break, over REST', async () => {
  let connections = 0;
  const cut: AbortController[] = [];
  // a network that can be cut off: the response ends in the middle
  const fetchThatBreaks: typeof fetch = async (input, init) => {
    const response = await fetch(input as Request, init);
    if (!response.headers.get('content-type')?.includes('event-stream')) return response;
    connections++;
    const breaks = new AbortController();
    cut.push(breaks);
    const through = new TransformStream();
    void response.body!.pipeTo(through.writable, { signal: breaks.signal }).catch(() => undefined);
    return new Response(through.readable, { status: response.status, headers: response.headers });
  };
  const client = clientOf(ann, { fetch: fetchThatBreaks });
  const stop = new AbortController();
  const seen: string[] = [];
  let isConnected = 0;
  let failure: unknown = null;
  const has = (count: () => number, wanted: number) =>
    waitUntil(() => {
      expect(failure).toBeNull();
      return count() === wanted;
    });
  const reading = (async () => {
    for await (const { event } of client.events(placeOf(ann), { signal: stop.signal })) {
      if (event.type === 'connected') isConnected++;
      // the service itself changes a new workspace, too: when its bucket is there
      if (event.type === 'workspace.updated' && event.actor.username === ann.username) seen.push(event.event_id);
    }
  })().catch((error: unknown) => {
    failure = error;
  });
  await has(() => isConnected, 1);
  await renamed('One');
  await has(() => seen.length, 1);
  cut[0]!.abort(new TypeError('terminated'));
  await renamed('Two');
  await renamed('Three');
  await has(() => seen.length, 3);
  expect([new Set(seen).size, connections]).toEqual([3, 2]);
  stop.abort(new Error('enough'));
  await reading;
  expect(failure).toMatchObject({ message: 'enough' });
});

test('events end with their signal, also when garbage was collected while they were followed', async () => {
  const stop = new AbortController();
  let isFollowed = false;
  const followed = (async () => {
    for await (const { event } of clientOf(ann).events(placeOf(ann), { signal: stop.signal }))
      if (event.type === 'connected') isFollowed = true;
  })().catch((error: unknown) => error);
  await waitUntil(() => isFollowed);
  await collectAllGarbage();
  stop.abort(new Error('enough'));
  const ended = await waitUntil(() => Promise.race([followed, immediate(null)]));
  expect(ended).toMatchObject({ message: 'enough' });
  await waitUntil(() => app.services.tail.size === 0);
});

test('an answer that is read as a stream ends with its signal, also when garbage was collected', async () => {
  const stop = new AbortController();
  const { data } = await clientOf(ann).rest.GET('/v1/orgs/{org_id}/workspaces/{workspace_id}/sync/stream', {
    params: { path: placeOf(ann) },
    headers: { accept: 'text/event-stream' },
    parseAs: 'stream',
    signal: stop.signal,
  });
  const reader = data!.getReader();
  expect((await reader.read()).done).toBe(false);
  await collectAllGarbage();
  stop.abort(new Error('enough'));
  const ends = (async () => {
    while (!(await reader.read()).done);
  })().catch((error: unknown) => error);
  expect(await waitUntil(() => Promise.race([ends, immediate(null)]))).toMatchObject({ message: 'enough' });
  await waitUntil(() => app.services.tail.size === 0);
});

test('events end when the service says that there will be none any more', async () => {
  const fay = await register(app, { name: 'fay' });
  const client = clientOf(fay);
  const path = { org_id: fay.orgId };
  const { data } = await client.rest.POST(WORKSPACES, {
    params: { path },
    body: { organization_id: fay.orgId, name: 'W' },
  });
  const place = { ...path, workspace_id: data.workspace_id };
  const types: string[] = [];
  for await (const { event } of client.events(place)) {
    types.push(event.type);
    if (event.type === 'connected') await client.rest.DELETE(WORKSPACE, { params: { path: place } });
  }
  expect(types.at(-1)).toBe('stream.closing');
});

test('a subscription follows events over one socket', async () => {
  const client = clientOf(ann);
  const variables = { orgId: ann.orgId, workspaceId: ann.workspaceId, types: ['workspace.*'] };
  const events = client.subscribe(WorkspaceEventsDocument, variables);
  const next = events.next();
  // the subscription begins at some time: what is changed until then is not its business
  let isThere = false;
  void next.then(() => (isThere = true));
  for (let n = 0; !isThere; n++) {
    await renamed(`Live ${n}`);
    await waitUntil(() => true);
  }
  expect((await next).value?.workspaceEvents).toMatchObject({ type: 'workspace.updated', resourceId: ann.workspaceId });
  await events.return();
  await client.close();
});

test('a file is sent in pieces, goes on after a broken connection, and is read back in parts', async () => {
  const bytes = randomBytes(300_000);
  const client = clientOf(ann);
  const place = { ...placeOf(ann), namespace_id: 'default' };
  const progress: number[] = [];
  const sent: string[] = [];
  // the second piece arrives and its answer is lost, the third does not arrive at first
  const fetchThatBreaks: typeof fetch = async (input, init) => {
    if (init?.method === 'PATCH') {
      const headers = new Headers(init.headers);
      const digest = createHash('sha256').update(Buffer.from(init.body as ArrayBuffer));
      expect(headers.get('content-digest')).toBe(`sha-256=:${digest.digest('base64')}:`);
      sent.push(headers.get('upload-offset')!);
    }
    if (init?.method === 'PATCH' && sent.length === 3) throw new TypeError('fetch failed');
    const response = await fetch(input, init);
    if (init?.method === 'PATCH' && sent.length === 2) throw new TypeError('terminated');
    return response;
  };
  const artifact = await clientOf(ann, { fetch: fetchThatBreaks }).upload(place, new Blob([bytes]), {
    fileName: 'data.bin',
    name: 'Data',
    pieceBytes: 100_000,
    onProgress: (done) => void progress.push(done),
  });
  expect([progress, sent]).toEqual([
    [100_000, 300_000],
    ['0', '100000', '200000', '200000'],
  ]);
  expect(artifact).toMatchObject({ name: 'Data', size_bytes: 300_000 });
  // a piece that is changed on its way is no piece of the file
  const fetchThatChanges: typeof fetch = (input, init) => {
    if (init?.method !== 'PATCH') return fetch(input, init);
    const changed = Buffer.from(init.body as ArrayBuffer);
    changed[7]! ^= 1;
    return fetch(input, { ...init, body: changed });
  };
  const changed = clientOf(ann, { fetch: fetchThatChanges }).upload(place, new Blob([bytes]), {
    fileName: 'data.bin',
    name: 'Changed',
  });
  await expect(changed).rejects.toBeInstanceOf(ApiError);
  const at = { ...place, artifact_id: artifact.artifact_id };
  const whole = Buffer.from(await (await client.download(at)).arrayBuffer());
  expect(createHash('sha256').update(whole).digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
  const part = await client.download(at, { from: 10, to: 19 });
  expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, bytes.subarray(10, 20)]);
  await expect(client.download(at, { from: 400_000 })).rejects.toMatchObject({ code: 'RANGE_NOT_SATISFIABLE' });
  const empty = client.upload(place, new Blob([]), { fileName: 'empty.txt', name: 'Empty' });
  await expect(empty).rejects.toMatchObject({ issues: [{ loc: ['body', 'size_bytes'] }] });
});

test('an upload waits for a service that is away, and goes back to what it still has', async () => {
  const bytes = Buffer.from(Array.from({ length: 250 }, (_, at) => at));
  const held: Buffer[] = [];
  let patches = 0;
  const has = () => Buffer.concat(held);
  // a service that loses half of what it has with the second piece, as after a failover
  const fetchThatForgets: typeof fetch = async (input, init) => {
    if (!['PATCH', 'HEAD'].includes(init?.method ?? '')) return fetch(input, init);
    if (init!.method === 'PATCH') {
      patches += 1;
      if (patches === 2) {
        held.splice(0, held.length, has().subarray(0, 60));
        return new Response(null, { status: 503, headers: { 'retry-after': '0' } });
      }
      expect(Number(new Headers(init!.headers).get('upload-offset'))).toBe(has().length);
      held.push(Buffer.from(init!.body as ArrayBuffer));
    }
    return new Response(null, { status: 204, headers: { 'upload-offset': String(has().length) } });
  };
  const client = clientOf(ann, { fetch: fetchThatForgets });
  const place = { ...placeOf(ann), namespace_id: 'default' };
  const upload = client.upload(place, new Blob([bytes]), { fileName: 'b.bin', name: 'B', pieceBytes: 100 });
  // the service itself has got nothing, and says so at the end
  await expect(upload).rejects.toBeInstanceOf(ApiError);
  expect(has()).toEqual(bytes);
});

test('a header that the caller sets is theirs', async () => {
  const client = new Client({ url: `${url}/`, credentials: bearer('nonsense') });
  const { data } = await client.rest.GET(WORKSPACES, {
    params: { path: { org_id: ann.orgId } },
    headers: { authorization: `Bearer ${ann.accessToken}` },
  });
  expect(data.workspaces.length).toBeGreaterThan(0);
});
