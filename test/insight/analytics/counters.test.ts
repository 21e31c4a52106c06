import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Sql } from '../../../src/data/sql.ts';
import { addSpans, startOf } from '../../../src/insight/activity/time-spans.ts';
import {
  KeptCounts,
  RETENTION_OF_COUNTS,
  readCounts,
  resourcesOf,
} from '../../../src/insight/analytics/kept-counts.ts';
import { calendarOf, lastSpans, spansBetween } from '../../../src/insight/analytics/points.ts';
import { executionsOf, RETENTION_OF_RUNS, readRuns } from '../../../src/insight/analytics/runs.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const WRITERS = 2;
const ROUNDS = 60;

let database: TestDatabase;
/** The first of two nodes: they share nothing but the database. */
let pool: pg.Pool;
let other: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  [pool, other] = [1, 2].map(() => {
    const node = new pg.Pool({ connectionString: database.url, max: WRITERS + 1 });
    node.on('error', () => undefined);
    return node;
  }) as [pg.Pool, pg.Pool];
});
afterAll(async () => {
  await Promise.all([pool.end(), other.end()]);
  await database.drop();
});

const pick = <T>(of: readonly T[]): T => of[Math.floor(Math.random() * of.length)]!;
let number = 0;
const id = (prefix: string) => `${prefix}_${++number}`;
const ORG = 'org_1';
const workspaces = ['ws_1', 'ws_2'];
const apps = ['app_1', 'app_2', 'app_3'];
const namespaces = ['ns_1', 'ns_2'];
const augmentations = ['aug_1', 'aug_2', 'aug_3'];
/**
 * One of the places, which is another from now on: no identifier is given twice, and what is kept of one that is gone
 * may be removed while the next one is made.
 */
function leaving(places: string[], prefix: string): string {
  const at = Math.floor(Math.random() * places.length);
  return places.splice(at, 1, id(prefix))[0]!;
}
const today = startOf('day', new Date());
/** Both ends of hours and days, of what is told and what is not told any more. */
const times = [
  today,
  new Date(today.getTime() - 1),
  addSpans('hour', today, -5),
  new Date(addSpans('hour', today, -5).getTime() + 50 * 60_000),
  ...Array.from({ length: 12 }, (_, at) => new Date(Date.now() - at * 411 * 60_000)),
  ...Array.from({ length: 12 }, (_, at) => new Date(Date.now() - at * 6.9 * 86_400_000)),
  addSpans('day', today, -89),
  new Date(addSpans('day', today, -89).getTime() - 1),
  addSpans('day', today, -200),
];

type Change = [text: string, values: unknown[]];

/** What is at random, in the workspaces of its app or namespace. */
const IN_APP = `select $1, $2, a.workspace_id, a.id`;
const changes: (() => Change)[] = [
  () => [
    `insert into apps (id, org_id, workspace_id, name) values ($1, $2, $3, 'a') on conflict do nothing`,
    [pick(apps), ORG, pick(workspaces)],
  ],
  () => [
    `insert into namespaces (id, org_id, workspace_id, name, slug) values ($1, $2, $3, $1, $1) on conflict do nothing`,
    [pick(namespaces), ORG, pick(workspaces)],
  ],
  () => [
    `insert into threads (id, org_id, workspace_id, namespace_id)
      select $1, $2, n.workspace_id, n.id from namespaces n where n.id = $3`,
    [id('thr'), ORG, pick(namespaces)],
  ],
  () => [
    `insert into releases (id, org_id, workspace_id, app_id, number, version)
      ${IN_APP}, $4::int, $4::text from apps a where a.id = $3`,
    [id('rls'), ORG, pick(apps), ++number],
  ],
  () => [
    `insert into sources (id, org_id, workspace_id, namespace_id, name, source_type, status, chunk_count, size_bytes)
      select $1 || '-' || s, $2, n.workspace_id, case when $4 then n.id end, 's', $5, $6, $7, $7 * 1000
      from namespaces n, generate_series(1, 3) s where n.id = $3`,
    [id('src'), ORG, pick(namespaces), pick([true, false]), pick(['manual', 'artifact']), 'pending', pick([0, 3])],
  ],
  () => [
    `update sources set status = $2, chunk_count = $3, token_count = $3 * 7 where workspace_id = $1 and status <> $2`,
    [pick(workspaces), pick(['pending', 'ready', 'failed', 'disabled']), pick([0, 1, 5])],
  ],
  () => [
    `insert into secrets (id, org_id, workspace_id, name, secret_type, root_key_id, wrapped_key)
      values ($1, $2, $3, $1, $4, 'rk_1', '')`,
    [id('sec'), ORG, pick([...workspaces, null]), pick(['token', 'api_key', `% $1 'it'`, id('rare')])],
  ],
  // heads and an old version of each, of texts and of files
  () => [
    `with head as (insert into artifacts (id, org_id, workspace_id, namespace_id, name, artifact_type, root_artifact_id,
          version, size_bytes)
        select $1, $2, n.workspace_id, n.id, 'a', 'text', $1, 2, $4 from namespaces n where n.id = $3 returning *)
      insert into artifacts (id, org_id, workspace_id, namespace_id, name, artifact_type, root_artifact_id, is_latest,
          replaced_by_version, size_bytes)
        select $1 || '-1', org_id, workspace_id, namespace_id, 'a', 'text', id, false, 2, 7 from head`,
    [id('art'), ORG, pick(namespaces), pick([0, 5, 100])],
  ],
  () => [
    `insert into files (id, org_id, workspace_id, storage_key, file_name, reserved_bytes)
      values ($1, $2, $3, $1, 'f', $4)`,
    [id('file'), ORG, pick(workspaces), pick([null, 0, 90])],
  ],
  () => [`update files set size_bytes = $1 where id like $2`, [pick([0, 30]), `%${pick([1, 2, 3])}`]],
  () => [
    `update artifacts set size_bytes = $1, deleted_at = $2 where id like $3 and is_latest`,
    [pick([1, 50]), pick([null, new Date()]), `%${pick([1, 2, 3])}`],
  ],
  () => [
    `update artifacts set file_id = (select id from files order by id desc limit 1) where id = (select max(id)
      from artifacts where is_latest) and not exists (select 1 from artifacts where file_id is not null)`,
    [],
  ],
  // deleted, disabled, restored
  () => [
    `update secrets set status = $1 where id like $2`,
    [pick(['active', 'disabled', 'deleted']), `%${pick([1, 2, 3])}`],
  ],
  () => [
    `insert into model_entitlements (id, org_id, workspace_id, model_id, logical_model_id)
      values ($1, $2, $3, 'mdl_1', 'm') on conflict do nothing`,
    [id('ment'), ORG, pick(workspaces)],
  ],
  () => [
    `insert into augmentations (id, org_id, workspace_id, app_id, name, status) ${IN_APP}, 'a', $4 from apps a
      where a.id = $3 on conflict (id) do update set status = excluded.status`,
    [pick(augmentations), ORG, pick(apps), pick(['draft', 'active', 'archived'])],
  ],
  () => [
    `insert into endpoints (id, org_id, workspace_id, app_id, augmentation_id, name, path, enabled)
      select $1, g.org_id, g.workspace_id, g.app_id, g.id, 'e', $1, $3 from augmentations g where g.id = $2`,
    [id('ep'), pick(augmentations), pick([true, false])],
  ],
  () => [
    `insert into actions (id, org_id, workspace_id, app_id, augmentation_id, name, kind, enabled, trigger_event, cron,
        timezone)
      select $1, g.org_id, g.workspace_id, g.app_id, g.id, 'a', $3, $4, $5, $6, $7
      from augmentations g where g.id = $2`,
    [
      id('actn'),
      pick(augmentations),
      ...pick([
        ['manual', true, null, null, null],
        ['trigger', false, 'artifact.created', null, null],
        ['scheduled', true, null, '0 0 1 1 *', 'UTC'],
      ]),
    ],
  ],
  () => [
    `update actions set enabled = not enabled, kind = 'manual', trigger_event = null, cron = null, timezone = null
      where id like $1`,
    [`%${pick([1, 2, 3, 4])}`],
  ],
  () => [`update endpoints set enabled = not enabled where id like $1`, [`%${pick([1, 2, 3, 4])}`]],
  () => [
    `insert into executions (id, org_id, workspace_id, app_id, execution_id, augmentation_id, status, ended_at,
        total_stages, started_at, created_by, token_id, token_usage)
      ${IN_APP}, $1, 'aug_1', $7, case when $7 <> 'running' then now() end, 1, $4, $5, $6, $8
      from apps a where a.id = $3`,
    [
      id('exec'),
      ORG,
      pick(apps),
      pick(times),
      pick(['usr_1', null]),
      pick(['tok_1', 'tok_2', null]),
      pick(['running', 'running', 'completed', 'failed']),
      pick([{}, { total: 3 }, { total: 40 }]),
    ],
  ],
  () => [
    `update executions set token_usage = $1 where coalesce((token_usage ->> 'total')::int, 0) < 50 and id like $2`,
    [{ total: 50 + number }, `%${pick([1, 2, 3, 4])}`],
  ],
  // closed, and then reported again
  () => [`update executions set status = 'running', ended_at = null where status = 'failed' and id like $1`, ['%3']],
  () => [
    `update executions set status = $1, ended_at = now() where status = 'running' and id like $2`,
    [pick(['completed', 'failed']), `%${pick([1, 2, 3, 4])}`],
  ],
  () => [
    `delete from ${pick(['threads', 'releases', 'sources', 'secrets', 'executions', 'actions', 'endpoints'])}
      where id like $1`,
    ['%7'],
  ],
  () => [`delete from ${pick(['artifacts', 'files'])} where id like $1`, ['%7']],
  () => [`delete from augmentations where id = $1`, [pick(augmentations)]],
  () => [pick(RETENTION_OF_COUNTS), []],
  () => [`delete from model_entitlements where workspace_id = $1`, [pick(workspaces)]],
  // with all that is in them
  () => [`delete from apps where id = $1`, [leaving(apps, 'app')]],
  () => [`delete from namespaces where id = $1`, [leaving(namespaces, 'ns')]],
  () => [`update workspaces set deleted_at = $2 where id = $1`, [pick(workspaces), pick([null, new Date()])]],
];

/** How often a change ran, and a transaction was given up by the database: the next one is another. */
const seen = { changed: 0, refused: 0 };

async function write(node: pg.Pool): Promise<void> {
  const client = await node.connect();
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await client.query('begin');
      try {
        for (let i = 0; i < 1 + Math.random() * 3; i++) {
          const [text, values] = pick(changes)();
          seen.changed += (await client.query(text, values)).rowCount ?? 0;
        }
        await client.query(Math.random() < 0.2 ? 'rollback' : 'commit');
      } catch (error) {
        // a deadlock, a parent that another node has just deleted, a child that it has just made, or an augmentation
        // that it is making: `on conflict (id)` does not cover the unique key of id and app
        const { code = '', constraint } = error as { code?: string; constraint?: string };
        const isExpected = ['40P01', '23503', '23001'].includes(code) || constraint === 'augmentations_id_app_id_key';
        if (!isExpected) throw error;
        seen.refused++;
        await client.query('rollback');
      }
    }
  } finally {
    client.release();
  }
}

type Row = Record<string, string | number | boolean | null>;

async function rowsOf(text: string, values: unknown[] = []): Promise<Row[]> {
  return (await pool.query<Row>(text, values)).rows;
}

/** Counts, without zeros, by place and counter. */
async function kept(): Promise<Record<string, number>> {
  const rows = await rowsOf(
    `select place_id || ' ' || counter as at, sum(n)::float8 as n from place_counts group by 1 having sum(n) <> 0`,
  );
  return Object.fromEntries(rows.map(({ at, n }) => [at, n])) as Record<string, number>;
}

async function counted(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const add = (places: readonly (Row[string] | undefined)[], counter: string, n = 1) => {
    for (const place of places) {
      if (place === null || place === undefined || n === 0) continue;
      const at = `${place} ${counter}`;
      counts[at] = (counts[at] ?? 0) + n;
    }
  };
  for (const { workspace_id } of await rowsOf('select * from apps')) add([workspace_id], 'apps');
  for (const { workspace_id } of await rowsOf('select * from namespaces')) add([workspace_id], 'namespaces');
  for (const { workspace_id } of await rowsOf('select * from model_entitlements')) add([workspace_id], 'models');
  for (const { workspace_id, namespace_id } of await rowsOf('select * from threads'))
    add([workspace_id, namespace_id], 'threads');
  for (const { workspace_id, app_id } of await rowsOf('select * from releases'))
    add([workspace_id, app_id], 'releases');
  for (const row of await rowsOf('select *, size_bytes::float8 as bytes from sources')) {
    const places = [row.workspace_id, row.namespace_id];
    for (const counter of [
      'sources',
      `sources.status ${String(row.status)}`,
      `sources.type ${String(row.source_type)}`,
    ])
      add(places, counter);
    if (row.namespace_id === null) add(places, 'sources.of_workspace');
    add(places, 'sources.chunks', row.chunk_count as number);
    add(places, 'sources.tokens', row.token_count as number);
    add(places, 'sources.bytes', row.bytes as number);
  }
  for (const row of await rowsOf('select *, size_bytes::float8 as bytes from artifacts')) {
    if (row.is_latest && row.deleted_at === null) add([row.workspace_id], 'artifacts');
    if (row.file_id === null) add([row.workspace_id, row.org_id], 'storage.bytes', row.bytes as number);
  }
  for (const row of await rowsOf('select *, coalesce(size_bytes, reserved_bytes, 0)::float8 as bytes from files'))
    add([row.workspace_id, row.org_id], 'storage.bytes', row.bytes as number);
  for (const { org_id, workspace_id, status, secret_type } of await rowsOf('select * from secrets')) {
    const places = [workspace_id ?? org_id];
    if (status === 'deleted') continue;
    add(places, 'secrets');
    add(places, `secrets.type ${String(secret_type)}`);
    if (status === 'active') add(places, 'secrets.active');
  }
  for (const { workspace_id, app_id, status } of await rowsOf('select * from augmentations')) {
    add([workspace_id, app_id], 'augmentations');
    if (status === 'active') add([workspace_id, app_id], 'augmentations.active');
  }
  for (const { workspace_id, app_id, enabled } of await rowsOf('select * from endpoints')) {
    add([workspace_id, app_id], 'endpoints');
    if (enabled) add([workspace_id, app_id], 'endpoints.enabled');
  }
  for (const { workspace_id, app_id, enabled, kind } of await rowsOf('select * from actions')) {
    add([workspace_id, app_id], 'actions');
    add([workspace_id, app_id], `actions.${String(kind)}`);
    if (enabled) add([workspace_id, app_id], 'actions.enabled');
  }
  for (const { workspace_id, app_id, status } of await rowsOf('select * from executions')) {
    add([workspace_id, app_id], 'executions');
    add([workspace_id, app_id], `executions.${status === 'completed' ? 'success' : String(status)}`);
  }
  return counts;
}

/** Everything that ever ran, whatever became of it: the runs themselves are deleted with their apps. */
const LOG_OF_RUNS = `create table runs (like executions including indexes);
  create function log_run() returns trigger language plpgsql as $$ begin
    delete from runs where id = new.id;
    insert into runs select new.*;
    return null;
  end $$;
  create trigger logged after insert or update on executions for each row execute function log_run();`;

const SUMMED = `select scope_id || ' ' || span || ' ' || to_char(start, 'YYYY-MM-DD HH24:MI TZ') as at,
    concat_ws(' ', sum(n), sum(success), sum(failed), sum(tokens)) as n from execution_sums group by 1`;
const NAIVE_SUMS = `select p.id || ' ' || k.span || ' ' ||
    to_char(case k.span when 'quarter' then to_timestamp(900 * floor(extract(epoch from e.started_at) / 900))
      else date_trunc(k.span, e.started_at, 'UTC') end, 'YYYY-MM-DD HH24:MI TZ') as at,
    concat_ws(' ', count(*), count(*) filter (where status = 'completed'),
      count(*) filter (where status = 'failed'), sum(coalesce((token_usage ->> 'total')::int, 0))) as n
  from runs e, lateral (values (org_id), (workspace_id), (app_id), (token_id), (created_by)) p(id),
    (values ('quarter'), ('hour'), ('day')) k(span) where p.id is not null group by 1`;

const byPlace = (rows: readonly Row[]) => Object.fromEntries(rows.map(({ at, n }) => [at, n]));

const inOrg = (placeId: string) => ({ orgId: ORG, id: placeId });
const numbersOf = (counts: KeptCounts, like: Row) =>
  Object.fromEntries(Object.keys(like).map((name) => [name, counts.of(name)]));

/** Series in time zones are what PostgreSQL says when each run began there. */
async function expectSeries(sql: Sql, scopeId: string): Promise<void> {
  for (const zone of ['Europe/Berlin', 'Asia/Kathmandu', 'Asia/Kolkata', 'Pacific/Auckland', 'America/St_Johns'])
    for (const step of ['hour', 'day'] as const) {
      const calendar = calendarOf(zone);
      const end = calendar.next(step, calendar.startOf(step, new Date()));
      const borders = lastSpans(calendar, step, step === 'day' ? 90 : 168, end);
      const found = await readRuns(sql, { orgId: ORG, scopeId }, 'tokens', { calendar, step, borders });
      const naive = await rowsOf(
        `select date_trunc($2, started_at, $3) as start, sum(coalesce((token_usage ->> 'total')::int, 0))::int as tokens
        from runs where $1 in (org_id, workspace_id) and started_at >= $4 and started_at < $5 group by 1`,
        [scopeId, step, zone, borders[0], end],
      );
      const expected = naive.map(({ start, tokens }) => [new Date(String(start)).getTime(), tokens] as const);
      expect(found, `${zone} ${step}`).toEqual(new Map(expected));
    }
}

/** What analytics tell of the organization and its workspaces is what there is, and what ran in the last 90 days. */
async function expectAnalytics(): Promise<void> {
  const sql = new Sql(other);
  const [ofOrganization] = await readCounts(sql, 'organization', [{ orgId: ORG, id: ORG }]);
  const ofWorkspaces = await readCounts(sql, 'workspace', workspaces.map(inOrg));
  const ofActions = await readCounts(sql, 'actions of workspace', workspaces.map(inOrg));
  for (const [at, workspaceId] of [null, ...workspaces].entries()) {
    const told = workspaceId ? ofWorkspaces[at - 1]! : ofOrganization!;
    if (workspaceId) {
      const [actions] = await rowsOf(
        `select count(*)::int as actions, count(*) filter (where enabled)::int as "actions.enabled",
          count(*) filter (where kind = 'trigger')::int as "actions.trigger",
          count(*) filter (where kind = 'scheduled')::int as "actions.scheduled"
        from actions where workspace_id = $1`,
        [workspaceId],
      );
      expect(numbersOf(ofActions[at - 1]!, actions!)).toEqual(actions);
    }
    const there = `org_id = '${ORG}' and workspace_id in (select id from workspaces where
      ${workspaceId ? `id = '${workspaceId}'` : 'deleted_at is null'})`;
    const naive: Record<string, unknown> = {};
    for (const name of ['sources', 'augmentations', 'endpoints', 'namespaces', 'apps', 'threads', 'actions'])
      naive[name] = `select count(*) from ${name} where ${there}`;
    naive.secrets = `select count(*) from secrets where status <> 'deleted'
      and (${there}${workspaceId ? '' : ' or workspace_id is null'})`;
    naive.artifacts = `select count(*) from artifacts where is_latest and deleted_at is null and ${there}`;
    naive.models = workspaceId
      ? `select count(*) from model_entitlements where ${there}`
      : 'select count(*) from logical_models';
    const columns = Object.entries(naive).map(([name, text]) => `(${String(text)})::int as ${name}`);
    const [resources] = await rowsOf(`select ${columns.join(', ')}`);
    expect(resourcesOf(told)).toEqual(resources);
    const scope = workspaceId ?? ORG;
    const [runs] = await rowsOf(
      `select count(*)::int as total, count(*) filter (where status = 'completed')::int as success,
        count(*) filter (where status = 'failed')::int as failed
      from runs where $1 in (org_id, workspace_id) and started_at >= $2`,
      [scope, addSpans('day', startOf('day', new Date()), -89)],
    );
    expect(executionsOf(told)).toMatchObject(runs!);
    await expectSeries(sql, scope);
    const [{ tokens } = {}] = await rowsOf(
      `select coalesce(sum((token_usage ->> 'total')::int), 0)::int as tokens
      from runs where $1 in (org_id, workspace_id) and started_at >= $2`,
      [scope, addSpans('day', startOf('day', new Date()), -89)],
    );
    const range = { since: addSpans('day', today, -300), until: addSpans('day', today, 1) };
    for (const step of ['hour', 'day'] as const) {
      const calendar = calendarOf('UTC');
      const borders = spansBetween(calendar, step, range, 10_000)!;
      const spans = { calendar, step, borders };
      const sumOf = async (metric: 'executions' | 'tokens') => {
        const points = await readRuns(sql, { orgId: ORG, scopeId: scope }, metric, spans);
        return [...points.values()].reduce((sum, n) => sum + n, 0);
      };
      expect([await sumOf('executions'), await sumOf('tokens')]).toEqual([runs!.total, tokens]);
    }
  }
  const there = await rowsOf('select id, workspace_id from apps order by id');
  const places = there.map(({ id, workspace_id }) => ({ ...inOrg(String(id)), workspaceId: String(workspace_id) }));
  const ofApps = await readCounts(sql, 'app', places);
  for (const [at, { id, workspaceId }] of places.entries()) {
    const counts = ['augmentations', 'endpoints', 'releases'].map(
      (name) => `(select count(*)::int from ${name} where app_id = $1) as ${name}`,
    );
    const [parts] = await rowsOf(
      `select ${counts.join(', ')}, (select count(*)::int from namespaces where workspace_id = $2) as namespaces`,
      [id, workspaceId],
    );
    expect(numbersOf(ofApps[at]!, parts!)).toEqual(parts);
  }
  const spaces = (await rowsOf('select id from namespaces')).map((row) => String(row.id));
  const ofNamespaces = await readCounts(sql, 'namespace', spaces.map(inOrg));
  for (const [at, namespaceId] of spaces.entries()) {
    const [parts] = await rowsOf(
      `select (select count(*)::int from threads where namespace_id = $1) as threads,
        (select count(*)::int from sources where namespace_id = $1) as sources`,
      [namespaceId],
    );
    expect(numbersOf(ofNamespaces[at]!, parts!)).toEqual(parts);
  }
}

test('every counter is what a naive count says, whoever wrote, rolled back, deleted and restored', async () => {
  await pool.query(LOG_OF_RUNS);
  await pool.query(`insert into root_keys (id, canary) values ('rk_1', '')`);
  await pool.query(`insert into organizations (id, name) values ($1, 'o')`, [ORG]);
  for (const workspaceId of workspaces)
    await pool.query(`insert into workspaces (id, org_id, name, storage_bucket) values ($1, $2, 'w', $1)`, [
      workspaceId,
      ORG,
    ]);
  await pool.query(`insert into logical_models (id, org_id, logical_model_id, name) values ('mdl_1', $1, 'm', 'm')`, [
    ORG,
  ]);
  for (let part = 0; part < 4; part++) {
    await Promise.all([pool, other].flatMap((node) => Array.from({ length: WRITERS }, () => write(node))));
    const naive = await counted();
    expect(Object.keys(naive).length).toBeGreaterThan(5);
    expect(await kept()).toEqual(naive);
    expect(byPlace(await rowsOf(SUMMED))).toEqual(byPlace(await rowsOf(NAIVE_SUMS)));
    await expectAnalytics();
  }
  expect(seen.changed).toBeGreaterThan(WRITERS * ROUNDS);
  const before = byPlace(await rowsOf(SUMMED));
  await pool.query('delete from organizations');
  // these outlive it until their bytes are gone
  await pool.query('delete from files');
  expect(await kept()).toEqual({});
  expect(byPlace(await rowsOf(SUMMED))).toEqual(before);
});

test('what happened is told for 90 days, and then removed', async () => {
  for (const days of [-91, -89])
    await pool.query(
      `insert into execution_sums (org_id, scope_id, span, start, slot, n)
       values ('org_told', 'org_told', 'day', $1, 0, 1)`,
      [addSpans('day', today, days)],
    );
  await pool.query(RETENTION_OF_RUNS);
  const left = await rowsOf('select distinct start from execution_sums where start < $1', [
    addSpans('day', today, -91),
  ]);
  expect(left).toEqual([]);
  const kept = await rowsOf(`select 1 from execution_sums where span = 'day' and start = $1 limit 1`, [
    addSpans('day', today, -89),
  ]);
  expect(kept).toHaveLength(1);
});

test('a counter by a text goes with its last row; others, and one that another transaction fills, stay', async () => {
  await pool.query('delete from place_counts');
  await pool.query(`insert into organizations (id, name) values ('org_2', 'o')`);
  await pool.query(`insert into place_counts (org_id, place_id, counter, slot, n) values
    ('org_2', 'org_2', 'secrets', 1, 0), ('org_2', 'org_2', 'secrets.type gone', 1, 2),
    ('org_2', 'org_2', 'secrets.type gone', 2, -2), ('org_2', 'org_2', 'secrets.type filled', 1, 3),
    ('org_2', 'org_2', 'secrets.type filled', 2, -3), ('org_2', 'org_2', 'secrets.type there', 1, 1),
    ('org_9', 'ws_none', 'secrets', 1, 4)`);
  const client = await other.connect();
  try {
    await client.query('begin');
    await client.query(`update place_counts set n = n + 1 where counter = 'secrets.type filled' and slot = 2`);
    // waits for nobody
    for (const text of RETENTION_OF_COUNTS) await pool.query(text);
    await client.query('commit');
  } finally {
    client.release();
  }
  const rows = await rowsOf(`select counter || ' ' || slot || ' ' || n as at from place_counts order by 1`);
  expect(rows.map(({ at }) => at)).toEqual([
    'secrets 1 0',
    'secrets.type filled 1 3',
    'secrets.type filled 2 -2',
    'secrets.type there 1 1',
  ]);
  await pool.query('delete from organizations');
  // these outlive it until their bytes are gone
  await pool.query('delete from files');
  await pool.query('delete from place_counts');
});

test('rows from before the counters are counted', async () => {
  await pool.query(`insert into organizations (id, name) values ($1, 'o')`, [ORG]);
  await pool.query(`insert into workspaces (id, org_id, name, storage_bucket) values ('ws_9', $1, 'w', 'w')`, [ORG]);
  await pool.query(`insert into apps (id, org_id, workspace_id, name) values ('app_9', $1, 'ws_9', 'a')`, [ORG]);
  const before = await kept();
  expect(before).toEqual({ 'ws_9 apps': 1 });
  const client = await pool.connect();
  try {
    // as the migration does it
    for (const name of ['insert', 'delete', 'update'])
      await client.query(`drop function apps_summed_${name}() cascade`);
    await client.query('delete from place_counts');
    await client.query(`call keep_place_sums('apps', '(r.workspace_id)', $$('apps', 1)$$)`);
  } finally {
    client.release();
  }
  expect(await kept()).toEqual(before);
  await pool.query(`delete from apps`);
  expect(await kept()).toEqual({});
});

test('counters of one name are told from those that begin like it', () => {
  const counts = new KeptCounts([
    { counter: 'sources', n: 3 },
    { counter: 'sources.type b c', n: 1 },
    { counter: 'sources.type a', n: 2 },
    { counter: 'sources.type gone', n: 0 },
    { counter: 'sources.types', n: 9 },
  ]);
  expect(counts.of('sources')).toBe(3);
  expect(counts.of('secrets')).toBe(0);
  expect(counts.by('sources.type')).toEqual({ a: 2, 'b c': 1 });
});

test('runs from before quarters and tokens were summed have both, also if they went with their app', async () => {
  await pool.query('delete from organizations');
  await pool.query('delete from execution_sums');
  await pool.query(`insert into organizations (id, name) values ('org_3', 'o')`);
  await pool.query(`insert into workspaces (id, org_id, name, storage_bucket) values ('ws_8', 'org_3', 'w', 'ws_8')`);
  await pool.query(`insert into apps (id, org_id, workspace_id, name) select id, 'org_3', 'ws_8', 'a'
    from unnest(array['app_gone', 'app_kept']) id`);
  const hour = addSpans('hour', today, -30);
  const at = (minutes: number) => new Date(hour.getTime() + minutes * 60_000);
  for (const [run, app, minutes, tokens] of [
    ['exec_1', 'app_gone', 40, 5],
    ['exec_2', 'app_kept', 50, 7],
  ] as const) {
    await pool.query(
      `insert into executions (id, org_id, workspace_id, app_id, execution_id, augmentation_id, status, ended_at,
        total_stages, started_at, token_usage)
      values ($1, 'org_3', 'ws_8', $2, $1, 'a', 'completed', now(), 1, $3, $4)`,
      [run, app, at(minutes), { total: tokens }],
    );
    await pool.query(
      `insert into activity (id, "timestamp", org_id, workspace_id, app_id, principal_type, resource_type, action,
        status_code, success, execution_id, token_usage)
      values ('act_' || $1, $3, 'org_3', 'ws_8', $2, 'user', 'execution', 'execute', 200, true, $1, $4)`,
      [run, app, at(minutes), { total: tokens }],
    );
  }
  await pool.query(`delete from apps where id = 'app_gone'`);
  // as it was before
  await pool.query(`delete from execution_sums where span = 'quarter'`);
  await pool.query('update execution_sums set tokens = 0');
  const url = new URL('../../../prisma/migrations/20261124101737_runs_in_time_zones/migration.sql', import.meta.url);
  await pool.query(readFileSync(url, 'utf8').split('-- What is there already')[1]!.replace(/^.*$/m, ''));
  const rows = await rowsOf(
    `select span, to_char(start, 'MI') as minute, sum(n)::int as n, sum(success)::int as success,
      sum(tokens)::int as tokens
    from execution_sums where scope_id = 'ws_8' and span <> 'day' group by 1, 2 order by 1, 2`,
  );
  expect(rows).toEqual([
    { span: 'hour', minute: '00', n: 2, success: 2, tokens: 12 },
    // the run that is gone is known by its hour only, its tokens by its record
    { span: 'quarter', minute: '00', n: 1, success: 1, tokens: 0 },
    { span: 'quarter', minute: '30', n: 0, success: 0, tokens: 5 },
    { span: 'quarter', minute: '45', n: 1, success: 1, tokens: 7 },
  ]);
});
