import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { loadActivity, sumActivity } from '../activity-rows.ts';
import { type Account, call, register } from '../api.ts';
import { load, median, type Question, type Rounds } from '../load.ts';
import type { ServerProcess } from '../server-process.ts';

/** Activity records of the two organizations that are compared. */
const SMALL = 100_000;
const LARGE = Number(process.env.BENCH_RECORDS ?? 10_000_000);

const BATCH = 100_000;
/** Every tenth record is one of a run, and each run has two: of its start and its end. */
const RECORDS_PER_RUN = 20;

interface Tenant extends Account {
  appId: string;
}

const SERIES = `query ($org: ID!, $ws: ID!, $from: DateTime!) {
  series(orgId: $org, workspaceId: $ws, metric: REQUESTS, step: DAY, from: $from) { points { timestamp value } }
}`;

/** The eleven routes, and a series of 90 days. */
function questions({ orgId, workspaceId, appId }: Tenant): Record<string, Question> {
  const organization = `/v1/orgs/${orgId}`;
  const workspace = `${organization}/workspaces/${workspaceId}`;
  const from = new Date(Date.now() - 89 * 86_400_000);
  return {
    organization: `${organization}/analytics`,
    workspace: `${workspace}/analytics`,
    resources: `${workspace}/analytics/resources`,
    executions: `${workspace}/analytics/executions`,
    'executions by hour': `${workspace}/analytics/executions/hourly?hours=168`,
    'executions by day': `${workspace}/analytics/executions/daily?days=90`,
    app: `${workspace}/apps/${appId}/analytics`,
    namespace: `${workspace}/namespaces/default/analytics`,
    actions: `${workspace}/analytics/actions`,
    secrets: `${workspace}/analytics/secrets`,
    sources: `${workspace}/analytics/sources`,
    'series of requests by day': {
      method: 'POST',
      path: '/graphql',
      body: JSON.stringify({ query: SERIES, variables: { org: orgId, ws: workspaceId, from } }),
    },
  };
}

/** What the same numbers cost in an organization with much history, compared with one that has little. */
export async function analytics(
  product: ServerProcess,
  databaseUrl: string,
  { count, seconds, connections }: Rounds,
): Promise<void> {
  const small = await createTenant(product, databaseUrl, SMALL);
  const large = await createTenant(product, databaseUrl, LARGE);
  await settle(databaseUrl);
  console.log(`\nanalytics: with ${LARGE} activity records in one tenant, compared with ${SMALL}`);
  const ofLarge = questions(large);
  for (const [name, question] of Object.entries(questions(small))) {
    const ratios: number[] = [];
    const rates: number[] = [];
    for (let round = 0; round <= count; round++) {
      const a = await load(product, question, small.token, seconds, connections);
      const b = await load(product, ofLarge[name]!, large.token, seconds, connections);
      if (round === 0) continue;
      ratios.push(a.rps / b.rps);
      rates.push(b.rps);
    }
    console.log(
      `  ${name.padEnd(26)} costs ${median(ratios).toFixed(2)} ` +
        `(${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}) times as much, ` +
        `${median(rates).toFixed(0)} requests/s`,
    );
  }
}

async function createTenant(product: ServerProcess, databaseUrl: string, records: number): Promise<Tenant> {
  const account = await register(product);
  const url = `/v1/orgs/${account.orgId}/workspaces/${account.workspaceId}/apps`;
  const { app_id: appId } = await call<{ app_id: string }>(product, account.token, 'POST', url, { name: 'Measured' });
  const tenant = { ...account, appId };
  await seedHistory(databaseUrl, tenant, records);
  return tenant;
}

/** Gives an organization activity records of the last 80 days, and runs: some of them still run, some failed. */
async function seedHistory(databaseUrl: string, tenant: Tenant, records: number): Promise<void> {
  const { orgId, workspaceId, appId, userId } = tenant;
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const mark = randomBytes(4).toString('hex').toUpperCase();
  const values = [orgId, workspaceId, appId, userId, mark];
  try {
    await loadActivity(client, async () => {
      for (let from = 0; from < records; from += BATCH) {
        const to = Math.min(records, from + BATCH) - 1;
        await client.query(
          `insert into activity (id, timestamp, org_id, workspace_id, app_id, user_id, principal_type, principal_id,
            method, path, resource_type, resource_id, action, status_code, success, error_code, duration_ms,
            execution_id, token_usage)
          select 'act_' || $5 || lpad(to_hex(n), 18, '0'), now() - n * interval '80 days' / $8, $1, $2, $3, $4, 'user',
            $4,
            'POST', '/v1/measured', k.kind, k.kind || '_' || (n % 1000), k.action,
            case when n % 9 = 0 then 404 else 200 end,
            n % 9 <> 0, case when n % 9 = 0 then 'RESOURCE_NOT_FOUND' end, 5 + n % 200,
            case when n % 10 = 0 then 'run' || (n / 20) end,
            case when n % 10 = 0 then '{"input": 5, "output": 3, "total": 8}'::jsonb else '{}' end
          from generate_series($6::bigint, $7::bigint) n,
            lateral (select (array['secret', 'app', 'thread', 'execution'])[1 + n % 4] as kind,
              (array['read', 'list', 'create', 'update', 'execute'])[1 + n % 5] as action) k`,
          [...values, from, to, records],
        );
        await client.query(
          `insert into executions (id, org_id, workspace_id, app_id, created_by, execution_id, augmentation_id, status,
            total_stages, started_at, ended_at, created_at)
          select 'exec_' || $5 || lpad(to_hex(n), 18, '0'), $1, $2, $3, $4, 'run' || n, 'aug_measured',
            case when n % 50 = 0 then 'running' when n % 7 = 0 then 'failed' else 'completed' end, 1, t.at,
            case when n % 50 <> 0 then t.at + interval '1 minute' end, t.at
          from generate_series($6::bigint / $8, $7::bigint / $8) n,
            lateral (select now() - n * interval '80 days' * $8 / $9 as at) t
          on conflict do nothing`,
          [...values, from, to, RECORDS_PER_RUN, records],
        );
      }
    });
  } finally {
    await client.end();
  }
}

/** Sums everything, and lets the database know its tables, so that nothing of this happens while it is measured. */
async function settle(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await sumActivity(client);
    for (const table of ['executions', 'execution_sums', 'place_counts']) await client.query(`vacuum analyze ${table}`);
  } finally {
    await client.end();
  }
}
