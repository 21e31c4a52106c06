import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { type Counts, countsOf, deployable, eventsToldTo, type List, listOf, mute, type Shown } from './told.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;
const NULL = { status: 200, body: null };

/** Bob administers Ann's organization and has three notifications, of two categories. */
async function told(): Promise<{ ann: Person; bob: Person; ids: [string, string, string]; appId: string }> {
  const ann = await register(app, { name: 'ann' });
  const bob = await colleague(app, ann, 'admin');
  const { release, deploy, appId } = await deployable(ann);
  await deploy(ann, await release('1.0.0'));
  const ids = (await listOf(bob)).notifications.map(({ notification_id }) => notification_id);
  expect(ids).toHaveLength(3);
  return { ann, bob, ids: ids as [string, string, string], appId };
}

const eventsFor = async (id: string) =>
  (
    await app.database.pool.query<{ type: string; to: string; data: object; org: string }>(
      'select type, recipient_id as to, org_id as org, data from events where resource_id = $1 order by seq',
      [id],
    )
  ).rows;

describe('notifications over REST', () => {
  it('have all fields of the spec, newest first, and are not about what one did oneself', async () => {
    const { ann, bob } = await told();
    const { notifications, ...page } = await listOf(bob);
    expect(page).toEqual({ total: 3, has_more: false, next_cursor: null, unread_count: 3 });
    expect(notifications.map(({ source_event }) => source_event)).toEqual([
      'deployment.created',
      'workspace_member.created',
      'organization_member.created',
    ]);
    expect(notifications[1]).toEqual({
      notification_id: expect.stringMatching(/^ntf_[0-9A-HJKMNP-TV-Z]{26}$/) as string,
      scope: 'workspace',
      scope_id: ann.workspaceId,
      recipient_id: bob.userId,
      type: 'info',
      priority: 'normal',
      category: 'member',
      title: `You were added to the workspace 'Default workspace' of '${ann.username}'s organization'`,
      message:
        `${ann.username} added you to the workspace 'Default workspace' of '${ann.username}'s organization'. ` +
        'You may leave at any time.',
      action_url: expect.stringMatching(
        new RegExp(`^http://[^/]+/account/sign-in\\?notification=${notifications[1]!.notification_id}$`),
      ) as string,
      action_label: 'Open workspace',
      status: 'unread',
      source_service: 'workspaces',
      source_event: 'workspace_member.created',
      metadata: { resource_type: 'workspace_member', resource_id: bob.userId, role: 'admin' },
      read_at: null,
      created_at: TIME,
      expires_at: TIME,
    });
    const { created_at, expires_at } = notifications[0]!;
    expect(Date.parse(expires_at as string) - Date.parse(created_at as string)).toBe(90 * 86_400_000);
    expect(await listOf(ann)).toEqual({
      notifications: [],
      total: 0,
      has_more: false,
      next_cursor: null,
      unread_count: 0,
    });
  });

  it('come in pages, and by status and category', async () => {
    const { bob, ids } = await told();
    const first = await listOf(bob, '?limit=2');
    expect(first).toMatchObject({ total: 3, has_more: true, unread_count: 3 });
    const second = await listOf(bob, `?limit=2&cursor=${first.next_cursor}`);
    expect([...first.notifications, ...second.notifications].map((n) => n.notification_id)).toEqual(ids);
    expect(await listOf(bob, '?category=member')).toMatchObject({ total: 2, unread_count: 3 });
    await bob.call('POST', `/v1/notifications/${ids[0]}/read`);
    await bob.call('DELETE', `/v1/notifications/${ids[1]}`);
    const at = async (query: string) => (await listOf(bob, query)).notifications.map((n) => n.notification_id);
    expect(await at('?status=read')).toEqual([ids[0]]);
    expect(await at('?status=archived')).toEqual([ids[1]]);
    expect(await at('?status=unread')).toEqual([ids[2]]);
    expect(await at('')).toEqual([ids[0], ids[2]]);
    expect(await countsOf(bob)).toEqual({ unread_count: 1, by_category: { member: 1 } });
  });

  it.each([
    ['status=new', 'status', 'literal_error'],
    ['limit=101', 'limit', 'less_than_equal'],
    ['limit=0', 'limit', 'greater_than_equal'],
    ['category=No%20word', 'category', 'string_pattern_mismatch'],
    ['cursor=abc', 'cursor', 'value_error'],
  ])('refuse %s with its place', async (query, name, type) => {
    const ann = await register(app);
    const { status, body } = await ann.call<{ detail: object[] }>('GET', `/v1/notifications?${query}`);
    expect([status, body.detail]).toMatchObject([422, [{ loc: ['query', name], type }]]);
  });

  it('are read once, archived for good, and the archive keeps what is read in it', async () => {
    const { ann, bob, ids } = await told();
    const read = await bob.call<Shown>('POST', `/v1/notifications/${ids[0]}/read`);
    expect(read).toMatchObject({ status: 200, body: { notification_id: ids[0], status: 'read', read_at: TIME } });
    expect(await bob.call('POST', `/v1/notifications/${ids[0]}/read`)).toEqual(read);
    expect(await bob.call('DELETE', `/v1/notifications/${ids[1]}`)).toEqual(NULL);
    expect(await bob.call('DELETE', `/v1/notifications/${ids[1]}`)).toEqual(NULL);
    expect(await bob.call('POST', `/v1/notifications/${ids[1]}/read`)).toMatchObject({
      body: { status: 'archived', read_at: TIME },
    });
    const own = { to: bob.userId, org: ann.orgId };
    expect(await eventsFor(ids[0])).toEqual([
      { ...own, type: 'notification.created', data: { category: 'deployment', type: 'success', priority: 'normal' } },
      { ...own, type: 'notification.read', data: { status: 'read' } },
    ]);
    expect((await eventsFor(ids[1])).map(({ type, data }) => [type, data])).toEqual([
      ['notification.created', { category: 'member', type: 'info', priority: 'normal' }],
      ['notification.updated', { status: 'archived' }],
      ['notification.updated', { status: 'archived' }],
    ]);
  });

  it('are all read at once, except archived ones, with one event for each place', async () => {
    const { ann, bob, ids } = await told();
    await bob.call('DELETE', `/v1/notifications/${ids[0]}`);
    const since = (await app.database.pool.query<{ seq: string }>('select max(seq)::text as seq from events')).rows[0]!;
    expect(await bob.call('POST', '/v1/notifications/read-all')).toEqual(NULL);
    expect(await countsOf(bob)).toEqual({ unread_count: 0, by_category: {} });
    const { notifications } = await listOf(bob);
    expect(notifications.map((n) => [n.notification_id, n.status, n.read_at])).toEqual([
      [ids[1], 'read', TIME],
      [ids[2], 'read', TIME],
    ]);
    expect((await listOf(bob, '?status=archived')).notifications).toMatchObject([
      { status: 'archived', read_at: null },
    ]);
    const { rows } = await app.database.pool.query(
      `select type, workspace_id, resource_id, data from events
       where seq > $1 and recipient_id = $2 order by resource_id desc`,
      [since.seq, bob.userId],
    );
    const data = { status: 'read', count: 1 };
    expect(rows).toEqual([
      { type: 'notification.read', workspace_id: ann.workspaceId, resource_id: ids[1], data },
      { type: 'notification.read', workspace_id: null, resource_id: ids[2], data },
    ]);
    expect(await bob.call('POST', '/v1/notifications/read-all')).toEqual(NULL);
  });

  it('of others are hidden: the same answer as for a missing one', async () => {
    const { ann, bob, ids } = await told();
    for (const [method, path] of [
      ['POST', '/read'],
      ['DELETE', ''],
    ] as const) {
      const there = await ann.call<{ details: object }>(method, `/v1/notifications/${ids[0]}${path}`);
      const missing = await ann.call<{ details: object }>(method, `/v1/notifications/ntf_x${path}`);
      expect([there.status, there.body.details]).toEqual([404, { resource_type: 'notification', resource_id: ids[0] }]);
      expect(missing.status).toBe(404);
      expect((await ann.call(method, `/v1/notifications/%00${path}`)).status).toBe(422);
    }
    const query = 'query ($id: ID!) { node(id: $id) { id } notification(id: $id) { title } }';
    expect(await ann.ask(query, { id: ids[0] })).toMatchObject({
      data: null,
      errors: [{ path: ['notification'], extensions: { code: 'RESOURCE_NOT_FOUND' } }],
    });
    expect((await ann.ask('query ($id: ID!) { node(id: $id) { id } }', { id: ids[0] })).data).toEqual({ node: null });
    expect((await bob.ask(query, { id: ids[0] })).data).toMatchObject({ node: { id: ids[0] } });
    expect((await listOf(bob)).unread_count).toBe(3);
  });

  it('are gone when their time is over, from lists, counts and by id, and then removed', async () => {
    const { bob, ids } = await told();
    await app.database.pool.query(`update notifications set expires_at = now() where id = $1`, [ids[0]]);
    expect(await listOf(bob)).toMatchObject({ total: 2, unread_count: 2 });
    expect(await countsOf(bob)).toEqual({ unread_count: 2, by_category: { member: 2 } });
    expect((await bob.call('POST', `/v1/notifications/${ids[0]}/read`)).status).toBe(404);
    for (const rule of app.services.notifications.retention) await app.database.pool.query(rule);
    const { rows } = await app.database.pool.query('select id from notifications where recipient_id = $1', [
      bob.userId,
    ]);
    expect(rows.map(({ id }: { id: string }) => id).sort()).toEqual([...ids].slice(1).sort());
  });
});

describe('over GraphQL', () => {
  it('they can be marked unread and taken out of the archive', async () => {
    const { ann, bob, ids } = await told();
    const move = async (name: string, id: string) =>
      (
        await bob.ask<{ [field: string]: { status: string; readAt: string | null } }>(
          `mutation ($id: ID!) { ${name}(id: $id) { status readAt } }`,
          { id },
        )
      ).data[name];
    expect(await move('markNotificationRead', ids[0])).toEqual({ status: 'read', readAt: TIME });
    expect(await move('archiveNotification', ids[0])).toEqual({ status: 'archived', readAt: TIME });
    expect(await move('unarchiveNotification', ids[0])).toEqual({ status: 'read', readAt: TIME });
    expect(await move('unarchiveNotification', ids[0])).toEqual({ status: 'read', readAt: TIME });
    expect(await move('markNotificationUnread', ids[0])).toEqual({ status: 'unread', readAt: null });
    expect(await move('archiveNotification', ids[0])).toEqual({ status: 'archived', readAt: null });
    expect(await move('markNotificationUnread', ids[0])).toEqual({ status: 'archived', readAt: null });
    expect(await move('unarchiveNotification', ids[0])).toEqual({ status: 'unread', readAt: null });
    const mail = await bob.ask(
      '{ notifications(first: 1) { unreadCount nodes { id organization { id } ' +
        'workspace { id } recipient { username } } } unreadNotifications { unreadCount byCategory } }',
    );
    expect(mail).toEqual({
      data: {
        notifications: {
          unreadCount: 3,
          nodes: [
            {
              id: ids[0],
              organization: { id: ann.orgId },
              workspace: { id: ann.workspaceId },
              recipient: { username: bob.username },
            },
          ],
        },
        unreadNotifications: { unreadCount: 3, byCategory: { deployment: 1, member: 2 } },
      },
    });
  });
});

describe('preferences', () => {
  const available = [
    'workspace',
    'member',
    'deployment',
    'artifact',
    'connection',
    'secret',
    'model',
    'token',
    'system',
  ];

  it('mute what is new, and nothing that was told before', async () => {
    const { ann, bob } = await told();
    const url = '/v1/notifications/preferences';
    expect((await bob.call('GET', url)).body).toEqual({ muted_categories: [], available_categories: available });
    const muted = { status: 200, body: { muted_categories: ['member', 'token'], available_categories: available } };
    expect(await mute(bob, ['token', 'member', 'token'])).toEqual(muted);
    expect(await bob.call('GET', url)).toEqual(muted);
    expect((await listOf(bob)).unread_count).toBe(3);
    const role = (to: string) => ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${bob.userId}`, { role: to });
    expect((await role('editor')).status).toBe(200);
    expect((await listOf(bob)).unread_count).toBe(3);
    await mute(bob, []);
    expect((await role('admin')).status).toBe(200);
    expect(await eventsToldTo(bob)).toEqual([
      'organization_member.updated',
      'deployment.created',
      'workspace_member.created',
      'organization_member.created',
    ]);
  });

  it.each([
    [{ muted_categories: ['member', 'weather'] }, ['body', 'muted_categories', 1], 'literal_error'],
    [{ muted_categories: ['security'] }, ['body', 'muted_categories', 0], 'literal_error'],
    [{ muted_categories: 'member' }, ['body', 'muted_categories'], 'list_type'],
    [{ muted_categories: [7] }, ['body', 'muted_categories', 0], 'string_type'],
    [{}, ['body', 'muted_categories'], 'missing'],
  ])('refuse %j', async (body, loc, type) => {
    const ann = await register(app);
    const answer = await ann.call<{ detail: object[] }>('PUT', '/v1/notifications/preferences', body);
    expect([answer.status, answer.body.detail]).toMatchObject([422, [{ loc, type }]]);
  });
});

describe('an API token', () => {
  it('sees those of its owner in its own organization, and in the places that it is restricted to', async () => {
    const { ann, bob, ids, appId } = await told();
    const elsewhere = await register(app, { name: 'elsewhere' });
    const members = `/v1/orgs/${elsewhere.orgId}/members`;
    expect((await elsewhere.call('POST', members, { user_id: bob.userId, role: 'viewer' })).status).toBe(201);
    expect((await listOf(bob)).total).toBe(4);
    const seenBy = async (restriction: object) => {
      const { headers } = await issueToken(app, { ...bob, orgId: ann.orgId }, { ...restriction });
      const get = async <T>(url: string) => {
        const answer = await app.server.inject({ method: 'GET', url, headers });
        expect(answer.statusCode, answer.body).toBe(200);
        return answer.json<T>();
      };
      const { notifications, total, unread_count } = await get<List>('/v1/notifications');
      const counts = await get<Counts>('/v1/notifications/unread-count');
      expect([total, unread_count, counts.unread_count]).toEqual(Array(3).fill(notifications.length));
      return notifications.map(({ notification_id }) => notification_id);
    };
    expect(await seenBy({})).toEqual(ids);
    expect(await seenBy({ workspace_ids: [ann.workspaceId] })).toEqual(ids);
    expect(await seenBy({ permissions: ['notification:read'] })).toEqual(ids);
    expect(await seenBy({ app_id: appId })).toEqual(ids);
    const other = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'Other' });
    expect(await seenBy({ app_id: other.body.app_id })).toEqual(ids.slice(1));
    const second = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
      organization_id: ann.orgId,
      name: 'Second',
    });
    expect(await seenBy({ workspace_ids: [second.body.workspace_id] })).toEqual(ids.slice(2));
  });

  it('needs the permission, reads all it sees, and mutes nothing', async () => {
    const { ann, bob, ids } = await told();
    const status = async (permissions: string[], method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) => {
      const { headers } = await issueToken(app, { ...bob, orgId: ann.orgId }, { permissions });
      const answer = await app.server.inject({
        method,
        url: `/v1/notifications${url}`,
        headers,
        ...(payload && { payload }),
      });
      return [answer.statusCode, answer.json<{ details?: { required_permission?: string } } | null>()?.details];
    };
    const refused = (required_permission: string) => [403, { required_permission }];
    expect(await status(['app:read'], 'GET', '')).toEqual(refused('notification:read'));
    expect(await status(['notification:read'], 'POST', `/${ids[0]}/read`)).toEqual(refused('notification:update'));
    expect(await status(['notification:update'], 'POST', `/${ids[0]}/read`)).toEqual([200, undefined]);
    expect(await status(['notification:update'], 'POST', '/read-all')).toEqual([200, undefined]);
    expect(await status(['notification:*'], 'PUT', '/preferences', { muted_categories: [] })).toEqual(
      refused('notification:update'),
    );
    expect((await countsOf(bob)).unread_count).toBe(0);
  });
});
