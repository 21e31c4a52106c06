import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { asServerUser, type Binaries, type SystemUser } from './postgres-binaries.ts';

const STOP_TIMEOUT_MS = 30_000;

/**
 * Creates the files of a new database next to the folder and moves them in at the end: a killed run leaves no partial
 * database.
 */
export async function initialise(
  dir: string,
  { initdb, postgres }: Binaries,
  user: SystemUser | undefined,
): Promise<void> {
  if (hasDatabase(dir)) return;
  if (existsSync(dir)) {
    if (readdirSync(dir).length > 0)
      throw new Error(`The folder ${dir} is not empty, but holds no PostgreSQL database.`);
    rmdirSync(dir);
  }
  const draft = `${dir}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  if (user) chownSync(draft, user.uid, user.gid);
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'];
  const command = asServerUser(user, [draft, postgres], initdb, [
    '-D',
    draft,
    '-U',
    'postgres',
    '--auth=trust',
    ...locale,
  ]);
  // not synchronously: the start goes on telling what it does
  const run = spawn(command.file, command.args, { ...command.options, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  run.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
  });
  const [status] = (await once(run, 'close')) as [number | null];
  if (status !== 0) throw new Error(`The embedded PostgreSQL could not be initialised:\n${said}`);
  renameSync(draft, dir);
}

/** Whether the folder holds a database. */
export const hasDatabase = (dir: string): boolean => existsSync(path.join(dir, 'PG_VERSION'));

/** Process id of the server that runs on the folder; undefined if none does. */
export function serverPid(dir: string): number | undefined {
  const file = path.join(dir, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  try {
    const isLinux = process.platform === 'linux';
    const line = isLinux
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      : execFileSync('/bin/ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' });
    return line.includes(` -D ${dir} `) ? pid : undefined;
  } catch {
    return undefined; // no such process: both look-ups fail then
  }
}

/**
 * Stops a server whose service and keeper were both killed. The caller holds the folder lock, so nobody else owns it.
 */
export async function stopLeftover(dir: string): Promise<void> {
  const begin = Date.now();
  for (let sent: NodeJS.Signals | undefined; ; await delay(20)) {
    const pid = serverPid(dir);
    if (pid === undefined) return;
    const signal = Date.now() - begin < STOP_TIMEOUT_MS ? 'SIGINT' : 'SIGQUIT';
    if (signal !== sent) process.kill(pid, signal);
    sent = signal;
  }
}
