// `npm run bench:files`: how many files of the project single requests enter, once everything is warm. A file is
// entered when one of its functions is called. `npm run bench:files -- list upload` names the files, of these alone.
import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { withScratchDatabase } from '../scripts/scratch-database.ts';
import { buildApp } from '../src/app.ts';
import { loadConfig } from '../src/config.ts';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { createLogger } from '../src/platform/logger.ts';
import { createMailer } from '../src/platform/mail/mail.ts';
import { openDatabase } from '../src/platform/postgres/database.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { type Account, call, register } from './api.ts';

const WARM_UP = 20;
/** A file counts that each of so many requests enters: what the service does by itself meanwhile is in few of them. */
const TAKES = 8;
/** Until what follows an answer is over: its metrics, its line in the log, its events. */
const AFTERWARDS_MS = 60;

/** Calls by `file function`. */
type Calls = Map<string, number>;

interface Flow {
  name: string;
  /** The bar of the project, in files. */
  atMost?: number;
  send: () => Promise<unknown>;
}

function flowsOf(url: string, { token, orgId, workspaceId }: Account): Flow[] {
  const server = { url };
  const workspaces = `/v1/orgs/${orgId}/workspaces`;
  const query = 'query One($orgId: ID!, $id: ID!) { workspace(orgId: $orgId, id: $id) { id name } }';
  let made = 0;
  return [
    { name: 'list', atMost: 45, send: () => call(server, token, 'GET', workspaces) },
    { name: 'get', send: () => call(server, token, 'GET', `${workspaces}/${workspaceId}`) },
    {
      name: 'create',
      send: () =>
        call(server, token, 'POST', `/v1/orgs/${orgId}/secrets`, {
          name: `made-${made++}`,
          secret_type: 'basic_auth',
          value: { username: 'bench', password: 'made to be measured' },
        }),
    },
    {
      name: 'upload',
      atMost: 70,
      send: async () => {
        const body = new FormData();
        body.set('name', `made ${made++}`);
        body.set('file', new Blob(['a file of a few words'], { type: 'text/plain' }), 'made.txt');
        const headers = { authorization: `Bearer ${token}` };
        const to = `${url}${workspaces}/${workspaceId}/namespaces/default/artifacts/upload`;
        const response = await fetch(to, { method: 'POST', headers, body });
        const text = await response.text();
        if (!response.ok) throw new Error(`the upload answered ${response.status}: ${text}`);
      },
    },
    {
      name: 'graphql',
      send: () => call(server, token, 'POST', '/graphql', { query, variables: { orgId, id: workspaceId } }),
    },
  ];
}

/** What one request calls in `src/` and `rest/`, with what follows its answer. */
async function callsOf(session: Session, send: Flow['send']): Promise<Calls> {
  await session.post('Profiler.takePreciseCoverage');
  await send();
  await setTimeout(AFTERWARDS_MS);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const calls: Calls = new Map();
  for (const { url, functions } of result) {
    const file = fileOf(url);
    if (file === null) continue;
    for (const { functionName, ranges } of functions) {
      const [whole] = ranges;
      if (!whole || whole.count === 0) continue;
      calls.set(`${file} ${functionName} ${whole.startOffset}`, whole.count);
    }
  }
  return calls;
}

const ROOT = pathToFileURL(`${projectRoot}/`).href;

function fileOf(url: string): string | null {
  const file = url.startsWith(ROOT) ? url.slice(ROOT.length).replace(/\?.*$/, '') : '';
  return /^(?:src|rest)\//.test(file) ? file : null;
}

async function measured(session: Session, { name, atMost, send }: Flow, namesFiles: boolean): Promise<void> {
  for (let n = 0; n < WARM_UP; n++) await send();
  await setTimeout(AFTERWARDS_MS);
  let common: Calls | null = null;
  for (let n = 0; n < TAKES; n++) {
    const calls = await callsOf(session, send);
    const before: Calls = common ?? calls;
    common = new Map(
      [...calls].flatMap(([key, count]) => (before.has(key) ? [[key, Math.min(count, before.get(key)!)]] : [])),
    );
  }
  const functions = [...common!.keys()];
  const files = [...new Set(functions.map((key) => key.split(' ')[0]!))].sort();
  const calls = [...common!.values()].reduce((sum, count) => sum + count, 0);
  const bar = atMost === undefined ? '' : ` (at most ${atMost})`;
  console.log(`${name}: ${files.length} files${bar}, ${functions.length} functions, ${calls} calls`);
  if (namesFiles) for (const file of files) console.log(`  ${file}`);
}

async function measure(databaseUrl: string, dataDir: string, only: readonly string[]): Promise<void> {
  const config = loadConfig({ DATA_DIR: dataDir, DATABASE_URL: databaseUrl, PORT: '0', RATE_LIMIT_RPS: '0' });
  const logger = createLogger({ logLevel: 'error' });
  const database = openDatabase({ url: databaseUrl, poolSize: config.databasePoolSize, logger });
  const mailer = createMailer({ config, logger });
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const app = await buildApp({ config, database, mailer, logger });
  try {
    const url = await app.server.listen({ host: '127.0.0.1', port: 0 });
    await app.jobs.stop(); // a file is indexed by a job, which is no part of its upload
    const account = await register({ url });
    for (const flow of flowsOf(url, account))
      if (only.length === 0 || only.includes(flow.name)) await measured(session, flow, only.length > 0);
  } finally {
    await app.server.close();
    await app.stop();
    mailer.close();
    await database.close();
  }
}

const dataDir = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
try {
  await withScratchDatabase(async (url) => {
    await migrate(url, migrationsDir);
    await measure(url, dataDir, process.argv.slice(2));
  });
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
