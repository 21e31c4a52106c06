import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addSpans, startOf } from '../../../src/insight/activity/time-spans.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { waitFor } from '../../support/wait.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
  pool.on('error', () => undefined);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const month = startOf('month', new Date());
const inMonth = (months: number, days = 1) =>
  new Date(addSpans('month', month, months).getTime() + days * 24 * 3_600_000);
const nameOf = (months: number) => addSpans('month', month, months).toISOString().slice(0, 7).replace('-', '_');

const partitions = async (table: string) =>
  (
    await pool.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1`,
      [table],
    )
  ).rows.map(({ name }) => name);

async function write(id: string, timestamp: Date): Promise<void> {
  await pool.query(
    `insert into activity (id, timestamp, org_id, principal_type, action, status_code, success)
     values ($1, $2, 'org_1', 'user', 'read', 200, true)`,
    [id, timestamp],
  );
}

const kept = async () =>
  (await pool.query<{ id: string }>('select id from activity order by timestamp')).rows.map(({ id }) => id);
const partitionOf = async (id: string) =>
  (await pool.query<{ name: string }>('select tableoid::regclass::text as name from activity where id = $1', [id]))
    .rows[0]?.name;
/** How many records the sums of each span know of. */
const summed = async () =>
  (
    await pool.query<{ n: number }>(
      `select coalesce(sum(requests) filter (where span = s), 0)::int as n
       from unnest(array['hour', 'day', 'month']) s left join activity_sums on scope = 'organization' and span = s
       group by s`,
    )
  ).rows.map(({ n }) => n);
const fold = () =>
  waitFor(async () => {
    await pool.query('select fold_activity(1000, 0)');
    expect((await pool.query('select 1 from activity where xid >= (select xid from activity_fold)')).rowCount).toBe(0);
  });

it('has partitions for this month and three more, and one for every other time', async () => {
  const ahead = [1, 2, 3].map((months) => `activity_${nameOf(months)}`);
  expect(await partitions('activity')).toEqual([...ahead, 'activity_default', 'activity_first'].toSorted());
  const sums = ahead.map((name) => name.replace('activity', 'activity_sums'));
  expect(await partitions('activity_sums')).toEqual(
    [...sums, 'activity_sums_default', 'activity_sums_first'].toSorted(),
  );
});

it('makes months ahead, once, and moves there what the default partition has of them', async () => {
  await write('act_soon', inMonth(5));
  await write('act_far', inMonth(40));
  await fold();
  expect(await partitionOf('act_soon')).toBe('activity_default');
  const prepare = async () => (await pool.query('select prepare_activity_months(6) as made')).rows as unknown[];
  expect([await prepare(), await prepare()]).toEqual([[{ made: 3 }], [{ made: 0 }]]);
  expect(await partitionOf('act_soon')).toBe(`activity_${nameOf(5)}`);
  expect(await partitionOf('act_far')).toBe('activity_default');
  expect(await kept()).toEqual(['act_soon', 'act_far']);
  expect(await summed()).toEqual([2, 2, 2]);
});

it('drops a month with its sums, and only when all of it has ended', async () => {
  await pool.query('delete from activity');
  await pool.query('delete from activity_sums');
  await pool.query('delete from activity_divided');
  await write('act_long_ago', inMonth(-30));
  await write('act_now', inMonth(0));
  await write('act_next', inMonth(1));
  await write('act_after', inMonth(2));
  await fold();
  expect(await summed()).toEqual([4, 4, 4]);
  const drop = async (before: Date) =>
    (await pool.query<{ name: string }>('select drop_activity_before($1) as name', [before])).rows.map(
      ({ name }) => name,
    );
  const end = addSpans('month', month, 2);
  expect(await drop(new Date(addSpans('month', month, 1).getTime() - 1))).toEqual([]);
  expect(await kept()).toHaveLength(4);
  expect(await drop(new Date(end.getTime() - 1))).toEqual(['activity_first', 'activity_sums_first']);
  expect(await kept()).toEqual(['act_next', 'act_after']);
  expect(await summed()).toEqual([2, 2, 2]);
  // a time from before goes to the default partition, and with the next month
  await write('act_late', inMonth(-1));
  await fold();
  expect([await partitionOf('act_late'), await summed()]).toEqual(['activity_default', [3, 3, 3]]);
  expect(await drop(end)).toEqual([`activity_${nameOf(1)}`, `activity_sums_${nameOf(1)}`]);
  expect(await kept()).toEqual(['act_after']);
  expect(await summed()).toEqual([1, 1, 1]);
  const divided = await pool.query<{ start: Date }>(`select start from activity_divided where span = 'month'`);
  expect(divided.rows).toEqual([{ start: end }]);
});
