import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { Batch } from '../../src/data/batch.ts';
import { compose } from '../../src/data/composed.ts';
import { Sql } from '../../src/data/sql.ts';
import { tableOf } from '../../src/data/tables.ts';
import { insert, remove, update, type Write, Written } from '../../src/data/writes.ts';

const missing = () => new Error('missing');
const lockOf = (id: string): Write => ({
  shape: 'lock',
  text: (first, when) => `select 1 from users t where t.id = $${first}${when ? ` and ${when}` : ''} for share`,
  values: [id],
  does: 'lock',
  table: null,
  orElse: () => new Error(`${id} is missing`),
});
const app = insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' });
const shownApp = insert('apps', { id: 'a', orgId: 'o', workspaceId: 'w', name: 'n' }, { into: new Written() });
const rename = update('apps', { name: 'm' }, { where: { id: 'a' } });
const required = update('apps', { name: 'm' }, { where: { id: 'a' }, orElse: missing });
const workspace = update('workspaces', { name: 'm' }, { where: { id: 'w' } });
const thread = update('threads', { title: 't' }, { where: { id: 't' }, orElse: missing });
const shownThread = update('threads', { title: 't' }, { where: { id: 't' }, into: new Written() });
const gone = remove('apps', { where: { id: 'a' } });

describe('what goes into one statement', () => {
  it.each<[string, Write[], string[]]>([
    ['a removal ends it, whatever was locked before', [lockOf('u'), gone, workspace], ['lock delete', 'update']],
    ['one of it returns its row', [shownApp, workspace, shownThread], ['insert update', 'update']],
    ['a lock comes before all changes', [lockOf('u'), rename, lockOf('v')], ['lock update', 'lock']],
    ['a new row does not follow a change of its table', [workspace, rename, app], ['update update', 'insert']],
    ['a new row follows a change of another', [workspace, app], ['update insert']],
    ['one of it requires a row', [required, workspace, thread], ['update update', 'update']],
    ['a table is changed once', [rename, workspace, rename], ['update update', 'update']],
    ['a removal comes alone but for locks', [lockOf('u'), workspace, gone], ['lock update', 'delete']],
  ])('%s', (_title, writes, statements) => {
    const batch = new Batch();
    for (const one of writes) batch.add(one);
    expect(batch.take().map((parts) => parts.map(({ does }) => does).join(' '))).toEqual(statements);
  });
});

describe('a statement of several writes', () => {
  const sql = new Sql({} as pg.Pool);
  const textOf = (...writes: Write[]): unknown => compose(sql, writes).query.text;
  const inserted = 'insert into apps as t (id, org_id, workspace_id, name) values ($1, $2, $3, $4)';

  it('asks for nothing where nothing is required', () => {
    const updated = 'update workspaces t set name = $5, updated_at = clock_timestamp() where t.id = $6 returning 1';
    expect(textOf(app, workspace)).toBe(`with p0 as (${inserted}), p1 as (${updated}) select `);
    expect(textOf(app)).toBe(`with p0 as (${inserted}) select `);
  });

  it('is another one where a row is required', () => {
    const updated = 'update apps t set name = $1, updated_at = clock_timestamp() where t.id = $2 returning 1';
    expect(textOf(rename)).toBe(`with p0 as (${updated}) select `);
    expect(textOf(required)).toBe(`with p0 as (${updated}) select exists (select from p0)`);
    expect(textOf(rename)).toBe(`with p0 as (${updated}) select `);
  });

  it('locks first and without conditions, then writes where all locks were taken', () => {
    expect(textOf(required, lockOf('u'), lockOf('v'), app)).toBe(
      'with p0 as (select 1 from users t where t.id = $1 for share), ' +
        'p1 as (select 1 from users t where t.id = $2 for share), ' +
        'p2 as (update apps t set name = $3, updated_at = clock_timestamp() where t.id = $4 and ' +
        'exists (select from p0) and exists (select from p1) returning 1), ' +
        'p3 as (insert into apps as t (id, org_id, workspace_id, name) select $5, $6, $7, $8 where ' +
        'exists (select from p0) and exists (select from p1) and exists (select from p2)) ' +
        'select exists (select from p0), exists (select from p1), exists (select from p2)',
    );
  });

  it('returns the row of the one that shows it, even where there is none', () => {
    const { selected } = tableOf('threads');
    expect(textOf(shownThread)).toBe(
      `with p0 as (update threads t set title = $1, updated_at = clock_timestamp() where t.id = $2 ` +
        `returning ${selected}) select exists (select from p0), p0.* from (select) one left join p0 on true`,
    );
    expect(compose(sql, [shownThread]).query.rowMode).toBe('array');
  });

  it('tells its writes of what they found, in their order', () => {
    const into = new Written<{ id: string }>();
    const shown = update('threads', { title: 't' }, { where: { id: 't' }, into: into as never });
    const statement = compose(sql, [app, shown, lockOf('u'), lockOf('v')]);
    const values = tableOf('threads').properties.map((property) => `the ${property}`);
    expect(() => statement.accept([false, true, true, ...values])).toThrow('u is missing');
    expect(() => statement.accept([true, false, true, ...values])).toThrow('v is missing');
    statement.accept([true, true, false, ...values]);
    expect(() => into.row).toThrow();
    statement.accept([true, true, true, ...values]);
    expect(into.row).toMatchObject({ id: 'the id', title: 'the title' });
    expect(statement.wants).toBe(true);
  });
});

it('no JSON is written as no value, and not as one that says so', () => {
  const where = { orgId: 'o', workspaceId: 'w', userId: 'u', connectionId: 'c' };
  expect(update('presences', { viewing: null }, { where }).values).toEqual([null, 'o', 'w', 'u', 'c']);
  expect(update('presences', { viewing: {} }, { where }).values[0]).toBe('{}');
});
