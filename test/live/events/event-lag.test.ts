import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Sql } from '../../../src/data/sql.ts';
import { EventLag } from '../../../src/live/events/event-lag.ts';
import { migrationsDir } from '../../../src/paths.ts';
import { createLogger } from '../../../src/platform/logger.ts';
import { migrate } from '../../../src/platform/postgres/migrate.ts';
import { startEmbeddedPostgres } from '../../../src/platform/postgres/postgres-embedded.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { bucketsMade } from '../../support/buckets.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitFor } from '../../support/wait.ts';

/** A server of its own: on the one that test files share, others' transactions would hold events back too. */
let dir: string;
let server: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
let app: TestApp;
let owner: Person;
const lines: Record<string, unknown>[] = [];
const logger = createLogger(
  { logLevel: 'info' },
  { write: (text) => void lines.push(JSON.parse(text) as Record<string, unknown>) },
);

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'event-lag-'));
  const start = () => startEmbeddedPostgres({ dir: path.join(dir, 'postgres'), isDurable: false, logger: quietLogger });
  server = await start();
  await asAdmin('alter system set max_prepared_transactions = 2', 'alter system set wal_level = logical');
  await server.stop();
  server = await start();
  await migrate(server.url, migrationsDir);
  app = await startTestApp({ databaseUrl: server.url });
  owner = await register(app);
});
afterAll(async () => {
  await app.close();
  await server.stop();
  await rm(dir, { recursive: true, force: true });
});

/** In another database of the server. */
async function asAdmin(...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: server.urlOf('postgres') });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

const SECRET = 'canary of a query';

/** A transaction in another database of the server that has written, and does nothing more. */
async function holding<T>(work: (holder: pg.Client) => Promise<T>): Promise<T> {
  const holder = new pg.Client({
    connectionString: server.urlOf('postgres'),
    application_name: 'nightly import',
  });
  await holder.connect();
  try {
    await holder.query('begin');
    await holder.query(`select pg_current_xact_id(), '${SECRET}'`);
    return await work(holder);
  } finally {
    await holder.end();
  }
}

const change = () =>
  callsOf(app).put(`/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`, { description: 'new' }, owner.headers);
const makeOld = (seconds: number) =>
  app.database.pool.query(
    `update events set timestamp = clock_timestamp() - $1::float8 * interval '1 second' ` +
      'where xid >= pg_snapshot_xmin(pg_current_snapshot())',
    [seconds],
  );

interface Ready {
  status: string;
  events: { lag_seconds: number; waiting: number };
}
const ready = async () => (await app.server.inject('/readyz')).json<Ready>();
const metric = async (name: string) =>
  Number(new RegExp(`^platform_${name} (.+)$`, 'm').exec((await app.server.inject('/metrics')).body)?.[1]);

describe('how late events are', () => {
  test('is a metric and in /readyz, which stays ready; zero when nothing holds events back', async () => {
    // a bucket that becomes ready is an event too
    await bucketsMade(app);
    await waitFor(async () => expect((await ready()).events).toEqual({ lag_seconds: 0, waiting: 0 }));
    await holding(async () => {
      await change();
      await change();
      await makeOld(90);
      // what was measured a moment before is shown for half a second
      await waitFor(async () => {
        const shown = await ready();
        expect([shown.status, shown.events.waiting]).toEqual(['ready', 2]);
        expect(shown.events.lag_seconds).toBeGreaterThanOrEqual(90);
      });
      expect(await metric('event_lag_seconds')).toBeGreaterThanOrEqual(90);
      expect(await metric('event_lag_events')).toBe(2);
    });
    await waitFor(async () => expect(await metric('event_lag_events')).toBe(0));
    expect(await metric('event_lag_seconds')).toBe(0);
  });

  test('does not count what a dump brought along, with transaction ids of another server', async () => {
    await app.database.pool.query(
      `insert into events (id, xid, org_id, type, actor, resource_type, resource_id, timestamp)
       values ('evt_restored', '9000000000', 'org', 'x.created', '{}', 'x', 'x', now() - interval '1 day')`,
    );
    await waitFor(async () => expect(await metric('event_lag_events')).toBe(0));
  });
});

describe('the log names what holds events back', () => {
  const lagOf = () => new EventLag(new Sql(app.database.pool), logger);

  test('with its process and age, not its query; once a minute, and once when it is over', async () => {
    lines.length = 0;
    const lag = lagOf();
    await holding(async (holder) => {
      const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid');
      await change();
      await lag.watch();
      expect(lines).toEqual([]);
      await makeOld(60);
      await waitFor(async () => {
        await lag.watch();
        expect(lines).toHaveLength(1);
      });
      await lag.watch();
      expect(lines).toEqual([
        expect.objectContaining({
          level: 'warn',
          msg: 'a transaction holds events back: none is delivered before it ends',
          waiting: 1,
          held_by: {
            kind: 'session',
            pid: rows[0]!.pid,
            gid: null,
            database: 'postgres',
            application_name: 'nightly import',
            state: 'idle in transaction',
            transaction_seconds: expect.any(Number) as number,
          },
        }),
      ]);
      expect(JSON.stringify(lines)).not.toContain(SECRET);
    });
    await waitFor(async () => {
      await lag.watch();
      expect(lines).toHaveLength(2);
    });
    expect(lines[1]).toMatchObject({ level: 'info', msg: 'events are delivered in time again' });
  });

  test('also where no session does: a transaction that was prepared and forgotten', async () => {
    lines.length = 0;
    const lag = lagOf();
    await asAdmin('begin', 'select pg_current_xact_id()', `prepare transaction 'forgotten'`);
    await change();
    await makeOld(60);
    await waitFor(async () => {
      await lag.watch();
      expect(lines).toHaveLength(1);
    });
    expect(lines[0]).toMatchObject({
      held_by: { kind: 'prepared transaction', pid: null, gid: 'forgotten', database: 'postgres' },
    });
    await asAdmin(`rollback prepared 'forgotten'`);
  });

  test('but no replication slot: that holds back vacuum, and no event', async () => {
    await asAdmin(`select pg_create_logical_replication_slot('slot', 'pgoutput')`);
    await change();
    await makeOld(60);
    await waitFor(async () => expect((await ready()).events).toEqual({ lag_seconds: 0, waiting: 0 }));
    await asAdmin(`select pg_drop_replication_slot('slot')`);
  });
});
