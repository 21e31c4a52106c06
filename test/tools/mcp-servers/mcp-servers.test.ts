import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type McpServerOfOthers, replies, startMcpServer } from '../../support/mcp-server.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { type Instance, instancesOf, type Json, newInstance, placesOf } from '../tool-instances/instances.ts';

let app: TestApp;
let servers: Record<'sessions' | 'both', McpServerOfOthers>;
let ann: Person;
beforeAll(async () => {
  servers = { sessions: await startMcpServer('sessions'), both: await startMcpServer('both') };
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
const initially = () => ({
  tools: [],
  called: [],
  wants: null,
  first: null,
  instead: null,
  call: (name: string) => ({ content: [{ type: 'text' as const, text: `${name} was called` }] }),
});
let offered: Record<string, McpServerOfOthers['tools']>;
beforeAll(() => {
  offered = Object.fromEntries(Object.entries(servers).map(([kind, { tools }]) => [kind, tools]));
});
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
  for (const [kind, server] of Object.entries(servers)) {
    Object.assign(server, initially(), { tools: structuredClone(offered[kind]) });
    server.requests.length = 0;
  }
});
// sessions that are kept would end in another test
afterEach(() => app.services.mcpSessions.endAll());
afterAll(async () => {
  await app.close();
  for (const server of Object.values(servers)) await server.close();
});

interface Tool extends Json {
  tool_id: string;
  action_schemas: Json[];
}
interface Preview extends Json {
  operations: { operation: string; action: Json | null }[];
  gaps: { place: string; operation: string | null; kind: string }[];
  changes: { operation: string; change: string; is_edited: boolean }[];
}
interface Result extends Json {
  success: boolean;
  code: string;
  confirmation: string | null;
  request: { headers: Record<string, string>; body: string } | null;
}

const imports = () => `/v1/orgs/${ann.orgId}/tools/import`;
const askedFor = async <Body>(path: string, body: Json, status: number) => {
  const answer = await ann.call<Body>('POST', path, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(status);
  return answer.body;
};
const preview = ({ url }: { url: string }, body: Json = {}) =>
  askedFor<Preview>(`${imports()}/preview`, { kind: 'mcp', url, ...body }, 200);
const imported = ({ url }: McpServerOfOthers, body: Json = {}) =>
  askedFor<Tool>(
    imports(),
    { kind: 'mcp', url, slug: 'others', operations: ['echo', 'weather', 'erase'], ...body },
    201,
  );
const refusedOf = async (body: Json) =>
  (
    await askedFor<{ detail: { loc: string[]; msg: string }[] }>(`${imports()}/preview`, { kind: 'mcp', ...body }, 422)
  ).detail.map(({ loc, msg }) => `${loc.at(-1)}: ${msg.replace('Value error, ', '')}`);
const instanceOf = (tool: Tool, given: Json = {}) => newInstance(ann, tool.tool_id, { configuration: {}, ...given });
const run = (instance: Instance, action: string, body: Json = {}, status = 200) =>
  askedFor<Result>(`${instancesOf(ann)}/${instance.instance_id}/execute`, { action, ...body }, status);
const methodsOf = ({ requests }: McpServerOfOthers) =>
  requests.map(({ method, body }) => (body === '' ? method : (JSON.parse(body) as { method: string }).method));

describe.each(['sessions', 'both'] as const)('a server of the SDK (%s)', (kind) => {
  test('gives its tools as actions, which are called through it', async () => {
    const server = servers[kind];
    const shown = await preview(server);
    expect(shown).toMatchObject({ kind: 'mcp', title: 'Of others', version: '7', total: 3, gap_count: 0 });
    expect(shown.format).toBe(kind === 'sessions' ? '2025-11-25' : '2026-07-28');
    const tool = await imported(server, { document_digest: shown.document_digest });
    expect(tool).toMatchObject({
      name: 'Of others',
      custom_action_type: 'mcp',
      import_source: { kind: 'mcp', url: server.url, operations: [{ operation: 'echo', action: 'echo' }, {}, {}] },
    });
    expect(tool.action_schemas[0]).toMatchObject({
      display_name: 'Echo',
      description: 'Says it again.',
      parameters: [
        { name: 'text', type: 'string', description: 'What to say.', max_length: 100, required: true },
        { name: 'times_n', display_name: 'times/n', type: 'integer', min_value: 1 },
      ],
      is_read_only: true,
      is_destructive: false,
    });
    const instance = await instanceOf(tool);
    server.requests.length = 0;
    const result = await run(instance, 'echo', { parameters: { text: 'a"{{b}}', times_n: 2 } });
    expect(result).toMatchObject({
      success: true,
      code: 'ok',
      status: 200,
      format: 'text',
      result: 'echo was called',
      attempts: 1,
    });
    expect(server.called).toEqual([{ name: 'echo', args: { text: 'a"{{b}}', 'times/n': 2 } }]);
    if (kind === 'both') expect(methodsOf(server)).toEqual(['tools/call']);
    else {
      expect(methodsOf(server)).toEqual(['initialize', 'notifications/initialized', 'tools/call']);
    }
    // what is structured is the result, and is checked
    server.call = () => ({ content: [{ type: 'text', text: '21 degrees' }], structuredContent: { degrees: 21 } });
    expect(await run(instance, 'weather', { parameters: { place: {} } })).toMatchObject({
      format: 'json',
      result: { degrees: 21 },
    });
    server.call = () => ({ content: [{ type: 'text', text: 'warm' }] });
    expect(await run(instance, 'weather')).toMatchObject({ success: false, code: 'schema_mismatch' });
    await run(instance, 'echo', { parameters: { text: 1 } }, 422);
    await run(instance, 'echo', {}, 422);
  });

  test('refuses by an error of a tool, which is shown', async () => {
    const server = servers[kind];
    const instance = await instanceOf(await imported(server));
    server.call = () => ({ isError: true, content: [{ type: 'text', text: 'no such text' }] });
    const result = await run(instance, 'echo', { parameters: { text: 'x' } });
    expect(result).toMatchObject({
      success: false,
      code: 'tool_error',
      message: 'Of others answered that the tool failed.',
      excerpt: 'no such text',
      attempts: 1,
    });
    expect(await eventsOf(app, instance.instance_id)).toContain('tool_action.failed');
    server.tools = [];
    server.call = () => {
      throw new Error('broken');
    };
    expect(await run(instance, 'echo', { parameters: { text: 'x' } })).toMatchObject({
      success: false,
      code: 'rpc_error',
    });
  });

  test('is asked with the credential of the instance, which nobody sees', async () => {
    const server = servers[kind];
    server.wants = ['x-key', 'their-key-of-16-x'];
    expect(await refusedOf({ url: server.url })).toEqual([
      'credential: The server answers 401: it wants a credential, or another one. ' +
        'The server publishes no metadata of a protected resource.',
    ]);
    const credential = { credential: 'their-key-of-16-x', credential_header: 'X-Key' };
    const tool = await imported(server, credential);
    expect(tool.credential_schema).toEqual([
      { name: 'credential', type: 'secret', placement: { in: 'header', name: 'X-Key' }, required: true },
    ]);
    expect(JSON.stringify(tool)).not.toContain('their-key');
    const instance = await instanceOf(tool, { configuration: { credential: 'their-key-of-16-x' } });
    server.call = () => ({ content: [{ type: 'text', text: 'you are their-key-of-16-x' }] });
    const parameters = { text: 'x' };
    expect(await run(instance, 'echo', { parameters })).toMatchObject({ success: true, result: 'you are ********' });
    const { request } = await run(instance, 'echo', { parameters, dry_run: true });
    expect(request).toMatchObject({ method: 'POST', url: server.url, headers: { 'x-key': '********' } });
    expect(JSON.parse(request!.body)).toMatchObject({
      method: 'tools/call',
      params: { name: 'echo', arguments: parameters },
    });
    const wrong = await instanceOf(tool, { configuration: { credential: 'another-one' } });
    expect(await run(wrong, 'echo', { parameters })).toMatchObject({
      success: false,
      code: 'http_401',
      excerpt: 'who are you?',
    });
    const tested = await askedFor<Json>(
      `${instancesOf(ann)}/${instance.instance_id}/test`,
      { action: 'echo', parameters },
      200,
    );
    expect(tested).toMatchObject({ success: true });
  });

  test('is asked once more only where that is safe', async () => {
    const server = servers[kind];
    const instance = await instanceOf(await imported(server));
    const failing = (times: number) => {
      let left = times;
      server.instead = ({ method }, response) =>
        method === 'tools/call' && left-- > 0 ? response.writeHead(503).end() : null;
    };
    failing(1);
    expect(await run(instance, 'echo', { parameters: { text: 'x' } })).toMatchObject({ success: true, attempts: 2 });
    // MCP has it that a tool of which nothing is said may destroy something
    const first = await run(instance, 'erase');
    expect(first).toMatchObject({ code: 'confirmation_required', request: { method: 'POST' } });
    failing(1);
    const { confirmation } = first;
    expect(await run(instance, 'erase', { confirmation })).toMatchObject({
      success: false,
      code: 'http_503',
      attempts: 1,
    });
  });

  test('is compared with the tool later', async () => {
    const server = servers[kind];
    const tool = await imported(server);
    const again = `/v1/orgs/${ann.orgId}/tools/${tool.tool_id}/import`;
    server.tools[0]!.description = 'Says it twice.';
    server.tools[2]!.name = 'wipe';
    const shown = await askedFor<Preview>(`${again}/preview`, {}, 200);
    expect(shown).toMatchObject({ kind: 'mcp', url: server.url, unchanged: 1, other_credentials: false });
    expect(shown.changes.map(({ operation, change }) => `${operation} ${change}`)).toEqual([
      'echo changed',
      'wipe added',
      'erase removed',
    ]);
    const after = await askedFor<Tool>(
      again,
      { operations: ['echo', 'erase'], document_digest: shown.document_digest },
      200,
    );
    expect(after.action_schemas.map(({ name, description }) => [name, description])).toEqual([
      ['echo', 'Says it twice.'],
      ['weather', undefined],
    ]);
  });
});

describe('a hostile server', () => {
  const many = (count: number, more: Json = {}) =>
    Array.from({ length: count }, (_, at) => ({ name: `tool_${at}`, inputSchema: { type: 'object' }, ...more }));
  /** Answers lists of tools in a session, without the SDK. */
  const listing = (list: (cursor: unknown) => unknown) => {
    servers.sessions.instead = (message, response) => {
      if (message.method === 'initialize')
        return replies(response, message, { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: {} });
      if (message.method === 'tools/list') return replies(response, message, list(message.params?.cursor));
      return response.writeHead(message.id === undefined ? 202 : 404).end();
    };
  };
  const url = () => servers.sessions.url;

  test('gives no more tools, pages and bytes than anybody reads', async () => {
    listing((cursor) => ({
      tools: many(60).map((tool) => ({ ...tool, name: `${String(cursor)}${tool.name}` })),
      nextCursor: `${String(cursor)}x`,
    }));
    const shown = await preview(servers.sessions);
    expect(shown).toMatchObject({ total: 100, gaps: [{ place: '/tools', operation: null, kind: 'too_large' }] });
    listing(() => ({ tools: [], nextCursor: 'a' }));
    expect(await refusedOf({ url: url() })).toEqual(['url: The pages of the list of tools lead in a circle.']);
    let count = 0;
    listing(() => ({ tools: [], nextCursor: String(count++) }));
    expect(await refusedOf({ url: url() })).toEqual(['url: The list of tools has more than 20 pages.']);
    listing(() => ({ tools: [], nextCursor: String(count++), filling: 'x'.repeat(900_000) }));
    expect(await refusedOf({ url: url() })).toEqual(['url: The list of tools has more than 2097152 bytes.']);
    listing(() => ({ tools: many(1, { description: 'x'.repeat(1_100_000) }) }));
    expect(await refusedOf({ url: url() })).toEqual([
      'url: The answer of the target is too large: it has more than 1 MiB.',
    ]);
    listing(() => ({ tools: [], nextCursor: 'x'.repeat(5_000) }));
    expect(await refusedOf({ url: url() })).toEqual(['url: The list of tools has no usable next page.']);
  });

  test('gives no action that is none, and keeps nothing that no database keeps', async () => {
    let deep: Json = { type: 'string' };
    for (let at = 0; at < 40; at++) deep = { type: 'object', properties: { a: deep } };
    const self = { type: 'object', properties: { a: { $ref: '#' } } };
    const wide = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`p${at}`, { type: 'string' }]));
    const tools = [
      ['deep', deep],
      ['self', self],
      ['wide', { type: 'object', properties: wide }],
      ['outside', { type: 'object', properties: { a: { $ref: 'https://evil.example.com/a.json' } } }],
      ['{{credential}}', { type: 'object' }],
      ['stolen', { type: 'object', properties: { '{{credential}}': { type: 'string' } } }],
      [
        'named',
        {
          type: 'object',
          properties: { credential: { type: 'string' }, __proto__x: {}, constructor: { type: 'string' } },
        },
      ],
      ['named', { type: 'object' }],
      ['list', { type: 'array' }],
      ['nul\u0000', { type: 'object' }],
      ['none', null],
    ].map(([name, inputSchema]) => ({ name, inputSchema, description: `a\u0000b\ud800${'x'.repeat(9_000)}` }));
    listing(() => ({ tools: [...tools, null, 7] }));
    const shown = await preview(servers.sessions);
    expect(shown.operations.map(({ operation, action }) => [operation, action?.name ?? null])).toEqual([
      ['deep', 'deep'],
      ['self', 'self'],
      ['wide', null],
      ['outside', null],
      ['stolen', null],
      ['named', 'named'],
      ['list', null],
      ['none', null],
    ]);
    const named = shown.operations.find(({ operation }) => operation === 'named')!.action!;
    // no parameter stands for the credential
    expect((named.parameters as Json[]).map(({ name }) => name)).toEqual(['credential_2', '__proto__x', 'constructor']);
    expect((named.description as string).length).toBe(4_000);
    expect(shown.gaps.map(({ operation, kind }) => `${operation} ${kind}`)).toEqual(
      expect.arrayContaining([
        'null invalid',
        'wide too_large',
        'outside remote_reference',
        'stolen unsupported',
        'list unsupported',
        'none invalid',
      ]),
    );
  });

  test.each([
    ['of another id', (id: number) => `data: {"jsonrpc":"2.0","id":${id + 1},"result":{"content":[]}}\n\n`],
    ['that is no JSON', () => 'data: {"jsonrpc":\n\n'],
    ['that is nested deeply', (id: number) => `data: {"id":${id},"result":${'['.repeat(300)}${']'.repeat(300)}}\n\n`],
    ['that is a question', () => 'data: {"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}\n\n'],
    ['without an end', () => 'data: {'],
  ])('gives no result by an answer %s', async (_what, eventOf) => {
    const instance = await instanceOf(await imported(servers.both));
    servers.both.instead = ({ id }, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(eventOf(id!));
    expect(await run(instance, 'echo', { parameters: { text: 'x' } })).toMatchObject({
      success: false,
      code: 'protocol_error',
      result: null,
      message: 'Of others answered something else than MCP says.',
    });
  });

  test('holds nobody up by a stream that does not end after the answer', async () => {
    const instance = await instanceOf(await imported(servers.both));
    let isOpen = true;
    servers.both.instead = ({ id }, response) => {
      response.on('close', () => {
        isOpen = false;
      });
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'here ä' }] } });
      const bytes = Buffer.from(
        `: hello\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"x"}\r\n\r\ndata:${answer}\r\n\r\n`,
      );
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      // in pieces that cut characters and ends of lines
      for (const byte of bytes) response.write(Buffer.from([byte]));
    };
    expect(await run(instance, 'echo', { parameters: { text: 'x' } })).toMatchObject({
      success: true,
      result: 'here ä',
    });
    await waitFor(() => expect(isOpen).toBe(false));
  });

  test('asks nobody for more, begins no session of another protocol, and sets no header', async () => {
    const instance = await instanceOf(await imported(servers.both));
    servers.both.instead = (message, response) =>
      replies(response, message, { resultType: 'input_required', inputRequests: {} });
    expect(await run(instance, 'echo', { parameters: { text: 'x' } })).toMatchObject({
      success: false,
      code: 'input_required',
    });
    const others = await instanceOf(await imported(servers.sessions, { slug: 'old' }));
    for (const [version, session] of [
      ['1999-01-01', 'fine'],
      ['2025-06-18', 'x'.repeat(2_000)],
      ['2025-06-18', 'a b'],
    ] as const) {
      servers.sessions.instead = (message, response) =>
        replies(response, message, { protocolVersion: version }, { 'mcp-session-id': session });
      servers.sessions.requests.length = 0;
      expect(await run(others, 'echo', { parameters: { text: 'x' } })).toMatchObject({ code: 'protocol_error' });
      expect(methodsOf(servers.sessions)).toEqual(['initialize']);
    }
  });

  test('is not called where this service does not call, and gets no credential elsewhere', async () => {
    expect(await refusedOf({ url: 'https://169.254.169.254/mcp' })).toEqual([expect.stringContaining('does not call')]);
    expect(await refusedOf({ url: `${url()}?api_key=sk_live_1234567890abcdef` })).toEqual([
      expect.stringContaining('url: it seems to have a credential'),
    ]);
    expect(await refusedOf({ url: `${url()}?x={{credential}}` })).toEqual([expect.stringContaining('url:')]);
    expect(await refusedOf({ document: '{}' })).toEqual([expect.stringContaining('document: give the address')]);
    expect(await refusedOf({ url: url(), base_url: 'https://a.example.com' })).toEqual([
      expect.stringContaining('base_url:'),
    ]);
    expect(await refusedOf({ url: url(), credential_header: 'X-Key' })).toEqual([
      expect.stringContaining('credential_header:'),
    ]);
    expect(await refusedOf({ url: url(), credential: 'x', credential_header: 'Mcp-Name' })).toEqual([
      expect.stringContaining('credential_header:'),
    ]);
    expect(await refusedOf({ kind: 'openapi', url: url(), credential: 'x' })).toEqual([
      expect.stringContaining('credential: only an MCP server'),
    ]);
    servers.both.instead = (_message, response) =>
      response.writeHead(307, { location: servers.sessions.url.replace('127.0.0.1', 'localhost') }).end();
    expect(await refusedOf({ url: servers.both.url, credential: 'theirs' })).toEqual([
      expect.stringContaining('url: The target redirects'),
    ]);
    expect(servers.sessions.requests).toEqual([]);
    const bad = await ann.call('POST', `${imports()}/preview`, { kind: 'mcp', url: url(), credential: 'a\nb' });
    expect([bad.status, placesOf(bad.body)]).toEqual([422, [['credential', 'string_pattern_mismatch']]]);
    expect(JSON.stringify(bad.body)).not.toContain('a\\nb');
  });
});
