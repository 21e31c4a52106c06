import { afterAll, beforeAll, expect, it } from 'vitest';
import { ActivityRecorder } from '../../../src/data/activity.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());

const TABLES = ['workspaces', 'activity', 'secrets'];

/** PostgreSQL answers as with a full disk for as long as `work` takes. */
async function withFullDisk(work: () => Promise<void>): Promise<void> {
  const { pool } = app.database;
  await pool.query(`create function no_room() returns trigger language plpgsql as
    $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`);
  for (const table of TABLES)
    await pool.query(`create trigger no_room before insert or update on ${table} execute function no_room()`);
  try {
    await work();
  } finally {
    // one table at a time, and again: a background task locks them as well, and one of a deadlock is ended
    for (const table of TABLES) await waitFor(() => pool.query(`drop trigger if exists no_room on ${table}`));
    await pool.query('drop function no_room');
  }
}

const lostSoFar = async () =>
  Number(/^platform_activity_records_lost_total (\d+)$/m.exec((await callsOf(app).get('/metrics')).body)?.[1]);

it('answers 503 while there is no room, serves reads, and writes their records later', async () => {
  const url = `/v1/orgs/${owner.orgId}/workspaces`;
  const traced = { ...owner.headers, 'x-trace-id': 'no-room' };
  const { post, get, graphql } = callsOf(app);
  const lostBefore = await lostSoFar();
  await withFullDisk(async () => {
    const answers = [
      await post(url, { organization_id: owner.orgId, name: 'No room' }, traced),
      await callsOf(app).put(`${url}/${owner.workspaceId}`, { name: 'No room' }, traced),
    ];
    for (const answer of answers) {
      expect(answer.statusCode).toBe(503);
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.json()).toMatchObject({ error: 'SERVICE_UNAVAILABLE', details: { retry_after: 1 } });
    }
    const query =
      'mutation ($org: ID!) { createWorkspace(orgId: $org, input: { organizationId: $org, name: "x" }) { id } }';
    const { errors } = (await graphql(query, { org: owner.orgId }, traced)).json();
    expect(errors).toMatchObject([{ extensions: { code: 'SERVICE_UNAVAILABLE' } }]);
    expect((await get(url, traced)).statusCode).toBe(200);
    await app.services.activity.flush();
    expect(app.services.activity.depth).toBeGreaterThanOrEqual(4);
  });
  await app.services.activity.flush();
  const records = await app.database.prisma.activity.findMany({
    where: { traceId: 'no-room' },
    orderBy: { id: 'asc' },
    select: { action: true, statusCode: true, errorCode: true },
  });
  const failed = { statusCode: 503, errorCode: 'SERVICE_UNAVAILABLE' };
  expect(records).toEqual([
    { action: 'create', ...failed },
    { action: 'update', ...failed },
    { action: 'create', ...failed },
    { action: 'list', statusCode: 200, errorCode: null },
  ]);
  expect(await lostSoFar()).toBe(lostBefore);
});

it('keeps only so many records, and counts those that it had to drop', async () => {
  const caller = {
    principal: null,
    request: {
      traceId: 'too-many',
      method: 'GET',
      path: '/',
      ip: '::1',
      successStatus: 200,
      startedAt: 0,
      recorded: false,
      isRest: true,
    },
  };
  const entry = { action: 'read', resourceType: 'user', resourceId: null, orgId: null } as const;
  const told: number[] = [];
  const recorder = new ActivityRecorder(app.services.sql, (_error, lost) => told.push(lost), 600);
  await withFullDisk(async () => {
    for (let n = 0; n < 1_300; n++) recorder.record(caller, entry, { statusCode: 200 });
    await recorder.flush();
    expect(recorder.depth).toBe(600);
  });
  await recorder.flush();
  const written = await app.database.prisma.activity.count({ where: { traceId: 'too-many' } });
  expect([written, recorder.lost]).toEqual([600, 700]);
  expect(told.reduce((sum, lost) => sum + lost, 0)).toBe(700);
});
