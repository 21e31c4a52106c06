import type pg from 'pg';
import { kindOfId, newId } from '../../src/kernel/ids.ts';
import type { IdKind } from '../../src/kernel/resources.ts';

interface UniqueColumn {
  index: string;
  column: string;
  position: number;
  type: string;
  parent: string | null;
}

const UNIQUE = `select i.indexrelid::text as index, a.attname as column, k.position,
    format_type(a.atttypid, null) as type,
    (select c.confrelid::regclass::text from pg_constraint c where c.contype = 'f' and c.conrelid = i.indrelid
      and c.conkey = array[a.attnum]) as parent
  from pg_index i cross join lateral unnest(i.indkey::int[]) with ordinality k(attnum, position)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  where i.indrelid = $1::regclass and i.indisunique and not i.indisprimary order by 1, k.position desc`;

export interface CloneOptions {
  /** Condition that finds the row to copy, with `$1`… for `values`. */
  where: string;
  values: unknown[];
  /** Foreign keys that must differ from copy to copy, e.g. `user_id` of a membership: their rows are copied too. */
  fresh?: readonly string[];
  /** Columns in which the copies differ from the row. */
  set?: Readonly<Record<string, unknown>>;
}

/**
 * The row factory: copies one existing row `count` times within the caller's transaction, each copy with a new id and
 * new values where a unique index wants them. A new required column therefore needs no edit here. @returns the new ids,
 * in order
 */
export async function cloneRows(
  db: pg.ClientBase,
  table: string,
  count: number,
  { where, values, fresh, set }: CloneOptions,
): Promise<string[]> {
  const { rows } = await db.query<{ row: Record<string, unknown> }>(
    `select to_jsonb(t) as row from ${table} t where ${where} limit 1`,
    values,
  );
  const original = rows[0]?.row;
  if (!original)
    throw new Error(`There is no row of ${table} to copy: test/support/lists.ts says where it is looked for.`);
  const uniques = (await db.query<UniqueColumn>(UNIQUE, [table])).rows;
  const kind = kindOfId(String(original.id)) as IdKind;
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const id = newId(kind);
    // what refers to itself refers to itself again
    const own = Object.entries(original).flatMap(([column, value]) => (value === original.id ? [[column, id]] : []));
    const changes: Record<string, unknown> = {
      ...Object.fromEntries(own),
      ...(original.is_default === true ? { is_default: false } : {}),
    };
    for (const index of new Set(uniques.map((unique) => unique.index))) {
      const columns = uniques.filter((unique) => unique.index === index);
      const varied =
        columns.find(({ column }) => fresh?.includes(column)) ?? columns.find(({ parent }) => parent === null);
      if (!varied || columns.some(({ column }) => column in changes)) continue;
      // a unique index lets any number of rows have none
      if (original[varied.column] === null) continue;
      changes[varied.column] = await anew(db, table, varied, original[varied.column], id);
    }
    await db.query(`insert into ${table} select r.* from jsonb_populate_record(null::${table}, $1::jsonb) r`, [
      JSON.stringify({ ...original, ...changes, ...set }),
    ]);
    ids.push(id);
  }
  // the service numbers releases by a counter of their app: it goes on behind those that were added
  if (table === 'releases')
    await db.query(
      `update apps a set last_release = greatest(a.last_release, (select max(r.number) from releases r
        where r.app_id = a.id)) where a.id = $1`,
      [original.app_id],
    );
  // and deployments by a counter of their slot
  if (table === 'deployments')
    await db.query(
      `update environment_slots s set last_number = (select max(d.number) from deployments d
        where d.environment_id = s.environment_id and d.app_id = s.app_id)
       where s.environment_id = $1 and s.app_id = $2`,
      [original.environment_id, original.app_id],
    );
  // a recipe has the document of its latest version, and the next one is numbered behind it
  if (table === 'organization_recipes')
    for (const id of ids)
      await db.query(
        `insert into organization_recipe_versions select r.* from organization_recipe_versions v,
          jsonb_populate_record(v, jsonb_build_object('id', $1::text, 'organization_recipe_id', $2::text)) r
         where v.organization_recipe_id = $3 and v.number = $4`,
        [newId('organization_recipe_version'), id, original.id, original.latest_version],
      );
  if (table === 'organization_recipe_versions')
    await db.query(
      `update organization_recipes r set latest_version = (select max(v.number) from organization_recipe_versions v
        where v.organization_recipe_id = r.id) where r.id = $1`,
      [original.organization_recipe_id],
    );
  // and an entitlement is one of the model with its identifier
  if (table === 'model_entitlements')
    for (const id of ids) {
      const [model] = await cloneRows(db, 'logical_models', 1, { where: 'id = $1', values: [original.model_id] });
      await db.query(
        `update model_entitlements e set model_id = m.id, logical_model_id = m.logical_model_id
         from logical_models m where m.id = $1 and e.id = $2`,
        [model, id],
      );
    }
  return ids;
}

async function anew(
  db: pg.ClientBase,
  table: string,
  { column, type, parent }: UniqueColumn,
  value: unknown,
  id: string,
): Promise<unknown> {
  if (parent) return (await cloneRows(db, parent, 1, { where: 'id = $1', values: [value] }))[0];
  if (type === 'integer' || type === 'bigint') {
    const { rows } = await db.query<{ next: number }>(`select max(${column})::int + 1 as next from ${table}`);
    return rows[0]!.next;
  }
  if (column.includes('hash')) return `${id.toLowerCase()}`;
  return `${String(value).slice(0, 30)}-${id.slice(-12).toLowerCase()}`;
}

/** Runs `work` in one transaction of a connection of its own. */
export async function inTransaction<T>(pool: pg.Pool, work: (db: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

interface Table {
  name: string;
  columns: string[];
}

const known = new WeakMap<pg.Pool, Promise<Table[]>>();

/**
 * Tables that hold data of tenants; those of activity are left out because refusals are recorded there, samples and
 * nodes because they come by themselves.
 */
function tables(pool: pg.Pool): Promise<Table[]> {
  const found = known.get(pool) ?? readTables(pool);
  known.set(pool, found);
  return found;
}

async function readTables(pool: pg.Pool): Promise<Table[]> {
  const { rows } = await pool.query<Table>(
    `select table_name as name, array_agg(column_name::text) as columns from information_schema.columns
     where table_schema = 'public' and table_name !~ '^(activity|storage_samples|_prisma|nodes$)'
     group by 1 order by 1`,
  );
  return rows;
}

/** Condition on a row `t` that belongs to the organization `$1`; `null` for tables without such rows. */
function ofOrganization({ name, columns }: Table): string | null {
  if (columns.includes('org_id')) return 't.org_id = $1';
  if (name === 'users') return 't.home_org_id = $1';
  return name === 'organizations' ? 't.id = $1' : null;
}

/**
 * A checksum per table over all rows of an organization, its people included: equal before and after means that nothing
 * was touched.
 */
export async function checksums(pool: pg.Pool, orgId: string): Promise<Record<string, string>> {
  const sums = (await tables(pool)).flatMap((table) => {
    const condition = ofOrganization(table);
    return condition ? [checksumOf(table, condition)] : [];
  });
  return summed(pool, sums, [orgId]);
}

/** A checksum per table over all rows of the database. */
export async function databaseChecksums(pool: pg.Pool): Promise<Record<string, string>> {
  return summed(
    pool,
    (await tables(pool)).map((table) => checksumOf(table, 'true')),
  );
}

/** The tables whose rows differ between two {@link databaseChecksums}: none when nothing was touched. */
export const changedTables = (before: Record<string, string>, after: Record<string, string>): string[] =>
  Object.keys({ ...before, ...after }).filter((table) => before[table] !== after[table]);

/** What the service itself changes at any moment, while nobody asks for anything. */
const moving: Readonly<Record<string, string>> = {
  sessions: '{last_used_at}',
  webhooks: '{position_xid,position_seq,begun_snapshot,begun_xid,failing_since}',
  webhook_deliveries: '{status,tries,attempts,due_at,finished_at}',
  audit_streams:
    '{position_xid,position_id,position_at,begun_snapshot,begun_xid,last_sequence,gone_before,failing_since}',
  audit_stream_deliveries: '{status,tries,attempts,due_at,finished_at}',
};

const checksumOf = ({ name }: Table, condition: string): string => {
  const row = name in moving ? `(to_jsonb(t) - '${moving[name]}'::text[])::text` : 't::text';
  return `select '${name}' as name, count(*) || ' ' || md5(coalesce(string_agg(${row}, E'\\n' order by ${row}), ''))
    as sum from ${name} t where ${condition}`;
};

async function summed(pool: pg.Pool, sums: readonly string[], values: unknown[] = []): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ name: string; sum: string }>(sums.join(' union all '), values);
  return Object.fromEntries(rows.map(({ name, sum }) => [name, sum]));
}

/** Every identifier of an organization's rows. */
export async function idsOf(pool: pg.Pool, orgId: string): Promise<Set<string>> {
  const having = (await tables(pool)).flatMap((table) => {
    const condition = table.columns.includes('id') && table.name !== 'organizations' ? ofOrganization(table) : null;
    return condition ? [`select t.id::text as id from ${table.name} t where ${condition}`] : [];
  });
  const { rows } = await pool.query<{ id: string }>(having.join(' union all '), [orgId]);
  return new Set([orgId, ...rows.map(({ id }) => id).filter((id) => id.length > 6)]);
}
