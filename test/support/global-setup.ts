import { randomBytes, randomInt } from 'node:crypto';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { SESSION_LIMITS } from '../../src/platform/postgres/session-limits.ts';
import { makeTemplate, startCluster } from './cluster.ts';
import { onServer } from './database.ts';
import { type RunningPgBouncer, startPgBouncer } from './pgbouncer.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection URL of the PostgreSQL of this test run. */
    serverUrl: string;
    /** Where a pooler takes connections for that PostgreSQL; `null` without TEST_POOLER. */
    poolerUrl: string | null;
    /** What the names of this run's databases begin with. */
    databasePrefix: string;
  }
}

/** One PostgreSQL for the run, with a migrated database that is copied for each process and each own database. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.TEST_DATABASE_URL;
  const server = given ? undefined : await startCluster();
  const serverUrl = given ?? server!.url;
  const databasePrefix = `test_${randomBytes(4).toString('hex')}`;
  if (given) await makeTemplate((database) => onServer(given, database));
  // the whole suite through PgBouncer: `TEST_POOLER=1 npx vitest run`
  const pooler = process.env.TEST_POOLER ? await poolerOf(serverUrl) : undefined;
  project.provide('poolerUrl', pooler?.urlOf('postgres') ?? null);
  project.provide('serverUrl', serverUrl);
  project.provide('databasePrefix', databasePrefix);
  project.provide('seed', seedOfRun(project.vitest.vite.config.mode));
  return async () => {
    await pooler?.stop();
    if (server) await server.stop();
    else await dropAll(serverUrl, databasePrefix);
  };
}

/** Its sessions have the limits of the role in each database that tests make. */
async function poolerOf(serverUrl: string): Promise<RunningPgBouncer> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  for (const [name, value] of Object.entries(SESSION_LIMITS))
    await client.query(`alter role current_user set ${name} = '${value}'`);
  await client.end();
  return startPgBouncer({ serverUrl });
}

/** `--mode all` tries all values; `TEST_SEED` repeats a run. */
function seedOfRun(mode: string): number | null {
  if (mode === 'all') return null;
  const seed = Number(process.env.TEST_SEED ?? randomInt(2 ** 31));
  console.log(`Repeat this choice of values with TEST_SEED=${seed}`);
  return seed;
}

/** Processes share databases among their files, and nobody else's server stops with the run. */
async function dropAll(serverUrl: string, prefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    'select quote_ident(datname) as name from pg_database where starts_with(datname, $1)',
    [prefix],
  );
  for (const { name } of rows) await client.query(`drop database ${name} with (force)`);
  await client.end();
}
