import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readEpoch } from '../../../src/data/epoch.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let databases: TestDatabase[];
beforeAll(async () => {
  databases = [await createTestDatabase(), await createTestDatabase()];
});
afterAll(async () => {
  for (const database of databases) await database.drop();
});

/** The epoch by a connection of its own, on which `before` ran. */
async function epochBy({ url }: TestDatabase, before = ''): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(before);
    return await readEpoch({ read: async (text: string) => (await client.query(text)).rows });
  } finally {
    await client.end();
  }
}

it('is the same for all who read one database, and another in each', async () => {
  const [one, other] = databases as [TestDatabase, TestDatabase];
  const epochs = [await epochBy(one), await epochBy(one), await epochBy(other)];
  expect(epochs[0]).toMatch(/^[\da-f]{6}$/);
  expect(epochs[1]).toBe(epochs[0]);
  expect(epochs[2]).not.toBe(epochs[0]);
});

it('tells databases apart for a role that may not ask which cluster it is', async () => {
  const [one, other] = databases as [TestDatabase, TestDatabase];
  const restricted = 'revoke execute on function pg_control_system() from public; set role pg_read_all_settings';
  const epochs = [await epochBy(one, restricted), await epochBy(one, restricted), await epochBy(other, restricted)];
  expect(epochs[0]).toMatch(/^[\da-f]{6}$/);
  expect(epochs[1]).toBe(epochs[0]);
  expect(epochs[2]).not.toBe(epochs[0]);
  expect(await epochBy(one)).not.toBe(epochs[0]);
});
