// own process: starts processes, which is slow from a large process
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Receiver, receive } from '../support/receivers.ts';
import { type Service, startService } from '../support/service.ts';
import { waitUntil } from '../support/wait.ts';
import { Client } from './client.ts';

let dataDir: string;
let database: TestDatabase;
let db: pg.Client;
let inbox: Receiver;
let collector: Receiver;
let isSilent = true;
const nodes: Service[] = [];
const start = () => {
  const env = { DATA_DIR: dataDir, DATABASE_URL: database.url, LOG_LEVEL: 'error', OUTBOUND_ALLOW: '127.0.0.1' };
  nodes.push(startService(env));
  return nodes.at(-1)!;
};
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  // what it is silent about is under way when its sender is killed
  inbox = await receive((_request, response) => isSilent || response.end());
  collector = await receive((_request, response) => isSilent || response.end());
});
afterAll(async () => {
  for (const node of nodes) {
    node.child.kill('SIGKILL');
    await node.exited();
  }
  await inbox.close();
  await collector.close();
  await db.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

test('a node is killed while it sends: the next one sends all that was promised, in order', async () => {
  const killed = start();
  const ann = await Client.register(await killed.url());
  const org = `/v1/orgs/${ann.orgId}`;
  const home = `${org}/workspaces/${ann.workspaceId}`;
  const made = async (url: string, body: object) => {
    const outcome = await ann.send('POST', url, body);
    if (outcome.is !== 'acknowledged') throw new Error(`${url}: ${outcome.is}`);
    return outcome.body;
  };
  await made(`${org}/webhooks`, {
    name: 'Hook',
    url: inbox.url,
    event_types: ['thread.*'],
    workspace_id: ann.workspaceId,
  });
  await made(`${org}/audit-streams`, {
    name: 'Stream',
    target_type: 'http',
    url: collector.url,
    resource_types: ['thread'],
  });
  const threads = `${home}/namespaces/default/threads`;
  const ids: string[] = [];
  for (let n = 0; n < 4; n++) ids.push(String((await made(threads, { title: `thread ${n}` })).thread_id));
  await inbox.has(4);
  await collector.has(1);
  // the last of these are no deliveries yet, or were not recorded
  for (const id of ids)
    expect(await ann.send('PUT', `${threads}/${id}`, { title: 'again' })).toMatchObject({ is: 'acknowledged' });
  killed.child.kill('SIGKILL');
  await killed.exited();
  isSilent = false;
  const [before, batches] = [inbox.got.length, collector.got.length];
  await start().url();
  // as if the lease were over
  for (const table of ['webhook_deliveries', 'audit_stream_deliveries'])
    await db.query(`update ${table} set due_at = now() where due_at > now()`);
  const { rows } = await db.query<{ id: string; resource: string }>(
    `select id, resource_id as resource from events where type like 'thread.%' order by xid, seq`,
  );
  expect(rows).toHaveLength(8);
  await waitUntil(async () => {
    const { rowCount } = await db.query(`select from webhook_deliveries where status = 'delivered'`);
    return rowCount === rows.length;
  });
  const arrived = inbox.got.slice(before).map(({ headers }) => headers['webhook-id']!);
  for (const id of ids) {
    const wanted = rows.filter(({ resource }) => resource === id).map((event) => event.id);
    expect(arrived.filter((one) => wanted.includes(one))).toEqual(wanted);
  }
  // the same of activity: every record, in the order of commits
  const recorded = await db.query<{ id: string }>(
    `select id from activity where resource_type = 'thread' and org_id = $1 order by xid, id`,
    [ann.orgId],
  );
  const sent = () =>
    collector.got
      .slice(batches)
      .flatMap(({ body }) => body.trim().split('\n'))
      .map((line) => (JSON.parse(line) as { id: string }).id);
  await waitUntil(() => new Set(sent()).size >= recorded.rows.length);
  expect([...new Set(sent())].slice(0, recorded.rows.length)).toEqual(recorded.rows.map(({ id }) => id));
});
