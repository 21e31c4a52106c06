import { setTimeout as delay } from 'node:timers/promises';
import { startReplicated } from '../../test/support/replica.ts';
import { type Account, call, register } from '../api.ts';
import { ServerProcess } from '../server-process.ts';

/** How much later the replica applies what it gets. */
const LAG_MS = 500;
/** Pairs at once, each of a workspace of its own. */
const LANES = 16;
/** A read comes so much later than its write, at most: some find that the replica has it by then. */
const LONGEST_MS = 900;
const CONTROLS = 200;

/** Who reads: with the position of the write on another node, without it on the same node, or without it on another. */
type Way = 'position, other node' | 'no position, same node' | 'no position, other node';

interface Counts {
  pairs: number;
  stale: number;
}

/**
 * Writes, each with a read of it in a list, on two nodes beside a replica that is late: how many of the reads lack what
 * was written. Reads without the position on another node are there to show that it can be seen.
 */
export async function pairs(program: string[], env: Record<string, string>, count: number): Promise<void> {
  const server = await startReplicated(LAG_MS);
  const own = { ...env, DATABASE_URL: server.url, DATABASE_READ_URLS: server.replicas[0]!.url };
  const nodes: ServerProcess[] = [];
  try {
    for (const name of ['writes', 'reads']) nodes.push(await ServerProcess.start(name, program, own));
    const [writing, reading] = nodes as [ServerProcess, ServerProcess];
    const account = await register(writing);
    for (const node of nodes) await hasReplica(node);
    const lanes = await Promise.all(Array.from({ length: LANES }, (_, n) => makeWorkspace(writing, account, n)));
    const run = async (way: Way, of: number): Promise<void> => {
      const before = await answeredByReplica(nodes);
      const { pairs: made, stale } = await measure(way, of, { writing, reading, account, lanes });
      const byReplica = (await answeredByReplica(nodes)) - before;
      console.log(`  ${way}: ${made} pairs, ${stale} stale, ${byReplica} of the reads were answered by the replica`);
    };
    console.log(`\nread your writes, beside a replica that is ${LAG_MS} ms behind`);
    await run('position, other node', Math.ceil(count / 2));
    await run('no position, same node', Math.floor(count / 2));
    await run('no position, other node', CONTROLS);
  } finally {
    for (const node of nodes) await node.stop();
    await server.stop();
  }
}

interface Setting {
  writing: ServerProcess;
  reading: ServerProcess;
  account: Account;
  lanes: readonly string[];
}

async function measure(way: Way, count: number, { writing, reading, account, lanes }: Setting): Promise<Counts> {
  const counts: Counts = { pairs: 0, stale: 0 };
  const reader = way === 'no position, same node' ? writing : reading;
  const work = async (id: string): Promise<void> => {
    while (counts.pairs < count) {
      const name = `Pair ${++counts.pairs} ${way}`;
      const position = await rename(writing, account, id, name);
      await delay(Math.random() < 0.5 ? 0 : Math.random() * LONGEST_MS);
      const found = await nameInList(reader, account, id, way === 'position, other node' ? position : null);
      if (found !== name) counts.stale += 1;
    }
  };
  await Promise.all(lanes.map(work));
  return counts;
}

async function makeWorkspace(node: ServerProcess, { orgId, token }: Account, n: number): Promise<string> {
  const body = { organization_id: orgId, name: `Lane ${n}` };
  const made = await call<{ workspace_id: string }>(node, token, 'POST', `/v1/orgs/${orgId}/workspaces`, body);
  return made.workspace_id;
}

/** @returns the position that the answer says */
async function rename(node: ServerProcess, { orgId, token }: Account, id: string, name: string): Promise<string> {
  const answer = await fetch(`${node.url}/v1/orgs/${orgId}/workspaces/${id}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  });
  const position = answer.headers.get('x-consistency');
  if (!answer.ok || !position) throw new Error(`A change answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
  return position;
}

async function nameInList(
  node: ServerProcess,
  { orgId, token }: Account,
  id: string,
  position: string | null,
): Promise<string | undefined> {
  const answer = await fetch(`${node.url}/v1/orgs/${orgId}/workspaces?limit=100`, {
    headers: { authorization: `Bearer ${token}`, ...(position === null ? {} : { 'x-consistency': position }) },
  });
  if (!answer.ok) throw new Error(`A list answered ${answer.status}: ${await answer.text()}`);
  const { workspaces } = (await answer.json()) as { workspaces: { workspace_id: string; name: string }[] };
  return workspaces.find(({ workspace_id }) => workspace_id === id)?.name;
}

async function hasReplica(node: ServerProcess): Promise<void> {
  for (;;) {
    const { replicas } = await call<{ replicas: { state: string }[] }>(node, null, 'GET', '/readyz');
    if (replicas[0]?.state === 'ok') return;
    await delay(50);
  }
}

async function answeredByReplica(nodes: readonly ServerProcess[]): Promise<number> {
  let sum = 0;
  for (const { url } of nodes) {
    const text = await (await fetch(`${url}/metrics`)).text();
    sum += Number(/^platform_database_replica_reads_total\{server="replica"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  }
  return sum;
}
