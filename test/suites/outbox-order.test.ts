import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Sql } from '../../src/data/sql.ts';
import { EventTail } from '../../src/events/event-tail.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const WRITERS = 12;
const PER_WRITER = 60;
const ROUNDS = 6;
const WORKSPACE = 'ws_order';
const PLACE = { orgId: 'org_order', workspaceId: WORKSPACE };

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

const INSERT = `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
  values ($1, 'org_order', $2, 'order.created', '{}', 'order', $1, '{}')`;

/** Writes events in transactions that commit late, now and then roll back, and hold several events. */
async function write(writer: number, round: number, written: string[]): Promise<void> {
  const client = await pool.connect();
  try {
    for (let i = 0; i < PER_WRITER; ) {
      const batch = 1 + Math.floor(Math.random() * 3);
      const isAborted = Math.random() < 0.1;
      const ids = Array.from(
        { length: batch },
        (_, k) => `evt_${round}_${writer}_${i + k}${isAborted ? '_aborted' : ''}`,
      );
      await client.query('begin');
      for (const id of ids) {
        await client.query(INSERT, [id, WORKSPACE]);
        if (Math.random() < 0.3) await delay(Math.random() * 4);
      }
      await delay(Math.random() * 6);
      await client.query(isAborted ? 'rollback' : 'commit');
      if (!isAborted) written.push(...ids);
      i += batch;
    }
  } finally {
    client.release();
  }
}

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
    await delay(1);
  }
  return seen;
}

test('twelve writers that commit late: the tail delivers every event exactly once, in the order of each transaction; a naive reader loses some', async () => {
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
    const written: string[] = [];
    let isOver = false;
    const naive = naiveReader(() => isOver);
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer, round, written)));
    isOver = true;
    const seenByNaive = new Set(await naive);
    for (let i = 0; i < 2_000 && delivered.length < written.length; i++) await delay(5);
    // what would come twice has come by now
    await pool.query(INSERT, [`evt_${round}_last`, WORKSPACE]);
    for (let i = 0; i < 2_000 && delivered.at(-1) !== `evt_${round}_last`; i++) await delay(5);
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
}, 60_000);

test('a reader that comes while the first one is being let in takes nothing away from it', async () => {
  const tail = new EventTail(new Sql(pool), 5, () => undefined);
  const first = tail.subscribe(PLACE);
  const second = tail.subscribe(PLACE);
  const [a, b] = await Promise.all([first, second]);
  await pool.query(INSERT, ['evt_both', WORKSPACE]);
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
     select 'evt_flood_' || n, 'org_order', $1, 'order.created', '{}', 'order', 'o', '{}' from generate_series(1, 1500) n`,
    [WORKSPACE],
  );
  for (let i = 0; i < 1_000 && count < 1_500; i++) await delay(5);
  expect(count).toBe(1_500);
  expect((await idle.next()).done).toBe(true);
  tail.close();
  await reading;
});
