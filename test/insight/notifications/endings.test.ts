import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { addToWorkspace, colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { newSecret } from '../../vault/secrets/new-secret.ts';
import { countsOf, deployable, eventsToldTo, listOf } from './told.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});

const ok = async (answer: Promise<{ status: number; body: object }>) => {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
};

/** What still counts as unread, newest first: the badge says the same. */
async function open(who: Person): Promise<string[]> {
  const { notifications, total } = await listOf(who, '?status=unread&limit=100');
  expect((await countsOf(who)).unread_count).toBe(total);
  return notifications.map(({ source_event }) => source_event!);
}

/** The events that told somebody of what ended. */
const endedFor = async (who: Person) =>
  (
    await app.database.prisma.event.findMany({
      where: { recipientId: who.userId, type: 'notification.resolved' },
      orderBy: { seq: 'asc' },
    })
  ).map(({ orgId, workspaceId, data }) => [orgId, workspaceId, data]);

describe('who was added', () => {
  it('to an organization and left it, is not told of it any more; who removed them is what remains', async () => {
    const bob = await colleague(app, ann, 'viewer');
    expect(await open(bob)).toEqual(['workspace_member.created', 'organization_member.created']);
    const member = `/v1/orgs/${ann.orgId}/members/${bob.userId}`;
    await ok(ann.call('DELETE', member));
    expect(await open(bob)).toEqual(['organization_member.deleted']);
    expect(await endedFor(bob)).toEqual([
      [ann.orgId, null, { count: 1 }],
      [ann.orgId, ann.workspaceId, { count: 1 }],
    ]);
    // until they are there again
    await ok(ann.call('POST', `/v1/orgs/${ann.orgId}/members`, { user_id: bob.userId, role: 'viewer' }));
    expect(await open(bob)).toEqual(['organization_member.created']);
    await ok(bob.call('DELETE', member));
    expect(await open(bob)).toEqual([]);
    expect((await listOf(bob)).total).toBe(0);
  });

  it('to a workspace, until they were removed from it or it was deleted', async () => {
    const bob = await colleague(app, ann, 'viewer');
    await bob.call('POST', '/v1/notifications/read-all');
    await ok(ann.call('DELETE', `${ann.home}/members/${bob.userId}`));
    expect(await eventsToldTo(bob)).toEqual(['workspace_member.deleted', 'organization_member.created']);
    await addToWorkspace(app, ann, bob.userId, 'editor');
    expect(await eventsToldTo(bob)).toEqual(['workspace_member.created', 'organization_member.created']);
    await ok(ann.call('DELETE', ann.home));
    expect(await eventsToldTo(bob)).toEqual(['organization_member.created']);
    await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}`));
    expect(await eventsToldTo(bob)).toEqual([]);
  });

  it('a role is told of until it is another one, and only there', async () => {
    const bob = await colleague(app, ann, 'viewer');
    for (const role of ['member', 'editor']) await ok(ann.call('PATCH', `${ann.home}/members/${bob.userId}`, { role }));
    await ok(ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${bob.userId}`, { role: 'member' }));
    const told = await listOf(bob, '?status=unread');
    expect(told.notifications.map(({ source_event, metadata }) => [source_event, metadata!.role])).toEqual([
      ['organization_member.updated', 'member'],
      ['workspace_member.updated', 'editor'],
      ['workspace_member.created', 'viewer'],
      ['organization_member.created', 'viewer'],
    ]);
  });
});

describe('a secret', () => {
  const due = async () => {
    const secret = await newSecret(ann, { rotation_reminder_days: 10 });
    await app.database.pool.query(
      `update secrets set created_at = now() - interval '1 year', expires_at = now() + interval '2 days' where id = $1`,
      [secret.secret_id],
    );
    await app.services.secretNotices.send();
    expect((await open(ann)).sort()).toEqual(['secret.expiring', 'secret.rotation_due']);
    return secret;
  };

  it('that was rotated is not due any more, and with a new date it does not expire', async () => {
    const { url } = await due();
    await ok(ann.call('POST', `${url}/rotate`, { value: { password: 'new' } }));
    expect(await open(ann)).toEqual(['secret.expiring']);
    await ok(ann.call('PATCH', url, { description: 'The same date.' }));
    expect(await open(ann)).toEqual(['secret.expiring']);
    await ok(ann.call('PATCH', url, { expires_at: '2999-01-01T00:00:00Z' }));
    expect(await open(ann)).toEqual([]);
    expect(await endedFor(ann)).toEqual([
      [ann.orgId, null, { count: 1 }],
      [ann.orgId, null, { count: 1 }],
    ]);
  });

  it('that was deleted is told of no more', async () => {
    const { url } = await due();
    await ok(ann.call('DELETE', url));
    expect(await open(ann)).toEqual([]);
    expect(await endedFor(ann)).toEqual([[ann.orgId, null, { count: 2 }]]);
  });
});

describe.each(['api_token', 'app_token'] as const)('an %s that expires', (kind) => {
  const expiring = async () => {
    const restriction = kind === 'app_token' ? { app_id: (await deployable(ann)).appId } : {};
    const issued = await issueToken(app, ann, restriction);
    await app.database.pool.query(
      `update api_tokens set issued_at = now() - interval '1 year', expires_at = now() + interval '2 days'
       where id = $1`,
      [issued.id],
    );
    await app.services.apiTokenNotices.send();
    expect(await open(ann)).toEqual([`${kind}.expiring`]);
    return { ...issued, appId: restriction.app_id };
  };

  it('is told of until it is refreshed', async () => {
    const { refresh_token_plaintext } = await expiring();
    const url = `/v1/orgs/${ann.orgId}/api-tokens/refresh`;
    expect((await callsOf(app).post(url, { refresh_token: refresh_token_plaintext })).statusCode).toBe(200);
    expect(await open(ann)).toEqual([]);
  });

  it('is told of until it is revoked', async () => {
    const { id, appId } = await expiring();
    const path = appId ? `apps/${appId}/tokens` : 'api-tokens';
    await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}/${path}/${id}`));
    expect(await open(ann)).toEqual([]);
  });
});

test.each(['FAILURE', 'AUTH_FAILURE'])('a provider account is told of until it works again: %s', async (outcome) => {
  const admin = await colleague(app, ann, 'admin');
  await admin.call('POST', '/v1/notifications/read-all');
  const accounts = `/v1/orgs/${ann.orgId}/provider-accounts`;
  const made = await ann.call<{ provider_account_id: string }>('POST', accounts, {
    name: 'EU',
    provider_type: 'openai',
    credentials_ref: 'env:KEY',
  });
  const { provider_account_id: id } = made.body;
  await app.database.prisma.providerAccount.update({ where: { id }, data: { status: 'active' } });
  const catalog = `/v1/orgs/${ann.orgId}/model-catalog`;
  const targets = [{ provider_account_id: id, model_name: 'm' }];
  await ok(ann.call('POST', catalog, { logical_model_id: 'chat', name: 'Chat', targets }));
  await ok(ann.call('POST', `${ann.home}/model-entitlements`, { logical_model_id: 'chat' }));
  const report = async (result: string) => {
    const { errors } = await ann.ask(
      `mutation { reportModelUsage(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", logicalModelId: "chat",
        input: { providerAccountId: "${id}", modelName: "m", outcome: ${result} }) { requestCount } }`,
    );
    expect(errors).toBeUndefined();
  };
  for (let n = 0; n < 3; n++) await report(outcome);
  const ofAccount = outcome === 'FAILURE' ? 'provider_account.degraded' : 'provider_account.updated';
  expect((await open(admin)).sort()).toEqual(['model.updated', ofAccount].sort());
  if (outcome === 'FAILURE') for (let n = 0; n < 3; n++) await report('SUCCESS');
  else {
    await ok(ann.call('PATCH', `${accounts}/${id}`, { credentials_ref: 'env:OTHER' }));
    expect(await open(admin)).toEqual(['model.updated']);
    await ok(ann.call('DELETE', `${catalog}/chat`));
  }
  expect(await open(admin)).toEqual([]);
});

test.each(['app', 'environment', 'workspace'] as const)(
  'what was deployed is told of until the %s is gone',
  async (kind) => {
    const admin = await colleague(app, ann, 'admin');
    await admin.call('POST', '/v1/notifications/read-all');
    const { release, deploy, appId, environmentId } = await deployable(ann);
    await deploy(ann, await release('1.0.0'));
    await deploy(ann, await release('2.0.0'));
    expect(await open(admin)).toEqual(['deployment.created', 'deployment.created']);
    const path = { app: `/apps/${appId}`, environment: `/environments/${environmentId}`, workspace: '' }[kind];
    await ok(ann.call('DELETE', `${ann.home}${path}`));
    expect(await open(admin)).toEqual([]);
  },
);

describe('what ended', () => {
  const ended = async () => {
    const bob = await colleague(app, ann, 'viewer');
    const id = (await listOf(bob)).notifications[0]!.notification_id!;
    await ok(ann.call('DELETE', `${ann.home}/members/${bob.userId}`));
    return { bob, id };
  };
  const one = `query ($id: ID!) { notification(id: $id) { status resolvedAt } }`;

  it('is found by its id and in a list of its own, and its status is left', async () => {
    const { bob, id } = await ended();
    const { data } = await bob.ask<{ notification: object }>(one, { id });
    expect(data.notification).toEqual({ status: 'unread', resolvedAt: expect.any(String) as string });
    const lists = await bob.ask<Record<string, { nodes: { id: string; sourceEvent: string }[] }>>(`{
      ended: notifications(isResolved: true) { nodes { id sourceEvent } }
      open: notifications(isResolved: false) { nodes { id sourceEvent } }
    }`);
    expect(lists.data.ended!.nodes).toEqual([{ id, sourceEvent: 'workspace_member.created' }]);
    expect(lists.data.open!.nodes.map(({ sourceEvent }) => sourceEvent)).toEqual([
      'workspace_member.deleted',
      'organization_member.created',
    ]);
    expect((await bob.ask(`mutation { markAllNotificationsRead { count } }`)).data).toEqual({
      markAllNotificationsRead: { count: 2 },
    });
    expect((await bob.ask<{ notification: object }>(one, { id })).data.notification).toMatchObject({
      status: 'unread',
    });
  });

  it('stays in the archive, if somebody put it there', async () => {
    const { bob, id } = await ended();
    await ok(bob.call('DELETE', `/v1/notifications/${id}`));
    expect((await listOf(bob, '?status=archived')).notifications.map((n) => n.notification_id)).toEqual([id]);
    expect((await listOf(bob)).total).toBe(2);
  });

  it('is taken back with the change that ended it', async () => {
    const bob = await colleague(app, ann, 'viewer');
    const member = `/v1/orgs/${ann.orgId}/members/${ann.userId}`;
    // the last owner must stay
    expect((await ann.call('DELETE', member)).status).toBe(409);
    expect(await open(bob)).toEqual(['workspace_member.created', 'organization_member.created']);
  });

  it('is never a warning about the security of an account', async () => {
    const { refresh_token_plaintext } = await issueToken(app, ann);
    const url = `/v1/orgs/${ann.orgId}/api-tokens/refresh`;
    const refresh = () => callsOf(app).post(url, { refresh_token: refresh_token_plaintext });
    await refresh();
    await app.database.pool.query(
      `update api_tokens set rotated_at = rotated_at - interval '2 minutes' where created_by_user_id = $1`,
      [ann.userId],
    );
    expect((await refresh()).statusCode).toBe(401);
    await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}`));
    expect(await open(ann)).toEqual(['api_token.refresh_token_reused']);
  });
});
