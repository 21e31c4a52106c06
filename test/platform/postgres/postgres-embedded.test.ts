// own process: starts processes, which is slow from a large process
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/platform/postgres/postgres-embedded.ts';
import { copy } from '../../support/cluster.ts';
import { isRunning } from '../../support/is-running.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitFor } from '../../support/wait.ts';

let base: string;
let dir: string;
const running = new Set<EmbeddedPostgres>();
const owners = new Map<ChildProcess, number>();

/** A database that was made, started and stopped: making one takes as long as all else in most tests. */
let made: string;
beforeAll(async () => {
  made = path.join(await mkdtemp(path.join(tmpdir(), 'embedded-')), 'postgres');
  await (await startEmbeddedPostgres({ dir: made, logger: quietLogger })).stop();
});
afterAll(() => rm(path.dirname(made), { recursive: true, force: true }));

beforeEach(async () => {
  // mode 0700: as root this also proves that closed folders are no obstacle
  base = await mkdtemp(path.join(tmpdir(), 'embedded-'));
  dir = path.join(base, 'postgres');
});

afterEach(async () => {
  for (const server of running) await server.stop();
  for (const [owner, pid] of owners) {
    owner.kill('SIGKILL');
    await waitFor(() => expect(isRunning(pid)).toBe(false)); // it stops by itself
  }
  owners.clear();
  running.clear();
  await rm(base, { recursive: true, force: true });
});

async function start(at = dir): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dir: at, logger: quietLogger });
  running.add(server);
  return server;
}

const copyMade = () => copy(made, dir);

/** Starts a database that was made before. */
async function startMade(): Promise<EmbeddedPostgres> {
  copyMade();
  return start();
}

async function stop(server: EmbeddedPostgres): Promise<void> {
  running.delete(server);
  await server.stop();
}

async function startOwner(): Promise<{ owner: ChildProcess; url: string; pid: number }> {
  copyMade();
  const owner = fork(path.join(import.meta.dirname, 'postgres-owner.fixture.ts'), [dir], {
    execArgv: ['--import', 'tsx'],
  });
  const [message] = (await once(owner, 'message')) as [{ url: string; pid: number }];
  owners.set(owner, message.pid);
  return { owner, ...message };
}

async function query<R extends pg.QueryResultRow>(url: string, sql: string): Promise<R[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<R>(sql)).rows;
  } finally {
    await client.end();
  }
}

describe('startEmbeddedPostgres', () => {
  it('keeps its rows over a stop and a start, and leaves no process and no lock behind', async () => {
    const first = await start();
    const pid = first.pid;
    await query(first.url, `create table kept as select 'row' as text`);
    await stop(first);
    expect(isRunning(pid)).toBe(false);
    await expect(stat(`${dir}.owner`)).rejects.toThrow('ENOENT');
    const second = await start();
    expect(await query(second.url, 'select text from kept')).toEqual([{ text: 'row' }]);
  });

  it('listens on a socket in a folder that only its user may enter, and on no port', async () => {
    const server = await startMade();
    expect(await query(server.url, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
  });

  it('works in a folder whose path is too long for a socket', async () => {
    const server = await start(path.join(base, 'long'.repeat(30), 'postgres'));
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('compares upper and lower case beyond ASCII', async () => {
    const server = await startMade();
    expect(await query(server.url, `select lower('ÄÉЖ') as lower`)).toEqual([{ lower: 'äéж' }]);
  });

  it('refuses a second owner while the first one lives, without disturbing it', async () => {
    const { url, pid } = await startOwner();
    await expect(start()).rejects.toThrow(`The database in ${dir} is in use by another service`);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(isRunning(pid)).toBe(true);
  });

  it('comes up with every committed row after its owner was killed', async () => {
    const { owner, url, pid } = await startOwner();
    await query(url, `create table kept as select 'row' as text`);
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const server = await start();
    expect(await query(server.url, 'select text from kept')).toEqual([{ text: 'row' }]);
    expect(server.pid).not.toBe(pid);
  });

  it('starts the server again after it was killed, with every committed row', async () => {
    const server = await startMade();
    await query(server.url, `create table kept as select 'row' as text`);
    const pid = server.pid;
    process.kill(pid, 'SIGKILL');
    await waitFor(async () => expect(await query(server.url, 'select text from kept')).toEqual([{ text: 'row' }]));
    expect(server.pid).not.toBe(pid);
  });

  it('can be stopped while the server is being started again', async () => {
    const server = await startMade();
    process.kill(server.pid, 'SIGKILL');
    await stop(server);
    const next = await start();
    expect(await query(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('comes up after a first start that was killed half-way', async () => {
    await mkdir(`${dir}.new`);
    await writeFile(path.join(`${dir}.new`, 'PG_VERSION'), '18');
    const server = await start();
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('refuses a folder that holds something else, and leaves it alone', async () => {
    await mkdir(dir);
    await writeFile(path.join(dir, 'thesis.txt'), 'precious');
    await expect(start()).rejects.toThrow(`The folder ${dir} is not empty, but holds no PostgreSQL database.`);
    expect(await readFile(path.join(dir, 'thesis.txt'), 'utf8')).toBe('precious');
  });
});
