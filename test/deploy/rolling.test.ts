// own process: starts nodes and proxies
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../crash/client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Follower, followSocket, followStream } from '../support/followers.ts';
import { freePort } from '../support/free-port.ts';
import { caddy, nginx, type ReverseProxy } from '../support/proxies.ts';
import { type Service, startService } from '../support/service.ts';
import { waitFor, waitUntil } from '../support/wait.ts';

// Debian's packages `nginx-light` and `caddy`; without them, only CI insists
const proxies = Object.entries({ nginx, caddy }).filter(([, { program }]) => process.env.CI || existsSync(program));

let base: string;
let database: TestDatabase;
const nodes: { port: number; service: Service }[] = [];
const running: ChildProcess[] = [];
const addresses = new Map<string, string>();
/** What nginx says of its own errors: why it answered 502. */
let saidByNginx = '';

beforeAll(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'rolling-'));
  database = await createTestDatabase();
  for (let n = 0; n < 3; n++) {
    const port = await freePort();
    nodes.push({ port, service: start(port) });
    await nodes[n]!.service.url();
  }
  for (const [name, proxy] of proxies) addresses.set(name, await behind(name, proxy));
});
afterAll(async () => {
  for (const { service } of nodes) await endBy(service.child, 'SIGKILL');
  // nginx ends its own processes only if it is asked to end
  for (const child of running) await endBy(child, 'SIGTERM');
  await database.drop();
  await rm(base, { recursive: true, force: true });
});

async function endBy(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'close');
  child.kill(signal);
  await ended;
}

/** A node with the keys and files of the others. */
function start(port: number): Service {
  return startService({
    DATA_DIR: path.join(base, 'data'),
    DATABASE_URL: database.url,
    PORT: String(port),
    LOG_LEVEL: 'error',
    RATE_LIMIT_RPS: '0',
    EVENT_POLL_MS: '50',
    SHUTDOWN_DELAY_SECONDS: '5',
  });
}

async function behind(name: string, proxy: ReverseProxy): Promise<string> {
  const [port, folder] = [await freePort(), path.join(base, name)];
  await mkdir(folder);
  const upstreams = nodes.map((node) => `127.0.0.1:${node.port}`);
  const { args, env } = proxy.command(folder, port, upstreams);
  const child = spawn(proxy.program, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (proxy === nginx) saidByNginx += text;
  });
  running.push(child);
  const url = `http://127.0.0.1:${port}`;
  await waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
  return url;
}

/** Clients pause: their connections are idle in between, and the nodes have time to restart. */
const PAUSE_MS = 15;

/** Sends requests one after another, with pauses, until it is told to end. */
interface Load {
  sent: number;
  failed: string[];
  end(): Promise<void>;
}

function load(send: () => Promise<Response>, statuses: readonly number[]): Load {
  let isOver = false;
  const state: Load = { sent: 0, failed: [], end: () => Promise.resolve() };
  const failed = (how: string) => state.failed.push(`${new Date().toISOString()} ${how}`);
  const work = (async () => {
    while (!isOver) {
      state.sent++;
      try {
        const answer = await send();
        const text = await answer.text();
        if (!statuses.includes(answer.status)) failed(`${answer.status} ${text.slice(0, 200)}`);
      } catch (error) {
        failed(String((error as Error).cause ?? error));
      }
      await delay(PAUSE_MS);
    }
  })();
  state.end = () => {
    isOver = true;
    return work;
  };
  return state;
}

/** How many of the namespaces that the load makes are there. */
async function namespacesMade(): Promise<number> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const text = `select count(*)::int as n from namespaces where name ~ '^(nginx|caddy)-'`;
    return (await client.query<{ n: number }>(text)).rows[0]!.n;
  } finally {
    await client.end();
  }
}

test.runIf(proxies.length > 0)(
  'three nodes restart one after another behind each proxy: no request fails, no event is lost or repeated',
  async () => {
    const ann = await Client.register([...addresses.values()][0]!);
    const home = `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}`;
    const headers = { ...ann.headers, 'content-type': 'application/json' };
    const followers: Follower[] = [];
    for (const url of addresses.values()) {
      const place = { url, orgId: ann.orgId, workspaceId: ann.workspaceId, headers: ann.headers };
      followers.push(await followStream(place), await followStream(place), await followSocket(place));
    }
    const update = (url: string, description: string) =>
      fetch(url + home, { method: 'PUT', headers, body: JSON.stringify({ description }) });
    expect((await update([...addresses.values()][0]!, 'first')).status).toBe(200);
    let updates = 1;
    await waitFor(() => expect(followers.map(({ seen }) => seen.length)).toEqual(followers.map(() => 1)));

    let made = 0;
    const loads = [...addresses].flatMap(([name, url]) => [
      load(() => fetch(url + home, { headers }), [200]),
      load(() => fetch(url + home, { headers }), [200]),
      load(() => update(url, `update ${++updates}`), [200]),
      load(
        () =>
          fetch(`${url}${home}/namespaces`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ name: `${name}-${++made}` }),
          }),
        [201],
      ),
    ]);
    for (const node of nodes) {
      node.service.child.kill('SIGTERM');
      expect([await node.service.exited(), node.service.output()]).toEqual([0, expect.not.stringContaining('ERROR')]);
      node.service = start(node.port);
      await node.service.url();
      // longer than a proxy leaves out a node that refused: the next one may go
      const before = loads.map(({ sent }) => sent);
      const since = Date.now();
      await waitUntil(() => Date.now() - since > 3_000 && loads.every(({ sent }, at) => sent > before[at]! + 5));
    }
    for (const one of loads) await one.end();

    expect(
      loads.flatMap(({ failed }) => failed),
      saidByNginx,
    ).toEqual([]);
    for (const { sent } of loads) expect(sent).toBeGreaterThan(50);
    expect(await namespacesMade()).toBe(made);
    await waitFor(() => expect(followers.map(({ seen }) => seen.length)).toEqual(followers.map(() => updates)));
    const [{ seen: expected }] = followers as [Follower];
    expect(new Set(expected).size).toBe(updates);
    expect(followers.map(({ refusals }) => refusals)).toEqual(followers.map(() => []));
    for (const { seen } of followers) expect(seen).toEqual(expected);
    expect(followers.every(({ cuts }) => cuts > 0)).toBe(true);
    for (const follower of followers) await follower.stop();
  },
);
