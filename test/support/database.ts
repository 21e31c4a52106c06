import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import { inject } from 'vitest';
import { type Content, contentOf, restore } from './database-content.ts';
import { templateOf } from './template.ts';
import { timed } from './times.ts';

/** A database of one test file. */
export interface TestDatabase {
  url: string;
  /** Ends all sessions, and refuses new ones until `work` is done. */
  outage(work: () => Promise<void>): Promise<void>;
  /** Ends sessions that are still open and removes the database. */
  drop(): Promise<void>;
}

/** The URL of another database of the same server. */
export function onServer(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

async function asAdmin(...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: inject('serverUrl') });
  await client.connect();
  try {
    for (const sql of statements) await client.query(sql);
  } finally {
    await client.end();
  }
}

// copying files is several times as fast as writing their content to the log; PostgreSQL 18 can have the system do it
const CLONE = `select set_config(name, 'clone', false) from pg_settings where name = 'file_copy_method'`;

/**
 * A database that no other file has, with all migrations applied; `template: 'template0'` gives an empty one. For a
 * test that needs more than its own organizations: outages, migrations, upgrades, other root keys, another schema.
 */
export async function createTestDatabase({ template = templateOf() } = {}): Promise<TestDatabase> {
  const name = `${inject('databasePrefix')}_${randomBytes(6).toString('hex')}`;
  const create = `create database ${name} template ${template} strategy file_copy`;
  // a pooler stays connected when the app that has filled it has gone
  const alone = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${template}'`;
  await timed('database', () => asAdmin(CLONE, ...(template === templateOf() ? [] : [alone]), create));
  return {
    url: onServer(inject('serverUrl'), name),
    async outage(work) {
      await asAdmin(
        `alter database ${name} allow_connections false`,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
      );
      try {
        await work();
      } finally {
        await asAdmin(`alter database ${name} allow_connections true`);
      }
    },
    async drop() {
      await disconnected(name);
      await asAdmin(`drop database if exists ${name} with (force)`);
    },
  };
}

/**
 * Waits for a moment until nobody is connected. A pool says that it has ended before its connections have: the server
 * would end them, which is an error that nobody waits for any more.
 */
async function disconnected(name: string): Promise<void> {
  const connected = `select 1 from pg_stat_activity where datname = '${name}' limit 1`;
  const client = new pg.Client({ connectionString: inject('serverUrl') });
  await client.connect();
  try {
    const deadline = Date.now() + 500;
    while (Date.now() < deadline && (await client.query(connected)).rowCount! > 0) await setImmediate();
  } finally {
    await client.end();
  }
}

/** A database that the files of this process use one after the other; each finds it as migrations left it. */
export interface SharedDatabase {
  readonly url: string;
  /** Leaves it to the next file, which empties it. Nobody is connected any more. */
  drop(): Promise<void>;
}

/** Databases of this process that nobody uses, with what they held after the migrations. */
const free: { url: string; migrated: Content }[] = [];

/** The database of this process, emptied; a second one while that is taken. */
export const takeDatabase = (): Promise<SharedDatabase> => timed('database', take);

/**
 * In a database of tests no statement of a connection runs often. Making its plan for each of the first five times, and
 * then once for all, takes PostgreSQL as long as running them. Tests of plans have databases of their own.
 */
async function made(): Promise<string> {
  const { url } = await createTestDatabase();
  await asAdmin(`alter database ${new URL(url).pathname.slice(1)} set plan_cache_mode = force_generic_plan`);
  return url;
}

async function take(): Promise<SharedDatabase> {
  const known = free.pop();
  const url = known?.url ?? (await made());
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  let migrated: Content;
  try {
    if (known) await restore(client, known.migrated);
    migrated = known?.migrated ?? (await contentOf(client));
    // Records are summed once a minute. Otherwise the first one of each file would be summed at once, which few files
    // need.
    await client.query('update activity_fold set folded_at = now()');
  } finally {
    await client.end();
  }
  return { url, drop: async () => void free.push({ url, migrated }) };
}
