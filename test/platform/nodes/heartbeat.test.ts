import { afterAll, beforeAll, expect, it } from 'vitest';
import { Heartbeat } from '../../../src/platform/nodes/heartbeat.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

let server: TestDatabase;
let database: Database;
beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase({ url: server.url, poolSize: 2, logger: quietLogger });
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

it('leaves without a trace, though the database is away when it begins to', async () => {
  const faults: unknown[] = [];
  const end = new Heartbeat({
    nodeId: 'leaves',
    pool: database.pool,
    version: '1.0.0',
    workers: () => ({ running: 1, of: 1 }),
    problem: () => null,
    onFault: (error) => faults.push(error),
    leaveWithinMs: 600_000,
  }).start();
  const rows = async () => (await database.pool.query(`select 1 from nodes where id = 'leaves'`)).rowCount;
  await waitFor(async () => expect(await rows()).toBe(1));
  let left: Promise<void> = Promise.resolve();
  await server.outage(async () => {
    left = end();
    await waitUntil(() => faults.length > 0, { what: 'a try that fails' });
  });
  await left;
  expect(await rows()).toBe(0);
});
