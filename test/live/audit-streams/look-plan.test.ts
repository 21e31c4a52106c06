import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sql } from '../../../src/data/sql.ts';
import { ActivityFeed } from '../../../src/insight/activity/activity-feed.ts';
import { auditChannel } from '../../../src/live/audit-streams/audit-channel.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { register } from '../../support/person.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';

const RECORDS = 12_000;
const ORGANIZATIONS = 4;

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
});
afterAll(() => app.close());

/** The most that one node of the plan reads of the records, with what its filter removes. */
async function mostRead(text: string, values: unknown[]): Promise<number> {
  const { rows } = await app.database.pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, format json) ${text}`,
    values,
  );
  const scans = nodesOf(rows[0]!['QUERY PLAN'][0].Plan).filter((node) =>
    node['Relation Name']?.startsWith('activity_'),
  );
  expect(scans.length).toBeGreaterThan(0);
  return Math.max(
    ...scans.map((scan) => (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)) * scan['Actual Loops']),
  );
}

it('a stream that has sent everything or has little to send reads little however many records there are', async () => {
  const { pool } = app.database;
  const ann = await register(app);
  const types = ['http', 's3'];
  await fill(
    app,
    `insert into activity (id, timestamp, org_id, principal_type, action, status_code, success)
     select 'act_look' || i, now(), case i % $2 when 0 then $3 else 'org_other' || i % $2 end, 'user', 'read', 200, true
     from generate_series(1, $1::int) i`,
    [RECORDS, ORGANIZATIONS, ann.orgId],
  );
  await pool.query(
    `insert into audit_streams (id, org_id, name, target_type, url, is_enabled, acts_for, position_xid, position_id)
     select 'aus_' || type, $1, 'Stream', type, '', false, $2, (select max(xid) from activity), 'z'
     from unnest($3::text[]) type`,
    [ann.orgId, ann.userId, types],
  );
  await pool.query('analyze activity');
  await pool.query('analyze audit_streams');
  for (const type of types) {
    const look = `select h.id, (${auditChannel.hasNew}) as "hasNew" from audit_streams h where h.id = $1`;
    expect(await mostRead(look, [`aus_${type}`]), type).toBeLessThan(RECORDS / 10);
  }
  const asked: { text: string; values: unknown[] }[] = [];
  const noted = { read: async (text: string, values: unknown[]) => asked.push({ text, values }) && [] };
  const feed = new ActivityFeed(noted as unknown as Sql);
  const terms = {
    orgId: ann.orgId,
    begunSnapshot: null,
    begunXid: null,
    actions: [],
    resourceTypes: [],
    success: null,
  };
  await feed.next(terms, { xid: '0', id: '' }, 50);
  await feed.between(terms, { xid: '0', id: '' }, { xid: '1', id: 'z' });
  expect(asked).toHaveLength(2);
  for (const { text, values } of asked) expect(await mostRead(text, values), text).toBeLessThan(RECORDS / 10);
});
