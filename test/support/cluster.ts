import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { migrationsDir } from '../../src/paths.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/platform/postgres/postgres-embedded.ts';
import { isRunning } from './is-running.ts';
import { quietLogger } from './quiet-logger.ts';
import { digestOfTemplate, templateOf } from './template.ts';

const GIB = 1024 ** 3;
const UNUSED_MS = 14 * 86_400_000;

/** Makes the template unless the server has it: under a private name first, so that a killed run leaves none. */
export async function makeTemplate(urlOf: (database: string) => string): Promise<void> {
  const template = templateOf();
  const admin = new pg.Client({ connectionString: urlOf('postgres') });
  await admin.connect();
  try {
    const { rowCount } = await admin.query('select from pg_database where datname = $1', [template]);
    if (rowCount! > 0) return;
    const mine = `${template}_${process.pid}`;
    await admin.query(`drop database if exists ${mine} with (force)`);
    await admin.query(`create database ${mine}`);
    await migrate(urlOf(mine), migrationsDir);
    await admin.query(`alter database ${mine} rename to ${template}`).catch(async (error: unknown) => {
      // another run was faster
      if ((error as { code?: string }).code !== '42P04') throw error;
      await admin.query(`drop database ${mine} with (force)`);
    });
  } finally {
    await admin.end();
  }
}

/**
 * A PostgreSQL for one run, with the template. Its files are copied from a folder that runs share: making and migrating
 * them takes seconds.
 */
export async function startCluster(): Promise<EmbeddedPostgres> {
  const kept = await keptFiles();
  const folder = folderWithSpace();
  removeAbandoned(folder);
  const base = mkdtempSync(path.join(folder, `${RUN}${process.pid}-`));
  const dir = path.join(base, 'postgres');
  if (kept) copy(kept, dir);
  const server = await startServer(dir);
  await makeTemplate((database) => server.urlOf(database));
  return {
    url: server.urlOf('postgres'),
    pid: server.pid,
    urlOf: (database) => server.urlOf(database),
    async stop() {
      await server.stop();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

const startServer = (dir: string) =>
  startEmbeddedPostgres({ dir, database: 'postgres', isDurable: false, logger: quietLogger });

/** The folder with the files of a stopped server that has the template. `undefined` where no folder is ours alone. */
async function keptFiles(): Promise<string | undefined> {
  const cache = path.join(tmpdir(), `platform-test-postgres-${userInfo().uid}`);
  mkdirSync(cache, { recursive: true, mode: 0o755 });
  // what somebody else put there would run with our rights
  if (statSync(cache).uid !== userInfo().uid) return undefined;
  const kept = path.join(cache, digestOfTemplate());
  if (!existsSync(kept)) await makeFiles(cache, kept);
  utimesSync(kept, new Date(), new Date());
  for (const other of readdirSync(cache)) removeUnused(path.join(cache, other));
  return kept;
}

async function makeFiles(cache: string, kept: string): Promise<void> {
  const mine = mkdtempSync(path.join(cache, 'new-'));
  const dir = path.join(mine, 'postgres');
  const server = await startServer(dir);
  await makeTemplate((database) => server.urlOf(database));
  await server.stop();
  try {
    renameSync(dir, kept);
  } catch (error) {
    if (!existsSync(kept)) throw error; // another run was faster
  }
  rmSync(mine, { recursive: true, force: true });
}

function removeUnused(folder: string): void {
  const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (age > UNUSED_MS) rmSync(folder, { recursive: true, force: true });
}

const RUN = 'platform-tests-';

/** What killed runs have left in a folder: their files in memory would be there until the machine starts anew. */
export function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(RUN) ? Number.parseInt(name.slice(RUN.length), 10) : Number.NaN;
    const base = path.join(folder, name);
    if (Number.isNaN(pid) || isRunning(pid) || statSync(base, { throwIfNoEntry: false })?.uid !== userInfo().uid)
      continue;
    const ofServer = path.join(base, 'postgres', 'postmaster.pid');
    if (existsSync(ofServer) && isRunning(Number.parseInt(readFileSync(ofServer, 'utf8'), 10))) continue;
    rmSync(base, { recursive: true, force: true });
  }
}

/** Files in memory, where there is a lot of it: copies of databases are faster there. */
export function folderWithSpace(): string {
  const memory = '/dev/shm';
  if (!existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > 8 * GIB ? memory : tmpdir();
}

/** With owner and rights: the server refuses a folder that is another user's. */
export function copy(from: string, to: string): void {
  const { status, stderr, error } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The files of the database could not be copied: ${stderr}`, { cause: error });
}
