import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';
import { waitFor } from '../../support/wait.ts';

const RECORDS = 20_000;

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
});
afterAll(() => app.close());

it('is looked for every second without reading what is summed', async () => {
  const { pool } = app.database;
  await fill(
    app,
    `insert into activity (id, timestamp, org_id, principal_type, action, status_code, success)
     select 'act_due' || i, now(), 'org_due', 'user', 'read', 200, true from generate_series(1, $1) i`,
    [RECORDS],
  );
  await waitFor(async () => {
    await pool.query('select fold_activity(100000)');
    expect((await pool.query('select from activity a, activity_fold f where a.xid >= f.xid limit 1')).rowCount).toBe(0);
  });
  await pool.query('analyze activity');
  const task = app.services.activityLog.tasks.find(({ name }) => name === 'sum_activity')!;
  const client = await pool.connect();
  try {
    await client.query('begin');
    // nothing came for a while
    await client.query(`update activity_fold set folded_at = now() - interval '1 hour'`);
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, format json) ${task.schedule!.ifAny}`,
    );
    const scans = nodesOf(rows[0]!['QUERY PLAN'][0].Plan).filter((node) =>
      node['Relation Name']?.startsWith('activity_'),
    );
    expect(scans.length).toBeGreaterThan(2);
    const read = scans.map((scan) => scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0));
    expect(Math.max(...read), JSON.stringify(scans)).toBeLessThan(RECORDS / 10);
  } finally {
    await client.query('rollback');
    client.release();
  }
});
