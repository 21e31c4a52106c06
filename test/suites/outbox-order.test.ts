import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Sql } from '../../src/data/sql.ts';
import { EventTail } from '../../src/live/events/event-tail.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { insertEvent, WRITERS, writeLate } from '../support/late-writers.ts';
import { waitFor, waitUntil } from '../support/wait.ts';

const ROUNDS = 6;
const PLACE = { orgId: 'org_order', workspaceId: 'ws_order' };

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: WRITERS + 4 });
  // dropping the database may end a connection that is just saying goodbye
  pool.on('error', () => undefined);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const insert = (id: string) => insertEvent(pool, PLACE, id);

/** The negative control: what one would write without thinking of late commits. */
async function naiveReader(isOver: () => boolean): Promise<string[]> {
  const seen: string[] = [];
  let last = (await pool.query<{ seq: string }>('select coalesce(max(seq), 0)::text as seq from events')).rows[0]!.seq;
  for (let emptyReads = 0; !isOver() || emptyReads < 3; ) {
    const { rows } = await pool.query<{ seq: string; id: string }>(
      'select seq::text, id from events where seq > $1 order by seq limit 500',
      [last],
    );
    seen.push(...rows.map(({ id }) => id));
    last = rows.at(-1)?.seq ?? last;
    emptyReads = rows.length === 0 ? emptyReads + 1 : 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}

test('twelve late writers: the tail delivers each event once, in order; a naive reader loses some', async () => {
  let lostByNaive = 0;
  for (let round = 0; round < ROUNDS && lostByNaive === 0; round++) {
    const faults: unknown[] = [];
    const tail = new EventTail(new Sql(pool), 5, (error) => faults.push(error));
    const queue = await tail.subscribe(PLACE);
    const other = await tail.subscribe({ ...PLACE, workspaceId: 'ws_other' });
    const delivered: string[] = [];
    const reading = (async () => {
      for await (const { id } of queue) delivered.push(id);
    })();
    let isOver = false;
    const naive = naiveReader(() => isOver);
    const written = await writeLate(pool, PLACE, `evt_${round}`);
    isOver = true;
    const seenByNaive = new Set(await naive);
    await waitUntil(() => delivered.length >= written.length);
    // what would come twice has come by now
    await insert(`evt_${round}_last`);
    await waitUntil(() => delivered.at(-1) === `evt_${round}_last`);
    tail.close();
    await reading;
    expect(faults).toEqual([]);
    expect(delivered.pop()).toBe(`evt_${round}_last`);
    expect([...delivered].sort()).toEqual([...written].sort());
    for (let writer = 0; writer < WRITERS; writer++) {
      const mine = (list: string[]) => list.filter((id) => id.startsWith(`evt_${round}_${writer}_`));
      expect(mine(delivered)).toEqual(mine(written));
    }
    expect((await other.next()).done).toBe(true);
    lostByNaive = written.filter((id) => !seenByNaive.has(id)).length;
  }
  expect(lostByNaive).toBeGreaterThan(0);
});

test('a reader that comes while the first one is being let in takes nothing away from it', async () => {
  const tail = new EventTail(new Sql(pool), 5, () => undefined);
  const first = tail.subscribe(PLACE);
  const second = tail.subscribe(PLACE);
  const [a, b] = await Promise.all([first, second]);
  await insert('evt_both');
  expect((await a.next()).value).toMatchObject({ id: 'evt_both' });
  expect((await b.next()).value).toMatchObject({ id: 'evt_both' });
  tail.close();
});

test('a reader that does not read is let go, the others go on', async () => {
  const tail = new EventTail(new Sql(pool), 5, () => undefined);
  const [idle, busy] = [await tail.subscribe(PLACE), await tail.subscribe(PLACE)];
  let count = 0;
  const reading = (async () => {
    for await (const _event of busy) count++;
  })();
  await pool.query(
    `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
     select 'evt_flood_' || n, 'org_order', $1, 'thread.created', '{}', 'thread', 'o', '{}'
       from generate_series(1, 1500) n`,
    [PLACE.workspaceId],
  );
  await waitFor(() => expect(count).toBe(1_500));
  expect((await idle.next()).done).toBe(true);
  tail.close();
  await reading;
});
