import { runMigrations } from 'graphile-worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { quietLogger } from '../../support/quiet-logger.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const TABLES = `select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
    a.attgenerated, pg_get_expr(d.adbin, d.adrelid), c.relrowsecurity
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'c', 'v') order by c.relname, a.attnum`;
const CONSTRAINTS = `select c.relname, pg_get_constraintdef(k.oid) as rule
  from pg_constraint k join pg_class c on c.oid = k.conrelid where k.connamespace = $1::regnamespace order by 1, 2`;
const INDEXES = `select tablename, regexp_replace(indexdef, '^.* USING ', '') as rule,
  indexdef like '%UNIQUE%' as unique
  from pg_indexes where schemaname = $1 and indexname not in ('jobs_turn_index', 'jobs_front_index') order by 1, 2`;
const FUNCTIONS =
  'select pg_get_functiondef(oid) as text from pg_proc where pronamespace = $1::regnamespace order by 1';
const MIGRATIONS = (schema: string) => `select id, breaking from ${schema}.migrations order by id`;

/** A function without comments and notifications, as if it were in the schema of the service. */
const essence = ({ text }: { text: string }) =>
  text
    .replaceAll(/^ *--.*$/gm, '')
    .replaceAll(/perform pg_notify\([^;]*;/g, '')
    .replaceAll(/if v_job\.revision = 0 then\s*end if;/g, '')
    .replaceAll('library', 'jobs')
    .replaceAll(/\s+/g, ' ');

it('is what the library would make of an empty database, but for notifications and the indexes of turns', async () => {
  const opened = openDatabase({ url: database.url, poolSize: 3, logger: quietLogger });
  const { pool } = opened;
  try {
    await runMigrations({ pgPool: pool, schema: 'library' });
    const of = async (text: string, schema: string) => (await pool.query(text, [schema])).rows as { text: string }[];
    for (const text of [TABLES, CONSTRAINTS, INDEXES])
      expect(await of(text, 'jobs')).toEqual(await of(text, 'library'));
    const functions = async (schema: string) => (await of(FUNCTIONS, schema)).map(essence);
    expect(await functions('jobs')).toEqual(await functions('library'));
    expect((await of(FUNCTIONS, 'jobs')).map(({ text }) => text).join()).not.toContain('notify');
    expect((await pool.query(MIGRATIONS('jobs'))).rows).toEqual((await pool.query(MIGRATIONS('library'))).rows);
  } finally {
    await opened.close();
  }
});
