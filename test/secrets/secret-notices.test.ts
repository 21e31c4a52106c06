import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { colleague, eventsOf, person } from '../support/person.ts';
import { newSecret, VALUE } from './new-secret.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** As if it were made so many days earlier. */
const age = (id: string, days: number) =>
  app.database.pool.query(
    `update secrets set created_at = created_at - $2 * interval '1 day', last_rotated_at = last_rotated_at - $2 * interval '1 day' where id = $1`,
    [id, days],
  );

/** Sends what is due; the mails of that, as who gets what. */
async function sent(): Promise<string[]> {
  const before = app.mails.length;
  await app.services.secretNotices.send();
  await app.services.background.drain();
  return app.mails.slice(before).map(({ to, subject }) => `${to}: ${subject}`);
}

const PAST = '2020-01-01T00:00:00Z';

test('tells once that a secret has expired or is due for rotation: an event and a mail to its maker', async () => {
  const ann = await person(app, 'ann');
  const editor = await colleague(app, ann, 'editor');
  const [due, expired, fine] = [
    await newSecret({ ...editor, orgId: ann.orgId }, { rotation_reminder_days: 30 }),
    await newSecret({ ...editor, orgId: ann.orgId }, { expires_at: PAST }),
    await newSecret(ann, { rotation_reminder_days: 30, expires_at: '2099-01-01T00:00:00Z' }),
  ];
  await age(due.secret_id, 31);
  await age(fine.secret_id, 29);
  expect((await sent()).sort()).toEqual([
    `${editor.email}: A secret has expired`,
    `${editor.email}: A secret is due for rotation`,
  ]);
  expect(await sent()).toEqual([]);
  expect(await eventsOf(app, due.secret_id)).toEqual(['secret.created', 'secret.rotation_due']);
  expect(await eventsOf(app, expired.secret_id)).toEqual(['secret.created', 'secret.expired']);
  expect(await eventsOf(app, fine.secret_id)).toEqual(['secret.created']);
  expect(app.mails.map(({ text }) => text).join()).not.toContain(VALUE.password);
});

test('rotating starts the count again, and another date of expiry is told of anew', async () => {
  const ann = await person(app, 'ann');
  const { url, secret_id } = await newSecret(ann, { rotation_reminder_days: 10, expires_at: PAST });
  await age(secret_id, 11);
  expect(await sent()).toHaveLength(2);
  expect((await ann.call('GET', url)).body).toMatchObject({ needs_rotation: true, is_expired: true });
  const rotated = await ann.call('POST', `${url}/rotate`, { value: VALUE });
  expect(rotated.body).toMatchObject({ needs_rotation: false, is_expired: true });
  expect(await sent()).toEqual([]);
  await age(secret_id, 11);
  expect(await sent()).toEqual([`${ann.email}: A secret is due for rotation`]);
  await ann.call('PATCH', url, { expires_at: '2021-01-01T00:00:00Z' });
  expect(await sent()).toEqual([`${ann.email}: A secret has expired`]);
});

test('the owners are told where the maker has left, or cannot see the workspace any more', async () => {
  const ann = await person(app, 'ann');
  const editor = await colleague(app, ann, 'editor');
  await newSecret({ ...editor, orgId: ann.orgId }, { expires_at: PAST, workspace_id: ann.workspaceId });
  await ann.call('DELETE', `${ann.home}/members/${editor.userId}`);
  expect(await sent()).toEqual([`${ann.email}: A secret has expired`]);
  await newSecret({ ...editor, orgId: ann.orgId }, { expires_at: PAST });
  await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${editor.userId}`);
  expect(await sent()).toEqual([`${ann.email}: A secret has expired`]);
});

test('the owners are told where the maker may not read the secret any more', async () => {
  const ann = await person(app, 'ann');
  const editor = { ...(await colleague(app, ann, 'editor')), orgId: ann.orgId };
  await newSecret(editor, { expires_at: PAST });
  await newSecret(editor, { expires_at: PAST, workspace_id: ann.workspaceId });
  const { prisma } = app.database;
  const [role, { userId }] = ['viewer', editor];
  await prisma.organizationMember.updateMany({ where: { orgId: ann.orgId, userId }, data: { role } });
  // still an editor of the workspace
  expect((await sent()).sort()).toEqual([ann.email, editor.email].map((to) => `${to}: A secret has expired`).sort());
  await prisma.workspaceMember.updateMany({ where: { userId }, data: { role } });
  await prisma.secret.updateMany({ where: { createdBy: userId }, data: { expiryNoticedAt: null } });
  expect(await sent()).toEqual(Array(2).fill(`${ann.email}: A secret has expired`));
});

test('the same date, or the same number of days, is no news', async () => {
  const ann = await person(app, 'ann');
  const { url, secret_id } = await newSecret(ann, { rotation_reminder_days: 10, expires_at: PAST });
  await age(secret_id, 11);
  expect(await sent()).toHaveLength(2);
  await ann.call('PATCH', url, { expires_at: PAST, rotation_reminder_days: 10 });
  expect(await sent()).toEqual([]);
  await ann.call('POST', `${url}/rotate`, { value: VALUE, expires_at: PAST });
  expect(await sent()).toEqual([]);
  await ann.call('POST', `${url}/rotate`, { value: VALUE, expires_at: '2020-01-02T00:00:00Z' });
  expect(await sent()).toEqual([`${ann.email}: A secret has expired`]);
});

test('nobody is told of what is disabled and due, deleted, or in a deleted workspace', async () => {
  const ann = await person(app, 'ann');
  const [disabled, deleted] = [
    await newSecret(ann, { rotation_reminder_days: 1 }),
    await newSecret(ann, { expires_at: PAST }),
  ];
  await ann.call('PATCH', disabled.url, { status: 'disabled' });
  await age(disabled.secret_id, 2);
  await ann.call('DELETE', deleted.url);
  await newSecret(ann, { workspace_id: ann.workspaceId, expires_at: PAST });
  await ann.call('DELETE', ann.home);
  expect(await sent()).toEqual([]);
});

test('several nodes that look at once share the work: each secret is told of once', async () => {
  const ann = await person(app, 'ann');
  for (let i = 0; i < 60; i++) await newSecret(ann, { expires_at: PAST });
  const before = app.mails.length;
  const counts = await Promise.all([1, 2, 3].map(() => app.services.secretNotices.send()));
  await app.services.background.drain();
  expect(counts.reduce((a, b) => a + b)).toBe(60);
  expect(app.mails.length - before).toBe(60);
  const events = await app.database.prisma.event.count({ where: { orgId: ann.orgId, type: 'secret.expired' } });
  expect(events).toBe(60);
});
