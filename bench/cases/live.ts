import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Account, call } from '../api.ts';
import { type Listener, makeListeners } from '../listeners.ts';
import { load, median, type Question, quantile, type Sample } from '../load.ts';
import { type LiveReader, type OpenLive, openAll, watchBare, watchRest } from '../readers.ts';
import { seedWorkspaces } from '../seed.ts';
import type { ServerProcess } from '../server-process.ts';
import type { StreamServers } from './streams.ts';

const STREAMS_PER_USER = 10;
const STREAMS_PER_WORKSPACE = 200;
const numberOf = (name: string, usual: number) => Number(process.env[name] ?? usual);
/** All sizes can be given, to try it small. */
const IDLE = numberOf('BENCH_IDLE', 5_000);
const EVENTS = numberOf('BENCH_EVENTS', 50);
const STALLABLE = numberOf('BENCH_STALLABLE', 1_000);
const PER_SECOND = 100;
const SECONDS = numberOf('BENCH_SECONDS', 3);
const ROUNDS = numberOf('BENCH_ROUNDS', 5);
/** A whole interval of the comments to idle streams, and some more. */
const SETTLING_MS = numberOf('BENCH_SETTLING_MS', 20_000);
/** As many at once as are opened later: what the first streams load, and the database connections, are nobody's. */
const WARMING = 50;
/** Which parts are measured: all by default. */
const PARTS = (process.env.BENCH_PARTS ?? 'idle,stalled,writes').split(',');
const has = (part: string) => PARTS.includes(part);
const WRITERS = 16;
const WRITTEN = 64;
/** Enough that a stalled reader is behind what its connection holds. */
const LARGE = 4_000;

interface Options extends StreamServers {
  /** Starts both anew: what a process used before would hide the memory of its streams. */
  fresh<T>(work: (servers: StreamServers) => Promise<T>): Promise<T>;
  account: Account;
  databaseUrl: string;
  dataDir: string;
}

/** The stream of REST, beside a bare server; and writes with and without events. */
export async function live(options: Options): Promise<void> {
  console.log('\nlive streams of REST');
  const client = new pg.Client({ connectionString: options.databaseUrl });
  await client.connect();
  try {
    if (has('idle')) await options.fresh((servers) => idle({ ...options, ...servers }, client));
    if (has('stalled')) await options.fresh((servers) => stalled({ ...options, ...servers }, client));
    if (has('writes')) await writesWithout(options, client);
  } finally {
    await client.end();
  }
}

/** Readers of as many workspaces as the limits of streams ask for. */
async function readersOf({ account, databaseUrl, dataDir, product }: Options, client: pg.Client, count: number) {
  const places = Math.ceil(count / STREAMS_PER_WORKSPACE);
  await seedWorkspaces(databaseUrl, account, places);
  const { rows } = await client.query<{ id: string }>(
    'select id from workspaces where org_id = $1 and id <> $2 order by id desc limit $3',
    [account.orgId, account.workspaceId, places],
  );
  const workspaceIds = rows.map(({ id }) => id);
  const users = Math.ceil(count / STREAMS_PER_USER);
  const people: Listener[] = await makeListeners(databaseUrl, dataDir, account, workspaceIds, users);
  const opens = Array.from({ length: count }, (_, at): OpenLive => {
    const { token, workspaceId } = people[at % people.length]!;
    return watchRest(`${product.url}/v1/orgs/${account.orgId}/workspaces/${workspaceId}/sync/stream`, token);
  });
  return { workspaceIds, opens };
}

const emitter =
  (client: pg.Client, { orgId }: Account, workspaceIds: readonly string[], length: number) =>
  () =>
    client.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
     select 'evt_' || gen_random_uuid(), $1, w, 'thread.created',
       '{"principal_type":"user","principal_id":"usr_1","username":"somebody"}', 'thread',
       'thr_01JD0000000000000000000000', jsonb_build_object('text', repeat('x', $3::int))
     from unnest($2::text[]) w`,
      [orgId, workspaceIds, length],
    );

/** The milliseconds from the sending of an event until each reader has it. */
async function fanOut(readers: readonly LiveReader[], send: () => Promise<unknown>): Promise<number[]> {
  const before = readers.map(({ count }) => count);
  const start = performance.now();
  const sent = send();
  const until = start + 30_000;
  while (readers.some(({ count }, at) => count === before[at])) {
    if (performance.now() > until) throw new Error('Some streams are behind.');
    await delay(1);
  }
  await sent;
  return readers.map(({ at }) => at - start);
}

async function idle(options: Options, client: pg.Client): Promise<void> {
  const { product, bare, account } = options;
  const { workspaceIds, opens } = await readersOf(options, client, IDLE);
  const bareOpens = Array.from({ length: IDLE }, () => watchBare(bare.url));
  const warm = [...(await openAll(opens.slice(0, WARMING))), ...(await openAll(bareOpens.slice(0, WARMING)))];
  for (const reader of warm) reader.close();
  await delay(SETTLING_MS);
  const [own, base] = [await product.heldMiB(), await bare.heldMiB()];
  const bareReaders = await openAll(bareOpens);
  const readers = await openAll(opens);
  await delay(SETTLING_MS);
  const each = async (server: ServerProcess, before: number) => (((await server.heldMiB()) - before) * 1024) / IDLE;
  const [ours, theirs] = [await each(product, own), await each(bare, base)];
  console.log(
    `  ${IDLE} idle streams: ${ours.toFixed(1)} KiB resident each, ${(ours - theirs).toFixed(1)} over the bare ` +
      `one's ${theirs.toFixed(1)} (at most 24)`,
  );
  const text = `event: thread.created\ndata: ${'x'.repeat(700)}\n\n`;
  const post = () => call(bare, null, 'POST', '/event', { text });
  const emit = emitter(client, account, workspaceIds, 100);
  const ratios: number[] = [];
  const p99s: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const bareTimes: number[] = [];
    const times: number[] = [];
    for (let event = 0; event < 4; event++) {
      bareTimes.push(...(await fanOut(bareReaders, post)));
      times.push(...(await fanOut(readers, emit)));
    }
    if (round === 0) continue;
    p99s.push(quantile(times, 0.99));
    ratios.push(quantile(times, 0.99) / quantile(bareTimes, 0.99));
  }
  console.log(
    `  an event to ${IDLE} streams: p99 ${median(p99s).toFixed(0)} ms, ${median(ratios).toFixed(2)} times a bare ` +
      `loop's (at most 2)`,
  );
  for (const reader of [...readers.slice(1), ...bareReaders]) reader.close();
  await delay(1_000);
  await commitToFrame(options, readers[0]!, workspaceIds);
  readers[0]!.close();
}

/** By changes at this node, from the request on: its answer comes later than the commit. */
async function commitToFrame({ product, account }: Options, reader: LiveReader, workspaceIds: readonly string[]) {
  const { token, orgId } = account;
  const times: number[] = [];
  // the first listener is in the second workspace
  const path = `/v1/orgs/${orgId}/workspaces/${workspaceIds[1 % workspaceIds.length]}`;
  let n = 0;
  const make = () => call(product, token, 'PUT', path, { description: `Changed ${n++}` });
  while (n < PER_SECOND * SECONDS) {
    const next = delay(1_000 / PER_SECOND);
    times.push(...(await fanOut([reader], make)));
    await next;
  }
  console.log(
    `  commit to frame at up to ${PER_SECOND} events a second: p50 ${median(times).toFixed(0)} ms (at most 60), ` +
      `p99 ${quantile(times, 0.99).toFixed(0)} ms (at most 250)`,
  );
}

/** A fifth of the readers stops reading. */
async function stalled(options: Options, client: pg.Client): Promise<void> {
  const { account } = options;
  const { workspaceIds, opens } = await readersOf(options, client, STALLABLE);
  const readers = await openAll(opens);
  const emit = emitter(client, account, workspaceIds, LARGE);
  const reading = readers.filter((_, at) => at % 5 > 0);
  const measure = async () => {
    const times: number[] = [];
    for (let event = 0; event < EVENTS; event++) times.push(...(await fanOut(reading, emit)));
    return quantile(times, 0.99);
  };
  await measure();
  const before = await measure();
  for (const [at, reader] of readers.entries()) if (at % 5 === 0) reader.stall();
  const after = await measure();
  console.log(
    `  ${STALLABLE / 5} of ${STALLABLE} readers stall: p99 of the others ${before.toFixed(0)} -> ${after.toFixed(0)} ` +
      `ms, ${(after / before).toFixed(2)} times (at most 1.2)`,
  );
  for (const reader of readers) reader.close();
}

/**
 * Without events: a trigger keeps their rows from being written. With events: first nobody reads them, then a user has
 * as many streams open as allowed, so that this node reads and sends them. All three are in each round, in turns.
 */
async function writesWithout({ product, account }: Options, client: pg.Client): Promise<void> {
  const workspaces = `/v1/orgs/${account.orgId}/workspaces`;
  const paths: string[] = [];
  let n = 0;
  for (let made = 0; made < WRITTEN; made++) {
    const { workspace_id } = await call<{ workspace_id: string }>(product, account.token, 'POST', workspaces, {
      organization_id: account.orgId,
      name: 'Made to be measured',
    });
    paths.push(`${workspaces}/${workspace_id}`);
  }
  await storageIsReady(client, account);
  const questions = paths.map((path): Question => ({ method: 'PUT', path, body: () => ({ name: `Renamed ${n++}` }) }));
  const streams = paths.slice(0, STREAMS_PER_USER).map((path) => `${product.url}${path}/sync/stream`);
  const measure = () => load(product, questions, account.token, SECONDS, WRITERS);
  await client.query(`create function no_events() returns trigger language plpgsql as 'begin return null; end'`);
  const ways = {
    without: async () => {
      await client.query('create trigger no_events before insert on events for each row execute function no_events()');
      const sample = await measure();
      await client.query('drop trigger no_events on events');
      return sample;
    },
    unread: measure,
    read: async () => {
      const readers = await openAll(streams.map((url) => watchRest(url, account.token)));
      const sample = await measure();
      if (!readers.every(({ count }) => count > 0)) throw new Error('The streams got no events.');
      for (const reader of readers) reader.close();
      return sample;
    },
  };
  const names = ['without', 'unread', 'read'] as const;
  const rounds: Record<(typeof names)[number], Sample>[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const samples: Partial<(typeof rounds)[number]> = {};
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length]!;
      samples[name] = await ways[name]();
    }
    // the first one warms up
    if (round > 0) rounds.push(samples as (typeof rounds)[number]);
  }
  await client.query('drop function no_events');
  const of = (value: (round: (typeof rounds)[number]) => number) => median(rounds.map(value));
  const share = (name: 'unread' | 'read') => of((round) => round[name].rps / round.without.rps).toFixed(2);
  console.log(
    `  ${WRITERS} writers: ${share('unread')} of the rate without events, ${share('read')} while ${STREAMS_PER_USER} ` +
      `streams get them (at least 0.85); CPU of a write ` +
      names.map((name) => `${of((round) => round[name].cpuMicros).toFixed(0)} us ${name}`).join(', '),
  );
}

/** Background work of new workspaces would be measured, too, and in some rounds only. */
async function storageIsReady(client: pg.Client, { orgId }: Account): Promise<void> {
  const OPEN = `select 1 from workspaces where org_id = $1 and bucket_status <> 'ready' limit 1`;
  while ((await client.query(OPEN, [orgId])).rows.length > 0) await delay(50);
}
