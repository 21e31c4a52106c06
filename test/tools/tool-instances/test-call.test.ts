import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { startRawTarget, startTarget, type TargetServer } from '../../support/target-server.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool, placesOf } from './instances.ts';

let app: TestApp;
let target: TargetServer;
let ann: Person;
beforeAll(async () => {
  target = await startTarget((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://target');
    if (pathname === '/never') return;
    if (pathname === '/elsewhere') response.setHeader('location', 'http://example.test/');
    response.statusCode = Number(searchParams.get('status') ?? 200);
    response.end(pathname === '/text' ? 'plain words' : '{"secret": "of the provider"}');
  });
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
// nobody tests more than 30 times a minute
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await target.close();
});

interface Tested {
  success: boolean;
  message: string;
  details: Json;
  latency_ms: number;
}

const baseUrl = () => `http://127.0.0.1:${target.port}`;
const action = (name: string, path: string, more: Json = {}) => ({
  name,
  url_template: `{{base_url}}${path}`,
  ...more,
});
const field = { name: 'base_url', type: 'string' };
const key = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'X-Api-Key', prefix: 'Key ' } };

/** An instance with these actions, whose requests go to the target. */
async function instanceWith(actions: object[], given: Json = {}, tool: Json = {}): Promise<Instance> {
  const toolId = await newTool(ann, {
    config_schema: [field],
    credential_schema: [],
    action_schemas: actions,
    ...tool,
  });
  return newInstance(ann, toolId, { configuration: { base_url: baseUrl() }, ...given });
}
const tryIt = async ({ instance_id }: Instance, body: Json = {}, person = ann): Promise<Tested> => {
  const answer = await person.call<Tested>('POST', `${instancesOf(ann)}/${instance_id}/test`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const used = async ({ instance_id }: Instance) => {
  const { usage_count, last_used_at } = (await ann.call<Json>('GET', `${instancesOf(ann)}/${instance_id}`)).body;
  return [usage_count, last_used_at];
};

test('a call that succeeds is counted and recorded, and shows nothing of the answer', async () => {
  const made = await instanceWith([action('get', '/things')]);
  const before = (await ann.call<Instance>('GET', `${instancesOf(ann)}/${made.instance_id}`)).body;
  expect(await tryIt(made)).toEqual({
    success: true,
    message: 'Tickets answered 200.',
    details: { code: 'ok', action: 'get', method: 'GET', host: `127.0.0.1:${target.port}`, status: 200 },
    latency_ms: expect.any(Number),
  });
  expect(target.requests.at(-1)).toMatchObject({ method: 'GET', path: '/things' });
  expect(await used(made)).toEqual([1, expect.any(String)]);
  // what is counted is no change of the instance
  expect((await ann.call<Instance>('GET', `${instancesOf(ann)}/${made.instance_id}`)).body).toEqual({
    ...before,
    usage_count: 1,
    last_used_at: expect.any(String),
  });
  await app.services.activity.flush();
  expect((await changesOf(app, made.instance_id)).at(-1)).toMatchObject({
    action: 'execute',
    resourceType: 'tool_instance',
    workspaceId: ann.workspaceId,
    statusCode: 200,
  });
  expect(await eventsOf(app, made.instance_id)).toEqual(['tool_instance.created']);
});

test('a test that failed is a failure in the activity, with its code and how long it took', async () => {
  const made = await instanceWith([action('ask', '/json', { parameters: [{ name: 'status' }] })]);
  const failing = await instanceWith([action('ask', '/json?status=503')]);
  await tryIt(made);
  await tryIt(made, { dry_run: true });
  const { latency_ms } = await tryIt(failing);
  await app.services.activity.flush();
  interface Listed {
    activities: { success: boolean; status_code: number; error_code: string | null; metadata: Json }[];
  }
  const listed = async (query: string) =>
    (await ann.call<Listed>('GET', `${ann.home}/activity?action=execute&${query}`)).body.activities;
  expect(await listed('success=false')).toMatchObject([
    {
      resource_id: failing.instance_id,
      status_code: 200,
      error_code: null,
      metadata: { code: 'http_503', action: 'ask', status: 503, latency_ms },
    },
  ]);
  expect((await listed('success=true')).map(({ metadata }) => metadata.code)).toEqual(['dry_run', 'ok']);
});

test('the request is made from templates, configuration, parameters and credentials', async () => {
  const post = action('post', '/of/{{owner}}/x', {
    method: 'POST',
    headers: { 'X-Lang': '{{lang}}' },
    query_params_template: { page: '{{page}}', none: '{{nothing}}' },
    body_template: '{"text": {{text}}, "line": "to {{text}}!", "more": {{more}}}',
    parameters: [
      { name: 'owner', required: true },
      { name: 'lang', default: 'de' },
      { name: 'page', type: 'integer', max_value: 9 },
      { name: 'text' },
      { name: 'more', type: 'object' },
      { name: 'nothing' },
    ],
  });
  const made = await instanceWith(
    [post],
    { configuration: { base_url: baseUrl(), api_key: 'k-1' }, action_defaults: { post: { page: 3 } } },
    { credential_schema: [key] },
  );
  const parameters = { owner: 'a/b?c#d', text: 'He said "x"\n', more: { a: [1] } };
  expect(await tryIt(made, { action: 'post', parameters })).toMatchObject({
    success: true,
    details: { method: 'POST' },
  });
  const request = target.requests.at(-1)!;
  expect(request).toMatchObject({ method: 'POST', path: '/of/a/b%3Fc%23d/x?page=3' });
  expect(request.headers).toMatchObject({ 'x-lang': 'de', 'x-api-key': 'Key k-1', 'content-type': 'application/json' });
  expect(JSON.parse(request.body)).toEqual({ text: 'He said "x"\n', line: 'to He said "x"\n!', more: { a: [1] } });
});

test('what nobody gave is left out, and what somebody gave is sent, also an empty text', async () => {
  const templates = {
    method: 'POST',
    headers: { 'x-one': 'is {{one}}', 'x-two': '{{two}}' },
    query_params_template: { one: '{{one}}', two: '{{two}}' },
    parameters: [{ name: 'one' }, { name: 'two' }, { name: 'three', type: 'object' }],
  };
  const json =
    '{"fixed": 1.0, "one": {{one}}, "two": {{two}}, "in": {"a text": "say {{one}}", "{{one}}": 2, "{{two}}": 3}, ' +
    '"list": [{{one}}, "{{two}}", {{three}}]}';
  const made = await instanceWith([
    action('json', '/json?a={{one}}&b=2&c={{two}}', { ...templates, body_template: json }),
    action('form', '/form', {
      ...templates,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body_template: 'one={{one}}&two={{two}}',
    }),
    action('whole', '/whole', { ...templates, body_template: '{{three}}' }),
    action('wrong', '/wrong', { ...templates, body_template: '{"one": {{one}} or not}' }),
  ]);
  const sent = async (name: string, parameters: Json) => {
    expect(await tryIt(made, { action: name, parameters })).toMatchObject({ success: true });
    return target.requests.at(-1)!;
  };
  const some = await sent('json', { two: '"2"' });
  expect(some.path).toBe('/json?b=2&c=%222%22&two=%222%22');
  expect([some.headers['x-one'], some.headers['x-two']]).toEqual([undefined, '"2"']);
  expect(JSON.parse(some.body)).toEqual({ fixed: 1, two: '"2"', in: { '"2"': 3 }, list: ['"2"'] });
  const empty = await sent('json', { one: '', two: 'x', three: {} });
  expect([empty.headers['x-one'], empty.path]).toEqual(['is', '/json?a=&b=2&c=x&two=x']);
  expect(JSON.parse(empty.body)).toMatchObject({ one: '', in: { 'a text': 'say ' }, list: ['', 'x', {}] });
  expect((await sent('form', { two: '2' })).body).toBe('two=2');
  const whole = await sent('whole', {});
  expect([whole.body, whole.headers['content-type']]).toEqual(['', undefined]);
  const seen = target.requests.length;
  expect(await tryIt(made, { action: 'wrong' })).toMatchObject({
    success: false,
    message: "The action needs a value of 'one'.",
    details: { code: 'schema_mismatch' },
  });
  expect(target.requests).toHaveLength(seen);
});

test('a typing error in a tool from before sends no empty text', async () => {
  const made = await instanceWith([action('get', '/')]);
  const old = { ...action('get', '/old'), headers: { 'x-typo': '{{regoin}}' }, query_params_template: { q: '{{x}}' } };
  await app.database.prisma.tool.update({ where: { id: String(made.tool_id) }, data: { actionSchemas: [old] } });
  expect(await tryIt(made)).toMatchObject({ success: true });
  expect(target.requests.at(-1)).toMatchObject({ path: '/old' });
  expect(target.requests.at(-1)!.headers).not.toHaveProperty('x-typo');
});

test('an inactive instance sends nothing, and shows what it would send', async () => {
  const made = await instanceWith([action('get', '/off')]);
  const url = `${instancesOf(ann)}/${made.instance_id}`;
  expect((await ann.call('PUT', url, { is_active: false })).status).toBe(200);
  const seen = target.requests.length;
  expect(await tryIt(made)).toEqual({
    success: false,
    message: 'The tool instance is inactive. Nothing was sent.',
    details: { code: 'inactive' },
    latency_ms: 0,
  });
  expect(target.requests).toHaveLength(seen);
  expect(await used(made)).toEqual([0, null]);
  expect(await tryIt(made, { dry_run: true })).toMatchObject({ success: true, details: { code: 'dry_run' } });
  expect((await ann.call('PUT', url, { is_active: true })).status).toBe(200);
  expect(await tryIt(made)).toMatchObject({ success: true });
});

test('what changes something is tried only by its name', async () => {
  const made = await instanceWith([
    action('drop', '/drop', { method: 'DELETE', is_destructive: true }),
    action('one', '/one/{{id}}', { parameters: [{ name: 'id', required: true }] }),
    action('ask', '/ask', { requires_confirmation: true }),
    action('put', '/put', { method: 'PUT' }),
    action('all', '/all'),
  ]);
  expect(await tryIt(made, {})).toMatchObject({ details: { action: 'all' } });
  expect(await tryIt(made, { parameters: { id: '7' } })).toMatchObject({ details: { action: 'one' } });
  expect(await tryIt(made, { action: 'put' })).toMatchObject({ success: true, details: { method: 'PUT' } });
  const onlyPosts = await instanceWith([action('post', '/x', { method: 'POST' })]);
  const seen = target.requests.length;
  expect(await tryIt(onlyPosts)).toMatchObject({ success: false, details: { code: 'schema_mismatch' }, latency_ms: 0 });
  expect(target.requests).toHaveLength(seen);
});

test('what somebody must agree to is not tried, and nothing of a disabled tool', async () => {
  const drop = action('drop', '/drop', { method: 'DELETE', is_destructive: true });
  const made = await instanceWith([drop, action('ask', '/ask', { requires_confirmation: true })]);
  const careful = await instanceWith([action('get', '/get')], { mcp_requires_confirmation: true });
  const seen = target.requests.length;
  const refused = { success: false, details: { code: 'schema_mismatch' }, latency_ms: 0 };
  for (const name of ['drop', 'ask']) {
    expect(await tryIt(made, { action: name })).toMatchObject(refused);
    expect(await tryIt(made, { action: name, dry_run: true })).toMatchObject({ success: true });
  }
  for (const one of [made, careful]) expect(await tryIt(one)).toMatchObject(refused);
  const free = await instanceWith([action('get', '/get')]);
  await ann.call('PUT', `/v1/orgs/${ann.orgId}/tools/${String(free.tool_id)}`, { status: 'disabled' });
  expect(await tryIt(free)).toEqual({
    success: false,
    message: 'The tool is disabled. Nothing was sent.',
    details: { code: 'tool_disabled' },
    latency_ms: 0,
  });
  expect(await tryIt(free, { dry_run: true })).toMatchObject({ success: true, details: { code: 'dry_run' } });
  expect(target.requests).toHaveLength(seen);
});

test('a dry run sends nothing and counts nothing', async () => {
  const made = await instanceWith(
    [action('get', '/x?token={{api_key}}')],
    {
      configuration: { base_url: baseUrl(), api_key: 'k-1' },
    },
    { credential_schema: [{ name: 'api_key', type: 'secret' }] },
  );
  const seen = target.requests.length;
  expect(await tryIt(made, { dry_run: true })).toEqual({
    success: true,
    message: 'The request is complete. It was not sent.',
    details: { code: 'dry_run', action: 'get', method: 'GET', host: `127.0.0.1:${target.port}` },
    latency_ms: 0,
  });
  expect(target.requests).toHaveLength(seen);
  expect(await used(made)).toEqual([0, null]);
  expect(await tryIt(made)).toMatchObject({ success: true });
  expect(target.requests.at(-1)!.path).toBe('/x?token=k-1');
});

describe('what goes wrong is a result with a sentence and a code', () => {
  test.each([401, 403, 404, 418, 429, 500, 503])('an answer of %i', async (status) => {
    const made = await instanceWith([action('get', `/x?status=${status}`)]);
    const result = await tryIt(made);
    expect(result).toMatchObject({ success: false, details: { code: `http_${status}`, status } });
    expect(result.message).toMatch(new RegExp(`^Tickets answered ${status}: .+\\.$`));
    expect(await used(made)).toEqual([1, expect.any(String)]);
  });

  test('a provider that never answers: timeout', async () => {
    const made = await instanceWith([action('get', '/never', { timeout_seconds: 1 })]);
    expect(await tryIt(made)).toMatchObject({ success: false, details: { code: 'timeout' } });
  });

  test('a dead provider, and one that breaks off: network', async () => {
    const dead = await startTarget(() => undefined);
    await dead.close();
    const breaking = await startRawTarget((socket) => void socket.destroy());
    for (const { port } of [dead, breaking]) {
      const made = await instanceWith([action('get', '/')], {
        configuration: { base_url: `http://127.0.0.1:${port}` },
      });
      expect(await tryIt(made)).toMatchObject({ success: false, details: { code: 'network' } });
    }
    await breaking.close();
  });

  test.each([
    ['http://169.254.169.254', 'blocked_address'],
    ['https://10.0.0.1', 'blocked_address'],
    ['https://user:opensesame@example.test', 'invalid_url'],
    ['file:///etc/passwd', 'invalid_url'],
  ])('a configuration that leads to %s', async (base_url, code) => {
    const made = await instanceWith([action('get', '/')], { configuration: { base_url } });
    const result = await tryIt(made);
    expect(result).toMatchObject({ success: false, details: { code } });
    expect(JSON.stringify(result)).not.toContain('opensesame');
  });

  test('no credentials, where the tool needs some', async () => {
    const made = await instanceWith([action('get', '/')], {}, { credential_schema: [key] });
    const seen = target.requests.length;
    for (const dry_run of [true, false])
      expect(await tryIt(made, { dry_run })).toMatchObject({
        success: false,
        message: 'Tickets needs credentials, and the instance has none.',
        details: { code: 'no_credentials' },
        latency_ms: 0,
      });
    expect(target.requests).toHaveLength(seen);
    await ann.call('PUT', `${instancesOf(ann)}/${made.instance_id}`, { auth_mode: 'none' });
    expect(await tryIt(made)).toMatchObject({ success: true });
  });

  test.each<[string, Json, object]>([
    ['an unknown action', { action: 'nothing' }, {}],
    ['a missing parameter', { action: 'get' }, { parameters: [{ name: 'id', required: true }] }],
    ['a parameter of another type', { parameters: { id: 'x' } }, { parameters: [{ name: 'id', type: 'integer' }] }],
    ['a path without a value', {}, { url_template: '{{base_url}}/{{id}}', parameters: [{ name: 'id' }] }],
    ['no absolute URL', {}, { url_template: '{{id}}', parameters: [{ name: 'id', default: 'x' }] }],
    [
      'a text without a value',
      { action: 'get' },
      { method: 'POST', body_template: 'is {{id}}', parameters: [{ name: 'id' }] },
    ],
    ['an answer that is no JSON', {}, { url_template: '{{base_url}}/text', response_result_path: '$' }],
  ])('schema_mismatch: %s', async (_title, body, more) => {
    const made = await instanceWith([action('get', '/', more as Json)]);
    expect(await tryIt(made, body)).toMatchObject({ success: false, details: { code: 'schema_mismatch' } });
  });

  test('schema_mismatch: a configuration that the tool does not accept any more', async () => {
    const made = await instanceWith([action('get', '/')]);
    const config_schema = [field, { name: 'region', required: true }];
    await ann.call('PUT', `/v1/orgs/${ann.orgId}/tools/${String(made.tool_id)}`, { config_schema });
    const result = await tryIt(made);
    expect(result).toMatchObject({ success: false, details: { code: 'schema_mismatch' } });
    expect(result.message).toBe('The configuration does not fit the tool: region.');
  });
});

test('parameters never choose the host that gets credentials', async () => {
  const { port } = target;
  const made = await instanceWith(
    [
      action('path', '', { url_template: '{{base_url}}{{path}}', parameters: [{ name: 'path' }] }),
      action('whole', '', { url_template: '{{url}}', parameters: [{ name: 'url' }] }),
    ],
    { configuration: { base_url: 'http://127.0.0.1:1', api_key: 'k-1' } },
    { credential_schema: [key] },
  );
  const seen = target.requests.length;
  for (const body of [
    { action: 'whole', parameters: { url: `http://127.0.0.1:${port}/` } },
    { action: 'path', parameters: { path: `@127.0.0.1:${port}/` } },
    { action: 'path', parameters: { path: '0/' } },
  ])
    expect(await tryIt(made, body)).toMatchObject({
      success: false,
      details: { code: expect.stringMatching(/^(schema_mismatch|invalid_url|network)$/) as string },
    });
  expect(target.requests).toHaveLength(seen);
});

test('members test instances of others, viewers none; unknown ones are missing', async () => {
  const made = await instanceWith([action('get', '/')]);
  const url = `${instancesOf(ann)}/${made.instance_id}/test`;
  const [member, viewer] = [await colleague(app, ann, 'member'), await colleague(app, ann, 'viewer')];
  expect((await member.call('POST', url, {})).status).toBe(200);
  expect(await viewer.call('POST', url, {})).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'tool_instance:execute' } },
  });
  expect((await ann.call('POST', `${instancesOf(ann)}/ti_unknown/test`, {})).status).toBe(404);
  expect(
    placesOf((await ann.call('POST', url, { dry_run: 'x', parameters: [] })).body).map(([place]) => place),
  ).toEqual(['parameters', 'dry_run']);
});

test('30 tests a minute for each user', async () => {
  const eve = await register(app, { name: 'eve' });
  const toolId = await newTool(eve, { config_schema: [], action_schemas: [{ name: 'nothing', method: 'GET' }] });
  const made = await newInstance(eve, toolId, { configuration: {} });
  const url = `${instancesOf(eve)}/${made.instance_id}/test`;
  for (let n = 0; n < 30; n++) expect((await eve.call('POST', url, {})).status).toBe(200);
  const refused = await app.server.inject({ method: 'POST', url, headers: eve.headers, payload: {} });
  expect(refused.statusCode).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect((await ann.call('POST', url, {})).status).toBe(403);
});
