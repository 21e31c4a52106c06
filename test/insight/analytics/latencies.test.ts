import { afterAll, beforeAll, expect, test } from 'vitest';
import { foldActivity } from '../../../src/insight/activity/activity.service.ts';
import { StorageSamples } from '../../../src/insight/analytics/storage-samples.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const SERIES = `query ($org: ID!, $ws: ID, $app: ID, $tok: ID, $usr: ID, $m: SeriesMetric!, $from: DateTime,
    $to: DateTime, $step: SeriesStep!, $tz: String!) {
  series(orgId: $org, workspaceId: $ws, appId: $app, tokenId: $tok, userId: $usr, metric: $m, from: $from, to: $to,
    step: $step, tz: $tz) { points { timestamp value } }
}`;

type Values = Readonly<Record<string, number>>;

/** The points of a series that are not 0, by their time, or what is wrong with it. */
async function seriesOf(who: Person, asked: object): Promise<Values | string> {
  const variables = { org: who.orgId, step: 'HOUR', tz: 'UTC', ...asked };
  const { data, errors } = await who.ask<{ series: { points: { timestamp: string; value: number }[] } } | null>(
    SERIES,
    variables,
  );
  if (!data) return JSON.stringify(errors);
  const some = data.series.points.filter(({ value }) => value !== 0);
  return Object.fromEntries(some.map(({ timestamp, value }) => [timestamp, value]));
}

/** Records of an app at some time, one for each duration. */
const record = async (who: Person, appId: string, time: string, durations: readonly number[]) =>
  app.database.pool.query(
    `insert into activity (id, timestamp, org_id, workspace_id, app_id, user_id, principal_type, action, status_code,
       success, duration_ms)
     select 'act_' || gen_random_uuid(), $1, $2, $3, $4, $5, 'user', 'read', 200, true, d
     from unnest($6::int[]) d`,
    [time, who.orgId, who.workspaceId, appId, who.userId, durations],
  );

/** Sums what there is: all of it once no older transaction is open, of whomever. */
const fold = ({ orgId }: Person) =>
  waitFor(async () => {
    await foldActivity(app.services.sql);
    const { rowCount } = await app.database.pool.query(
      'select 1 from activity where org_id = $1 and xid >= (select xid from activity_fold)',
      [orgId],
    );
    expect(rowCount).toBe(0);
  });

/** The value of the nearest rank. */
const exact = (durations: readonly number[], part: number) =>
  durations.toSorted((a, b) => a - b)[Math.ceil(durations.length * part) - 1]!;

// a day may end between two looks
const now = Date.now();
const day = (ago: number) => new Date(now - ago * 86_400_000).toISOString().slice(0, 10);

const METRICS = { LATENCY_P50: 0.5, LATENCY_P95: 0.95, LATENCY_P99: 0.99 };

test('percentiles are within 5 %, of each span and place, before and after the records are summed', async () => {
  const who = await register(app);
  const date = day(3);
  const [one, other] = [`${date}T10:20:00Z`, `${date}T11:59:59Z`];
  const first = Array.from({ length: 400 }, (_, at) => at + 1);
  const second = Array.from({ length: 30 }, (_, at) => Math.round(1.7 ** at));
  await record(who, 'app_1', one, first);
  await record(who, 'app_2', other, second);
  const range = { from: `${date}T00:00:00Z`, to: `${day(2)}T00:00:00Z` };
  const both = [...first, ...second];
  const expectAll = async () => {
    for (const [m, part] of Object.entries(METRICS)) {
      const near = (found: Values | string, expected: Readonly<Record<string, readonly number[]>>) => {
        expect(Object.keys(found), m).toEqual(Object.keys(expected));
        for (const [time, durations] of Object.entries(expected)) {
          const error = (found as Values)[time]! / exact(durations, part) - 1;
          expect(Math.abs(error), `${m} at ${time}`).toBeLessThan(0.05);
        }
      };
      const hour = (at: number) => `${date}T${at}:00:00.000Z`;
      for (const place of [{}, { ws: who.workspaceId }]) {
        near(await seriesOf(who, { ...place, m, ...range }), { [hour(10)]: first, [hour(11)]: second });
        near(await seriesOf(who, { ...place, m, ...range, step: 'DAY' }), { [`${date}T00:00:00.000Z`]: both });
      }
      near(await seriesOf(who, { ws: who.workspaceId, m, ...range, tz: 'Asia/Kathmandu' }), {
        [`${date}T10:15:00.000Z`]: first,
        [`${date}T11:15:00.000Z`]: second,
      });
      const months = await seriesOf(who, { ws: who.workspaceId, m, step: 'MONTH' });
      // other records are in it, if this month and that day are one
      expect(Object.keys(months)).toContain(`${date.slice(0, 7)}-01T00:00:00.000Z`);
    }
  };
  await expectAll();
  await app.services.activity.flush();
  await fold(who);
  const { rows } = await app.database.pool.query(
    `select span, sum(requests)::int as n from activity_latencies where org_id = $1 and scope = 'organization'
       and start >= $2 and start < $3 group by 1 order by 1`,
    [who.orgId, range.from, range.to],
  );
  expect(rows).toEqual(['day', 'hour', 'quarter'].map((span) => ({ span, n: 430 })));
  await expectAll();
  // once more: nothing is added twice
  await fold(who);
  await expectAll();
});

test('records of 0 ms are told as such, and others as the middle of what is in their bucket', async () => {
  const who = await register(app);
  const at = `${day(3)}T10:00:00Z`;
  await record(who, 'app_1', at, [0, 0, 0, 2_147_483_647]);
  const asked = { from: at, to: `${day(3)}T11:00:00Z` };
  expect(await seriesOf(who, { ...asked, m: 'LATENCY_P50' })).toEqual({});
  const most = ((await seriesOf(who, { ...asked, m: 'LATENCY_P99' })) as Values)[`${day(3)}T10:00:00.000Z`]!;
  expect(Math.abs(most / 2_147_483_647 - 1)).toBeLessThan(0.05);
});

test('what nothing is kept of is refused with its place', async () => {
  const who = await register(app);
  for (const asked of [
    { m: 'LATENCY_P50', usr: who.userId },
    { m: 'LATENCY_P99', tok: 'tok_1' },
    { m: 'STORAGE', usr: who.userId },
    { m: 'STORAGE', ws: who.workspaceId, app: 'app_1' },
  ])
    expect(await seriesOf(who, asked)).toContain('"metric"');
});

test('everything that is summed again is in the histograms once', async () => {
  const who = await register(app);
  await record(who, 'app_1', `${day(3)}T10:00:00Z`, [5, 5]);
  await fold(who);
  await app.database.pool.query(`update activity_fold set xid = '9000000000000', record_id = ''`);
  await fold(who);
  const { rows } = await app.database.pool.query(
    `select sum(requests)::int as n from activity_latencies where org_id = $1 and scope = 'organization'
       and span = 'day' and start = $2`,
    [who.orgId, day(3)],
  );
  expect(rows).toEqual([{ n: 2 }]);
});

test('months of runs and requests are those of the zone', async () => {
  const who = await register(app);
  const at = `${day(3)}T10:00:00Z`;
  await record(who, 'app_1', at, [5, 5, 7]);
  for (const tz of ['UTC', 'Europe/Berlin']) {
    const until = `${day(2)}T10:00:00Z`;
    const months = (await seriesOf(who, { m: 'REQUESTS', step: 'MONTH', tz, from: at, to: until })) as Values;
    expect(Object.values(months).some((value) => value >= 3)).toBe(true);
    expect(await seriesOf(who, { m: 'EXECUTIONS', step: 'MONTH', tz })).toEqual({});
  }
});

test('storage is what a place held at the end of each span, and now in the current one', async () => {
  const who = await register(app);
  const samples = new StorageSamples(app.services);
  const holds = (n: number) =>
    app.database.pool.query(
      `insert into place_counts (org_id, place_id, counter, slot, n)
       select $1, id, 'storage.bytes', 0, $3 from unnest(array[$1, $2]) id
       on conflict (org_id, place_id, counter, slot) do update set n = excluded.n`,
      [who.orgId, who.workspaceId, n],
    );
  /** As if all samples had been taken at some time. */
  const at = (from: string) =>
    app.database.pool.query('update storage_samples set at = $1 where org_id = $2 and at > $1', [from, who.orgId]);
  await holds(1_000);
  await samples.sample();
  await samples.sample();
  await at(`${day(5)}T12:00:00Z`);
  await holds(400);
  await samples.sample();
  await at(`${day(3)}T23:30:00Z`);
  await holds(70);
  const midnight = (ago: number) => `${day(ago)}T00:00:00.000Z`;
  const expected = { [midnight(5)]: 1_000, [midnight(4)]: 1_000, [midnight(3)]: 400, [midnight(2)]: 400 };
  const asked = { m: 'STORAGE', step: 'DAY', from: midnight(6), to: midnight(1) };
  for (const place of [{}, { ws: who.workspaceId }])
    expect(await seriesOf(who, { ...asked, ...place })).toEqual(expected);
  const now = Object.entries(await seriesOf(who, { m: 'STORAGE', step: 'DAY', ws: who.workspaceId })).at(-1);
  expect(now?.[1]).toBe(70);
  const { rows } = await app.database.pool.query('select 1 from storage_samples where org_id = $1', [who.orgId]);
  expect(rows).toHaveLength(4);
});

const TOP = `query ($org: ID!, $ws: ID!, $m: TopMetric!, $type: String, $from: DateTime, $to: DateTime, $first: Int!) {
  topResources(orgId: $org, workspaceId: $ws, metric: $m, resourceType: $type, from: $from, to: $to, first: $first) {
    resourceType resourceId uses resource { id ... on App { name } }
  }
}`;

test('what is used most in some days comes first, with its name, for those who read all activity', async () => {
  const who = await register(app);
  const make = async (name: string) =>
    (await who.call<{ app_id: string }>('POST', `${who.home}/apps`, { name, workspace_id: who.workspaceId })).body
      .app_id;
  const [much, little] = [await make('Much'), await make('Little')];
  await record(who, much, `${day(3)}T10:00:00Z`, [1, 2, 3]);
  await record(who, little, `${day(3)}T10:00:00Z`, [1]);
  await record(who, little, `${day(2)}T10:00:00Z`, [1, 1, 1]);
  await app.database.pool.query(
    `update activity set success = false, resource_type = 'secret', resource_id = 'sec_1' where app_id = $1
       and timestamp < $2`,
    [little, `${day(2)}T00:00:00Z`],
  );
  await fold(who);
  const range = { from: `${day(3)}T12:00:00Z`, to: `${day(2)}T00:00:00Z` };
  const ask = async (by: Person, asked: object) => {
    const variables = { org: who.orgId, ws: who.workspaceId, m: 'requests', first: 10, ...range, ...asked };
    const { data, errors } = await by.ask<{ topResources: unknown[] } | null>(TOP, variables);
    return data?.topResources ?? JSON.stringify(errors);
  };
  const of = (id: string, name: string, uses: number) => ({
    resourceType: 'app',
    resourceId: id,
    uses,
    resource: { id, name },
  });
  const secret = { resourceType: 'secret', resourceId: 'sec_1', uses: 1, resource: null };
  expect(await ask(who, {})).toEqual([of(much, 'Much', 3), of(little, 'Little', 1), secret]);
  expect(await ask(who, { m: 'errors', type: 'secret' })).toEqual([secret]);
  expect(await ask(who, { first: 1, from: range.to, to: `${day(2)}T00:00:01Z` })).toEqual([of(little, 'Little', 3)]);
  expect(await ask(who, { m: 'executions' })).toEqual([]);
  expect(await ask(who, { from: range.to, to: range.from })).toContain('"to"');
  expect(await ask(await colleague(app, who, 'viewer'), {})).toContain('FORBIDDEN');
});
