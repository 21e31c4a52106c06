import { describe, expect, it, test } from 'vitest';
import { forbiddenReach, tablesIn, tablesOf } from '../../scripts/sql-reach.mjs';

const tables = new Set(['users', 'workspaces', 'secrets', 'files']);
const models = { user: 'users', workspace: 'workspaces', secret: 'secrets', file: 'files' };

describe('the tables that SQL names', () => {
  it.each([
    ['select u.id from users u', ['users reads']],
    ['select 1 from users u join workspaces w on w.owner = u.id', ['users reads', 'workspaces reads']],
    ['select 1 from users u, workspaces w where true', ['users reads', 'workspaces reads']],
    ['insert into secrets (id) select id from users', ['secrets writes', 'users reads']],
    ['with gone as (delete from secrets returning id) select * from gone', ['secrets writes']],
    ['delete from secrets s using users u where u.id = s.owner', ['secrets writes', 'users reads']],
    ['update users u set name = w.name from workspaces w', ['users writes', 'workspaces reads']],
    ['update only users set name = null', ['users writes']],
    ['select 1 from users u for no key update', ['users reads']],
    ['SELECT 1 FROM "users" u', ['users reads']],
    ['select 1 from public.users', ['users reads']],
    ['select 1 from (users u join workspaces w on true)', ['users reads', 'workspaces reads']],
    ['select 1 from workspaces w, users as u', ['workspaces reads', 'users reads']],
    ['truncate users', ['users writes']],
    ['workspaces w join users u on true', ['workspaces reads', 'users reads']],
    ['select from gone', []],
    ['Folder for keys, files and unsent mail.', []],
    ['Names of the only users', []],
  ])('%s', (text, uses) => {
    expect(tablesIn(text, tables).map(({ table, writes }) => `${table} ${writes ? 'writes' : 'reads'}`)).toEqual(uses);
  });
});

test.each([
  ["tx.insert('secrets', row);", 'secrets writes'],
  ["tx.lock('users', { id }, 'update');", 'users reads'],
  ["await findRow(sql, 'workspaces', { id });", 'workspaces reads'],
  ["const reads = { kind: 'secret', from: 'secrets' };", 'secrets reads'],
  ['this.#deps.prisma.user.findFirst({});', 'users reads'],
  ['const text = `select 1 from secrets s`;', 'secrets reads'],
  ['const of = (table) => `select 1 from $' + "{table}`; of('users');", 'users reads'],
  ["const reads = { from: 'users u join gone g on true' };", 'users reads'],
])('a module names a table: %s', (code, use) => {
  expect(tablesOf(code, tables, models).map(({ table, writes }) => `${table} ${writes ? 'writes' : 'reads'}`)).toEqual([
    use,
  ]);
});

test('a sentence with a gap names no table', () => {
  const code = 'const to = (a, b) => `changed in $' + '{a} from $' + "{b}`; const rule = { source: 'secrets' };";
  expect(tablesOf(code, tables, models)).toEqual([]);
});

test('a use that nobody lends is refused, as is a loan that nobody needs, and a table without an owner', () => {
  const groups = {
    tenancy: { owns: ['users', 'workspaces'], lends: { users: { vault: 'names' }, workspaces: { live: 'places' } } },
    vault: { owns: ['secrets'], lends: {} },
  } as const;
  const modules = [
    { path: 'src/vault/secrets/a.js', code: "sql.read('select 1 from users u'); tx.update('users', {}, {});" },
    { path: 'src/tenancy/b.js', code: "sql.read('select 1 from users u join secrets s on true');" },
  ];
  expect(forbiddenReach(modules, groups, models)).toEqual([
    "sql-reach: nobody owns 'files'",
    "sql-reach: src/vault/secrets/a.js writes 'users' of tenancy, which does not lend it",
    "sql-reach: src/tenancy/b.js reads 'secrets' of vault, which does not lend it",
    'sql-reach: nobody needs the loan of workspaces to live',
  ]);
});
