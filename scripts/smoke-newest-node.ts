// Starts the built service on the newest even-numbered Node that npm's `node` package offers, uses it, and runs some of
// the tests there: `npm run smoke`. That Node is installed outside the project and does not change it. The last line
// has the totals.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, Session } from 'platform-management-client';
import { WorkspaceEventsDocument } from 'platform-management-client/documents';
import { WebSocket } from 'ws';
import { projectRoot } from '../src/paths.ts';
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
  const anyone = new Client({ url });
  const account = { username: 'smoke', password: 'the password of a smoke test' };
  await anyone.rest.POST('/v1/auth/register', { body: { ...account, email: 'smoke@example.test' } });
  const { data: tokens } = await anyone.rest.POST('/v1/auth/login', { body: account });
  ensure(tokens.access_token !== '', 'registers and signs in');

  const me = new Client({ url, credentials: new Session({ url, tokens }), webSocket: WebSocket });
  const org_id = String(tokens.user.settings.current_org_id);
  const { data: made } = await me.rest.POST('/v1/orgs/{org_id}/workspaces', {
    params: { path: { org_id } },
    body: { organization_id: org_id, name: 'Smoke' },
  });
  let listed = 0;
  for await (const _one of me.list('/v1/orgs/{org_id}/workspaces', { path: { org_id }, query: { limit: 1 } })) listed++;
  ensure(listed === 2, 'creates a workspace and lists it, page by page');

  const data = await me.query(
    '{ me { username organizations(first: 2) { nodes { workspaces(first: 5) { totalCount } } } } }',
    {},
  );
  ensure(JSON.stringify(data).includes('"totalCount":2'), 'answers a GraphQL query');

  const secret = { name: 'smoke', secret_type: 'api_key', value: { key: 'sealed' } };
  await me.rest.POST('/v1/orgs/{org_id}/secrets', { params: { path: { org_id } }, body: secret });
  const { data: revealed } = await me.rest.GET('/v1/orgs/{org_id}/secrets/by-name/{name}', {
    params: { path: { org_id, name: 'smoke' }, query: { include_value: true } },
  });
  ensure(revealed.value?.key === 'sealed', 'seals a secret and opens it');

  const { workspace_id } = made;
  const file = { org_id, workspace_id, namespace_id: 'default' };
  const { artifact_id } = await me.upload(file, new Blob(['smoke and fire']), { fileName: 'smoke.txt', name: 'Smoke' });
  const part = await (await me.download({ ...file, artifact_id }, { from: 10, to: 13 })).text();
  ensure(part === 'fire', 'takes a file and gives a part of it back');

  const rename = () =>
    me.rest.PUT('/v1/orgs/{org_id}/workspaces/{workspace_id}', {
      params: { path: { org_id, workspace_id } },
      body: { name: 'Renamed' },
    });
  const variables = { orgId: org_id, workspaceId: workspace_id, types: ['workspace.updated'] };
  const events = me.subscribe(WorkspaceEventsDocument, variables);
  const first = events.next();
  const changing = setInterval(() => void rename(), 200); // the stream sends nothing when it opens
  const event = await first.finally(() => clearInterval(changing));
  ensure(event.value?.workspaceEvents.type === 'workspace.updated', 'sends an event over a WebSocket');
  await events.return();
  await me.close();

  for await (const { event: received } of me.events({ org_id, workspace_id })) {
    if (received.type === 'connected') await rename();
    if (received.type === 'workspace.updated') break;
  }
  ensure(true, 'sends an event over a stream');
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
// the times that are kept stay those of the whole run
const args = [vitest, 'run', '--reporter=default', ...SUITES];
const { status } = spawnSync(node, args, { cwd: projectRoot, stdio: 'inherit' });
console.log(
  `Node ${version}: the built service passed ${checks} checks; the suites ${status === 0 ? 'passed' : 'failed'}.`,
);
process.exit(status === 0 ? 0 : 1);
