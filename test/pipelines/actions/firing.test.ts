import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Changes } from '../../../src/data/changes.ts';
import { JobQueue } from '../../../src/data/job-queue.ts';
import { fireDue } from '../../../src/pipelines/actions/action-firing.ts';
import { nextTime } from '../../../src/pipelines/actions/next-time.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOver } from '../../support/changes.ts';
import { createTestDatabase } from '../../support/database.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { eventsOf } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { waitUntil } from '../../support/wait.ts';
import { type Action, createPipeline, type Pipeline } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** An action whose time has come some time ago, without an event yet. */
async function dueAction({ augmentation, action }: Pipeline, ago = '3 hours'): Promise<Action> {
  const { augmentation_id } = await augmentation();
  const { body } = await action({ kind: 'scheduled', cron: '0 * * * *', timezone: 'Asia/Kolkata', augmentation_id });
  await makeDue(body.action_id, ago);
  return body;
}

const makeDue = (id: string, ago: string) =>
  app.database.pool.query('update actions set next_fire_at = now() - $2::interval where id = $1', [id, ago]);

const stored = (id: string) => app.database.prisma.action.findUniqueOrThrow({ where: { id } });
const firings = async (id: string) => (await eventsOf(app, id)).filter((type) => type === 'action.fired').length;
const fired = (id: string) => waitUntil(async () => (await firings(id)) > 0);

test('fires by itself at its time: one event for all that was missed, and the next time is set', async () => {
  const pipeline = await createPipeline(app);
  const { action_id, augmentation_id } = await dueAction(pipeline);
  await fired(action_id);
  const { nextFireAt, lastFiredAt, resourceVersion } = await stored(action_id);
  expect(nextFireAt!.getTime()).toBeGreaterThan(lastFiredAt!.getTime());
  expect(nextFireAt!.getTime() - lastFiredAt!.getTime()).toBeLessThanOrEqual(3_600_000);
  // half past in UTC is a full hour in Kolkata
  expect(nextFireAt!.toISOString()).toMatch(/:30:00\.000Z$/);
  expect(resourceVersion).toBe(1);
  const event = await app.database.prisma.event.findFirstOrThrow({
    where: { resourceId: action_id, type: 'action.fired' },
  });
  expect(event).toMatchObject({
    orgId: pipeline.who.orgId,
    workspaceId: pipeline.who.workspaceId,
    appId: pipeline.appId,
    resourceType: 'action',
    actor: { principal_type: 'system', principal_id: null },
    data: { augmentation_id, scheduled_for: expect.any(String) },
  });
  await app.jobsDone();
  expect(await firings(action_id)).toBe(1);
});

/** The same write path that a node has, without a node that looks for due actions by itself. */
const changesOf = (node: TestApp) => changesOver(node, { jobs: new JobQueue() });

test('fires once, however many nodes take what is due at the same time', async () => {
  const other = await app.another();
  const pipeline = await createPipeline(app);
  const due = [];
  for (let n = 0; n < 5; n++) due.push((await dueAction(pipeline)).action_id);
  await Promise.all([app, other, app, other].map((node) => fireDue(changesOf(node))));
  for (const id of due) await fired(id);
  await app.jobsDone();
  for (const id of due) expect(await firings(id)).toBe(1);
  await other.close();
});

test('a change that fails has fired nothing: the next one does', async () => {
  const pipeline = await createPipeline(app);
  const changes = changesOf(app);
  const failing = Object.create(changes) as Changes;
  failing.run = (caller, work) =>
    changes.run(caller, async (tx) => {
      await work(tx);
      throw new Error('the node dies before its commit');
    });
  const id = await whileJobsWait(app, async () => {
    const { action_id } = await dueAction(pipeline);
    await expect(fireDue(failing)).rejects.toThrow('the node dies');
    expect(await firings(action_id)).toBe(0);
    return action_id;
  });
  await fired(id);
  await app.jobsDone();
  expect(await firings(id)).toBe(1);
});

const LATER = nextTime('0 0 1 1 *', 'Asia/Kolkata', new Date());

test.each<[what: string, next: Date | undefined | null, change: (p: Pipeline, one: string) => Promise<unknown>]>([
  ['disabled', null, ({ who }, one) => who.call('PATCH', one, { enabled: false })],
  ['made manual', null, ({ who }, one) => who.call('PATCH', one, { kind: 'manual' })],
  ['moved to another time', LATER, ({ who }, one) => who.call('PATCH', one, { cron: '0 0 1 1 *' })],
  ['deleted', undefined, ({ who }, one) => who.call('DELETE', one)],
  ['deleted with its app', undefined, ({ who, url }) => who.call('DELETE', url)],
])('a time that was due does not fire any more once the action is %s', async (_what, next, change) => {
  const pipeline = await createPipeline(app);
  const id = await whileJobsWait(app, async () => {
    const { action_id } = await dueAction(pipeline);
    await change(pipeline, `${pipeline.url}/actions/${action_id}`);
    return action_id;
  });
  await fireDue(changesOf(app));
  await app.jobsDone();
  const row = await app.database.prisma.action.findUnique({ where: { id } });
  expect(row?.nextFireAt).toEqual(next);
  expect(await firings(id)).toBe(0);
});

test('a change of the name lets a time that is due fire', async () => {
  const pipeline = await createPipeline(app);
  const id = await whileJobsWait(app, async () => {
    const { action_id } = await dueAction(pipeline);
    await pipeline.who.call('PATCH', `${pipeline.url}/actions/${action_id}`, { name: 'Renamed' });
    return action_id;
  });
  await fired(id);
});

test('an action of a deleted workspace does not fire, and does again once it is restored', async () => {
  const pipeline = await createPipeline(app);
  const { who } = pipeline;
  const { body } = await who.call<{ workspace_id: string }>('POST', `/v1/orgs/${who.orgId}/workspaces`, {
    organization_id: who.orgId,
    name: 'Gone',
  });
  const there = await createPipeline(app, {
    ...who,
    workspaceId: body.workspace_id,
    home: `/v1/orgs/${who.orgId}/workspaces/${body.workspace_id}`,
  });
  const { action_id } = await dueAction(there, '-1 hours');
  await who.call('DELETE', there.who.home);
  await makeDue(action_id, '1 minute');
  const isPast = async () => (await stored(action_id)).nextFireAt! > new Date();
  await waitUntil(isPast);
  expect(await firings(action_id)).toBe(0);
  expect((await stored(action_id)).lastFiredAt).toBeNull();
  await app.database.pool.query('update workspaces set deleted_at = null where id = $1', [body.workspace_id]);
  await makeDue(action_id, '1 minute');
  await fired(action_id);
});

test('many that are due at once fire in steps of a hundred, each once', async () => {
  const pipeline = await createPipeline(app);
  const { pool } = app.database;
  const ids = await whileJobsWait(app, async () => {
    const { action_id } = await dueAction(pipeline, '-1 hours');
    const { rows } = await pool.query<{ id: string }>(
      `insert into actions (id, org_id, workspace_id, app_id, augmentation_id, name, kind, cron, timezone, next_fire_at)
       select 'actn_' || lpad(n::text, 26, '0'), org_id, workspace_id, app_id, augmentation_id, name, kind, cron,
         timezone, now() from actions, generate_series(1, 250) n where id = $1 returning id`,
      [action_id],
    );
    const log = logQueries(pool);
    const updates = (await log.during(() => fireDue(changesOf(app)))).filter((text) =>
      text.includes('update actions a'),
    );
    expect(updates).toHaveLength(3);
    return rows.map(({ id }) => id);
  });
  await app.jobsDone();
  const fired = await app.database.prisma.event.groupBy({
    by: ['resourceId'],
    where: { type: 'action.fired', resourceId: { in: ids } },
    _count: true,
  });
  expect([fired.length, new Set(fired.map(({ _count }) => _count))]).toEqual([ids.length, new Set([1])]);
});

test('what is due while no node runs fires once, by the first that starts', async () => {
  const database = await createTestDatabase();
  const firings = async (id: string) => {
    const text = `select 1 from events where resource_id = $1 and type = 'action.fired'`;
    return (await only.query(text, [id])).rowCount;
  };
  const only = new pg.Pool({ connectionString: database.url, max: 1 });
  // the keys of the service stay when its nodes end
  const dataDir = mkdtempSync(path.join(tmpdir(), 'platform-test-'));
  const first = await startTestApp({ databaseUrl: database.url, env: { DATA_DIR: dataDir } });
  const pipeline = await createPipeline(first);
  const { augmentation_id } = await pipeline.augmentation();
  const schedule = { kind: 'scheduled', cron: '0 0 1 1 *', timezone: 'UTC', augmentation_id };
  const { action_id } = (await pipeline.action(schedule)).body;
  await first.close();
  await only.query(`update actions set next_fire_at = now() - interval '2 years' where id = $1`, [action_id]);
  for (const _start of ['the first', 'another']) {
    const node = await startTestApp({ databaseUrl: database.url, env: { DATA_DIR: dataDir } });
    await waitUntil(async () => (await firings(action_id)) === 1);
    await node.jobsDone();
    await node.close();
    expect(await firings(action_id)).toBe(1);
  }
  await only.end();
  await database.drop();
  rmSync(dataDir, { recursive: true });
});
