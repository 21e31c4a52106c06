// own process: counts and breaks what the driver does on all connections of the process
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Sql } from '../../../src/data/sql.ts';
import { plainRead } from '../../../src/platform/postgres/plain-read.ts';
import { preparedRead } from '../../../src/platform/postgres/prepared-read.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => {
  pool = new pg.Pool({ connectionString: database.url, max: 1, pipeline: true } as pg.PoolConfig);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await pool.end();
});

const ROWS = `select n, case when n % 2 = 0 then 'even ' || n end as word, array[n, n + 1] as pair
  from generate_series(1, $1) n order by n`;
const TWO = [
  { n: 1, word: null, pair: [1, 2] },
  { n: 2, word: 'even 2', pair: [2, 3] },
];

it('asks for a description of its columns once for each connection', async () => {
  const sql = new Sql(pool);
  const described = vi.spyOn(pg.Connection.prototype, 'describe');
  expect(await sql.read(ROWS, [2])).toStrictEqual(TWO);
  expect(described).toHaveBeenCalledTimes(1);
  expect(await sql.read(ROWS, [2])).toStrictEqual(TWO);
  expect(await sql.read(ROWS, [0])).toStrictEqual([]);
  expect(described).toHaveBeenCalledTimes(1);
  const other = new pg.Pool({ connectionString: database.url, max: 1 });
  try {
    expect(await new Sql(other).read(ROWS, [2])).toStrictEqual(TWO);
    expect(described).toHaveBeenCalledTimes(2);
  } finally {
    await other.end();
  }
});

describe.each([
  ['prepared', preparedRead],
  ['plain', plainRead],
])('a %s read', (_way, run) => {
  let sql: Sql;
  beforeEach(() => {
    sql = new Sql(pool, run);
  });

  it('answers each of many statements that were sent at once, and a failing one alone fails', async () => {
    const good = Array.from({ length: 20 }, (_, n) => sql.read<{ n: number }>(ROWS, [n]));
    const bad = sql.read('select 1 / $1::int as n', [0]);
    const rows = await Promise.all(good);
    expect(rows.map(({ length }) => length)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    await expect(bad).rejects.toMatchObject({ code: '22012' });
    expect(await sql.read('select 1 / $1::int as n', [1])).toStrictEqual([{ n: 1 }]);
  });

  it('reads columns as they are now, after a migration changed them', async () => {
    await pool.query('drop table if exists moving; create table moving (n integer); insert into moving values (1)');
    const text = 'select n from moving';
    expect(await sql.read(text, [])).toStrictEqual([{ n: 1 }]);
    expect(await sql.read(text, [])).toStrictEqual([{ n: 1 }]);
    await pool.query(`alter table moving alter n type text using 'number ' || n`);
    expect(await sql.read(text, [])).toStrictEqual([{ n: 'number 1' }]);
    expect(await sql.read(text, [])).toStrictEqual([{ n: 'number 1' }]);
  });

  it('makes every row alike, with what is null and with many equal texts', async () => {
    const text = `select n, 'same' as word, case when n = 3 then n end as third, n * 10000000000 as big,
        '2026-11-24T10:00:00Z'::timestamptz as at, array['a', null, 'c,d'] as words, '{"a":[1]}'::jsonb as json
      from generate_series(1, 50) n`;
    const wanted = Array.from({ length: 50 }, (_, at) => ({
      n: at + 1,
      word: 'same',
      third: at === 2 ? 3 : null,
      big: String((at + 1) * 10_000_000_000),
      at: new Date('2026-11-24T10:00:00Z'),
      words: ['a', null, 'c,d'],
      json: { a: [1] },
    }));
    for (let times = 0; times < 2; times++) expect(await sql.read(text, [])).toStrictEqual(wanted);
  });

  it('keeps the column of the statement apart from the rows', async () => {
    const text = 'select n, (select count(*)::int from generate_series(1, 7)) as "$mark" from generate_series(1, 2) n';
    for (let times = 0; times < 2; times++)
      expect(await sql.readMarked(text, [])).toStrictEqual({ rows: [{ n: 1 }, { n: 2 }], marks: [7, 7] });
    expect(await sql.readMarked(`select * from (${text}) none where n > 2`, [])).toStrictEqual({ rows: [], marks: [] });
  });

  it('fails with the reason when a column cannot be parsed, and the connection stays usable', async () => {
    const types = vi.spyOn(pg.types, 'getTypeParser').mockImplementation((() => () => {
      throw new Error('not this one');
    }) as never);
    await expect(sql.read('select 1.5::float8 as broken', [])).rejects.toThrow('not this one');
    types.mockRestore();
    expect(await sql.read(ROWS, [2])).toStrictEqual(TWO);
  });
});
