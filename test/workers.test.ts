// own process: starts processes, which is slow from a large process
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Client } from './crash/client.ts';
import { createTestDatabase, type TestDatabase } from './support/database.ts';
import { type Service, startService } from './support/service.ts';
import { type EventSource, openAcknowledged, openEvents, type SentEvent } from './support/sockets.ts';
import { waitFor, waitUntil } from './support/wait.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let base: string;
const services: Service[] = [];
beforeAll(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'workers-'));
});
afterAll(async () => {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  await rm(base, { recursive: true, force: true });
});

function start(env: Record<string, string>): Service {
  const service = startService({ DATA_DIR: path.join(base, randomBytes(4).toString('hex')), WORKERS: '2', ...env });
  services.push(service);
  return service;
}

/** The processes that another one started. */
async function childrenOf(pid: number): Promise<number[]> {
  const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(
    all.map(async (child) => {
      const stat = await readFile(`/proc/${child}/stat`, 'utf8').catch(() => undefined); // it has ended meanwhile
      return Number(stat?.split(') ')[1]?.split(' ')[1]);
    }),
  );
  return all.filter((_, at) => parents[at] === pid);
}

const metricsOf = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text();
const workersOf = async (url: string) =>
  ((await (await fetch(`${url}/readyz`)).json()) as { workers?: { running: number; of: number } }).workers;
/** In a text of metrics, the values of one by worker. */
const byWorker = (text: string, name: string): Map<string, number> =>
  new Map(
    [...text.matchAll(new RegExp(`^${name}\\{worker="(\\d+)"\\} (\\S+)$`, 'gm'))].map(([, worker, value]) => [
      worker!,
      Number(value),
    ]),
  );

interface Update {
  event_id: string;
  type: string;
  data: { bucket_status?: string };
}
const isUpdate = ({ type, data }: Update) => type === 'workspace.updated' && data.bucket_status === undefined;
const updatesIn = (events: readonly SentEvent[]): string[] =>
  events
    .map(({ data }) => JSON.parse(data) as Update)
    .filter(isUpdate)
    .map(({ event_id }) => event_id);

describe('a node of two workers', () => {
  let database: TestDatabase;
  let service: Service;
  let url: string;
  let ann: Client;
  let home: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    service = start({ DATABASE_URL: database.url, LOG_LEVEL: 'error', RATE_LIMIT_RPS: '0', EVENT_POLL_MS: '50' });
    url = await service.url();
    ann = await Client.register(url);
    home = `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}`;
  });
  afterAll(async () => {
    await database.drop();
  });

  const follow = (after?: string): Promise<EventSource> =>
    openEvents(`${url}${home}/sync/stream`, {
      headers: { ...ann.headers, ...(after === undefined ? {} : { 'last-event-id': after }) },
    });
  const change = async (description: string) =>
    fetch(`${url}${home}`, {
      method: 'PUT',
      headers: { ...ann.headers, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ description }),
    });

  it('is ready with both, whose metrics stand side by side', async () => {
    expect(await workersOf(url)).toEqual({ running: 2, of: 2 });
    const text = await metricsOf(url);
    expect([...byWorker(text, 'process_start_time_seconds').keys()].sort()).toEqual(['1', '2']);
    expect(text.match(/^# TYPE http_requests_total counter$/gm)).toHaveLength(1);
    expect(text).toContain('\nworker_deaths_total 0\n');
    const starts = [...text.matchAll(/^process_start_time_seconds\{worker="\d"\} (.*)$/gm)];
    expect(starts).toHaveLength(2);
  });

  it('goes on after kill -9 of one: it is replaced, and streams resume without a gap or a repeat', async () => {
    // streams of both: the kernel gives connections to whoever is free
    const streams = await Promise.all(Array.from({ length: 8 }, () => follow()));
    await Promise.all(streams.map((stream) => stream.next(({ event }) => event === 'connected')));
    const query = `subscription ($after: String) {
      workspaceEvents(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", after: $after) { eventId type data } }`;
    const socket = await openAcknowledged(url, ann.headers.authorization);
    socket.send({ id: '1', type: 'subscribe', payload: { query } });
    const sent: string[] = [];
    const send = async (name: string) => {
      expect((await change(name)).status).toBe(200);
      sent.push(name);
    };
    await send('before');
    await waitFor(() => expect(streams.map(({ events }) => updatesIn(events).length)).toEqual(Array(8).fill(1)));

    const before = byWorker(await metricsOf(url), 'event_streams');
    expect(before.size).toBe(2);
    const [victim] = (await childrenOf(service.child.pid!)).sort((a, b) => a - b);
    const broken = streams.map((stream) => stream.ended.then(() => 'ended', () => 'broken'));
    process.kill(victim!, 'SIGKILL');
    await waitUntil(async () => !(await childrenOf(service.child.pid!)).includes(victim!));
    // requests go on while there is one worker
    for (let n = 0; n < 10; n++) await send(`after ${n}`);
    const cut = await waitUntil(async () => {
      const states = await Promise.all(broken.map((one) => Promise.race([one, Promise.resolve('open')])));
      return states.includes('open') && !states.includes('broken') ? false : states;
    });
    // whoever was cut off comes back with the last that it has seen
    const all = await Promise.all(
      streams.map(async (stream, at) =>
        cut[at] === 'open'
          ? { seen: [] as readonly SentEvent[], stream }
          : { seen: stream.events, stream: await follow(stream.events.at(-1)!.id) },
      ),
    );
    await waitFor(async () => expect(await workersOf(url)).toEqual({ running: 2, of: 2 }));
    expect(service.output()).toMatch(/ERROR a worker has ended, another one takes its place worker=\d how=.*SIGKILL/);
    await send('last');
    for (const { seen, stream } of all)
      await waitFor(() => expect(updatesIn([...seen, ...stream.events])).toHaveLength(sent.length));
    const [expected, ...others] = all.map(({ seen, stream }) => updatesIn([...seen, ...stream.events]));
    expect(new Set(expected).size).toBe(sent.length);
    for (const found of others) expect(found).toEqual(expected);
    for (const { stream } of all) stream.close();
    socket.close();

    const text = await metricsOf(url);
    expect(text).toContain('\nworker_deaths_total 1\n');
    expect([...byWorker(text, 'process_start_time_seconds').keys()].sort()).toEqual(['1', '2']);
  });

  it('ends with all of them on SIGTERM', async () => {
    const workers = await childrenOf(service.child.pid!);
    expect(workers).toHaveLength(2);
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    expect(await childrenOf(service.child.pid!)).toEqual([]);
    for (const pid of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});

describe('a node of workers', () => {
  it('starts one database of its own, tells its start once, and stops it', async () => {
    const dataDir = path.join(base, 'own');
    const service = start({ DATA_DIR: dataDir });
    const url = await service.url();
    expect(await workersOf(url)).toEqual({ running: 2, of: 2 });
    const count = (text: string) => service.output().match(new RegExp(`^(\\S+ )?${text}`, 'gm'))?.length;
    const told = ['creating a database', 'migrating the database', 'starting the workers', 'Platform management API is'];
    for (const step of told) expect([step, count(step)]).toEqual([step, 1]);
    const pid = Number((await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0]);
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    expect(service.output()).not.toMatch(/ (WARN|ERROR|FATAL) /);
  });

  it('does not start where its workers cannot, and says why once', async () => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const database = await createTestDatabase();
    const { port } = other.address() as net.AddressInfo;
    const service = start({ PORT: String(port), DATABASE_URL: database.url, LOG_LEVEL: 'error' });
    expect(await service.exited()).toBe(1);
    expect(service.output()).toBe(
      `The service could not start. Port ${port} of 127.0.0.1 is in use. Stop the other process, or set PORT.\n`,
    );
    other.close();
    await database.drop();
  });
});
