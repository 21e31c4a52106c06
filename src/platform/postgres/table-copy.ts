import pg from 'pg';

/** What a database is made of, apart from its rows. */
export interface DatabaseShape {
  /** In the order in which they were applied. */
  migrations: { name: string; checksum: string }[];
  tables: TableShape[];
  sequences: { name: string; value: string }[];
}

/** A table, or one that is divided into partitions. */
export interface TableShape {
  /** With its schema, quoted where it has to be. */
  name: string;
  /** Those that are not computed, in their order, quoted where they have to be. */
  columns: string[];
  partitions: { name: string; bounds: string }[];
}

/**
 * The history of migrations is written by them. Events carry positions of the server on which they were written. What
 * nodes have in common is that of another place: its first start enters its own, and its nodes are others.
 */
const NOT_COPIED = ['public._prisma_migrations', 'public.events', 'public.service_markers', 'public.nodes'];
const SCHEMAS = `('public', 'jobs')`;

const MIGRATIONS = `select migration_name as name, checksum from _prisma_migrations
  where finished_at is not null and rolled_back_at is null order by migration_name`;
const TABLES = `select format('%I.%I', n.nspname, c.relname) as name,
    array(select quote_ident(a.attname) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
      and not a.attisdropped and a.attgenerated = '' order by a.attnum) as columns,
    coalesce((select jsonb_agg(jsonb_build_object('name', format('%I.%I', pn.nspname, p.relname),
        'bounds', pg_get_expr(p.relpartbound, p.oid)) order by p.relname)
      from pg_inherits i join pg_class p on p.oid = i.inhrelid join pg_namespace pn on pn.oid = p.relnamespace
      where i.inhparent = c.oid), '[]') as partitions
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ${SCHEMAS} and c.relkind in ('r', 'p') and not c.relispartition order by 1`;
const SEQUENCES = `select format('%I.%I', schemaname, sequencename) as name, last_value::text as value from pg_sequences
  where schemaname in ${SCHEMAS} and last_value is not null order by 1`;
const FOREIGN_KEYS = `select format('%I.%I', n.nspname, c.relname) as table, quote_ident(k.conname) as name,
    pg_get_constraintdef(k.oid) as definition
  from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  where k.contype = 'f' and k.conparentid = 0 and n.nspname in ${SCHEMAS}`;

/**
 * Texts of values mean the same at both ends, and no limit of requests holds. All of it ends with the transaction: a
 * pooler may give other sessions the connection, and may give each transaction another one.
 */
const FOR_COPY = `set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
  set local bytea_output = 'hex'; set local extra_float_digits = 1; set local timezone = 'UTC';
  set local statement_timeout = 0;
  set local lock_timeout = 0; set local idle_in_transaction_session_timeout = 0`;

/** A fetch comes whole into memory, and a field may have 2 MiB: no size of rows before says how large the next are. */
const ROWS_AT_ONCE = 50;
const BATCH_CHARACTERS = 1024 * 1024;

/** A connection for one copy. */
export async function connectForCopy(url: string, applicationName: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: applicationName });
  await client.connect();
  return client;
}

async function begin(client: pg.Client, mode: string): Promise<void> {
  await client.query(`begin ${mode}; ${FOR_COPY}`);
  // PostgreSQL supports it since version 17
  await client.query(`select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'`);
}

/** Begins to read one state of the database, whatever is written meanwhile. It holds up no writer and no event. */
export const beginSnapshot = (client: pg.Client): Promise<void> =>
  begin(client, 'isolation level repeatable read read only');

/** Begins to fill a database. */
export const beginFill = (client: pg.Client): Promise<void> => begin(client, 'isolation level read committed');

/** The shape of the database of a connection. */
export async function shapeOf(client: pg.Client): Promise<DatabaseShape> {
  const ask = async <R extends object>(text: string) => (await client.query<R>(text)).rows;
  return {
    migrations: await ask(MIGRATIONS),
    tables: (await ask<TableShape>(TABLES)).filter(({ name }) => !NOT_COPIED.includes(name)),
    sequences: await ask(SEQUENCES),
  };
}

/** The rows of a table as texts, in batches of about a megabyte. */
export async function* rowsOf(client: pg.Client, { name }: TableShape): AsyncGenerator<string[], void, void> {
  await client.query(`declare copied no scroll cursor for select t::text as row from ${name} t`);
  let batch: string[] = [];
  let characters = 0;
  for await (const row of fetched(client)) {
    batch.push(row);
    characters += row.length;
    if (characters < BATCH_CHARACTERS) continue;
    yield batch;
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield batch;
  await client.query('close copied');
}

/** The rows of the cursor, one by one. */
async function* fetched(client: pg.Client): AsyncGenerator<string, void, void> {
  for (;;) {
    const { rows } = await client.query<{ row: string }>(`fetch ${ROWS_AT_ONCE} from copied`);
    if (rows.length === 0) return;
    for (const { row } of rows) yield row;
  }
}

/** Number of tables that a database has. */
export async function countTables(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*)::int as n from pg_tables where schemaname in ${SCHEMAS}`,
  );
  return rows[0]!.n;
}

/** A reference between tables, as it is written. */
interface ForeignKey {
  table: string;
  name: string;
  definition: string;
}

/**
 * Fills tables that migrations have just made, within the caller's transaction. Foreign keys are away meanwhile and are
 * checked at the end, and no trigger runs: the owner of the tables may do both, and rows come in any order.
 */
export class TableFill {
  readonly #client: pg.Client;
  readonly #tables: ReadonlyMap<string, TableShape>;
  readonly #shape: DatabaseShape;
  readonly #foreignKeys: readonly ForeignKey[];

  private constructor(client: pg.Client, shape: DatabaseShape, foreignKeys: readonly ForeignKey[]) {
    this.#client = client;
    this.#shape = shape;
    this.#tables = new Map(shape.tables.map((table) => [table.name, table]));
    this.#foreignKeys = foreignKeys;
  }

  /** @throws Error when the migrations made other tables than those that are to be filled */
  static async begin(client: pg.Client, shape: DatabaseShape): Promise<TableFill> {
    const made = (await shapeOf(client)).tables;
    const described = ({ name, columns }: TableShape) => `${name} (${columns.join(', ')})`;
    const other = shape.tables.find((table) => !made.some((one) => described(one) === described(table)));
    if (other) throw new Error(`The migrations of this version make no table ${described(other)}.`);
    const { rows } = await client.query<ForeignKey>(FOREIGN_KEYS);
    for (const { table, name } of rows) await client.query(`alter table ${table} drop constraint ${name}`);
    for (const table of shape.tables) await prepare(client, table, made.find(({ name }) => name === table.name)!);
    return new TableFill(client, shape, rows);
  }

  async add(table: string, rows: readonly string[]): Promise<void> {
    const shape = this.#tables.get(table);
    if (!shape) throw new Error(`The backup has rows of ${table}, which it does not describe.`);
    await this.#client.query(
      `insert into ${table} (${shape.columns.join(', ')}) overriding system value
       select ${shape.columns.map((column) => `(r).${column}`).join(', ')}
       from (select unnest($1::text[])::${table} as r offset 0) given`,
      [rows],
    );
  }

  /** Checks what the rows refer to, and sets the sequences. */
  async finish(): Promise<void> {
    for (const { table, name, definition } of this.#foreignKeys)
      await this.#client.query(`alter table ${table} add constraint ${name} ${definition}`);
    for (const { name } of this.#shape.tables) await this.#client.query(`alter table ${name} enable trigger user`);
    for (const { name, value } of this.#shape.sequences)
      await this.#client.query('select setval($1::regclass, $2::bigint)', [name, value]);
  }
}

/** Empties a table, and divides it as it was: migrations divide by the month in which they run. */
async function prepare(client: pg.Client, table: TableShape, made: TableShape): Promise<void> {
  await client.query(`truncate ${table.name}`);
  if (JSON.stringify(made.partitions) !== JSON.stringify(table.partitions)) {
    for (const { name } of made.partitions) await client.query(`drop table ${name}`);
    for (const { name, bounds } of table.partitions)
      await client.query(`create table ${name} partition of ${table.name} ${bounds}`);
  }
  await client.query(`alter table ${table.name} disable trigger user`);
}
