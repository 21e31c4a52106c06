import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../../../src/platform/postgres/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { waitFor } from '../../support/wait.ts';

let database: TestDatabase;
let dir: string;

beforeEach(async () => {
  database = await createTestDatabase({ template: 'template0' });
  dir = await mkdtemp(path.join(tmpdir(), 'migrations-'));
});

afterEach(async () => {
  await database.drop();
  await rm(dir, { recursive: true });
});

async function write(name: string, sql: string): Promise<void> {
  await mkdir(path.join(dir, name), { recursive: true });
  await writeFile(path.join(dir, name, 'migration.sql'), sql);
}

async function query<R extends pg.QueryResultRow>(sql: string): Promise<R[]> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<R>(sql);
  await client.end();
  return rows;
}

describe('migrate', () => {
  it('applies scripts in the order of their names, and each only once', async () => {
    await write('2_fill', `insert into a select 'x'`);
    await write('1_make', 'create table a (b text)');
    expect(await migrate(database.url, dir)).toEqual(['1_make', '2_fill']);
    expect(await migrate(database.url, dir)).toEqual([]);
    expect(await query('select b from a')).toEqual([{ b: 'x' }]);
  });

  it('lets one of several nodes apply a migration while the others wait', async () => {
    await write('1_make', 'create table a (b text)');
    await write('2_fill', `select pg_sleep(0.05); insert into a select 'x'`);
    const done = await Promise.all([1, 2, 3].map(() => migrate(database.url, dir)));
    expect(done.flat().sort()).toEqual(['1_make', '2_fill']);
    expect(await query('select b from a')).toEqual([{ b: 'x' }]);
  });

  it('accepts function bodies and DO blocks with semicolons', async () => {
    await write(
      '1_f',
      'create function one() returns int language plpgsql as $$ begin return 1; end; $$; do $$ begin perform ' +
        'one(); end $$;',
    );
    await migrate(database.url, dir);
    expect(await query('select one()')).toEqual([{ one: 1 }]);
  });

  it('makes way for those who use a table, and tries again', async () => {
    await write('1_make', 'create table a (b text)');
    await migrate(database.url, dir);
    await write('2_widen', 'alter table a add column c text');
    const reader = new pg.Client({ connectionString: database.url });
    await reader.connect();
    await reader.query('begin; select * from a');
    const done = migrate(database.url, dir);
    const waits = async () =>
      (
        await query<{ n: number }>(
          `select count(*)::int as n from pg_locks where not granted and relation = 'a'::regclass`,
        )
      )[0]!.n;
    await waitFor(async () => expect(await waits()).toBe(1));
    // it lets go, although the table is still in use
    await waitFor(async () => expect(await waits()).toBe(0));
    await reader.query('commit');
    expect(await done).toEqual(['2_widen']);
    await reader.end();
  });

  it('refuses a migration that was changed after it was applied, naming it', async () => {
    await write('1_make', 'create table a (b text)');
    await migrate(database.url, dir);
    await write('1_make', 'create table a (b int)');
    await expect(migrate(database.url, dir)).rejects.toThrow('The migration 1_make was changed after it was applied');
  });

  it('refuses a database that a newer version has migrated, and changes nothing', async () => {
    await write('1_make', 'create table a (b text)');
    await write('3_newer', 'create table c (d text)');
    await migrate(database.url, dir);
    await rm(path.join(dir, '3_newer'), { recursive: true });
    await write('2_between', 'create table e (f text)');
    await expect(migrate(database.url, dir)).rejects.toThrow(
      /^The database was migrated by a newer version of the service \(3_newer\): start that version, or a newer one\.$/,
    );
    expect(await query(`select to_regclass('e') is null as untouched`)).toEqual([{ untouched: true }]);
  });

  it('leaves nothing of a script that fails, keeps those before it, and applies it once it is mended', async () => {
    await write('1_make', 'create table a (b text)');
    await write('2_bad', 'create table c (d text); select nonsense');
    await expect(migrate(database.url, dir)).rejects.toThrow(
      'The migration 2_bad failed: column "nonsense" does not exist',
    );
    expect(await query(`select to_regclass('a') is not null as a, to_regclass('c') is null as c`)).toEqual([
      { a: true, c: true },
    ]);
    await write('2_bad', 'create table c (d text)');
    expect(await migrate(database.url, dir)).toEqual(['2_bad']);
  });
});
