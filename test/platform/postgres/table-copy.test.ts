import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { beginFill, beginSnapshot, connectForCopy, rowsOf } from '../../../src/platform/postgres/table-copy.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const LARGE = 400_000;
const MEBIBYTE = 2 ** 20;

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase({ template: 'template0' });
  client = await connectForCopy(database.url, 'test');
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

it('batches have about a megabyte, also where large rows come after many small ones', async () => {
  await client.query('create table sizes (id int, text text)');
  await client.query(`insert into sizes select n, 'small' from generate_series(1, 3000) n`);
  await client.query(`insert into sizes select n, repeat('x', ${LARGE}) from generate_series(3001, 3060) n`);
  await beginSnapshot(client);
  const sizes: number[] = [];
  const ids: number[] = [];
  for await (const rows of rowsOf(client, { name: 'sizes', columns: ['id', 'text'], partitions: [] })) {
    sizes.push(rows.reduce((sum, row) => sum + row.length, 0));
    ids.push(...rows.map((row) => Number(/^\((\d+),/.exec(row)![1])));
  }
  await client.query('rollback');
  expect(Math.max(...sizes)).toBeLessThan(MEBIBYTE + LARGE + 100);
  expect(sizes.length).toBeLessThan(30);
  expect(ids).toEqual(Array.from({ length: 3060 }, (_, at) => at + 1));
});

it.each([
  ['a snapshot', beginSnapshot],
  ['a fill', beginFill],
])('the settings of %s end with it: a pooler may give the connection to others', async (_, begin) => {
  const names = 'DateStyle IntervalStyle TimeZone bytea_output extra_float_digits statement_timeout lock_timeout'.split(
    ' ',
  );
  const settings = async () =>
    (await client.query<{ text: string }>(`select current_setting(name) as text from unnest($1::text[]) name`, [names]))
      .rows;
  await client.query(`set datestyle = 'SQL, DMY'; set timezone = 'Asia/Tokyo'; set statement_timeout = '9s'`);
  const before = await settings();
  await begin(client);
  expect((await settings()).map(({ text }) => text)).toEqual(['ISO, YMD', 'postgres', 'UTC', 'hex', '1', '0', '0']);
  await client.query('rollback');
  expect(await settings()).toEqual(before);
});
