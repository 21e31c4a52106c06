import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';

let app: TestApp;
let owner: Person;
let files: string;
beforeAll(async () => {
  app = await startTestApp();
  files = path.join(app.dataDir, 'files');
  writeFileSync(files, 'a file where the folder should be');
  owner = await register(app);
});
afterAll(() => app.close());

const statusOf = async () =>
  (
    await app.server.inject({ url: `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`, headers: owner.headers })
  ).json<{ bucket_status: string }>().bucket_status;

/** Lets the bucket have failed for the first time so long ago, and for the last. */
const failing = (first: string, last: string) =>
  app.database.pool.query(
    'update workspaces set created_at = now() - $2::interval, updated_at = now() - $3::interval where id = $1',
    [owner.workspaceId, first, last],
  );

/** What the events said of the bucket so far. */
async function told(): Promise<string[]> {
  const events = await app.database.prisma.event.findMany({
    where: { workspaceId: owner.workspaceId, type: 'workspace.updated' },
    orderBy: { seq: 'asc' },
    select: { data: true },
  });
  return events.map(({ data }) => (data as { bucket_status: string }).bucket_status);
}

/** Whether it is tried again then. The service's own task may be first. */
async function triedAgain(first: string, last: string): Promise<boolean> {
  const before = (await told()).length;
  await failing(first, last);
  await app.services.buckets.retryFailed();
  return (await told()).length > before;
}

it('tries a bucket that failed again, after ever longer waits, and says so in events', async () => {
  await vi.waitFor(async () => expect(await statusOf()).toBe('failed'), 10_000);
  expect(await triedAgain('5 seconds', '5 seconds')).toBe(false);
  expect(await triedAgain('11 seconds', '11 seconds')).toBe(true);
  await vi.waitFor(async () => expect(await statusOf()).toBe('failed'), 10_000);
  expect(await triedAgain('5 minutes', '2 minutes')).toBe(false);
  expect(await triedAgain('1 year', '59 minutes')).toBe(false);
  rmSync(files);
  expect(await triedAgain('1 year', '61 minutes')).toBe(true);
  await vi.waitFor(async () => expect(await statusOf()).toBe('ready'), 10_000);
  expect(await triedAgain('1 year', '61 minutes')).toBe(false);
  expect(await told()).toEqual(['failed', 'pending', 'failed', 'pending', 'ready']);
});
