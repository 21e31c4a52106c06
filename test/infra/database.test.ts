import net from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Database, openDatabase, waitForDatabase } from '../../src/infra/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { quietLogger } from '../support/quiet-logger.ts';

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

describe('openDatabase', () => {
  it('bounds statements, waits for locks and idle transactions on every connection, of Prisma too', async () => {
    const settings = `select name, setting from pg_settings
      where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name`;
    const expected = [
      { name: 'idle_in_transaction_session_timeout', setting: '30000' },
      { name: 'lock_timeout', setting: '10000' },
      { name: 'statement_timeout', setting: '30000' },
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
    const lost = database.pool.totalCount;
    await database.pool
      .query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      )
      .then(() => database.pool.query('select pg_terminate_backend(pg_backend_pid())'))
      .catch(() => undefined); // the connection that asked for its own end gets no answer
    await vi.waitFor(() => expect(database.pool.totalCount).toBeLessThan(lost));
    expect(await database.prisma.$queryRaw`select 1 as one`).toEqual([{ one: 1 }]);
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
    const server = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as net.AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    await expect(waitForDatabase(`postgresql://a@127.0.0.1:${port}/b`, quietLogger, 0)).rejects.toThrow('ECONNREFUSED');
  });
});
