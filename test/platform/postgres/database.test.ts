import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { callerError } from '../../../src/platform/postgres/faults.ts';
import { waitForDatabase } from '../../../src/platform/postgres/wait-for-database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { freePort } from '../../support/free-port.ts';
import { keptLog } from '../../support/log-lines.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitFor } from '../../support/wait.ts';

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, poolSize: 2, logger: quietLogger });
});

afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

const hasTransactionTimeout = async (): Promise<boolean> => {
  const { rows } = await database.pool.query<{ server_version_num: string }>('show server_version_num');
  return Number(rows[0]!.server_version_num) >= 170_000;
};

describe('openDatabase', () => {
  it('bounds statements, waits for locks and transactions, and compiles nothing, on every connection', async () => {
    const settings = `select name, setting from pg_settings
      where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout',
        'jit')
        order by name`;
    const expected = [
      { name: 'idle_in_transaction_session_timeout', setting: '30000' },
      { name: 'jit', setting: 'off' },
      { name: 'lock_timeout', setting: '10000' },
      { name: 'statement_timeout', setting: '30000' },
      // servers before 17 have none
      ...((await hasTransactionTimeout()) ? [{ name: 'transaction_timeout', setting: '60000' }] : []),
    ];
    expect((await database.pool.query(settings)).rows).toEqual(expected);
    expect(await database.prisma.$queryRawUnsafe(settings)).toEqual(expected);
  });

  it('shares its connections between Prisma and hand-written SQL', async () => {
    await Promise.all([1, 2, 3, 4].map(() => database.prisma.$queryRaw`select 1 as one`));
    await Promise.all([1, 2, 3, 4].map(() => database.pool.query('select 1')));
    expect(database.pool.totalCount).toBeLessThanOrEqual(2);
  });

  it('outlives the loss of its connections', async () => {
    await Promise.all([1, 2].map(() => database.pool.query('select 1')));
    const admin = new pg.Client({ connectionString: testDatabase.url });
    await admin.connect();
    try {
      const ofOthers = 'from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
      await admin.query(`select pg_terminate_backend(pid) ${ofOthers}`);
    } finally {
      await admin.end();
    }
    // a connection that is asked to end may end a moment later: until then, it would fail the next statement
    await waitFor(() => expect(database.pool.totalCount).toBe(0));
    expect(await database.prisma.$queryRaw`select 1 as one`).toEqual([{ one: 1 }]);
  });

  it('fails only the statements of a connection that breaks while in use, however often it reports so', async () => {
    const client = await database.pool.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const under = expect(client.query('select pg_sleep(30)')).rejects.toThrow();
    await database.pool.query('select pg_terminate_backend($1)', [rows[0]!.pid]);
    await under;
    // as a write to a socket that is gone does
    client.emit('error', new Error('write EPIPE'));
    await expect(client.query('select 1')).rejects.toThrow();
    client.release();
    expect((await database.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it.each([
    ['a statement', ['set local statement_timeout = 20'], 'select pg_sleep(5)'],
    // the server measures anew only when there was no bound for a moment
    [
      'a long transaction',
      ['set local transaction_timeout = 0', 'set local transaction_timeout = 20'],
      'select pg_sleep(5)',
    ],
    ['an idle transaction', ['set local idle_in_transaction_session_timeout = 20'], null],
  ])('makes %s that was ended a 503, through pg and through Prisma', async (what, limits, statement) => {
    if (what === 'a long transaction' && !(await hasTransactionTimeout())) return;
    const work = async (query: (text: string) => Promise<unknown>) => {
      for (const limit of limits) await query(limit);
      if (statement) return query(statement);
      // until the server has ended the session
      for (;;) await query('select 1').then(() => delay(60));
    };
    const client = await database.pool.connect();
    client.on('error', () => undefined);
    await client.query('begin');
    const byPg = await work((text) => client.query(text)).catch((error: unknown) => error);
    client.release(true);
    const byPrisma = await database.prisma
      .$transaction((tx) => work((text) => tx.$executeRawUnsafe(text)))
      .catch((error: unknown) => error);
    for (const error of [byPg, byPrisma])
      expect(callerError(error)).toMatchObject({ code: 'SERVICE_UNAVAILABLE', details: { retry_after: 1 } });
  });
});

describe('an idle connection that breaks', () => {
  it('is told in a line without the statements that it held, and not at all when the pool ends', async () => {
    const { logger, lines } = keptLog();
    const broken = openDatabase({ url: testDatabase.url, poolSize: 1, logger });
    const { rows } = await broken.pool.query<{ pid: number }>({ name: 'held', text: 'select pg_backend_pid() as pid' });
    await database.pool.query('select pg_terminate_backend($1)', [rows[0]!.pid]);
    await waitFor(() => expect(lines).toHaveLength(1));
    const line = JSON.parse(lines[0]!) as { msg: string; err: { code: string } };
    expect(line).toMatchObject({ msg: 'an idle database connection broke', err: { code: '57P01' } });
    expect(lines[0]).not.toContain('pg_backend_pid');
    await broken.close();
    broken.pool.emit('error', new Error('the server was quicker'), new pg.Client());
    expect(lines).toHaveLength(1);
  });
});

describe('waitForDatabase', () => {
  it('returns once the database answers', async () => {
    await expect(waitForDatabase(testDatabase.url, quietLogger)).resolves.toBeUndefined();
  });

  it('says at once that the database does not exist: waiting would not help', async () => {
    const url = testDatabase.url.replace(/test_\w+/, 'nowhere');
    await expect(waitForDatabase(url, quietLogger, 3_600)).rejects.toThrow(
      'The database does not answer: database "nowhere" does not exist',
    );
  });

  it('gives up when nobody listens until the time is over', async () => {
    await expect(waitForDatabase(`postgresql://a@127.0.0.1:${await freePort()}/b`, quietLogger, 0)).rejects.toThrow(
      'ECONNREFUSED',
    );
  });
});
