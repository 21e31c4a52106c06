// own process: starts processes, which is slow from a large process
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { FORM_TYPE, formOf } from '../support/form.ts';
import { type Service, startService } from '../support/service.ts';
import { waitFor, waitUntil } from '../support/wait.ts';
import { Client } from './client.ts';

let dataDir: string;
let database: TestDatabase;
let db: pg.Client;
const services = new Set<Service>();

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  services.clear();
  await db.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

function start(): Service {
  const service = startService({ DATA_DIR: dataDir, DATABASE_URL: database.url, LOG_LEVEL: 'error' });
  services.add(service);
  return service;
}

/** The sizes of all stored files, without the marker of the store. */
async function stored(): Promise<number[]> {
  const root = path.join(dataDir, 'files');
  if (!existsSync(root)) return [];
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name !== 'marker');
  return Promise.all(files.map(async (entry) => (await stat(path.join(entry.parentPath, entry.name))).size));
}

test('a service that is killed in the middle of an upload leaves no artifact, and its bytes are swept', async () => {
  const service = start();
  const url = await service.url();
  const client = await Client.register(url);
  const body = formOf([
    ['name', 'x'],
    ['file', { content: Buffer.alloc(8 * 1024 * 1024, 1) }],
  ]);
  const to = `/v1/orgs/${client.orgId}/workspaces/${client.workspaceId}/namespaces/default/artifacts/upload`;
  const headers = { ...client.headers, 'content-type': FORM_TYPE, 'content-length': body.length };
  const request = http.request(`${url}${to}`, { method: 'POST', headers });
  const broken = new Promise((resolve) => request.on('error', resolve).on('close', resolve));
  request.write(body.subarray(0, body.length / 2));
  await waitUntil(async () => (await stored()).some((size) => size > 1024 * 1024));
  service.child.kill('SIGKILL');
  await broken;
  await service.exited();
  expect((await db.query('select state, size_bytes from files')).rows).toEqual([
    { state: 'receiving', size_bytes: null },
  ]);
  expect((await db.query('select id from artifacts')).rows).toEqual([]);
  expect(await stored()).toHaveLength(1);

  await db.query(`update files set created_at = now() - interval '3 hours'`);
  // the next look is due at once, instead of within a minute
  await db.query(`update jobs._private_known_crontabs set last_execution = now() - interval '1 hour'
    where identifier = 'files_unused'`);
  await start().url();
  await waitUntil(async () => (await db.query('select 1 from files')).rows.length === 0, { withinMs: 90_000 });
  expect(await stored()).toEqual([]);
});

test('an upload in pieces goes on after the service was killed in the middle of it', async () => {
  const service = start();
  const url = await service.url();
  const client = await Client.register(url);
  const namespace = `/v1/orgs/${client.orgId}/workspaces/${client.workspaceId}/namespaces/default`;
  const post = async <T>(at: string, path: string, body: object) => {
    const headers = { ...client.headers, 'content-type': 'application/json' };
    const answer = await fetch(`${at}${namespace}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await answer.json()) as T;
  };
  const bytes = randomBytes(20 * 1024 * 1024);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const announced = { file_name: 'a.bin', size_bytes: bytes.length, sha256 };
  const upload = await post<{ file: string; url: string }>(url, '/uploads', announced);
  const { pathname } = new URL(upload.url);
  const offsetAt = async (at: string) =>
    Number((await fetch(`${at}${pathname}`, { method: 'HEAD' })).headers.get('upload-offset'));
  const type = { 'content-type': 'application/offset+octet-stream' };
  const request = http.request(`${url}${pathname}`, {
    method: 'PATCH',
    headers: { ...type, 'upload-offset': '0', 'content-length': bytes.length },
  });
  const broken = new Promise((resolve) => request.on('error', resolve).on('close', resolve));
  request.write(bytes.subarray(0, 12 * 1024 * 1024));
  // one piece counts, and the next one is arriving
  await waitUntil(async () => (await offsetAt(url)) > 0 && (await stored()).length === 2);
  service.child.kill('SIGKILL');
  await broken;
  await service.exited();

  const next = await start().url();
  const offset = await offsetAt(next);
  expect(offset).toBe(8 * 1024 * 1024);
  const answer = await fetch(`${next}${pathname}`, {
    method: 'PATCH',
    headers: { ...type, 'upload-offset': String(offset) },
    body: bytes.subarray(offset),
  });
  expect([answer.status, answer.headers.get('upload-offset')]).toEqual([204, String(bytes.length)]);
  const finished = await post(next, '/uploads/finish', { file: upload.file, name: 'x' });
  expect(finished).toMatchObject({ sha256, size_bytes: bytes.length });
  await waitFor(async () => expect((await db.query('select state from files')).rows).toEqual([{ state: 'kept' }]));
  expect(await stored()).toHaveLength(1);
});
