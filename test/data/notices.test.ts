import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Changes } from '../../src/data/changes.ts';
import { Notices } from '../../src/data/notices.ts';
import { statement } from '../../src/data/writes.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

let app: TestApp;
let ann: Person;
let pool: pg.Pool;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app);
  pool = new pg.Pool({ connectionString: app.database.url });
});
afterAll(async () => {
  await pool.end();
  await app.close();
});

const GATE = 41_093;

test('a row that another node told of while this one looked is not told of again', async () => {
  const { database } = app;
  const { sql, jobQueue: jobs } = app.services;
  const told: string[] = [];
  const notices = new Notices<{ id: string }>({
    changes: new Changes({
      database,
      sql,
      jobs,
      notify: () => null,
      assertsLockOrder: true,
      onCommit: () => undefined,
    }),
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
  await waitUntil(
    async () =>
      (await pool.query(`select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`))
        .rowCount,
    { what: 'the look to reach the gate' },
  );
  await be('told elsewhere');
  gate.release(true);
  expect([await sent, told]).toEqual([0, []]);

  await be('due');
  expect([await notices.send(), told]).toEqual([1, [ann.userId]]);
  expect(await notices.send()).toBe(0);
});
