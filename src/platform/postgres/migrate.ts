import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { WITHOUT_TIMEOUTS } from './session-limits.ts';

/** The advisory lock of Prisma's own engine, so that the engine and this code wait for each other. */
const MIGRATION_LOCK = 72_707_369;

/** The history table of Prisma's own engine, so that both agree about the applied migrations. */
const HISTORY_TABLE = `create table if not exists _prisma_migrations (
  id varchar(36) primary key not null,
  checksum varchar(64) not null,
  finished_at timestamptz,
  migration_name varchar(255) not null,
  logs text,
  rolled_back_at timestamptz,
  started_at timestamptz not null default now(),
  applied_steps_count integer not null default 0
)`;

/** A migration of the project. */
export interface Migration {
  /** Name of its folder: UTC time stamp, underscore, subject. */
  name: string;
  sql: string;
  /** SHA-256 of the script, hexadecimal. */
  checksum: string;
}

/** All migrations of a folder in the order in which they apply. */
export function readMigrations(dir: string): Migration[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .sort()
    .filter((name) => existsSync(path.join(dir, name, 'migration.sql')))
    .map((name) => {
      const sql = readFileSync(path.join(dir, name, 'migration.sql'), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    });
}

/**
 * Applies the migrations that the database has not seen. Several processes may call this at once: one works, the others
 * wait. Each script commits together with its row in the history, so a killed run leaves either both or neither.
 * @param onNext is told of each one before it is applied: how many the database has, of how many
 * @returns the names of those applied now
 * @throws Error when a migration was changed after it was applied, its script fails (named in the message), or the
 * database has one that the folder lacks, so it belongs to a newer version
 */
export async function migrate(
  url: string,
  dir: string,
  onNext: (progress: { done: number; total: number }) => void = () => undefined,
): Promise<string[]> {
  const migrations = readMigrations(dir);
  const client = new pg.Client({ connectionString: url, application_name: 'migrate', connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const done: string[] = [];
    for (;;) {
      const name = await patiently(client, () => applyNext(client, migrations, onNext));
      if (name === undefined) return done;
      done.push(name);
    }
  } finally {
    await client.end(); // also ends a failed transaction
  }
}

/**
 * How many migrations the database has, and which it lacks. It changes nothing.
 * @throws Error when {@link migrate} would for the same reason
 */
export async function migrationState(url: string, dir: string): Promise<{ applied: number; pending: string[] }> {
  const migrations = readMigrations(dir);
  const client = new pg.Client({ connectionString: url, application_name: 'migrate', connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    const { rows } = await client.query<{ there: boolean }>(
      `select to_regclass('_prisma_migrations') is not null as there`,
    );
    const applied = rows[0]?.there ? await readHistory(client) : new Map<string, string>();
    refuseNewer(applied, migrations);
    const pending = migrations.filter((migration) => !isApplied(migration, applied)).map(({ name }) => name);
    return { applied: applied.size, pending };
  } finally {
    await client.end();
  }
}

/**
 * Applies, within the caller's transaction, those migrations of the folder that another database has.
 * @throws Error when the folder lacks one, or has another script under its name
 */
export async function applyAll(
  client: pg.Client,
  dir: string,
  wanted: readonly Pick<Migration, 'name' | 'checksum'>[],
): Promise<void> {
  const migrations = readMigrations(dir);
  const applied = new Map(wanted.map(({ name, checksum }) => [name, checksum]));
  refuseNewer(applied, migrations);
  await client.query(HISTORY_TABLE);
  for (const migration of migrations) if (isApplied(migration, applied)) await apply(client, migration);
}

/**
 * How long a script waits for a table that others use. Everything else that needs the table waits behind it, so it then
 * pauses for a while.
 */
const LOCK_TIMEOUT_SECONDS = 3;
const ATTEMPTS = 200;
const PAUSE_MS = 1_000;
/** `lock_not_available`, `deadlock_detected`. */
const IS_BUSY = /^(55P03|40P01)$/;

async function patiently<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const { code } = ((error as Error).cause ?? error) as { code?: string };
      if (attempt === ATTEMPTS || !IS_BUSY.test(code ?? '')) throw error;
      await client.query('rollback');
      await setTimeout(PAUSE_MS);
    }
  }
}

/**
 * The lock ends with the transaction, not with the session: this works through a transaction pooler, and after a kill.
 */
async function applyNext(
  client: pg.Client,
  migrations: readonly Migration[],
  onNext: (progress: { done: number; total: number }) => void,
): Promise<string | undefined> {
  await client.query('begin');
  // the role may have limits, which are for requests
  await client.query(WITHOUT_TIMEOUTS);
  // the server notices within a second when this process is killed, even while a statement runs
  await client.query(`set local client_connection_check_interval = '1s'`);
  await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  await client.query(HISTORY_TABLE);
  const applied = await readHistory(client);
  refuseNewer(applied, migrations);
  const pending = migrations.filter((migration) => !isApplied(migration, applied));
  const [next] = pending;
  if (next) {
    onNext({ done: migrations.length - pending.length, total: migrations.length });
    await apply(client, next);
  }
  await client.query('commit');
  return next?.name;
}

async function readHistory(client: pg.Client): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ migration_name: string; checksum: string }>(
    'select migration_name, checksum from _prisma_migrations where finished_at is not null and rolled_back_at is null',
  );
  return new Map(rows.map((row) => [row.migration_name, row.checksum]));
}

function refuseNewer(applied: ReadonlyMap<string, string>, migrations: readonly Migration[]): void {
  const known = new Set(migrations.map(({ name }) => name));
  const newer = [...applied.keys()].filter((name) => !known.has(name)).sort();
  if (newer.length === 0) return;
  throw new Error(
    `The database was migrated by a newer version of the service (${newer.at(-1)}): ` +
      'start that version, or a newer one.',
  );
}

function isApplied({ name, checksum }: Migration, applied: ReadonlyMap<string, string>): boolean {
  const known = applied.get(name);
  if (known !== undefined && known !== checksum) {
    throw new Error(
      `The migration ${name} was changed after it was applied to this database. ` +
        'Restore its script and put the change into a new migration.',
    );
  }
  return known !== undefined;
}

async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  await client.query(`set local lock_timeout = '${LOCK_TIMEOUT_SECONDS}s'`);
  try {
    await client.query(sql);
  } catch (cause) {
    throw new Error(`The migration ${name} failed: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
  await client.query(
    `insert into _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
     values ($1, $2, $3, now(), clock_timestamp(), 1)`,
    [randomUUID(), checksum, name],
  );
}
