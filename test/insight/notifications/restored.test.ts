import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { addToWorkspace, colleague, type Person, register } from '../../support/person.ts';
import { newSecret } from '../../vault/secrets/new-secret.ts';
import { countsOf, deployable, eventsToldTo, listOf } from './told.ts';

let app: TestApp;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
  bob = await colleague(app, ann, 'admin');
  await bob.call('POST', '/v1/notifications/read-all');
});

const ok = async (answer: Promise<{ status: number; body: object }>) => {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
};
const remove = () => ok(ann.call('DELETE', ann.home));
const restore = () => ok(ann.call('POST', `${ann.home}/restore`));
const readAll = (who: Person) => ok(who.call('POST', '/v1/notifications/read-all'));

/** What counts as unread, newest first: the badge says the same. */
async function unread(who: Person): Promise<string[]> {
  const { notifications, total } = await listOf(who, '?status=unread&limit=100');
  expect((await countsOf(who)).unread_count).toBe(total);
  return notifications.map(({ source_event }) => source_event!);
}

/** A secret of the workspace expires in two days. */
async function expiring() {
  const secret = await newSecret(ann, { workspace_id: ann.workspaceId });
  await app.database.pool.query(
    `update secrets set created_at = now() - interval '1 year', expires_at = now() + interval '2 days' where id = $1`,
    [secret.secret_id],
  );
  await app.services.secretNotices.send();
  return secret;
}

const toldAgain = async (who: Person) =>
  (
    await app.database.prisma.event.findMany({
      where: { recipientId: who.userId, type: 'notification.updated' },
      orderBy: { seq: 'asc' },
    })
  ).map(({ orgId, workspaceId, data }) => [orgId, workspaceId, data]);

describe('what the deletion of a workspace ended, once it is restored', () => {
  it('is unread again if it tells of a state, also if it was read before', async () => {
    await expiring();
    expect(await unread(ann)).toEqual(['secret.expiring']);
    await readAll(ann);
    await remove();
    expect(await eventsToldTo(ann)).toEqual([]);
    await restore();
    expect(await unread(ann)).toEqual(['secret.expiring']);
    expect(await toldAgain(ann)).toEqual([[ann.orgId, ann.workspaceId, { status: 'unread', count: 1 }]]);
    const { data } = await ann.ask<{ notifications: { nodes: object[] } }>(
      '{ notifications(isResolved: false) { nodes { status readAt resolvedAt } } }',
    );
    expect(data.notifications.nodes).toEqual([{ status: 'unread', readAt: null, resolvedAt: null }]);
  });

  it('is as it was left if it tells what happened, or who is a member', async () => {
    const { release, deploy } = await deployable(ann);
    await deploy(ann, await release('1.0.0'));
    await readAll(bob);
    await deploy(ann, await release('2.0.0'));
    const before = await eventsToldTo(bob);
    expect(await unread(bob)).toEqual(['deployment.created']);
    await remove();
    expect(await unread(bob)).toEqual([]);
    await restore();
    expect(await unread(bob)).toEqual(['deployment.created']);
    expect(await eventsToldTo(bob)).toEqual(before);
    expect(await toldAgain(bob)).toEqual([
      [ann.orgId, ann.workspaceId, { status: 'read', count: 1 }],
      [ann.orgId, ann.workspaceId, { status: 'read', count: 1 }],
      [ann.orgId, ann.workspaceId, { status: 'unread', count: 1 }],
    ]);
  });

  it('is not told if it is not true any more', async () => {
    const eve = await colleague(app, ann, 'viewer');
    const { secret_id } = await expiring();
    await remove();
    await app.database.pool.query(`update secrets set expires_at = now() + interval '1 year' where id = $1`, [
      secret_id,
    ]);
    await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${eve.userId}`));
    await restore();
    expect(await unread(ann)).toEqual([]);
    expect(await unread(eve)).toEqual(['organization_member.deleted']);
  });

  it('is not told if it had ended before', async () => {
    const eve = await colleague(app, ann, 'viewer');
    await ok(ann.call('DELETE', `${ann.home}/members/${eve.userId}`));
    await addToWorkspace(app, ann, eve.userId, 'viewer');
    await readAll(eve);
    const before = await eventsToldTo(eve);
    await remove();
    await restore();
    expect(await eventsToldTo(eve)).toEqual(before);
    expect(await unread(eve)).toEqual([]);
  });

  it('stays in the archive, if somebody put it there', async () => {
    await expiring();
    const [told] = (await listOf(ann)).notifications;
    await ok(ann.call('DELETE', `/v1/notifications/${told!.notification_id}`));
    await remove();
    await restore();
    expect(await eventsToldTo(ann)).toEqual([]);
    expect((await listOf(ann, '?status=archived')).total).toBe(1);
  });

  it('is told again each time, and ends again', async () => {
    await expiring();
    for (let n = 0; n < 2; n++) {
      await remove();
      expect(await unread(ann)).toEqual([]);
      await restore();
      expect(await unread(ann)).toEqual(['secret.expiring']);
    }
  });
});
