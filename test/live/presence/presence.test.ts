import type pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { hurryTimers } from '../../support/passing-time.ts';
import { signIn } from '../../support/person.ts';
import { expectOk } from '../../support/requests.ts';
import { inTransaction } from '../../support/rows.ts';
import { type EventSource, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { createWorld, type World } from '../../support/world.ts';

let app: TestApp;
let other: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  await app.listen();
  other = await app.another();
  await other.listen();
});
afterAll(() => app.close());

const sync = () => `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/sync`;
const ROLES = ['owner', 'admin', 'editor', 'member', 'viewer'] as const;
type Role = (typeof ROLES)[number];

interface Shown {
  user_id: string;
  username: string;
  joined_at: string;
  viewing: { resource_type: string; resource_id: string } | null;
}
interface Announcement {
  status: string;
  user_id: string;
  presence: Shown[];
  ttl_seconds: number;
}
const announce = (what: string, authorization: string, node = app) =>
  expectOk<Announcement>(node, { method: 'POST', url: `${sync()}/presence/${what}`, headers: { authorization } });
const as = (role: Role) => world.as(role).authorization;
const viewing = (type: string, id: string) => `viewing?resource_type=${type}&resource_id=${id}`;

const openStream = async (authorization: string, node = app) => {
  const stream = await openEvents(`${node.url}${sync()}/stream`, { headers: { authorization } });
  const connected = await stream.next(({ event }) => event === 'connected');
  return Object.assign(stream, { connected: (JSON.parse(connected.data) as { data: Connected }).data });
};
interface Connected {
  connection_id: string;
  presence: Shown[];
}

interface Told {
  type: string;
  user_id: string;
  data: Record<string, unknown>;
}
/** The events about presence since a mark, in the order of their commits. */
async function told(since = mark): Promise<Told[]> {
  const { rows } = await app.database.pool.query<Told>(
    `select type, resource_id as user_id, data from events where workspace_id = $1 and type like 'presence.%'
       and (xid, seq) > ($2::xid8, $3::bigint) order by xid, seq`,
    [world.ids.workspace_id, since.xid, since.seq],
  );
  return rows;
}
let mark = { xid: '0', seq: '0' };

/** What the node does every second. */
const sweep = ({ services }: TestApp) =>
  services.presence.tasks[0]!.run({}, { jobId: 'none', number: 1, signal: new AbortController().signal });

/** Lets the time of connections pass. It locks them in the order in which the service does. */
const elapse = (seconds: number) =>
  app.database.pool.query(
    `with all_of_them as materialized (select connection_id from presences
       order by workspace_id, user_id, connection_id for no key update)
     update presences p set expires_at = p.expires_at - $1::int * interval '1 second'
     from all_of_them a where p.connection_id = a.connection_id`,
    [seconds],
  );
const present = async () =>
  (
    await app.database.pool.query<{ connection_id: string; user_id: string; ends_as: string; ends: number }>(
      `select connection_id, user_id, ends_as, extract(epoch from expires_at)::float8 as ends
       from presences where workspace_id = $1 order by joined_at, connection_id`,
      [world.ids.workspace_id],
    )
  ).rows;
/** A time is kept in milliseconds, rounded: up to half of one before or after the clock that it was taken from. */
const ROUNDING = 0.001;
/** The one who is there ends `seconds` after the announcement. @returns what that answered */
async function lasts<T>(seconds: number, announcement: () => Promise<T>): Promise<T> {
  const { pool } = app.database;
  const now = async () =>
    (await pool.query<{ at: number }>('select extract(epoch from clock_timestamp())::float8 as at')).rows[0]!.at;
  const before = await now();
  const answer = await announcement();
  const [row] = await present();
  expect(row!.ends).toBeGreaterThanOrEqual(before + seconds - ROUNDING);
  expect(row!.ends).toBeLessThanOrEqual((await now()) + seconds + ROUNDING);
  return answer;
}
const gone = () => waitFor(async () => expect(await present()).toEqual([]));

const opened: EventSource[] = [];
const stream = async (authorization: string, node?: TestApp) => {
  const made = await openStream(authorization, node);
  opened.push(made);
  return made;
};
const closed = async (source: EventSource, id: string) => {
  source.close();
  await waitFor(async () =>
    expect((await present()).filter((row) => row.connection_id === id)).toMatchObject([{ ends_as: 'disconnected' }]),
  );
};

afterEach(async () => {
  for (const source of opened.splice(0)) source.close();
  await waitFor(() => expect([app.services.tail.size, other.services.tail.size]).toEqual([0, 0]));
  await waitFor(async () =>
    expect(
      (await present()).filter((row) => row.ends_as === 'timeout' && row.connection_id.startsWith('stream_')),
    ).toEqual([]),
  );
  await elapse(100);
  await gone();
  const { rows } = await app.database.pool.query<typeof mark>(
    'select xid::text, seq::text from events order by events.xid desc, events.seq desc limit 1',
  );
  mark = rows[0]!;
});

const joined = (role: Role) => ({
  type: 'presence.joined',
  user_id: world.accounts[role].userId,
  data: { user_id: world.accounts[role].userId, username: world.accounts[role].username },
});
const left = (role: Role, reason: string) => {
  const { data, user_id } = joined(role);
  return { type: 'presence.left', user_id, data: { ...data, reason } };
};

describe('an announcement', () => {
  test('answers who is there; a second one is silent', async () => {
    const { userId, username } = world.accounts.viewer;
    const first = await announce('join', as('viewer'));
    expect(first).toEqual({
      status: 'joined',
      user_id: userId,
      presence: [{ user_id: userId, username, joined_at: expect.stringMatching(/^\d{4}-.*Z$/), viewing: null }],
      ttl_seconds: 60,
    });
    expect(await announce('join', as('viewer'), other)).toEqual(first);
    expect((await announce('join', as('editor'))).presence.map((user) => user.user_id)).toEqual([
      userId,
      world.accounts.editor.userId,
    ]);
    expect(await told()).toEqual([joined('viewer'), joined('editor')]);
  });

  test('lasts for a minute, and longer if it is repeated', async () => {
    await lasts(60, () => announce('join', as('viewer')));
    await elapse(30);
    await lasts(60, () => announce('join', as('viewer')));
    await elapse(60);
    await gone();
    expect(await told()).toEqual([joined('viewer'), left('viewer', 'timeout')]);
  });

  test('of leaving takes effect after ten seconds, unless the user comes back', async () => {
    await announce('join', as('viewer'));
    expect(await lasts(10, () => announce('leave', as('viewer')))).toMatchObject({ status: 'left', presence: [{}] });
    await lasts(60, () => announce('join', as('viewer'), other));
    expect(await told()).toEqual([joined('viewer')]);
    await announce('leave', as('viewer'), other);
    await elapse(10);
    await gone();
    expect(await told()).toEqual([joined('viewer'), left('viewer', 'left')]);
    // nobody is there: nothing to leave
    expect(await announce('leave', as('viewer'))).toMatchObject({ status: 'left', presence: [] });
    expect(await told()).toHaveLength(2);
  });

  test('of a token names its owner', async () => {
    const maker = { orgId: world.ids.org_id!, headers: world.as('editor') };
    const token = await issueToken(app, maker, { permissions: ['presence:update', 'sync:subscribe'] });
    await announce('join', token.headers.authorization);
    expect(await told()).toEqual([joined('editor')]);
  });
});

describe('what a user looks at', () => {
  test('is told once, with what it was before, and announces the user', async () => {
    const { thread_id, workspace_id } = world.ids as Record<string, string>;
    const { userId, username } = world.accounts.viewer;
    const answer = await announce(viewing('thread', thread_id!), as('viewer'));
    expect(answer).toMatchObject({
      status: 'viewing',
      presence: [{ user_id: userId, viewing: { resource_type: 'thread', resource_id: thread_id } }],
    });
    await announce(viewing('thread', thread_id!), as('viewer'), other);
    await announce(viewing('workspace', workspace_id!), as('viewer'));
    await announce(viewing('workspace_member', await memberId()), as('viewer'));
    const seen = (resource_type: string, resource_id: string, previous: unknown) => ({
      type: 'presence.viewing',
      user_id: userId,
      data: { user_id: userId, username, resource_type, resource_id, previous },
    });
    expect(await told()).toEqual([
      joined('viewer'),
      seen('thread', thread_id!, null),
      // the thread is in a namespace, whose readers are not those of the workspace
      seen('workspace', workspace_id!, null),
      seen('workspace_member', await memberId(), { resource_type: 'workspace', resource_id: workspace_id }),
    ]);
  });

  const memberId = async () =>
    (
      await app.database.pool.query<{ id: string }>(
        'select id from workspace_members where workspace_id = $1 order by id limit 1',
        [world.ids.workspace_id],
      )
    ).rows[0]!.id;

  test('is something in the workspace that the user may read', async () => {
    const foreign = await createWorld(app);
    for (const [type, id, status] of [
      ['thread', foreign.ids.thread_id!, 404],
      ['workspace', foreign.ids.workspace_id!, 404],
      ['thread', 'thr_none', 404],
      ['namespace', world.ids.thread_id!, 404],
      ['nothing', 'x', 422],
      ['organization', world.ids.org_id!, 422],
    ] as const) {
      const { statusCode } = await app.server.inject({
        method: 'POST',
        url: `${sync()}/presence/${viewing(type, id)}`,
        headers: world.as('viewer'),
      });
      expect([type, id, statusCode]).toEqual([type, id, status]);
    }
    expect(await present()).toEqual([]);
  });

  test('is not shown to a token of another place', async () => {
    const { namespace_id: namespaceId, thread_id: threadId } = world.ids as Record<string, string>;
    const made = await expectOk<{ namespace_id: string }>(app, {
      method: 'POST',
      url: sync().replace(/sync$/, 'namespaces'),
      headers: world.as('owner'),
      payload: { name: `${world.marker} ${world.next()}` },
    });
    const maker = { orgId: world.ids.org_id!, headers: world.as('owner') };
    const reader = async (id: string) =>
      (await issueToken(app, maker, { permissions: ['sync:subscribe', 'thread:read'], namespace_ids: [id] })).headers
        .authorization;
    const [near, far] = [await stream(await reader(namespaceId!)), await stream(await reader(made.namespace_id))];
    await announce(viewing('thread', threadId!), as('viewer'));
    const last = await announce('join', as('editor'));
    for (const source of [near, far]) await source.next(({ data }) => data.includes(last.user_id));
    const types = (source: EventSource) => source.events.map(({ event }) => event);
    expect([types(near), types(far)]).toEqual([
      ['connected', 'presence.joined', 'presence.viewing', 'presence.joined'],
      ['connected', 'presence.joined', 'presence.joined'],
    ]);
    const snapshots = [await stream(await reader(namespaceId!)), await stream(await reader(made.namespace_id))];
    expect(snapshots.map(({ connected }) => connected.presence[0]!.viewing)).toEqual([
      { resource_type: 'thread', resource_id: threadId },
      null,
    ]);
  });
});

describe('what some may not read', () => {
  const viewers = async () => {
    const sources = {
      admin: await stream(as('admin')),
      viewer: await stream(as('viewer')),
      token: await stream(await tokenOf(['sync:subscribe', 'secret:read'])),
    };
    const views = (role: keyof typeof sources) =>
      sources[role].events
        .filter(({ event }) => event === 'presence.viewing')
        .map(({ data }) => (JSON.parse(data) as { data: Viewing }).data)
        .map((data) => [data.resource_type, data.previous?.resource_type ?? null]);
    return { sources, views };
  };
  interface Viewing {
    resource_type: string;
    previous: { resource_type: string } | null;
  }
  const tokenOf = async (permissions: string[]) => {
    const maker = { orgId: world.ids.org_id!, headers: world.as('owner') };
    return (await issueToken(app, maker, { permissions })).headers.authorization;
  };

  test('is shown to those who may: in events, as `previous`, and in lists', async () => {
    const { workspace_id, secret_id } = world.ids as Record<string, string>;
    await app.database.pool.query('update secrets set workspace_id = $1 where id = $2', [workspace_id, secret_id]);
    const { sources, views } = await viewers();
    await announce(viewing('workspace', workspace_id!), as('owner'));
    await announce(viewing('secret', secret_id!), as('owner'));
    await announce(viewing('workspace', workspace_id!), as('owner'));
    const last = await announce('join', as('editor'));
    for (const source of Object.values(sources)) await source.next(({ data }) => data.includes(last.user_id));
    expect([views('admin'), views('viewer'), views('token')]).toEqual([
      [
        ['workspace', null],
        ['secret', 'workspace'],
        ['workspace', 'secret'],
      ],
      [
        ['workspace', null],
        ['workspace', null],
      ],
      [['secret', null]],
    ]);
    await announce(viewing('secret', secret_id!), as('owner'));
    const seen = { resource_type: 'secret', resource_id: secret_id };
    const shownTo = async (authorization: string) =>
      (await stream(authorization)).connected.presence.find((user) => user.user_id === world.accounts.owner.userId)!
        .viewing;
    expect(await shownTo(as('admin'))).toEqual(seen);
    expect(await shownTo(as('viewer'))).toBeNull();
    expect(await shownTo(await tokenOf(['sync:subscribe', 'secret:read']))).toEqual(seen);
    expect(await shownTo(await tokenOf(['sync:subscribe']))).toBeNull();
    const { presence } = await announce('join', as('viewer'));
    expect(presence.map((user) => user.viewing)).not.toContainEqual(seen);
  });
});

describe('an open stream', () => {
  test('makes its user present, and shows who is there; the last one to end is the end', async () => {
    await announce('join', as('editor'));
    const one = await stream(as('viewer'));
    expect(one.connected.presence.map((user) => user.username)).toEqual([
      world.accounts.editor.username,
      world.accounts.viewer.username,
    ]);
    const { accessToken } = await signIn(app, world.accounts.viewer);
    const two = await stream(`Bearer ${accessToken}`, other);
    await closed(one, one.connected.connection_id);
    await elapse(10);
    await waitFor(async () => expect(await present()).toHaveLength(2));
    expect(await told()).toEqual([joined('editor'), joined('viewer')]);
    await closed(two, two.connected.connection_id);
    // it takes ten seconds, in which the user may come back
    const three = await stream(as('viewer'));
    await elapse(10);
    await waitFor(async () => expect(await present()).toHaveLength(2));
    expect(await told()).toEqual([joined('editor'), joined('viewer')]);
    await closed(three, three.connected.connection_id);
    await elapse(10);
    await waitFor(async () => expect(await present()).toHaveLength(1));
    expect(await told()).toEqual([joined('editor'), joined('viewer'), left('viewer', 'disconnected')]);
  });

  test('renews what its session announced; a token is not present by it', async () => {
    const time = hurryTimers();
    const source = await stream(as('viewer'));
    await announce('join', as('viewer'));
    await elapse(30);
    const [first, second] = await present();
    time.pass(15_000);
    // both end later than they would have
    await waitFor(async () => {
      const now = await present();
      expect(now.map(({ ends }) => ends > Math.max(first!.ends, second!.ends))).toEqual([true, true]);
    });
    // who leaves is not renewed
    await announce('leave', as('viewer'));
    time.pass(15_000);
    const maker = { orgId: world.ids.org_id!, headers: world.as('admin') };
    const token = await issueToken(app, maker, { permissions: ['sync:subscribe'] });
    expect((await stream(token.headers.authorization)).connected.presence).toHaveLength(1);
    await elapse(10);
    await gone();
    expect(await told()).toEqual([joined('viewer'), left('viewer', 'left')]);
    const types = () => source.events.map(({ event }) => event);
    await waitFor(() => expect(types()).toContain('presence.joined'));
    expect(types()[0]).toBe('connected');
  });
});

describe('while others lock connections', () => {
  const transaction = (work: (db: pg.PoolClient) => Promise<void>) => inTransaction(app.database.pool, work);
  const hold = (db: pg.PoolClient, id: string) =>
    db.query('select from presences where connection_id = $1 for update nowait', [id]);
  const waiting = (count: number) =>
    waitFor(async () => expect(await lockWaits(app.database.pool)).toBeGreaterThanOrEqual(count));
  /** In the order of their keys. */
  const connections = async () =>
    (await present())
      .sort((one, other) =>
        `${one.user_id} ${one.connection_id}` < `${other.user_id} ${other.connection_id}` ? -1 : 1,
      )
      .map((row) => row.connection_id);

  test('a renewal waits for the first, and has not locked those after it', async () => {
    const time = hurryTimers();
    for (const role of ROLES) await stream(as(role));
    const [first, ...rest] = await connections();
    await elapse(20);
    const ends = async () => (await present()).map((row) => row.ends);
    const soonest = Math.min(...(await ends()));
    await transaction(async (db) => {
      await hold(db, first!);
      time.pass(15_000);
      await waiting(1);
      for (const id of rest) await hold(db, id);
    });
    await waitFor(async () => expect(Math.min(...(await ends()))).toBeGreaterThan(soonest + 10));
  });

  test('of two streams of a session that end at once, one knows that it is the last', async () => {
    await announce('join', as('viewer'));
    const one = await stream(as('viewer'));
    const two = await stream(as('viewer'), other);
    await transaction(async (db) => {
      for (const { connected } of [one, two]) await hold(db, connected.connection_id);
      one.close();
      two.close();
      await waiting(2);
    });
    await waitFor(async () =>
      expect((await present()).map((row) => row.ends_as)).toEqual(Array.from({ length: 3 }, () => 'disconnected')),
    );
  });

  test('who is renewed while another connection is removed does not leave', async () => {
    await stream(as('viewer'));
    await stream(as('viewer'), other);
    const [first] = await connections();
    await transaction(async (renewal) => {
      await transaction(async (db) => {
        const turn = `presence ${world.ids.workspace_id} ${world.accounts.viewer.userId}`;
        await db.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [turn]);
        await elapse(100);
        await renewal.query(`update presences set expires_at = now() + interval '45 s' where connection_id = $1`, [
          first,
        ]);
      });
      // to the removal, both have ended when it begins
      await waitFor(async () => {
        const { rows } = await renewal.query<{ n: number }>(
          `select count(*)::int as n from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`,
        );
        expect(rows[0]!.n).toBeGreaterThan(0);
      });
    });
    await waitFor(async () => expect(await connections()).toEqual([first]));
    expect(await told()).toEqual([joined('viewer')]);
  });
});

test('after an outage of the database, those whose streams are open are present again', async () => {
  const { pool } = app.database;
  const time = hurryTimers();
  await stream(as('viewer'));
  await elapse(60);
  await gone();
  // the database refuses the renewals, then the entry, and counts both
  await pool.query(`
    create sequence refused_presences;
    create function refuse_presence() returns trigger language plpgsql as $$ begin
      perform nextval('refused_presences');
      raise exception 'the database is away';
    end $$;
    create trigger refused_renewal before update on presences for each statement execute function refuse_presence();
    create trigger refused_entry before insert on presences for each row
      when (new.workspace_id = '${world.ids.workspace_id}') execute function refuse_presence()`);
  const refused = async (times: number) => {
    time.pass(15_000);
    await waitFor(async () => {
      const { rows } = await pool.query<{ n: number }>(
        'select case when is_called then last_value else 0 end::int as n from refused_presences',
      );
      expect(rows).toEqual([{ n: times }]);
    });
    expect(await present()).toEqual([]);
  };
  try {
    await refused(1);
    await pool.query('drop trigger refused_renewal on presences');
    await refused(2);
  } finally {
    await pool.query('drop function refuse_presence() cascade; drop sequence refused_presences');
  }
  time.pass(15_000);
  await waitFor(async () =>
    expect((await present()).map(({ user_id }) => user_id)).toEqual([world.accounts.viewer.userId]),
  );
  expect((await told()).map(({ type }) => type)).toEqual(['presence.joined', 'presence.left', 'presence.joined']);
});

test('GraphQL: the query, and the subscription with who is there at once and after each change', async () => {
  const { org_id: orgId, workspace_id: workspaceId } = world.ids;
  const place = `(orgId: "${orgId}", workspaceId: "${workspaceId}")`;
  const headers = { 'content-type': 'application/json', authorization: as('admin') };
  await announce(viewing('workspace', workspaceId!), as('viewer'));
  const { username } = world.accounts.viewer;
  const query = `{ presence${place} { username user { username } viewing { resource { __typename id } } } }`;
  expect(await expectOk(app, { method: 'POST', url: '/graphql', headers, payload: { query } })).toEqual({
    data: {
      presence: [{ username, user: { username }, viewing: { resource: { __typename: 'Workspace', id: workspaceId } } }],
    },
  });
  const source = await openEvents(`${app.url}/graphql`, {
    method: 'POST',
    headers: { ...headers, accept: 'text/event-stream' },
    body: JSON.stringify({ query: `subscription { presence${place} { username } }` }),
  });
  opened.push(source);
  const lists = () =>
    source.events
      .filter(({ event }) => event === 'next')
      .map(({ data }) =>
        (JSON.parse(data) as { data: { presence: { username: string }[] } }).data.presence.map((user) => user.username),
      );
  await waitFor(() => expect(lists()).toEqual([[username]]));
  await announce('join', as('editor'), other);
  await waitFor(() => expect(lists().at(-1)).toEqual([username, world.accounts.editor.username]));
  source.close();
  await waitFor(() => expect(app.services.tail.size).toBe(0));
});

test('200 who join and leave at once, on two nodes: nobody joins or leaves twice, and the list is right', async () => {
  const nodes = [app, other];
  let state = 7;
  const random = (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const steps = Array.from({ length: 200 }, () => ({
    role: ROLES[random(5)]!,
    node: nodes[random(2)]!,
    what: ['join', 'leave', 'stream', 'end'][random(4)]!,
  }));
  const take = async ({ role, node, what }: (typeof steps)[number]) => {
    if (what === 'join' || what === 'leave') await announce(what, as(role), node);
    else if (what === 'end') {
      await elapse(60);
      await sweep(node);
    } else
      await stream(as(role), node).then(
        (source) => source.close(),
        // more than ten at a time
        (error: unknown) => expect(String(error)).toContain('429'),
      );
  };
  // ten at a time
  await Promise.all(
    Array.from({ length: 10 }, async (_, lane) => {
      for (let at = lane; at < steps.length; at += 10) await take(steps[at]!);
    }),
  );
  /** Who is there by the events. */
  const follow = async () => {
    const there = new Set<string>();
    for (const { type, user_id: id } of await told()) {
      expect([type, there.has(id)]).toEqual([type, type === 'presence.left']);
      if (type === 'presence.joined') there.add(id);
      else there.delete(id);
    }
    return [...there].sort();
  };
  const listed = async () => {
    const { rows } = await app.database.pool.query<{ user_id: string }>(
      'select distinct user_id from presences where workspace_id = $1 order by user_id',
      [world.ids.workspace_id],
    );
    return rows.map((row) => row.user_id);
  };
  // some are about to leave
  await waitFor(async () => expect(await follow()).toEqual(await listed()));
  expect((await told()).length).toBeGreaterThan(10);
});
