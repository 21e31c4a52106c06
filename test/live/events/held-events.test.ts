import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Sql } from '../../../src/data/sql.ts';
import { EventTail } from '../../../src/live/events/event-tail.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { insertEvent } from '../../support/late-writers.ts';
import { waitUntil } from '../../support/wait.ts';
import { createWorld, type World } from '../../support/world.ts';

const TAIL = 'a tail without polls';
/** Some weeks: what comes sooner was not found by a poll. */
const NEVER_MS = 2_000_000_000;

let app: TestApp;
let world: World;
let pool: pg.Pool;
let ofTail: pg.Pool;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app, { withResources: false });
  pool = new pg.Pool({ connectionString: app.database.url });
  ofTail = new pg.Pool({ connectionString: app.database.url, max: 1, application_name: TAIL });
});
afterAll(async () => {
  await ofTail.end();
  await pool.end();
  await app.close();
});

/** When the tail last asked for events, of those questions that were answered. */
async function askedAt(): Promise<Date> {
  const { rows } = await pool.query<{ asked: Date }>(
    `select query_start as asked from pg_stat_activity
     where datname = current_database() and application_name = $1 and state = 'idle' and query like '%from events e%'`,
    [TAIL],
  );
  return rows[0]?.asked ?? new Date(0);
}

test('an event that a transaction holds back comes when that ends, without another event or a poll', async () => {
  const place = { orgId: world.ids.org_id!, workspaceId: world.ids.workspace_id! };
  const faults: unknown[] = [];
  const tail = new EventTail(new Sql(ofTail), NEVER_MS, (error) => faults.push(error));
  const queue = await tail.subscribe(place);
  const older = await pool.connect();
  onTestFinished(() => {
    older.release(true);
    tail.close();
  });
  await older.query('begin');
  await older.query('select pg_current_xact_id()');
  await insertEvent(pool, place, 'evt_held');
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
  tail.nudge();
  // it is not there yet for whoever reads in the order of commits
  await waitUntil(async () => (await askedAt()) > rows[0]!.now);
  const next = queue.next();
  expect(queue.isWaiting).toBe(true);
  await older.query('commit');
  expect(await next).toMatchObject({ done: false, value: { id: 'evt_held', workspaceId: place.workspaceId } });
  // nor does it come again
  await insertEvent(pool, place, 'evt_later');
  tail.nudge();
  expect(await queue.next()).toMatchObject({ value: { id: 'evt_later' } });
  expect(faults).toEqual([]);
});
