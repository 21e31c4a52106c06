import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readEpoch } from '../../src/data/epoch.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { fill } from '../support/fill.ts';
import { expectOk } from '../support/requests.ts';
import { type EventSource, openAcknowledged, openEvents, type RawSocket } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';
import { createWorld, settled, type World } from '../support/world.ts';

let app: TestApp;
let own: World;
let foreign: World;
let url: string;
let epoch: string;
beforeAll(async () => {
  app = await startTestApp();
  own = await createWorld(app, { withResources: false });
  foreign = await createWorld(app, { withResources: false });
  url = await app.listen();
  epoch = await readEpoch(app.services.sql);
});
afterAll(() => app.close());

interface Shown {
  cursor: string;
  type: string;
  resourceId: string;
  data: Record<string, unknown>;
}

const query = `subscription Events($orgId: ID!, $workspaceId: ID!, $after: String) {
  workspaceEvents(orgId: $orgId, workspaceId: $workspaceId, after: $after) { cursor type resourceId data }
}`;
const operation = ({ ids }: World, after?: string) => ({
  query,
  variables: { orgId: ids.org_id, workspaceId: ids.workspace_id, after },
});

const openSse = (world: World, { after, lastEventId }: { after?: string; lastEventId?: string } = {}) =>
  openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...world.as('viewer'),
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
    body: JSON.stringify(operation(world, after)),
  });

async function openWs(world: World, after?: string): Promise<RawSocket> {
  const socket = await openAcknowledged(url, world.as('viewer').authorization);
  socket.send({ id: '1', type: 'subscribe', payload: operation(world, after) });
  return socket;
}

const shownBySse = ({ events }: EventSource): Shown[] =>
  events.flatMap(({ event, data }) =>
    event === 'next' ? [(JSON.parse(data) as { data: { workspaceEvents: Shown } }).data.workspaceEvents] : [],
  );
const shownByWs = ({ messages }: RawSocket): Shown[] =>
  messages.flatMap(({ type, payload }) =>
    type === 'next' ? [(payload as { data: { workspaceEvents: Shown } }).data.workspaceEvents] : [],
  );
const has = (seen: () => Shown[], resourceId: string) =>
  waitFor(() => expect(seen().map((event) => event.resourceId)).toContain(resourceId));
const open = (streams: number) => waitFor(() => expect(app.services.tail.size).toBe(streams));

/** Makes an event. @returns the id of the resource that it is about */
async function change(world: World): Promise<string> {
  const { ids, marker } = world;
  const { namespace_id } = await expectOk<{ namespace_id: string }>(app, {
    method: 'POST',
    url: `/v1/orgs/${ids.org_id}/workspaces/${ids.workspace_id}/namespaces`,
    headers: world.as('owner'),
    payload: { name: `${marker} ${world.next()}` },
  });
  return namespace_id;
}

/** The cursor of a new event of the world. */
async function newCursor(world: World): Promise<string> {
  const stream = await openSse(world);
  await open(1);
  const id = await change(world);
  await has(() => shownBySse(stream), id);
  stream.close();
  await open(0);
  return shownBySse(stream).at(-1)!.cursor;
}

const several = async (world: World, count: number): Promise<string[]> => {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await change(world));
  return ids;
};

describe('a reader that comes back', () => {
  test('gets over SSE what it missed, by the id of the last frame, and then what happens', async () => {
    const stream = await openSse(own);
    await open(1);
    const seen = await change(own);
    const frame = await stream.next(({ data }) => data.includes(seen));
    expect(frame.id).toMatch(/^[\da-f]{6}-\d+-\d+$/);
    expect(frame.id).toBe(shownBySse(stream)[0]!.cursor);
    stream.close();
    await open(0);
    const missed = await several(own, 3);
    // the client asks as it did the first time: its header says where it is
    const again = await openSse(own, { after: '1-1', lastEventId: frame.id });
    await has(() => shownBySse(again), missed.at(-1)!);
    const live = await change(own);
    await has(() => shownBySse(again), live);
    expect(shownBySse(again).map(({ resourceId }) => resourceId)).toEqual([...missed, live]);
    expect(again.events.map(({ id }) => id)).toEqual(shownBySse(again).map(({ cursor }) => cursor));
    again.close();
    await open(0);
  });

  test('gets the same by the argument, over WebSocket and SSE', async () => {
    const after = await newCursor(own);
    const missed = await several(own, 2);
    const socket = await openWs(own, after);
    const stream = await openSse(own, { after, lastEventId: '' });
    await open(2);
    const expected = [...missed, await change(own)];
    await has(() => shownByWs(socket), expected.at(-1)!);
    await has(() => shownBySse(stream), expected.at(-1)!);
    expect(shownByWs(socket).map(({ resourceId }) => resourceId)).toEqual(expected);
    expect(shownBySse(stream).map(({ resourceId }) => resourceId)).toEqual(expected);
    socket.close();
    stream.close();
    await open(0);
  });

  test('gets an error for an invalid cursor, over both transports, and opens no stream', async () => {
    const socket = await openAcknowledged(url, own.as('viewer').authorization);
    const max = '9'.repeat(19);
    for (const [index, after] of [
      'x',
      '-1',
      '1',
      '1-',
      '1--1',
      '1-1 ',
      'abcde-1-1',
      'abcdeg-1-1',
      'abcdef-1',
      `abcdef-1-${max}`,
      '1-1\n',
      ' 1-1',
      `1-${max}`,
      `${max}9-1`,
      '9'.repeat(9_000),
    ].entries()) {
      const id = String(index);
      socket.send({ id, type: 'subscribe', payload: operation(own, after) });
      const { payload } = await socket.next((message) => message.id === id);
      expect([after, payload]).toMatchObject([
        after,
        { errors: [{ extensions: { code: 'VALIDATION_ERROR', details: { issues: [{ path: ['after'] }] } } }] },
      ]);
    }
    const stream = await openSse(own, { lastEventId: 'evt_1' });
    await stream.ended;
    expect(JSON.parse(stream.events[0]!.data)).toMatchObject({
      errors: [{ path: ['workspaceEvents'], extensions: { code: 'VALIDATION_ERROR' } }],
    });
    expect(app.services.tail.size).toBe(0);
    socket.close();
  });

  test('sees nothing of another tenant, with any cursor', async () => {
    const after = await newCursor(foreign);
    await several(foreign, 2);
    const socket = await openWs(own, after);
    await open(1);
    const id = await change(own);
    await has(() => shownByWs(socket), id);
    expect(shownByWs(socket).map(({ resourceId }) => resourceId)).toEqual([id]);
    expect(JSON.stringify(socket.messages)).not.toContain(foreign.ids.workspace_id);
    socket.close();
    await open(0);
  });
});

describe('one resync, and then what happens', () => {
  const resyncThenLive = async (after: string) => {
    const socket = await openWs(own, after);
    await open(1);
    const live = await change(own);
    await has(() => shownByWs(socket), live);
    const shown = shownByWs(socket);
    expect(shown.map(({ type }) => type)).toEqual(['resync', 'namespace.created']);
    socket.close();
    await open(0);
    return shown[0]!;
  };
  const otherEpoch = () => (epoch === 'abcdef' ? 'fedcba' : 'abcdef');
  const events = (text: string, values: unknown[]) => app.database.pool.query(text, values);

  test.each(['1-1', '0-0', '18446744073709551615-9223372036854775807'])(
    'for a cursor that stands for nothing: %s',
    async (position) => {
      const notice = await resyncThenLive(`${epoch}-${position}`);
      // whoever comes back with it goes on from there
      const again = await openWs(own, notice.cursor);
      await has(() => shownByWs(again), await change(own));
      expect(shownByWs(again).map(({ type }) => type)).toEqual(['namespace.created', 'namespace.created']);
      again.close();
      await open(0);
    },
  );

  test.each([
    ['another database', (position: string) => `${otherEpoch()}-${position}`],
    ['before cursors had an epoch', (position: string) => position],
  ])('for a cursor of %s, whatever its numbers, over both transports', async (_title, cursor) => {
    const position = (await newCursor(own)).slice(`${epoch}-`.length);
    await several(own, 2);
    await resyncThenLive(cursor(position));
    const stream = await openSse(own, { lastEventId: cursor(position) });
    await open(1);
    await has(() => shownBySse(stream), await change(own));
    expect(shownBySse(stream).map(({ type }) => type)).toEqual(['resync', 'namespace.created']);
    expect(shownBySse(stream).every((event) => event.cursor.startsWith(`${epoch}-`))).toBe(true);
    stream.close();
    await open(0);
  });

  test('for a reader that missed an event of more than 24 hours ago; not for one that has seen it', async () => {
    const after = await newCursor(own);
    const [old] = await several(own, 2);
    // the members have been there for longer
    await events(`update workspace_members set updated_at = now() - interval '2 days' where org_id = $1`, [
      own.ids.org_id,
    ]);
    const at = (hours: number, id: string) =>
      events(`update events set timestamp = now() - $1::float8 * interval '1 hour' where resource_id = $2`, [
        hours,
        id,
      ]);
    await at(23.9, old!);
    const early = await openWs(own, after);
    await has(() => shownByWs(early), await change(own));
    expect(shownByWs(early)[0]!.resourceId).toBe(old);
    early.close();
    await open(0);
    await at(24.1, old!);
    await resyncThenLive(after);
    const behind = await openWs(own, shownByWs(early)[0]!.cursor);
    await has(() => shownByWs(behind), await change(own));
    expect(shownByWs(behind).map(({ type }) => type)).not.toContain('resync');
    behind.close();
    await open(0);
  });

  test('for a reader that missed over 10,000 events; after exactly 10,000 it gets each once, in order', async () => {
    const after = await newCursor(own);
    const { org_id, workspace_id } = own.ids;
    const flood = (count: number) =>
      events(
        `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
         select 'evt_' || gen_random_uuid(), $1, $2, 'thread.created', '{}', 'thread', 'ord_' || n, '{}'
           from generate_series(1, $3::int) n`,
        [org_id, workspace_id, count],
      );
    await flood(10_000);
    // what another transaction holds back would come live, more at once than a reader may have unread
    await settled(app);
    const socket = await openWs(own, after);
    await waitFor(() => expect(shownByWs(socket)).toHaveLength(10_000));
    expect(shownByWs(socket).map(({ resourceId }) => resourceId)).toEqual(
      Array.from({ length: 10_000 }, (_, index) => `ord_${index + 1}`),
    );
    await flood(1);
    // the service knows of it
    await waitFor(() => expect(shownByWs(socket)).toHaveLength(10_001));
    socket.close();
    await open(0);
    await resyncThenLive(after);
  });
});

describe('the window of a reader', () => {
  test('begins when it joined, and with its role: before that, one resync, whatever cursor it has', async () => {
    const before = await newCursor(own);
    await change(own);
    const { guest } = own;
    const members = `/v1/orgs/${own.ids.org_id}/workspaces/${own.ids.workspace_id}/members`;
    const headers = own.as('owner');
    const added = { user_id: guest.userId, role: 'viewer' };
    await expectOk(app, { method: 'POST', url: members, headers, payload: added });
    /** What the guest gets after a cursor, up to a new event. */
    const typesAfter = async (after: string) => {
      const socket = await openAcknowledged(url, `Bearer ${guest.accessToken}`);
      socket.send({ id: '1', type: 'subscribe', payload: operation(own, after) });
      await open(1);
      const live = await change(own);
      await has(() => shownByWs(socket), live);
      socket.close();
      await open(0);
      return shownByWs(socket).map(({ type }) => type);
    };
    expect(await typesAfter(before)).toEqual(['resync', 'namespace.created']);
    const since = await newCursor(own);
    await change(own);
    expect(await typesAfter(since)).toEqual(['namespace.created', 'namespace.created']);
    const role = { method: 'PATCH', url: `${members}/${guest.userId}`, headers, payload: { role: 'editor' } } as const;
    await expectOk(app, role);
    expect(await typesAfter(since)).toEqual(['resync', 'namespace.created']);
    await expectOk(app, { method: 'DELETE', url: `${members}/${guest.userId}`, headers });
  });

  test('holds nothing that is addressed to others', async () => {
    const after = await newCursor(own);
    const { org_id, workspace_id } = own.ids;
    await fill(
      app,
      `insert into events (id, org_id, workspace_id, recipient_id, type, actor, resource_type, resource_id, data)
       select 'evt_' || gen_random_uuid(), $1, $2, $3, 'notification.created', '{}', 'notification', 'ntf_' || n, '{}'
         from generate_series(1, 10001) n`,
      [org_id, workspace_id, own.accounts.owner.userId],
    );
    const missed = await change(own);
    await settled(app);
    const socket = await openWs(own, after);
    await has(() => shownByWs(socket), missed);
    expect(shownByWs(socket).map(({ type }) => type)).toEqual(['namespace.created']);
    socket.close();
    await open(0);
  });
});

test('a new reader gets what happens from now on, even if a transaction holds back what happened before', async () => {
  const held = await app.database.pool.connect();
  await held.query('begin; select pg_current_xact_id()');
  await change(own);
  const socket = await openWs(own);
  const stream = await openSse(own);
  await open(2);
  const after = await change(own);
  expect([shownByWs(socket), shownBySse(stream)]).toEqual([[], []]);
  await held.query('rollback');
  held.release();
  for (const seen of [() => shownByWs(socket), () => shownBySse(stream)]) {
    await has(seen, after);
    expect(seen().map(({ resourceId }) => resourceId)).toEqual([after]);
  }
  socket.close();
  stream.close();
  await open(0);
});

test('the index serves what was missed, in a table where other workspaces have most', async () => {
  const client = await app.database.pool.connect();
  try {
    await client.query('begin');
    await client.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
       select 'evt_p' || n, 'org_p', 'ws_p' || n % 7, 'thread.created', '{}', 'thread', 'o', '{}'
         from generate_series(1, 20000) n`,
    );
    await client.query('analyze events');
    await client.query('set local plan_cache_mode = force_generic_plan');
    await client.query(`prepare missed(text, text, xid8, bigint, xid8, bigint, text) as select id from events e
      where e.org_id = $1 and e.workspace_id = $2 and (e.recipient_id is null or e.recipient_id = $7)
      and (e.xid, e.seq) > ($3, $4) and (e.xid, e.seq) <= ($5, $6) order by e.xid, e.seq limit 200`);
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain execute missed('org_p', 'ws_p1', '1', 1, '9999999', 9999999, 'usr_p')`,
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toContain('events_org_id_workspace_id_xid_seq_idx');
    expect(plan).not.toContain('Sort');
  } finally {
    await client.query('rollback');
    client.release();
  }
});
