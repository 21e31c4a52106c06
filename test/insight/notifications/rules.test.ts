import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { rules } from '../../../src/insight/notifications/rules.ts';
import type { Role } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import {
  addToWorkspace,
  colleague,
  createUser,
  type Person,
  prove,
  register,
  registerProven,
  signIn,
} from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { issueToken } from '../../support/tokens.ts';
import { newSecret, VALUE } from '../../vault/secrets/new-secret.ts';
import { deployable, eventsToldTo, listOf, mute, type Shown } from './told.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});

/** Every source event that a test has seen. */
const seen = new Set<string>();

/** What is new to somebody, newest first. */
async function news(who: Person): Promise<Shown[]> {
  const { notifications } = await listOf(who, '?status=unread&limit=100');
  await who.call('POST', '/v1/notifications/read-all');
  for (const { source_event } of notifications) seen.add(source_event);
  return notifications;
}

/** The same, the parts that a rule decides. */
const said = async (who: Person) =>
  (await news(who)).map((n) => [n.source_event, n.category, n.type, n.priority, n.scope, n.title]);

const ok = async (answer: Promise<{ status: number; body: object }>) => {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
};
const inOrg = () => `the organization '${ann.username}'s organization'`;
const inWs = () => `the workspace 'Default workspace' of '${ann.username}'s organization'`;
const mailsTo = async (who: Person) => {
  await app.jobsDone();
  return app.mails.filter(({ to }) => to === who.email);
};

describe('members', () => {
  it('are told when they are added, get another role, and are removed', async () => {
    const bob = await register(app, { name: 'bob' });
    const members = `/v1/orgs/${ann.orgId}/members`;
    const base = ['member', 'info', 'normal', 'organization'];
    await ok(ann.call('POST', members, { user_id: bob.userId, role: 'viewer' }));
    expect(await said(bob)).toEqual([['organization_member.created', ...base, `You were added to ${inOrg()}`]]);
    await ok(ann.call('PATCH', `${members}/${bob.userId}`, { role: 'editor' }));
    const [changed] = await news(bob);
    expect(changed).toMatchObject({
      title: `Your role in ${inOrg()} changed`,
      message: `${ann.username} changed your role in ${inOrg()} from viewer to editor.`,
      metadata: { role: 'editor', previous_role: 'viewer', resource_id: bob.userId },
    });
    await addToWorkspace(app, ann, bob.userId, 'viewer');
    const url = `${ann.home}/members/${bob.userId}`;
    await ok(ann.call('PATCH', url, { role: 'member' }));
    const there = ['member', 'info', 'normal', 'workspace'];
    expect(await said(bob)).toEqual([
      ['workspace_member.updated', ...there, `Your role in ${inWs()} changed`],
      ['workspace_member.created', ...there, `You were added to ${inWs()}`],
    ]);
    await ok(ann.call('DELETE', url));
    expect(await said(bob)).toEqual([
      ['workspace_member.deleted', 'member', 'warning', 'normal', 'workspace', `You were removed from ${inWs()}`],
    ]);
    await addToWorkspace(app, ann, bob.userId);
    await news(bob);
    // who leaves the organization leaves its workspaces: that is told once
    await ok(ann.call('DELETE', `${members}/${bob.userId}`));
    expect(await said(bob)).toEqual([
      [
        'organization_member.deleted',
        'member',
        'warning',
        'normal',
        'organization',
        `You were removed from ${inOrg()}`,
      ],
    ]);
    expect(await news(ann)).toEqual([]);
  });

  it('who leave by themselves are told nothing, nor is an account that is suspended', async () => {
    const bob = await colleague(app, ann, 'viewer');
    await news(bob);
    await ok(bob.call('DELETE', `${ann.home}/members/${bob.userId}`));
    expect(await news(bob)).toEqual([]);
    const eve = await createUser(app, ann, { name: 'eve' });
    await news(eve);
    await ok(ann.call('PUT', `/v1/users/${eve.userId}`, { is_active: false }));
    await addToWorkspace(app, ann, eve.userId).catch(() => null);
    await ok(ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${eve.userId}`, { role: 'viewer' }));
    expect(await app.database.prisma.notification.count({ where: { recipientId: eve.userId, status: 'unread' } })).toBe(
      0,
    );
  });

  it('who invited somebody are told that they came', async () => {
    const bob = await register(app, { name: 'bob' });
    const host = await colleague(app, ann, 'admin');
    await prove(app, [host]);
    await news(ann);
    await ok(host.call('POST', `/v1/orgs/${ann.orgId}/invitations`, { email: bob.email, role: 'viewer' }));
    const mail = (await mailsTo(bob)).at(-1)!;
    const token = new URL(mail.link!).searchParams.get('token');
    const accepted = await bob.ask('mutation ($token: String!) { acceptInvitation(input: { token: $token }) { id } }', {
      token,
    });
    expect(accepted.errors).toBeUndefined();
    expect(await news(bob)).toEqual([]);
    expect((await news(host)).slice(0, 1)).toMatchObject([
      {
        source_event: 'invitation.accepted',
        category: 'member',
        type: 'success',
        message: `${bob.username} accepted your invitation to ${inOrg()}.`,
      },
    ]);
  });
});

test('deployments and rollbacks are told to whoever administers the workspace, except who made them', async () => {
  const people = {} as Record<Role, Person>;
  for (const role of ['admin', 'editor', 'viewer'] as const) people[role] = await colleague(app, ann, role);
  const chief = await registerProven(app, { name: 'chief' });
  await addToWorkspace(app, ann, chief.userId, 'admin');
  for (const who of [...Object.values(people), chief]) await news(who);
  const { release, deploy, appId, environmentId } = await deployable(ann, 'Shop\u202e\n"<b>');
  const [one, two] = [await release('1.0.0'), await release('2.0.0')];
  for (const id of [one, two, one]) await deploy(people.editor, id);
  for (const who of [people.admin, chief, ann]) {
    const [back, second, first] = await news(who);
    expect([first!.title, second!.title, back!.title]).toEqual([
      `Deployed: 'Shop "<b>' 1.0.0 in 'Production'`,
      `Deployed: 'Shop "<b>' 2.0.0 in 'Production'`,
      `Rolled back: 'Shop "<b>' 1.0.0 in 'Production'`,
    ]);
    expect(back).toMatchObject({
      category: 'deployment',
      type: 'warning',
      priority: 'high',
      source_event: 'deployment.rolled_back',
      message: `${people.editor.username} rolled back to 'Shop "<b>' 1.0.0 in 'Production', in ${inWs()}.`,
      metadata: { app_id: appId, environment_id: environmentId, action: 'rollback' },
      action_label: 'Open deployments',
    });
    seen.add(first!.source_event);
  }
  for (const who of [people.editor, people.viewer]) expect(await news(who)).toEqual([]);
});

describe('secrets', () => {
  it('that expire, and are due for rotation, are told to who made them, by mail too', async () => {
    const editor = await colleague(app, ann, 'editor');
    await news(editor);
    const maker = { ...editor, orgId: ann.orgId };
    const { secret_id } = await newSecret(maker, { name: 'ledger key', rotation_reminder_days: 10 });
    const expires = async (left: string) => {
      await app.database.pool.query(
        `update secrets set created_at = now() - interval '1 year', last_rotated_at = null, expiry_noticed_at = null,
           expires_at = now() + $2::interval - interval '1 s' where id = $1`,
        [secret_id, left],
      );
      await app.services.secretNotices.send();
    };
    await expires('14 days');
    const told = await news(editor);
    expect(told.map(({ source_event }) => source_event).sort()).toEqual(['secret.expiring', 'secret.rotation_due']);
    const expiring = told.find(({ source_event }) => source_event === 'secret.expiring')!;
    expect(expiring).toMatchObject({
      category: 'secret',
      type: 'warning',
      priority: 'normal',
      scope: 'organization',
      source_service: 'secrets',
      action_label: 'Open secret',
      metadata: { resource_type: 'secret', resource_id: secret_id, days_left: 14 },
    });
    expect(expiring.message).toContain(`The secret 'ledger key' (${secret_id}) expires on `);
    expect(expiring.expires_at).toBe(expiring.metadata!.expires_at);
    expect(JSON.stringify(told)).not.toContain(VALUE.password);
    await expires('-1 minute');
    expect((await news(editor)).map((n) => [n.title, n.type, n.priority])).toEqual([
      ['A secret has expired', 'error', 'high'],
    ]);
    const mails = await mailsTo(editor);
    expect(mails.map(({ subject }) => subject.replace(/\d{4}-.*/, '…')).sort()).toEqual([
      'A secret expires on …',
      'A secret has expired',
      'A secret is due for rotation',
      'Confirm your e-mail address',
    ]);
    expect(mails.find(({ subject }) => subject.includes('has expired'))!.text).toContain(
      `The secret 'ledger key' (${secret_id}) has expired`,
    );
  });

  it('are told neither here nor by mail to who muted them; the expiry is an event all the same', async () => {
    await mute(ann, ['secret']);
    const { secret_id } = await newSecret(ann, { expires_at: '2020-01-01T00:00:00Z' });
    await app.services.secretNotices.send();
    expect(await news(ann)).toEqual([]);
    expect((await mailsTo(ann)).map(({ subject }) => subject)).toEqual(['Confirm your e-mail address']);
    expect(await app.database.prisma.event.count({ where: { resourceId: secret_id, type: 'secret.expiring' } })).toBe(
      1,
    );
  });
});

describe('tokens', () => {
  it.each(['api_token', 'app_token'] as const)('%s: their expiry is told to who made them', async (kind) => {
    const restriction = kind === 'app_token' ? { app_id: (await deployable(ann)).appId } : {};
    const { id, token } = await issueToken(app, ann, { name: 'nightly', ...restriction });
    await app.database.pool.query(
      `update api_tokens set issued_at = now() - interval '1 year', expires_at = now() + interval '2 days'
       where id = $1`,
      [id],
    );
    await app.services.apiTokenNotices.send();
    expect((await listOf(ann)).notifications.map(({ title, type }) => [title, type])).toEqual([
      ['A token expires in 3 days', 'warning'],
    ]);
    await app.database.pool.query(`update api_tokens set expires_at = now() where id = $1`, [id]);
    await app.services.apiTokenNotices.send();
    const told = await listOf(ann);
    await news(ann);
    expect(told.notifications.map((n) => [n.source_event, n.category, n.title, n.type])).toEqual([
      [`${kind}.expiring`, 'token', 'A token has expired', 'error'],
    ]);
    expect(told.notifications[0]!.message).toBe(
      `The token 'nightly' (${token.prefix}…) has expired. It can be refreshed for 30 days.`,
    );
  });

  it.each(['api_token', 'app_token'] as const)('%s: who made one is told that somebody revoked it', async (kind) => {
    const { appId } = await deployable(ann);
    const bob = await colleague(app, ann, 'admin');
    await news(bob);
    const restriction = kind === 'app_token' ? { app_id: appId } : {};
    const { id } = await issueToken(app, { ...bob, orgId: ann.orgId }, { name: 'nightly', ...restriction });
    const own = await issueToken(app, { ...bob, orgId: ann.orgId }, restriction);
    const path = kind === 'app_token' ? `apps/${appId}/tokens` : 'api-tokens';
    const byOther = kind === 'app_token' ? path : 'api-tokens/admin';
    await ok(bob.call('DELETE', `/v1/orgs/${ann.orgId}/${path}/${own.id}`));
    await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}/${byOther}/${id}`));
    expect(await news(bob)).toMatchObject([
      {
        source_event: `${kind}.revoked`,
        category: 'token',
        type: 'warning',
        priority: 'high',
        title: 'An administrator revoked a token of yours',
        metadata: { resource_id: id },
      },
    ]);
  });
});

test.each([
  ['provider_account.degraded', 'FAILURE', 'A provider account is degraded'],
  ['provider_account.updated', 'AUTH_FAILURE', 'A provider account is unavailable'],
] as const)('administrators are told of %s', async (type, outcome, title) => {
  const admin = await colleague(app, ann, 'admin');
  const editor = await colleague(app, ann, 'editor');
  for (const who of [admin, editor]) await news(who);
  const account = await ann.call<{ provider_account_id: string }>('POST', `/v1/orgs/${ann.orgId}/provider-accounts`, {
    name: 'EU',
    provider_type: 'openai',
    credentials_ref: 'env:KEY',
  });
  const { provider_account_id } = account.body;
  await app.database.prisma.providerAccount.update({
    where: { id: provider_account_id },
    data: { status: outcome === 'FAILURE' ? 'active' : 'pending' },
  });
  await ok(
    ann.call('POST', `/v1/orgs/${ann.orgId}/model-catalog`, {
      logical_model_id: 'chat',
      name: 'Chat',
      targets: [{ provider_account_id, model_name: 'm' }],
    }),
  );
  await ok(ann.call('POST', `${ann.home}/model-entitlements`, { logical_model_id: 'chat' }));
  for (let n = 0; n < 3; n++) {
    const { errors } = await ann.ask(
      `mutation { reportModelUsage(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", logicalModelId: "chat",
        input: { providerAccountId: "${provider_account_id}", modelName: "m", outcome: ${outcome} }) {
          requestCount } }`,
    );
    expect(errors).toBeUndefined();
  }
  // who reported it is told nothing
  for (const who of [ann, editor]) expect(await news(who)).toEqual([]);
  const model = { source_event: 'model.updated', title: 'A model is unavailable', metadata: { resource_id: 'chat' } };
  expect(await news(admin)).toMatchObject([
    { source_event: type, category: 'model', priority: 'high', title, metadata: { resource_id: provider_account_id } },
    // it has no other target
    ...(outcome === 'FAILURE' ? [{ ...model, category: 'model', type: 'error', priority: 'high' }] : []),
  ]);
});

describe('what is about the account itself', () => {
  const api = () => callsOf(app);

  it('is told in any case: a password that was changed or reset, and the tokens that remain', async () => {
    await mute(ann, [
      'workspace',
      'member',
      'deployment',
      'artifact',
      'connection',
      'secret',
      'model',
      'token',
      'system',
    ]);
    await issueToken(app, ann, { name: 'nightly' });
    const password = 'another long password';
    const changed = await ann.ask(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      {
        input: { currentPassword: ann.password, newPassword: password },
      },
    );
    expect(changed.errors).toBeUndefined();
    expect(await news(ann)).toMatchObject([
      {
        source_event: 'user.password_changed',
        category: 'security',
        type: 'warning',
        priority: 'high',
        scope: 'user',
        scope_id: ann.userId,
        source_service: 'auth',
        metadata: { tokens: ['nightly'], tokens_total: 1 },
      },
    ]);
    await api().post('/v1/auth/forgot-password', { email: ann.email });
    const link = (await mailsTo(ann)).findLast(({ subject }) => subject === 'Reset your password')!.link!;
    const token = new URL(link).searchParams.get('token');
    expect((await api().post('/v1/auth/reset-password', { token, new_password: ann.password })).statusCode).toBe(200);
    const again = await signIn(app, ann);
    const [reset] = await news(again);
    expect(reset).toMatchObject({ source_event: 'user.password_reset', category: 'security' });
    expect(reset!.metadata).toMatchObject({ tokens: [], tokens_total: 0 });
    // no token sees what is about the account
    const { headers } = await issueToken(app, again);
    const seenByToken = await app.server.inject({ method: 'GET', url: '/v1/notifications', headers });
    expect(seenByToken.json()).toMatchObject({ total: 0 });
  });

  it('and another address, and a refresh token that was used twice', async () => {
    const email = `new-${ann.email}`;
    await ok(ann.call('PUT', `/v1/users/${ann.userId}`, { email, current_password: ann.password }));
    await app.jobsDone();
    const link = app.mails.findLast(({ to }) => to === email)!.link!;
    const token = new URL(link).searchParams.get('token');
    expect((await api().post('/v1/auth/verify-email', { token })).statusCode).toBe(200);
    expect(await news(ann)).toMatchObject([
      { source_event: 'user.email_changed', category: 'security', message: expect.stringContaining(email) as string },
    ]);
    const other = await signIn(app, ann);
    const refresh = () => api().post('/v1/auth/refresh', { refresh_token: other.refreshToken });
    expect((await refresh()).statusCode).toBe(200);
    await app.database.pool.query(
      `update refresh_tokens set replaced_at = now() - interval '2 minutes' where replaced_at is not null`,
    );
    for (let n = 0; n < 2; n++) expect((await refresh()).statusCode).toBe(401);
    expect(await news(ann)).toMatchObject([
      { source_event: 'session.refresh_token_reused', category: 'security', priority: 'urgent', scope: 'user' },
    ]);
  });

  it.each(['api_token', 'app_token'] as const)('and the refresh token of an %s', async (kind) => {
    const restriction = kind === 'app_token' ? { app_id: (await deployable(ann)).appId } : {};
    const { refresh_token_plaintext } = await issueToken(app, ann, { name: 'nightly', ...restriction });
    const refresh = () =>
      api().post(`/v1/orgs/${ann.orgId}/api-tokens/refresh`, { refresh_token: refresh_token_plaintext });
    expect((await refresh()).statusCode).toBe(200);
    await app.database.pool.query(
      `update api_tokens set rotated_at = rotated_at - interval '2 minutes' where created_by_user_id = $1`,
      [ann.userId],
    );
    expect((await refresh()).statusCode).toBe(401);
    expect((await eventsToldTo(ann))[0]).toBe(`${kind}.refresh_token_reused`);
    await news(ann);
  });
});

describe('the statement', () => {
  it('is one for each change that concerns somebody, one for what it may end, and none for others', async () => {
    const log = logQueries(app.database.pool);
    const about = async (work: () => Promise<unknown>) =>
      (await log.by(work)).filter((text) => /notification/.test(text)).length;
    const { release, deploy } = await deployable(ann);
    const id = await release('1.0.0');
    expect(await about(() => deploy(ann, id))).toBe(1);
    for (let n = 0; n < 3; n++) await colleague(app, ann, 'admin');
    expect(await about(() => deploy(ann, id))).toBe(1);
    expect(await about(() => ann.call('PUT', ann.home, { name: 'Another' }))).toBe(0);
    const bob = await register(app);
    // in the organization and in a workspace: what ends, such as that somebody was removed there, and what is new
    expect(await about(() => colleague(app, bob, 'viewer'))).toBe(4);
    expect(await about(() => register(app))).toBe(0);
  });

  it('takes what happened back with the change', async () => {
    const bob = await register(app, { name: 'bob' });
    const url = `${ann.home}/members`;
    const both = await Promise.all([1, 2, 3].map(() => ann.call('POST', url, { user_id: bob.userId })));
    expect(both.map(({ status }) => String(status)).sort()).toEqual(['201', '409', '409']);
    expect(await eventsToldTo(bob)).toEqual(['workspace_member.created', 'organization_member.created']);
  });
});

/** What other tests cause: of connections, identity providers and their metadata, webhooks, audit streams, factors. */
const elsewhere = [
  'user.arrived',
  'connection.needs_reauth',
  'webhook.disabled',
  'audit_stream.disabled',
  'organization.glass_broken',
  'organization.factor_required',
  'identity_provider.certificate_ending',
  'identity_provider.metadata_changed',
  'user.identity_linked',
  'user.factors_changed',
  'user.address_lost',
];

test('every rule was caused by a test', () => {
  expect([...rules.keys()].filter((type) => !seen.has(type))).toEqual(elsewhere);
});
