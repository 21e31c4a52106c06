import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startOwnApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { keptLog } from '../../support/log-lines.ts';
import { PASSWORD, type Person, register } from '../../support/person.ts';
import { openAcknowledged } from '../../support/sockets.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { type CollectedSpan, startCollector, type TraceCollector } from '../../support/trace-collector.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';
import { instancesOf, newInstance, newTool } from '../../tools/tool-instances/instances.ts';

let collector: TraceCollector;
let target: TargetServer;
let app: TestApp;
let ann: Person;
/** A value that must be nowhere in a trace. */
const SECRET = `marker-${randomBytes(16).toString('hex')}`;
const SERVER = 2;
const FAILED = 2;

beforeAll(async () => {
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '20');
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=trial');
  collector = await startCollector();
  target = await startTarget((request, response) => {
    response.statusCode = request.url === '/broken' ? 503 : 200;
    response.end('{}');
  });
  app = await startOwnApp({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=of%20the%20collector',
      OUTBOUND_ALLOW: '127.0.0.1',
    },
  });
  ann = await register(app, { password: `${SECRET} password` });
});
afterAll(async () => {
  await app.close();
  await collector.close();
  await target.close();
  vi.unstubAllEnvs();
});

/** A caller whose trace is recorded, or is not. */
function caller(isSampled = true): { traceId: string; spanId: string; headers: Record<string, string> } {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`, ...ann.headers } };
}

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan => {
  const found = spans.find((span) => span.name === name);
  expect(found, `${name} among ${spans.map((span) => span.name).join(', ')}`).toBeDefined();
  return found!;
};

const SECRETS = 'POST /v1/orgs/{org_id}/secrets';

describe('a write that a caller traces', () => {
  it('is its request, operation and statements, each below the one that it is part of', async () => {
    const { traceId, spanId, headers } = caller();
    const made = await callsOf(app).post(
      `/v1/orgs/${ann.orgId}/secrets`,
      { name: 'traced', value: { key: SECRET }, secret_type: 'api_key' },
      headers,
    );
    expect([made.statusCode, made.headers['x-trace-id']]).toEqual([201, traceId]);
    const spans = await collector.trace(traceId, SECRETS);
    const request = named(spans, SECRETS);
    expect(request).toMatchObject({
      parentSpanId: spanId,
      kind: SERVER,
      status: 0,
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/v1/orgs/{org_id}/secrets',
      },
    });
    expect(Number(request.attributes['http.response.status_code'])).toBe(201);
    const operation = named(spans, 'mutation CreateSecret');
    expect(operation).toMatchObject({
      parentSpanId: request.spanId,
      attributes: { 'graphql.operation.type': 'mutation' },
    });
    const statements = spans.filter(({ attributes }) => attributes['db.system.name'] === 'postgresql');
    const writes = statements.filter(({ parentSpanId }) => parentSpanId === operation.spanId);
    expect(writes.map(({ name }) => name)).toContainEqual(expect.stringContaining('insert into secrets'));
    expect(writes.find(({ name }) => name.includes('secrets'))?.attributes).toMatchObject({
      'db.query.text': expect.stringContaining('$1'),
    });
    // what is left is the request's own: who is asking
    for (const { parentSpanId } of statements) expect([request.spanId, operation.spanId]).toContain(parentSpanId);
  });

  it('goes on in its job, whose records name the trace', async () => {
    const { traceId, headers } = caller();
    const artifact = { name: 'a.txt', content: 'words', artifact_type: 'text' };
    const made = await callsOf(app).post(`${ann.home}/namespaces/default/artifacts`, artifact, headers);
    expect(made.statusCode, made.body).toBe(201);
    const spans = await collector.trace(traceId, 'job index_artifact');
    const job = named(spans, 'job index_artifact');
    expect(job).toMatchObject({ kind: 5, status: 0 });
    expect(spans.map(({ spanId }) => spanId)).toContain(job.parentSpanId);
    expect(spans.filter(({ parentSpanId }) => parentSpanId === job.spanId).length).toBeGreaterThan(0);
  });

  it('is the call that it makes, and a target of the operator gets the trace', async () => {
    const action = (name: string) => ({ name, url_template: `{{base_url}}/${name}?key=${SECRET}` });
    const toolId = await newTool(ann, {
      config_schema: [{ name: 'base_url', type: 'string' }],
      credential_schema: [{ name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } }],
      action_schemas: [action('fine'), action('broken')],
    });
    const configuration = { base_url: `http://127.0.0.1:${target.port}`, api_key: SECRET };
    const { instance_id } = await newInstance(ann, toolId, { configuration });
    const { traceId, headers } = caller();
    const tested = await callsOf(app).post(`${instancesOf(ann)}/${instance_id}/test`, { action: 'fine' }, headers);
    expect(tested.statusCode, tested.body).toBe(200);
    const spans = await collector.trace(
      traceId,
      'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/test',
    );
    const call = named(spans, 'GET');
    expect(call).toMatchObject({
      kind: 3,
      status: 0,
      parentSpanId: spans.find(({ name }) => name.startsWith('mutation '))?.spanId,
      attributes: { 'server.address': '127.0.0.1', 'http.request.method': 'GET' },
    });
    expect(Number(call.attributes['http.response.status_code'])).toBe(200);
    expect(target.requests.at(-1)?.headers).toMatchObject({
      traceparent: `00-${traceId}-${call.spanId}-01`,
      'x-api-key': SECRET,
    });
  });

  it('fails where the service fails, not where the caller does', async () => {
    const refused = caller();
    const answer = await callsOf(app).post(`/v1/orgs/${ann.orgId}/secrets`, { name: '' }, refused.headers);
    expect(answer.statusCode).toBe(422);
    const request = named(await collector.trace(refused.traceId, SECRETS), SECRETS);
    expect(request).toMatchObject({ status: 0, attributes: { 'platform.error_code': 'VALIDATION_ERROR' } });

    const failed = caller();
    const broken = vi.spyOn(app.services.sql, 'readMarked').mockRejectedValueOnce(new Error(`a fault with ${SECRET}`));
    const fault = await callsOf(app).get(`/v1/orgs/${ann.orgId}/secrets`, failed.headers);
    broken.mockRestore();
    expect(fault.statusCode).toBe(500);
    const spans = await collector.trace(failed.traceId, SECRETS.replace('POST', 'GET'));
    expect(named(spans, SECRETS.replace('POST', 'GET'))).toMatchObject({
      status: FAILED,
      attributes: { 'error.type': '500' },
    });
  });
});

describe('what is not recorded', () => {
  it('has no span and its trace id all the same: a caller that does not record', async () => {
    const [off, on] = [caller(false), caller()];
    const answer = await callsOf(app).get(`/v1/orgs/${ann.orgId}/secrets`, off.headers);
    expect(answer.headers['x-trace-id']).toBe(off.traceId);
    await callsOf(app).get(`/v1/orgs/${ann.orgId}/secrets`, on.headers);
    await collector.trace(on.traceId, SECRETS.replace('POST', 'GET'));
    expect(collector.spans.filter(({ traceId }) => traceId === off.traceId)).toEqual([]);
  });

  it('is what callers order beyond their budget', async () => {
    const few = await app.another({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_TRACES_SAMPLER: 'parentbased_always_off',
      TRACES_BY_CALLERS_PER_SECOND: '0',
    });
    const { traceId, headers } = caller();
    expect((await callsOf(few).get('/v1/auth/me', headers)).headers['x-trace-id']).toBe(traceId);
    await few.close();
    expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
  });
});

describe('the trace id', () => {
  it('is made as W3C wants it for a request that brings none', async () => {
    expect((await callsOf(app).get('/v1/auth/config')).headers['x-trace-id']).toMatch(/^[0-9a-f]{32}$/);
  });

  it('of a client is kept, and stands in the trace where it is another', async () => {
    const { traceId, headers } = caller();
    const answer = await callsOf(app).get('/v1/auth/me', { ...headers, 'x-trace-id': 'ours-7' });
    expect(answer.headers['x-trace-id']).toBe('ours-7');
    const spans = await collector.trace(traceId, 'GET /v1/auth/me');
    expect(named(spans, 'GET /v1/auth/me').attributes).toMatchObject({ 'platform.trace_id': 'ours-7' });
  });
});

describe('GraphQL', () => {
  it('has the type of an operation in its name, and what the client calls it beside', async () => {
    const { traceId, headers } = caller();
    const query = 'query Mine($id: ID!) { organization(id: $id) { name } }';
    const answer = await callsOf(app).graphql(query, { id: ann.orgId }, headers);
    expect(answer.json<{ errors?: unknown }>().errors).toBeUndefined();
    const spans = await collector.trace(traceId, 'POST /graphql');
    expect(named(spans, 'query')).toMatchObject({
      parentSpanId: named(spans, 'POST /graphql').spanId,
      attributes: { 'graphql.operation.name': 'Mine' },
    });
  });

  it('over a socket begins a trace with each operation', async () => {
    const every = await app.another({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_TRACES_SAMPLER: 'always_on',
    });
    const url = await every.listen();
    const socket = await openAcknowledged(url, ann.headers.authorization);
    socket.send({ id: '1', type: 'subscribe', payload: { query: 'query OfSocket { me { username } }' } });
    await socket.next(({ type }) => type === 'complete');
    socket.close();
    const operation = await waitUntil(() =>
      collector.spans.find(({ attributes }) => attributes['graphql.operation.name'] === 'OfSocket'),
    );
    expect(operation).toMatchObject({ kind: SERVER, parentSpanId: undefined });
    await every.close();
  });
});

it('tells of the service as the variables say, and nothing that was sent or kept', async () => {
  const login = caller();
  const body = { username: ann.username, password: `${SECRET} wrong` };
  expect(
    (await callsOf(app).post('/v1/auth/login', body, { traceparent: login.headers.traceparent! })).statusCode,
  ).toBe(401);
  const list = caller();
  await callsOf(app).get(`/v1/orgs/${ann.orgId}/secrets?name=${SECRET}&sort=${SECRET}`, list.headers);
  await callsOf(app).graphql(
    `mutation { createSecret(orgId: "${ann.orgId}",
      input: {name: "b", value: {key: "${SECRET}"}, secretType: "api_key"}) { id } }`,
    {},
    list.headers,
  );
  await collector.trace(login.traceId, 'POST /v1/auth/login');
  await collector.trace(list.traceId, 'POST /graphql');
  expect(collector.resource).toMatchObject({
    'service.name': 'platform-management-api',
    'deployment.environment.name': 'trial',
  });
  expect(collector.headers.at(-1)).toMatchObject({ 'x-api-key': 'of the collector' });
  const sent = collector.bytes();
  expect(sent.includes('insert into secrets')).toBe(true);
  for (const secret of [SECRET, PASSWORD, ann.accessToken, ann.refreshToken, ann.email])
    expect(sent.includes(secret)).toBe(false);
});

describe('metrics', () => {
  const metrics = async (accept?: string) => callsOf(app).get('/metrics', accept === undefined ? {} : { accept });

  it('show the trace of a request beside its duration to whoever takes OpenMetrics', async () => {
    const { traceId, headers } = caller();
    await callsOf(app).get('/v1/auth/me', headers);
    const open = await metrics('application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5');
    expect(open.headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(open.body).toMatch(
      new RegExp(
        String.raw`^platform_http_request_duration_seconds_bucket\{.*auth/me.*\} \d+ # \{trace_id="${traceId}"\} `,
        'm',
      ),
    );
    expect(open.body).toContain('\n# TYPE platform_http_requests counter\n');
    expect(open.body.endsWith('\n# EOF\n')).toBe(true);
  });

  it('are plain text for all others', async () => {
    for (const accept of [undefined, '*/*', 'text/plain;version=0.0.4', 'application/json']) {
      const plain = await metrics(accept);
      expect(plain.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(plain.body).toContain('\n# TYPE platform_http_requests_total counter\n');
      expect(plain.body).not.toMatch(/trace_id=|# EOF|_total_total/);
      expect(plain.body).toMatch(/^platform_http_requests_total\{.*\} [1-9]/m);
    }
  });

  it('have one prefix, but for what the library says of the process', async () => {
    const names = [...(await metrics()).body.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!);
    expect(names.filter((name) => !/^(platform|process|nodejs)_/.test(name))).toEqual([]);
    expect(names.length).toBe(new Set(names).size);
  });

  it('count the spans', async () => {
    await waitFor(async () =>
      expect((await metrics()).body).toMatch(/^platform_trace_spans_total\{outcome="exported"\} [1-9]/m),
    );
  });

  it('count operations of clients, and sign-ins that failed', async () => {
    const text = (await metrics()).body;
    expect(text).toMatch(/^platform_graphql_operations_total\{type="query",outcome="answered"\} [1-9]/m);
    expect(text).toMatch(/^platform_sign_in_failures_total\{code="AUTHENTICATION_FAILED"\} [1-9]/m);
  });
});

it.each([
  ['refuses', () => startCollector(503)],
  ['is not there', async () => ({ url: 'http://127.0.0.1:9', close: () => Promise.resolve() })],
])('a collector that %s costs requests nothing: one warning, and a metric', async (_how, start) => {
  const [dead, log] = [await start(), keptLog()];
  vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', '100');
  const alone = await startOwnApp({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: dead.url, OTEL_TRACES_SAMPLER: 'always_on', DATA_DIR: app.dataDir },
    databaseUrl: app.database.url,
    logger: log.logger,
  });
  const lost = async () => {
    expect((await callsOf(alone).get('/v1/auth/me', ann.headers)).statusCode).toBe(200);
    const text = (await callsOf(alone).get('/metrics')).body;
    return Number(/^platform_trace_spans_total\{outcome="failed"\} (\d+)$/m.exec(text)?.[1]);
  };
  const first = await waitUntil(lost);
  await waitUntil(async () => (await lost()) > first);
  await alone.close();
  const warnings = log.lines.map((line) => JSON.parse(line) as { msg: string }).filter(({ msg }) => /traces/.test(msg));
  expect(warnings).toMatchObject([{ level: 'warn', msg: 'traces cannot be sent to their collector, and are lost' }]);
  await dead.close();
});
