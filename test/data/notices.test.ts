import { afterAll, beforeAll, expect, test } from 'vitest';
import { Notices } from '../../src/data/notices.ts';
import { statement } from '../../src/data/writes.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { changesOver } from '../support/changes.ts';
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

test('a row that another node told of while this one looked is not told of again', async () => {
  const { pool } = app.database;
  const told: string[] = [];
  const notices = new Notices<{ id: string }>({
    changes: changesOver(app),
    name: 'a test',
    everySeconds: 60,
    // it waits at the gate when it has begun to look; what is due is found by a subquery
    due: `select u.id from users u cross join lateral (select min(1) as step where u.full_name = 'due') s
      cross join lateral (select pg_advisory_xact_lock_shared(${GATE})::text as passed) gate
      where u.id = '${ann.userId}' and s.step is not null and gate.passed = '' order by u.id`,
    of: 'u',
    async tell(tx, { id }) {
      await tx.query(statement`update users set full_name = 'told' where id = ${id}`);
      told.push(id);
    },
  });
  const be = (name: string) => pool.query('update users set full_name = $2 where id = $1', [ann.userId, name]);
  await be('due');
  const gate = await pool.connect();
  await gate.query('select pg_advisory_lock($1)', [GATE]);
  const sent = notices.send();
  await waitUntil(() => lockWaits(pool), { what: 'the look to reach the gate' });
  await be('told elsewhere');
  gate.release(true);
  expect([await sent, told]).toEqual([0, []]);

  await be('due');
  expect([await notices.send(), told]).toEqual([1, [ann.userId]]);
  expect(await notices.send()).toBe(0);
});
