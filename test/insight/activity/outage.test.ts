import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

/** What waits in memory at most, and how many more of them there are. */
const KEPT = 20_000;
const TOO_MANY = 5_000;
/** Changes that are answered while the database is away. */
const REFUSED = 50;

let database: TestDatabase;
let app: TestApp;
let owner: Person;
beforeAll(async () => {
  database = await createTestDatabase();
  app = await startTestApp({ databaseUrl: database.url });
  owner = await register(app);
});
afterAll(async () => {
  await app.close();
  await database.drop();
});

const metric = async (name: string) =>
  Number(new RegExp(`^platform_${name} (\\d+)$`, 'm').exec((await callsOf(app).get('/metrics')).body)?.[1]);

it('loses no record of an acknowledged change, and counts each other one that it cannot keep', async () => {
  const url = `/v1/orgs/${owner.orgId}/workspaces`;
  const acknowledged: string[] = [];
  const refused = { away: 0, all: 0 };
  const reasons = new Set<string>();
  let isOver = false;
  /** Changes until it is over, whatever the answers are. */
  const change = async (writer: number): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const answer = await callsOf(app).post(
        url,
        { organization_id: owner.orgId, name: `${writer} ${n}` },
        { ...owner.headers, 'x-trace-id': 'outage' },
      );
      if (answer.statusCode === 201) {
        acknowledged.push(answer.json<{ workspace_id: string }>().workspace_id);
        continue;
      }
      reasons.add(`${answer.statusCode} ${answer.json<{ error: string }>().error}`);
      refused.all += 1;
    }
  };
  const changing = Promise.all([0, 1, 2, 3].map(change));
  try {
    await waitFor(() => expect(acknowledged.length).toBeGreaterThan(10));
    await database.outage(async () => {
      await waitFor(() => expect(refused.all).toBeGreaterThan(REFUSED));
      const request = {
        traceId: 'outage-reads',
        method: 'GET',
        path: '/',
        ip: '::1',
        successStatus: 200,
        startedAt: 0,
        recorded: false,
        isRest: true,
      };
      const entry = { action: 'read', resourceType: 'user', resourceId: null, orgId: null } as const;
      for (let n = 0; n < KEPT + TOO_MANY; n++)
        app.services.activity.record({ principal: null, request }, entry, { statusCode: 200 });
      expect(app.services.activity.depth).toBeLessThanOrEqual(KEPT);
      expect(await metric('activity_queue_depth')).toBeGreaterThan(KEPT - 1_000);
      expect(await metric('activity_records_lost_total')).toBeGreaterThanOrEqual(TOO_MANY);
      refused.away = refused.all;
    });
    const before = acknowledged.length;
    await waitFor(() => expect(acknowledged.length).toBeGreaterThan(before + 10));
  } finally {
    isOver = true;
  }
  await changing;
  // nothing but the service itself tries again
  await waitFor(async () => expect(await metric('activity_queue_depth')).toBe(0));
  await app.services.activity.flush();

  expect(refused.away).toBeGreaterThan(REFUSED);
  expect([...reasons]).toEqual(['503 SERVICE_UNAVAILABLE']);
  const changes = await app.database.prisma.activity.findMany({
    where: { traceId: 'outage', success: true, resourceId: { in: acknowledged } },
    select: { resourceId: true },
  });
  expect(changes).toHaveLength(acknowledged.length);
  expect(new Set(changes.map(({ resourceId }) => resourceId))).toEqual(new Set(acknowledged));
  const reads = await app.database.prisma.activity.count({ where: { traceId: 'outage-reads' } });
  const notKept = KEPT + TOO_MANY - reads;
  const lost = await metric('activity_records_lost_total');
  // some of the refused changes may be lost, too
  expect(lost).toBeGreaterThanOrEqual(notKept);
  expect(lost).toBeLessThanOrEqual(notKept + refused.all);
}, 120_000);
