import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findRow, findRows } from '../../src/data/find-row.ts';
import {
  columnsOf,
  countOf,
  countPages,
  countRows,
  filtersOf,
  jsonOf,
  keptCountOf,
  type PageRequest,
  type PageSource,
  placeCountOf,
  readPage,
  readPages,
  selectList,
  withFilters,
  words,
} from '../../src/data/paging.ts';
import { statement } from '../../src/data/writes.ts';
import { addUser, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';

interface Thing {
  id: string;
  kind: string;
}

let database: BareDatabase;
beforeAll(async () => {
  database = await openBareDatabase();
  await database.pool.query(`
    create table things (id text primary key, org text not null, box text not null, kind text not null, n int not null);
    create table more_things (like things including all);
    insert into things select 'a' || to_char(i, 'FM00'), 'o' || i % 2, 'b' || i % 4, 'k' || i % 3, i / 5
      from generate_series(0, 19) i;
    insert into more_things select 'a' || to_char(i, 'FM00') || 'x', 'o0', 'b0', 'k9', i
      from generate_series(3, 9, 3) i`);
});
afterAll(() => database.close());

const columns = { id: 't.id', kind: 't.kind' };
const things: PageSource<Thing> = { from: 'things t', columns, key: 't.id', order: 'asc', where: ['t.org = $1'] };
const newest: PageSource<Thing> = { ...things, order: 'desc' };
const both: PageSource<Thing> = { ...things, also: { ...things, from: 'more_things t' } };
const numbered: PageSource<Thing> = { ...things, key: '(t.n, t.id)', keys: { 't.n': 'int', 't.id': 'text' } };
const boxed: PageSource<Thing> = { ...things, where: ['t.org = $1', 't.box = $2'] };

/** The rows of a list page by page, each after the last row of the one before. */
async function walk(source: PageSource<Thing>, limit: number, keyOf = ({ id }: Thing) => id, values = ['o0']) {
  const pages: string[][] = [];
  for (let after: string | null = null; ; ) {
    const { rows, hasMore } = await readPage(database.sql, source, { values, after, limit });
    pages.push(rows.map(({ id }) => id));
    if (!hasMore) return pages;
    after = keyOf(rows.at(-1)!);
  }
}

const evens = Array.from({ length: 10 }, (_, at) => `a${String(at * 2).padStart(2, '0')}`);
const inPages = (ids: readonly string[], limit: number) =>
  Array.from({ length: Math.ceil(ids.length / limit) }, (_, at) => ids.slice(at * limit, (at + 1) * limit));

describe('the pages of a list', () => {
  it.each([1, 3, 5, 9, 10, 11])('of %i rows have all rows once, in order', async (limit) => {
    expect(await walk(things, limit)).toEqual(inPages(evens, limit));
    expect(await walk(newest, limit)).toEqual(inPages(evens.toReversed(), limit));
  });

  it('may be planned once', async () => {
    expect(await walk({ ...newest, isPlannedOnce: true }, 4)).toEqual(inPages(evens.toReversed(), 4));
  });

  it('may be ordered by several columns', async () => {
    const keyOf = ({ id }: Thing) => `${Math.floor(Number(id.slice(1)) / 5)} ${id}`;
    expect(await walk(numbered, 3, keyOf)).toEqual(inPages(evens, 3));
    expect(await walk({ ...numbered, order: 'desc' }, 3, keyOf)).toEqual(inPages(evens.toReversed(), 3));
  });

  it('may begin with one value of a column before the key', async () => {
    const source = { ...things, lead: 't.kind', where: ['t.org = $1', 't.kind between $2 and $2'] };
    expect(await walk(source, 2, ({ id }) => id, ['o0', 'k0'])).toEqual([
      ['a00', 'a06'],
      ['a12', 'a18'],
    ]);
  });

  it('may be merged with those of another', async () => {
    const merged = [...evens, 'a03x', 'a06x', 'a09x'].toSorted();
    for (const limit of [1, 4, 13]) {
      expect(await walk(both, limit)).toEqual(inPages(merged, limit));
      const down = { ...both, order: 'desc', also: { ...both.also!, order: 'desc' } } as const;
      expect(await walk(down, limit)).toEqual(inPages(merged.toReversed(), limit));
    }
  });

  it('show their columns by property', async () => {
    const { rows } = await readPage(database.sql, both, { values: ['o0'], after: null, limit: 1 });
    expect(rows).toEqual([{ id: 'a00', kind: 'k0' }]);
  });

  it('tell whether there are more only where they look for them', async () => {
    const request = { values: ['o0'], after: null, limit: 3, looksFurther: false };
    const page = await readPage(database.sql, things, request);
    expect([page.rows.length, page.hasMore, page.total]).toEqual([3, false, undefined]);
  });

  it('are read with a count where one is asked for', async () => {
    const count = `select count(*)::int from things where org = $1`;
    const request = { values: ['o0'], limit: 3, count };
    expect((await readPage(database.sql, things, { ...request, after: null })).total).toBe(10);
    expect((await readPage(database.sql, both, { ...request, after: 'a04' })).total).toBe(10);
    const other = { ...request, count: `select 7` };
    expect((await readPage(database.sql, things, { ...other, after: null, values: ['o0'] })).total).toBe(7);
    expect(await readPage(database.sql, things, { values: ['o9'], after: null, limit: 3 })).toStrictEqual({
      rows: [],
      hasMore: false,
    });
  });
});

describe('the pages of many lists', () => {
  const parents = [
    ['o0', 'b0'],
    ['o1', 'b1'],
    ['o1', 'b0'],
    ['o0', 'b2'],
  ] as const;
  const listsOf = async (
    source: PageSource<Thing>,
    of: readonly (readonly string[])[],
    request: Partial<PageRequest>,
  ) => {
    const pages = await readPages(database.sql, source, of, { values: [], after: null, limit: 2, ...request });
    return pages.map(({ rows, hasMore }) => [rows.map(({ id }) => id).join(' '), hasMore]);
  };

  it('are those of each, in the order of the lists', async () => {
    expect(await listsOf(boxed, parents, {})).toEqual([
      ['a00 a04', true],
      ['a01 a05', true],
      ['', false],
      ['a02 a06', true],
    ]);
    expect(await listsOf({ ...boxed, order: 'desc' }, parents, { limit: 5 })).toEqual([
      ['a16 a12 a08 a04 a00', false],
      ['a17 a13 a09 a05 a01', false],
      ['', false],
      ['a18 a14 a10 a06 a02', false],
    ]);
  });

  it('go on after a row, with filters', async () => {
    const filtered = withFilters(boxed, filtersOf({ 't.kind = ?': 'k0', 't.n = ?': null }), 2);
    expect(await listsOf(boxed, parents, { after: 'a09' })).toEqual([
      ['a12 a16', false],
      ['a13 a17', false],
      ['', false],
      ['a10 a14', true],
    ]);
    expect(await listsOf(filtered, parents, { values: ['k0'] })).toEqual([
      ['a00 a12', false],
      ['a09', false],
      ['', false],
      ['a06 a18', false],
    ]);
    expect(await listsOf(filtered, [parents[0]], { values: ['k0'], after: 'a00' })).toEqual([['a12', false]]);
  });

  it('do not look further where that is not asked for', async () => {
    expect(await listsOf(boxed, parents.slice(0, 2), { looksFurther: false })).toEqual([
      ['a00 a04', false],
      ['a01 a05', false],
    ]);
  });

  it('are counted together', async () => {
    expect(await countPages(database.sql, boxed, parents, [])).toEqual([5, 5, 0, 5]);
    expect(await countPages(database.sql, boxed, [parents[0]], [])).toEqual([5]);
    const filtered = withFilters(boxed, filtersOf({ 't.kind = ?': 'k0' }), 2);
    expect(await countPages(database.sql, filtered, parents, ['k0'])).toEqual([2, 1, 0, 2]);
  });
});

describe('a count', () => {
  it('is that of all rows, merged ones too', async () => {
    expect(await countRows(database.sql, things, ['o0'])).toBe(10);
    expect(await countRows(database.sql, both, ['o0'])).toBe(13);
    expect(await countRows(database.sql, { ...things, where: [] }, [])).toBe(20);
    expect(countOf({ ...things, where: [] })).toBe('select count(*)::int from things t');
  });
});

describe('filters', () => {
  it('are those that have a value', () => {
    expect(filtersOf({ 'a = ?': 1, 'b = ?': null, 'c = ?': undefined, 'd = ?': false, 'e = ?': '' })).toEqual([
      { where: 'a = ?', value: 1 },
      { where: 'd = ?', value: false },
      { where: 'e = ?', value: '' },
    ]);
  });

  it('come after the conditions of the list, and of what it is merged with', () => {
    const filters = [
      { where: 'a = ? or b = ?', value: 1 },
      { where: 'c = ?', value: 2 },
    ];
    const { where, also } = withFilters(both, filters, 1);
    expect(where).toEqual(['t.org = $1', 'a = $2 or b = $2', 'c = $3']);
    expect(also?.where).toEqual(where);
    expect(withFilters(both, [], 1)).toBe(both);
    expect('also' in withFilters(things, filters, 1)).toBe(false);
  });
});

describe('the parts of statements', () => {
  it('name columns by property', () => {
    expect(selectList({ orgId: 't.org_id', n: 'count(*)' })).toBe('t.org_id as "orgId", count(*) as "n"');
    expect(columnsOf(['orgId', 'id'])).toEqual({ orgId: 't.org_id', id: 't.id' });
    expect(columnsOf(['orgId'], 'm')).toEqual({ orgId: 'm.org_id' });
    expect(words('id orgId', 'name')).toEqual(['id', 'orgId', 'name']);
    expect(jsonOf({ orgId: 't.org_id', id: 't.id' })).toBe("json_build_object('orgId', t.org_id, 'id', t.id)");
  });

  it('read the counts that are stored', () => {
    expect(keptCountOf('apps')).toMatch(/from resource_counts where org_id = \$1 and resource = 'apps'$/);
    expect(placeCountOf('threads', 3)).toMatch(/where org_id = \$1 and place_id = \$3 and counter = 'threads'$/);
  });
});

describe('rows', () => {
  it('are found by their values, as Prisma reads them', async () => {
    const { id } = await addUser(database, { fullName: 'Ada', isActive: false });
    expect(await findRow(database.sql, 'users', { id })).toMatchObject({ id, fullName: 'Ada', isActive: false });
    expect(await findRow(database.sql, 'users', { id, fullName: null })).toBeNull();
    expect(await findRow(database.sql, 'users', { id, bio: null })).toMatchObject({ id });
    const found = await findRows(database.sql, 'users', statement`t.id = ${id} or t.id = ${'usr_1'}`);
    expect(found.map((row) => [row.id, row.homeOrgId])).toEqual([[id, null]]);
  });
});
