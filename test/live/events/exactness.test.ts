import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { cursorOfWritten, insertEvent, resourceOf, WRITERS, writeLate } from '../../support/late-writers.ts';
import { type EventSource, openAcknowledged, openEvents } from '../../support/sockets.ts';
import { isWhole } from '../../support/thinned.ts';
import { waitUntil } from '../../support/wait.ts';
import { createWorld, type World } from '../../support/world.ts';

const KILLS = isWhole() ? 20 : 7;
const PER_WRITER = isWhole() ? 200 : 70;
const READERS = 6;
const WRITING = 'late writers';

let nodes: TestApp[];
let world: World;
let pool: pg.Pool;
beforeAll(async () => {
  const app = await startTestApp();
  nodes = [app, await app.another()];
  for (const node of nodes) await node.listen();
  world = await createWorld(app, { withResources: false });
  pool = new pg.Pool({ connectionString: app.database.url, max: WRITERS + 4, application_name: WRITING });
  pool.on('error', () => undefined); // the end of the database
});
afterAll(async () => {
  await pool.end();
  await nodes[0]!.close();
});

const place = () => ({ orgId: world.ids.org_id!, workspaceId: world.ids.workspace_id! });
const below = (most: number) => Math.floor(Math.random() * most);

interface Shown {
  cursor: string;
  /** The type, or the code of an error without a cursor. */
  type: string;
  id: string;
}
/** What a connection has shown so far. */
interface Connection {
  shown(): Shown[];
  /** How much has arrived, and whether a text is in it. */
  count(): number;
  has(text: string): boolean;
  hasEnded(): boolean;
  close(): void;
}
type Open = (url: string, authorization: string, after: string) => Promise<Connection>;

const query = `subscription ($orgId: ID!, $workspaceId: ID!, $after: String) {
  workspaceEvents(orgId: $orgId, workspaceId: $workspaceId, after: $after) { cursor type id } }`;
interface Payload {
  data?: { workspaceEvents: Shown };
  errors?: { extensions: { code: string } }[];
}
const shownOf = ({ data, errors }: Payload): Shown =>
  data?.workspaceEvents ?? { cursor: '', type: errors![0]!.extensions.code, id: '' };
const operation = (after?: string) => ({ query, variables: { ...place(), after } });

const arrivedAt = ({ events }: EventSource) => ({
  count: () => events.length,
  has: (text: string) => events.some(({ data }) => data.includes(text)),
});
const transports: readonly Open[] = [
  async (url, authorization, after) => {
    const path = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/sync/stream`;
    const headers = { authorization, 'last-event-id': after };
    const stream = await openEvents(`${url}${path}`, { headers });
    let hasEnded = false;
    void stream.ended.then(() => (hasEnded = true));
    const shown = () =>
      stream.events.map(({ id, event, data }) => ({
        cursor: id!,
        type: event,
        id: (JSON.parse(data) as { event_id: string }).event_id,
      }));
    return { shown, ...arrivedAt(stream), hasEnded: () => hasEnded, close: () => stream.close() };
  },
  async (url, authorization, after) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      authorization,
      'last-event-id': after,
    };
    const body = JSON.stringify(operation());
    const stream = await openEvents(`${url}/graphql`, { method: 'POST', headers, body });
    let hasEnded = false;
    void stream.ended.then(() => (hasEnded = true));
    const shown = () =>
      stream.events.filter(({ event }) => event === 'next').map(({ data }) => shownOf(JSON.parse(data) as Payload));
    return { shown, ...arrivedAt(stream), hasEnded: () => hasEnded, close: () => stream.close() };
  },
  async (url, authorization, after) => {
    const socket = await openAcknowledged(url, authorization);
    socket.send({ id: '1', type: 'subscribe', payload: operation(after) });
    const shown = () =>
      socket.messages.filter(({ type }) => type === 'next').map(({ payload }) => shownOf(payload as Payload));
    const hasEnded = () => socket.messages.some(({ type }) => type === 'complete' || type === 'error');
    return {
      shown,
      count: () => socket.messages.length,
      has: (text) => socket.messages.some((message) => JSON.stringify(message).includes(text)),
      hasEnded,
      close: () => socket.close(),
    };
  },
];

interface Reading {
  ids: string[];
  connections: number;
  /** What could not be opened. */
  refusals: string[];
}

/** Reads, leaves and comes back at random, to some node over some transport, until it has seen the last event. */
async function reader(authorization: string, after: string, last: () => string): Promise<Reading> {
  const reading: Reading = { ids: [], connections: 0, refusals: [] };
  let cursor = after;
  while (reading.ids.at(-1) !== last()) {
    let connection: Connection;
    try {
      connection = await transports[below(3)]!(nodes[below(2)]!.url, authorization, cursor);
    } catch (error) {
      reading.refusals.push(String(error));
      continue;
    }
    reading.connections++;
    const enough = 1 + below(PER_WRITER);
    const isEnough = () => connection.hasEnded() || connection.count() >= enough || connection.has(`"${last()}"`);
    await waitUntil(isEnough);
    // what came beyond that, all at once, comes again
    for (const event of connection.shown().slice(0, enough)) {
      if (event.cursor) cursor = event.cursor;
      else reading.refusals.push(event.type);
      if (event.type === 'thread.created') reading.ids.push(event.id);
      else if (event.type === 'resync') reading.ids.push(event.type);
    }
    connection.close();
  }
  return reading;
}

/** The negative control: asks for what is behind the last number that it has seen. */
async function naiveReader(last: () => string): Promise<string[]> {
  const seen: string[] = [];
  for (let seq = '0'; seen.at(-1) !== last(); await new Promise(setImmediate)) {
    const { rows } = await pool.query<{ seq: string; id: string }>(
      `select seq::text, id from events e where workspace_id = $1 and type = 'thread.created' and seq > $2
       order by e.seq`,
      [place().workspaceId, seq],
    );
    seen.push(...rows.map(({ id }) => id));
    seq = rows.at(-1)?.seq ?? seq;
  }
  return seen;
}

/** Ends the connections by which nodes read events, in the middle of it or after it. @returns how many there were */
async function kill(): Promise<number> {
  const { rows } = await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
       and application_name <> $1 and query like '%from events e%'`,
    [WRITING],
  );
  return rows.length;
}

const sorted = (ids: readonly string[]) => [...ids].sort();
const isRight = (ids: readonly string[], written: readonly string[]): boolean =>
  JSON.stringify(sorted(ids)) === JSON.stringify(sorted(written)) &&
  Array.from({ length: WRITERS }, (_, writer) => resourceOf(`evt_${writer}_`)).every((resource) => {
    const of = (list: readonly string[]) => list.filter((id) => resourceOf(id) === resource);
    return JSON.stringify(of(ids)) === JSON.stringify(of(written));
  });

test('nothing is lost, nothing comes twice, each resource in order; a naive reader is wrong', async () => {
  await insertEvent(pool, place(), 'evt_first');
  const cursor = await cursorOfWritten(pool, 'evt_first');

  let last = 'not yet';
  const people = [world.as('owner'), world.as('editor'), world.as('viewer')];
  const readers = Array.from({ length: READERS }, (_, at) =>
    reader(people[at % people.length]!.authorization, cursor, () => last),
  );
  const naive = naiveReader(() => last);
  const written: string[] = [];
  const writing = writeLate(pool, place(), 'evt', { perWriter: PER_WRITER, written });
  let killed = 0;
  for (let round = 1; round <= KILLS; round++) {
    await waitUntil(() => written.length >= (round * WRITERS * PER_WRITER) / (KILLS + 6));
    killed += await kill();
  }
  await writing;
  last = 'evt_last';
  await insertEvent(pool, place(), last);
  const readings = await Promise.all(readers);
  expect(killed).toBeGreaterThan(KILLS);
  for (const { ids, connections, refusals } of readings) {
    // whoever came while a connection was gone; 1013 says the same to a socket
    expect(refusals.filter((text) => !/SERVICE_UNAVAILABLE|1013/.test(text))).toEqual([]);
    expect(ids.pop()).toBe(last);
    expect(connections).toBeGreaterThan(3);
    expect(sorted(ids)).toEqual(sorted(written));
    expect(isRight(ids, written), 'the order of each resource').toBe(true);
  }
  expect(isRight((await naive).slice(1, -1), written)).toBe(false);
});
