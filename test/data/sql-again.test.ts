// own process: the names of prepared statements are few, and other files may have used them up
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { Sql } from '../../src/data/sql.ts';

const coded = (code: string): Error => Object.assign(new Error('of the database'), { code });

/** Reads while statements fail with these errors. @returns how many were sent, and the rows or the error */
async function read(...errors: unknown[]): Promise<[number, unknown]> {
  let sent = 0;
  const query = async () => {
    const error = errors[sent++];
    if (error !== undefined) await Promise.reject(error);
    return { rows: [{ n: 1 }], marks: [] };
  };
  const sql = new Sql({ query } as unknown as pg.Pool);
  const result = await sql.read('select 1 as n', []).catch((error: unknown) => error);
  return [sent, result];
}

describe('a read', () => {
  const lost = ['57P01', '57P02', '57P03', '08006', '08P01', '0A000'].map(coded);
  it.each([...lost, new Error('Connection terminated unexpectedly')])(
    'is repeated where its connection was lost: $code $message',
    async (error) => {
      expect(await read(error)).toEqual([2, [{ n: 1 }]]);
      expect(await read(error, error)).toEqual([2, error]);
    },
  );

  const others: unknown[] = [
    ...['57P04', '57014', '23505', '0A0001', '108006', '080061', '', '157P01'].map(coded),
    new Error('Connection terminated'),
    { message: 'Connection terminated unexpectedly' },
    'Connection terminated unexpectedly',
    '08006',
    null,
    7,
  ];
  it.each(others.map((error) => [error]))('is not repeated where it failed: %j', async (error) => {
    expect(await read(error)).toEqual([1, error]);
  });
});

it('a statement that writes tells how many rows it touched', async () => {
  const touching = (rowCount: number | null) => new Sql({ query: async () => ({ rowCount }) } as unknown as pg.Pool);
  expect(await touching(3).write('delete from t', [])).toBe(3);
  expect(await touching(null).write('create table t ()', [])).toBe(0);
});

describe('a statement for a transaction', () => {
  const { types, name, ...query } = new Sql({} as pg.Pool).queryOf('select $1 as n', [7]);
  const parse = (oid: number, text: string): unknown =>
    (types!.getTypeParser(oid, 'text') as (text: string) => unknown)(text);

  it('has a name of its own, the same each time', () => {
    const sql = new Sql({} as pg.Pool);
    expect(query).toEqual({ text: 'select $1 as n', values: [7] });
    expect(name).toMatch(/^s[0-9a-f]{24}$/);
    expect(sql.queryOf('select $1 as n', [8]).name).toBe(name);
    expect(sql.queryOf('select $1 as m', [8]).name).not.toBe(name);
    expect(sql.queryOf('select 1', [], 'array')).toMatchObject({ rowMode: 'array', text: 'select 1' });
    expect(sql.queryOf('select 1', [])).not.toHaveProperty('rowMode');
  });

  it('has whole numbers of any size, points in time and texts', () => {
    expect(parse(20, '9007199254740993')).toBe(9_007_199_254_740_993n);
    expect(parse(23, '7')).toBe(7);
    expect(parse(25, 'text')).toBe('text');
    expect(parse(1184, '2026-11-21 06:46:00.379+00')).toEqual(new Date('2026-11-21T06:46:00.379Z'));
    expect(parse(1009, '{one,two}')).toEqual(['one', 'two']);
  });

  it.each([
    ['2026-11-21 06:46:00.3799+00', '2026-11-21T06:46:00.379Z'],
    ['1969-12-31 23:59:59.9999+00', '1969-12-31T23:59:59.999Z'],
    ['2026-11-21 06:46:00.379+05:30', '2026-11-21T01:16:00.379Z'],
    ['12026-11-21 06:46:00+00', '+012026-11-21T06:46:00.000Z'],
  ])('reads %s as a point in time', (text, iso) => {
    expect((parse(1184, text) as Date).toISOString()).toBe(iso);
  });

  it('reads points in time that are none as the driver does', () => {
    expect(parse(1184, 'infinity')).toBe(pg.types.getTypeParser(1184)('infinity'));
  });

  it.each([
    ['{}', []],
    ['{NULL}', [null]],
    ['{a,NULL}', ['a', null]],
    ['{"a,b"}', ['a,b']],
    ['{a\\\\b}', ['a\\b']],
    [
      '{{a,b},{c,d}}',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    ['[0:1]={a,b}', ['a', 'b']],
  ])('reads %s as texts', (text, texts) => {
    expect(parse(1009, text)).toEqual(texts);
  });
});
