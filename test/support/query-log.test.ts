import { AsyncResource } from 'node:async_hooks';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { logQueries } from './query-log.ts';

let server: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  server = await createTestDatabase({ template: 'template0' });
  // who asks waits for the connection of whoever asked before
  pool = new pg.Pool({ connectionString: server.url, max: 1 });
});
afterAll(async () => {
  await pool.end();
  await server.drop();
});

it('tells the statements of a work from those that others send meanwhile, over the same connection', async () => {
  const log = logQueries(pool);
  const outside = new AsyncResource('others');
  const others: Promise<unknown>[] = [];
  const beside = (text: string) => outside.runInAsyncScope(() => others.push(pool.query(text)));
  const work = async () => {
    beside(`select 'before'`);
    await Promise.all([pool.query(`select 'one'`), pool.query(`select 'two'`)]);
    beside(`select 'between'`);
    const client = await pool.connect();
    await client.query(`select 'three'`);
    client.release();
  };
  const [all, own] = [await log.during(work), await log.by(work)];
  await Promise.all(others);
  expect(own).toEqual([`select 'one'`, `select 'two'`, `select 'three'`]);
  expect(all).toEqual([`select 'before'`, `select 'one'`, `select 'two'`, `select 'between'`, `select 'three'`]);
});

it('does not count what a work leaves for later', async () => {
  const later: Promise<unknown>[] = [];
  const own = await logQueries(pool).by(async () => {
    await pool.query(`select 'now'`);
    later.push(new Promise((resolve) => setImmediate(resolve)).then(() => pool.query(`select 'later'`)));
  });
  await Promise.all(later);
  expect(own).toEqual([`select 'now'`]);
});
