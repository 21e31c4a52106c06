import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { migrationsDir } from '../../src/paths.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { asServerUser, CLEAN_ENV, findBinaries, serverUser } from '../../src/platform/postgres/postgres-binaries.ts';
import { startEmbeddedPostgres } from '../../src/platform/postgres/postgres-embedded.ts';
import { copy, folderWithSpace } from './cluster.ts';
import { quietLogger } from './quiet-logger.ts';
import { waitFor } from './wait.ts';

/** A PostgreSQL that follows another one. */
export interface RunningReplica {
  url: string;
  /** Stops it as a machine that is switched off does; nothing waits. */
  kill(): Promise<void>;
  /** Stops its processes where they are, or lets them go on. */
  freeze(isFrozen: boolean): void;
  start(): Promise<void>;
  /** @throws Error when the query finds nothing there */
  has(query: string): Promise<void>;
  /** Makes it a primary of its own. */
  promote(): Promise<void>;
}

/** A primary of its own with streaming replicas. */
export interface ReplicatedPostgres {
  url: string;
  replicas: RunningReplica[];
  /** Statements on the primary, as its superuser. */
  run(...statements: string[]): Promise<void>;
  stopPrimary(): Promise<void>;
  stop(): Promise<void>;
}

/** @param delaysMs one replica for each: how much later it applies what it gets */
export async function startReplicated(...delaysMs: number[]): Promise<ReplicatedPostgres> {
  const base = mkdtempSync(path.join(folderWithSpace(), 'test-'));
  const dir = path.join(base, 'primary');
  const open = () => startEmbeddedPostgres({ dir, isDurable: false, logger: quietLogger });
  const first = await open();
  await migrate(first.url, migrationsDir);
  await first.stop();
  const copies = delaysMs.map((_, at) => path.join(base, `replica-${at}`));
  for (const to of copies) copy(dir, to);
  const primary = await open();
  const replicas = copies.map((to, at) => new Replica(to, dir, delaysMs[at]!, primary.url));
  for (const replica of replicas) await replica.start();
  let isStopped = false;
  const stopPrimary = async () => {
    if (!isStopped) await primary.stop();
    isStopped = true;
  };
  return {
    url: primary.url,
    replicas,
    run: (...statements) => asked(primary.url, statements),
    stopPrimary,
    async stop() {
      for (const replica of replicas) await replica.kill();
      await stopPrimary();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

async function asked(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const text of statements) await client.query(text);
  } finally {
    await client.end();
  }
}

class Replica implements RunningReplica {
  readonly url: string;
  readonly #dir: string;
  #child: ChildProcess | null = null;

  constructor(dir: string, primaryDir: string, delayMs: number, primaryUrl: string) {
    this.#dir = dir;
    const url = new URL(primaryUrl);
    url.searchParams.set('host', dir);
    this.url = url.href;
    writeFileSync(path.join(dir, 'standby.signal'), '');
    appendFileSync(
      path.join(dir, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=${primaryDir} user=postgres'\nrecovery_min_apply_delay = '${delayMs}ms'\n`,
    );
  }

  async start(): Promise<void> {
    const { postgres } = await findBinaries();
    const settings = ['listen_addresses=', 'fsync=off', 'max_connections=100', 'hot_standby_feedback=on'];
    const args = ['-D', this.#dir, '-k', this.#dir, ...settings.flatMap((setting) => ['-c', setting])];
    const command = asServerUser(serverUser(), [this.#dir, postgres], postgres, args);
    this.#child = spawn(command.file, command.args, {
      ...command.options,
      env: { ...CLEAN_ENV },
      stdio: 'ignore',
    });
    await waitFor(() => asked(this.url, ['select 1']));
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    this.#child = null;
    const ended = once(child, 'close');
    process.kill(child.pid!, 'SIGQUIT');
    await ended;
  }

  freeze(isFrozen: boolean): void {
    const pid = this.#child!.pid!;
    const signal = isFrozen ? 'SIGSTOP' : 'SIGCONT';
    // first, so that it starts no more
    process.kill(pid, signal);
    // each of its processes has a group of its own
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    for (const child of children) signalUnlessEnded(Number(child), signal);
  }

  async has(query: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    try {
      if ((await client.query(query)).rowCount === 0) throw new Error(`Nothing is found by: ${query}`);
    } finally {
      await client.end();
    }
  }

  async promote(): Promise<void> {
    await asked(this.url, ['select pg_promote()']);
  }
}

/** The server of a session ends by itself, at any time. */
function signalUnlessEnded(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
