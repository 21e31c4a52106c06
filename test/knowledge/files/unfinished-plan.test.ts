import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sql } from '../../../src/data/sql.ts';
import type { FileService } from '../../../src/knowledge/files/file.service.ts';
import { UploadPieces } from '../../../src/knowledge/files/upload-pieces.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';

const FILES = 12_000;

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
});
afterAll(() => app.close());

it('an upload that goes on is found by its index, however many files arrive', async () => {
  const { pool } = app.database;
  await fill(
    app,
    `insert into files (id, org_id, workspace_id, namespace_id, storage_key, file_name, state, created_by, expires_at,
       declared_bytes, declared_sha256, received_bytes)
     select 'file_plan' || i, 'org', 'ws', 'ns', 'key' || i, 'a.bin', 'receiving', 'user' || i % 3,
       now() + interval '1 day', 9, lpad(to_hex(i), 64, '0'), 1
     from generate_series(1, $1::int) i`,
    [FILES],
  );
  await pool.query('analyze files');
  const asked: { text: string; values: unknown[] }[] = [];
  const noted = { read: async (text: string, values: unknown[]) => asked.push({ text, values }) && [] };
  const sql = noted as unknown as Sql;
  const pieces = new UploadPieces({ sql, files: {} as FileService, maxUploadBytes: 10 });
  const place = { orgId: 'org', workspaceId: 'ws', namespaceId: 'ns', userId: 'user1' };
  const sought = { fileName: 'a.bin', contentType: null, sizeBytes: 9, sha256: '1'.padStart(64, '0') };
  await pieces.unfinished({ ...place, ...sought });
  expect(asked).toHaveLength(1);
  const [{ text, values }] = asked as [(typeof asked)[number]];
  const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, format json) ${text}`,
    values,
  );
  const nodes = nodesOf(rows[0]!['QUERY PLAN'][0].Plan).filter((node) => node['Actual Loops'] > 0);
  expect(nodes.map((node) => node['Index Name'])).toContain('files_unfinished');
  const read = nodes.map(
    (node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
  );
  expect(Math.max(...read)).toBe(1);
});
