import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { loadActivity, sumActivity } from '../activity-rows.ts';
import { type Account, call, register } from '../api.ts';
import { compare, load, median, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

/** Records beside hand-written statements. */
const SMALL = 100_000;
const DAYS = 100;
/** One record in so many is of the organization that is measured, the others of as many organizations. */
const TENANTS = 20;
const BATCH = 500_000;
const MIB = 1024 * 1024;

/** A list of 50 with its total, and the summary of 24 hours of a workspace, over 100,000 records. */
export async function activity(
  servers: readonly ServerProcess[],
  account: Account,
  databaseUrl: string,
  rounds: Rounds,
): Promise<void> {
  await seedActivity(databaseUrl, account, SMALL);
  const { orgId, workspaceId, token } = account;
  const places = {
    'list of 50 activity records with its total': `/v1/orgs/${orgId}/activity`,
    'summary of a workspace': `/v1/orgs/${orgId}/workspaces/${workspaceId}/activity/summary`,
  };
  for (const [title, path] of Object.entries(places)) print(title, await compare(servers, path, token, rounds));
}

/** What the same requests cost in a database with few records, and in one with many. */
export async function activityGrowth(
  small: { product: ServerProcess; url: string },
  large: { product: ServerProcess; url: string },
  { few, many }: { few: number; many: number },
  rounds: Rounds,
): Promise<void> {
  const accounts = [await register(small.product), await register(large.product)] as const;
  await seedActivity(small.url, accounts[0], few);
  await seedActivity(large.url, accounts[1], many);
  const middles = [await middleOf(small.product, accounts[0]), await middleOf(large.product, accounts[1])] as const;
  const cases: Record<string, (account: Account, middle: string) => string> = {
    'first page, with the total': ({ orgId }) => `/v1/orgs/${orgId}/activity`,
    'middle page, with the total': (_account, middle) => middle,
    'first page of a workspace': ({ orgId, workspaceId }) => `/v1/orgs/${orgId}/workspaces/${workspaceId}/activity`,
    'summary of 24 hours': ({ orgId }) => `/v1/orgs/${orgId}/activity/summary`,
    'summary of 168 hours': ({ orgId }) => `/v1/orgs/${orgId}/activity/summary?hours=168`,
    'summary of 24 hours of a workspace': ({ orgId, workspaceId }) =>
      `/v1/orgs/${orgId}/workspaces/${workspaceId}/activity/summary`,
  };
  console.log(`\ngrowth: activity at ${few} and at ${many} records in ${TENANTS} tenants and ${DAYS} days`);
  for (const [name, pathOf] of Object.entries(cases)) {
    const ratios: number[] = [];
    for (let round = 0; round <= rounds.count; round++) {
      const a = await load(small.product, pathOf(accounts[0], middles[0]), accounts[0].token, rounds.seconds);
      const b = await load(large.product, pathOf(accounts[1], middles[1]), accounts[1].token, rounds.seconds);
      if (round > 0) ratios.push(a.rps / b.rps);
    }
    console.log(
      `  ${name}: costs ${median(ratios).toFixed(2)} ` +
        `(${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}) times as much`,
    );
  }
}

/** The second page of a list that ends in the middle of the records: a cursor deep in the list. */
async function middleOf(product: ServerProcess, { orgId, token }: Account): Promise<string> {
  const end = new Date(Date.now() - (DAYS / 2) * 86_400_000).toISOString();
  const list = `/v1/orgs/${orgId}/activity`;
  const page = await call<{ next_cursor: string }>(product, token, 'GET', `${list}?end_time=${end}`);
  return `${list}?end_time=${end}&cursor=${page.next_cursor}`;
}

/** Writes records of many tenants, over months, as if requests had made them, and adds them to the sums. */
async function seedActivity(url: string, { orgId, userId, workspaceId }: Account, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const started = performance.now();
  try {
    await loadActivity(client, async () => {
      for (let from = 1; from <= count; from += BATCH) {
        await client.query(RECORDS, [from, Math.min(from + BATCH - 1, count), count, orgId, userId, workspaceId]);
      }
    });
    const loaded = performance.now();
    await sumActivity(client);
    const summed = performance.now();
    await rested(client);
    const { rows } = await client.query<{ records: number; sums: number; rows: number }>(
      `select sum(pg_total_relation_size(inhrelid)) filter (where inhparent = 'activity'::regclass)::float8 as records,
         sum(pg_total_relation_size(inhrelid)) filter (where inhparent = 'activity_sums'::regclass)::float8 as sums,
         (select count(*)::int from activity_sums) as rows
       from pg_inherits`,
    );
    const size = rows[0]!;
    const seconds = (summed - loaded) / 1_000;
    console.log(
      `${count} records written in ${((loaded - started) / 1_000).toFixed(0)} s ` +
        `(${(size.records / MIB).toFixed(0)} MiB), summed in ${seconds.toFixed(0)} s ` +
        `(${(count / seconds).toFixed(0)} records/s, ${size.rows} sums, ${(size.sums / MIB).toFixed(0)} MiB)`,
    );
  } finally {
    await client.end();
  }
}

/** Resolves when nothing is left to do of what was written: a request must not pay for it. */
async function rested(client: pg.Client): Promise<void> {
  await client.query('checkpoint');
  const vacuums = `select from pg_stat_activity where backend_type = 'autovacuum worker'`;
  while ((await client.query(vacuums)).rowCount) await delay(500);
}

/** Seven of sixteen are reads and four are lists; one in 32 fails; a record names one of 8 users and 4 workspaces. */
const RECORDS = `insert into activity (id, timestamp, org_id, user_id, workspace_id, app_id, token_id, resource_id,
    action, resource_type, success, status_code, error_code, duration_ms, principal_type, principal_id, path, method)
  select 'act_' || lpad(i::text, 26, '0'), now() - ($3 - i) * (interval '${DAYS} days' / $3), org,
    case when h >> 8 & 7 = 0 then $5 else 'usr_' || tenant || '_' || (h >> 8 & 7) end,
    case when h >> 12 & 3 = 0 then $6 else 'ws_' || tenant || '_' || (h >> 12 & 3) end,
    case when h & 3 = 0 then 'app_' || tenant || '_' || (h >> 12 & 3) end,
    case when h >> 20 & 7 = 0 then 'tok_' || tenant end,
    case when a < 12 then 'res_' || tenant || '_' || (h >> 10 & 4095) end,
    (array['read', 'read', 'read', 'read', 'read', 'read', 'read', 'update', 'update', 'update', 'create', 'execute',
      'list', 'list', 'list', 'list'])[1 + a],
    (array['secret', 'workspace', 'app', 'tool', 'model', 'artifact', 'thread', 'agent'])[1 + (h >> 10 & 7)],
    h >> 5 & 31 <> 0, case when h >> 5 & 31 <> 0 then 200 else 403 end,
    case when h >> 5 & 31 <> 0 then null else 'FORBIDDEN' end, i % 50, 'user', 'usr_' || tenant,
    '/v1/orgs/' || org || '/resources', 'GET'
  from (select i, hashint8(i) & 2147483647 as h, hashint8(i + 33333333) & 15 as a,
      (hashint8(i + 77777777) & 2147483647) % ${TENANTS} as tenant from generate_series($1::bigint, $2::bigint) i) n
  cross join lateral (select case tenant when 0 then $4::text else 'org_' || tenant end as org) o`;
