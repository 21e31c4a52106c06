import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Account, call, register } from '../api.ts';
import { load, type Question, type Rounds } from '../load.ts';
import { seedWorkspaces } from '../seed.ts';
import { ServerProcess } from '../server-process.ts';
import { SMALL } from './workspaces.ts';

const PROCESSES = [1, 2, 4];
const WRITTEN = 64;
const CONNECTIONS = 32;
const SAMPLE_MS = 20;
/** Backends report what they did a second later at the latest. */
const REPORT_MS = 1_500;

const WAITING = `select count(*) filter (where wait_event_type = 'Lock')::int as rows,
    count(*) filter (where wait_event_type = 'LWLock')::int as inner
  from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
const ACTIVE = `select active_time as ms from pg_stat_database where datname = current_database()`;

/** Sessions that wait for a lock, on average: of a row, and within the database. */
interface Waits {
  rows: number;
  inner: number;
}

/** Looks at the sessions again and again. @returns a function that ends it, with the averages */
function watchWaits(client: pg.Client): () => Promise<Waits> {
  const found: Waits[] = [];
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      found.push((await client.query<Waits>(WAITING)).rows[0]!);
      await delay(SAMPLE_MS);
    }
  })();
  return async () => {
    isOver = true;
    await running;
    const average = (of: keyof Waits) => found.reduce((sum, waits) => sum + waits[of], 0) / found.length;
    return { rows: average('rows'), inner: average('inner') };
  };
}

async function activeMs(client: pg.Client): Promise<number> {
  await delay(REPORT_MS);
  return (await client.query<{ ms: number }>(ACTIVE)).rows[0]!.ms;
}

async function measure(
  title: string,
  node: ServerProcess,
  questions: readonly Question[],
  { token }: Account,
  client: pg.Client,
  seconds: number,
): Promise<void> {
  await load(node, questions, token, 2, CONNECTIONS);
  const [active, cpu] = [await activeMs(client), node.cpuSecondsOfAll()];
  const end = watchWaits(client);
  const { rps, p99Ms, latenciesMs } = await load(node, questions, token, seconds, CONNECTIONS);
  const waits = await end();
  const cpuMicros = ((node.cpuSecondsOfAll() - cpu) * 1e6) / latenciesMs.length;
  const databaseMs = ((await activeMs(client)) - active) / latenciesMs.length;
  console.log(
    `  ${node.name.padEnd(9)} ${title.padEnd(7)} ${rps.toFixed(0).padStart(5)} requests/s  ` +
      `p99 ${p99Ms.toFixed(0)} ms  CPU ${cpuMicros.toFixed(0)} us/request  ` +
      `database ${databaseMs.toFixed(2)} ms/request  ` +
      `waiting sessions: ${waits.rows.toFixed(2)} for rows, ${waits.inner.toFixed(2)} within`,
  );
}

/**
 * One node of 1, 2 and 4 processes: CPU of all of them and time of the database for a request, and how many sessions
 * wait for locks. `npm run bench -- nodes` runs it alone.
 */
export async function nodes(
  program: string[],
  env: Record<string, string>,
  databaseUrl: string,
  { seconds }: Rounds,
): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  let account: Account | undefined;
  const paths: string[] = [];
  console.log(
    `\none node, ${CONNECTIONS} connections, ${seconds} s each, CPUs are shared with the database and the load`,
  );
  try {
    for (const workers of PROCESSES) {
      const node = await ServerProcess.start(`WORKERS=${workers}`, program, { ...env, WORKERS: String(workers) });
      try {
        if (!account) {
          account = await register(node);
          await seedWorkspaces(databaseUrl, account, SMALL);
          paths.push(...(await written(node, account)));
        }
        const all = `/v1/orgs/${account.orgId}/workspaces`;
        let n = 0;
        const change = (path: string): Question => ({ method: 'PUT', path, body: () => ({ name: `Renamed ${n++}` }) });
        await measure('reads', node, [`${all}?limit=20`, ...paths.slice(0, 3)], account, client, seconds);
        await measure('writes', node, paths.map(change), account, client, seconds);
      } finally {
        await node.stop();
      }
    }
  } finally {
    await client.end();
  }
}

/** Paths of workspaces that are renamed in turn. */
async function written(node: ServerProcess, { orgId, token }: Account): Promise<string[]> {
  const workspaces = `/v1/orgs/${orgId}/workspaces`;
  const paths: string[] = [];
  for (let n = 0; n < WRITTEN; n++) {
    const make = { organization_id: orgId, name: `Written ${n}` };
    const { workspace_id } = await call<{ workspace_id: string }>(node, token, 'POST', workspaces, make);
    paths.push(`${workspaces}/${workspace_id}`);
  }
  return paths;
}
