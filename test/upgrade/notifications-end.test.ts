import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { deployable, eventsToldTo, listOf } from '../insight/notifications/told.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { issueToken } from '../support/tokens.ts';
import { newSecret } from '../vault/secrets/new-secret.ts';

/*
 * What the migration does to notifications of before (docs/decisions/0042). They are made through the front door and
 * are put as they were, unresolved; then the statements of the migration run over them.
 */

const MIGRATION = 'prisma/migrations/20261125160300_notifications_end/migration.sql';
const updates = readFileSync(MIGRATION, 'utf8')
  .split(/;\s*(?:\n|$)/)
  .map((statement) => statement.replaceAll(/^--.*\n/gm, '').trim())
  .filter((statement) => statement.startsWith('UPDATE'));

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});

/** The version of before resolved none. */
const asBefore = () => app.database.pool.query('update notifications set resolved_at = null');
async function migrate(): Promise<void> {
  await asBefore();
  expect(updates).toHaveLength(2);
  for (const text of updates) await app.database.pool.query(text);
}
const ok = async (answer: Promise<{ status: number; body: object }>) => {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
};

test('what the service would have resolved is resolved, and nothing else', async () => {
  const [bob, eve, admin] = [
    await colleague(app, ann, 'viewer'),
    await colleague(app, ann, 'viewer'),
    await colleague(app, ann, 'admin'),
  ];
  await ok(ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${eve.userId}`, { role: 'member' }));
  await ok(ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${eve.userId}`, { role: 'editor' }));
  const { release, deploy, appId } = await deployable(ann);
  await deploy(ann, await release('1.0.0'));
  const secrets = [await newSecret(ann), await newSecret(ann)];
  const tokens = [await issueToken(app, ann), await issueToken(app, ann)];
  await app.database.pool.query(
    `update secrets set created_at = now() - interval '1 year', expires_at = now() + interval '2 days'
     where org_id = $1`,
    [ann.orgId],
  );
  await app.database.pool.query(
    `update api_tokens set issued_at = now() - interval '1 year', expires_at = now() + interval '2 days'
     where org_id = $1`,
    [ann.orgId],
  );
  await app.services.secretNotices.send();
  await app.services.apiTokenNotices.send();
  await migrate();
  const openOf = async () => Promise.all([ann, bob, eve, admin].map(async (who) => (await eventsToldTo(who)).sort()));
  const member = ['organization_member.created', 'workspace_member.created'];
  expect(await openOf()).toEqual([
    ['api_token.expiring', 'api_token.expiring', 'secret.expiring', 'secret.expiring'],
    member,
    ['organization_member.created', 'organization_member.updated', 'workspace_member.created'],
    ['deployment.created', ...member],
  ]);
  await ok(ann.call('PATCH', secrets[0]!.url, { expires_at: '2999-01-01T00:00:00Z' }));
  await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}/api-tokens/${tokens[0]!.id}`));
  await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${bob.userId}`));
  await ok(ann.call('DELETE', `${ann.home}/members/${eve.userId}`));
  await ok(ann.call('DELETE', `${ann.home}/apps/${appId}`));
  const resolved = await openOf();
  await migrate();
  expect(await openOf()).toEqual(resolved);
  expect(resolved).toEqual([
    ['api_token.expiring', 'secret.expiring'],
    ['organization_member.deleted'],
    ['organization_member.created', 'organization_member.updated', 'workspace_member.deleted'],
    member,
  ]);
  await ok(ann.call('DELETE', ann.home));
  await migrate();
  expect((await openOf())[3]).toEqual(['organization_member.created']);
  await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}`));
  await migrate();
  expect(await openOf()).toEqual([[], [], [], []]);
});

test('of several of one state, the newest is left', async () => {
  const { secret_id } = await newSecret(ann);
  for (const days of [10, 2]) {
    await app.database.pool.query(
      `update secrets set created_at = now() - interval '1 year', expiry_noticed_at = null,
         expires_at = now() + $2 * interval '1 day' where id = $1`,
      [secret_id, days],
    );
    await app.services.secretNotices.send();
  }
  const [newest] = (await listOf(ann)).notifications;
  // the same date, as it was announced twice
  await app.database.pool.query(
    `update notifications set metadata = metadata || jsonb_build_object('expires_at', $2::text)
     where recipient_id = $1`,
    [ann.userId, newest!.metadata!.expires_at],
  );
  await migrate();
  expect((await listOf(ann)).notifications.map(({ notification_id }) => notification_id)).toEqual([
    newest!.notification_id,
  ]);
});
