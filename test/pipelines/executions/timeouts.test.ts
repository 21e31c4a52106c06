import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ExecutionFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { waitFor } from '../../support/wait.ts';
import { createPipeline } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Execution = RestBody<ExecutionFragment>;

const HOUR_MS = 3_600_000;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

async function createRunner(of = app) {
  const { who, appId: app_id, augmentation } = await createPipeline(of);
  const { augmentation_id } = await augmentation({ stages: [{ name: '1' }, { name: '2' }] });
  const url = `${who.home}/executions`;
  return {
    who,
    report: (execution_id: string, more: object = {}) =>
      who.call<Execution>('POST', url, { execution_id, app_id, augmentation_id, ...more }),
    get: async (id: string) => (await who.call<Execution>('GET', `${url}/${id}`)).body,
    metrics: async () => (await who.call('GET', `${who.home}/analytics/executions`)).body,
    /** As if the run had been reported last so long ago. */
    silentSince: (executionId: string, hours: number) =>
      of.database.prisma.execution.updateMany({
        where: { orgId: who.orgId, executionId },
        data: { reportedAt: hoursAgo(hours) },
      }),
    reportedAt: async (executionId: string) =>
      (await of.database.prisma.execution.findFirstOrThrow({ where: { orgId: who.orgId, executionId } })).reportedAt,
    events: async () =>
      (
        await of.database.prisma.event.findMany({
          where: { orgId: who.orgId, resourceType: 'execution' },
          orderBy: { seq: 'asc' },
        })
      ).map(({ type, resourceId, actor }) => [resourceId, type, (actor as { principal_type: string }).principal_type]),
  };
}

test('a run of which nothing is heard for a day fails, with its event, its record and its numbers', async () => {
  const { who, report, get, metrics, silentSince, events } = await createRunner();
  await report('silent', { stages_completed: 1, token_usage: { total: 7 } });
  await report('heard');
  await report('done', { status: 'completed' });
  await silentSince('silent', 24.1);
  await silentSince('heard', 23.9);
  await silentSince('done', 1_000);
  await waitFor(async () => expect((await get('silent')).status).toBe('failed'));
  await app.jobsDone();
  expect(await get('silent')).toMatchObject({
    status: 'failed',
    is_timed_out: true,
    error: 'No report came for 24 hours: the service closed the execution.',
    ended_at: expect.any(String),
    stages_completed: 1,
    token_usage: { total: 7 },
  });
  expect(await get('heard')).toMatchObject({ status: 'running', is_timed_out: false, error: null });
  expect(await get('done')).toMatchObject({ status: 'completed', is_timed_out: false });
  expect(await metrics()).toEqual({ total: 3, success: 1, failed: 1, success_rate: 0.5 });
  expect((await events()).filter(([id]) => id === 'silent')).toEqual([
    ['silent', 'execution.started', 'user'],
    ['silent', 'execution.stage_completed', 'user'],
    ['silent', 'execution.failed', 'system'],
  ]);
  const { body } = await who.call<{ activities: object[] }>(
    'GET',
    `${who.home}/activity?resource_id=silent&action=execute&limit=1`,
  );
  expect(body.activities).toMatchObject([
    {
      action: 'execute',
      principal_type: 'system',
      execution_id: 'silent',
      metadata: { status: 'failed', timed_out: true },
      token_usage: { total: 0 },
    },
  ]);
});

test('a later report takes the place of the timeout, and the numbers follow', async () => {
  const { report, get, metrics, silentSince, events } = await createRunner();
  for (const id of ['ends', 'goes on', 'fails'].map((name) => name.replace(' ', '-'))) {
    await report(id, { token_usage: { total: 5 } });
    await silentSince(id, 25);
    await waitFor(async () => expect((await get(id)).is_timed_out).toBe(true));
  }
  expect(await metrics()).toMatchObject({ total: 3, success: 0, failed: 3 });
  const { status, body } = await report('ends', { status: 'completed', token_usage: { total: 9 } });
  expect([status, body]).toMatchObject([
    200,
    { status: 'completed', is_timed_out: false, error: null, token_usage: { total: 9 } },
  ]);
  expect((await report('goes-on')).body).toMatchObject({ status: 'running', is_timed_out: false, ended_at: null });
  expect((await report('fails', { status: 'failed', error: 'Mine.' })).body).toMatchObject({
    status: 'failed',
    is_timed_out: false,
    error: 'Mine.',
  });
  expect(await metrics()).toEqual({ total: 3, success: 1, failed: 1, success_rate: 0.5 });
  expect((await events()).map(([id, type]) => `${id} ${type}`)).toEqual([
    'ends execution.started',
    'ends execution.failed',
    'goes-on execution.started',
    'goes-on execution.failed',
    'fails execution.started',
    'fails execution.failed',
    'ends execution.completed',
    'fails execution.failed',
  ]);
  // what has ended by a report stays so
  expect((await report('ends', { status: 'failed' })).status).toBe(409);
});

test('a report that changes nothing keeps a run open, and is no new version of it', async () => {
  const { report, get, silentSince, reportedAt } = await createRunner();
  await report('steady', { stages_completed: 1 });
  await silentSince('steady', 23);
  const before = await get('steady');
  expect((await report('steady', { stages_completed: 1 })).body).toEqual(before);
  expect((await reportedAt('steady')).getTime()).toBeGreaterThan(hoursAgo(1).getTime());
  expect(await get('steady')).toEqual(before);
});

test('no run is closed if the operator sets 0 hours, on several nodes each is closed once', async () => {
  const never = await startTestApp({ env: { EXECUTION_TIMEOUT_HOURS: '0' } });
  const open = await createRunner(never);
  await open.report('old');
  await open.silentSince('old', 10_000);
  const other = await app.another();
  const { report, get, silentSince, events } = await createRunner();
  const ids = Array.from({ length: 150 }, (_, at) => `run-${at}`);
  for (const id of ids) await report(id);
  await Promise.all(ids.map((id) => silentSince(id, 30)));
  await waitFor(async () => expect((await get('run-149')).is_timed_out).toBe(true));
  await waitFor(async () =>
    expect((await events()).filter(([, type]) => type === 'execution.failed')).toHaveLength(150),
  );
  await Promise.all([app.jobsDone(), other.jobsDone()]);
  expect(new Set((await events()).map((event) => event.join(' '))).size).toBe(300);
  expect((await open.get('old')).status).toBe('running');
  await never.close();
});
