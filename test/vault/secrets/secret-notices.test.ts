import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, eventsOf, register } from '../../support/person.ts';
import { newSecret, VALUE } from './new-secret.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** As if it were made so many days earlier. */
const age = (id: string, days: number) =>
  app.database.pool.query(
    `update secrets set created_at = created_at - $2 * interval '1 day',
       last_rotated_at = last_rotated_at - $2 * interval '1 day' where id = $1`,
    [id, days],
  );

let seen = 0;
beforeEach(async () => {
  await app.jobsDone();
  seen = app.mails.length;
});

/**
 * Sends what is due; the mails about secrets since the last call, as who gets what, in whatever order they left. The
 * service does so by itself once a minute, too: what it has sent a moment before counts as well.
 */
async function sent(): Promise<string[]> {
  await app.jobsDone();
  await app.services.secretNotices.send();
  await app.jobsDone();
  const mails = app.mails.slice(seen);
  seen = app.mails.length;
  return mails
    .filter(({ subject }) => /\bsecret\b/i.test(subject))
    .map(({ to, subject }) => `${to}: ${subject}`)
    .sort();
}

const PAST = '2020-01-01T00:00:00Z';

test('announces an expiry by mail and event and a due rotation by mail, each once, to the creator', async () => {
  const ann = await register(app, { name: 'ann' });
  const editor = await colleague(app, ann, 'editor');
  const [due, expired, fine] = [
    await newSecret({ ...editor, orgId: ann.orgId }, { rotation_reminder_days: 30 }),
    await newSecret({ ...editor, orgId: ann.orgId }, { expires_at: PAST }),
    await newSecret(ann, { rotation_reminder_days: 30, expires_at: '2099-01-01T00:00:00Z' }),
  ];
  await age(due.secret_id, 31);
  await age(fine.secret_id, 29);
  expect(await sent()).toEqual([
    `${editor.email}: A secret has expired`,
    `${editor.email}: A secret is due for rotation`,
  ]);
  expect(await sent()).toEqual([]);
  expect(await eventsOf(app, due.secret_id)).toEqual(['secret.created']);
  expect(await eventsOf(app, expired.secret_id)).toEqual(['secret.created', 'secret.expiring']);
  expect(await eventsOf(app, fine.secret_id)).toEqual(['secret.created']);
  expect(app.mails.map(({ text }) => text).join()).not.toContain(VALUE.password);
});

/** As if time had gone on until a secret that was made long ago has so much left, less a second. */
const leave = (id: string, left: string) =>
  app.database.pool.query(
    `update secrets s set created_at = now() - interval '1 year', expires_at = n.end,
       expiry_noticed_at = s.expiry_noticed_at + (n.end - s.expires_at)
     from (select now() + $2::interval - interval '1 s' as end) n where s.id = $1`,
    [id, left],
  );

/** The `secret.expiring` events of a secret, in order. */
const expiring = async (id: string) =>
  (
    await app.database.pool.query<{ days: number; at: string; by: string }>(
      `select data->'days_left' as days, data->>'expires_at' as at, actor->>'principal_type' as by from events
       where resource_id = $1 and type = 'secret.expiring' order by seq`,
      [id],
    )
  ).rows;

test('tells of an expiry 14 days and 3 days before, and when it has come: once each', async () => {
  const ann = await register(app, { name: 'ann' });
  const { secret_id: id } = await newSecret(ann, { name: 'ledger key', expires_at: '2099-01-01T00:00:00Z' });
  const texts: string[] = [];
  for (const [left, days] of [
    ['15 days', null],
    ['14 days', 14],
    ['13 days', null],
    ['3 days', 3],
    ['1 day', null],
    ['-1 minute', 0],
    ['-30 days', null],
  ] as const) {
    await leave(id, left);
    if (days === null) {
      expect([left, await sent()]).toEqual([left, []]);
      continue;
    }
    const secret = await app.database.prisma.secret.findUniqueOrThrow({ where: { id } });
    const day = secret.expiresAt!.toISOString().slice(0, 10);
    const subject = days === 0 ? 'A secret has expired' : `A secret expires on ${day}`;
    expect([left, await sent()]).toEqual([left, [`${ann.email}: ${subject}`]]);
    texts.push(app.mails.at(-1)!.text);
    expect((await expiring(id)).at(-1)).toEqual({ days, at: secret.expiresAt!.toISOString(), by: 'system' });
    expect(await sent()).toEqual([]);
  }
  expect((await expiring(id)).map(({ days }) => days)).toEqual([14, 3, 0]);
  for (const text of texts) expect(text).toContain(`'ledger key' (${id})`);
});

test('sends only the most urgent of several reached steps, and none from before the secret was created', async () => {
  const ann = await register(app, { name: 'ann' });
  const old = await newSecret(ann);
  await leave(old.secret_id, '2 days');
  const made = await newSecret(ann, { expires_at: new Date(Date.now() + 2 * 86_400_000) });
  await sent();
  expect((await expiring(old.secret_id)).map(({ days }) => days)).toEqual([3]);
  expect(await expiring(made.secret_id)).toEqual([]);
});

test('two nodes that look at once, and one that starts anew, tell of each step once', async () => {
  const ann = await register(app, { name: 'ann' });
  const there = await startTestApp({ env: { DATA_DIR: app.dataDir }, databaseUrl: app.database.url });
  try {
    const ids: string[] = [];
    for (let i = 0; i < 8; i++) ids.push((await newSecret(ann)).secret_id);
    for (const id of ids) await leave(id, '3 days');
    const counts = await Promise.all([app, there, app, there].map((node) => node.services.secretNotices.send()));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(8);
    for (const id of ids) expect((await expiring(id)).map(({ days }) => days)).toEqual([3]);
  } finally {
    await there.close();
  }
  const again = await startTestApp({ env: { DATA_DIR: app.dataDir }, databaseUrl: app.database.url });
  try {
    expect(await again.services.secretNotices.send()).toBe(0);
  } finally {
    await again.close();
  }
});

test('rotating starts the count again, and another date of expiry is told of anew', async () => {
  const ann = await register(app, { name: 'ann' });
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
  const ann = await register(app, { name: 'ann' });
  const editor = await colleague(app, ann, 'editor');
  await newSecret({ ...editor, orgId: ann.orgId }, { expires_at: PAST, workspace_id: ann.workspaceId });
  await ann.call('DELETE', `${ann.home}/members/${editor.userId}`);
  expect(await sent()).toEqual([`${ann.email}: A secret has expired`]);
  await newSecret({ ...editor, orgId: ann.orgId }, { expires_at: PAST });
  await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${editor.userId}`);
  expect(await sent()).toEqual([`${ann.email}: A secret has expired`]);
});

test('the owners are told where the maker may not read the secret any more', async () => {
  const ann = await register(app, { name: 'ann' });
  const editor = { ...(await colleague(app, ann, 'editor')), orgId: ann.orgId };
  await newSecret(editor, { expires_at: PAST });
  await newSecret(editor, { expires_at: PAST, workspace_id: ann.workspaceId });
  const { prisma } = app.database;
  const [role, { userId }] = ['viewer', editor];
  await prisma.organizationMember.updateMany({ where: { orgId: ann.orgId, userId }, data: { role } });
  // still an editor of the workspace
  expect(await sent()).toEqual([ann.email, editor.email].map((to) => `${to}: A secret has expired`).sort());
  await prisma.workspaceMember.updateMany({ where: { userId }, data: { role } });
  await prisma.secret.updateMany({ where: { createdBy: userId }, data: { expiryNoticedAt: null } });
  expect(await sent()).toEqual(Array(2).fill(`${ann.email}: A secret has expired`));
});

test('the same date, or the same number of days, is no news', async () => {
  const ann = await register(app, { name: 'ann' });
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
  const ann = await register(app, { name: 'ann' });
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
  const ann = await register(app, { name: 'ann' });
  for (let i = 0; i < 60; i++) await newSecret(ann, { expires_at: PAST });
  await app.jobsDone();
  const before = app.mails.length;
  const counts = await Promise.all([1, 2, 3].map(() => app.services.secretNotices.send()));
  await app.jobsDone();
  expect(counts.reduce((a, b) => a + b)).toBe(60);
  expect(app.mails.length - before).toBe(60);
  const events = await app.database.prisma.event.count({ where: { orgId: ann.orgId, type: 'secret.expiring' } });
  expect(events).toBe(60);
});
