// Restarts a service under load, and counts the requests that were lost: sent, and never answered. Half of the clients
// connect anew for each request. The others keep their connections as a proxy does, also those of streams that the
// service has ended. BENCH_ROUNDS is the number of restarts, 12 by default. A quiet machine loses few: run something
// beside it that takes a processor.
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from '../test/crash/client.ts';
import { startService } from '../test/support/service.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 12);
const CLIENTS = 4;
const STREAMS = 4;
const PAUSE_MS = 2;
const BEFORE_MS = 500;
const DELAY_SECONDS = 1;
/** Less than the service goes on for: what a proxy keeps is gone by then, but for what it has kept since. */
const KEPT_MS = 600;

const OUTCOMES = ['answered', 'refused', 'lost'] as const;
type Outcome = (typeof OUTCOMES)[number];
type Counts = Record<Outcome, number>;

/** A request over a connection of its own. */
function askAnew(port: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    let isOpen = false;
    socket.once('connect', () => {
      isOpen = true;
      socket.write('GET /v1/auth/config HTTP/1.1\r\nhost: localhost\r\n\r\n');
    });
    socket.once('data', () => {
      socket.destroy();
      resolve('answered');
    });
    socket.once('end', () => resolve('lost'));
    socket.once('error', () => resolve(isOpen ? 'lost' : 'refused'));
  });
}

/** Sends a request over a connection that is kept, if there is one, and reads the answer to its end. */
function askKept(target: http.RequestOptions): Promise<Outcome> {
  return new Promise((resolve) => {
    http
      .get(target, (answer) => {
        answer.on('error', () => resolve('lost')).on('end', () => resolve('answered'));
        answer.resume();
      })
      .once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'lost'));
  });
}

/** Keeps connections as a proxy does: the one that was used last is the first to be used again. */
function proxied(port: number, { headers, orgId, workspaceId }: Client) {
  const agent = new http.Agent({ keepAlive: true, scheduling: 'lifo' });
  agent.on('free', (socket: net.Socket) => void socket.setTimeout(KEPT_MS));
  const to = (place: string) => ({ host: '127.0.0.1', port, path: place, agent, headers });
  const home = `/v1/orgs/${orgId}/workspaces/${workspaceId}`;
  return { ask: () => askKept(to(home)), follow: () => askKept(to(`${home}/sync/stream`)) };
}

async function restart(dataDir: string, member: Client | null, counts: Record<'anew' | 'kept', Counts>) {
  const env = {
    DATA_DIR: dataDir,
    LOG_LEVEL: 'error',
    SHUTDOWN_DELAY_SECONDS: String(DELAY_SECONDS),
    RATE_LIMIT_RPS: '0',
  };
  const service = startService(env);
  const url = await service.url();
  const known = member ?? (await Client.register(url));
  const port = Number(new URL(url).port);
  const { ask, follow } = proxied(port, known);
  const streams = Array.from({ length: STREAMS }, follow);
  let isOver = false;
  const client = async (kind: 'anew' | 'kept', send: () => Promise<Outcome>) => {
    while (!isOver) {
      counts[kind][await send()]++;
      await delay(PAUSE_MS);
    }
  };
  const clients = Array.from({ length: CLIENTS }, () => [client('anew', () => askAnew(port)), client('kept', ask)]);
  await delay(BEFORE_MS);
  service.child.kill('SIGTERM');
  await service.exited();
  isOver = true;
  await Promise.all([...clients.flat(), ...streams]);
  return known;
}

const dataDir = mkdtempSync(path.join(tmpdir(), 'closing-'));
const none = (): Counts => ({ answered: 0, refused: 0, lost: 0 });
const counts = { anew: none(), kept: none() };
let member: Client | null = null;
for (let round = 0; round < ROUNDS; round++) member = await restart(dataDir, member, counts);
rmSync(dataDir, { recursive: true, force: true });
console.log(`${ROUNDS} restarts`);
for (const [kind, count] of Object.entries(counts))
  console.log(`connections ${kind}: ${OUTCOMES.map((outcome) => `${count[outcome]} ${outcome}`).join(', ')}`);
