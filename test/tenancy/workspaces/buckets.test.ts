import { renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startOwnApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let owner: Person;
let files: string;
beforeAll(async () => {
  app = await startOwnApp();
  files = path.join(app.dataDir, 'files');
  renameSync(files, `${files}-aside`);
  writeFileSync(files, 'a file where the folder should be');
  owner = await register(app);
});
afterAll(() => app.close());

const statusOf = async () =>
  (
    await app.server.inject({ url: `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`, headers: owner.headers })
  ).json<{ bucket_status: string }>().bucket_status;

/** Lets the bucket have failed for the first time so long ago, and for the last. */
const failing = (first: string, last: string) =>
  app.database.pool.query(
    'update workspaces set created_at = now() - $2::interval, updated_at = now() - $3::interval where id = $1',
    [owner.workspaceId, first, last],
  );

/** What the events said of the bucket so far. */
async function told(): Promise<string[]> {
  const events = await app.database.prisma.event.findMany({
    where: { workspaceId: owner.workspaceId, type: 'workspace.updated' },
    orderBy: { seq: 'asc' },
    select: { data: true },
  });
  return events.map(({ data }) => (data as { bucket_status: string }).bucket_status);
}

/** Whether it is tried again then. The service's own task may be first. */
async function triedAgain(first: string, last: string): Promise<boolean> {
  const before = (await told()).length;
  await failing(first, last);
  await app.services.buckets.retryFailed();
  return (await told()).length > before;
}

it('tries a bucket that failed again, after ever longer waits, and says so in events', async () => {
  await waitFor(async () => expect(await statusOf()).toBe('failed'));
  expect(await triedAgain('1 second', '1 second')).toBe(false);
  expect(await triedAgain('11 seconds', '11 seconds')).toBe(true);
  await waitFor(async () => expect(await statusOf()).toBe('failed'));
  expect(await triedAgain('5 minutes', '2 minutes')).toBe(false);
  expect(await triedAgain('1 year', '59 minutes')).toBe(false);
  rmSync(files);
  renameSync(`${files}-aside`, files);
  expect(await triedAgain('1 year', '61 minutes')).toBe(true);
  await waitFor(async () => expect(await statusOf()).toBe('ready'));
  expect(await triedAgain('1 year', '61 minutes')).toBe(false);
  expect(await told()).toEqual(['failed', 'pending', 'failed', 'pending', 'ready']);
});

it('makes the buckets of several batches once, when two nodes work at once and a change locks a batch', async () => {
  const there = await app.another();
  const { pool } = app.database;
  const made = await pool.query<{ id: string }>(
    `insert into workspaces (id, org_id, name, storage_bucket, bucket_status, updated_at)
     select 'ws_many' || n, $1, 'Many', 'ws_many' || n, 'ready', now()
     from generate_series(10000, 11100) n returning id`,
    [owner.orgId],
  );
  const ids = made.rows.map(({ id }) => id);
  const [held, others] = [ids.slice(0, 500), ids.slice(500)];
  const statuses = async (of: readonly string[]) => {
    const text = 'select distinct bucket_status as status from workspaces where id = any($1)';
    return (await pool.query<{ status: string }>(text, [of])).rows.map(({ status }) => status);
  };
  const change = await pool.connect();
  try {
    await change.query('begin');
    await change.query('select 1 from workspaces where id = any($1) for key share', [held]);
    await pool.query(`update workspaces set bucket_status = 'pending' where id = any($1)`, [ids]);
    await Promise.all([app, there].map(({ services }) => services.buckets.provisionPending()));
    await waitFor(async () => expect(await statuses(others)).toEqual(['ready']));
    expect(await statuses(held)).toEqual(['pending']);
    await change.query('commit');
    await waitFor(async () => expect(await statuses(held)).toEqual(['ready']));
  } finally {
    change.release();
    await there.close();
  }
  const told = await pool.query<{ n: number }>(
    'select count(*)::int as n from events where resource_id = any($1) group by resource_id',
    [ids],
  );
  expect(told.rows.map(({ n }) => n)).toEqual(ids.map(() => 1));
});
