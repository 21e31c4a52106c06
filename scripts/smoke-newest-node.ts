// Starts the built service on the newest even-numbered Node that npm's `node` package offers, uses it, and runs some of
// the tests there: `npm run smoke`. That Node is installed outside the project and does not change it. The last line
// has the totals.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { projectRoot } from '../src/paths.ts';
import { Client, type Json } from '../test/support/client.ts';
import { startService } from '../test/support/service.ts';
import { buildIfChanged } from './build.mjs';

/**
 * Tests of the areas in which versions of Node differ most: sockets, streams, processes, cryptography, native code.
 */
const SUITES = [
  'test/identity/auth/refresh.test.ts',
  'test/engine/transport/sockets.test.ts',
  'test/http/edges.test.ts',
  'test/platform/outbound/outbound.test.ts',
  'test/vault/secrets/envelope.test.ts',
  'test/suites/graphql-over-http.test.ts',
  'test/tenancy/workspaces/workspace.test.ts',
];

function npm(...args: string[]): string {
  return execFileSync('npm', args, {
    encoding: 'utf8',
    shell: process.platform === 'win32',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

function newestEvenNode(): string {
  const versions = JSON.parse(npm('view', 'node', 'versions', '--json')) as string[];
  const byNumber = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true });
  const newest = versions
    .filter((version) => /^\d*[02468]\.\d+\.\d+$/.test(version))
    .sort(byNumber)
    .at(-1);
  if (newest === undefined) throw new Error('npm offers no Node with an even number.');
  return newest;
}

/** @returns the path of its executable */
function installNode(version: string): string {
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const name = `node-${platform}-${process.arch}`;
  const dir = path.join(projectRoot, 'node_modules', '.cache', 'newest-node');
  mkdirSync(dir, { recursive: true });
  npm('install', '--prefix', dir, '--no-save', '--no-package-lock', '--ignore-scripts', `${name}@${version}`);
  return path.join(dir, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
}

function ensure(isTrue: boolean, promise: string): void {
  if (!isTrue) throw new Error(`not so: ${promise}`);
  console.log(`  ${promise}`);
  checks++;
}

/** Does what a first user does, over every API of the service. @throws Error when an answer is not as expected */
async function use(url: string): Promise<void> {
  const anyone = new Client(url);
  const credentials = { username: 'smoke', password: 'the password of a smoke test' };
  await anyone.post('/v1/auth/register', { ...credentials, email: 'smoke@example.test' });
  const { access_token, user } = await anyone.post('/v1/auth/login', credentials);
  const token = String(access_token);
  const orgId = String((user as { settings: Json }).settings.current_org_id);
  ensure(token !== '', 'registers and signs in');

  const me = anyone.with(token);
  const made = await me.post(`/v1/orgs/${orgId}/workspaces`, { organization_id: orgId, name: 'Smoke' });
  const list = await me.get(`/v1/orgs/${orgId}/workspaces?limit=1`);
  ensure(list.total === 2 && list.has_more === true, 'creates a workspace and lists it');

  const data = await me.query(
    '{ me { username organizations(first: 2) { nodes { workspaces(first: 5) { totalCount } } } } }',
  );
  ensure(JSON.stringify(data).includes('"totalCount":2'), 'answers a GraphQL query');

  const secret = { name: 'smoke', secret_type: 'api_key', value: { key: 'sealed' } };
  await me.post(`/v1/orgs/${orgId}/secrets`, secret);
  const { value } = await me.get(`/v1/orgs/${orgId}/secrets/by-name/smoke?include_value=true`);
  ensure((value as Json).key === 'sealed', 'seals a secret and opens it');

  const workspaceId = String(made.workspace_id);
  const place = `orgId: "${orgId}", workspaceId: "${workspaceId}"`;
  const rename = () => me.must('PUT', `/v1/orgs/${orgId}/workspaces/${workspaceId}`, { name: 'Renamed' });
  const event = await nextEvent(url, token, `subscription { workspaceEvents(${place}) { type } }`, rename);
  ensure(JSON.stringify(event).includes('workspace.updated'), 'sends an event over a WebSocket');
}

/** Opens the pages and what they load: they come from files, which a bundle may fail to find. */
async function open(url: string): Promise<void> {
  for (const page of ['/', '/docs', '/graphql']) {
    const answer = await fetch(`${url}${page}`, { headers: { accept: 'text/html' } });
    const html = await answer.text();
    const sources = [...html.matchAll(/(?:src|href)="((?:\.?\/)?[\w./-]+\.(?:js|css|svg|png))"/g)].map(
      ([, path]) => path,
    );
    const found = await Promise.all(sources.map(async (path = '') => (await fetch(new URL(path, answer.url))).ok));
    ensure(answer.ok && found.every(Boolean), `shows ${page} with its ${found.length} files`);
  }
}

/** The first event of a subscription. Calls `change` until it arrives. */
async function nextEvent(url: string, token: string, query: string, change: () => Promise<unknown>): Promise<unknown> {
  const client = createClient({
    url: `${url.replace('http', 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
  });
  const events = client.iterate({ query });
  try {
    const first = events.next();
    const changing = setInterval(() => void change(), 200); // the stream sends nothing when it opens
    const event: { value: unknown } = await first.finally(() => clearInterval(changing));
    return event.value;
  } finally {
    await events.return?.();
    await client.dispose();
  }
}

async function smoke(node: string): Promise<void> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'smoke-'));
  const service = startService({ DATA_DIR: dataDir, LOG_LEVEL: 'warn' }, { node });
  try {
    await use(await service.url());
    await open(await service.url());
    service.child.kill('SIGTERM');
    ensure((await service.exited()) === 0, 'stops on SIGTERM');
  } finally {
    service.child.kill('SIGKILL');
    await service.exited();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

for (const suite of SUITES)
  if (!existsSync(path.join(projectRoot, suite)))
    throw new Error(`${suite} is gone: scripts/smoke-newest-node.ts names it.`);
let checks = 0;
const version = newestEvenNode();
const node = installNode(version);
console.log(`Node ${version}, the built service:`);
buildIfChanged();
await smoke(node);
const vitest = path.join(projectRoot, 'node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(node, [vitest, 'run', ...SUITES], { cwd: projectRoot, stdio: 'inherit' });
console.log(
  `Node ${version}: the built service passed ${checks} checks; the suites ${status === 0 ? 'passed' : 'failed'}.`,
);
process.exit(status === 0 ? 0 : 1);
