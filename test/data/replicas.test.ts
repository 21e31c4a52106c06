// own process: starts servers of PostgreSQL
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bouncers } from '../../scripts/pgbouncer.mjs';
import { replicasCheck } from '../../src/commands/doctor/replica-checks.ts';
import { loadConfig } from '../../src/config.ts';
import { ReplicaReads, targetOf } from '../../src/data/replica-reads.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import { openDatabase } from '../../src/platform/postgres/database.ts';
import { SESSION_LIMITS } from '../../src/platform/postgres/session-limits.ts';
import { startOwnApp, type TestApp } from '../support/app.ts';
import { keptLog } from '../support/log-lines.ts';
import { type Person, register } from '../support/person.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { type ReplicatedPostgres, startReplicated } from '../support/replica.ts';
import { openAcknowledged, openEvents } from '../support/sockets.ts';
import { waitFor, waitUntil } from '../support/wait.ts';

/** Half a second behind: read from, and always too late for what was just written. */
const LAG_MS = 500;
/** Too far behind for anything. */
const LATE_MS = 20_000;

let server: ReplicatedPostgres;
let app: TestApp;
/** Another node, which knows nothing of what is written here. */
let other: TestApp;
let ann: Person;
beforeAll(async () => {
  server = await startReplicated(LAG_MS, LATE_MS);
  const env = { DATABASE_URL: server.url, DATABASE_READ_URLS: server.replicas.map(({ url }) => url).join(', ') };
  app = await startOwnApp({ databaseUrl: server.url, env });
  other = await app.another(env);
  ann = await register(app, { name: 'ann' });
  await waitFor(async () => expect(await statesOf(app)).toEqual(['ok', 'late']));
  await waitFor(async () => expect(await statesOf(other)).toEqual(['ok', 'late']));
});
afterAll(async () => {
  await app.close();
  await server.stop();
});

async function statesOf(node: TestApp): Promise<string[]> {
  const { replicas } = (await node.server.inject('/readyz')).json<{ replicas: { state: string }[] }>();
  return replicas.map(({ state }) => state);
}

const readsOf = async (node: TestApp, on: 'replica' | 'primary'): Promise<number> => {
  const text = (await node.server.inject('/metrics')).body;
  return Number(new RegExp(`^platform_database_replica_reads_total\\{server="${on}"\\} (\\d+)$`, 'm').exec(text)![1]);
};

let names = 0;
/** Makes a namespace. @returns its name, and what the answer says of its position */
const write = (): Promise<{ name: string; consistency: string }> =>
  // a primary that is busy for a second has not said its position in time
  waitUntil(async () => {
    const name = `written-${++names}`;
    const made = await app.server.inject({
      method: 'POST',
      url: `${ann.home}/namespaces`,
      headers: ann.headers,
      payload: { name },
    });
    expect(made.statusCode).toBe(201);
    const consistency = made.headers['x-consistency'] as string | undefined;
    return consistency !== undefined && { name, consistency };
  });

async function list(node: TestApp, headers: Record<string, string> = {}): Promise<string[]> {
  const query = `query ($org: ID!, $ws: ID!) {
    workspace(orgId: $org, id: $ws) { namespaces(first: 50) { nodes { name } } }
  }`;
  const answer = await node.server.inject({
    method: 'POST',
    url: '/graphql',
    headers: { ...ann.headers, ...headers },
    payload: { query, variables: { org: ann.orgId, ws: ann.workspaceId } },
  });
  expect(answer.statusCode).toBe(200);
  const { data } = answer.json<{ data: { workspace: { namespaces: { nodes: { name: string }[] } } } }>();
  return data.workspace.namespaces.nodes.map((node_) => node_.name);
}

describe('what was written is read', () => {
  test('by whoever sends the position of the answer, on any node, 200 times', async () => {
    for (let n = 0; n < 200; n++) {
      const { name, consistency } = await write();
      expect(consistency).toMatch(/^[\w-]{22}$/);
      const seen = await Promise.all(
        ['app', 'other'].map((node) => list(node === 'app' ? app : other, { 'x-consistency': consistency })),
      );
      for (const found of seen) expect(found).toContain(name);
    }
  });

  test('by who wrote it on the same node, without a header', async () => {
    const { name } = await write();
    expect(await list(app)).toContain(name);
  });

  test('by whoever has asked another node for the position of events since', async () => {
    for (let n = 0; n < 5; n++) {
      const { name } = await write();
      const payload = { query: '{ eventCursor }' };
      const asked = await other.server.inject({ method: 'POST', url: '/graphql', headers: ann.headers, payload });
      expect(asked.json()).toEqual({ data: { eventCursor: expect.any(String) } });
      expect(await list(other)).toContain(name);
    }
  });

  test('from the primary, where a position cannot be read', async () => {
    for (const unreadable of ['x', 'A'.repeat(22), 'é', '0'.repeat(5_000)]) {
      const { name } = await write();
      expect(await list(other, { 'x-consistency': unreadable })).toContain(name);
    }
  });

  test('and later from a replica, which is asked without a position, too', async () => {
    // on a busy machine it is late for a moment, or has what was written before it is asked
    const { name, consistency } = await waitFor(async () => {
      const written = await write();
      const before = await readsOf(other, 'replica');
      expect(await list(other)).not.toContain(written.name);
      expect(await readsOf(other, 'replica')).toBe(before + 1);
      return written;
    });
    await waitFor(async () => {
      const asked = await readsOf(other, 'replica');
      expect(await list(other, { 'x-consistency': consistency })).toContain(name);
      expect(await readsOf(other, 'replica')).toBe(asked + 1);
    });
  });
});

/** What the doctor finds of the replicas, and of others. */
function doctorsWords(...others: string[]) {
  const urls = [...server.replicas.map(({ url }) => url), ...others].join(', ');
  return replicasCheck(loadConfig({ DATABASE_URL: server.url, DATABASE_READ_URLS: urls }), server.url).run();
}

const IS_LATE = 'Replica 2 is more than 1 s behind: it is not read from.';

test('the doctor tells of those that keep up, are late, or are away', async () => {
  await waitFor(async () =>
    expect(await doctorsWords('postgres://nobody:secret@127.0.0.1:9/none')).toEqual([
      { status: 'ok', message: 'replica 1 keeps up', remedy: null },
      { status: 'warn', message: IS_LATE, remedy: 'See docs/operate/scale-out.md, read replicas.' },
      {
        status: 'warn',
        message: 'Replica 3 is away: connect ECONNREFUSED 127.0.0.1:9',
        remedy: 'See docs/operate/scale-out.md, read replicas.',
      },
    ]),
  );
});

describe('a list in an event has what the event is about', () => {
  const query = `subscription ($org: ID!, $ws: ID!) {
    workspaceEvents(orgId: $org, workspaceId: $ws, heartbeat: true, join: true) {
      type resource { ... on Namespace { name workspace { namespaces(first: 100) { nodes { name } } } } }
    }
  }`;
  interface Shown {
    workspaceEvents: {
      type: string;
      resource: { name?: string; workspace?: { namespaces: { nodes: { name: string }[] } } } | null;
    };
  }
  const variables = () => ({ org: ann.orgId, ws: ann.workspaceId });
  const seenIn = ({ workspaceEvents: { resource } }: Shown) =>
    resource?.workspace?.namespaces.nodes.map(({ name }) => name);
  /** The replica has all that this stream wrote when it began, so it is fit for other reads. */
  const readFromReplica = () =>
    waitFor(async () => {
      const before = await readsOf(other, 'replica');
      await list(other);
      expect(await readsOf(other, 'replica')).toBe(before + 1);
    });

  test('over server-sent events', async () => {
    const stream = await openEvents(`${await other.listen()}/graphql`, {
      method: 'POST',
      headers: { ...ann.headers, accept: 'text/event-stream', 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: variables() }),
    });
    const shown = (data: string) => (JSON.parse(data) as { data: Shown }).data;
    await stream.next(({ data }) => data.includes('"connected"'));
    await readFromReplica();
    for (let n = 0; n < 5; n++) {
      const { name } = await write();
      const { data } = await stream.next((event) => event.data.includes(`"name":"${name}","workspace"`));
      expect(seenIn(shown(data))).toContain(name);
    }
    stream.close();
  });

  test('over a WebSocket', async () => {
    const socket = await openAcknowledged(await other.listen(), ann.headers.authorization!);
    socket.send({ id: '1', type: 'subscribe', payload: { query, variables: variables() } });
    await socket.next(({ payload }) => JSON.stringify(payload ?? null).includes('"connected"'));
    await readFromReplica();
    for (let n = 0; n < 5; n++) {
      const { name } = await write();
      const { payload } = await socket.next((message) =>
        JSON.stringify(message.payload ?? null).includes(`"name":"${name}","workspace"`),
      );
      expect(seenIn((payload as { data: Shown }).data)).toContain(name);
    }
    socket.close();
  });
});

test('a repeated request says a position that has what the first one wrote', async () => {
  const send = () =>
    app.server.inject({
      method: 'POST',
      url: `${ann.home}/namespaces`,
      headers: { ...ann.headers, 'idempotency-key': 'replicas' },
      payload: { name: 'repeated' },
    });
  expect((await send()).statusCode).toBe(201);
  const again = await send();
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect(again.headers['x-consistency']).toMatch(/^[\w-]{22}$/);
  expect(await list(other, { 'x-consistency': again.headers['x-consistency'] as string })).toContain('repeated');
});

test('an answer that wrote nothing says no position', async () => {
  const answer = await app.server.inject({ url: `${ann.home}/namespaces`, headers: ann.headers });
  expect(answer.headers).not.toHaveProperty('x-consistency');
});

test('metrics tell how old each replica is and which are in use', () =>
  // on a busy machine a replica is late for a moment
  waitFor(async () => {
    const { body } = await app.server.inject('/metrics');
    const numberOf = (line: string) => Number(new RegExp(`^${line} (\\S+)$`, 'm').exec(body)?.[1]);
    expect(numberOf('platform_database_replica_in_use\\{replica="1"\\}')).toBe(1);
    expect(numberOf('platform_database_replica_in_use\\{replica="2"\\}')).toBe(0);
    expect(numberOf('platform_database_replica_lag_seconds\\{replica="1"\\}')).toBeLessThan(1);
  }));

test('reads that a replica does not finish are told of once', async () => {
  const { logger, lines } = keptLog();
  const database = openDatabase({ url: server.url, readUrls: [server.replicas[0]!.url], poolSize: 1, logger });
  const primary = targetOf(database.pool);
  const reads = new ReplicaReads(database.replicas!, primary, Buffer.from('secret'));
  let refused = 0;
  // on a busy machine it is late for a moment, and not asked
  await waitFor(async () => {
    const found = await reads.run(systemCaller('test'), async (place) => {
      if (place === primary) return 'found';
      refused += 1;
      throw new Error('it lacks a function');
    });
    expect(found).toBe('found');
    expect(refused).toBe(3);
  });
  await database.close();
  // it may have been away for a moment, too
  expect(lines.map((line) => JSON.parse(line) as object).filter((line) => 'reads' in line)).toMatchObject([
    { replica: 1, reads: 1, err: { message: 'it lacks a function' } },
  ]);
});

const { current } = bouncers();
if (!current) test.skip('NOT RUN: no PgBouncer of 1.21 or newer is here (`node scripts/pgbouncer.mjs` fetches it)');
else
  test('a replica behind PgBouncer gives sessions with the limits, while the primary has no pooler', async () => {
    const [replica] = server.replicas;
    const pooler = await startPgBouncer({ serverUrl: replica!.url });
    const url = pooler.urlOf(new URL(replica!.url).pathname.slice(1));
    const limits = Object.keys(SESSION_LIMITS).filter((name) => name !== 'transaction_timeout');
    const columns = limits.map((name) => `current_setting('${name}') as "${name}"`).join(', ');
    const database = openDatabase({ url: server.url, readUrls: [url], poolSize: 4, logger: keptLog().logger });
    try {
      await waitFor(() => expect(database.replicas!.all[0]!.state).toBe('ok'));
      const { pool } = database.replicas!.all[0]!;
      const sessions = await Promise.all(
        Array.from({ length: 4 }, async () => (await pool!.query(`select ${columns}`)).rows as unknown[]),
      );
      const wanted = Object.fromEntries(limits.map((name) => [name, SESSION_LIMITS[name]]));
      expect(sessions).toEqual(sessions.map(() => [wanted]));
    } finally {
      await database.close();
      await pooler.stop();
    }
  });

if (current)
  test('a replica behind PgBouncer that overrides the limits is left out, and the log says why', async () => {
    const [replica] = server.replicas;
    const overrides = `connect_query='set statement_timeout = 0'`;
    const pooler = await startPgBouncer({ serverUrl: replica!.url, overrides });
    const url = pooler.urlOf(new URL(replica!.url).pathname.slice(1));
    const { logger, lines } = keptLog();
    const database = openDatabase({ url: server.url, readUrls: [url], poolSize: 1, logger });
    try {
      await waitFor(() => expect(lines.join('')).toContain('gives sessions without the settings of the role'));
      expect(database.replicas!.pick(0n)).toBeNull();
      expect(database.replicas!.all[0]!.state).toBe('away');
    } finally {
      await database.close();
      await pooler.stop();
    }
  });

describe('a replica is left out, and the primary answers,', () => {
  test('for the rest of a request that began to read from it', async () => {
    const [replica] = server.replicas;
    const reads = new ReplicaReads(app.database.replicas!, targetOf(app.database.pool), Buffer.from('secret'));
    let caller = systemCaller('test');
    const read = () => reads.run(caller, ({ sql }) => sql.read('select 1', []));
    // one that reads from it: on a busy machine it is late for a moment, and another request asks the primary
    const { primary } = await waitFor(async () => {
      caller = systemCaller('test');
      await read();
      expect(reads.counts.replica).toBe(1);
      return reads.counts;
    });
    await replica!.has('select pg_wal_replay_pause()');
    try {
      await write();
      await waitFor(async () => expect(await statesOf(app)).toEqual(['late', 'late']));
      await read();
      expect(reads.counts).toEqual({ replica: 1, primary: primary + 1 });
    } finally {
      await replica!.has('select pg_wal_replay_resume()');
    }
    await waitFor(async () => expect(await statesOf(other)).toEqual(['ok', 'late']));
    await read();
    expect(reads.counts).toEqual({ replica: 1, primary: primary + 2 });
  });

  test('while it does not go on', async () => {
    const [replica] = server.replicas;
    replica!.freeze(true);
    try {
      // each of them answers, also those that it has begun
      await waitFor(async () => {
        expect(await list(other)).toContain(`written-${names}`);
        expect(await statesOf(other)).toEqual(['away', 'late']);
      });
    } finally {
      replica!.freeze(false);
    }
    await waitFor(async () => expect(await statesOf(other)).toEqual(['ok', 'late']));
  });

  test('while it is down, until it is back', async () => {
    const [replica] = server.replicas;
    const last = `written-${names}`;
    const asking = { isOver: false };
    const answers = (async () => {
      while (!asking.isOver) expect(await list(other)).toContain(last);
    })();
    await replica!.kill();
    await waitFor(async () => expect(await statesOf(other)).toEqual(['away', 'late']));
    const { name } = await write();
    expect(await list(other)).toContain(name);
    await replica!.start();
    await waitFor(async () => expect(await statesOf(other)).toEqual(['ok', 'late']));
    asking.isOver = true;
    await answers;
  });

  test('when it is back with less than it had, as after a crash', async () => {
    const [one] = server.replicas;
    const replica = other.database.replicas!.all[0]!;
    await one!.has('select pg_wal_replay_pause()');
    try {
      await write();
      // nothing that is remembered of the primary is as old as this replica
      await waitFor(() => expect(replica.lagMs).toBeGreaterThan(3_000));
      replica.position += 1n << 40n;
      replica.freshAt = performance.now() + 60_000;
      await waitFor(async () => expect(await statesOf(other)).toEqual(['late', 'late']));
    } finally {
      await one!.has('select pg_wal_replay_resume()');
    }
    await waitFor(async () => expect(await statesOf(other)).toEqual(['ok', 'late']));
  });

  test('when it has become a primary of its own', async () => {
    await server.replicas[0]!.promote();
    await waitFor(async () => expect(await statesOf(other)).toEqual(['no replica', 'late']));
    const { name } = await write();
    expect(await list(other)).toContain(name);
    const words = async () =>
      expect(await doctorsWords()).toEqual([
        {
          status: 'fail',
          message: 'Replica 1 follows no primary: it is not read from.',
          remedy: 'Take it out of DATABASE_READ_URLS.',
        },
        expect.objectContaining({ message: IS_LATE }),
      ]);
    await waitFor(words);
  });
});
