import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { inTransaction } from '../support/rows.ts';
import { createGraph, type Graph } from './entities/graph.ts';

let app: TestApp;
let graph: Graph;
beforeAll(async () => {
  app = await startTestApp({ env: { SEARCH_TIMEOUT_MS: '100' } });
  graph = await createGraph(app);
  await graph.entity('Zither');
  await app.jobsDone();
});
afterAll(() => app.close());

/**
 * While nobody may read a table, a search of it takes as long as it may. Somebody else who waits for the table for up
 * to five seconds still waits then.
 */
const whileLocked = async <T>(table: string, work: () => Promise<T>): Promise<T> => {
  const { pool } = app.database;
  let waiting: Promise<void> | undefined;
  const done = await inTransaction(pool, async (db) => {
    await db.query(`lock table ${table} in access exclusive mode`);
    waiting = inTransaction(pool, async (patient) => {
      await patient.query(`set local lock_timeout = '5s'`);
      await patient.query(`select from ${table} limit 1`);
    });
    return work();
  });
  await waiting;
  return done;
};

const tooSlow = {
  error: 'SERVICE_UNAVAILABLE',
  details: { retry_after: 1, reason: 'database_timeout' },
  status_code: 503,
};

test('a search of entities that takes longer than SEARCH_TIMEOUT_MS is refused, a later one finds them', async () => {
  const search = () => graph.who.call<{ results: unknown[] }>('GET', `${graph.url}/entities/search?query=zither`);
  expect((await whileLocked('entities', search)).body).toMatchObject(tooSlow);
  expect((await search()).body.results).toHaveLength(1);
});

test('a search of texts that takes longer is refused, over REST and over GraphQL', async () => {
  const { who } = graph;
  const url = `${who.home}/namespaces/default/artifacts/query`;
  const search = () => who.call<{ total_results: number }>('POST', url, { query: 'zither' });
  expect((await whileLocked('artifact_chunks', search)).body).toMatchObject(tooSlow);
  expect((await search()).body.total_results).toBe(0);

  const query = `query ($orgId: ID!, $workspaceId: ID!) {
    queryArtifacts(orgId: $orgId, workspaceId: $workspaceId, namespaceId: "default", input: { query: "zither" }) {
      totalResults } }`;
  const { orgId, workspaceId } = who;
  const ask = () => who.ask<{ queryArtifacts: { totalResults: number } | null }>(query, { orgId, workspaceId });
  expect((await whileLocked('artifact_chunks', ask)).errors).toMatchObject([
    { path: ['queryArtifacts'], extensions: { code: 'SERVICE_UNAVAILABLE', details: tooSlow.details } },
  ]);
  expect((await ask()).data.queryArtifacts?.totalResults).toBe(0);
});
