// own process: starts processes, which is slow from a large process
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { extractionFailures } from '../../../src/knowledge/indexing/text/extraction-error.ts';
import { textKindOf } from '../../../src/knowledge/indexing/text/text-kinds.ts';
import { Client } from '../../crash/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { hostileDocuments } from '../../support/hostile-documents.ts';
import { hostileFiles } from '../../support/hostile-files.ts';
import { pdfOf } from '../../support/made-files.ts';
import { type Service, startService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

let dataDir: string;
let database: TestDatabase;
let db: pg.Client;
let service: Service;

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'bombs-'));
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  const env = { DATA_DIR: dataDir, DATABASE_URL: database.url, RATE_LIMIT_RPS: '0', LOG_LEVEL: 'fatal' };
  service = startService(env);
});
afterEach(async () => {
  service.child.kill('SIGTERM');
  await service.exited();
  await db.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

// what they cost is in the bench
test('hostile files and documents end neither the service nor requests of others', async () => {
  const client = await Client.register(await service.url());
  const shelf = `/v1/orgs/${client.orgId}/workspaces/${client.workspaceId}/namespaces/default/artifacts`;
  const json = { ...client.headers, 'content-type': 'application/json', accept: 'application/json' };

  async function upload(name: string, content: Buffer): Promise<string> {
    const body = formOf([
      ['name', name],
      ['file', { name: 'a', content }],
    ]);
    const headers = { ...client.headers, 'content-type': FORM_TYPE };
    const options = { method: 'POST', headers, body: Uint8Array.from(body) };
    const answer = await fetch(`${client.url}${shelf}/upload`, options);
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { artifact_id: string }).artifact_id;
  }
  const allRead = () =>
    waitFor(
      async () => {
        // no wait before a second attempt
        await db.query('update jobs._private_jobs set run_at = now() where run_at > now()');
        expect((await db.query('select 1 from jobs._private_jobs')).rows).toEqual([]);
      },
      { withinMs: 200_000 },
    );
  /** How requests of others end, while something is done. */
  async function meanwhile(work: () => Promise<unknown>): Promise<Map<number, number>> {
    const statuses = new Map<number, number>();
    let isDone = false;
    const asking = ['/v1/users/me', shelf].map(async (asked) => {
      while (!isDone) {
        const answer = await fetch(client.url + asked, { headers: client.headers });
        await answer.arrayBuffer();
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      }
    });
    await work().finally(() => {
      isDone = true;
    });
    await Promise.all(asking);
    return statuses;
  }

  const ids: string[] = [];
  const statuses = await meanwhile(async () => {
    for (const { name, file } of hostileFiles) ids.push(await upload(name, file()));
    for (const { query, variables = '{}', operationName = null } of hostileDocuments) {
      const body = `{"query":${JSON.stringify(query)},"variables":${variables},
        "operationName":${JSON.stringify(operationName)}}`;
      const answer = await fetch(`${client.url}/graphql`, { method: 'POST', headers: json, body });
      expect(answer.status).toBeLessThan(500);
      await answer.arrayBuffer();
    }
    await allRead();
  });
  expect([...statuses.keys()]).toEqual([200]);
  expect(service.child.exitCode).toBeNull();
  const { rows } = await db.query<{ type: string; is_indexed: boolean; index_error: string }>(
    'select mime_type as type, is_indexed, index_error from artifacts where id = any($1)',
    [ids],
  );
  expect(rows).toHaveLength(hostileFiles.length);
  // what is no file of a kind that is read has no text
  const read = rows.filter(({ type }) => textKindOf(type) !== null);
  expect(read.length).toBeGreaterThan(5);
  const sentences: string[] = Object.values(extractionFailures);
  for (const row of read) expect([row.is_indexed, sentences.includes(row.index_error)]).toEqual([false, true]);
  await upload('after', pdfOf(['fine']));
  await allRead();
  expect((await db.query(`select is_indexed from artifacts where name = 'after'`)).rows).toEqual([
    { is_indexed: true },
  ]);
});
