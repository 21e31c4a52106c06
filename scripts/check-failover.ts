// Switches and kills the primary of a database that Patroni keeps, under load: `npm run check:failover`. It takes about
// two minutes, and is not part of `.ci/run`. With synchronous replication no acknowledged change may be lost, and no
// event repeated or left out; after a failover that lost changes, readers must be told to begin again. Where one of the
// programs is missing, it says so and checks nothing.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { Client } from '../test/crash/client.ts';
import { type Follower, followSocket, followStream } from '../test/support/followers.ts';
import { missingForPatroni, PatroniCluster } from '../test/support/patroni.ts';
import { type Service, startService } from '../test/support/service.ts';
import { waitUntil } from '../test/support/wait.ts';

const NODES = 2;
const PAUSE_MS = 10;
/** So many changes of each writer have to be acknowledged before and after something happens. */
const ENOUGH = 20;

/** Makes changes one after another, on one node, until it is told to end. */
class Writer {
  readonly acknowledged: string[] = [];
  /** Those that may have happened. */
  readonly unknown: string[] = [];
  /** The longest time without an acknowledgement. */
  gapMs = 0;
  #last = performance.now();
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(client: Client, label: string, change: (client: Client, name: string) => ReturnType<Client['send']>) {
    this.#running = (async () => {
      for (let n = 0; !this.#isOver; n++) {
        const name = `${label}-${n}`;
        const outcome = await change(client, name);
        if (outcome.is === 'in flight') this.unknown.push(name);
        if (outcome.is === 'acknowledged') this.#note(name);
        await delay(PAUSE_MS);
      }
    })();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  #note(name: string): void {
    this.acknowledged.push(name);
    this.gapMs = Math.max(this.gapMs, performance.now() - this.#last);
    this.#last = performance.now();
  }
}

interface Load {
  /** Make namespaces. */
  makers: Writer[];
  /** Change the workspace, which followers read of. */
  changers: Writer[];
  all: Writer[];
}

const makeNamespace = (client: Client, name: string) => client.send('POST', `${home(client)}/namespaces`, { name });
const describeWorkspace = (client: Client, description: string) => client.send('PUT', home(client), { description });
const home = ({ orgId, workspaceId }: Client) => `/v1/orgs/${orgId}/workspaces/${workspaceId}`;

function startLoad(clients: readonly Client[], label: string): Load {
  const makers = clients.flatMap((client, at) => [
    new Writer(client, `${label}-${at}-a`, makeNamespace),
    new Writer(client, `${label}-${at}-b`, makeNamespace),
  ]);
  const changers = clients.map((client, at) => new Writer(client, `${label}-${at}`, describeWorkspace));
  return { makers, changers, all: [...makers, ...changers] };
}

/** Waits until each writer has got more done. */
async function goesOn({ all }: Load): Promise<void> {
  const before = all.map(({ acknowledged }) => acknowledged.length);
  await waitUntil(() => all.every(({ acknowledged }, at) => acknowledged.length >= before[at]! + ENOUGH), {
    what: `${ENOUGH} more changes of each writer: ${JSON.stringify(before)}`,
    withinMs: 120_000,
  });
}

async function rowsOf<T extends pg.QueryResultRow>(url: string, text: string, values: unknown[] = []): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}

const namesIn = async (url: string, label: string): Promise<string[]> =>
  (await rowsOf<{ name: string }>(url, 'select name from namespaces where starts_with(name, $1)', [label])).map(
    ({ name }) => name,
  );

const UPDATES = `select id from events where workspace_id = $1 and type = 'workspace.updated'
  and not data ? 'bucket_status' order by xid, seq`;

const all = (writers: readonly Writer[], of: 'acknowledged' | 'unknown'): string[] =>
  writers.flatMap((writer) => writer[of]);

/** Every acknowledged change is there, and every follower has seen each change once, in the order of commits. */
async function expectNothingLost(url: string, load: Load, clients: readonly Client[], followers: readonly Follower[]) {
  const there = new Set(await namesIn(url, 'sync'));
  const promised = all(load.makers, 'acknowledged');
  assert.deepEqual(
    promised.filter((name) => !there.has(name)),
    [],
    'acknowledged changes are lost',
  );
  const possible = new Set([...promised, ...all(load.makers, 'unknown')]);
  assert.deepEqual(
    [...there].filter((name) => !possible.has(name)),
    [],
    'somebody else made namespaces',
  );
  const half = await rowsOf(
    url,
    `select n.name from namespaces n where starts_with(n.name, 'sync') and (
       (select count(*) from events e where e.resource_id = n.id and e.type = 'namespace.created') <> 1
       or (select count(*) from activity a where a.resource_id = n.id and a.action = 'create' and a.success) <> 1)`,
  );
  assert.deepEqual(half, [], 'changes without exactly one event and one record');
  const [{ workspaceId }] = clients as [Client];
  const updates = (await rowsOf<{ id: string }>(url, UPDATES, [workspaceId])).map(({ id }) => id);
  const changed = all(load.changers, 'acknowledged').length;
  assert.ok(updates.length >= changed, `${changed} changes were acknowledged, and ${updates.length} events are there`);
  assert.ok(updates.length <= changed + all(load.changers, 'unknown').length, 'more events than changes');
  for (const follower of followers) {
    await waitUntil(() => follower.seen.length >= updates.length, { what: 'all events' });
    assert.deepEqual(follower.seen, updates, 'a follower has seen something else than what was committed');
    assert.equal(follower.resyncs, 0, 'a follower had to begin again');
  }
  return { promised: promised.length + changed, events: updates.length };
}

/** The whole check, over a cluster with a synchronous standby. */
async function check(cluster: PatroniCluster, services: readonly Service[]): Promise<void> {
  const urls = await Promise.all(services.map((service) => service.url()));
  const first = await Client.register(urls[0]!);
  const account = { username: 'writer', password: 'writes a lot' };
  const clients = [first, ...(await Promise.all(urls.slice(1).map((url) => Client.signIn(url, account))))];
  const followers: Follower[] = [];
  for (const { url, headers } of clients) {
    const place = { url, orgId: first.orgId, workspaceId: first.workspaceId, headers };
    followers.push(await followStream(place), await followStream(place), await followSocket(place));
  }
  const load = startLoad(clients, 'sync');
  await goesOn(load);

  const told = (what: string) => {
    const gap = Math.max(...load.all.map(({ gapMs }) => gapMs));
    for (const writer of load.all) writer.gapMs = 0;
    console.log(`${what}: no acknowledgement for ${(gap / 1_000).toFixed(1)} s at most`);
  };
  told('before');
  const one = await cluster.hasStandby('sync_standby');
  await cluster.switchOver(one);
  await cluster.hasLeaderOtherThan(one);
  await goesOn(load);
  told('a switch to the other server');
  for (const round of [1, 2]) {
    const leader = await cluster.hasStandby('sync_standby');
    await cluster.kill(leader);
    await cluster.hasLeaderOtherThan(leader);
    await goesOn(load);
    told(`the primary killed (${round})`);
    cluster.restart(leader);
  }
  await cluster.hasStandby('sync_standby');
  await Promise.all(load.all.map((writer) => writer.end()));
  const found = await expectNothingLost(cluster.url, load, clients, followers);
  console.log(
    `synchronous: 0 of ${found.promised} acknowledged changes lost, ${all(load.all, 'unknown').length} of unknown ` +
      `outcome, ${found.events} events once at each of ${followers.length} followers, which were cut off ` +
      `${followers.reduce((sum, { cuts }) => sum + cuts, 0)} times`,
  );
  await expectResync(cluster, clients, followers);
  for (const client of clients) assert.deepEqual(client.strange, [], 'answers that nobody promised');
  for (const follower of followers) await follower.stop();
}

/** The new primary lacks acknowledged changes, of which followers have seen the events. */
async function expectResync(cluster: PatroniCluster, clients: readonly Client[], followers: readonly Follower[]) {
  await cluster.configure({ synchronous_mode: false, maximum_lag_on_failover: 2 ** 30 });
  const leader = await cluster.hasStandby('replica');
  await cluster.stopSending(leader);
  const load = startLoad(clients, 'async');
  const seen = followers.map((follower) => follower.seen.length);
  await goesOn(load);
  await waitUntil(() => followers.every((follower, at) => follower.seen.length > seen[at]!));
  await cluster.kill(leader);
  await cluster.hasLeaderOtherThan(leader);
  await goesOn(load);
  await Promise.all(load.all.map((writer) => writer.end()));
  const there = new Set(await namesIn(cluster.url, 'async'));
  const lost = all(load.makers, 'acknowledged').filter((name) => !there.has(name));
  assert.ok(lost.length > 0, 'the new primary lacks nothing: this run shows nothing');
  await waitUntil(() => followers.every(({ resyncs }) => resyncs > 0), { what: 'followers to be told to begin again' });
  const [{ workspaceId }] = clients as [Client];
  const last = (await rowsOf<{ id: string }>(cluster.url, UPDATES, [workspaceId])).at(-1)!.id;
  await waitUntil(() => followers.every((follower) => follower.seen.at(-1) === last), { what: 'the last event' });
  console.log(
    `asynchronous: ${lost.length} acknowledged changes lost; each of ${followers.length} followers was told to begin ` +
      'again, and has the last event',
  );
}

const missing = missingForPatroni();
if (missing.length > 0) {
  console.log(`NOT RUN: a failover by Patroni. Missing: apt-get install --no-install-recommends ${missing.join(' ')}`);
} else {
  const base = mkdtempSync(path.join(tmpdir(), 'failover-'));
  const cluster = await PatroniCluster.start();
  const services: Service[] = [];
  try {
    for (let n = 0; n < NODES; n++) {
      services.push(
        startService({
          DATA_DIR: path.join(base, 'data'),
          DATABASE_URL: cluster.url,
          LOG_LEVEL: 'error',
          RATE_LIMIT_RPS: '0',
          EVENT_POLL_MS: '50',
        }),
      );
      await services[n]!.url();
    }
    await check(cluster, services);
  } finally {
    for (const { child } of services) {
      const ended = once(child, 'close');
      if (child.kill('SIGKILL')) await ended;
    }
    await cluster.stop();
    rmSync(base, { recursive: true, force: true });
  }
}
