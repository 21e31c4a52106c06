// own process: fills the statements that a process keeps prepared
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sql } from '../../src/data/sql.ts';
import { plainRead } from '../../src/platform/postgres/plain-read.ts';
import { preparedRead } from '../../src/platform/postgres/prepared-read.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 1 });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const MOMENTS = [
  '2026-11-21 06:46:00.379+00',
  '2026-11-21 06:46:00+00',
  '2026-11-21 06:46:00.1+00',
  '2026-11-21 23:59:59.05+00',
  '2026-11-22 00:00:01.123456+00',
  '0099-01-01 00:00:00+00',
  '1969-12-31 23:59:59.999+00',
  '9999-12-31 23:59:59.999+00',
  '0044-03-15 12:00:00+00 BC',
  '275760-01-01 00:00:00+00',
];

const ARRAYS = [
  `'{}'::text[]`,
  `array['one']`,
  `array['one', 'two three', 'vier']`,
  `array['', 'a,b', 'say "it"', '\\', '{}', ' edges ']`,
  `array['NULL', 'null', null]`,
  'array[null]::text[]',
  `array['annulled', 'x']`,
  `array[array['a', 'b'], array['c', 'd']]`,
  `'[0:1]={a,b}'::text[]`,
  `array['a', '{']`,
];

it('a read without a name leaves nothing prepared', async () => {
  const sql = new Sql(pool);
  const prepared = async () =>
    (await pool.query<{ statement: string }>('select statement from pg_prepared_statements')).rows;
  const before = await prepared();
  for (let at = 0; at < 3; at += 1)
    expect(await sql.readUnnamed(`select $1::int + ${at} as shape`, [1])).toEqual([{ shape: 1 + at }]);
  expect(await prepared()).toEqual(before);
  await sql.read('select $1::int as named', [1]);
  expect(await prepared()).toHaveLength(before.length + 1);
});

describe.each([
  ['prepared', preparedRead],
  ['plain', plainRead],
])('a %s read', (_way, run) => {
  for (const zone of ['UTC', 'Asia/Kolkata']) {
    it(`gives points in time as the driver does, in sessions of ${zone} too`, async () => {
      await pool.query(`set timezone = '${zone}'`);
      const text = 'select t::timestamptz as t from unnest($1::text[]) t';
      const [ours, theirs] = [
        await new Sql(pool, run).read<{ t: Date }>(text, [MOMENTS]),
        (await pool.query<{ t: Date }>(text, [MOMENTS])).rows,
      ];
      expect(ours.map(({ t }) => t.getTime())).toEqual(theirs.map(({ t }) => t.getTime()));
      expect(ours[0]?.t.toISOString()).toBe('2026-11-21T06:46:00.379Z');
    });
  }

  it.each(ARRAYS)('gives %s as the driver does', async (array) => {
    const text = `select ${array} as texts`;
    expect(await new Sql(pool, run).read(text, [])).toEqual((await pool.query(text)).rows);
  });

  it('gives many rows with equal texts as the driver does', async () => {
    const text = `select 'same' as same, n::text as each, (n % 3)::text as few, nullif('x' || n % 2, 'x1') as maybe,
      '' as empty, (n % 40)::text as some, n % 2 as number from generate_series(1, 200) n`;
    expect(await new Sql(pool, run).read(text, [])).toEqual((await pool.query(text)).rows);
  });

  it('is run once more when its connection was ended under it', async () => {
    const sql = new Sql(pool, run);
    const [{ pid } = { pid: 0 }] = await sql.read<{ pid: number }>('select pg_backend_pid() as pid', []);
    const killer = new pg.Client({ connectionString: database.url });
    pool.on('error', () => undefined);
    await killer.connect();
    await killer.query('select pg_terminate_backend($1)', [pid]);
    await killer.end();
    const [row] = await sql.read<{ n: number }>('select 1 as n', []);
    expect(row).toEqual({ n: 1 });
  });
});

it('keeps a thousand statements prepared, and runs more', async () => {
  const fresh = new pg.Pool({ connectionString: database.url, max: 1 });
  try {
    const sql = new Sql(fresh);
    for (let n = 0; n < 1_200; n++) expect(await sql.read(`select ${n} as n`, [])).toEqual([{ n }]);
    const { rows } = await fresh.query('select count(*)::int as kept from pg_prepared_statements');
    expect(rows[0].kept).toBeGreaterThan(500);
    expect(rows[0].kept).toBeLessThanOrEqual(1_000);
  } finally {
    await fresh.end();
  }
});
