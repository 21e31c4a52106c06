// own process: starts servers of PostgreSQL
import { mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { callerErrorOfAny } from '../../../src/platform/postgres/faults.ts';
import { startOwnApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { type ReplicatedPostgres, startReplicated } from '../../support/replica.ts';
import { type EventSource, openEvents } from '../../support/sockets.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

let folder: string;
let server: ReplicatedPostgres;
let app: TestApp;
let ann: Person;

/** Lets the address that the service has lead to another server. */
function switchTo(url: string): void {
  const next = path.join(folder, 'next');
  symlinkSync(new URL(url).searchParams.get('host')!, next);
  renameSync(next, path.join(folder, 'now'));
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'failover-'));
  server = await startReplicated(0, 0);
  switchTo(server.url);
  const address = new URL(server.url);
  address.searchParams.set('host', path.join(folder, 'now'));
  app = await startOwnApp({ databaseUrl: address.href });
  await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const make = (name: string) =>
  app.server.inject({
    method: 'POST',
    url: `${ann.home}/namespaces`,
    headers: ann.headers,
    payload: { name },
  });
/** Of namespaces that were made, the one at this place among those that a stream has brought. */
const created = (source: EventSource, place: number) =>
  waitUntil(() => source.events.filter(({ event }) => event === 'namespace.created')[place]);
const follow = (after?: string) =>
  openEvents(`${app.url}${ann.home}/sync/stream`, {
    headers: { ...ann.headers, ...(after === undefined ? {} : { 'last-event-id': after }) },
  });

const open = (url: string) => openDatabase({ url, poolSize: 1, logger: quietLogger });
const insert = (key: string) => ({ text: `insert into kept_words values ($1)`, values: [key] });

test('a server that follows another is no database: each connection is refused, until it leads', async () => {
  const database = open(server.replicas[0]!.url);
  const error = await database.pool.query('select 1').catch((refused: unknown) => refused);
  expect(callerErrorOfAny(error)).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  await database.close();
});

test('a commit whose wait for a replica was cut off is refused: a failover may lose it', async () => {
  const [replica, second] = server.replicas;
  await server.run('create table kept_words (word text)', `alter system set synchronous_standby_names = '*'`);
  await Promise.all([replica!.kill(), second!.kill()]);
  await server.run('select pg_reload_conf()');
  const address = new URL(server.url);
  address.searchParams.set('options', '-c synchronous_commit=on'); // which tests switch off
  const database = open(address.href);
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  // as `statement_timeout` does after half a minute
  const cut = `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`;
  try {
    for (const write of [
      () => database.transaction((transaction) => transaction.commit([insert('in a transaction')])),
      () => database.pool.query(insert('alone')),
      () => database.pool.query({ ...insert('prepared'), name: 'insert' }),
    ]) {
      const outcome = write().then(
        () => 'done',
        (error: unknown) => callerErrorOfAny(error),
      );
      await waitUntil(async () => (await admin.query(cut)).rowCount === 1);
      expect(await outcome).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    }
    // what is refused so may have happened
    expect((await database.pool.query('select word from kept_words')).rows).toHaveLength(3);
  } finally {
    await admin.end();
    await database.close();
    await server.run('alter system reset synchronous_standby_names', 'select pg_reload_conf()');
    await Promise.all([replica!.start(), second!.start()]);
  }
});

test('a replica that lacks the last commits takes over: requests are 503 meanwhile, readers begin again', async () => {
  const [replica] = server.replicas;
  const stream = await follow();
  await stream.next(({ event }) => event === 'connected');
  expect((await make('kept')).statusCode).toBe(201);
  const kept = await created(stream, 0);
  // the replica has it before it is cut off
  await waitFor(() => replica!.has(`select 1 from namespaces where name = 'kept'`));
  await replica!.kill();
  expect((await make('lost')).statusCode).toBe(201);
  await server.run(`insert into kept_words select repeat('lost', 200) from generate_series(1, 4000)`);
  await waitFor(() => server.replicas[1]!.has(`select 1 from kept_words where word ~ '^lost'`));
  const lost = await created(stream, 1);
  await server.stopPrimary();

  const refused = await make('meanwhile');
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);
  const unread = await app.server.inject({ url: `${ann.home}/namespaces`, headers: ann.headers });
  expect([unread.statusCode, unread.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);

  await replica!.start();
  await replica!.promote();
  switchTo(replica!.url);
  await waitFor(async () => expect((await make('after')).statusCode).toBe(201));

  // the open stream had read what is not there
  const closing = await stream.next(({ event }) => event === 'stream.closing');
  expect(JSON.parse(closing.data)).toMatchObject({ data: { reason: 'unavailable' } });
  const [ahead, there] = [await follow(lost.id), await follow(kept.id)];
  await ahead.next(({ event }) => event === 'resync');
  await created(there, 0);
  expect(there.events.map(({ event }) => event)).not.toContain('resync');
  expect((await make('live')).statusCode).toBe(201);
  await Promise.all([created(ahead, 0), created(there, 1)]);
  for (const each of [ahead, there]) each.close();
});

test('a replica that has what the new primary lacks is not read from', async () => {
  const [primary, ahead] = server.replicas;
  const readUrls = [ahead!.url];
  const database = openDatabase({ url: primary!.url, readUrls, poolSize: 1, logger: quietLogger });
  const replica = database.replicas!.all[0]!;
  const states = new Set<string>();
  let looks = 0;
  try {
    await waitUntil(async () => {
      states.add(replica.state);
      // so often did it come after the primary
      return (await database.replicas!.position()) < replica.position && ++looks > 50;
    });
    expect([...states].sort()).toEqual(['away', 'late']);
  } finally {
    await database.close();
  }
});
