// own process: starts processes, which is slow from a large process
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Service, startService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { Load } from './load.ts';
import { expectWhole } from './whole.ts';

// services start, die and start again here, beside another test file

let dataDir: string;
const services = new Set<Service>();

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGTERM');
    await service.exited();
  }
  services.clear();
  await rm(dataDir, { recursive: true, force: true });
});

function start(env: Record<string, string> = {}): Service {
  const service = startService({ DATA_DIR: dataDir, RATE_LIMIT_RPS: '0', LOG_LEVEL: 'error', ...env });
  services.add(service);
  return service;
}

const enough = (load: Load, before?: readonly number[]) => waitUntil(() => load.hasDoneEnough(before));

/** The lines of `postmaster.pid` of the embedded database. */
const postmaster = async () => (await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n');

async function embeddedUrl(): Promise<string> {
  const [, , , port, socketDir] = await postmaster();
  return `postgresql://postgres@localhost:${port}/platform?host=${encodeURIComponent(socketDir!)}`;
}

/** The service that came back is ready, and everything is as it was promised. */
async function expectSurvived({ annotate }: TestContext, load: Load, service: Service, databaseUrl: string) {
  load.client.url = await service.url();
  expect((await fetch(`${load.client.url}/readyz`)).status).toBe(200);
  expect(load.client.strange).toEqual([]);
  const acknowledged = load.acknowledged.reduce((sum, done) => sum + done, 0);
  await annotate(`${acknowledged} changes were acknowledged, ${load.inFlight} were in flight`);
  expect(load.inFlight).toBeGreaterThan(0);
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    await expectWhole(db, load);
  } finally {
    await db.end();
  }
  expect(load.client.strange).toEqual([]);
}

describe('what was acknowledged survives, what was in flight is whole or absent', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());

  it('kill -9 of the service under write load', async (context) => {
    const first = start({ DATABASE_URL: database.url });
    const load = await Load.start(await first.url());
    await enough(load);
    first.child.kill('SIGKILL');
    await first.exited();
    await load.stop();
    await expectSurvived(context, load, start({ DATABASE_URL: database.url }), database.url);
  });
});

it('kill -9 of the database under write load: it restarts, and answers keep the promised shape', async (context) => {
  const service = start();
  const load = await Load.start(await service.url());
  await enough(load);
  const before = load.acknowledged;
  process.kill(Number((await postmaster())[0]), 'SIGKILL');
  await enough(load, before);
  await load.stop();
  await expectSurvived(context, load, service, await embeddedUrl());
});

it('kill -9 of the service with its embedded database: the next start comes up with everything', async (context) => {
  const first = start();
  const load = await Load.start(await first.url());
  await enough(load);
  first.child.kill('SIGKILL');
  await first.exited();
  await load.stop();
  const second = start();
  await second.url();
  await expectSurvived(context, load, second, await embeddedUrl());
});
