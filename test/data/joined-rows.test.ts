import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { JoinedRows } from '../../src/data/joined-rows.ts';
import { columnsOf, type PageSource } from '../../src/data/paging.ts';
import { type TraceSpan, within } from '../../src/kernel/spans.ts';
import { type BareDatabase, openBareDatabase } from '../support/bare-database.ts';
import { logQueries } from '../support/query-log.ts';

interface Thing {
  id: string;
  orgId: string;
  size: number;
}

const things: PageSource<Thing> = {
  from: 'things t',
  columns: columnsOf(['id', 'orgId', 'size']),
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', 't.id = $2'],
};

let database: BareDatabase;
let rows: JoinedRows;
beforeAll(async () => {
  database = await openBareDatabase();
  await database.pool.query(`create table things (id text primary key, org_id text not null, size int not null);
    insert into things select 't' || n, case when n % 2 = 0 then 'even' else 'odd' end, n
      from generate_series(1, 40) n`);
});
beforeEach(() => {
  rows = new JoinedRows(database.sql);
});
afterAll(() => database.close());

const one = async (orgId: string, id: string) => (await rows.pages(things, [[orgId, id]]))[0]!.rows;

it('reads the rows of requests that ask in one turn with one statement, each within its own tenant', async () => {
  const found: Thing[][] = [];
  const sent = await logQueries(database.pool).during(async () => {
    found.push(...(await Promise.all([one('odd', 't1'), one('even', 't2'), one('even', 't1'), one('odd', 't1')])));
  });
  expect(sent).toHaveLength(1);
  expect(found).toEqual([
    [{ id: 't1', orgId: 'odd', size: 1 }],
    [{ id: 't2', orgId: 'even', size: 2 }],
    [],
    [{ id: 't1', orgId: 'odd', size: 1 }],
  ]);
  expect(found[3]![0], 'nobody shares an object with a stranger').not.toBe(found[0]![0]);
});

it('keeps nothing: whoever asks later sees what was changed meanwhile', async () => {
  const keys = [['odd', 't3']];
  expect((await rows.pages(things, keys))[0]?.rows).toEqual([{ id: 't3', orgId: 'odd', size: 3 }]);
  await database.pool.query(`update things set size = 300 where id = 't3'`);
  expect((await rows.pages(things, keys))[0]?.rows).toEqual([{ id: 't3', orgId: 'odd', size: 300 }]);
});

it('reads a few rows at once', async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `t${index + 1}`);
  let found: Thing[][] = [];
  const sent = await logQueries(database.pool).during(async () => {
    found = await Promise.all(ids.map((id, index) => one(index % 2 === 0 ? 'odd' : 'even', id)));
  });
  expect(sent).toHaveLength(3);
  expect(found.map(([thing]) => thing?.id)).toEqual(ids);
});

it('fails only the request whose value PostgreSQL refuses', async () => {
  const found = await Promise.allSettled([one('odd', 't1'), one('odd', 't\0'), one('even', 't2')]);
  expect(found.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(found[1], 'it says why').toMatchObject({ reason: { code: '22021' } });
});

it('does not ask again for the one value that was refused', async () => {
  const sent = await logQueries(database.pool).during(async () => {
    await expect(one('odd', 't\0')).rejects.toMatchObject({ code: '22021' });
  });
  expect(sent).toHaveLength(1);
});

it('fails all when the statement cannot run, and does not repeat it for each', async () => {
  const gone = { ...things, from: 'gone t' };
  const sent = await logQueries(database.pool).during(async () => {
    const asked = [rows.pages(gone, [['odd', 't1']]), rows.pages(gone, [['odd', 't2']])];
    for (const result of await Promise.allSettled(asked)) expect(result).toMatchObject({ reason: { code: '42P01' } });
  });
  expect(sent).toHaveLength(1);
});

it('reads by itself for a request whose trace is recorded', async () => {
  const span = { isEnded: false, parent: null } as TraceSpan;
  const sent = await logQueries(database.pool).during(() =>
    Promise.all([within(span, () => one('odd', 't1')), one('even', 't2'), one('even', 't4')]),
  );
  expect(sent).toHaveLength(2);
});
