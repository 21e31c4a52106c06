// Where a PgBouncer is that keeps prepared statements (1.21 or newer): the installed one, or that of Debian 13, which
// has its own C library. `node scripts/pgbouncer.mjs` fetches it where it is missing, from the mirror that this
// machine's apt is set up with; where that cannot be, it says so and ends well.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './stamp.mjs';

const INSTALLED = '/usr/sbin/pgbouncer';
const KEPT = path.join(root, 'node_modules', '.cache', 'pgbouncer');
const RELEASE = 'trixie';
const PACKAGES = [
  'pgbouncer',
  'libaudit1',
  'libc6',
  'libcap-ng0',
  'libcap2',
  'libcares2',
  'libevent-2.1-7t64',
  'libpam0g',
  'libssl3t64',
  'libsystemd0',
  'libzstd1',
  'zlib1g',
];
/** The first that keeps prepared statements in transaction mode. */
const NEEDED = { major: 1, minor: 21 };

/**
 * A command that starts a PgBouncer, and its version.
 * @typedef {{ command: readonly string[], version: string }} PgBouncer
 */

/** @param {readonly string[]} command @returns {PgBouncer | undefined} */
function asked(command) {
  const [program, ...args] = command;
  if (!program || !existsSync(program)) return undefined;
  const { stdout } = spawnSync(program, [...args, '--version'], { encoding: 'utf8' });
  const version = /PgBouncer (\d+\.\d+\.\d+)/.exec(stdout ?? '')?.[1];
  return version ? { command, version } : undefined;
}

/** @param {PgBouncer} bouncer */
function isNew({ version }) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > NEEDED.major || (major === NEEDED.major && minor >= NEEDED.minor);
}

/** @param {string} folder the unpacked packages */
function unpacked(folder) {
  const loader = path.join(folder, 'usr', 'lib64', 'ld-linux-x86-64.so.2');
  const libraries = path.join(folder, 'usr', 'lib', 'x86_64-linux-gnu');
  return asked([loader, '--library-path', libraries, path.join(folder, 'usr', 'sbin', 'pgbouncer')]);
}

/**
 * The PgBouncers of this machine: one that loses prepared statements, and one that keeps them.
 * @returns {{ old: PgBouncer | undefined, current: PgBouncer | undefined }}
 */
export function bouncers() {
  const installed = asked([INSTALLED]);
  const kept = unpacked(KEPT);
  if (!installed) return { old: undefined, current: kept };
  return isNew(installed) ? { old: undefined, current: installed } : { old: installed, current: kept };
}

/** @param {string} program @param {readonly string[]} args @param {string} [cwd] */
function run(program, args, cwd = root) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 180_000 });
  if (status !== 0) throw new Error(`${program} failed: ${(stderr || error?.message || '').trim().slice(0, 500)}`);
  return stdout;
}

/** The mirror of Debian that this machine has. */
function mirror() {
  const targets = run('apt-get', [
    'indextargets',
    '--format',
    '$(SITE)',
    'Created-By: Packages',
    'Component: main',
    'Origin: Debian',
  ]);
  const site = targets.split('\n').find((line) => line !== '' && !line.includes('security'));
  if (!site) throw new Error('no mirror of Debian is set up (`apt-get update` may be missing)');
  return site;
}

/** Fetches and unpacks it, under a private name first. */
function fetchCurrent() {
  if (process.arch !== 'x64') throw new Error(`the packages are of x64, not of ${process.arch}`);
  mkdirSync(path.dirname(KEPT), { recursive: true });
  const folder = mkdtempSync(`${KEPT}-`);
  try {
    for (const part of ['lists/partial', 'cache/archives/partial', 'packages', 'unpacked'])
      mkdirSync(path.join(folder, part), { recursive: true });
    const sources = path.join(folder, 'sources.list');
    const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
    writeFileSync(sources, `deb [signed-by=${key}] ${mirror()} ${RELEASE} main\n`);
    const own = {
      'Dir::Etc::sourcelist': sources,
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::Etc::preferences': '/dev/null',
      'Dir::Etc::preferencesparts': '/dev/null',
      'Dir::State::lists': path.join(folder, 'lists'),
      'Dir::State::status': '/dev/null',
      'Dir::Cache': path.join(folder, 'cache'),
      'APT::Sandbox::User': 'root',
      'Acquire::Languages': 'none',
    };
    const options = Object.entries(own).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const packages = path.join(folder, 'packages');
    run('apt-get', [...options, '-qq', 'update']);
    run('apt-get', [...options, '-qq', 'download', ...PACKAGES], packages);
    for (const name of readdirSync(packages))
      run('dpkg-deb', ['-x', path.join(packages, name), path.join(folder, 'unpacked')]);
    rmSync(KEPT, { recursive: true, force: true });
    renameSync(path.join(folder, 'unpacked'), KEPT);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    if (!bouncers().current) fetchCurrent();
    const { old, current } = bouncers();
    if (!current) throw new Error('what was unpacked does not start');
    console.log(`PgBouncer ${current.version}${old ? `, beside the installed ${old.version}` : ''}`);
  } catch (error) {
    console.log(`NOT RUN: no PgBouncer 1.21 or newer, ${error instanceof Error ? error.message : String(error)}`);
  }
}
