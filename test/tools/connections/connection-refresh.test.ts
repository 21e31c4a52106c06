import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listOf } from '../../insight/notifications/told.ts';
import type { TestApp } from '../../support/app.ts';
import { gate } from '../../support/gate.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { colleague, eventsOf, type Person } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';
import {
  connect,
  exchange,
  initiate,
  makeInstanceAt,
  rowOf,
  shownBy,
  startConnectingApp,
  withInstance,
} from './connecting.ts';

let app: TestApp;
let server: OAuthServer;
beforeAll(async () => {
  [app, server] = await Promise.all([startConnectingApp({ DATABASE_POOL_SIZE: '4' }), startOAuthServer()]);
});
beforeEach(() => {
  server.misbehave.length = 0;
  server.grants = {};
});
afterAll(async () => {
  await app.close();
  await server.close();
});

const MINUTE = 60_000;

interface Connected {
  ann: Person;
  id: string;
  instanceId: string;
  base: string;
  use: { orgId: string; toolInstanceId: string; namespaceId: null };
}

/** Somebody with a connection of their workspace. */
async function connectedOne(): Promise<Connected> {
  const { ann, instanceId } = await withInstance(app, server);
  const base = `${ann.home}/connections`;
  const { connection_id: id } = await connect(ann, server, base, instanceId);
  return { ann, id, instanceId, base, use: { orgId: ann.orgId, toolInstanceId: instanceId, namespaceId: null } };
}

/** Moves the times of a connection, as if it had been connected earlier. No job finds it, unless `refreshAt` is set. */
const move = (id: string, data: { expiresAt?: Date; refreshAt?: Date | null; lastRefreshedAt?: Date }) =>
  app.database.prisma.connection.update({ where: { id }, data: { refreshAt: null, ...data } });

const ago = (ms: number) => new Date(Date.now() - ms);
const ahead = (ms: number) => new Date(Date.now() + ms);
const due = () => ({ refreshAt: ago(1) });
const refreshDue = (of = app) => of.services.connectionRefresh.refreshDue({ signal: new AbortController().signal });
const secretFor = async (one: Connected, of = app) =>
  (await of.services.connectionCredentials.credentialFor(one.use))?.secret;
const refreshes = () => server.grants.refresh_token ?? 0;

/** Asks for the refresh of one connection, which the job of the app may be doing already. */
async function refreshed(one: Connected): Promise<void> {
  await app.services.connectionRefresh.refresh(one.id, null, 'due');
}

describe('an access token that has ended', () => {
  test('is refreshed once for fifty who need it at the same time, on two nodes', async () => {
    const one = await connectedOne();
    const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
    const before = await secretFor(one);
    await move(one.id, { expiresAt: ago(1) });
    const { opened, open } = gate();
    server.misbehave.push({ until: () => opened });
    const [here, there] = [logQueries(app.database.pool), logQueries(other.database.pool)];
    const claims = (sent: readonly string[]) =>
      sent.filter((text) => text.includes('pg_try_advisory_xact_lock')).length;
    const users: Promise<string | undefined>[] = [];
    await here.during((byHere) =>
      there.during(async (byThere) => {
        users.push(...Array.from({ length: 50 }, (_, index) => secretFor(one, index % 2 ? app : other)));
        // the node that did not get it looks again and again, and asks the provider no more than the users do
        await waitUntil(() => claims(byHere) + claims(byThere) >= 5 && refreshes() > 0);
      }),
    );
    expect(refreshes()).toBe(1);
    open();
    const secrets = new Set(await Promise.all(users));
    expect([secrets.size, refreshes()]).toEqual([1, 1]);
    expect([...secrets][0]).not.toBe(before);
    expect(server.accessTokens.has([...secrets][0]!)).toBe(true);
    const row = await rowOf(app, one.id);
    expect(row).toMatchObject({ status: 'connected', lastError: null, refreshClaim: null, refreshFailures: 0 });
    expect(row.lastRefreshedAt!.getTime()).toBeGreaterThan(Date.now() - MINUTE);
    // a silent refresh is no news
    expect(await eventsOf(app, one.id)).toEqual(['connection.created', 'connection.updated']);
    expect(row.resourceVersion).toBe((await connectedOne().then(({ id }) => rowOf(app, id))).resourceVersion);
  });

  test('holds no connection of the pool while the provider thinks', async () => {
    const ones = [];
    for (let i = 0; i < 8; i++) ones.push(await connectedOne());
    for (const { id } of ones) await move(id, { expiresAt: ago(1) });
    const { opened, open } = gate();
    server.misbehave.push(...ones.map(() => ({ until: () => opened })));
    const secrets = Promise.all(ones.map((one) => secretFor(one)));
    // twice as many as the pool has connections
    await waitFor(() => expect(refreshes()).toBe(8));
    const answers = await Promise.all(ones.map(({ ann }) => ann.call('GET', ann.home)));
    expect(answers.map(({ status }) => status)).toEqual(ones.map(() => 200));
    // a job of the app holds one for a moment; what is held for the provider is held until its answer, or for 10 s
    const held = `select state, query from pg_stat_activity
       where datname = current_database() and state like 'idle in transaction%'
     union all select mode, locktype from pg_locks where locktype = 'advisory'
       and database = (select oid from pg_database where datname = current_database())`;
    const nothing = async () => expect((await app.database.pool.query(held)).rows).toEqual([]);
    await waitFor(nothing, { withinMs: 5_000 });
    open();
    expect(new Set(await secrets).size).toBe(8);
  });
});

describe('the job', () => {
  test('refreshes ahead of the end, and keeps the refresh token of a provider that sends no new one', async () => {
    const one = await connectedOne();
    const refreshToken = [...server.refreshTokens].at(-1)!;
    server.misbehave.push({
      status: 200,
      body: { access_token: 'renewed', token_type: 'bearer', expires_in: 3_600 },
    });
    // from now on, the job of the app may be faster
    await move(one.id, due());
    await refreshDue();
    await waitFor(async () => expect(await secretFor(one)).toBe('renewed'));
    const row = await rowOf(app, one.id);
    expect(row.expiresAt!.getTime() - row.refreshAt!.getTime()).toBe(15 * MINUTE);
    expect(row.scopes).toEqual(['read', 'write']);
    await move(one.id, due());
    await refreshDue();
    await waitFor(() => expect(server.refreshTokens.has(refreshToken)).toBe(false));
    await waitFor(async () => expect(await secretFor(one)).not.toBe('renewed'));
  });

  test('refreshes each connection once, whichever nodes look', async () => {
    const ones = [await connectedOne(), await connectedOne(), await connectedOne()];
    const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
    for (const { id } of ones) await move(id, due());
    await Promise.all([refreshDue(), refreshDue(other), refreshDue(), refreshDue(other)]);
    // another node's job may have been faster, and may not be done
    await waitFor(() => expect(refreshes()).toBe(3));
    for (const { id } of ones) await waitFor(async () => expect((await rowOf(app, id)).refreshClaim).toBeNull());
    expect(refreshes()).toBe(3);
  });

  test('asks nothing on behalf of a workspace that was deleted', async () => {
    const one = await connectedOne();
    await one.ann.call('DELETE', one.ann.home);
    await move(one.id, due());
    await refreshed(one);
    await waitFor(async () =>
      expect((await rowOf(app, one.id)).refreshAt!.getTime()).toBeGreaterThan(Date.now() + 30 * MINUTE),
    );
    expect(refreshes()).toBe(0);
  });

  test('ends an authorization that nobody finished', async () => {
    const { ann, instanceId } = await withInstance(app, server);
    const begun = await initiate(ann, `${ann.home}/connections`, instanceId);
    const row = await rowOf(app, begun.connection_id);
    expect(row.refreshAt!.getTime() - Date.now()).toBeGreaterThan(9 * MINUTE);
    expect(await shownBy(app, instanceId)).toBe('pending');
    await move(row.id, due());
    await refreshDue();
    await waitFor(async () => expect(await shownBy(app, instanceId)).toBe('not_connected'));
    expect(await app.database.prisma.connection.findUnique({ where: { id: row.id } })).toBeNull();
    expect(await eventsOf(app, row.id)).toEqual(['connection.created', 'connection.deleted']);
  });
});

describe('a provider in trouble', () => {
  test.each([
    ['answers 500', { status: 500, body: 'oops' }],
    ['breaks the connection', { breaks: true }],
    ['says that it is temporarily unavailable', { status: 400, body: { error: 'temporarily_unavailable' } }],
    ['does not know the client any more', { status: 401, body: { error: 'invalid_client' } }],
  ])('that %s: the connection stays connected and is tried again', async (_title, wrong) => {
    const one = await connectedOne();
    const before = await secretFor(one);
    server.misbehave.push(wrong);
    const failed = Date.now();
    await move(one.id, due());
    await refreshed(one);
    await waitFor(async () => expect((await rowOf(app, one.id)).refreshFailures).toBe(1));
    const row = await rowOf(app, one.id);
    expect(row).toMatchObject({ status: 'connected', refreshFailures: 1, refreshClaim: null });
    expect(row.lastError).toMatch(/^The provider 'mailer' /);
    expect(row.lastError).not.toContain('127.0.0.1');
    expect(row.refreshAt!.getTime()).toBeGreaterThanOrEqual(failed + 27_000);
    expect(row.refreshAt!.getTime()).toBeLessThanOrEqual(Date.now() + 30_000);
    expect(await secretFor(one)).toBe(before);
    await move(one.id, due());
    await refreshed(one);
    await waitFor(async () => expect((await rowOf(app, one.id)).refreshFailures).toBe(0));
    expect(await rowOf(app, one.id)).toMatchObject({ status: 'connected', lastError: null });
  });

  test('until the token has ended: expired, then in error, and connected again as soon as it answers', async () => {
    const one = await connectedOne();
    for (const status of ['expired', 'expired', 'error']) {
      server.misbehave.push({ status: 503 });
      await move(one.id, { expiresAt: ago(1), ...due() });
      await refreshed(one);
      await waitFor(async () => expect((await rowOf(app, one.id)).status).toBe(status));
      expect(await shownBy(app, one.instanceId)).toBe(status);
      // it is left alone until the next try
      await expect(secretFor(one)).rejects.toMatchObject({ code: 'expired' });
      server.misbehave.length = 0;
    }
    expect(refreshes()).toBe(3);
    await move(one.id, due());
    await refreshed(one);
    await waitFor(async () => expect(await shownBy(app, one.instanceId)).toBe('connected'));
    expect(await secretFor(one)).toEqual([...server.accessTokens].at(-1));
    expect((await eventsOf(app, one.id)).slice(2)).toEqual([
      'connection.updated',
      'connection.updated',
      'connection.updated',
    ]);
  });

  test('and whose token cannot be refreshed at all: it is used until it ends', async () => {
    server.more = { refresh_token: undefined };
    const one = await connectedOne();
    server.more = {};
    const { expiresAt, refreshAt } = await rowOf(app, one.id);
    expect(refreshAt).toEqual(expiresAt);
    await move(one.id, { expiresAt: ago(1), ...due() });
    await refreshed(one);
    await waitFor(async () => expect(await shownBy(app, one.instanceId)).toBe('expired'));
    await expect(secretFor(one)).rejects.toMatchObject({ code: 'expired' });
    expect(refreshes()).toBe(0);
  });
});

test('a refresh token that is dead: the creator is told once, and nothing is deleted', async () => {
  const one = await connectedOne();
  const before = await secretFor(one);
  server.refreshTokens.clear();
  await move(one.id, due());
  await refreshed(one);
  await waitFor(async () => expect((await rowOf(app, one.id)).status).toBe('needs_reauth'));
  expect(await rowOf(app, one.id)).toMatchObject({
    refreshAt: null,
    lastError: "The provider 'mailer' answered invalid_grant: invalid_grant it is",
  });
  expect(await shownBy(app, one.instanceId)).toBe('needs_reauth');
  expect((await eventsOf(app, one.id)).at(-1)).toBe('connection.needs_reauth');
  await app.jobsDone();
  const mails = app.mails.filter(({ to, subject }) => to === one.ann.email && subject.includes('authorized again'));
  expect(mails.map(({ text }) => text)).toEqual([expect.stringContaining(`'Our mail' (${one.instanceId}) to Mail`)]);
  expect((await listOf(one.ann)).notifications).toMatchObject([
    {
      source_event: 'connection.needs_reauth',
      category: 'connection',
      type: 'action_required',
      priority: 'high',
      scope: 'workspace',
      message: expect.stringContaining(`'Our mail' (${one.instanceId}) to Mail`) as string,
    },
  ]);
  // its access token lives on
  expect(await secretFor(one)).toBe(before);
  await move(one.id, { expiresAt: ago(1) });
  await expect(secretFor(one)).rejects.toMatchObject({ code: 'needs_reauth' });
  expect(refreshes()).toBe(1);
  const begun = await initiate(one.ann, one.base, one.instanceId);
  expect(begun.connection_id).toBe(one.id);
  expect(await shownBy(app, one.instanceId)).toBe('pending');
  expect((await listOf(one.ann)).unread_count).toBe(1);
  expect((await exchange(one.ann, server.consent(begun.authorization_url), begun.state)).status).toBe(200);
  expect(await shownBy(app, one.instanceId)).toBe('connected');
  expect(await secretFor(one)).toEqual([...server.accessTokens].at(-1));
  // what was told is done
  expect(await listOf(one.ann)).toMatchObject({ total: 0, unread_count: 0 });
});

describe('a provider that refuses an access token', () => {
  const asked = (one: Connected) =>
    app.services.connectionCredentials.call(one.use, async ({ secret }) => {
      const { status } = await fetch(`${server.url}/api`, { headers: { authorization: `Bearer ${secret}` } });
      return { status };
    });

  test('causes one refresh, for all who are refused at the same time', async () => {
    const one = await connectedOne();
    server.accessTokens.clear();
    const answers = await Promise.all(Array.from({ length: 20 }, () => asked(one)));
    expect(answers).toEqual(answers.map(() => ({ status: 200 })));
    expect(refreshes()).toBe(1);
  });

  test('and refuses the new one too is not asked for a third at once', async () => {
    const one = await connectedOne();
    server.accessTokens.clear();
    expect(await asked(one)).toEqual({ status: 200 });
    server.accessTokens.clear();
    for (let i = 0; i < 3; i++) expect(await asked(one)).toEqual({ status: 401 });
    expect(refreshes()).toBe(1);
    await move(one.id, { lastRefreshedAt: ago(2 * MINUTE) });
    expect(await asked(one)).toEqual({ status: 200 });
  });

  test('an instance without a connection has nothing to send', async () => {
    const { ann } = await withInstance(app, server);
    const toolInstanceId = await makeInstanceAt(server, ann);
    const use = { orgId: ann.orgId, toolInstanceId, namespaceId: null };
    await initiate(ann, `${ann.home}/connections`, toolInstanceId);
    expect(await app.services.connectionCredentials.credentialFor(use)).toBeNull();
  });
});

describe('while a refresh is under way', () => {
  test('a new authorization wins: the late answer does not replace its tokens', async () => {
    const one = await connectedOne();
    await move(one.id, { expiresAt: ago(1) });
    const { opened, open } = gate();
    server.misbehave.push({ until: () => opened });
    const late = secretFor(one);
    await waitFor(() => expect(refreshes()).toBe(1));
    await connect(one.ann, server, one.base, one.instanceId);
    const authorized = await secretFor(one);
    open();
    expect(await late).toBe(authorized);
    expect(await secretFor(one)).toBe(authorized);
    expect(await rowOf(app, one.id)).toMatchObject({ status: 'connected', refreshClaim: null });
  });

  test('a deletion wins: nothing comes back', async () => {
    const one = await connectedOne();
    await move(one.id, { expiresAt: ago(1) });
    const { opened, open } = gate();
    server.misbehave.push({ until: () => opened });
    const late = secretFor(one);
    await waitFor(() => expect(refreshes()).toBe(1));
    expect((await one.ann.call('DELETE', `${one.base}/${one.instanceId}`)).status).toBe(200);
    open();
    expect(await late).toBeUndefined();
    expect(await app.database.prisma.credential.findUnique({ where: { connectionId: one.id } })).toBeNull();
  });

  test('nobody takes it over before the claim has ended, and then somebody does', async () => {
    const one = await connectedOne();
    const claim = (claimedUntil: Date) =>
      app.database.prisma.connection.update({
        where: { id: one.id },
        data: { refreshClaim: 'of a node that is gone', claimedUntil, expiresAt: ago(1), refreshAt: ago(1) },
      });
    await claim(ahead(MINUTE));
    await refreshed(one);
    expect(refreshes()).toBe(0);
    await claim(ago(1));
    await refreshed(one);
    await waitFor(async () => expect((await rowOf(app, one.id)).refreshClaim).toBeNull());
    expect(refreshes()).toBe(1);
  });
});

describe('a refresh that somebody asks for', () => {
  const ask = (one: Connected, person = one.ann) =>
    person.call<Record<string, unknown>>('POST', `${one.base}/${one.instanceId}/refresh`);

  test('gives another token before its time, and answers the connection as it is then', async () => {
    const one = await connectedOne();
    const before = await secretFor(one);
    const { status, body } = await ask(one);
    expect(status, JSON.stringify(body)).toBe(200);
    const row = await rowOf(app, one.id);
    expect(body).toMatchObject({
      connection_id: one.id,
      status: 'connected',
      last_refreshed_at: row.lastRefreshedAt!.toISOString(),
      missing_scopes: [],
    });
    expect([refreshes(), (await secretFor(one)) === before]).toEqual([1, false]);
    await app.services.activity.flush();
    const [record] = await app.database.prisma.activity.findMany({
      where: { orgId: one.ann.orgId, action: 'refresh' },
    });
    expect(record).toMatchObject({ resourceType: 'connection', userId: one.ann.userId, success: true });
  });

  test('is one with the refresh that runs on another node', async () => {
    const one = await connectedOne();
    const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
    await move(one.id, { expiresAt: ago(1) });
    const { opened, open } = gate();
    server.misbehave.push({ until: () => opened });
    const first = secretFor(one, other);
    await waitUntil(() => refreshes() === 1);
    await logQueries(app.database.pool).during(async (sent) => {
      const asked = ask(one);
      // it has seen the token that is being replaced
      await waitUntil(() => sent.some((text) => text.includes('pg_try_advisory_xact_lock')));
      open();
      expect(await asked).toMatchObject({ status: 200, body: { status: 'connected' } });
    });
    await first;
    expect(refreshes()).toBe(1);
  });

  test('that the provider refuses leaves a connection that must be authorized again, and is not repeated', async () => {
    const one = await connectedOne();
    server.misbehave.push({ status: 400, body: { error: 'invalid_grant' } });
    const { status, body } = await ask(one);
    expect([status, body.status]).toEqual([200, 'needs_reauth']);
    expect((await eventsOf(app, one.id)).at(-1)).toBe('connection.needs_reauth');
    expect([(await ask(one)).body.status, refreshes()]).toEqual(['needs_reauth', 1]);
  });

  test('is tried while a provider is in trouble, too, and mends what it can', async () => {
    const one = await connectedOne();
    server.misbehave.push({ status: 503 });
    const { body } = await ask(one);
    expect([body.status, typeof body.last_error]).toEqual(['connected', 'string']);
    expect((await ask(one)).body).toMatchObject({ status: 'connected', last_error: null });
    expect(refreshes()).toBe(2);
  });

  test('is for those who may connect the instance, six times a minute', async () => {
    const one = await connectedOne();
    const bob = await colleague(app, one.ann, 'member');
    expect((await ask(one, bob)).status).toBe(403);
    const { ann, instanceId } = await withInstance(app, server);
    expect((await ann.call('POST', `${ann.home}/connections/${instanceId}/refresh`)).status).toBe(404);
    expect((await ann.call('POST', `${ann.home}/connections/${one.instanceId}/refresh`)).status).toBe(404);
    const statuses = [];
    for (let n = 0; n < 7; n++) statuses.push((await ask(one)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429]);
  });
});
