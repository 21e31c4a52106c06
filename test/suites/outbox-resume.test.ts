import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Sql } from '../../src/data/sql.ts';
import { EventService } from '../../src/live/events/event.service.ts';
import { EventTail } from '../../src/live/events/event-tail.ts';
import { MissedEvents } from '../../src/live/events/missed-events.ts';
import { cursorOf } from '../../src/live/events/position.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { insertEvent, WRITERS, writeLate } from '../support/late-writers.ts';
import { waitUntil } from '../support/wait.ts';

const READERS = 5;
const ROUNDS = 6;
const PLACE = { orgId: 'org_resume', workspaceId: 'ws_resume' };

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: WRITERS + 8 });
  // dropping the database may end a connection that is just saying goodbye
  pool.on('error', () => undefined);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const insert = (id: string) => insertEvent(pool, PLACE, id);

/** All that was written so far is older than every transaction that runs. */
const settled = () =>
  waitUntil(async () => {
    const { rows } = await pool.query<{ settled: boolean }>(
      'select not exists (select 1 from events where xid >= pg_snapshot_xmin(pg_current_snapshot())) as settled',
    );
    return rows[0]!.settled;
  });

/** A node over the database. Who may read is not the question here. */
function node(faults: unknown[]) {
  const sql = new Sql(pool);
  const tail = new EventTail(sql, 5, (error) => faults.push(error));
  const service = new EventService({
    config: { maxStreamsPerUser: 50, maxStreamsPerWorkspace: 200 },
    tail,
    missed: new MissedEvents(sql),
    sql,
    access: {
      requireWorkspace: async () => 'all',
      maySee: async () => true,
      facts: { changesOf: async () => new Map() },
    } as never,
    authentication: {
      lives: async () => true,
      ended: async () => new Set(),
      readTokensAgain: async () => undefined,
    } as never,
    presence: { settled: async () => undefined } as never,
    onFault: (error) => faults.push(error),
  });
  return { tail, service };
}
type Node = ReturnType<typeof node>;

/** Reads, leaves and comes back at random, each time to some node, until it has seen `last`. */
async function reconnectingReader(
  nodes: readonly Node[],
  userId: string,
  start: string,
  last: () => string,
): Promise<string[]> {
  const actor = { principal: { userId, token: null }, request: {} } as never;
  const seen: string[] = [];
  let cursor = start;
  while (seen.at(-1) !== last()) {
    const { service } = nodes[Math.floor(Math.random() * nodes.length)]!;
    const stream = await service.subscribe(actor, PLACE, { after: cursor });
    let left = 1 + Math.floor(Math.random() * 40);
    for await (const event of stream) {
      seen.push(event.type === 'thread.created' ? event.id : event.type);
      cursor = service.cursorOf(event);
      if (--left === 0 || seen.at(-1) === last()) break;
    }
    // away for a while, or for a moment: both must lose nothing
    if (Math.random() < 0.5) await delay(Math.random() * 60);
  }
  return seen;
}

/**
 * The negative control: comes back with the number of the last event, reads what is there behind it, and then goes
 * live.
 */
async function naiveReader({ tail }: Node, last: () => string): Promise<string[]> {
  const seen: string[] = [];
  let seq = '0';
  while (seen.at(-1) !== last()) {
    const { rows } = await pool.query<{ seq: string; id: string }>(
      'select seq::text, id from events e where workspace_id = $1 and seq > $2 order by e.seq',
      [PLACE.workspaceId, seq],
    );
    seen.push(...rows.map(({ id }) => id));
    seq = rows.at(-1)?.seq ?? seq;
    if (seen.at(-1) === last()) break;
    const queue = await tail.subscribe(PLACE);
    let left = 1 + Math.floor(Math.random() * 40);
    for await (const event of queue) {
      seen.push(event.id);
      seq = event.seq;
      if (--left === 0 || event.id === last()) break;
    }
  }
  return seen;
}

test('twelve late writers, reconnecting readers: each event once, in one order; a naive reader fails', async () => {
  let isNaiveWrong = false;
  for (let round = 0; round < ROUNDS && !isNaiveWrong; round++) {
    await pool.query('truncate events');
    const faults: unknown[] = [];
    const nodes = [node(faults), node(faults)];
    const first = `evt_${round}_first`;
    await insert(first);
    await settled();
    // one that stays keeps each node's tail where it was
    const staying = await Promise.all(nodes.map(({ tail }) => tail.subscribe(PLACE)));
    const stayed: string[][] = [[], []];
    const draining = staying.map(async (queue, index) => {
      for await (const { id } of queue) stayed[index]!.push(id);
    });
    const last = { id: 'not yet' };
    const start = cursorOf(staying[0]!.start, nodes[0]!.tail.epoch);
    const reading = Array.from({ length: READERS }, (_, reader) =>
      reconnectingReader(nodes, `usr_${reader}`, start, () => last.id),
    );
    const naive = naiveReader(nodes[0]!, () => last.id);
    const written = await writeLate(pool, PLACE, `evt_${round}`);
    last.id = `evt_${round}_last`;
    await insert(last.id);
    const readings = await Promise.all(reading);
    await waitUntil(() => stayed.every((ids) => ids.at(-1) === last.id));
    for (const { tail } of nodes) tail.close();
    await Promise.all(draining);
    const byNaive = await naive;
    const [order, other] = stayed as [string[], string[]];
    expect(faults).toEqual([]);
    expect([...order].sort()).toEqual([...written, last.id].sort());
    for (const seen of [other, ...readings]) expect(seen).toEqual(order);
    isNaiveWrong = JSON.stringify(byNaive.filter((id) => id !== first).sort()) !== JSON.stringify([...order].sort());
  }
  expect(isNaiveWrong).toBe(true);
});

test('a reader that is ahead of the node it comes back to sees nothing again', async () => {
  const [ahead, behind] = [node([]), node([])];
  // the second node does not look again by itself, and so stays where it is
  const slow = new EventTail(new Sql(pool), 600_000, () => undefined);
  const staying = await slow.subscribe(PLACE);
  /** Lets it look until the event is there: transactions of other tests may hold it back. */
  const looking = async <T>(event: Promise<T>): Promise<T> => {
    const nudges = setInterval(() => slow.nudge(), 20);
    return event.finally(() => clearInterval(nudges));
  };
  const waiting = staying.next();
  await insert('evt_ahead_0');
  await looking(waiting);
  const actor = { principal: { userId: 'usr_ahead', token: null }, request: {} } as never;
  const stream = (await ahead.service.subscribe(actor, PLACE, {}))[Symbol.asyncIterator]();
  const next = stream.next();
  await insert('evt_ahead_1');
  const { value } = await next;
  expect(value).toMatchObject({ id: 'evt_ahead_1' });
  await stream.return?.();
  const sql = new Sql(pool);
  const service = new EventService({
    config: { maxStreamsPerUser: 50, maxStreamsPerWorkspace: 200 },
    tail: slow,
    missed: new MissedEvents(sql),
    sql,
    access: {
      requireWorkspace: async () => 'all',
      maySee: async () => true,
      facts: { changesOf: async () => new Map() },
    } as never,
    authentication: {
      lives: async () => true,
      ended: async () => new Set(),
      readTokensAgain: async () => undefined,
    } as never,
    presence: { settled: async () => undefined } as never,
    onFault: () => undefined,
  });
  const again = await service.subscribe(actor, PLACE, { after: ahead.service.cursorOf(value as never) });
  const after = again.next();
  await insert('evt_ahead_2');
  expect((await looking(after)).value).toMatchObject({ id: 'evt_ahead_2' });
  await again.return?.();
  for (const tail of [ahead.tail, behind.tail, slow]) tail.close();
});

test('missed events are read as fast as the reader takes them; a reader that falls behind gets a notice', async () => {
  const { tail, service } = node([]);
  const actor = { principal: { userId: 'usr_slow', token: null }, request: {} } as never;
  const stream = (await service.subscribe(actor, PLACE, {}))[Symbol.asyncIterator]();
  const first = stream.next();
  await insert('evt_slow');
  const { value: start } = await first;
  await stream.return?.();
  const flood = (prefix: string, count: number) =>
    pool.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
       select $3 || n, $1, $2, 'thread.created', '{}', 'thread', 'o', '{}' from generate_series(1, $4::int) n`,
      [PLACE.orgId, PLACE.workspaceId, prefix, count],
    );
  await flood('evt_missed_', 1_000);
  const other = await tail.subscribe(PLACE);
  const drained = (async () => {
    let count = 0;
    for await (const _event of other) if (++count === 1_500) break;
    return count;
  })();
  const again = await service.subscribe(actor, PLACE, { after: service.cursorOf(start as never) });
  expect((await again.next()).value).toMatchObject({ id: 'evt_missed_1' });
  await flood('evt_live_', 1_500);
  await drained;
  const { value: end } = await again.next();
  expect(end).toMatchObject({ type: 'stream.closing', data: { reason: 'slow_consumer' } });
  expect((await again.next()).done).toBe(true);
  // it goes on where it was, with nothing lost
  const resumed = await service.subscribe(actor, PLACE, { after: service.cursorOf(end as never) });
  expect((await resumed.next()).value).toMatchObject({ id: 'evt_missed_2' });
  await resumed.return?.();
  tail.close();
});
