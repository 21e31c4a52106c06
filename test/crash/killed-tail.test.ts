// own process: starts processes, which is slow from a large process
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { cursorOfWritten, insertEvent, resourceOf, WRITERS, writeLate } from '../support/late-writers.ts';
import { type Service, startService } from '../support/service.ts';
import { type EventSource, openEvents } from '../support/sockets.ts';
import { isWhole } from '../support/thinned.ts';
import { waitUntil } from '../support/wait.ts';
import { Client } from './client.ts';

const READERS = 6;
/** As many as fit into the time, but not fewer than some. */
const KILLS = isWhole() ? { most: 20, least: 8, withinMs: 30_000 } : { most: 20, least: 5, withinMs: 5_000 };
const PER_WRITER = 5;
const MOST_WRITTEN = 8_000;

let dataDir: string;
let database: TestDatabase;
let pool: pg.Pool;
const nodes: Service[] = [];
const start = () => startService({ DATA_DIR: dataDir, DATABASE_URL: database.url, LOG_LEVEL: 'error' });
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: WRITERS + 2 });
  // the first one makes the keys that both have
  for (let node = 0; node < 2; node++) {
    nodes.push(start());
    await nodes[node]!.url();
  }
});
afterAll(async () => {
  for (const node of nodes) {
    node.child.kill('SIGKILL');
    await node.exited();
  }
  await pool.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

const below = (most: number) => Math.floor(Math.random() * most);
const isWritten = ({ event }: { event: string }) => event === 'thread.created';
const idOf = ({ data }: { data: string }) => (JSON.parse(data) as { event_id: string }).event_id;

interface Reading {
  ids: string[];
  /** How often a stream ended before its reader left it, because its node was killed. */
  broken: number;
  /** Errors other than a node that is not there. */
  wrong: string[];
}

/** Who is connected to which process now. */
const connected = new Set<{ node: Service; source: EventSource }>();

/** Reads, leaves at random or with its node, and resumes at some node, until it has seen the last event. */
async function reader(home: string, client: Client, after: string, last: () => string): Promise<Reading> {
  const reading: Reading = { ids: [], broken: 0, wrong: [] };
  let cursor = after;
  while (reading.ids.at(-1) !== last()) {
    const node = nodes[below(2)]!;
    // one that starts is waited for, as those who are told the address of a service are
    const url = await node.url().catch(() => null);
    if (url === null) continue;
    const headers = { ...client.headers, 'last-event-id': cursor };
    const source = await openEvents(`${url}${home}/sync/stream`, { headers }).catch((error: unknown) => {
      if (!(error instanceof TypeError)) reading.wrong.push(String(error)); // a TypeError is a broken connection
      return null;
    });
    if (!source) continue;
    const connection = { node, source };
    connected.add(connection);
    let isOver = false;
    // `fetch` takes what came before the end for a whole answer
    const over = source.ended.catch(() => undefined).then(() => (isOver = true));
    const enough = 1 + below(300);
    const isEnough = () => {
      if (isOver || source.events.length > enough || source.events[1]?.event === 'resync') return true;
      const latest = source.events.findLast(isWritten); // others join and leave after it
      return latest !== undefined && idOf(latest) === last();
    };
    await waitUntil(isEnough, { withinMs: 120_000 });
    if (isOver) reading.broken++;
    source.close();
    await over;
    connected.delete(connection);
    cursor = source.events.at(-1)?.id ?? cursor;
    reading.ids.push(...source.events.filter(isWritten).map(idOf));
    // it would wait for events that it does not get
    if (source.events[1]?.event === 'resync') throw new Error('A reader that was away for a moment gets a resync.');
  }
  return reading;
}

/** Kills a process whose tail serves a reader, and starts another. */
async function killAndRestart(at: number): Promise<void> {
  const killed = nodes[at]!;
  const serves = () => [...connected].some(({ node, source }) => node === killed && source.events.length > 0);
  await waitUntil(serves);
  killed.child.kill('SIGKILL');
  await killed.exited();
  nodes[at] = start();
  await nodes[at]!.url();
}

test('tails that serve readers are killed again and again: nothing lost, nothing twice', async (context) => {
  const ann = await Client.register(await nodes[0]!.url());
  const place = { orgId: ann.orgId, workspaceId: ann.workspaceId };
  const home = `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}`;
  await insertEvent(pool, place, 'evt_first');
  const cursor = await cursorOfWritten(pool, 'evt_first');

  let last = 'not yet';
  const readers = Array.from({ length: READERS }, () => reader(home, ann, cursor, () => last));
  const written: string[] = [];
  let kills = 0;
  let isWriting = true;
  const writing = (async () => {
    // few enough that nobody is ever so far behind that it could not resume
    for (let round = 0; isWriting && written.length < MOST_WRITTEN; round++) {
      await writeLate(pool, place, `evt${round}`, { perWriter: PER_WRITER, written });
      await delay(250);
    }
  })();
  const until = performance.now() + KILLS.withinMs;
  while (kills < KILLS.least || (kills < KILLS.most && performance.now() < until)) await killAndRestart(kills++ % 2);
  isWriting = false;
  await writing;
  last = 'evt_last';
  await insertEvent(pool, place, last);
  const readings = await Promise.all(readers);
  await context.annotate(`${kills} kills, ${written.length} events`);
  for (const { ids, wrong } of readings) {
    expect(wrong).toEqual([]);
    expect(ids.pop()).toBe(last);
    expect([...ids].sort()).toEqual([...written].sort());
    expect(byResource(ids)).toEqual(byResource(written));
  }
  // not one for each kill: whoever was connected may have been leaving
  expect(readings.reduce((sum, { broken }) => sum + broken, 0)).toBeGreaterThan(0);
});

/** The events of each resource, in their order. */
function byResource(ids: readonly string[]): Map<string, string[]> {
  const all = new Map<string, string[]>();
  for (const id of ids) all.set(resourceOf(id), [...(all.get(resourceOf(id)) ?? []), id]);
  return all;
}
