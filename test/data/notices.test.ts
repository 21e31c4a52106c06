import { afterAll, beforeAll, expect, test } from 'vitest';
import { Notices } from '../../src/data/notices.ts';
import { statement } from '../../src/data/writes.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { changesOver } from '../support/changes.ts';
import { fill } from '../support/fill.ts';
import { lockWaits } from '../support/lock-waits.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app);
});
afterAll(() => app.close());

const GATE = 41_093;

/** Notices about users of that name. Looks begin and wait at the gate; what is due is found by a subquery. */
function noticesOf(which: string, name: string): [notices: Notices<{ id: string }>, told: string[]] {
  const told: string[] = [];
  const notices = new Notices<{ id: string }>({
    changes: changesOver(app),
    name: 'a test',
    everySeconds: 60,
    due: `select u.id from users u cross join lateral (select min(1) as step where u.full_name = '${name}') s
      cross join lateral (select pg_advisory_xact_lock_shared(${GATE})::text as passed) gate
      where ${which} and s.step is not null and gate.passed = '' order by u.id`,
    of: 'u',
    async tell(tx, { id }) {
      await tx.query(statement`update users set full_name = 'told' where id = ${id}`);
      told.push(id);
    },
  });
  return [notices, told];
}

/** Sends what is due, and changes it when the look has begun. @returns the number told of */
async function sentDuring(notices: Notices<{ id: string }>, change: () => Promise<unknown>): Promise<number> {
  const { pool } = app.database;
  const gate = await pool.connect();
  await gate.query('select pg_advisory_lock($1)', [GATE]);
  const sent = notices.send();
  await waitUntil(() => lockWaits(pool), { what: 'the look to reach the gate' });
  await change();
  gate.release(true);
  return sent;
}

test('a row that another node told of while this one looked is not told of again', async () => {
  const [notices, told] = noticesOf(`u.id = '${ann.userId}'`, 'due');
  const be = (name: string) =>
    app.database.pool.query('update users set full_name = $2 where id = $1', [ann.userId, name]);
  await be('due');
  expect([await sentDuring(notices, () => be('told elsewhere')), told]).toEqual([0, []]);

  await be('due');
  expect([await notices.send(), told]).toEqual([1, [ann.userId]]);
  expect(await notices.send()).toBe(0);
});

test('one look tells of all that is due, however much of it another node tells of meanwhile', async () => {
  await fill(
    app,
    `insert into users (id, email, email_key, username, username_key, full_name)
      select id, id, id, id, id, 'many are due' from (select 'user_' || to_char(n, 'FM000') as id
        from generate_series(1, 250) n) u`,
  );
  const [notices, told] = noticesOf("u.id < 'user_999'", 'many are due');
  const tellElsewhere = () =>
    app.database.pool.query("update users set full_name = 'told elsewhere' where id between 'user_001' and 'user_060'");
  expect(await sentDuring(notices, tellElsewhere)).toBe(190);
  expect(told).toEqual(Array.from({ length: 190 }, (_, index) => `user_${String(index + 61).padStart(3, '0')}`));
});
