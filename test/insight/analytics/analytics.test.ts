import { afterAll, beforeAll, expect, test } from 'vitest';
import { foldActivity } from '../../../src/insight/activity/activity.service.ts';
import { addSpans, type Span, startOf } from '../../../src/insight/activity/time-spans.ts';
import { createPipeline, type Pipeline } from '../../pipelines/augmentations/pipeline.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { addToWorkspace, colleague, createUser, type Person, register } from '../../support/person.ts';
import { stopClock } from '../../support/stopped-clock.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const none = { sources: 0, augmentations: 0, endpoints: 0, namespaces: 1, apps: 0, threads: 0, actions: 0 };
const nothing = { ...none, secrets: 0, models: 0 };
const noRuns = { total: 0, success: 0, failed: 0, success_rate: 0 };
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;

interface Runner extends Pipeline {
  analytics: (path?: string, who?: Person) => Promise<unknown>;
  run: (executionId: string, more?: object) => Promise<void>;
}

async function createRunner(who?: Person): Promise<Runner> {
  const pipeline = await createPipeline(app, who);
  const { augmentation_id } = await pipeline.augmentation();
  return {
    ...pipeline,
    analytics: async (path = '', by = pipeline.who) => (await by.call('GET', `${by.home}/analytics${path}`)).body,
    run: async (execution_id, more = {}) => {
      const report = { execution_id, app_id: pipeline.appId, augmentation_id, ...more };
      const { status } = await pipeline.who.call('POST', `${pipeline.who.home}/executions`, report);
      expect(status).toBe(200);
    },
  };
}

test('a workspace from nothing on: what there is of everything', async () => {
  const who = await register(app);
  const summary = { workspace_id: who.workspaceId, resources: nothing, executions: noRuns, updated_at: aTime };
  expect((await who.call('GET', `${who.home}/analytics`)).body).toEqual(summary);
  const { appId, url, augmentation, endpoint, action, analytics } = await createRunner(who);
  const { augmentation_id } = await augmentation();
  await endpoint({ path: '/a', augmentation_id });
  await action({ augmentation_id, kind: 'scheduled', cron: '0 0 1 1 *', enabled: false });
  await action({ augmentation_id, kind: 'trigger', trigger_event: 'artifact.created' });
  await action({ augmentation_id });
  await who.call('POST', `${url}/releases`, { version: '1' });
  await who.call('POST', `${who.home}/namespaces/default/threads`, {});
  await who.call('POST', `${who.home}/namespaces/default/threads`, {});
  const secret = { organization_id: who.orgId, workspace_id: who.workspaceId, value: { token: 'v' } };
  const secrets = `/v1/orgs/${who.orgId}/secrets`;
  await who.call('POST', secrets, { ...secret, name: 'a', secret_type: 'token' });
  await who.call('POST', secrets, { ...secret, name: 'b', secret_type: 'token' });
  const { body: last } = await who.call<{ secret_id: string }>('POST', secrets, {
    ...secret,
    name: 'c',
    secret_type: 'api_key',
  });
  await who.call('POST', secrets, { ...secret, workspace_id: null, name: 'of all', secret_type: 'token' });
  const resources = {
    ...nothing,
    augmentations: 2,
    endpoints: 1,
    apps: 1,
    threads: 2,
    actions: 3,
    secrets: 3,
  };
  expect(await analytics('/resources')).toEqual(resources);
  expect(await analytics()).toEqual({ ...summary, resources });
  expect(await analytics('/actions')).toEqual({
    total_actions: 3,
    enabled_actions: 2,
    trigger_actions: 1,
    scheduled_actions: 1,
  });
  expect(await analytics('/secrets')).toEqual({
    total_secrets: 3,
    active_secrets: 3,
    secrets_by_type: { api_key: 1, token: 2 },
  });
  await who.call('DELETE', `${secrets}/${last.secret_id}`);
  expect(await analytics('/secrets')).toEqual({
    total_secrets: 2,
    active_secrets: 2,
    secrets_by_type: { token: 2 },
  });
  expect((await who.call('GET', `${url}/analytics`)).body).toEqual({
    app_id: appId,
    augmentations: 2,
    namespaces: 1,
    endpoints: 1,
    releases: 1,
  });
  const { body: ofNamespace } = await who.call('GET', `${who.home}/namespaces/default/analytics`);
  expect(ofNamespace).toEqual({ namespace_id: expect.stringMatching(/^ns_/) as string, threads: 2, sources: 0 });
  await who.call('DELETE', url);
  expect(await analytics('/resources')).toEqual({ ...nothing, threads: 2, secrets: 2 });
});

test('sources by their state, their kind and where they are', async () => {
  const { who, analytics } = await createRunner();
  const list = `${who.home}/sources`;
  const { body: first } = await who.call<{ source_id: string }>('POST', list, { name: 'a' });
  await who.call('POST', list, { name: 'b', source_type: 'web', namespace_id: 'default' });
  await app.database.prisma.source.update({
    where: { id: first.source_id },
    data: { status: 'ready', chunkCount: 3, tokenCount: 40, sizeBytes: 5_000_000_000n },
  });
  expect(await analytics('/sources')).toEqual({
    total_sources: 2,
    indexed_sources: 1,
    failed_sources: 0,
    pending_sources: 1,
    total_chunks: 3,
    total_tokens: 40,
    total_bytes: 5_000_000_000,
    workspace_sources: 1,
    namespace_sources: 1,
    sources_by_type: { manual: 1, web: 1 },
    sources_by_status: { pending: 1, ready: 1 },
  });
});

test('a run counts once, however often it is reported, and its outcome when it has one', async () => {
  const { run, analytics } = await createRunner();
  await run('a');
  await run('a', { stages_completed: 0 });
  expect(await analytics('/executions')).toEqual({ total: 1, success: 0, failed: 0, success_rate: 0 });
  await run('a', { status: 'completed' });
  await run('b', { status: 'completed' });
  await run('c', { status: 'failed' });
  await run('d');
  expect(await analytics('/executions')).toEqual({ total: 4, success: 2, failed: 1, success_rate: 2 / 3 });
});

test('the past stays what it was when an app is deleted', async () => {
  const { who, url, run, analytics } = await createRunner();
  await run('a', { status: 'completed' });
  await run('b', { status: 'failed' });
  // an hour may end at any moment
  stopClock();
  const paths = ['/executions', '/executions/hourly', '/executions/daily'];
  const before = await Promise.all(paths.map((path) => analytics(path)));
  expect(before[0]).toEqual({ total: 2, success: 1, failed: 1, success_rate: 0.5 });
  expect((await who.call('DELETE', url)).status).toBe(204);
  expect(await Promise.all(paths.map((path) => analytics(path)))).toEqual(before);
});

/** The timestamps of a series whose last point is the current one. */
function timesOf(span: Span, count: number): string[] {
  const current = startOf(span, new Date());
  return Array.from({ length: count }, (_, at) => addSpans(span, current, at + 1 - count).toISOString());
}

test('series have exactly as many points as were asked for, zero-filled, and end with the current one', async () => {
  const { who, run, analytics } = await createRunner();
  // an hour may end at any moment
  stopClock();
  const ago = (hours: number) => new Date(startOf('hour', new Date()).getTime() - hours * 3_600_000).toISOString();
  for (const [id, hours] of [
    ['now', 0],
    ['first', 3],
    ['second', 3],
    ['before', 24],
  ] as const)
    await run(id, { started_at: ago(hours) });
  const hourly = (values: Readonly<Record<number, number>>, hours: number) => ({
    metric: 'executions',
    period: 'hourly',
    data: timesOf('hour', hours).map((timestamp, at) => ({ timestamp, value: values[hours - 1 - at] ?? 0 })),
  });
  expect(await analytics('/executions/hourly')).toEqual(hourly({ 0: 1, 3: 2 }, 24));
  expect(await analytics('/executions/hourly?hours=25')).toEqual(hourly({ 0: 1, 3: 2, 24: 1 }, 25));
  expect(await analytics('/executions/hourly?hours=1')).toEqual(hourly({ 0: 1 }, 1));
  const daily = (await analytics('/executions/daily')) as {
    period: string;
    data: { timestamp: string; value: number }[];
  };
  expect(daily.period).toBe('daily');
  expect(daily.data.map(({ timestamp }) => timestamp)).toEqual(timesOf('day', 30));
  expect(daily.data.reduce((sum, { value }) => sum + value, 0)).toBe(4);
  for (const [path, names] of [
    ['hourly?hours=169', ['query', 'hours']],
    ['hourly?hours=0', ['query', 'hours']],
    ['daily?days=91', ['query', 'days']],
    ['daily?days=many', ['query', 'days']],
  ] as const) {
    const { status, body } = await who.call<{ detail: { loc: string[] }[] }>(
      'GET',
      `${who.home}/analytics/executions/${path}`,
    );
    expect([status, body.detail[0]!.loc]).toEqual([422, names]);
  }
});

test('an organization is its live workspaces, its own secrets and models, and its members', async () => {
  const { who, run, analytics } = await createRunner();
  await run('a', { status: 'completed' });
  const url = `/v1/orgs/${who.orgId}/analytics`;
  const secret = { organization_id: who.orgId, name: 'of all', secret_type: 'token', value: { token: 'v' } };
  expect((await who.call('POST', `/v1/orgs/${who.orgId}/secrets`, secret)).status).toBe(201);
  const { body: second } = await who.call<{ workspace_id: string }>('POST', `/v1/orgs/${who.orgId}/workspaces`, {
    organization_id: who.orgId,
    name: 'Second',
  });
  await colleague(app, who, 'viewer');
  await createUser(app, who);
  const executions = { total: 1, success: 1, failed: 0, success_rate: 1 };
  const whole = {
    org_id: who.orgId,
    workspaces: 2,
    users: 3,
    resources: { ...nothing, namespaces: 2, apps: 1, augmentations: 1, secrets: 1 },
    storage_bytes: 0,
    executions,
    updated_at: aTime,
  };
  expect((await who.call('GET', url)).body).toEqual(whole);
  const one = await who.call('GET', `${url}?workspace_id=${who.workspaceId}`);
  const { resources } = (await analytics()) as { resources: object };
  expect(one.body).toEqual({ ...whole, workspaces: 1, users: 2, resources });
  await who.call('DELETE', who.home);
  expect((await who.call('GET', url)).body).toEqual({
    ...whole,
    workspaces: 1,
    resources: { ...nothing, secrets: 1 },
  });
  const gone = await who.call<{ error: string }>('GET', `${url}?workspace_id=${who.workspaceId}`);
  expect([gone.status, gone.body.error]).toEqual([404, 'RESOURCE_NOT_FOUND']);
  await app.database.prisma.workspace.update({ where: { id: who.workspaceId }, data: { deletedAt: null } });
  expect((await who.call('GET', url)).body).toEqual(whole);
  expect(second.workspace_id).toMatch(/^ws_/);
});

test('viewers read the numbers of their workspace; those of the organization are for its administrators', async () => {
  const { who } = await createRunner();
  const url = `/v1/orgs/${who.orgId}/analytics`;
  const refusal = { error: 'FORBIDDEN', details: { required_permission: 'analytics:read' } };
  const viewer = await colleague(app, who, 'viewer');
  expect((await viewer.call('GET', `${who.home}/analytics/secrets`)).status).toBe(200);
  expect((await viewer.call('GET', `${url}?workspace_id=${who.workspaceId}`)).status).toBe(200);
  expect((await viewer.call('GET', url)).body).toMatchObject(refusal);
  const admin = await createUser(app, who, { role: 'admin' });
  expect((await admin.call('GET', url)).status).toBe(200);
  const other = await createUser(app, who);
  expect((await other.call('GET', `${who.home}/analytics`)).status).toBe(403);
  expect((await other.call('GET', `${url}?workspace_id=${who.workspaceId}`)).status).toBe(403);
  await addToWorkspace(app, who, other.userId, 'viewer');
  expect((await other.call('GET', `${who.home}/analytics`)).status).toBe(200);
});

const SERIES = `query ($org: ID!, $ws: ID, $app: ID, $tok: ID, $usr: ID, $m: SeriesMetric!, $from: DateTime,
    $to: DateTime, $step: SeriesStep) {
  series(orgId: $org, workspaceId: $ws, appId: $app, tokenId: $tok, userId: $usr, metric: $m, from: $from, to: $to,
    step: $step) { metric step from to points { timestamp value } }
}`;

interface Series {
  from: string;
  to: string;
  points: { timestamp: string; value: number }[];
}
interface Refused {
  extensions: { code: string; detail?: { loc: (string | number)[]; msg: string }[] };
}

/** The points of a series, or its error. */
async function seriesOf(who: Person, asked: object): Promise<{ series: Series | null; refused?: Refused }> {
  const variables = { org: who.orgId, step: 'HOUR', ...asked };
  const { data, errors } = await who.ask<{ series: Series } | null>(SERIES, variables);
  return { series: data?.series ?? null, ...(errors && { refused: errors[0] as Refused }) };
}

const sumOf = ({ series }: { series: Series | null }) => series!.points.reduce((sum, { value }) => sum + value, 0);

test('a series of an organization, a workspace, an app, a token and a user, by each metric', async () => {
  const { who, appId, run } = await createRunner();
  const token = await issueToken(app, who, { scopes: ['admin'] });
  await run('a', { token_usage: { input: 100, output: 20 } });
  await run('a', { status: 'completed', token_usage: { input: 150, output: 20 } });
  await app.server.inject({ url: `${who.home}/apps/app_none`, headers: token.headers });
  await app.services.activity.flush();
  await foldActivity(app.services.sql);
  const ws = who.workspaceId;
  for (const place of [{}, { ws }, { ws, app: appId }]) {
    expect(sumOf(await seriesOf(who, { ...place, m: 'EXECUTIONS' })), JSON.stringify(place)).toBe(1);
    expect(sumOf(await seriesOf(who, { ...place, m: 'TOKENS' }))).toBe(170);
    expect(sumOf(await seriesOf(who, { ...place, m: 'EXECUTIONS', step: 'DAY' }))).toBe(1);
  }
  const count = await app.database.prisma.activity.count({ where: { tokenId: token.id } });
  expect(sumOf(await seriesOf(who, { tok: token.id, m: 'REQUESTS' }))).toBe(count);
  expect(sumOf(await seriesOf(who, { tok: token.id, m: 'ERRORS' }))).toBe(1);
  expect(sumOf(await seriesOf(who, { tok: token.id, m: 'EXECUTIONS' }))).toBe(0);
  const durations = await app.database.prisma.activity.aggregate({
    where: { tokenId: token.id },
    _avg: { durationMs: true },
  });
  expect(sumOf(await seriesOf(who, { tok: token.id, m: 'LATENCY' }))).toBe(durations._avg.durationMs);
  expect(sumOf(await seriesOf(who, { usr: who.userId, m: 'EXECUTIONS' }))).toBe(1);
  for (const step of ['HOUR', 'DAY'])
    expect(sumOf(await seriesOf(who, { usr: who.userId, m: 'ERRORS', step })), step).toBe(1);
});

test('the range of a series is widened to whole spans, and its end is not part of it', async () => {
  const who = await register(app);
  const asked = { m: 'REQUESTS', from: '2026-11-22T10:30:00Z', to: '2026-11-22T13:00:00Z' };
  const { series } = await seriesOf(who, asked);
  expect(series).toEqual({
    metric: 'REQUESTS',
    step: 'HOUR',
    from: '2026-11-22T10:00:00.000Z',
    to: '2026-11-22T13:00:00.000Z',
    points: ['10', '11', '12'].map((hour) => ({ timestamp: `2026-11-22T${hour}:00:00.000Z`, value: 0 })),
  });
  const days = await seriesOf(who, { ...asked, step: 'DAY' });
  expect(days.series!.points.map(({ timestamp }) => timestamp)).toEqual(['2026-11-22T00:00:00.000Z']);
  expect((await seriesOf(who, { m: 'TOKENS' })).series!.points).toHaveLength(24);
  const empty = await seriesOf(who, { m: 'TOKENS', from: asked.to, to: asked.to });
  expect(empty.series!.points).toEqual([]);
  const most = { m: 'TOKENS', from: '2026-01-01T00:00:00Z', to: '2026-03-25T08:00:00Z' };
  expect((await seriesOf(who, most)).series!.points).toHaveLength(2_000);
});

test('wrong input is refused with its place', async () => {
  const who = await register(app);
  const at = '2026-11-22T10:00:00Z';
  const cases: [asked: object, name: string][] = [
    [{ from: at, to: '2026-11-22T09:59:00Z' }, 'to'],
    [{ from: '2026-01-01T00:00:00Z', to: '2026-03-25T08:00:01Z' }, 'from'],
    [{ from: '0001-01-01T00:00:00Z' }, 'from'],
    [{ app: 'app_1' }, 'workspaceId'],
    [{ ws: who.workspaceId, usr: who.userId, step: 'DAY' }, 'userId'],
    [{ tok: 'tok_1', usr: who.userId, step: 'DAY' }, 'userId'],
  ];
  for (const [asked, name] of cases) {
    const { refused } = await seriesOf(who, { m: 'REQUESTS', ...asked });
    expect([refused?.extensions.code, JSON.stringify(refused)], name).toEqual([
      'VALIDATION_ERROR',
      expect.stringContaining(`"${name}"`),
    ]);
  }
  const stranger = await seriesOf(who, { usr: 'usr_none', m: 'REQUESTS', step: 'DAY' });
  expect(stranger.refused?.extensions.code).toBe('RESOURCE_NOT_FOUND');
  const unstorable = await seriesOf(who, { usr: 'a\u0000b', m: 'REQUESTS', step: 'DAY' });
  expect(unstorable.refused?.extensions.code).toBe('VALIDATION_ERROR');
  expect((await seriesOf(who, { tok: 'tok_none', m: 'REQUESTS' })).refused?.extensions.code).toBe('RESOURCE_NOT_FOUND');
});

test('a plain member reads their own series, and no other of the organization', async () => {
  const { who } = await createRunner();
  const joined = await colleague(app, who, 'member');
  const member: Person = { ...joined, orgId: who.orgId };
  const codeOf = async (asked: object) => (await seriesOf(member, asked)).refused?.extensions.code;
  const mine = await issueToken(app, member);
  const foreign = await issueToken(app, who);
  expect(await codeOf({ usr: member.userId, m: 'ERRORS', step: 'DAY' })).toBeUndefined();
  expect(await codeOf({ tok: mine.id, m: 'ERRORS' })).toBeUndefined();
  expect(await codeOf({ ws: who.workspaceId, m: 'ERRORS' })).toBeUndefined();
  expect(await codeOf({ m: 'ERRORS' })).toBe('FORBIDDEN');
  expect(await codeOf({ usr: who.userId, m: 'ERRORS', step: 'DAY' })).toBe('FORBIDDEN');
  expect(await codeOf({ tok: foreign.id, m: 'ERRORS' })).toBe('FORBIDDEN');
});

const NUMBERS = 'resources { apps threads } executions { total }';
const BELOW = `query ($org: ID!, $ws: ID!, $app: ID!) {
  organization(id: $org) {
    analytics { workspaces users ${NUMBERS} }
    workspaces { nodes { id analytics { workspaceId ${NUMBERS} } } }
  }
  app(orgId: $org, workspaceId: $ws, id: $app) { analytics { augmentations namespaces endpoints releases } }
  namespace(orgId: $org, workspaceId: $ws, id: "default") { analytics { threads sources } }
}`;

test('places have their numbers, those of a list read at once; a part is not told of its whole', async () => {
  const { who, appId, run } = await createRunner();
  await run('a');
  await who.call('POST', `${who.home}/namespaces/default/threads`, {});
  const { body: second } = await who.call<{ workspace_id: string }>('POST', `/v1/orgs/${who.orgId}/workspaces`, {
    organization_id: who.orgId,
    name: 'Second',
  });
  const variables = { org: who.orgId, ws: who.workspaceId, app: appId };
  const ofFirst = { resources: { apps: 1, threads: 1 }, executions: { total: 1 } };
  const ofSecond = { resources: { apps: 0, threads: 0 }, executions: { total: 0 } };
  const nodes = [
    { id: second.workspace_id, analytics: { workspaceId: second.workspace_id, ...ofSecond } },
    { id: who.workspaceId, analytics: { workspaceId: who.workspaceId, ...ofFirst } },
  ];
  const parts = {
    app: { analytics: { augmentations: 1, namespaces: 1, endpoints: 0, releases: 0 } },
    namespace: { analytics: { threads: 1, sources: 0 } },
  };
  const { data, errors } = await who.ask(BELOW, variables);
  expect(errors).toBeUndefined();
  const organization = { analytics: { workspaces: 2, users: 1, ...ofFirst }, workspaces: { nodes } };
  expect(data).toEqual({ organization, ...parts });

  const viewer = await colleague(app, who, 'viewer');
  const seen = await viewer.ask(BELOW, variables);
  expect(seen.errors).toBeUndefined();
  expect(seen.data).toEqual({ organization: { analytics: null, workspaces: { nodes: [nodes[1]] } }, ...parts });

  const byToken = async (restrictions: object) => {
    const { headers } = await issueToken(app, who, { scopes: ['read'], ...restrictions });
    const payload = { query: BELOW, variables };
    const answer = await app.server.inject({ method: 'POST', url: '/graphql', headers, payload });
    return answer.json<{ data: unknown; errors?: unknown }>();
  };
  expect(await byToken({ workspace_ids: [who.workspaceId] })).toEqual({
    data: { organization: { analytics: null, workspaces: { nodes: [nodes[1]] } }, ...parts },
  });
  const { data: all } = await who.ask<{ namespace: { id: string } }>(
    'query ($org: ID!, $ws: ID!) { namespace(orgId: $org, workspaceId: $ws, id: "default") { id } }',
    { org: who.orgId, ws: who.workspaceId },
  );
  const inNamespace = await byToken({ namespace_ids: [all.namespace.id] });
  expect(inNamespace.data).toMatchObject({
    organization: { analytics: null, workspaces: { nodes: [{ id: who.workspaceId, analytics: null }] } },
    namespace: parts.namespace,
  });
});
