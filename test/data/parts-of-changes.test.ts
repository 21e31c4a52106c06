import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { Batch } from '../../src/data/batch.ts';
import { inBatches } from '../../src/data/batches.ts';
import { bulkInsert, bulkInsertOf } from '../../src/data/bulk-insert.ts';
import { compose } from '../../src/data/composed.ts';
import { withoutNull } from '../../src/data/given.ts';
import { LockOrder } from '../../src/data/locks.ts';
import { RESOURCE_IS_THERE } from '../../src/data/named-resources.ts';
import { noCache } from '../../src/data/request-cache.ts';
import { Sql } from '../../src/data/sql.ts';
import { tableOf } from '../../src/data/tables.ts';
import { insert, remove, statement, update, type Write, Written, write } from '../../src/data/writes.ts';
import { Expectation } from '../../src/kernel/expectation.ts';

const missing = () => new Error('missing');

describe('work in batches', () => {
  const run = async (counts: number[]) => {
    const left = [...counts];
    return [await inBatches(3, async () => left.shift() ?? 0), left];
  };

  it('goes on until one is not full', async () => {
    expect(await run([3, 3, 1, 9])).toEqual([7, [9]]);
    expect(await run([3, 0, 9])).toEqual([3, [9]]);
    expect(await run([0, 9])).toEqual([0, [9]]);
  });
});

describe('values that were given', () => {
  it('are those that are something', () => {
    expect(withoutNull({ a: null, b: undefined, c: 0, d: '', e: false, f: [] })).toEqual({
      c: 0,
      d: '',
      e: false,
      f: [],
    });
    expect([withoutNull(null), withoutNull(undefined)]).toEqual([{}, {}]);
  });
});

it('what is not kept is made each time', () => {
  let made = 0;
  expect([noCache.once('a', () => ++made), noCache.once('a', () => ++made)]).toEqual([1, 2]);
});

describe('an expected version', () => {
  it('is met by one of those that the caller accepts', () => {
    const expectation = new Expectation([3, 5]);
    expect(expectation.isMet).toBe(false);
    expectation.demand(5);
    expect(expectation.isMet).toBe(true);
  });

  it('is not met by another one', () => {
    const expectation = new Expectation([3]);
    expect(() => expectation.demand(4)).toThrow(
      expect.objectContaining({
        code: 'PRECONDITION_FAILED',
        details: { current_version: 4 },
        message: 'The resource is at version 4, not at the expected version. Read the resource again.',
      }),
    );
    expect(expectation.isMet).toBe(false);
    expect(() => new Expectation([]).demand(1)).toThrow(expect.objectContaining({ code: 'PRECONDITION_FAILED' }));
  });

  it('that a change did not look at is a fault', () => {
    const expectation = new Expectation([3]);
    expect(() => expectation.demand(null)).toThrow('A change did not look at the version that its caller expects.');
    expect(expectation.isMet).toBe(false);
  });
});

describe('the locks of a change', () => {
  it('are taken in the order of their tables', () => {
    const order = new LockOrder();
    order.take('organizations', { id: 'a' });
    order.take('workspaces', { id: 'a' });
    order.take('workspaces', { id: 'b' });
    expect(() => order.take('organizations', { id: 'b' })).toThrow(
      'A change locks organizations after workspaces: see the order of locks.',
    );
  });

  it('may be taken again', () => {
    const order = new LockOrder();
    order.take('organizations', { id: 'a', name: 'x' });
    order.take('sso_codes', { hash: 'h' });
    order.take('organizations', { id: 'a' });
    order.take('sso_codes', { hash: 'h' });
    expect(() => order.take('organizations', { hash: 'h' })).toThrow('A change locks organizations after sso_codes');
    expect(() => order.take('invitations')).toThrow('A change locks invitations after sso_codes');
  });
});

describe('a row that is written', () => {
  it('is known afterwards', () => {
    const written = new Written<{ a: number } | null>();
    expect(() => written.row).toThrow('A row was read before it was written.');
    written.settle({ a: 1 });
    expect(written.row).toEqual({ a: 1 });
    written.settle(null);
    expect(written.row).toBeNull();
  });
});

const shapesOf = (writes: readonly Write[]): string[][] => {
  const batch = new Batch();
  for (const one of writes) batch.add(one);
  expect(batch.isEmpty).toBe(writes.length === 0);
  const statements = batch.take().map((parts) => parts.map(({ does, table }) => `${does} ${table ?? ''}`.trim()));
  expect(batch.isEmpty).toBe(true);
  expect(batch.take()).toEqual([]);
  return statements;
};

describe('the writes of a change', () => {
  const app = insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' });
  const shownApp = insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' }, { into: new Written() });
  const rename = update('apps', { name: 'm' }, { where: { id: 'a' } });
  const required = update('apps', { name: 'm' }, { where: { id: 'a' }, orElse: missing });
  const workspace = update('workspaces', { name: 'm' }, { where: { id: 'w' } });
  const shownWorkspace = update('workspaces', { name: 'm' }, { where: { id: 'w' }, into: new Written() });
  const requiredWorkspace = update('workspaces', { name: 'm' }, { where: { id: 'w' }, orElse: missing });
  const gone = remove('apps', { where: { id: 'a' } });
  const lock: Write = { shape: 'lock', text: () => 'select 1', values: [], does: 'lock', table: null, orElse: missing };
  const record: Write = { ...lock, does: 'record', orElse: undefined };
  const other = write(statement`select 1`);

  it.each<[string, Write[], string[][]]>([
    ['nothing', [], []],
    ['rows of one table', [app, app], [['insert apps', 'insert apps']]],
    ['rows of two tables', [app, workspace], [['insert apps', 'update workspaces']]],
    ['a row and its change', [app, rename], [['insert apps'], ['update apps']]],
    ['a change and a new row of the table', [rename, app], [['update apps'], ['insert apps']]],
    ['two changes of a table', [rename, rename], [['update apps'], ['update apps']]],
    ['locks and a change', [lock, lock, rename], [['lock', 'lock', 'update apps']]],
    ['a lock after a change', [rename, lock], [['update apps'], ['lock']]],
    ['two that require a row', [required, requiredWorkspace], [['update apps'], ['update workspaces']]],
    ['one that requires a row after a lock', [lock, required], [['lock', 'update apps']]],
    ['one that requires a row, and one that does not', [required, workspace], [['update apps', 'update workspaces']]],
    ['one that does not, and one that does', [workspace, required], [['update workspaces', 'update apps']]],
    ['two that return a row', [shownApp, shownWorkspace], [['insert apps'], ['update workspaces']]],
    ['one that returns a row', [shownApp, workspace], [['insert apps', 'update workspaces']]],
    ['a removal after a lock', [lock, gone], [['lock', 'delete apps']]],
    ['a removal after a change', [workspace, gone], [['update workspaces'], ['delete apps']]],
    ['a change after a removal', [gone, workspace], [['delete apps'], ['update workspaces']]],
    ['a hand-written one', [app, other, app], [['insert apps'], ['other'], ['insert apps']]],
    ['its records', [gone, record, record], [['delete apps', 'record', 'record']]],
    ['its records after a hand-written one', [other, record], [['other', 'record']]],
  ])('are as few statements as can be: %s', (_title, writes, statements) => {
    expect(shapesOf(writes)).toEqual(statements);
  });
});

describe('writes in one statement', () => {
  const sql = new Sql({} as pg.Pool);
  const shown = new Written<{ id: string }>();
  const name = insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' });

  it('have their values one after the other, and locks come first', () => {
    const locked: Write = {
      shape: 'lock',
      text: (first) => `select 1 from users t where t.id = $${first} for share`,
      values: ['u'],
      does: 'lock',
      table: null,
      orElse: missing,
    };
    const { query, wants } = compose(sql, [name, locked]);
    expect(query.text).toBe(
      'with p0 as (select 1 from users t where t.id = $1 for share), ' +
        'p1 as (insert into apps as t (id, org_id, workspace_id, name) select $2, $3, $4, $5 ' +
        'where exists (select from p0)) select exists (select from p0)',
    );
    expect(query.values).toEqual(['u', 'a', 'o', 'w', 'n']);
    expect(wants).toBe(true);
    expect(compose(sql, [name]).wants).toBe(false);
  });

  it('fail when a row is missing that one of them requires, and pass on what was written', () => {
    const rows = update('apps', { name: 'm' }, { where: { id: 'a' }, orElse: missing, into: shown as never });
    const composed = compose(sql, [rows]);
    const { properties } = tableOf('apps');
    expect(() => composed.accept([false, ...properties.map(() => null)])).toThrow('missing');
    expect(() => shown.row).toThrow();
    composed.accept([true, ...properties]);
    expect(shown.row).toMatchObject({ id: 'id', name: 'name', workspaceId: 'workspaceId' });
  });

  it('tell of no row where none was required', () => {
    const unsettled = new Written<never>();
    const composed = compose(sql, [update('apps', { name: 'm' }, { where: { id: 'a' }, into: unsettled as never })]);
    composed.accept([false]);
    expect(() => unsettled.row).toThrow();
  });
});

describe('the text of a write', () => {
  it('inserts the values that are given', () => {
    const row = insert('apps', {
      id: 'a',
      orgId: 'o',
      workspaceId: 'w',
      name: 'n',
      description: undefined,
      metadata: { b: 1 },
    });
    expect(row.text(3, null)).toBe(
      'insert into apps as t (id, org_id, workspace_id, name, metadata) values ($3, $4, $5, $6, $7)',
    );
    expect(row.values).toEqual(['a', 'o', 'w', 'n', '{"b":1}']);
  });

  it('changes rows, and the time of their last change', () => {
    const changed = update('apps', { name: 'm', description: null }, { where: { id: 'a', createdBy: null } });
    expect(changed.text(2, 'x')).toBe(
      'update apps t set name = $2, description = $3, updated_at = clock_timestamp() ' +
        'where t.id = $4 and t.created_by is null and x returning 1',
    );
    expect(changed.values).toEqual(['m', null, 'a']);
    expect(update('apps', {}, { where: { id: 'a' } }).text(1, null)).toBe(
      'select 1 from apps t where t.id = $1 for no key update',
    );
    expect(update('releases', { notes: 'n' }, { where: { id: 'a' } }).text(1, null)).toBe(
      'update releases t set notes = $1 where t.id = $2 returning 1',
    );
  });

  it('removes rows', () => {
    const removed = remove('apps', { where: { orgId: 'o', id: 'a' } });
    expect(removed.text(5, null)).toBe('delete from apps t where t.org_id = $5 and t.id = $6 returning 1');
    expect(removed.text(1, 'x')).toBe('delete from apps t where t.org_id = $1 and t.id = $2 and x returning 1');
    expect(removed.values).toEqual(['o', 'a']);
  });

  it('never means all rows, or a column that there is not', () => {
    expect(() => remove('apps', { where: {} })).toThrow('Nothing says which rows of apps are meant.');
    expect(() => remove('apps', { where: { id: undefined } as never })).toThrow('Nothing says which rows');
    expect(() => remove('apps', { where: { nope: 1 } as never })).toThrow("apps has no column for 'nope'.");
  });

  it('differs from others by its shape, not by its values', () => {
    const one = update('apps', { name: 'a' }, { where: { id: 'a' } });
    expect(update('apps', { name: 'b' }, { where: { id: 'b' } }).shape).toBe(one.shape);
    const different = [
      one,
      update('apps', { description: 'b' }, { where: { id: 'b' } }),
      update('apps', { name: 'a' }, { where: { name: 'b' } }),
      update('apps', { name: 'a' }, { where: { id: 'a', createdBy: null } }),
      update('apps', { name: 'a' }, { where: { id: 'a', createdBy: 'u' } }),
      update('apps', { name: 'a' }, { where: { id: 'a' }, into: new Written() }),
      update('releases', { id: 'a' }, { where: { id: 'a' } }),
      remove('apps', { where: { id: 'a' } }),
      remove('apps', { where: { name: 'a' } }),
      remove('releases', { where: { id: 'a' } }),
      insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' }),
      insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' }, { into: new Written() }),
      insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n', createdBy: 'u' }),
    ];
    expect(new Set(different.map(({ shape }) => shape)).size).toBe(different.length);
  });

  it('of a template has its values as parameters', () => {
    const made = (id: number) => statement`select ${id}, ${'x'} from t`;
    expect(made(1)).toEqual({ text: 'select $1, $2 from t', values: [1, 'x'] });
    expect(made(2)).toEqual({ text: 'select $1, $2 from t', values: [2, 'x'] });
    expect(statement`select 1`).toEqual({ text: 'select 1', values: [] });
    const own = write(made(3));
    expect([own.text(9, 'x'), own.values, own.does, own.table]).toEqual([
      'select $1, $2 from t',
      [3, 'x'],
      'other',
      null,
    ]);
  });
});

describe('many rows of a table', () => {
  const inserted = bulkInsert('t', { a: 'text', b: 'int' });
  const rows = (given: Parameters<typeof inserted.write>[0]) => inserted.write(given);

  it('are written by one text, with an array for each column', () => {
    expect(inserted.text).toBe('insert into t (a, b) select * from unnest($1::text[], $2::int[])');
    expect(
      inserted.parameters([
        { a: 'x', b: 1 },
        { a: 'y', b: 2 },
      ]),
    ).toEqual([
      ['x', 'y'],
      [1, 2],
    ]);
  });

  it('are a part of a change, and a single one is written as it is', () => {
    const one = rows([{ a: 'x', b: 1 }]);
    expect(one.text(3, 'c')).toBe('insert into t (a, b) select $3::text, $4::int where c');
    expect(one.values).toEqual(['x', 1]);
    const two = rows([
      { a: 'x', b: 1 },
      { a: 'y', b: 2 },
    ]);
    expect(two.text(3, null)).toBe('insert into t (a, b) select * from unnest($3::text[], $4::int[])');
    expect(two.values).toEqual([
      ['x', 'y'],
      [1, 2],
    ]);
    expect([one.does, two.does, one.table]).toEqual(['record', 'record', null]);
    expect(one.shape).not.toBe(two.shape);
    expect(bulkInsert('u', { a: 'text' }).write([{ a: 'x' }]).shape).not.toBe(one.shape);
  });

  it('are given by their properties', () => {
    const made = bulkInsertOf('releases', { id: 'text', notes: 'text', metadata: 'jsonb' });
    const given = { orgId: 'o', workspaceId: 'w', appId: 'a', number: 1, version: '1' };
    expect(
      made([
        { ...given, id: 'a', metadata: { x: 1 } },
        { ...given, id: 'b', notes: 'n' },
      ]),
    ).toEqual({
      text: 'insert into releases (id, notes, metadata) select * from unnest($1::text[], $2::text[], $3::jsonb[])',
      values: [
        ['a', 'b'],
        [null, 'n'],
        ['{"x":1}', null],
      ],
    });
  });
});

describe('a table', () => {
  it('is described once', () => {
    const table = tableOf('releases');
    expect(tableOf('releases')).toBe(table);
    expect(table).toMatchObject({ name: 'releases', touched: null, columns: { appId: 'app_id' } });
    expect([...table.json]).toEqual(['metadata']);
    expect(table.properties.slice(0, 3)).toEqual(['id', 'orgId', 'workspaceId']);
    expect(table.selected).toMatch(/^t\.id, t\.org_id, t\.workspace_id, /);
    expect(table.named).toMatch(/^t\.id as "id", t\.org_id as "orgId", /);
    expect(tableOf('apps').touched).toBe('updated_at');
  });
});

it('what a record is about is looked for where its kind of resource is', () => {
  expect(RESOURCE_IS_THERE).toMatch(
    /^case r\.resource_type when 'organization' then exists \(select from organizations/,
  );
  expect(RESOURCE_IS_THERE).toMatch(/ else false end$/);
  expect(RESOURCE_IS_THERE).not.toContain("when 'session'");
});
