import type pg from 'pg';
import { waitUntil } from './wait.ts';

/** All rows of a database, by table; tables that have none are left out. */
export type Content = ReadonlyMap<string, object[]>;

const LOCK_NOT_AVAILABLE = '55P03';

/** What the service and the job library know of the database itself, and what they keep in their memory. */
const KEPT = ['public._prisma_migrations', 'jobs.migrations', 'jobs._private_tasks'];

interface Table {
  name: string;
  /** Those that are written; others are generated. */
  columns: string;
}

const TABLES = `select format('%I.%I', s.nspname, t.relname) as name,
    (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
      where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
  from pg_class t join pg_namespace s on s.oid = t.relnamespace
  where s.nspname in ('public', 'jobs') and t.relkind in ('r', 'p') and not t.relispartition
    and format('%I.%I', s.nspname, t.relname) <> all($1)
  order by 1`;

const tablesOf = async (client: pg.ClientBase, kept: readonly string[]): Promise<Table[]> =>
  (await client.query<Table>(TABLES, [[...KEPT, ...kept]])).rows;

/** What a database holds. @param kept tables that {@link restore} shall leave alone */
export async function contentOf(client: pg.ClientBase, kept: readonly string[] = []): Promise<Content> {
  const content = new Map<string, object[]>();
  for (const { name } of await tablesOf(client, kept)) {
    const { rows } = await client.query<{ row: object }>(`select to_jsonb(t) as row from ${name} t`);
    if (rows.length > 0)
      content.set(
        name,
        rows.map(({ row }) => row),
      );
  }
  return content;
}

/**
 * Makes a database hold what it held before, in milliseconds: deletes are cheaper than `truncate` while tables are
 * small. Triggers do not run, so what they count is emptied as every table is. Sequences go on. Who writes at the same
 * time is waited for, and waits.
 */
export async function restore(client: pg.ClientBase, content: Content, kept: readonly string[] = []): Promise<void> {
  const tables = await tablesOf(client, kept);
  const inserts = tables.flatMap(({ name, columns }) => {
    const rows = content.get(name);
    const values = rows && client.escapeLiteral(JSON.stringify(rows));
    return values
      ? [`insert into ${name} (${columns}) select ${columns} from jsonb_populate_recordset(null::${name}, ${values})`]
      : [];
  });
  const statements = [
    'begin',
    'set local session_replication_role = replica',
    // less than PostgreSQL waits until it ends a deadlock: it might end work of the app
    `set local lock_timeout = '300ms'`,
    `lock table ${tables.map(({ name }) => name).join(', ')} in share row exclusive mode`,
    ...tables.map(({ name }) => `delete from ${name}`),
    ...inserts,
    'commit',
  ].join(';\n');
  const isDone = async () => {
    try {
      await client.query(statements);
      return true;
    } catch (error) {
      await client.query('rollback');
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      return false;
    }
  };
  await waitUntil(isDone, { what: 'the app to do nothing in the database for a moment' });
}
