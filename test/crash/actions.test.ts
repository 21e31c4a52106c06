// own process: starts processes, which is slow from a large process
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Service, startService } from '../support/service.ts';
import { startRawTarget, type TargetServer } from '../support/target-server.ts';
import { waitUntil } from '../support/wait.ts';
import { Client } from './client.ts';

let dataDir: string;
let database: TestDatabase;
let db: pg.Client;
let target: TargetServer;
const requests: string[] = [];
const nodes: Service[] = [];
const start = () => {
  const env = {
    DATA_DIR: dataDir,
    DATABASE_URL: database.url,
    LOG_LEVEL: 'info',

    OUTBOUND_ALLOW: '127.0.0.1',
  };
  nodes.push(startService(env));
  return nodes.at(-1)!;
};
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  // it never answers: what it has got is under way when the process is killed
  target = await startRawTarget((socket) => socket.on('data', (chunk) => requests.push(chunk.toString())));
});
afterAll(async () => {
  for (const node of nodes) {
    node.child.kill('SIGKILL');
    await node.exited();
  }
  await target.close();
  await db.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

test('a node is killed in the middle of an action: its log says so, and nothing is sent twice', async () => {
  const killed = start();
  const ann = await Client.register(await killed.url());
  const org = `/v1/orgs/${ann.orgId}`;
  const home = `${org}/workspaces/${ann.workspaceId}`;
  const made = async (url: string, body: object) => {
    const outcome = await ann.send('POST', url, body);
    if (outcome.is !== 'acknowledged') throw new Error(`${url}: ${outcome.is}`);
    return outcome.body;
  };
  const { tool_id } = await made(`${org}/tools`, {
    name: 'Silent',
    slug: 'silent',
    description: 'Never answers.',
    category: 'productivity',
    action_schemas: [{ name: 'run', method: 'POST', url_template: `http://127.0.0.1:${target.port}/run` }],
  });
  const { instance_id: id } = await made(`${home}/tool-instances`, { tool_id, name: 'Silent', configuration: {} });
  const headers = { ...ann.headers, 'content-type': 'application/json', 'idempotency-key': 'once' };
  const execute = (url: string) =>
    fetch(`${url}${home}/tool-instances/${String(id)}/execute`, { method: 'POST', headers, body: '{"action":"run"}' });
  const proxied = fetch(`${await killed.url()}${home}/tool-instances/${String(id)}/proxy/run`, {
    headers: ann.headers,
  });
  const cut = [execute(await killed.url()), proxied].map((call) =>
    call.then(
      () => 'answered',
      () => 'cut',
    ),
  );
  const linesOf = (text: string) =>
    killed
      .output()
      .split('\n')
      .filter((line) => line.includes(text) && line.includes(String(id)));
  await waitUntil(() => requests.length === 2);
  await waitUntil(() => linesOf('an action begins').length > 0 && linesOf('a call goes through').length > 0);
  killed.child.kill('SIGKILL');
  await killed.exited();
  expect(await Promise.all(cut)).toEqual(['cut', 'cut']);
  const [line] = linesOf('an action begins');
  expect(line).toContain(ann.orgId);
  expect(line).toMatch(/trace/);
  const next = await start().url();
  const again = await execute(next);
  expect([again.status, ((await again.json()) as { error: string }).error]).toEqual([409, 'IDEMPOTENCY_CONFLICT']);
  const { rows } = await db.query('select usage_count, action_counts from tool_instances where id = $1', [id]);
  expect(rows).toEqual([{ usage_count: 0, action_counts: {} }]);
  const events = await db.query("select from events where type like 'tool_action.%'");
  expect([events.rowCount, requests.length]).toEqual([0, 2]);
});
