import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cursorOf } from '../../../src/live/events/position.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { hurryTimers } from '../../support/passing-time.ts';
import { signIn } from '../../support/person.ts';
import { expectOk } from '../../support/requests.ts';
import { type EventSource, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { createWorld, type World } from '../../support/world.ts';

let app: TestApp;
let world: World;
let token: string;
let url: string;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app, { withResources: false });
  url = await app.listen();
  // the stream of a token: nobody is present by it
  const maker = { orgId: world.ids.org_id!, headers: world.as('owner') };
  token = (await issueToken(app, maker, { permissions: ['sync:subscribe', 'workspace:read'] })).headers.authorization;
});
afterAll(() => app.close());

const home = ({ ids }: World) => `/v1/orgs/${ids.org_id}/workspaces/${ids.workspace_id}`;
const open = (authorization: string, { after, query = '' }: { after?: string | undefined; query?: string } = {}) =>
  openEvents(`${url}${home(world)}/sync/stream${query}`, {
    headers: { authorization, ...(after === undefined ? {} : { 'last-event-id': after }) },
  });
const streams = (count: number) => waitFor(() => expect(app.services.tail.size).toBe(count));

interface Envelope {
  event_id: string;
  type: string;
  resource_id: string;
  data: Record<string, unknown>;
}
const shown = ({ events }: EventSource) => events.map(({ data }) => JSON.parse(data) as Envelope);
const types = (stream: EventSource) => stream.events.map(({ event }) => event);
const isUpdate = ({ event }: { event: string }) => event === 'workspace.updated';
/** Why it ended. */
const reason = async (stream: EventSource) => {
  await stream.ended;
  return shown(stream).at(-1)!.data.reason;
};

/** Makes an event: a change of the workspace. */
const change = () =>
  expectOk(app, {
    method: 'PUT',
    url: home(world),
    headers: world.as('owner'),
    payload: { description: `${world.marker} ${world.next()}` },
  });

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

describe('the stream of a workspace', () => {
  test('begins with retry and `connected`; each event is one frame with id, type and envelope', async () => {
    const answer = await fetch(`${url}${home(world)}/sync/stream?timeout=60`, { headers: { authorization: token } });
    expect([
      answer.status,
      ...['content-type', 'cache-control', 'x-accel-buffering', 'connection'].map((name) => answer.headers.get(name)),
    ]).toEqual([200, 'text/event-stream; charset=utf-8', 'no-cache, no-transform', 'no', 'close']);
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    const until = async (end: RegExp) => {
      while (!end.test(text)) text += (await reader.read()).value;
    };
    await until(/connected.*\n\n/s);
    expect(text).toMatch(/^retry: 3000\n\nid: [\da-f]{6}-\d+-\d+\nevent: connected\ndata: \{.*\}\n\n$/);
    expect(JSON.parse(/^data: (.*)$/m.exec(text)![1]!)).toEqual({
      event_id: expect.stringMatching(/^evt_/),
      type: 'connected',
      org_id: world.ids.org_id,
      workspace_id: world.ids.workspace_id,
      actor: { principal_type: 'system', principal_id: null, username: null },
      resource_type: 'workspace',
      resource_id: world.ids.workspace_id,
      data: { connection_id: expect.stringMatching(/^stream_/), timeout: 60, presence: [], last_event_id: null },
      timestamp: expect.stringMatching(TIME),
      trace_id: null,
    });
    text = '';
    const { owner } = world.accounts;
    await expectOk(app, {
      method: 'PUT',
      url: home(world),
      headers: { ...world.as('owner'), 'x-trace-id': 'trace-of-the-change' },
      payload: { description: 'changed' },
    });
    await until(/\n\n$/);
    expect(text).toMatch(/^id: [\da-f]{6}-\d+-\d+\nevent: workspace.updated\ndata: \{.*\}\n\n$/);
    expect(JSON.parse(/^data: (.*)$/m.exec(text)![1]!)).toEqual({
      event_id: expect.stringMatching(/^evt_/),
      type: 'workspace.updated',
      org_id: world.ids.org_id,
      workspace_id: world.ids.workspace_id,
      actor: { principal_type: 'user', principal_id: owner.userId, username: owner.username },
      resource_type: 'workspace',
      resource_id: world.ids.workspace_id,
      data: { fields: ['description'] },
      timestamp: expect.stringMatching(TIME),
      trace_id: 'trace-of-the-change',
    });
    await reader.cancel();
    await streams(0);
  });

  test('goes on after the id that the client saw last, with each event once', async () => {
    const first = await open(token);
    await change();
    const seen = await first.next(isUpdate);
    first.close();
    await streams(0);
    await change();
    await change();
    const again = await open(token, { after: seen.id });
    await waitFor(() => expect(again.events).toHaveLength(3));
    await change();
    await waitFor(() => expect(again.events).toHaveLength(4));
    expect(types(again)).toEqual(['connected', ...Array(3).fill('workspace.updated')]);
    expect(shown(again)[0]!.data.last_event_id).toBe(seen.id);
    const ids = [JSON.parse(seen.data) as Envelope, ...shown(again).slice(1)].map((event) => event.event_id);
    expect(new Set(ids).size).toBe(4);
    again.close();
    // from the first frame, too: it says where the stream was
    const whole = await open(token, { after: first.events[0]!.id });
    await waitFor(() =>
      expect(
        shown(whole)
          .slice(1)
          .map((event) => event.event_id),
      ).toEqual(ids),
    );
    whole.close();
    const lost = await open(token, { after: '1-1' });
    await change();
    await lost.next(isUpdate);
    expect(types(lost)).toEqual(['connected', 'resync', 'workspace.updated']);
    expect(shown(lost)[0]!.data.last_event_id).toBe('1-1');
    lost.close();
    await streams(0);
  });

  test('ends at its timeout, with `stream.closing`', async () => {
    const time = hurryTimers();
    const stream = await open(token, { query: '?timeout=61' });
    await streams(1);
    time.pass(60_999);
    await change();
    await stream.next(isUpdate);
    time.pass(1);
    expect(await reason(stream)).toBe('timeout');
    expect(types(stream)).toEqual(['connected', 'workspace.updated', 'stream.closing']);
    await streams(0);
  });

  test('sends over GraphQL `heartbeat` while nothing happens, to those who ask for it', async () => {
    const time = hurryTimers();
    const { org_id, workspace_id } = world.ids;
    const follow = async (args: string) => {
      const stream = await openEvents(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization: token },
        body: JSON.stringify({
          query: `subscription { workspaceEvents(orgId: "${org_id}", workspaceId: "${workspace_id}"${args}) {
            type cursor data } }`,
        }),
      });
      return stream;
    };
    const [beating, silent] = [await follow(', heartbeat: true, types: ["workspace.*"]'), await follow('')];
    await streams(2);
    time.pass(15_000);
    await beating.next(({ data }) => data.includes('heartbeat'));
    await change();
    await Promise.all([beating, silent].map((stream) => stream.next(({ data }) => data.includes('updated'))));
    const said = ({ events }: EventSource) =>
      events.map(
        ({ data }) => (JSON.parse(data) as { data: { workspaceEvents: { type: string } } }).data.workspaceEvents.type,
      );
    expect([said(beating), said(silent)]).toEqual([['heartbeat', 'workspace.updated'], ['workspace.updated']]);
    for (const stream of [beating, silent]) stream.close();
    await streams(0);
  });

  test('has a timeout of an hour unless the client says another', async () => {
    const stream = await open(world.as('viewer').authorization);
    expect(shown({ ...stream, events: [await stream.next(() => true)] })[0]!.data.timeout).toBe(3600);
    stream.close();
    await streams(0);
  });

  test('ends with the session, and with the membership', async () => {
    const { accessToken } = await signIn(app, world.accounts.viewer);
    const bearer = `Bearer ${accessToken}`;
    const one = await open(bearer);
    await expectOk(app, { method: 'POST', url: '/v1/auth/logout', headers: { authorization: bearer } });
    expect(await reason(one)).toBe('token_revoked');
    const { guest } = world;
    await expectOk(app, {
      method: 'POST',
      url: `${home(world)}/members`,
      headers: world.as('owner'),
      payload: { user_id: guest.userId },
    });
    const two = await open(`Bearer ${guest.accessToken}`);
    await expectOk(app, {
      method: 'DELETE',
      url: `${home(world)}/members/${guest.userId}`,
      headers: world.as('owner'),
    });
    expect(await reason(two)).toBe('membership_revoked');
    await streams(0);
  });

  test('gives all streams the same text of an event', async () => {
    const bearers = (['owner', 'admin', 'member', 'viewer'] as const).map((role) => world.as(role).authorization);
    const opened = await Promise.all([...bearers, ...bearers].map((bearer) => open(bearer)));
    await streams(8);
    await change();
    const frames = await Promise.all(opened.map((stream) => stream.next(isUpdate)));
    expect(new Set(frames.map(({ data }) => data)).size).toBe(1);
    for (const stream of opened) stream.close();
    await streams(0);
  });
});

describe('a queue that is not read', () => {
  const insert = (count: number, length: number) =>
    app.database.pool.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
       select 'evt_' || gen_random_uuid(), $1, $2, 'thread.created',
         '{"principal_type":"system","principal_id":null,"username":null}', 'thread', 'thr_' || n,
         jsonb_build_object('text', repeat('x', $4::int)) from generate_series(1, $3::int) n`,
      [world.ids.org_id, world.ids.workspace_id, count, length],
    );

  test.each([
    ['1,000 events', 1_001, 1, 1_000],
    ['1 MiB', 11, 100_000, 10],
  ])('is given up past %s, and its reader loses nothing', async (_title, count, length, fits) => {
    const place = { orgId: world.ids.org_id!, workspaceId: world.ids.workspace_id! };
    const drained = async (queue: AsyncIterable<{ resourceId: string }>, until: number) => {
      let seen = 0;
      for await (const _event of queue) if (++seen === until) break;
      return seen;
    };
    const idle = await app.services.tail.subscribe(place);
    const busy = await app.services.tail.subscribe(place);
    const [reading] = [drained(busy, fits)];
    await insert(fits, length);
    expect(await reading).toBe(fits);
    expect(idle.hasEnded).toBe(false);
    const other = await app.services.tail.subscribe(place);
    const more = drained(other, count - fits);
    await insert(count - fits, length);
    await more;
    expect([idle.hasEnded, idle.reason]).toEqual([true, 'slow_consumer']);
    const again = await open(world.as('viewer').authorization, {
      after: cursorOf(idle.start, app.services.tail.epoch),
    });
    await waitFor(() => expect(again.events.filter(({ event }) => event === 'thread.created')).toHaveLength(count));
    again.close();
    await streams(0);
  });
});
