import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { publishFile } from './whole-file.ts';

// a process of another user may have to read the owner
const MODE = 0o644;
const HEARTBEAT_MS = 2_000;
const HEARTBEAT_PATIENCE_MS = 10_000;

/** The folder belongs to a live process. */
export class FolderInUseError extends Error {
  override readonly name = 'FolderInUseError';
}

/** Held until `release()`, or until the process ends, however it ends. */
export interface FolderLock {
  release(): void;
}

interface LockHolder {
  /** Host name and process-id namespace: the scope of `pid`. */
  realm: string;
  pid: number;
  /** When the process began, in the system's format: process ids are reused, the pair is not. */
  started: string;
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

function realm(): string {
  if (process.platform !== 'linux') return hostname();
  return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
}

function startOf(pid: number): string | undefined {
  try {
    if (process.platform !== 'linux')
      return execFileSync('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' }).trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name before it may contain blanks
    return state === 'Z' ? undefined : rest[18];
  } catch {
    return undefined; // no such process: both look-ups fail then
  }
}

/** A process in another container or on another machine is not visible, but its heartbeat in the shared folder is. */
async function beats(file: string): Promise<boolean> {
  const seen = statSync(file).mtimeMs;
  for (let waited = 0; waited < HEARTBEAT_PATIENCE_MS; waited += 250) {
    await delay(250);
    if (statSync(file, { throwIfNoEntry: false })?.mtimeMs !== seen) return true;
  }
  return false;
}

async function isAlive(content: string, file: string): Promise<boolean> {
  let owner: Partial<LockHolder>;
  try {
    owner = JSON.parse(content) as Partial<LockHolder>;
  } catch {
    return false; // truncated by a crash of the machine
  }
  if (owner.realm === realm()) return owner.pid !== undefined && startOf(owner.pid) === owner.started;
  return beats(file);
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function removeStale(file: string, judged: string): void {
  const aside = `${file}.stale.${process.pid}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    throw error;
  }
  const taken = readFileSync(aside, 'utf8');
  if (taken !== judged) publishFile(file, taken, MODE); // another process was faster: restore its lock
  rmSync(aside);
}

/**
 * Takes the lock file for this process. The lock of a dead process is taken over.
 * @throws FolderInUseError when its owner lives, naming the process
 */
export async function lockFolder(file: string): Promise<FolderLock> {
  const mine = JSON.stringify({
    realm: realm(),
    pid: process.pid,
    started: startOf(process.pid) ?? '',
  } satisfies LockHolder);
  for (;;) {
    if (publishFile(file, mine, MODE)) return hold(file, mine);
    const theirs = readIfThere(file);
    if (theirs === undefined) continue;
    if (await isAlive(theirs, file))
      throw new FolderInUseError(`the lock ${file} is held by a live process: ${theirs}`);
    removeStale(file, theirs);
  }
}

function hold(file: string, mine: string): FolderLock {
  const heartbeat = setInterval(() => {
    const now = new Date();
    if (readIfThere(file) === mine) utimesSync(file, now, now);
  }, HEARTBEAT_MS).unref();
  return {
    release: () => {
      clearInterval(heartbeat);
      if (readIfThere(file) === mine) rmSync(file, { force: true });
    },
  };
}
