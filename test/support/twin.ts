import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { kindOfId, newId } from '../../src/kernel/ids.ts';
import { inTransaction } from './rows.ts';

type Row = Record<string, unknown>;

interface Table {
  name: string;
  /** Columns that name what a row lies in: places, and rows that it goes with. */
  within: string[];
  /** Tables that it refers to. */
  refersTo: string[];
  /** Those that are written; others are generated. */
  columns: string[];
  /** Of each unique index the columns that may be written anew. */
  unique: string[][];
}

/** A copy of a place with everything in it. */
export interface Twin {
  /** What each id of the original is in the copy. */
  ids: ReadonlyMap<string, string>;
  /** What stands in the copy's texts where the original's have the marker of its world. */
  marker: string;
}

/** What is kept of what was done there, and lies in no place. */
const LOGS = [
  'activity',
  'activity_sums',
  'activity_divided',
  'activity_fold',
  'activity_latencies',
  'activity_uses',
  'storage_samples',
  'events',
  'idempotency_keys',
  '_prisma_migrations',
  // a trigger of artifacts fills it
  'artifact_languages',
];
const PLACES = ['workspace_id', 'namespace_id', 'environment_id', 'app_id'];

const TABLES = `select t.relname as name,
    array(select a.attname::text from pg_attribute a where a.attrelid = t.oid and a.attnum > 0
      and (a.attname = any($1) or exists (
      select 1 from pg_constraint c where c.conrelid = t.oid and c.contype = 'f' and c.confdeltype = 'c'
        and c.conkey = array[a.attnum]))) as within,
    array(select distinct r.relname::text from pg_constraint c join pg_class r on r.oid = c.confrelid
      where c.conrelid = t.oid and c.contype = 'f' and c.confrelid <> t.oid) as "refersTo",
    array(select quote_ident(a.attname) from pg_attribute a where a.attrelid = t.oid and a.attnum > 0
      and not a.attisdropped and a.attgenerated = '') as columns,
    array(select jsonb_agg(a.attname) from pg_index i cross join lateral unnest(i.indkey::int[]) k(attnum)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum and a.atttypid = 'text'::regtype
        and a.attname not like '%\\_id'
      where i.indrelid = t.oid and i.indisunique and not i.indisprimary group by i.indexrelid) as unique
  from pg_class t join pg_namespace s on s.oid = t.relnamespace and s.nspname = 'public'
  where t.relkind in ('r', 'p') and not t.relispartition and t.relname <> all($2)`;

/**
 * Copies a place and everything in it, whatever tables there are: rows that name the place, and those that go with
 * them. The copy lies beside the original, in the same workspace or organization, and shares none of its ids and texts.
 */
export async function twinOf(pool: pg.Pool, placeId: string, marker: string): Promise<Twin> {
  return inTransaction(pool, async (db) => {
    // a row that a job changes meanwhile is one row
    await db.query('set transaction isolation level repeatable read');
    const { rows: tables } = await db.query<Table>(TABLES, [PLACES, LOGS]);
    const found = await rowsWithin(db, tables, placeId);
    const ids = new Map<string, string>();
    for (const { of, row } of found) {
      const kind = typeof row.id === 'string' ? kindOfId(row.id) : null;
      if (kind) ids.set(String(row.id), newId(kind));
      // what it is known by is no id of the service
      if (of.name === 'executions') ids.set(String(row.execution_id), newId('execution'));
    }
    const twin = { ids, marker: `tw${randomBytes(6).toString('hex')}` };
    // a table's rows at once, because they may refer to one another
    for (const table of inOrder(tables)) {
      const columns = table.columns.join(', ');
      const copies = found.filter(({ of }) => of === table).map(({ row }) => copyOf(row, table, twin, marker));
      await db.query(
        `insert into ${table.name} (${columns})
         select ${columns} from jsonb_populate_recordset(null::${table.name}, $1)`,
        [JSON.stringify(copies)],
      );
    }
    return twin;
  });
}

/** The place's own row, and every row that lies in it or goes with one that does. */
async function rowsWithin(db: pg.ClientBase, tables: readonly Table[], placeId: string) {
  const found: { of: Table; row: Row }[] = [];
  const seen = new Set<string>();
  const take = (of: Table, rows: readonly { row: Row }[]) => {
    const fresh = rows.filter(({ row }) => !seen.has(`${of.name} ${JSON.stringify(row)}`));
    for (const { row } of fresh) seen.add(`${of.name} ${JSON.stringify(row)}`);
    found.push(...fresh.map(({ row }) => ({ of, row })));
    return fresh;
  };
  const own = tables.find(({ name }) => name === `${kindOfId(placeId)}s`)!;
  let around = take(own, (await db.query<{ row: Row }>(rowsOf(own, ['id']), [[placeId]])).rows);
  while (around.length > 0) {
    const outer = around.flatMap(({ row }) => (typeof row.id === 'string' ? [row.id] : []));
    around = [];
    for (const table of tables)
      if (table.within.length > 0)
        around.push(...take(table, (await db.query<{ row: Row }>(rowsOf(table, table.within), [outer])).rows));
  }
  return found;
}

const rowsOf = ({ name }: Table, columns: readonly string[]): string =>
  `select to_jsonb(t) as row from ${name} t where ${columns.map((column) => `t.${column} = any($1)`).join(' or ')}`;

/** Tables that others refer to come first; of two that refer to each other, either. */
function inOrder(tables: readonly Table[]): Table[] {
  const ordered: Table[] = [];
  const seen = new Set<Table>();
  const place = (table: Table) => {
    if (seen.has(table)) return;
    seen.add(table);
    for (const name of table.refersTo) {
      const referred = tables.find((other) => other.name === name);
      if (referred) place(referred);
    }
    ordered.push(table);
  };
  for (const table of tables) place(table);
  return ordered;
}

function copyOf(row: Row, { unique }: Table, twin: Twin, marker: string): Row {
  const isId = (column: string) => column === 'id' || column.endsWith('_id');
  const anew = (value: unknown, key = ''): unknown => {
    if (typeof value === 'string')
      return twin.ids.get(value) ?? (isId(key) ? value : value.replaceAll(marker, twin.marker));
    if (Array.isArray(value)) return value.map((item) => anew(item));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, anew(inner, name)]));
  };
  const copy = anew(row) as Row;
  for (const columns of unique) {
    const [column] = columns.filter((name) => typeof row[name] === 'string');
    const isSame = columns.every((name) => copy[name] === row[name]);
    if (column && isSame) copy[column] = `${String(copy[column])}-${twin.marker}`;
  }
  return copy;
}
