import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** The migrated database that {@link createTestDatabase} copies. */
export const TEMPLATE_DATABASE = 'test_template';

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

async function asAdmin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('serverUrl') });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** A new database with all migrations applied; `template: 'template0'` gives an empty one. */
export async function createTestDatabase({
  template = TEMPLATE_DATABASE,
}: {
  template?: string;
} = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await asAdmin(`create database ${name} template ${template}`);
  return {
    url: onServer(inject('serverUrl'), name),
    async outage(work) {
      await asAdmin(`alter database ${name} allow_connections false`);
      await asAdmin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      try {
        await work();
      } finally {
        await asAdmin(`alter database ${name} allow_connections true`);
      }
    },
    drop: () => asAdmin(`drop database if exists ${name} with (force)`),
  };
}
