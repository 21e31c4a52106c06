import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { migrationsDir } from '../../src/paths.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { startEmbeddedPostgres } from '../../src/platform/postgres/postgres-embedded.ts';
import { onServer, TEMPLATE_DATABASE } from './database.ts';
import { quietLogger } from './quiet-logger.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection URL of the PostgreSQL of this test run. */
    serverUrl: string;
  }
}

/** One PostgreSQL for all test files, with a migrated database that each test copies. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = process.env.TEST_DATABASE_URL ? undefined : await startServer();
  const serverUrl = process.env.TEST_DATABASE_URL ?? server?.url ?? '';
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query(`drop database if exists ${TEMPLATE_DATABASE}`);
  await admin.query(`create database ${TEMPLATE_DATABASE}`);
  await admin.end();
  await migrate(onServer(serverUrl, TEMPLATE_DATABASE), migrationsDir);
  project.provide('serverUrl', serverUrl);
  return async () => server?.stop();
}

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const dir = await mkdtemp(path.join(tmpdir(), 'test-'));
  const server = await startEmbeddedPostgres({
    dir: path.join(dir, 'postgres'),
    isDurable: false,
    logger: quietLogger,
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  return { url: server.urlOf('postgres'), stop };
}
