import { mkdtemp, readFile, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTestDatabase } from './support/database.ts';
import { type Service, startService } from './support/service.ts';

let base: string;
const services = new Set<Service>();

beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'main-'));
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  services.clear();
  await vi.waitFor(async () => expect(await databasePid().then(isRunning)).toBe(false), { timeout: 10_000 });
  await rm(base, { recursive: true, force: true });
});

function start(env: Record<string, string> = {}): Service {
  const service = startService({ DATA_DIR: path.join(base, 'data'), ...env });
  services.add(service);
  return service;
}

async function databasePid(): Promise<number | undefined> {
  const file = path.join(base, 'data', 'postgres', 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => undefined); // not there: no database runs
  return text === undefined ? undefined : Number(text.split('\n')[0]);
}

function isRunning(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const isHealthy = async (url: string): Promise<boolean> => (await fetch(`${url}/healthz`)).ok;

describe('the process', () => {
  it('starts from nothing, prints its real URLs, answers, and ends with 0 and without its database on SIGTERM', async () => {
    const service = start();
    const url = await service.url();
    expect(service.output()).toContain(`GraphQL    ${url}/graphql`);
    expect(service.output()).toContain(`Reference  ${url}/docs`);
    expect(await isHealthy(url)).toBe(true);
    const pid = await databasePid();
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    expect(isRunning(pid)).toBe(false);
  });

  it('comes up again after kill -9', async () => {
    const killed = start();
    await killed.url();
    killed.child.kill('SIGKILL');
    await killed.exited();
    expect(await isHealthy(await start().url())).toBe(true);
  });

  it('goes on after its database was killed', async () => {
    const service = start();
    const url = await service.url();
    process.kill((await databasePid()) ?? 0, 'SIGKILL');
    await vi.waitFor(() => expect(service.output()).toContain('the embedded PostgreSQL runs again'), {
      timeout: 20_000,
    });
    await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200), { timeout: 10_000 });
  });

  it('refuses to share a data folder with a running service, and leaves that one alone', async () => {
    const url = await start().url();
    const second = start();
    expect(await second.exited()).toBe(1);
    expect(second.output()).toContain('is in use by another service that is running');
    expect(await isHealthy(url)).toBe(true);
  });

  it('says what is wrong with every variable, and ends with 1', async () => {
    const service = start({ PORT: 'abc', LOG_LEVEL: 'loud' });
    expect(await service.exited()).toBe(1);
    expect(service.output().trim().split('\n')).toEqual([
      "PORT must be an integer from 0 to 65535, not 'abc'.",
      expect.stringMatching(/^LOG_LEVEL must be one of .*, not 'loud'\.$/),
    ]);
  });

  it('uses the database of DATABASE_URL, and starts none of its own', async () => {
    const database = await createTestDatabase();
    const service = start({ DATABASE_URL: database.url });
    expect(await isHealthy(await service.url())).toBe(true);
    expect(await databasePid()).toBeUndefined();
    service.child.kill('SIGINT');
    expect(await service.exited()).toBe(0);
    await database.drop();
  });

  it('lets several nodes start at once on an empty database', async () => {
    const database = await createTestDatabase({ template: 'template0' });
    const nodes = ['a', 'b', 'c'].map((name) => start({ DATABASE_URL: database.url, DATA_DIR: path.join(base, name) }));
    const urls = await Promise.all(nodes.map((node) => node.url()));
    expect(await Promise.all(urls.map(isHealthy))).toEqual([true, true, true]);
    for (const node of nodes) node.child.kill('SIGTERM');
    expect(await Promise.all(nodes.map((node) => node.exited()))).toEqual([0, 0, 0]);
    await database.drop();
  });

  it('says that its port is taken', async () => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as net.AddressInfo;
    const database = await createTestDatabase();
    const service = start({ PORT: String(port), DATABASE_URL: database.url });
    expect(await service.exited()).toBe(1);
    expect(service.output()).toContain(`Port ${port} of 127.0.0.1 is in use. Stop the other process, or set PORT.`);
    other.close();
    await database.drop();
  });
});
