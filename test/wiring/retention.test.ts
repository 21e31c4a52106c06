import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

it('finds old tokens and deleted secrets by an index, however many live ones there are', async () => {
  const rules = app.owners.flatMap(({ retention }) => retention ?? []);
  const judged = rules.filter((rule) => /delete from (api_tokens|secrets)\b/.test(rule));
  expect(judged).toHaveLength(2);
  const client = await app.database.pool.connect();
  try {
    await client.query('begin; set local enable_seqscan = off');
    for (const rule of judged) {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${rule}`);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).not.toContain('Seq Scan');
      expect(plan).toMatch(/secrets_deleted|api_tokens_revoked[\s\S]*api_tokens_refreshable/);
    }
  } finally {
    await client.query('rollback');
    client.release();
  }
});
