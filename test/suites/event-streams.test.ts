import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startTestApp, type TestApp } from '../support/app.ts';
import { stopAges } from '../support/passing-time.ts';
import { register, signIn } from '../support/person.ts';
import { logQueries } from '../support/query-log.ts';
import { expectOk } from '../support/requests.ts';
import { type EventSource, openAcknowledged, openEvents, openSocket, type RawSocket } from '../support/sockets.ts';
import { issueToken } from '../support/tokens.ts';
import { waitFor } from '../support/wait.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let own: World;
let foreign: World;
let url: string;
beforeAll(async () => {
  app = await startTestApp();
  own = await createWorld(app, { withResources: false });
  foreign = await createWorld(app, { withResources: false });
  url = await app.listen();
});
afterAll(() => app.close());

type Streamed = Pick<World, 'ids'>;
const subscription = ({ ids }: Streamed) =>
  `subscription { workspaceEvents(orgId: "${ids.org_id}", workspaceId: "${ids.workspace_id}") {
    id type workspaceId resourceId data } }`;
const openSse = (world: Streamed, authorization: string): Promise<EventSource> =>
  openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization },
    body: JSON.stringify({ query: subscription(world) }),
  });

/** Makes an event: a change of the workspace. */
const change = (world: World) =>
  expectOk(app, {
    method: 'PUT',
    url: `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}`,
    headers: world.as('owner'),
    payload: { description: `${world.marker} ${world.next()}` },
  });

const isEvent = ({ data }: { data: string }) => data.includes('workspace.updated');
/** What a stream said, as types; its end as the reason. */
const said = (payloads: readonly unknown[]): string[] =>
  payloads.map((payload) => {
    const { workspaceEvents } = (payload as { data: { workspaceEvents: { type: string; data: { reason?: string } } } })
      .data;
    return workspaceEvents.data.reason ?? workspaceEvents.type;
  });
const saidBySse = ({ events }: EventSource): string[] =>
  said(events.filter(({ event }) => event === 'next').map(({ data }) => JSON.parse(data) as unknown));
const saidByWs = ({ messages }: RawSocket): string[] =>
  said(messages.filter(({ type }) => type === 'next').map(({ payload }) => payload));
/**
 * Streams of tokens. @returns for each a function that revokes its token and waits for its end: the service has looked
 * once at all streams since it was called, and a second one makes that look a whole one
 */
const streamsOfTokens = (count: number): Promise<(() => Promise<void>)[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const maker = { orgId: own.ids.org_id!, headers: own.as('owner') };
      const token = await issueToken(app, maker);
      const stream = await openSse(own, token.headers.authorization);
      return async () => {
        await app.database.pool.query('update api_tokens set revoked_at = now() where id = $1', [token.id]);
        await stream.ended;
      };
    }),
  );
/** The stream is in place: the tail knows of it. */
const open = (streams: number) => waitFor(() => expect(app.services.tail.size).toBe(streams));

async function addMember(world: World, userId: string): Promise<void> {
  await expectOk(app, {
    method: 'POST',
    url: `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/members`,
    headers: world.as('owner'),
    payload: { user_id: userId },
  });
}

describe('an event arrives', () => {
  test('over WebSocket, by the client of graphql-ws', async () => {
    const client = createClient({
      url: `${url.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: own.as('viewer'),
      retryAttempts: 0,
    });
    const events = client.iterate({ query: subscription(own) });
    const first = events.next();
    await open(1);
    await change(own);
    expect((await first).value).toMatchObject({
      data: { workspaceEvents: { type: 'workspace.updated', workspaceId: own.ids.workspace_id } },
    });
    await events.return?.();
    await client.dispose();
    await open(0);
  });

  test('over SSE', async () => {
    const stream = await openSse(own, own.as('viewer').authorization);
    await open(1);
    await change(own);
    expect(JSON.parse((await stream.next(isEvent)).data)).toMatchObject({
      data: { workspaceEvents: { type: 'workspace.updated', resourceId: own.ids.workspace_id } },
    });
    stream.close();
    await open(0);
  });
});

describe("a stranger's stream never starts", () => {
  test('over WebSocket: the socket is closed with 4403', async () => {
    const socket = await openSocket(url);
    socket.send({ type: 'connection_init', payload: {} });
    expect(await socket.closed()).toBe(4403);
  });

  test('over SSE: one error, and the end', async () => {
    const answer = await app.server.inject({
      method: 'POST',
      url: '/graphql',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      payload: { query: subscription(own) },
    });
    expect(answer.body).toContain('AUTHENTICATION_FAILED');
    expect(app.services.tail.size).toBe(0);
  });

  test('of another tenant, or of no workspace: refused, and no queue is made', async () => {
    const socket = await openAcknowledged(url, own.as('owner').authorization);
    for (const [id, query] of [
      ['foreign', subscription(foreign)],
      ['mixed', subscription({ ...foreign, ids: { ...foreign.ids, org_id: own.ids.org_id! } })],
      ['none', subscription({ ...own, ids: { org_id: own.ids.org_id!, workspace_id: 'ws_none' } })],
    ] as const) {
      socket.send({ id, type: 'subscribe', payload: { query } });
      const message = await socket.next((candidate) => candidate.id === id);
      expect(JSON.stringify(message.payload)).toMatch(/FORBIDDEN|RESOURCE_NOT_FOUND/);
    }
    expect(app.services.tail.size).toBe(0);
    socket.close();
  });
});

test("another tenant's event never arrives", async () => {
  const stream = await openSse(own, own.as('owner').authorization);
  const socket = await openAcknowledged(url, own.as('owner').authorization);
  socket.send({ id: '1', type: 'subscribe', payload: { query: subscription(own) } });
  await open(2);
  for (let i = 0; i < 5; i++) await change(foreign);
  await change(own);
  await stream.next(isEvent);
  await socket.next(({ type }) => type === 'next');
  for (const text of [JSON.stringify(stream.events), JSON.stringify(socket.messages)]) {
    expect(text).not.toContain(foreign.ids.workspace_id);
    expect(text).not.toContain(foreign.ids.org_id);
  }
  expect(stream.events.filter(({ event }) => event === 'next')).toHaveLength(1);
  stream.close();
  socket.close();
  await open(0);
});

describe('a stream ends, and says why', () => {
  test('when the membership does, before the next event', async () => {
    const { guest } = own;
    await addMember(own, guest.userId);
    const bearer = `Bearer ${guest.accessToken}`;
    const stream = await openSse(own, bearer);
    const socket = await openAcknowledged(url, bearer);
    socket.send({ id: '1', type: 'subscribe', payload: { query: subscription(own) } });
    await open(2);
    const member = `/v1/orgs/${own.ids.org_id}/workspaces/${own.ids.workspace_id}/members/${guest.userId}`;
    await expectOk(app, { method: 'DELETE', url: member, headers: own.as('owner') });
    await change(own);
    await stream.ended;
    await socket.next(({ type, id }) => type === 'complete' && id === '1');
    expect(saidBySse(stream).at(-1)).toBe('membership_revoked');
    expect(saidByWs(socket).at(-1)).toBe('membership_revoked');
    expect([...saidBySse(stream), ...saidByWs(socket)]).not.toContain('workspace.updated');
    expect(stream.events.at(-1)).toMatchObject({ event: 'complete' });
    await open(0);
    socket.close();
  });

  test('when the session does, also while nothing happens', async () => {
    const { accessToken: token } = await signIn(app, own.accounts.viewer);
    const stream = await openSse(own, `Bearer ${token}`);
    const socket = await openAcknowledged(url, `Bearer ${token}`);
    socket.send({ id: '1', type: 'subscribe', payload: { query: subscription(own) } });
    await open(2);
    await expectOk(app, { method: 'POST', url: '/v1/auth/logout', headers: { authorization: `Bearer ${token}` } });
    await stream.ended;
    await socket.next(({ type, id }) => type === 'complete' && id === '1');
    await open(0);
    expect([saidBySse(stream), saidByWs(socket)]).toEqual([['token_revoked'], ['token_revoked']]);
    // a socket whose session is over starts nothing more
    socket.send({ id: '2', type: 'subscribe', payload: { query: '{ me { id } }' } });
    expect(await socket.closed()).toBe(4403);
    expect(socket.messages.filter(({ id }) => id === '2')).toEqual([]);
  });

  test('when the account is deactivated', async () => {
    const stream = await openSse(own, own.as('member').authorization);
    await open(1);
    await expectOk(app, { method: 'DELETE', url: `/v1/users/${own.accounts.member.userId}`, headers: own.as('owner') });
    await stream.ended;
    await open(0);
    expect(saidBySse(stream).at(-1)).toBe('token_revoked');
  });

  test('when the token is revoked, and when it expires', async () => {
    const account = await register(app);
    const world = { ids: { org_id: account.orgId, workspace_id: account.workspaceId } };
    for (const end of ['revoked_at', 'expires_at']) {
      const token = await issueToken(app, account);
      const stream = await openSse(world, token.headers.authorization);
      await open(1);
      await app.database.pool.query(`update api_tokens set ${end} = now() where id = $1`, [token.id]);
      await stream.ended;
      expect(saidBySse(stream).at(-1)).toBe('token_revoked');
    }
    await open(0);
  });

  test('when the workspace is deleted: that is the last event, even if another transaction delays it', async () => {
    const made = await expectOk<{ workspace_id: string }>(app, {
      method: 'POST',
      url: `/v1/orgs/${own.ids.org_id}/workspaces`,
      headers: own.as('owner'),
      payload: { organization_id: own.ids.org_id, name: 'Short' },
    });
    const short = { ...own, ids: { ...own.ids, workspace_id: made.workspace_id } };
    const stream = await openSse(short, own.as('owner').authorization);
    const socket = await openAcknowledged(url, own.as('owner').authorization);
    socket.send({ id: '1', type: 'subscribe', payload: { query: subscription(short) } });
    await open(2);
    const ending = await streamsOfTokens(2);
    await open(4);
    const held = await app.database.pool.connect();
    await held.query('begin; select pg_current_xact_id()');
    await change(short);
    await expectOk(app, {
      method: 'DELETE',
      url: `/v1/orgs/${own.ids.org_id}/workspaces/${made.workspace_id}`,
      headers: own.as('owner'),
    });
    // a whole look at all streams since then: these two have been looked at, and wait
    for (const end of ending) await end();
    await held.query('rollback');
    held.release();
    await stream.ended;
    await socket.next(({ type, id }) => type === 'complete' && id === '1');
    await open(0);
    const expected = ['workspace.updated', 'workspace.deleted', 'workspace_deleted'];
    expect([saidBySse(stream).slice(-3), saidByWs(socket).slice(-3)]).toEqual([expected, expected]);
    socket.close();
  });
});

test('a stream leaves one record of its start or refusal, over any transport, and none of its events', async () => {
  const records = async () => {
    await app.services.activity.flush();
    const { rows } = await app.database.pool.query(
      `select user_id, org_id, workspace_id, method, path, action, status_code, success, error_code, named from activity
       where resource_type = 'sync' and org_id = any($1) order by timestamp, id`,
      [[own.ids.org_id, foreign.ids.org_id]],
    );
    return rows;
  };
  const before = (await records()).length;
  const { authorization } = own.as('admin');
  const stream = await openSse(own, authorization);
  await open(1);
  const socket = await openAcknowledged(url, authorization);
  socket.send({ id: '1', type: 'subscribe', payload: { query: subscription(own) } });
  await open(2);
  await change(own);
  await stream.next(isEvent);
  await (await openSse(foreign, authorization)).ended;
  stream.close();
  socket.close();
  await open(0);
  const start = {
    user_id: own.accounts.admin.userId,
    org_id: own.ids.org_id,
    workspace_id: own.ids.workspace_id,
    path: '/graphql',
    action: 'read',
    status_code: 200,
    success: true,
    error_code: null,
    named: null,
  };
  // of a stranger, only the organization has a record
  const refusal = {
    org_id: foreign.ids.org_id,
    user_id: null,
    workspace_id: null,
    named: { user_id: start.user_id, workspace_id: foreign.ids.workspace_id },
    method: 'POST',
    status_code: 403,
    success: false,
    error_code: 'FORBIDDEN',
  };
  expect((await records()).slice(before)).toEqual([
    { ...start, method: 'POST' },
    { ...start, method: 'WS' },
    { ...start, ...refusal },
  ]);
});

/** What decides about a stream, read or compared: its session or token, the membership, the workspace. */
const LOOK =
  /^select (?:s\.id as "sessionId"|t\.token_hash|m\.role|\(select m\.role|w\.deleted_at|r\.\* from|k\.id from|k\.at)/;

const ASKED_AGAIN = /^select (?:s\.id as "sessionId"|m\.role|\(select m\.role|w\.deleted_at|r\.\* from)/;

test('many silent streams are looked after in a few statements, not in some for each', async () => {
  // what is known lives hardly longer than a look takes to come
  stopAges();
  const queries = logQueries(app.database.pool);
  const roles = ['owner', 'admin', 'editor', 'viewer'] as const;
  const bearers = roles.map((role) => own.as(role).authorization);
  const streams = await Promise.all([...bearers, ...bearers].map((bearer) => openSse(own, bearer)));
  const ending = await streamsOfTokens(3);
  await open(11);
  const [first, second, third] = ending as [() => Promise<void>, () => Promise<void>, () => Promise<void>];
  // the first looks judge everybody; then the rest of a look and a whole one
  await first();
  await second();
  const statements = await queries.during(third);
  // the service does other things meanwhile, such as looking for secrets that expire each minute: those do not count
  const looked = statements.filter((text) => LOOK.test(text.replaceAll(/\s+/g, ' ')));
  expect(new Set(looked).size, 'sessions, tokens, and what readers may').toBe(3);
  expect(looked.length).toBeLessThanOrEqual(2 * 3);
  // and after that silence an event does not ask about each of its readers again
  const asked = await queries.during(async () => {
    await app.database.pool.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
       values ('evt_' || gen_random_uuid(), $1, $2, 'workspace.updated', '{}', 'workspace', $2, '{}')`,
      [own.ids.org_id, own.ids.workspace_id],
    );
    await waitFor(() => expect(streams.filter(({ events }) => events.some(isEvent))).toHaveLength(8));
  });
  expect(asked.filter((text) => ASKED_AGAIN.test(text.replaceAll(/\s+/g, ' ')))).toEqual([]);
  for (const stream of streams) stream.close();
  await open(0);
});

test('streams that ended leave no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  for (let i = 0; i < 10; i++) {
    const { accessToken: token } = await signIn(app, own.accounts.editor);
    const stream = await openSse(own, `Bearer ${token}`);
    await open(1);
    await expectOk(app, { method: 'POST', url: '/v1/auth/logout', headers: { authorization: `Bearer ${token}` } });
    await change(own);
    await stream.ended;
  }
  await waitFor(() => expect(timers()).toBeLessThanOrEqual(before + 4));
});
