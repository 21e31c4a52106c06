import { randomBytes, randomInt } from 'node:crypto';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { makeTemplate, startCluster } from './cluster.ts';
import { onServer } from './database.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection URL of the PostgreSQL of this test run. */
    serverUrl: string;
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
  project.provide('serverUrl', serverUrl);
  project.provide('databasePrefix', databasePrefix);
  project.provide('seed', seedOfRun(project.vitest.vite.config.mode));
  return async () => {
    if (server) await server.stop();
    else await dropAll(serverUrl, databasePrefix);
  };
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
