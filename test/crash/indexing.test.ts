// own process: starts processes, which is slow from a large process
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { FORM_TYPE, formOf } from '../support/form.ts';
import { isRunning } from '../support/is-running.ts';
import { pdfOf } from '../support/made-files.ts';
import { type Service, startService } from '../support/service.ts';
import { waitFor, waitUntil } from '../support/wait.ts';
import { Client } from './client.ts';

let dataDir: string;
let database: TestDatabase;
let db: pg.Client;
let holder: pg.Client;
const services = new Set<Service>();

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  holder = new pg.Client({ connectionString: database.url });
  await Promise.all([db.connect(), holder.connect()]);
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  services.clear();
  await Promise.all([db.end(), holder.end()]);
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

function start(): Service {
  const service = startService({ DATA_DIR: dataDir, DATABASE_URL: database.url, LOG_LEVEL: 'error' });
  services.add(service);
  return service;
}

const soon = (check: () => Promise<void>) => waitFor(check);

/** Processes that a service has started. */
const childrenOf = ({ child: { pid } }: Service): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

interface Row {
  is_indexed: boolean;
  index_error: string | null;
  index_attempts: number;
  chunk_count: number;
  /** Positions of the chunks that are there. */
  positions: number[];
}

async function rowOf(id: string): Promise<Row> {
  const { rows } = await db.query<Row>(
    `select is_indexed, index_error, index_attempts, chunk_count,
       array(select position from artifact_chunks where artifact_id = id order by position) as positions
     from artifacts where id = $1`,
    [id],
  );
  return rows[0]!;
}

/** A file whose indexing was begun, on a node that is killed before it is over. */
async function killedAmid(node: Service, before: () => Promise<unknown>): Promise<{ client: Client; id: string }> {
  const client = await Client.register(await node.url());
  const body = formOf([
    ['name', 'Larks'],
    ['file', { name: 'larks.pdf', content: pdfOf(Array.from({ length: 40 }, () => 'A lark rises. '.repeat(20))) }],
  ]);
  // the indexer has read the file, and waits here
  await holder.query('begin; lock table artifact_chunks in exclusive mode');
  const answer = await fetch(`${client.url}${shelfOf(client)}/upload`, {
    method: 'POST',
    headers: { ...client.headers, 'content-type': FORM_TYPE },
    body: Uint8Array.from(body),
  });
  const { artifact_id: id } = (await answer.json()) as { artifact_id: string };
  const waiting = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  // the process that has read it ends when it had nothing to do for a while
  const readers = await waitUntil(async () => (await db.query(waiting)).rowCount === 1 && childrenOf(node));
  expect(readers).toHaveLength(1);
  expect(await rowOf(id)).toEqual({
    is_indexed: false,
    index_error: null,
    index_attempts: 1,
    chunk_count: 0,
    positions: [],
  });
  await before();
  node.child.kill('SIGKILL');
  await node.exited();
  await holder.query('rollback');
  await soon(async () => {
    expect((await db.query(waiting)).rows).toEqual([]);
    expect(readers.filter(isRunning)).toEqual([]);
  });
  // whatever has become of it, what it says is so
  const { is_indexed, chunk_count, positions } = await rowOf(id);
  expect([is_indexed, chunk_count]).toEqual([positions.length > 0, positions.length]);
  await db.query(`update jobs._private_jobs set locked_at = now() - interval '1 minute' where locked_at is not null`);
  return { client, id };
}

const shelfOf = ({ orgId, workspaceId }: Client) =>
  `/v1/orgs/${orgId}/workspaces/${workspaceId}/namespaces/default/artifacts`;

const nothingToDo = () =>
  soon(async () => expect((await db.query('select 1 from jobs._private_jobs')).rows).toEqual([]));

test('a file whose node is killed while it is indexed is indexed by another one, once', async () => {
  const { client, id } = await killedAmid(start(), async () => undefined);
  client.url = await start().url();
  await nothingToDo();
  const { positions, ...row } = await rowOf(id);
  expect(row).toEqual({ is_indexed: true, index_error: null, index_attempts: 2, chunk_count: positions.length });
  expect(positions.length).toBeGreaterThan(2);
  expect(positions).toEqual(positions.map((_, index) => index));
  const found = await client.send('POST', `${shelfOf(client)}/query`, { query: 'larks rising' });
  expect(found).toMatchObject({ body: { total_results: 1, results: [{ artifact: { artifact_id: id } }] } });
});

test('a file whose node is killed in each attempt ends as one that could not be read', async () => {
  const last = () => db.query('update jobs._private_jobs set attempts = max_attempts where locked_at is not null');
  const { client, id } = await killedAmid(start(), last);
  const { is_indexed } = await rowOf(id);
  expect(is_indexed).toBe(false);
  client.url = await start().url();
  await nothingToDo();
  expect(await rowOf(id)).toEqual({
    is_indexed: false,
    index_error: 'The content could not be read.',
    index_attempts: 5,
    chunk_count: 0,
    positions: [],
  });
  const { rows } = await db.query<{ type: string }>(
    'select type from events where resource_id = $1 order by xid, seq',
    [id],
  );
  expect(rows.map(({ type }) => type)).toEqual(['artifact.created', 'artifact.index_failed']);
});
