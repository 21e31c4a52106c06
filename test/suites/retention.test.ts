import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedAnswers } from '../../src/http/idempotency.ts';
import type { Owner } from '../../src/kernel/owner.ts';
import { Retention, type Turn } from '../../src/wiring/retention.ts';
import { retentionOrder } from '../../src/wiring/retention-order.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { keptLog } from '../support/log-lines.ts';
import { agingRows, isKept, makeAged } from '../support/past-retention.ts';
import { register } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { createWorld, type World } from '../support/world.ts';

const { logger, lines } = keptLog();
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ logger, ownDatabase: true });
});
afterAll(() => app.close());

const STEPS = ['endElsewhere', 'removeFiles', 'removeParts', 'retention'] as const;
const named = (): Record<string, object & Owner> => ({ ...app.services, storedAnswers });
const query = async (text: string, values: unknown[] = []) => (await app.database.pool.query(text, values)).rows;

/** Statements whose rows the clock does not age: the tests of this file, or of others, see to them. */
const ofNoAge = {
  'select drop_activity_before': 'months: see below',
  'delete from resource_counts': 'counters of organizations that are gone: see below',
  'delete from place_counts c where': 'counts of places that are gone: see below',
  'delete from storage_samples s where not': 'samples of places that are gone: see below',
  'with zeros as': 'counts by a text of which nothing is left: see below',
};

describe('the order of retention', () => {
  it('lists every owner that declares a step', () => {
    const owners = Object.entries(named()).filter(([, owner]) => STEPS.some((step) => step in owner));
    expect(owners.length).toBeGreaterThan(15);
    expect(retentionOrder.map(({ owner }) => owner).toSorted()).toEqual(owners.map(([name]) => name).toSorted());
  });

  it.each<[string, Turn[], string]>([
    ['an owner is missing', [{ owner: 'a' }], "'b' is missing"],
    ['an owner is listed twice', [{ owner: 'a' }, { owner: 'b' }, { owner: 'a' }], "'a' is listed twice"],
    ['it names what declares none', [{ owner: 'a' }, { owner: 'b' }, { owner: 'c' }], "'c' declares no retention"],
    ['an owner comes before one that it needs', [{ owner: 'a', needs: ['b'] }, { owner: 'b' }], "'a' comes before"],
  ])('is refused at the start when %s', (_, order, mistake) => {
    const owners = { a: { retention: [] }, b: { removeFiles: async () => 0 }, c: { tasks: [] } };
    expect(() => new Retention({ sql: app.services.sql, owners, order, onFault: () => undefined })).toThrow(mistake);
  });
});

describe('a run', () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld(app);
  });
  const rules = () => app.owners.flatMap(({ retention }) => retention ?? []);

  it('removes or empties what is past its time, by each statement of each owner, and nothing younger', async () => {
    const made = [];
    for (const row of agingRows)
      made.push({ row, past: await makeAged(app, world, row, true), young: await makeAged(app, world, row, false) });
    await app.retention.run();
    for (const { row, past, young } of made) {
      const what = `${row.table} after ${row.age}, by ${row.rule}`;
      expect([what, await isKept(app, row, past), await isKept(app, row, young)]).toEqual([what, false, true]);
    }
    const statements = rules().filter((rule) => !Object.keys(ofNoAge).some((text) => rule.startsWith(text)));
    const untested = statements.filter((rule) => !agingRows.some((row) => row.rule.test(rule)));
    expect(untested).toEqual([]);
    for (const { rule } of agingRows)
      expect([rule, rules().filter((text) => rule.test(text)).length]).toEqual([rule, 1]);
  });

  it('keeps what a deleted workspace held for 30 days: its folder, its knowledge graph and its usage', async () => {
    const ann = await register(app);
    const { workspaceId } = ann;
    const folder = path.join(app.dataDir, 'files', workspaceId.toLowerCase());
    await waitFor(() => expect(existsSync(folder)).toBe(true));
    const { body } = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'App' });
    const entity = { name: 'Lark', entity_type: 'bird' };
    const url = `${ann.home}/apps/${body.app_id}/namespaces/default/entities`;
    expect(await ann.call('POST', url, entity)).toMatchObject({ status: 201 });
    // more than one statement removes
    await query(
      `insert into model_usage_sums (workspace_id, start, logical_model_id, provider_account_id, model_name, requests,
         errors, input_tokens, output_tokens, cost)
       select $1, date_trunc('hour', now()), 'm', '', n::text, 1, 0, 1, 1, 0 from generate_series(1, 10001) n`,
      [workspaceId],
    );
    const held = async () => [
      existsSync(folder),
      (await query('select 1 from entities where workspace_id = $1', [workspaceId])).length,
      (await query('select 1 from model_usage_sums where workspace_id = $1', [workspaceId])).length,
    ];
    const deleted = (age: string) =>
      query('update workspaces set deleted_at = now() - $2::interval where id = $1', [workspaceId, age]);
    await deleted('29 days 23 hours 59 minutes');
    await app.retention.run();
    expect(await held()).toEqual([true, 1, 10_001]);
    await deleted('30 days 1 minute');
    await app.retention.run();
    expect(await held()).toEqual([false, 0, 0]);
    // the row goes half a day later, with nothing left to take along
    expect(await query('select 1 from workspaces where id = $1', [workspaceId])).toHaveLength(1);
  });

  it('keeps what ended meanwhile until its folder is removed by the next run', async () => {
    const { workspaceId } = await register(app);
    const folder = path.join(app.dataDir, 'files', workspaceId.toLowerCase());
    await waitFor(() => expect(existsSync(folder)).toBe(true));
    const { buckets, workspaces, sql } = app.services;
    const time = {
      removeParts: () =>
        query(`update workspaces set deleted_at = now() - interval '30 days 1 minute' where id = $1`, [workspaceId]),
    };
    const order = [{ owner: 'buckets' }, { owner: 'time' }, { owner: 'workspaces' }];
    const late = new Retention({ sql, owners: { buckets, time, workspaces }, order, onFault: () => undefined });
    await late.run();
    expect(existsSync(folder)).toBe(true);
    expect(await query('select 1 from workspaces where id = $1', [workspaceId])).toHaveLength(1);
    await app.retention.run();
    expect(existsSync(folder)).toBe(false);
  });

  it('removes counts of what is gone, or of which nothing is left', async () => {
    const { orgId, workspaceId } = await register(app);
    const gone = `gone_${randomBytes(6).toString('hex')}`;
    await query(`insert into resource_counts (org_id, resource, slot, n) values ($1, 'workspace', 0, 1)`, [gone]);
    await query(
      `insert into place_counts (org_id, place_id, counter, slot, n) values
       ($1, $3, 'threads', 0, 1), ($1, $2, 'tools of old', 0, 0), ($1, $2, 'tools of new', 0, 1)`,
      [orgId, workspaceId, gone],
    );
    await query(
      'insert into storage_samples (org_id, place_id, at, bytes) select $1, id, now(), 1 from unnest(array[$2, $3]) id',
      [orgId, workspaceId, gone],
    );
    await app.retention.run();
    expect(await query('select place_id from storage_samples where org_id = $1', [orgId])).toEqual([
      { place_id: workspaceId },
    ]);
    expect(await query('select 1 from resource_counts where org_id = $1', [gone])).toEqual([]);
    expect(await query('select 1 from place_counts where place_id = $1', [gone])).toEqual([]);
    const left = `select counter from place_counts where place_id = $1 and counter like 'tools of %'`;
    expect(await query(left, [workspaceId])).toEqual([{ counter: 'tools of new' }]);
    expect(await query('select 1 from resource_counts where org_id = $1', [orgId])).not.toEqual([]);
  });

  it('drops the months of the audit trail that ended 90 days ago', async () => {
    const bounds = `select (regexp_match(pg_get_expr(relpartbound, oid), 'TO \\((.*)\\)'))[1] as until
      from pg_class where relname = 'activity_first'`;
    const until = String((await query(bounds))[0]?.until);
    const [begin] = await query(`select (now() - interval '91 days')::date::text || ' 00:00+00' as day`);
    const start = `'${String(begin?.day)}'`;
    await query(`alter table activity detach partition activity_first;
      create table activity_old partition of activity for values from (minvalue) to (${start});
      alter table activity attach partition activity_first for values from (${start}) to (${until})`);
    await app.retention.run();
    expect(await query(`select 1 from pg_class where relname = 'activity_old'`)).toEqual([]);
    expect(await query(`select 1 from pg_class where relname = 'activity_first'`)).toHaveLength(1);
    await query(`alter table activity detach partition activity_first;
      alter table activity attach partition activity_first for values from (minvalue) to (${until})`);
  });
});

/** Owners with every step, each with a row that its statement removes; they write down what they do. */
async function probes(names: readonly string[], failing: Partial<Record<string, (typeof STEPS)[number]>> = {}) {
  const did: string[] = [];
  const keys = new Map(names.map((name) => [name, `${name}-${randomBytes(6).toString('hex')}`]));
  const left = async () => {
    const rows = await query('select key from login_failures where key = any($1)', [[...keys.values()]]);
    return names.filter((name) => rows.some(({ key }) => key === keys.get(name)));
  };
  const owners = names.map((name): [string, Owner] => {
    const step = (what: (typeof STEPS)[number]) => async () => {
      did.push(`${name}.${what}`);
      if (failing[name] === what) throw new Error(`no ${what}`);
    };
    return [
      name,
      {
        endElsewhere: step('endElsewhere'),
        removeFiles: step('removeFiles'),
        removeParts: step('removeParts'),
        retention: [
          ...(failing[name] === 'retention' ? ['delete from a_table_that_is_not'] : []),
          `delete from login_failures where key = '${keys.get(name)}'`,
        ],
      },
    ];
  });
  for (const key of keys.values()) await query('insert into login_failures (key) values ($1)', [key]);
  return { owners: Object.fromEntries(owners) as Record<string, object & Owner>, did, left };
}

describe('owners', () => {
  const retentionOf = (owners: Record<string, object & Owner>, order: readonly Turn[]) => {
    const reports: string[] = [];
    const onFault = (error: unknown, what: string) => reports.push(`${what}: ${(error as Error).message}`);
    return { retention: new Retention({ sql: app.services.sql, owners, order, onFault }), reports };
  };

  it('have their turns in the order of the list, not in that of the services', async () => {
    const { owners, did, left } = await probes(['a', 'b', 'c']);
    const { retention, reports } = retentionOf(owners, [{ owner: 'b' }, { owner: 'c' }, { owner: 'a' }]);
    expect(await retention.run()).toBe(3);
    const methods = STEPS.slice(0, -1);
    expect(did).toEqual(['b', 'c', 'a'].flatMap((name) => methods.map((step) => `${name}.${step}`)));
    expect([await left(), reports]).toEqual([[], []]);
  });

  it.each(['endElsewhere', 'removeFiles', 'removeParts'] as const)(
    'keep their rows when their %s fails, with the rows of those that need them, and stop nobody else',
    async (step) => {
      const { owners, did, left } = await probes(['a', 'b', 'c', 'd', 'e'], { b: step });
      const order = [
        { owner: 'a' },
        { owner: 'b' },
        { owner: 'c', needs: ['a', 'b'] },
        { owner: 'd', needs: ['c'] },
        { owner: 'e', needs: ['a'] },
      ];
      const { retention, reports } = retentionOf(owners, order);
      await expect(retention.run()).rejects.toMatchObject({
        name: 'AggregateError',
        message: 'retention of b failed; c, d waited',
        errors: [new Error(`no ${step}`)],
      });
      expect(await left()).toEqual(['b', 'c', 'd']);
      expect(did.filter((what) => /^[bcd]/.test(what)).at(-1)).toBe(`b.${step}`);
      expect(reports).toEqual([`retention of 'b' failed: no ${step}`]);
    },
  );

  it('whose statement fails still have their other statements run, and those that need them wait', async () => {
    const { owners, left } = await probes(['a', 'b', 'c'], { a: 'retention', c: 'removeFiles' });
    const { retention, reports } = retentionOf(owners, [{ owner: 'a' }, { owner: 'b', needs: ['a'] }, { owner: 'c' }]);
    await expect(retention.run()).rejects.toThrow('retention of a, c failed; b waited');
    expect(await left()).toEqual(['b', 'c']);
    expect(reports).toEqual([
      expect.stringMatching(/^retention of 'a' failed: .*a_table_that_is_not/),
      "retention of 'c' failed: no removeFiles",
    ]);
  });
});

it('is seen to fail under the name of its owner, stops no other owner, and is tried again', async () => {
  const { pool } = app.database;
  const stuck = await register(app);
  const folder = path.join(app.dataDir, 'files', stuck.workspaceId.toLowerCase());
  await waitFor(() => expect(existsSync(folder)).toBe(true));
  const bucket = `select storage_bucket as bucket, id from workspaces where id = $1`;
  const [workspace] = await query(bucket, [stuck.workspaceId]);
  // no folder of a store is called so: it cannot be removed
  await query(`update workspaces set storage_bucket = '../elsewhere', deleted_at = now() - interval '31 days'
    where id = '${stuck.workspaceId}'`);
  const key = `old-${randomBytes(6).toString('hex')}`;
  await query(`insert into login_failures (key, window_start) values ($1, now() - interval '2 days')`, [key]);
  await query(`update jobs._private_known_crontabs set last_execution = now() - interval '61 minutes'
    where identifier = 'retention'`);

  const logged = (text: string) =>
    lines.filter((line) => line.includes(text)).map((line) => JSON.parse(line) as object);
  const again = "a job of the task 'retention' failed and is tried again";
  await waitFor(() => expect(logged(again)).not.toEqual([]));
  expect(logged(again)[0]).toMatchObject({
    task: 'retention',
    err: { message: 'retention of buckets failed; workspaces, organizations waited' },
  });
  expect(logged("retention of 'buckets' failed")[0]).toMatchObject({
    level: 'error',
    err: { message: expect.stringContaining('../elsewhere') },
  });
  expect(await query('select 1 from login_failures where key = $1', [key])).toEqual([]);
  expect(await query(bucket, [stuck.workspaceId])).toHaveLength(1);
  expect(existsSync(folder)).toBe(true);
  const metrics = await app.server.inject('/metrics');
  expect(metrics.body).toMatch(/^platform_jobs\{task="retention",state="(retrying|running)"\} 1$/m);

  await query('update workspaces set storage_bucket = $1 where id = $2', [workspace?.bucket, stuck.workspaceId]);
  await pool.query(`update jobs._private_jobs set run_at = now() where key = 'retention'`);
  await waitFor(async () => expect(await query(bucket, [stuck.workspaceId])).toEqual([]));
  expect(existsSync(folder)).toBe(false);
});
