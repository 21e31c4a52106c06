// own process: starts processes, which is slow from a large process
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Client } from './crash/client.ts';
import { createTestDatabase, type TestDatabase } from './support/database.ts';
import { type Follower, followSocket, followStream } from './support/followers.ts';
import { type Service, startService } from './support/service.ts';
import { waitFor, waitUntil } from './support/wait.ts';

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
    expect(text.match(/^# TYPE platform_http_requests_total counter$/gm)).toHaveLength(1);
    expect(text).toContain('\nplatform_worker_deaths_total 0\n');
    const starts = [...text.matchAll(/^process_start_time_seconds\{worker="\d"\} (.*)$/gm)];
    expect(starts).toHaveLength(2);
  });

  it('goes on after kill -9 of one: it is replaced, and streams resume without a gap or a repeat', async () => {
    const place = { url, orgId: ann.orgId, workspaceId: ann.workspaceId, headers: ann.headers };
    const followers: Follower[] = [];
    // until both have some: the kernel gives connections to whoever is free
    const streams = async () => [...byWorker(await metricsOf(url), 'platform_event_streams').values()];
    while ((await streams()).length < 2 || (await streams()).includes(0))
      followers.push(await followStream(place), await followSocket(place));
    let sent = 0;
    const send = async () => expect((await change(`change ${++sent}`)).status).toBe(200);
    const allHave = () =>
      waitFor(() => expect(followers.map(({ seen }) => seen.length)).toEqual(followers.map(() => sent)));
    await send();
    await allHave();

    const [victim] = await childrenOf(service.child.pid!);
    process.kill(victim!, 'SIGKILL');
    await waitUntil(async () => !(await childrenOf(service.child.pid!)).includes(victim!));
    // requests go on while there is one worker
    for (let n = 0; n < 10; n++) await send();
    await waitFor(async () => expect(await workersOf(url)).toEqual({ running: 2, of: 2 }));
    expect(service.output()).toMatch(/ERROR a worker has ended, another one takes its place worker=\d how=.*SIGKILL/);
    await send();
    await allHave();
    expect(followers.reduce((cuts, follower) => cuts + follower.cuts, 0)).toBeGreaterThan(0);
    const [{ seen: expected }] = followers as [Follower];
    expect(new Set(expected).size).toBe(sent);
    for (const { seen } of followers) expect(seen).toEqual(expected);
    for (const follower of followers) await follower.stop();

    const text = await metricsOf(url);
    expect(text).toContain('\nplatform_worker_deaths_total 1\n');
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
    const told = [
      'creating a database',
      'migrating the database',
      'starting the workers',
      'Platform management API is',
    ];
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
