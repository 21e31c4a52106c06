import type http from 'node:http';
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { hostileTargets } from '../../support/hostile-targets.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool, placesOf } from '../tool-instances/instances.ts';

const SECRET = 'sk/live+ Ä"key';

let app: TestApp;
let target: TargetServer;
let ann: Person;
/** What the target answers; the next one first. */
let answers: ((request: http.IncomingMessage, response: http.ServerResponse, body: string) => unknown)[];
beforeAll(async () => {
  target = await startTarget((request, response, body) => {
    const answer = answers.shift();
    if (answer) return answer(request, response, body);
    response.setHeader('set-cookie', 'session=theirs');
    response.end(JSON.stringify({ data: { items: [{ id: 1 }, { id: 2 }] } }));
  });
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
beforeEach(async () => {
  answers = [];
  target.requests.length = 0;
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await target.close();
});

const baseUrl = () => `http://127.0.0.1:${target.port}`;
const FIELDS = [{ name: 'base_url', type: 'string' }];
const KEY = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } };

interface Result extends Json {
  success: boolean;
  code: string;
  result: unknown;
  confirmation: string | null;
}

/** An instance of a tool with one action, whose requests go to the target. */
async function instanceWith(action: Json = {}, { tool = {}, given = {} }: { tool?: Json; given?: Json } = {}) {
  const toolId = await newTool(ann, {
    config_schema: FIELDS,
    credential_schema: [],
    action_schemas: [{ name: 'run', method: 'GET', url_template: '{{base_url}}/things', ...action }],
    ...tool,
  });
  return newInstance(ann, toolId, { configuration: { base_url: baseUrl() }, ...given });
}
/** The same with a key, which the instance keeps. */
const keyed = (action: Json = {}) =>
  instanceWith(action, {
    tool: { credential_schema: [KEY] },
    given: { configuration: { base_url: baseUrl(), api_key: 'a-key-of-theirs' } },
  });
const urlOf = ({ instance_id }: Instance) => `${instancesOf(ann)}/${instance_id}/execute`;
const asked = (instance: Instance, body: Json = {}, person = ann) =>
  person.call<Result>('POST', urlOf(instance), { action: 'run', ...body });
async function run(instance: Instance, body: Json = {}, person = ann): Promise<Result> {
  const { status, body: result } = await asked(instance, body, person);
  expect(status, JSON.stringify(result)).toBe(200);
  return result;
}
const refusalOf = async (instance: Instance, body: Json = {}) => {
  const { status, body: refusal } = await asked(instance, body);
  expect(status, JSON.stringify(refusal)).toBe(422);
  return placesOf(refusal);
};
const reply = (status: number, body = '', headers: Record<string, string> = {}) => {
  return (_request: http.IncomingMessage, response: http.ServerResponse) =>
    response.writeHead(status, headers).end(body);
};

describe('an action', () => {
  test('is sent over a connection that its organization has kept, unless it changes something', async () => {
    const [reading, writing] = [await keyed(), await keyed({ method: 'POST' })];
    const seen = async (instance: Instance) => {
      const before = target.connections;
      await run(instance);
      return target.connections - before;
    };
    // a machine that is busy for seconds may let one end
    await waitUntil(async () => (await seen(reading)) === 0);
    expect(await seen(writing)).toBe(1);
    const sent = target.requests.length;
    target.cut();
    expect((await run(reading)).success).toBe(true);
    expect(target.requests.length).toBe(sent + 1);
    ann = await register(app, { name: 'zoe' });
    expect(await seen(await keyed())).toBe(1);
  });

  test('is sent as its templates say, and answers what is at its result path', async () => {
    const instance = await keyed({
      method: 'POST',
      url_template: '{{base_url}}/a/{{path}}?fixed=1&q={{q}}',
      headers: { 'x-lang': '{{lang}}', 'x-absent': '{{nothing}}' },
      body_template: '{"title": {{title}}, "note": "about {{lang}}"}',
      parameters: [
        { name: 'path', required: true },
        { name: 'q' },
        { name: 'lang', default: 'de' },
        { name: 'nothing' },
        { name: 'title', type: 'object', properties: { text: { type: 'string', required: true } } },
      ],
      response_result_path: '$.data.items[1].id',
      output_schema: { type: 'integer' },
    });
    const parameters = { path: 'b c?#&', q: 'x&y=1', title: { text: 'a"b' } };
    const result = await run(instance, { parameters });
    expect(result).toEqual({
      tool_instance_id: instance.instance_id,
      action: 'run',
      success: true,
      code: 'ok',
      message: 'Tickets answered 200.',
      request: null,
      confirmation: null,
      confirmation_expires_at: null,
      status: 200,
      headers: { date: expect.any(String) },
      format: 'json',
      result: 2,
      truncated: false,
      whole_result: null,
      size_bytes: 38,
      excerpt: null,
      pages: null,
      attempts: 1,
      duration_ms: expect.any(Number),
    });
    const [sent] = target.requests;
    expect(sent).toMatchObject({ method: 'POST', path: '/a/b%20c%3F%23%26?fixed=1&q=x%26y%3D1' });
    expect(sent!.headers).toMatchObject({ 'x-lang': 'de', 'x-api-key': 'a-key-of-theirs' });
    expect(sent!.headers).not.toHaveProperty('x-absent');
    expect(JSON.parse(sent!.body)).toEqual({ title: { text: 'a"b' }, note: 'about de' });
  });

  test('is recorded with how it ended and without values, told, and counted', async () => {
    const instance = await instanceWith({ parameters: [{ name: 'word' }] });
    await run(instance, { parameters: { word: 'unmistakable' } });
    answers = [reply(404, '{"error":"no such thing"}')];
    const failed = await run(instance);
    expect(failed).toMatchObject({
      success: false,
      code: 'http_404',
      excerpt: '{"error":"no such thing"}',
      result: null,
    });
    const { instance_id: id } = instance;
    expect((await eventsOf(app, id)).slice(-2)).toEqual(['tool_action.executed', 'tool_action.failed']);
    const [event] = await app.database.prisma.event.findMany({ where: { resourceId: id, type: 'tool_action.failed' } });
    expect(event).toMatchObject({
      resourceType: 'tool_action',
      data: { action: 'run', code: 'http_404', status: 404, duration_ms: expect.any(Number) },
    });
    expect((await changesOf(app, id)).at(-1)).toMatchObject({
      action: 'execute',
      metadata: { code: 'ok', status: 200 },
    });
    const records = await app.database.prisma.activity.findMany({ where: { resourceId: id, action: 'execute' } });
    expect(
      records.map(({ success, statusCode }) => [success, statusCode]).sort(([a], [b]) => Number(a) - Number(b)),
    ).toEqual([
      [false, 200],
      [true, 200],
    ]);
    expect(inspect([records, event], { depth: 9 })).not.toMatch(/unmistakable|no such thing/);
    const counted = await ann.ask<{ toolInstance: Json }>(
      `{ toolInstance(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", id: "${id}") {
        usageCount actionCounts } }`,
    );
    expect(counted.data?.toolInstance).toEqual({ usageCount: 2, actionCounts: { run: { executed: 1, failed: 1 } } });
  });

  test('that is unknown, or with arguments that it does not accept, is refused at the place', async () => {
    const instance = await instanceWith({
      url_template: '{{base_url}}/{{path}}',
      parameters: [
        { name: 'path' },
        { name: 'count', type: 'integer', required: true, max_value: 5 },
        { name: 'list', type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
        { name: 'deep', type: 'object', properties: { in: { type: 'object', properties: { x: { required: true } } } } },
      ],
    });
    expect(await refusalOf(instance, { action: 'walk' })).toEqual([['action', 'value_error']]);
    const wrong = { count: 6, list: ['a', 'c'], deep: { in: {} }, other: 1 };
    expect(await refusalOf(instance, { parameters: wrong })).toEqual([
      ['parameters.other', 'extra_forbidden'],
      ['parameters.count', 'less_than_equal'],
      ['parameters.list.1', 'literal_error'],
      ['parameters.deep.in.x', 'missing'],
    ]);
    expect(await refusalOf(instance, {})).toEqual([['parameters.count', 'missing']]);
    // the path of an address cannot do without a value
    expect(await refusalOf(instance, { parameters: { count: 1 } })).toEqual([['parameters', 'value_error']]);
    expect(target.requests).toEqual([]);
  });

  test('of an inactive instance or a disabled tool does not run', async () => {
    const instance = await instanceWith();
    await ann.call('POST', `${instancesOf(ann)}/${instance.instance_id}/toggle?is_active=false`);
    expect(await asked(instance)).toMatchObject({ status: 409, body: { details: { reason: 'instance_inactive' } } });
    await ann.call('POST', `${instancesOf(ann)}/${instance.instance_id}/toggle?is_active=true`);
    await ann.call('PUT', `/v1/orgs/${ann.orgId}/tools/${String(instance.tool_id)}`, { status: 'disabled' });
    expect(await asked(instance)).toMatchObject({ status: 409, body: { details: { reason: 'tool_disabled' } } });
    expect(target.requests).toEqual([]);
  });

  test('is read at once with what its instance keeps, and its tool once for each of its versions', async () => {
    const instance = await keyed();
    const log = logQueries(app.database.pool);
    const statements = () =>
      log.by(async () => {
        expect(await run(instance)).toMatchObject({ success: true });
      });
    await statements();
    const again = await statements();
    expect(again.filter((text) => /from tools t/.test(text))).toEqual([]);
    expect(again.filter((text) => /credentials/.test(text))).toHaveLength(1);
    const url = `/v1/orgs/${ann.orgId}/tools/${String(instance.tool_id)}`;
    expect((await ann.call('PUT', url, { name: 'Renamed' })).status).toBe(200);
    expect(await run(instance)).toMatchObject({ message: 'Renamed answered 200.' });
    expect(target.requests.map(({ headers }) => headers['x-api-key'])).toEqual(Array(3).fill('a-key-of-theirs'));
  });

  test('needs the permission, in its workspace', async () => {
    const instance = await instanceWith();
    const viewer = await colleague(app, ann, 'viewer');
    const member = await colleague(app, ann, 'member');
    const stranger = await register(app, { name: 'mallory' });
    const { headers } = await issueToken(app, ann, { permissions: ['tool_instance:read'] });
    const answers = [await asked(instance, {}, viewer), await asked(instance, {}, stranger)].map(
      ({ status }) => status,
    );
    const byToken = await app.server.inject({
      method: 'POST',
      url: urlOf(instance),
      headers,
      payload: { action: 'run' },
    });
    expect([...answers, byToken.statusCode]).toEqual([403, 403, 403]);
    expect((await run(instance, {}, member)).success).toBe(true);
  });
});

describe('answers', () => {
  test('that are no JSON, too large, or other than promised are shown as what they are', async () => {
    const plain = await instanceWith();
    answers = [reply(200, 'plain words')];
    expect(await run(plain)).toMatchObject({ success: true, format: 'text', result: 'plain words' });
    answers = [(_request, response) => response.end(Buffer.from([0xff, 0, 1]))];
    expect(await run(plain)).toMatchObject({ success: true, format: 'base64', result: '/wAB' });
    answers = [reply(200, JSON.stringify('ä'.repeat(200_000)))];
    const large = await run(plain);
    expect(large).toMatchObject({ success: true, format: 'text', truncated: true, size_bytes: 400_002 });
    expect(Buffer.byteLength(large.result as string)).toBeLessThanOrEqual(256 * 1024);
    answers = [reply(200, '['.repeat(50_000) + ']'.repeat(50_000))];
    expect(await run(plain)).toMatchObject({ success: true, format: 'text' });
    const promised = await instanceWith({
      response_result_path: '$.data',
      output_schema: { type: 'object', properties: { items: { type: 'array', items: { type: 'string' } } } },
    });
    expect(await run(promised)).toMatchObject({
      success: false,
      code: 'schema_mismatch',
      message: 'Tickets answered 200, but items[0] is not of the type string.',
    });
    answers = [reply(200, '{"other": 1}')];
    expect(await run(promised)).toMatchObject({ success: false, code: 'schema_mismatch', format: 'none' });
    answers = [reply(200, 'no json')];
    expect(await run(promised)).toMatchObject({ success: false, code: 'schema_mismatch', format: 'text' });
  });

  test('never have a credential in them, however it is spelled', async () => {
    const instance = await instanceWith(
      {
        method: 'POST',
        body_template: '{"pin": {{pin}}}',
        parameters: [{ name: 'pin', sensitive: true }],
      },
      {
        tool: { credential_schema: [{ ...KEY, placement: { in: 'query', name: 'key', prefix: 'Key ' } }] },
        given: { configuration: { base_url: baseUrl(), api_key: SECRET } },
      },
    );
    const echo = (status: number) => (request: http.IncomingMessage, response: http.ServerResponse, body: string) =>
      response
        .writeHead(status, { 'x-request-id': encodeURIComponent(SECRET) })
        .end(JSON.stringify({ url: request.url, body, raw: SECRET, basic: Buffer.from(SECRET).toString('base64') }));
    for (const status of [200, 400]) {
      answers = [echo(status)];
      const result = await run(instance, { parameters: { pin: 'the-pin-of-ann' } });
      const shown = JSON.stringify(result);
      expect(shown).toContain('********');
      for (const text of [SECRET, 'the-pin-of-ann', encodeURIComponent(SECRET), Buffer.from(SECRET).toString('base64')])
        expect(shown).not.toContain(JSON.stringify(text).slice(1, -1));
      expect(shown).not.toContain('live');
    }
    // too many to look for: then no text is shown
    const many = await instanceWith({ parameters: [{ name: 'pins', type: 'array', sensitive: true }] });
    const pins = Array.from({ length: 40 }, (_, at) => `secret ${at}`);
    answers = [reply(200, '{"a":"secret 39"}')];
    expect((await run(many, { parameters: { pins } })).result).toEqual({ '********': '********' });
    const { path } = target.requests[0]!;
    expect(new URL(path, 'http://target').searchParams.get('key')).toBe(`Key ${SECRET}`);
  });
});

describe('a call that fails', () => {
  test('is made again where that is safe, after the time that the provider asks for', async () => {
    const reading = await instanceWith({ retry_count: 2, timeout_seconds: 5 });
    // without the beginning of an answer, it would be no try of its own over a connection that was kept
    const breaks = (request: http.IncomingMessage, response: http.ServerResponse) =>
      response.write('{', () => request.socket.destroy());
    answers = [reply(503), breaks];
    expect(await run(reading)).toMatchObject({ success: true, attempts: 3 });
    answers = [reply(503), reply(503), reply(503)];
    expect(await run(reading)).toMatchObject({ success: false, code: 'http_503', attempts: 3 });
    answers = [reply(400)];
    expect(await run(reading)).toMatchObject({ success: false, code: 'http_400', attempts: 1 });
    const writing = await instanceWith({ method: 'POST', retry_count: 2, timeout_seconds: 5 });
    answers = [reply(503)];
    expect(await run(writing)).toMatchObject({ success: false, code: 'http_503', attempts: 1 });
    answers = [(request) => request.socket.destroy()];
    expect(await run(writing)).toMatchObject({ success: false, code: 'network', attempts: 1 });
    // a provider that says 429 has done nothing
    answers = [reply(429, '', { 'retry-after': '0' })];
    expect(await run(writing)).toMatchObject({ success: true, attempts: 2 });
  });

  test('stops the actions of its group for as long as the provider asks, and no others', async () => {
    const action = (name: string, group: string) => ({
      name,
      method: 'GET',
      url_template: '{{base_url}}/things',
      rate_limit_group: group,
    });
    const instance = await instanceWith(
      {},
      {
        tool: { action_schemas: [action('run', 'slow'), action('walk', 'slow'), action('fly', 'other')] },
      },
    );
    answers = [reply(429, '', { 'retry-after': '120' })];
    expect(await run(instance)).toMatchObject({ success: false, code: 'http_429', attempts: 1 });
    const refused = await asked(instance, { action: 'walk' });
    expect([refused.status, refused.body.error]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
    expect(await run(instance, { action: 'fly' })).toMatchObject({ success: true });
    expect(target.requests).toHaveLength(2);
  });

  test('leads nowhere else: no target inside, no other host, no other path, no header of its own', async () => {
    const free = await instanceWith({ url_template: '{{url}}', parameters: [{ name: 'url' }], retry_count: 3 });
    const seen = target.connections;
    // those that lead to this very address are allowed here
    const inside = hostileTargets(target.port).filter(({ url }) => /169\.254|10\.|192\.168|\[fd|metadata/.test(url));
    expect(inside.length).toBeGreaterThan(10);
    for (const { url } of inside.slice(0, 40)) {
      const { status, body } = await asked(free, { parameters: { url } });
      if (status === 200) expect(body, url).toMatchObject({ success: false, attempts: 1, result: null });
      else expect(status, url).toBe(422);
    }
    expect(target.connections).toBe(seen);
    const closed = await keyed({
      url_template: '{{base_url}}{{path}}/end',
      headers: { 'x-word': '{{word}}' },
      parameters: [{ name: 'path' }, { name: 'word' }],
    });
    for (const path of ['.evil.test', '/../admin', '/a/../..', '/.', '@evil.test/', ':1@evil.test'])
      expect(await asked(closed, { parameters: { path } }), path).toMatchObject({ status: 422 });
    for (const path of ['//evil.test', '/@evil.test', '/\\evil.test', '/%2e%2e/x', '/?a=b#c'])
      await run(closed, { parameters: { path } });
    for (const { path, headers } of target.requests) {
      expect(new URL(path, baseUrl()).pathname).toMatch(/\/end$/);
      expect(headers.host).toBe(`127.0.0.1:${target.port}`);
    }
    for (const word of ['a\r\nx-evil: 1', 'a\nb', '\u2028'])
      expect(await run(closed, { parameters: { path: '/x', word } })).toMatchObject({ code: 'invalid_request' });
  });

  test('follows no redirect to another host', async () => {
    const instance = await keyed();
    answers = [reply(302, '', { location: `http://localhost:${target.port}/elsewhere` })];
    expect(await run(instance)).toMatchObject({ success: false, code: 'redirect' });
    expect(target.requests).toHaveLength(1);
  });
});

describe('an action that needs confirmation', () => {
  const drop = {
    method: 'DELETE',
    url_template: '{{base_url}}/things/{{id}}',
    headers: { 'x-pin': '{{pin}}' },
    parameters: [
      { name: 'id', required: true },
      { name: 'pin', sensitive: true },
    ],
    is_destructive: true,
  };
  const parameters = { id: '7', pin: 'the-pin-of-ann' };

  test('shows what it would do, and does it once it is confirmed', async () => {
    const instance = await keyed(drop);
    const first = await run(instance, { parameters });
    expect(first).toMatchObject({
      success: true,
      code: 'confirmation_required',
      status: null,
      attempts: 0,
      request: {
        method: 'DELETE',
        url: `${baseUrl()}/things/7`,
        headers: { 'x-pin': '********', 'x-api-key': '********' },
        body: null,
      },
    });
    expect(JSON.stringify(first)).not.toMatch(/a-key-of-theirs|the-pin-of-ann/);
    expect(target.requests).toEqual([]);
    const again = await run(instance, { parameters, confirmation: first.confirmation });
    expect(again).toMatchObject({ success: true, code: 'ok', confirmation: null, request: null });
    expect(target.requests.map(({ method, path }) => [method, path])).toEqual([['DELETE', '/things/7']]);
    expect(await refusalOf(instance, { parameters, confirmation: first.confirmation })).toEqual([
      ['confirmation', 'value_error'],
    ]);
    expect(target.requests).toHaveLength(1);
    const stored = await app.database.pool.query('select * from tool_confirmations');
    expect(stored.rows).toEqual([]);
  });

  test('is confirmed for no other arguments, caller or instance, not too late and not after a change', async () => {
    const instance = await keyed(drop);
    const other = await keyed(drop);
    const bob = await colleague(app, ann, 'admin');
    const confirmed = async () => (await run(instance, { parameters })).confirmation;
    const refused = async (of: Instance, body: Json, person = ann) => {
      const { status, body: refusal } = await asked(of, body, person);
      expect([status, placesOf(refusal)]).toEqual([422, [['confirmation', 'value_error']]]);
    };
    const confirmation = await confirmed();
    await refused(instance, { parameters, confirmation }, bob);
    await refused(other, { parameters, confirmation });
    await refused(instance, { parameters: { ...parameters, id: '8' }, confirmation });
    // that was the try of its caller
    await refused(instance, { parameters, confirmation });
    await refused(instance, { parameters, confirmation: 'made-up' });
    const late = await confirmed();
    await app.database.pool.query(`update tool_confirmations set expires_at = now() - interval '1 second'`);
    await refused(instance, { parameters, confirmation: late });
    const before = await confirmed();
    await ann.call('PUT', `${instancesOf(ann)}/${instance.instance_id}`, {
      configuration: { base_url: `${baseUrl()}/v2` },
    });
    await refused(instance, { parameters, confirmation: before });
    const { headers } = await issueToken(app, ann, { permissions: ['tool_instance:execute', 'tool_instance:read'] });
    const ofSession = await confirmed();
    const byToken = await app.server.inject({
      method: 'POST',
      url: urlOf(instance),
      headers,
      payload: { action: 'run', parameters, confirmation: ofSession },
    });
    expect(byToken.statusCode).toBe(422);
    expect(target.requests).toEqual([]);
  });

  test('is done once by many who confirm it at the same time', async () => {
    const instance = await keyed(drop);
    const { confirmation } = await run(instance, { parameters });
    const all = await Promise.all(Array.from({ length: 5 }, () => asked(instance, { parameters, confirmation })));
    expect(all.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 422, 422, 422, 422]);
    expect(target.requests).toHaveLength(1);
  });
});

test('a key of an idempotent request is used up before the provider is called, and repeats the answer', async () => {
  const instance = await instanceWith({ method: 'POST' });
  const marks: unknown[] = [];
  answers = [
    async (_request, response) => {
      const { rows } = await app.database.pool.query('select committed_at is not null as marked from idempotency_keys');
      marks.push(...rows);
      response.end('{}');
    },
  ];
  const again = () =>
    app.server.inject({
      method: 'POST',
      url: urlOf(instance),
      headers: { ...ann.headers, 'idempotency-key': 'once' },
      payload: { action: 'run' },
    });
  const [first, second] = [await again(), await again()];
  expect(first.json()).toMatchObject({ success: true, code: 'ok' });
  expect([second.headers['idempotent-replayed'], second.body]).toEqual(['true', first.body]);
  expect(marks).toEqual([{ marked: true }]);
  expect(target.requests).toHaveLength(1);
});

test('a dry run shows the request with masks and sends nothing, also of an inactive instance', async () => {
  const instance = await instanceWith(
    { method: 'POST', url_template: '{{hook}}/x', body_template: 'text {{word}}', parameters: [{ name: 'word' }] },
    {
      tool: { credential_schema: [KEY, { name: 'hook', type: 'secret', required: false }] },
      given: { configuration: { hook: `${baseUrl()}/very-secret-path`, api_key: SECRET }, is_active: false },
    },
  );
  expect(await run(instance, { dry_run: true, parameters: { word: 'hello' } })).toMatchObject({
    success: true,
    code: 'dry_run',
    request: { method: 'POST', url: '********', headers: { 'x-api-key': '********' }, body: 'text hello' },
  });
  expect(target.requests).toEqual([]);
});

test('a tool that needs credentials does not run without, in a dry run neither', async () => {
  const instance = await instanceWith({}, { tool: { credential_schema: [KEY] } });
  for (const body of [{}, { dry_run: true }])
    expect(await asked(instance, body)).toMatchObject({ status: 409, body: { details: { reason: 'no_credentials' } } });
});

describe('a key that the provider refuses', () => {
  test('is shown and told once, and is connected again when it is accepted', async () => {
    const instance = await instanceWith({}, { tool: { credential_schema: [KEY], supports_connection: true } });
    const { instance_id: id } = instance;
    const connections = `${ann.home}/connections`;
    const made = await ann.call<{ connection_id: string }>('POST', `${connections}/api-key`, {
      tool_instance_id: id,
      api_key: 'sk-refused',
    });
    const { connection_id } = made.body;
    answers = [reply(401, 'sk-refused is wrong'), reply(401)];
    const refused = await run(instance);
    expect(refused).toMatchObject({ success: false, code: 'http_401', excerpt: '******** is wrong' });
    await run(instance);
    const list = await ann.call<{ connections: Json[] }>('GET', connections);
    expect(list.body.connections[0]).toMatchObject({
      status: 'needs_reauth',
      last_error: 'The provider answered 401: it does not accept the API key.',
    });
    const told = (await eventsOf(app, connection_id)).filter((type) => type === 'connection.needs_reauth');
    expect(told).toHaveLength(1);
    expect((await ann.call<Instance>('GET', `${instancesOf(ann)}/${id}`)).body.connection_status).toBe('needs_reauth');
    expect(await run(instance)).toMatchObject({ success: true });
    expect((await ann.call<{ connections: Json[] }>('GET', connections)).body.connections[0]).toMatchObject({
      status: 'connected',
      last_error: null,
    });
  });
});

test('in a namespace, its own connection is used, and an instance of another namespace is not found', async () => {
  const instance = await instanceWith({}, { tool: { credential_schema: [KEY], supports_connection: true } });
  const { body: made } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
    name: 'Other',
    slug: 'other',
  });
  const at = (namespace: string) => `${ann.home}/namespaces/${namespace}`;
  for (const [home, api_key] of [
    [at(made.namespace_id), 'key-of-namespace'],
    [ann.home, 'key-of-workspace'],
  ] as const) {
    const url = home === ann.home ? `${home}/connections/api-key` : `${home}/connections`;
    await ann.call('POST', url, { tool_instance_id: instance.instance_id, api_key });
  }
  const path = `tool-instances/${instance.instance_id}/execute`;
  for (const home of [at(made.namespace_id), at('default'), ann.home])
    expect((await ann.call('POST', `${home}/${path}`, { action: 'run' })).status).toBe(200);
  expect(target.requests.map(({ headers }) => headers['x-api-key'])).toEqual([
    'key-of-namespace',
    'key-of-workspace',
    'key-of-workspace',
  ]);
  const theirs = await newInstance(ann, String(instance.tool_id), {
    namespace_id: made.namespace_id,
    configuration: { base_url: baseUrl() },
  });
  const elsewhere = `${at('default')}/tool-instances/${theirs.instance_id}/execute`;
  expect((await ann.call('POST', elsewhere, { action: 'run' })).status).toBe(404);
});
