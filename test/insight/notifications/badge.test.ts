import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { type EventSource, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { countsOf, listOf } from './told.ts';

let app: TestApp;
let other: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  other = await app.another();
  await Promise.all([app.listen(), other.listen()]);
  await register(app);
});
afterAll(() => app.close());

const opened: EventSource[] = [];
afterEach(async () => {
  for (const source of opened.splice(0)) source.close();
  await waitFor(() => expect([app.services.tail.size, other.services.tail.size]).toEqual([0, 0]));
});

type Counts = { unreadCount: number; byCategory: Record<string, number> };
const query = 'subscription { unreadNotifications { unreadCount byCategory } }';

/** The counts that a badge showed, one after the other. */
async function badge(authorization: string, node = app, text = query): Promise<() => Counts[]> {
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream', authorization };
  const source = await openEvents(`${node.url}/graphql`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ query: text }),
  });
  opened.push(source);
  await source.next(({ event }) => event === 'next');
  return () =>
    source.events
      .filter(({ event }) => event === 'next')
      .map(({ data }) => (JSON.parse(data) as { data: { unreadNotifications: Counts } }).data.unreadNotifications);
}
const shows = (counts: () => Counts[], last: Counts) => waitFor(() => expect(counts().at(-1)).toEqual(last));

const ok = async (answer: Promise<{ status: number; body: object }>) => {
  const { status, body } = await answer;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
};
const add = (ann: Person, bob: Person) =>
  ok(ann.call('POST', `/v1/orgs/${ann.orgId}/members`, { user_id: bob.userId, role: 'viewer' }));

it('shows the unread at once and after each change, in all organizations, on all nodes; of nobody else', async () => {
  const [ann, bob, eve] = [await register(app), await register(app), await register(app)];
  const token = await issueToken(app, bob);
  const here = await badge(bob.headers.authorization);
  const there = await badge(bob.headers.authorization, other);
  const hers = await badge(eve.headers.authorization);
  const program = await badge(token.headers.authorization);
  const number = await badge(bob.headers.authorization, other, 'subscription { unreadNotifications { unreadCount } }');
  await add(ann, bob);
  const one = { unreadCount: 1, byCategory: { member: 1 } };
  await Promise.all([shows(here, one), shows(there, one)]);
  expect(await countsOf(bob)).toEqual({ unread_count: 1, by_category: { member: 1 } });
  // who was removed from an organization is told of that, and not any more that they were added
  await ok(ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${bob.userId}`, { role: 'editor' }));
  await shows(here, { unreadCount: 2, byCategory: { member: 2 } });
  await ok(ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${bob.userId}`));
  await shows(here, one);
  await ok(ann.call('POST', `/v1/orgs/${ann.orgId}/members`, { user_id: bob.userId, role: 'viewer' }));
  await ok(ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${bob.userId}`, { role: 'editor' }));
  await shows(here, { unreadCount: 2, byCategory: { member: 2 } });
  const [newest] = (await listOf(bob)).notifications;
  await ok(bob.call('POST', `/v1/notifications/${newest!.notification_id}/read`));
  await Promise.all([shows(here, one), shows(there, one)]);
  await ok(bob.call('POST', '/v1/notifications/read-all'));
  const none = { unreadCount: 0, byCategory: {} };
  await Promise.all([shows(here, none), shows(there, none)]);
  // the token is of another organization, and somebody else is not concerned
  const own = await colleague(app, bob, 'admin');
  await ok(own.call('DELETE', `/v1/orgs/${bob.orgId}/api-tokens/admin/${(await issueToken(app, bob)).id}`));
  await Promise.all([here, program].map((counts) => shows(counts, { unreadCount: 1, byCategory: { token: 1 } })));
  expect(program()).toHaveLength(2);
  expect(hers()).toEqual([none]);
  // the number alone stays while one takes the place of another
  await waitFor(() => expect(number().at(-1)).toEqual({ unreadCount: 1 }));
  const numbers = number().map(({ unreadCount }) => unreadCount);
  expect(numbers.filter((count, at) => count === numbers[at - 1])).toEqual([]);
});

it('each change is sent with its notification and the number of the unread, once', async () => {
  const [ann, bob] = [await register(app), await register(app)];
  await add(ann, bob);
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream', ...bob.headers };
  const query = 'subscription { notificationChanged { change count unreadCount notification { id title } } }';
  const source = await openEvents(`${other.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  opened.push(source);
  await source.next(({ event }) => event === 'next');
  const changes = () =>
    source.events
      .filter(({ event }) => event === 'next')
      .map(({ data }) => (JSON.parse(data) as { data: { notificationChanged: object } }).data.notificationChanged);
  const member = `/v1/orgs/${ann.orgId}/members/${bob.userId}`;
  for (const role of ['editor', 'member']) await ok(ann.call('PATCH', member, { role }));
  await ok(bob.call('POST', '/v1/notifications/read-all'));
  await ok(ann.call('DELETE', member));
  const where = `the organization '${ann.username}'s organization'`;
  const [first, second, third] = (
    await bob.ask<{ notifications: { nodes: { id: string; title: string }[] } }>(
      '{ notifications(isResolved: true) { nodes { id title } } }',
    )
  ).data.notifications.nodes;
  const { data } = await bob.ask<{ notifications: { nodes: object[] } }>('{ notifications { nodes { id title } } }');
  expect([first, second, third].map((n) => n!.title)).toEqual([
    ...[1, 2].map(() => `Your role in ${where} changed`),
    `You were added to ${where}`,
  ]);
  const change = (name: string | null, count: number, unreadCount: number, notification: unknown) => ({
    change: name,
    count,
    unreadCount,
    notification,
  });
  await waitFor(() => expect(changes()).toHaveLength(7));
  const seen = changes();
  expect(seen[0]).toEqual(change(null, 0, 1, null));
  expect(seen[1]).toEqual(change('created', 1, expect.any(Number) as number, second));
  expect(seen.slice(2, 4)).toEqual([
    change('resolved', 1, expect.any(Number) as number, second),
    change('created', 1, expect.any(Number) as number, first),
  ]);
  expect(seen[4]).toMatchObject({ change: 'read', count: 2, notification: first });
  expect(seen.slice(5)).toEqual([
    change('resolved', 2, 1, first),
    change('created', 1, 1, data.notifications.nodes[0]),
  ]);
});

it('is refused to a token that may not read notifications, and ends with the session', async () => {
  const ann = await register(app);
  const { headers } = await issueToken(app, ann, { permissions: ['sync:subscribe'] });
  const refused = await openEvents(`${app.url}/graphql`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query }),
  });
  await refused.ended;
  expect(refused.events[0]!.data).toContain('notification:read');
  await badge(ann.headers.authorization);
  const [source] = opened;
  await ok(ann.call('POST', '/v1/auth/logout'));
  await source!.ended;
  expect(source!.events.map(({ event }) => event)).toEqual(['next', 'complete']);
});

it('what is about an account itself is an event of the organization that its user works in', async () => {
  const [ann, bob] = [await register(app), await register(app)];
  await add(ann, bob);
  await ok(bob.call('POST', '/v1/notifications/read-all'));
  const { data } = await bob.ask<{ switchOrganization: { accessToken: string } }>(
    `mutation { switchOrganization(input: { orgId: "${ann.orgId}" }) { accessToken } }`,
  );
  const authorization = `Bearer ${data.switchOrganization.accessToken}`;
  const counts = await badge(authorization);
  const payload = { currentPassword: bob.password, newPassword: 'another long password' };
  const { body } = await app.server.inject({
    method: 'POST',
    url: '/graphql',
    headers: { authorization },
    payload: {
      query: 'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      variables: { input: payload },
    },
  });
  expect(body).not.toContain('errors');
  await shows(counts, { unreadCount: 1, byCategory: { security: 1 } });
  await app.server.inject({ method: 'POST', url: '/v1/notifications/read-all', headers: { authorization } });
  await shows(counts, { unreadCount: 0, byCategory: {} });
  const { rows } = await app.database.pool.query(
    `select type, org_id from events where recipient_id = $1 and workspace_id is null order by xid desc, seq desc
     limit 2`,
    [bob.userId],
  );
  expect(rows).toEqual([
    { type: 'notification.read', org_id: ann.orgId },
    { type: 'notification.created', org_id: ann.orgId },
  ]);
});
