import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Account } from '../api.ts';
import { type Listener, makeListeners } from '../listeners.ts';
import { median } from '../load.ts';
import { listenSse, listenWs, type Open, openAll, type Reader, subscribeSse, subscribeWs } from '../readers.ts';
import { seedWorkspaces } from '../seed.ts';
import type { ServerProcess } from '../server-process.ts';

const STREAMS_PER_USER = 10;
const LISTENING = 200;
const SILENT = Number(process.env.BENCH_SILENT ?? 4_000);
const EVENTS = 100;
const EVERY_MS = 30;
/** Until what starting and connecting left behind is done: compiled code, collected memory, vacuumed tables. */
const SETTLING_MS = 30_000;
/** Whole intervals of everything that is asked from time to time for each stream. */
const QUIET_SECONDS = 60;

type Transport = 'websocket' | 'sse';
const TRANSPORTS: readonly Transport[] = ['websocket', 'sse'];

export interface StreamServers {
  product: ServerProcess;
  /** `servers/streams.mjs` */
  bare: ServerProcess;
}

interface Streams extends StreamServers {
  /** Starts both anew: what a process used before would hide the memory of its streams. */
  fresh<T>(work: (servers: StreamServers) => Promise<T>): Promise<T>;
  account: Account;
  databaseUrl: string;
  dataDir: string;
  rounds: number;
}

/** The cost of an event for each of 200 streams, and the cost of 4,000 streams that receive nothing. */
export async function streams(options: Streams): Promise<void> {
  console.log(`\nstreams`);
  for (const transport of TRANSPORTS) await deliveries(options, transport);
  const silent = (transport: Transport, users: number) =>
    options.fresh((servers) => silence({ ...options, ...servers }, transport, users));
  for (const transport of TRANSPORTS) await silent(transport, SILENT / STREAMS_PER_USER);
  await silent('websocket', SILENT);
}

const query = ({ orgId }: Account, { workspaceId }: Listener) =>
  `subscription { workspaceEvents(orgId: "${orgId}", workspaceId: "${workspaceId}") {
    id cursor type resourceType resourceId data timestamp actor { principalType principalId username } } }`;

function opener({ product, account }: Streams, transport: Transport): (listener: Listener, at: number) => Open {
  return (listener, at) =>
    transport === 'sse'
      ? subscribeSse(product.url, listener.token, query(account, listener))
      : subscribeWs(product.url, listener.token, query(account, listener), `operation-${at}`);
}

const bareOpen = ({ bare }: Streams, transport: Transport): Open =>
  transport === 'sse' ? listenSse(bare.url) : listenWs(bare.url);

const closeAll = async (readers: readonly Reader[]) => {
  for (const reader of readers) reader.close();
  await delay(1_000);
};

async function deliveries(options: Streams, transport: Transport): Promise<void> {
  const { product, bare, account, databaseUrl, dataDir, rounds } = options;
  const people = await makeListeners(
    databaseUrl,
    dataDir,
    account,
    [account.workspaceId],
    LISTENING / STREAMS_PER_USER,
  );
  const open = opener(options, transport);
  const readers = await openAll(Array.from({ length: LISTENING }, (_, at) => open(people[at % people.length]!, at)));
  const bareReaders = await openAll(Array.from({ length: LISTENING }, () => bareOpen(options, transport)));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await delay(2_000);
  try {
    const emit = () =>
      client.query(
        `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
         values ('evt_' || gen_random_uuid(), $1, $2, 'thread.created',
           '{"principal_type":"user","principal_id":"usr_1","username":"somebody"}', 'thread',
            'thr_01JD0000000000000000000000', '{"title":"A title of a usual length","status":"open"}')`,
        [account.orgId, account.workspaceId],
      );
    const first = readers.map(({ count }) => count + 1);
    await emit();
    await arrived(readers, first);
    const text = readers[0]!.last;
    const post = () =>
      fetch(`${bare.url}/event`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text }),
      });
    const own: number[] = [];
    const ratios: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const base = await perDelivery(bare, bareReaders, post);
      const cost = await perDelivery(product, readers, emit);
      if (round === 0) continue;
      own.push(cost);
      ratios.push(cost / base);
    }
    console.log(
      `  ${transport.padEnd(9)} ${median(own).toFixed(1)} us of CPU a delivery to ${LISTENING} streams ` +
        `(${Math.min(...own).toFixed(1)}-${Math.max(...own).toFixed(1)}), ` +
        `${median(ratios).toFixed(2)} times a bare loop's, ${text.length} bytes`,
    );
  } finally {
    await client.end();
    await closeAll([...readers, ...bareReaders]);
  }
}

/** Waits until each reader has counted so much. They differ: what happened while they were connecting, some heard. */
async function arrived(readers: readonly Reader[], counts: readonly number[]): Promise<void> {
  const until = performance.now() + 30_000;
  const behind = () => readers.filter((reader, at) => reader.count < counts[at]!).length;
  while (behind() > 0) {
    if (performance.now() > until) throw new Error(`${behind()} streams are behind`);
    await delay(5);
  }
}

/** Microseconds of CPU for each event and stream. */
async function perDelivery(
  server: ServerProcess,
  readers: readonly Reader[],
  emit: () => Promise<unknown>,
): Promise<number> {
  const after = readers.map(({ count }) => count + EVENTS);
  const before = server.cpuSeconds();
  for (let event = 0; event < EVENTS; event++) {
    await Promise.all([emit(), delay(EVERY_MS)]);
  }
  await arrived(readers, after);
  return ((server.cpuSeconds() - before) * 1e6) / (EVENTS * readers.length);
}

async function silence(options: Streams, transport: Transport, users: number): Promise<void> {
  const { product, bare, account, databaseUrl, dataDir } = options;
  const workspaceIds = await workspacesFor(options);
  const people = await makeListeners(databaseUrl, dataDir, account, workspaceIds, users);
  const open = opener(options, transport);
  await delay(SETTLING_MS);
  const quiet = await load(product, QUIET_SECONDS);
  const [own, base] = [product.residentMiB(), bare.residentMiB()];
  const readers = await openAll(Array.from({ length: SILENT }, (_, at) => open(people[at % users]!, at)));
  const bareReaders = await openAll(Array.from({ length: SILENT }, () => bareOpen(options, transport)));
  await delay(SETTLING_MS);
  const busy = await load(product, QUIET_SECONDS);
  const each = (server: ServerProcess, before: number) => ((server.residentMiB() - before) * 1024) / SILENT;
  console.log(
    `  ${transport.padEnd(9)} ${SILENT} silent streams of ${users} people: ` +
      `${(100 * (busy - quiet)).toFixed(2)} % of a core (${(100 * quiet).toFixed(2)} % without), ` +
      `${each(product, own).toFixed(1)} KiB resident each (bare ${each(bare, base).toFixed(1)})`,
  );
  await closeAll([...readers, ...bareReaders]);
}

async function load(server: ServerProcess, seconds: number): Promise<number> {
  const before = server.cpuSeconds();
  await delay(seconds * 1_000);
  return (server.cpuSeconds() - before) / seconds;
}

/** Enough workspaces for all streams: each takes 200. */
async function workspacesFor({ account, databaseUrl }: Streams): Promise<string[]> {
  const count = Math.ceil(SILENT / LISTENING) * 2;
  await seedWorkspaces(databaseUrl, account, count);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string }>(
      'select id from workspaces where org_id = $1 and id <> $2 order by id desc limit $3',
      [account.orgId, account.workspaceId, count],
    );
    return rows.map(({ id }) => id);
  } finally {
    await client.end();
  }
}
