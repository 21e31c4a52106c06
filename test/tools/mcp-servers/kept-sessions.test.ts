import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { KeptSessions, type SessionLimits } from '../../../src/tools/mcp-servers/kept-sessions.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type McpServerOfOthers, startMcpServer } from '../../support/mcp-server.ts';
import { addToWorkspace, createUser, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { type Instance, instancesOf, type Json, newInstance } from '../tool-instances/instances.ts';

let app: TestApp;
let server: McpServerOfOthers;
let ann: Person;
let instance: Instance;
beforeAll(async () => {
  server = await startMcpServer('sessions');
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
afterEach(async () => {
  Object.assign(server, { first: null, instead: null });
  await app.services.mcpSessions.endAll();
  server.sessions.clear();
});
afterAll(async () => {
  await app.close();
  await server.close();
});
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
  const credential = { credential: 'their-first-key', credential_header: 'X-Key' };
  const tool = await asked<{ tool_id: string }>(
    `/v1/orgs/${ann.orgId}/tools/import`,
    { kind: 'mcp', url: server.url, slug: 'others', operations: ['echo', 'erase'], ...credential },
    201,
  );
  instance = await newInstance(ann, tool.tool_id, { configuration: { credential: 'their-first-key' } });
  await waitFor(() => expect(server.sessions.size).toBe(0));
  server.requests.length = 0;
});

async function asked<Body>(path: string, body: Json, status = 200, method: 'POST' | 'PUT' = 'POST'): Promise<Body> {
  const answer = await ann.call<Body>(method, path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(status);
  return answer.body;
}
const run = (more: Json = {}, of = instance) =>
  asked<Json>(`${instancesOf(ann)}/${of.instance_id}/execute`, { action: 'echo', parameters: { text: 'x' }, ...more });
const good = async (more: Json = {}) =>
  expect(await run(more)).toMatchObject({ success: true, code: 'ok', attempts: 1 });
const methodsOf = () =>
  server.requests.map(({ method, body }) => (body === '' ? method : (JSON.parse(body) as { method: string }).method));
const BEGIN = ['initialize', 'notifications/initialized'];

/** The credentials that each session was used with. */
function credentialsOfSessions(): string[][] {
  const used = new Map<string, Set<string>>();
  for (const { headers } of server.requests) {
    const id = headers['mcp-session-id'];
    if (id !== undefined) used.set(String(id), (used.get(String(id)) ?? new Set()).add(String(headers['x-key'])));
  }
  return [...used.values()].map((keys) => [...keys]);
}

describe('a session with a server', () => {
  test('is used for many calls: each is one request, where one of its own takes four', async () => {
    const count = 5;
    for (let calls = 0; calls < count; calls++) await good();
    expect(methodsOf()).toEqual([...BEGIN, ...Array<string>(count).fill('tools/call')]);
    const ids = server.requests.flatMap(({ body }) => (JSON.parse(body) as { id?: number }).id ?? []);
    expect(ids).toEqual([1, 2, 3, 4, 5, 6]);
    // a test of an instance tries all of it
    server.requests.length = 0;
    await asked(`${instancesOf(ann)}/${instance.instance_id}/test`, { action: 'echo', parameters: { text: 'x' } });
    await waitFor(() => expect(methodsOf()).toEqual([...BEGIN, 'tools/call', 'DELETE']));
  });

  test('that the server has forgotten is begun again, once', async () => {
    await good();
    server.sessions.clear();
    server.requests.length = 0;
    await good();
    expect(methodsOf()).toEqual(['tools/call', ...BEGIN, 'tools/call']);
    // some servers refuse the input instead
    const known = () => server.requests.findLast(({ headers }) => headers['mcp-session-id'])!.headers['mcp-session-id'];
    const refuse = (id: unknown, body: string) => {
      server.instead = (_message, response, request) =>
        request.headers['mcp-session-id'] === id ? response.writeHead(400).end(body) : null;
    };
    refuse(known(), 'no valid session');
    await good();
    // which may be of the tool: what must not be done twice begins again only if the error is of no message
    const erase = { action: 'erase', parameters: {} };
    const { confirmation } = await run(erase);
    refuse(known(), 'half of it was erased');
    server.requests.length = 0;
    expect(await run({ ...erase, confirmation })).toMatchObject({ success: false, code: 'http_400' });
    await waitFor(() => expect(methodsOf()).toEqual(['tools/call', 'DELETE']));
    server.instead = null;
    await good();
    const { confirmation: second } = await run(erase);
    refuse(known(), JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'no session' } }));
    expect(await run({ ...erase, confirmation: second })).toMatchObject({ success: true });
    // one that knows no session at all is not asked for ever
    server.instead = ({ method }, response) => (method === 'tools/call' ? response.writeHead(404).end() : null);
    server.requests.length = 0;
    expect(await run()).toMatchObject({ success: false, code: 'http_404' });
    expect(methodsOf().filter((method) => method === 'tools/call')).toHaveLength(2);
  });

  test('ends with a call that was not answered, and is not used again', async () => {
    await good();
    const erase = { action: 'erase', parameters: {} };
    const { confirmation } = await run(erase);
    server.instead = ({ method }, response) => (method === 'tools/call' ? response.writeHead(500).end() : null);
    expect(await run({ ...erase, confirmation })).toMatchObject({ success: false, code: 'http_500' });
    await waitFor(() => expect(server.sessions.size).toBe(0));
    server.instead = null;
    server.requests.length = 0;
    await good();
    expect(methodsOf()).toEqual([...BEGIN, 'tools/call']);
  });

  test('is of one who calls, and in one place', async () => {
    await good();
    const bob = await createUser(app, ann, { name: 'bob' });
    await addToWorkspace(app, ann, bob.userId, 'editor');
    const token = await issueToken(app, ann, { permissions: ['tool_instance:execute', 'tool_instance:read'] });
    const payload = { action: 'echo', parameters: { text: 'x' } };
    const path = `/${instance.instance_id}/execute`;
    for (const [headers, url] of [
      [bob.headers, `${instancesOf(ann)}${path}`],
      [token.headers, `${instancesOf(ann)}${path}`],
      [ann.headers, `${ann.home}/namespaces/default/tool-instances${path}`],
    ] as const) {
      server.requests.length = 0;
      const answer = await app.server.inject({ method: 'POST', url, headers, payload });
      expect([answer.statusCode, answer.json()], answer.body).toMatchObject([200, { success: true }]);
      expect(methodsOf()).toEqual([...BEGIN, 'tools/call']);
    }
    server.requests.length = 0;
    await good();
    expect(methodsOf()).toEqual(['tools/call']);
  });

  test('is not shared by calls at the same time', async () => {
    // each waits at the server until all three are there
    const waiting: (() => void)[] = [];
    server.instead = async ({ method }) => {
      if (method === 'tools/call') {
        const all = new Promise<void>((resolve) => waiting.push(resolve));
        if (waiting.length === 3) for (const go of waiting) go();
        await all;
      }
      return null;
    };
    await Promise.all([good(), good(), good()]);
    const calls = server.requests.filter(({ body }) => body.includes('tools/call'));
    const perSession = new Set(calls.map(({ headers }) => headers['mcp-session-id']));
    expect([calls.length, perSession.size]).toEqual([3, 3]);
  });
});

describe('the credential of a session', () => {
  test('is the one that it began with: with another one, the session of the former ends', async () => {
    await good();
    await asked(
      `${instancesOf(ann)}/${instance.instance_id}`,
      { configuration: { credential: 'their-second-key' } },
      200,
      'PUT',
    );
    await good();
    await waitFor(() => expect(methodsOf()).toContain('DELETE'));
    expect(server.sessions.size).toBe(1);
    expect(credentialsOfSessions()).toEqual([['their-first-key'], ['their-second-key']]);
  });

  test('is of one connection: others have sessions of their own, and it ends with the connection', async () => {
    instance = await newInstance(ann, String(instance.tool_id), { configuration: {} });
    const base = `${ann.home}/connections`;
    const connect = (path: string, api_key: string) =>
      asked(path, { tool_instance_id: instance.instance_id, api_key }, 201);
    await connect(`${base}/api-key`, 'of-the-workspace');
    const inNamespace = `${ann.home}/namespaces/default`;
    await connect(`${inNamespace}/connections`, 'of-the-namespace');
    const namespaced = () =>
      asked(`${inNamespace}/tool-instances/${instance.instance_id}/execute`, {
        action: 'echo',
        parameters: { text: 'x' },
      });
    for (const call of [good, namespaced, good, namespaced]) await call();
    expect(credentialsOfSessions()).toEqual([['of-the-workspace'], ['of-the-namespace']]);
    expect(server.sessions.size).toBe(2);
    const removed = await ann.call('DELETE', `${base}/${instance.instance_id}`);
    expect(removed.status).toBe(200);
    await waitFor(() => expect(server.sessions.size).toBe(1));
    await namespaced();
    expect(server.sessions.size).toBe(1);
    // replaced by another key, the session of the former one ends too
    await connect(`${inNamespace}/connections`, 'another-key');
    await waitFor(() => expect(server.sessions.size).toBe(0));
    await namespaced();
    expect(credentialsOfSessions()).toEqual([['of-the-workspace'], ['of-the-namespace'], ['another-key']]);
  });
});

describe('sessions that nobody uses', () => {
  const HEADERS = { 'x-key': 'a' };
  const url = 'https://mcp.example.com/mcp';
  const holderOf = (toolInstanceId: string) => ({
    orgId: `org-${toolInstanceId}`,
    namespaceId: null,
    toolInstanceId,
    connectionId: null,
    principalId: 'usr',
  });
  const begun = (id: string, startedAt = performance.now()) => ({
    headers: { ...HEADERS, 'mcp-session-id': id },
    lastId: 1,
    startedAt,
  });
  /** Keeps sessions, and tells which it has ended. */
  const keeping = (limits: Partial<SessionLimits>, answers = true) => {
    const ended: string[] = [];
    const request: ConstructorParameters<typeof KeptSessions>[0]['request'] = ({ method, headers }) => {
      ended.push(`${method!} ${headers!['mcp-session-id']!}`);
      return answers ? Promise.reject(new OutboundError('network')) : new Promise(() => undefined);
    };
    const kept = new KeptSessions({ request }, limits);
    return { kept, ended, of: (instanceId: string) => kept.of(holderOf(instanceId), { url, headers: HEADERS }) };
  };

  test('are few: of a holder, and of a node', async () => {
    const { kept, ended, of } = keeping({ perHolder: 2, total: 3 });
    for (const id of ['a1', 'a2', 'a3']) of('a').bring(begun(id));
    expect(kept.size).toBe(2);
    await waitFor(() => expect(ended).toEqual(['DELETE a3']));
    of('b').bring(begun('b1'));
    of('c').bring(begun('c1'));
    expect(kept.size).toBe(3);
    await waitFor(() => expect(ended).toEqual(['DELETE a3', 'DELETE a1']));
    expect(of('b').take()?.headers['mcp-session-id']).toBe('b1');
    expect(of('b').take()).toBeNull();
    expect(kept.size).toBe(2);
  });

  test('end after a while, and when they are old', async () => {
    const { kept, ended, of } = keeping({ idleMs: -1 });
    of('a').bring(begun('a1'));
    expect([kept.size, of('a').take()]).toEqual([1, null]);
    await waitFor(() => expect(ended).toEqual(['DELETE a1']));
    of('b').bring(begun('b1', performance.now() - 3_600_000));
    expect(kept.size).toBe(0);
    await waitFor(() => expect(ended).toEqual(['DELETE a1', 'DELETE b1']));
  });

  test('end one after the other: their servers take no room of the calls, and nobody waits for long', async () => {
    const { kept, ended, of } = keeping({ perHolder: 100 }, false);
    for (let count = 0; count < 20; count++) of('a').bring(begun(`a${count}`));
    // a stop waits for a second, however long a server takes
    await kept.close();
    expect([kept.size, ended]).toEqual([0, ['DELETE a0', 'DELETE a1']]);
  });

  test('are given out for the same requests alone', async () => {
    const { kept, ended, of } = keeping({});
    of('a').bring(begun('a1'));
    const others = [
      { url: `${url}/2`, headers: HEADERS },
      { url, headers: { 'x-key': 'b' } },
      { url, headers: { ...HEADERS, 'x-more': 'c' } },
    ];
    expect(kept.of(holderOf('b'), { url, headers: HEADERS }).take()).toBeNull();
    for (const other of [{ connectionId: 'c' }, { principalId: 'tok' }, { namespaceId: 'n' }])
      expect(kept.of({ ...holderOf('a'), ...other }, { url, headers: HEADERS }).take()).toBeNull();
    expect(ended).toEqual([]);
    for (const request of others) {
      expect(kept.of(holderOf('a'), request).take()).toBeNull();
      of('a').bring(begun('again'));
    }
    await waitFor(() => expect(ended).toEqual(['DELETE a1', 'DELETE again', 'DELETE again']));
    expect(kept.of(holderOf('a'), { url, headers: { 'X-Key': 'a' } }).take()).not.toBeNull();
  });
});
