import type pg from 'pg';

export interface Table {
  name: string;
  /** Those that can be written. */
  columns: string[];
}

const TABLES = `select c.relname as name,
    array_agg(quote_ident(a.attname) order by a.attnum) filter (where a.attgenerated = '') as columns
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  group by 1 order by 1`;

/** Tables of the service, and that of its migrations. */
export async function tablesOf(db: pg.ClientBase): Promise<Table[]> {
  return (await db.query<Table>(TABLES)).rows;
}

/** The rows of a table as texts, one for each row, sorted. */
export async function rowsOf(db: pg.ClientBase, { name, columns }: Table): Promise<string[]> {
  // an array has room for all of them: a function has at most 100 arguments
  const values = `array[${columns.map((column) => `quote_nullable(t.${column}::text)`).join(', ')}]`;
  const { rows } = await db.query<{ row: string }>(
    `select array_to_string(${values}, ', ') as row from "${name}" t order by 1`,
  );
  return rows.map(({ row }) => row);
}

/** The statements that write all rows into an empty database of the same schema, and set its sequences. */
export async function dumpRows(db: pg.ClientBase): Promise<string> {
  await db.query(`set time zone 'UTC'`);
  const statements: string[] = [];
  const empty: string[] = [];
  for (const table of await tablesOf(db)) {
    const rows = await rowsOf(db, table);
    if (rows.length === 0) {
      empty.push(table.name);
      continue;
    }
    const tuples = rows.map((row) => `(${row})`).join(',\n');
    statements.push(`insert into "${table.name}" (${table.columns.join(', ')}) values\n${tuples};\n`);
  }
  if (empty.length > 0) throw new Error(`Empty tables, to be seeded in test/upgrade/seed.ts: ${empty.join(', ')}.`);
  const { rows: sequences } = await db.query<{ name: string; value: string }>(
    `select sequencename as name, last_value::text as value from pg_sequences
     where schemaname = 'public' and last_value is not null order by 1`,
  );
  for (const { name, value } of sequences) statements.push(`select setval('${name}', ${value});\n`);
  return statements.join('\n');
}

/**
 * Writes dumped rows. No trigger runs: counters and versions stay those of the dump. Then the database counts
 * transactions up to the newest one in the rows, as it had when they were written: an event of a later transaction is
 * not delivered, and sums of activity that go further are made again.
 */
export async function loadRows(db: pg.ClientBase, sql: string): Promise<void> {
  const tables = (await tablesOf(db)).map(({ name }) => `"${name}"`);
  await db.query('set session_replication_role = replica');
  await db.query(`truncate ${tables.join(', ')}`);
  await db.query(sql);
  await db.query('set session_replication_role = origin');
  await db.query(`do $$
    declare newest bigint := (select max(xid::text::bigint) from events);
    begin
      if to_regclass('activity_fold') is not null then
        execute 'select greatest($1, max(xid::text::bigint)) from activity_fold' into newest using newest;
      end if;
      while pg_current_xact_id()::text::bigint <= newest loop commit; end loop;
    end $$`);
}
