import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { FolderInUseError, type FolderLock, lockFolder } from '../folder-lock.ts';
import type { Logger } from '../logger.ts';
import {
  asServerUser,
  type Binaries,
  CLEAN_ENV,
  findBinaries,
  type SystemUser,
  serverUser,
} from './postgres-binaries.ts';
import { initialise, serverPid, stopLeftover } from './postgres-folder.ts';

const DATABASE = 'platform';
const START_TIMEOUT_MS = 300_000; // recovery after a crash replays up to a gigabyte
const STOP_TIMEOUT_MS = 30_000;
const LONGEST_SOCKET_PATH = 103; // bytes: macOS; Linux allows four more
const SOCKET_NAME = '.s.PGSQL.5432.lock';

// However our process ends, the pipe on the shell's standard input closes, and the server gets the signal to stop. Only
// the server and its children have the shell's standard error: when it closes, they are gone.
const KEEPER =
  '"$@" </dev/null & server=$!; exec 2>&-; trap "" INT TERM HUP; read -r line; kill -INT $server; wait $server';

/** How to start a server. */
export interface EmbeddedPostgresOptions {
  /** Folder of the database; created when it is missing. One process at a time may own it. */
  dir: string;
  /** Name of the database; created when it is missing. */
  database?: string;
  /** false trades safety against a crash of the machine for speed: tests only. */
  isDurable?: boolean;
  logger: Logger;
}

/** A running server, restarted if it dies. */
export interface EmbeddedPostgres {
  /** Connection URL of the database: a Unix socket, no TCP. */
  readonly url: string;
  /** Process id of the server. */
  readonly pid: number;
  /** The connection URL of another database of the server. */
  urlOf(database: string): string;
  /** Ends all sessions, flushes everything to disk, stops the server. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from the npm package in our own folder.
 *
 * Security: the server listens on a Unix socket only, in a folder of mode 0700 that belongs to the user it runs as
 * (ourselves, or `postgres`/`nobody` when we are root). A process that can open the socket can also read the data
 * files, so no password is required.
 * @throws Error when the folder belongs to a live process, or with the server's log when it does not start
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dir, database = DATABASE } = options;
  mkdirSync(path.dirname(dir), { recursive: true });
  const lock = await own(dir);
  try {
    const binaries = await findBinaries();
    const user = serverUser();
    await initialise(dir, binaries, user);
    await stopLeftover(dir);
    const server = new Server(options, binaries, user, lock);
    await server.start();
    await createDatabase(server.urlOf('postgres'), database);
    return server;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Connection URL of the server that another process of ours runs in the folder; `undefined` when none does. */
export function runningPostgresUrl(dir: string, database = DATABASE): string | undefined {
  if (serverPid(dir) === undefined) return undefined;
  const socketDir = readFileSync(path.join(dir, 'postmaster.pid'), 'utf8').split('\n')[4];
  return socketDir ? socketUrl(socketDir, database) : undefined; // it is written shortly after the process id
}

const socketUrl = (socketDir: string, database: string) =>
  `postgresql://postgres@localhost/${encodeURIComponent(database)}?host=${encodeURIComponent(socketDir)}`;

async function own(dir: string): Promise<FolderLock> {
  try {
    return await lockFolder(`${dir}.owner`);
  } catch (error) {
    if (!(error instanceof FolderInUseError)) throw error;
    throw new Error(
      `The database in ${dir} is in use by another service that is running. Stop it, ` +
        'or give this one a DATA_DIR of its own, or share one database through DATABASE_URL.',
      { cause: error },
    );
  }
}

async function createDatabase(adminUrl: string, database: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database]);
    if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(database)}`);
  } finally {
    await client.end();
  }
}

function socketFolder(dir: string, user: SystemUser | undefined): string {
  if (Buffer.byteLength(path.join(dir, SOCKET_NAME)) <= LONGEST_SOCKET_PATH) return dir;
  const short = mkdtempSync(path.join(tmpdir(), 'pg-'));
  if (user) chownSync(short, user.uid, user.gid);
  return short;
}

/** One run of the server program. */
interface ServerRun {
  keeper: ChildProcess;
  /** Resolves with the end of the log when the server and all its children are gone. */
  ended: Promise<string>;
}

class Server implements EmbeddedPostgres {
  private readonly options: EmbeddedPostgresOptions;
  private readonly binaries: Binaries;
  private readonly user: SystemUser | undefined;
  private readonly lock: FolderLock;
  private readonly socketDir: string;
  private run: ServerRun | undefined;
  private restarting: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();

  constructor(options: EmbeddedPostgresOptions, binaries: Binaries, user: SystemUser | undefined, lock: FolderLock) {
    this.options = options;
    this.binaries = binaries;
    this.user = user;
    this.lock = lock;
    this.socketDir = socketFolder(options.dir, user);
  }

  get url(): string {
    return this.urlOf(this.options.database ?? DATABASE);
  }

  get pid(): number {
    const pid = serverPid(this.options.dir);
    if (pid === undefined) throw new Error('the embedded PostgreSQL is not running');
    return pid;
  }

  urlOf(database: string): string {
    return socketUrl(this.socketDir, database);
  }

  async start(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS;
    for (;;) {
      const run = this.launch();
      const log = await Promise.race([run.ended, ready(run, deadline - Date.now())]);
      if (log === true) {
        this.run = run;
        void run.ended.then((end) => this.onEnd(end));
        return;
      }
      // children of a killed server may outlive it for a moment; PostgreSQL refuses to start beside them
      const isBusy = /shared memory block|lock file "postmaster.pid" already exists/.test(log);
      if (!isBusy || Date.now() > deadline || this.stopping.signal.aborted)
        throw new Error(`The embedded PostgreSQL did not start:\n${log}`);
      await delay(100);
    }
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.restarting;
    if (this.run) await this.end(this.run);
    if (this.socketDir !== this.options.dir) rmSync(this.socketDir, { recursive: true, force: true });
    this.lock.release();
  }

  private launch(): ServerRun {
    const { dir, isDurable = true } = this.options;
    const settings = {
      listen_addresses: '',
      unix_socket_permissions: '0700',
      max_connections: '100',
      jit: 'off', // costs more than it saves on short statements
      random_page_cost: '1.1',
      max_parallel_workers_per_gather: '0', // containers have little /dev/shm, which parallel plans need
      ...(isDurable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    };
    const args = [
      '-D',
      dir,
      '-k',
      this.socketDir,
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ];
    const { postgres } = this.binaries;
    const command = asServerUser(this.user, [dir, postgres], '/bin/sh', ['-c', KEEPER, 'sh', postgres, ...args]);
    // an old lock file may name a process id that is now ours; PostgreSQL ignores that of its parent, and this way ours
    const env = { ...CLEAN_ENV, PG_GRANDPARENT_PID: String(process.pid) };
    const keeper = spawn(command.file, command.args, {
      ...command.options,
      env,
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    keeper.stdin?.on('error', () => keeper.stdin?.destroy()); // the keeper was killed
    return { keeper, ended: this.follow(keeper) };
  }

  /** Copies the server's log into ours; resolves with its last part when it ends. */
  private follow(keeper: ChildProcess): Promise<string> {
    let log = '';
    keeper.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      log = (log + chunk).slice(-4_000);
      this.options.logger.debug({ component: 'postgres' }, chunk.trimEnd());
    });
    return new Promise((resolve, reject) => {
      keeper.once('error', reject);
      keeper.stderr?.once('close', () => keeper.stdin?.end()); // the server is gone: the keeper can end too
      keeper.once('close', () => resolve(log));
    });
  }

  private onEnd(log: string): void {
    this.run = undefined;
    if (this.stopping.signal.aborted) return;
    this.options.logger.error(
      { component: 'postgres', log },
      'the embedded PostgreSQL ended unexpectedly and is being restarted',
    );
    this.restarting = this.restart();
  }

  private async restart(): Promise<void> {
    for (let pauseMs = 250; !this.stopping.signal.aborted; pauseMs = Math.min(2 * pauseMs, 30_000)) {
      try {
        await this.start();
        this.options.logger.info({ component: 'postgres' }, 'the embedded PostgreSQL runs again');
        return;
      } catch (error) {
        this.options.logger.error(
          { component: 'postgres', err: error },
          'the embedded PostgreSQL could not be started again',
        );
        // a stop ends the pause
        await delay(pauseMs, undefined, { signal: this.stopping.signal }).catch(() => undefined);
      }
    }
  }

  private async end(run: ServerRun): Promise<void> {
    const { dir } = this.options;
    const tell = (signal: NodeJS.Signals): void => {
      const pid = serverPid(dir);
      if (pid !== undefined) process.kill(pid, signal);
    };
    run.keeper.stdin?.end();
    if (run.keeper.exitCode !== null || run.keeper.signalCode !== null) tell('SIGINT'); // the keeper was killed
    const impatient = setTimeout(() => tell('SIGQUIT'), STOP_TIMEOUT_MS);
    await run.ended;
    clearTimeout(impatient);
  }
}

function ready({ keeper }: ServerRun, timeoutMs: number): Promise<true> {
  return new Promise((resolve, reject) => {
    let seen = '';
    const late = setTimeout(() => {
      keeper.stdin?.end();
      reject(new Error(`The embedded PostgreSQL was not ready in time:\n${seen}`));
    }, timeoutMs);
    keeper.stderr?.on('data', (chunk: string) => {
      seen = (seen + chunk).slice(-4_000);
      if (seen.includes('ready to accept connections')) {
        clearTimeout(late);
        resolve(true);
      }
    });
    keeper.stderr?.once('close', () => clearTimeout(late));
  });
}
