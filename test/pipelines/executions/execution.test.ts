import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ExecutionFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Answer, colleague, type Person } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { createPipeline, keptCounts, type Pipeline } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Execution = RestBody<ExecutionFragment>;

interface Runner extends Pipeline {
  augmentationId: string;
  /** Reports the run `run-1`. */
  report: (more?: object, who?: Person) => Promise<Answer<Execution>>;
  get: () => Promise<Execution>;
}

/** An app with an augmentation of three stages. */
async function createRunner(): Promise<Runner> {
  const pipeline = await createPipeline(app);
  const { who, appId: app_id } = pipeline;
  const { augmentation_id } = await pipeline.augmentation({ stages: [{ name: '1' }, { name: '2' }, { name: '3' }] });
  const url = `${who.home}/executions`;
  return {
    ...pipeline,
    augmentationId: augmentation_id,
    report: (more = {}, by = who) => by.call('POST', url, { execution_id: 'run-1', app_id, augmentation_id, ...more }),
    get: async () => (await who.call<Execution>('GET', `${url}/run-1`)).body,
  };
}

const eventsOf = async (orgId: string) =>
  (
    await app.database.prisma.event.findMany({
      where: { orgId, resourceType: 'execution' },
      orderBy: { seq: 'asc' },
    })
  ).map(({ type, resourceId, appId, data }) => ({ type, resourceId, appId, data }));

const recordsOf = async (orgId: string) =>
  (
    await app.database.prisma.activity.findMany({
      where: { orgId, resourceType: 'execution', action: 'execute' },
      orderBy: { id: 'asc' },
    })
  ).map(({ executionId, augmentationId, stagesCompleted, totalStages, tokenUsage, metadata }) => [
    executionId,
    augmentationId,
    stagesCompleted,
    totalStages,
    tokenUsage,
    metadata,
  ]);

test('a run from its start to its end: each report is an event and a record of what was used since', async () => {
  const { who, appId, augmentationId, endpoint, report, get } = await createRunner();
  const { body: chat } = await endpoint({ path: '/chat', augmentation_id: augmentationId });
  const { endpoint_id } = chat;
  const started = await report({ endpoint_id, started_at: '2026-11-22T10:00:00Z' });
  expect(started.status).toBe(200);
  const first = {
    execution_id: 'run-1',
    org_id: who.orgId,
    workspace_id: who.workspaceId,
    app_id: appId,
    augmentation_id: augmentationId,
    endpoint_id,
    action_id: null,
    status: 'running',
    stages_completed: 0,
    total_stages: 3,
    token_usage: { input: 0, output: 0, total: 0 },
    error: null,
    is_timed_out: false,
    started_at: '2026-11-22T10:00:00.000Z',
    ended_at: null,
    token_id: null,
    created_by: who.userId,
    created_at: expect.any(String) as string,
    updated_at: expect.any(String) as string,
  };
  expect(started.body).toEqual(first);
  const second = await report({ stages_completed: 2, token_usage: { input: 100, output: 20 } });
  expect(second.body).toEqual({
    ...first,
    stages_completed: 2,
    token_usage: { input: 100, output: 20, total: 120 },
  });
  const end = {
    status: 'completed',
    stages_completed: 3,
    token_usage: { input: 150, output: 50, total: 210 },
    ended_at: '2026-11-22T10:00:09Z',
  };
  const last = { ...first, ...end, ended_at: '2026-11-22T10:00:09.000Z' };
  expect((await report(end)).body).toEqual(last);
  expect(await get()).toEqual(last);
  expect((await who.call('GET', `${who.home}/executions`)).body).toEqual({
    total: 1,
    has_more: false,
    next_cursor: null,
    executions: [last],
  });

  const event = { resourceId: 'run-1', appId };
  const data = { augmentation_id: augmentationId, total_stages: 3 };
  expect(await eventsOf(who.orgId)).toEqual([
    { ...event, type: 'execution.started', data: { ...data, status: 'running', stages_completed: 0 } },
    { ...event, type: 'execution.stage_completed', data: { ...data, status: 'running', stages_completed: 2 } },
    { ...event, type: 'execution.stage_completed', data: { ...data, status: 'completed', stages_completed: 3 } },
    { ...event, type: 'execution.completed', data: { ...data, status: 'completed', stages_completed: 3 } },
  ]);
  expect(await recordsOf(who.orgId)).toEqual([
    ['run-1', augmentationId, 0, 3, { input: 0, output: 0, total: 0 }, { status: 'running' }],
    ['run-1', augmentationId, 2, 3, { input: 100, output: 20, total: 120 }, { status: 'running' }],
    ['run-1', augmentationId, 3, 3, { input: 50, output: 30, total: 90 }, { status: 'completed' }],
  ]);
});

test('a stale or repeated report changes nothing, and what has ended stays so', async () => {
  const { who, augmentationId, report, get } = await createRunner();
  await report({ stages_completed: 2, token_usage: { input: 100 } });
  const before = await get();
  const events = await eventsOf(who.orgId);
  for (const late of [{}, { stages_completed: 1 }, { stages_completed: 2, token_usage: { input: 99, output: 0 } }])
    expect((await report(late)).body).toEqual(before);
  expect(await eventsOf(who.orgId)).toEqual(events);
  const failure = { status: 'failed', error: 'The model is away.' };
  const { body: failed } = await report(failure);
  expect(failed).toMatchObject({ ...failure, stages_completed: 2, ended_at: expect.any(String) });
  for (const late of [{}, { status: 'running', stages_completed: 3 }, failure, { status: 'failed' }])
    expect((await report(late)).body).toEqual(failed);
  expect(await get()).toEqual(failed);
  expect((await eventsOf(who.orgId)).map(({ type }) => type)).toEqual([
    'execution.started',
    'execution.stage_completed',
    'execution.failed',
  ]);
  // each is recorded; only the first has used something
  const used = { input: 100, output: 0, total: 100 };
  const nothing = { input: 0, output: 0, total: 0 };
  expect((await recordsOf(who.orgId)).map(([id, of, , , usage]) => [id, of, usage])).toEqual(
    Array.from({ length: 9 }, (_, at) => ['run-1', augmentationId, at === 0 ? used : nothing]),
  );
});

test.each<[what: string, known: object, given: object, fields: string[]]>([
  ['another end', { status: 'failed' }, { status: 'completed' }, ['status']],
  [
    'more tokens at its end',
    { status: 'completed', token_usage: { input: 1 } },
    { status: 'completed', token_usage: { input: 2 }, stages_completed: 1 },
    ['stages_completed', 'token_usage'],
  ],
  ['another cause', { status: 'failed', error: 'a' }, { status: 'failed', error: 'b' }, ['error']],
  ['another number of stages', {}, { total_stages: 4 }, ['total_stages']],
  ['another start', { started_at: '2026-11-22T10:00:00Z' }, { started_at: '2026-11-22T10:00:01Z' }, ['started_at']],
])('refuses a report that contradicts what is known: %s', async (_what, known, given, fields) => {
  const { report, get } = await createRunner();
  const { body: before } = await report(known);
  const { status, body } = await report(given);
  expect([status, (body as unknown as { details: object }).details]).toEqual([
    409,
    { resource_type: 'execution', resource_id: 'run-1', reason: 'conflicting_report', fields },
  ]);
  expect(await get()).toEqual(before);
});

test('an identifier belongs to one run: another app or augmentation is a conflict', async () => {
  const { who, report, augmentation } = await createRunner();
  await report();
  const other = await augmentation();
  expect((await report({ augmentation_id: other.augmentation_id })).body).toMatchObject({
    details: { fields: ['augmentation_id'] },
  });
  const elsewhere = await createPipeline(app, who);
  const { augmentation_id } = await elsewhere.augmentation();
  expect((await report({ app_id: elsewhere.appId, augmentation_id })).body).toMatchObject({
    details: { fields: ['app_id', 'augmentation_id'] },
  });
});

test.each<[what: string, given: object, loc: string, msg: string]>([
  ['an error without a failure', { error: 'x' }, 'error', 'only a failed execution may have it'],
  ['an end without an end', { ended_at: '2026-11-22T10:00:00Z' }, 'ended_at', 'a running execution has no end'],
  ['a start in the future', { started_at: '2999-01-01T00:00:00Z' }, 'started_at', 'it is in the future'],
  ['more stages than there are', { stages_completed: 4 }, 'stages_completed', 'there are 3 stages'],
  [
    'an end before its start',
    { status: 'completed', started_at: '2026-11-22T10:00:01Z', ended_at: '2026-11-22T10:00:00Z' },
    'ended_at',
    'it is before the start',
  ],
])('refuses %s', async (_what, given, field, error) => {
  const { report } = await createRunner();
  const { status, body } = await report(given);
  expect(status).toBe(422);
  expect(body).toMatchObject({ detail: [{ loc: ['body', field], msg: `Value error, ${error}` }] });
  expect((await report({})).status).toBe(200);
});

test('names only what is in its app', async () => {
  const { who, report } = await createRunner();
  const elsewhere = await createPipeline(app, who);
  const { augmentation_id } = await elsewhere.augmentation();
  const { body: chat } = await elsewhere.endpoint({ path: '/chat', augmentation_id });
  const { body: daily } = await elsewhere.action({ augmentation_id });
  for (const [type, given] of Object.entries({
    app: { app_id: 'app_none' },
    augmentation: { augmentation_id },
    endpoint: { endpoint_id: chat.endpoint_id },
    action: { action_id: daily.action_id },
  })) {
    const { status, body } = await report(given);
    expect([status, (body as unknown as { details: { resource_type: string } }).details.resource_type]).toEqual([
      404,
      type,
    ]);
  }
});

test('ten first reports at once are one run; its numbers are those of the last', async () => {
  const { who, report, get } = await createRunner();
  const reports = Array.from({ length: 10 }, (_, n) => ({ stages_completed: n % 4, token_usage: { input: n * 10 } }));
  const answers = await Promise.all(reports.map((given) => report(given)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(await get()).toMatchObject({ stages_completed: 3, token_usage: { input: 90, output: 0, total: 90 } });
  const events = (await eventsOf(who.orgId)).filter(({ type }) => type === 'execution.started');
  expect(events).toHaveLength(1);
  const usages = (await recordsOf(who.orgId)).map(([, , , , usage]) => (usage as { input: number }).input);
  expect(usages.reduce((sum, used) => sum + used, 0)).toBe(90);
});

test('counts runs of a workspace and an app by how they ended', async () => {
  const { who, appId, report } = await createRunner();
  await report({ execution_id: 'a' });
  await report({ execution_id: 'b', status: 'completed' });
  await report({ execution_id: 'c' });
  await report({ execution_id: 'c', status: 'failed' });
  await report({ execution_id: 'c', status: 'failed' });
  const counts = { executions: 3, 'executions.failed': 1, 'executions.running': 1, 'executions.success': 1 };
  expect(await keptCounts(app, appId)).toMatchObject(counts);
  expect(await keptCounts(app, who.workspaceId)).toMatchObject(counts);
  const { data } = await who.ask<{ app: { executions: { totalCount: number; nodes: { app: object }[] } } }>(
    `query ($orgId: ID!, $workspaceId: ID!, $appId: ID!) { app(orgId: $orgId, workspaceId: $workspaceId, id: $appId) {
      executions(first: 2) { totalCount nodes { executionId augmentation { name } endpoint { id } } } } }`,
    { orgId: who.orgId, workspaceId: who.workspaceId, appId },
  );
  expect(data.app.executions).toEqual({
    totalCount: 3,
    nodes: ['c', 'b'].map((executionId) => ({ executionId, augmentation: { name: 'Answers' }, endpoint: null })),
  });
});

test('an app token and an editor may report, a member may not; a token of another app may not', async () => {
  const { who, appId, report, get } = await createRunner();
  const tokenOf = async (of: string) =>
    (
      await who.call<{ plaintext_token: string; token: { token_id: string } }>(
        'POST',
        `/v1/orgs/${who.orgId}/apps/${of}/tokens`,
        { name: 'runner' },
      )
    ).body;
  const send = (token: string) =>
    app.server.inject({
      method: 'POST',
      url: `${who.home}/executions`,
      headers: { authorization: `Bearer ${token}` },
      payload: { execution_id: 'run-1', app_id: appId, augmentation_id: augmentationOf },
    });
  const { body: listed } = await who.call<{ augmentations: { augmentation_id: string }[] }>(
    'GET',
    `${who.home}/apps/${appId}/augmentations`,
  );
  const augmentationOf = listed.augmentations[0]!.augmentation_id;
  const member = await colleague(app, who, 'member');
  expect((await report({}, member)).body).toMatchObject({ error: 'FORBIDDEN' });
  const other = await createPipeline(app, who);
  expect((await send((await tokenOf(other.appId)).plaintext_token)).statusCode).toBe(403);
  const own = await tokenOf(appId);
  expect((await send(own.plaintext_token)).json()).toMatchObject({ token_id: own.token.token_id });
  expect((await get()).token_id).toBe(own.token.token_id);
  const editor = await colleague(app, who, 'editor');
  expect((await report({ stages_completed: 1 }, editor)).body).toMatchObject({
    stages_completed: 1,
    token_id: own.token.token_id,
  });
});

test('a run outlives its augmentation', async () => {
  const { who, url, augmentationId, report, get } = await createRunner();
  await report();
  expect((await who.call('DELETE', `${url}/augmentations/${augmentationId}`)).status).toBe(204);
  expect((await report({ status: 'completed' })).body).toEqual(await get());
  expect(await get()).toMatchObject({ status: 'completed', augmentation_id: augmentationId });
});

test('a list has filters: the app, the status and the time of the start, each exactly', async () => {
  const one = await createRunner();
  const { who } = one;
  const other = await createPipeline(app, who);
  const { augmentation_id } = await other.augmentation();
  const at = (minute: number) => new Date(Date.UTC(2026, 9, 1, 12, minute)).toISOString();
  await one.report({ execution_id: 'a', started_at: at(0) });
  await one.report({ execution_id: 'b', started_at: at(10), status: 'failed' });
  await one.report({ execution_id: 'c', started_at: at(20), status: 'completed' });
  await one.report({ execution_id: 'd', app_id: other.appId, augmentation_id, started_at: at(30) });
  const query = `query ($orgId: ID!, $workspaceId: ID!, $app: ID, $status: ExecutionStatus,
    $from: DateTime, $before: DateTime) {
    executions(orgId: $orgId, workspaceId: $workspaceId, appId: $app, status: $status, startedFrom: $from,
      startedBefore: $before) { totalCount nodes { executionId } } }`;
  const ask = (filters: object) =>
    who.ask<{ executions: { totalCount: number; nodes: { executionId: string }[] } }>(query, {
      orgId: who.orgId,
      workspaceId: who.workspaceId,
      ...filters,
    });
  const found = async (filters: object) => {
    const { totalCount, nodes } = (await ask(filters)).data.executions;
    expect(totalCount).toBe(nodes.length);
    return nodes.map(({ executionId }) => executionId).join('');
  };
  expect(await found({})).toBe('dcba');
  expect(await found({ app: one.appId })).toBe('cba');
  expect(await found({ app: other.appId, status: 'failed' })).toBe('');
  expect(await found({ status: 'running' })).toBe('da');
  expect(await found({ status: 'failed' })).toBe('b');
  expect(await found({ from: at(10), before: at(30) })).toBe('cb');
  expect(await found({ app: one.appId, status: 'running', before: at(10) })).toBe('a');
  const codes = async (filters: object) => (await ask(filters)).errors?.map(({ extensions: { code } }) => code);
  expect(await codes({ from: at(10), before: at(0) })).toEqual(['VALIDATION_ERROR']);
  expect((await ask({ status: 'lost' })).errors).toMatchObject([
    { message: 'Variable "$status" got an invalid value; it is not a value of the enum "ExecutionStatus".' },
  ]);
  expect(await codes({ app: 'app_none' })).toEqual(['RESOURCE_NOT_FOUND']);
});
