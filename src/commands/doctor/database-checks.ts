import { compareKeys } from '../../access/shared-keys.ts';
import type { Config } from '../../config.ts';
import { Sql } from '../../data/sql.ts';
import { tables } from '../../generated/tables.ts';
import { EventLag } from '../../live/events/event-lag.ts';
import { migrationsDir } from '../../paths.ts';
import { troubledJobs } from '../../platform/jobs/jobs.ts';
import { RootKeys } from '../../platform/keys/root-keys.ts';
import type { Logger } from '../../platform/logger.ts';
import { isStoreOfService } from '../../platform/nodes/store-check.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { migrationState } from '../../platform/postgres/migrate.ts';
import { isPooled, refuseUnfitPooler } from '../../platform/postgres/pooler.ts';
import { Storage } from '../../platform/storage/storage.ts';
import { type Check, fail, ok, warn } from './finding.ts';
import { heartbeatsCheck } from './heartbeats-check.ts';
import { replicasCheck } from './replica-checks.ts';

const OLDEST_VERSION = 150_000;
const CLOCK_WARN_SECONDS = 1;
const CLOCK_FAIL_SECONDS = 30;
const LATE_SECONDS = 5;

const RIGHTS = `select current_setting('server_version_num')::int as version, current_setting('server_version') as name,
    current_user::text as role, has_database_privilege(current_database(), 'create') as "mayCreateSchemas",
    has_schema_privilege('public', 'create') as "mayCreateTables",
    pg_has_role(current_user, 'pg_read_all_stats', 'member') as "seesSessions",
    current_setting('max_connections')::int as "maxConnections"`;

interface Rights {
  version: number;
  name: string;
  role: string;
  mayCreateSchemas: boolean;
  mayCreateTables: boolean;
  seesSessions: boolean;
  maxConnections: number;
}

const rightsCheck = (sql: Sql, { databasePoolSize, databaseUrl, workers }: Config): Check => ({
  name: 'database',
  remedy: 'Check that DATABASE_URL points to a running PostgreSQL.',
  async run() {
    const [rights] = await sql.read<Rights>(RIGHTS, []);
    const { version, name, role, mayCreateSchemas, mayCreateTables, seesSessions, maxConnections } = rights!;
    return [
      version < OLDEST_VERSION
        ? fail(`PostgreSQL ${name} is too old.`, 'Use PostgreSQL 15 or newer.')
        : ok(`PostgreSQL ${name}, ${databaseUrl ? `role ${role}` : 'embedded'}`),
      ...(mayCreateSchemas
        ? []
        : [fail(`The role ${role} may not create schemas.`, `Grant create on the database to ${role}.`)]),
      ...(mayCreateTables
        ? []
        : [fail(`The role ${role} may not create tables.`, `Grant create on schema public to ${role}.`)]),
      ...(seesSessions
        ? []
        : [warn(`The role ${role} cannot see which sessions delay events.`, `grant pg_read_all_stats to ${role}`)]),
      ...(databasePoolSize * workers > maxConnections / 2
        ? [
            warn(
              `A node may open ${databasePoolSize * workers} of the ${maxConnections} connections of the database.`,
              'Lower DATABASE_POOL_SIZE.',
            ),
          ]
        : []),
    ];
  },
});

const poolerCheck = ({ databaseUrl }: Config): Check => ({
  name: 'pooler',
  remedy: 'See docs/operate/scale-out.md, PgBouncer.',
  async run() {
    if (!databaseUrl || !(await isPooled(databaseUrl))) return [];
    await refuseUnfitPooler(databaseUrl);
    return [ok('DATABASE_URL leads through a pooler that keeps prepared statements')];
  },
});

const migrationsCheck = ({ url }: Database): Check => ({
  name: 'migrations',
  remedy: 'Start the version of the service that migrated this database, or a newer version.',
  async run() {
    const { applied, pending } = await migrationState(url, migrationsDir);
    if (pending.length === 0) return [ok(`${applied} are applied`)];
    const remedy = applied === 0 ? 'Start the service: it applies them.' : 'Take a backup, then start the service.';
    return [warn(`${pending.length} are not applied yet, from ${pending[0]} on.`, remedy)];
  },
});

const COLUMNS = `select table_name as table, column_name as column from information_schema.columns
  where table_schema = current_schema()`;

const schemaCheck = (sql: Sql): Check => ({
  name: 'schema',
  remedy: 'Apply the migrations, or restore a backup.',
  async run() {
    const rows = await sql.read<{ table: string; column: string }>(COLUMNS, []);
    const there = new Set(rows.map(({ table, column }) => `${table}.${column}`));
    const missing = Object.entries(tables).flatMap(([table, { columns }]) =>
      Object.values<string>(columns)
        .map((column) => `${table}.${column}`)
        .filter((column) => !there.has(column)),
    );
    if (missing.length === 0) return [ok(`${Object.keys(tables).length} tables match this version`)];
    return [fail(`${missing.length} columns are missing, ${missing.slice(0, 3).join(', ')}.`, this.remedy)];
  },
});

const clockCheck = (sql: Sql): Check => ({
  name: 'clock',
  remedy: 'Synchronise the clocks of the nodes and of the database (NTP).',
  async run() {
    const before = Date.now();
    const [row] = await sql.read<{ now: number }>('select extract(epoch from clock_timestamp())::float8 as now', []);
    // what the way there and back took is nobody's error
    const off = Math.max(before / 1_000 - row!.now, row!.now - Date.now() / 1_000, 0);
    const said = `${off.toFixed(1)} s from the database's`;
    if (off >= CLOCK_FAIL_SECONDS) return [fail(`The clock is ${said}: tokens expire early or late.`, this.remedy)];
    return [off >= CLOCK_WARN_SECONDS ? warn(`The clock is ${said}.`, this.remedy) : ok(said)];
  },
});

const keysCheck = (config: Config, { pool }: Database): Check => ({
  name: 'root keys',
  remedy: 'See docs/operate/keys.md.',
  async run() {
    const { needed, faults } = await RootKeys.compare(config, pool);
    if (faults.length > 0)
      return faults.map((fault) =>
        fail(fault, 'Secrets cannot be decrypted without the right key: see docs/operate/keys.md.'),
      );
    return [
      ok(needed === 0 ? 'the database does not need a root key yet' : `needed by the database: ${needed}, all correct`),
    ];
  },
});

/** Whether this node would be one of the service, with its keys and its files. */
const nodesCheck = (config: Config, database: Database): Check => ({
  name: 'nodes',
  remedy: 'See docs/operate/scale-out.md, one set of files and keys.',
  async run() {
    const storage = new Storage(config);
    try {
      const [keys, files] = [await compareKeys(config, database), await isStoreOfService(storage, database)];
      if (keys === undefined && files === undefined) return [ok('none has started yet: the first one decides')];
      const found = [
        ...(keys ? [fail(keys, this.remedy)] : []),
        ...(files === false
          ? [fail('The store of files of this node is not the one that the others have.', this.remedy)]
          : []),
      ];
      return found.length > 0 ? found : [ok('keys and files match the service')];
    } finally {
      await storage.close();
    }
  },
});

const jobsCheck = ({ pool }: Database): Check => ({
  name: 'jobs',
  remedy: 'Start the service once: it creates the job queue.',
  async run() {
    const troubles = await troubledJobs(pool);
    const found = troubles.map(({ task, state, count }) => {
      const said = `${count} of the task ${task} ${TROUBLES[state].what}.`;
      return state === 'dead' ? fail(said, TROUBLES.dead.remedy) : warn(said, TROUBLES[state].remedy);
    });
    return found.length > 0 ? found : [ok('no job is stuck')];
  },
});

const TROUBLES = {
  dead: { what: 'were given up', remedy: 'Their node stopped during the last try. A running service removes them.' },
  late: {
    what: 'have waited for minutes',
    remedy: 'Check that a node is running and that its log has no error of the job queue.',
  },
  retrying: { what: 'failed and will be tried again', remedy: 'The errors are in the log, with the name of the task.' },
} as const;

const eventsCheck = (sql: Sql, logger: Logger): Check => ({
  name: 'events',
  remedy: 'See "Late events" in docs/operate/observability.md.',
  async run() {
    const lag = new EventLag(sql, logger);
    const { seconds, waiting } = await lag.read();
    if (seconds < LATE_SECONDS) return [ok(waiting === 0 ? 'no event is held back' : `${waiting} wait for a moment`)];
    const holder = await lag.holder();
    const by = holder
      ? ` by the ${holder.kind} ${holder.pid ?? holder.gid} of ${holder.application_name || 'nobody'}`
      : '';
    const remedy = holder?.pid ? `select pg_terminate_backend(${holder.pid})` : this.remedy;
    return [fail(`${waiting} events are held back for ${Math.round(seconds)} s${by}.`, remedy)];
  },
});

/** Whether a start would migrate the database first. One that a newer version migrated is looked at as it is. */
const isBehind = ({ url }: Database): Promise<boolean> =>
  migrationState(url, migrationsDir).then(
    ({ pending }) => pending.length > 0,
    () => false, // its check says why
  );

/** What asks the database, in the order in which one needs the other. */
export async function databaseChecks(config: Config, database: Database, logger: Logger): Promise<Check[]> {
  const sql = new Sql(database.pool);
  const always = [
    poolerCheck(config),
    rightsCheck(sql, config),
    replicasCheck(config, database.url),
    migrationsCheck(database),
  ];
  // what the next start makes is not missing yet
  if (await isBehind(database)) return [...always, clockCheck(sql)];
  return [
    ...always,
    schemaCheck(sql),
    clockCheck(sql),
    keysCheck(config, database),
    nodesCheck(config, database),
    heartbeatsCheck(sql),
    jobsCheck(database),
    eventsCheck(sql, logger),
  ];
}
