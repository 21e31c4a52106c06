import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { startOwnApp, startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { waitFor, waitUntil } from '../support/wait.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());

const get = (url: string) => app.server.inject({ url, headers: owner.headers });

describe('health', () => {
  it('says that the process lives, and what it is ready for', async () => {
    expect((await app.server.inject('/healthz')).json()).toEqual({ status: 'ok' });
    const ready = await app.server.inject('/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([
      200,
      {
        status: 'ready',
        checks: { database: 'ok', files: 'ok', shutdown: 'ok' },
        events: { lag_seconds: expect.any(Number) as number, waiting: expect.any(Number) as number },
      },
    ]);
  });

  it('knows how late events are as soon as it can be asked again', async () => {
    const lags = async () => (await app.server.inject('/readyz')).json<{ events: object | null }>().events;
    const { sql } = app.services;
    const read = sql.read.bind(sql);
    vi.spyOn(sql, 'read').mockImplementation(async (text, values) => {
      if (text.includes('as waiting')) throw new Error('the connection was lost');
      return read(text, values);
    });
    await waitFor(async () => expect(await lags()).toBeNull());
    vi.restoreAllMocks();
    expect(await lags()).toEqual({ lag_seconds: expect.any(Number) as number, waiting: expect.any(Number) as number });
  });

  it('reports an unreachable database, and answers requests with 503 in the shape of every error', async () => {
    const lonely = await startOwnApp({ ownDatabase: true });
    const account = await register(lonely);
    const authorization = account.headers;
    await lonely.database.pool.end();
    // what was measured a moment before is shown for half a second
    const metrics = await waitUntil(async () => {
      const { body } = await lonely.server.inject('/metrics');
      return body.includes('\nplatform_event_lag_seconds Nan\n') && body;
    });
    expect(metrics).not.toMatch(/^platform_nodes\{/m);
    const ready = await lonely.server.inject('/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([
      503,
      { status: 'not ready', checks: { database: 'cannot be reached', files: 'ok', shutdown: 'ok' }, events: null },
    ]);
    const answer = await lonely.server.inject({ url: `/v1/orgs/${account.orgId}/workspaces`, headers: authorization });
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toMatchObject({
      error: 'SERVICE_UNAVAILABLE',
      details: { retry_after: 1 },
      status_code: 503,
    });
    expect(answer.headers['retry-after']).toBe('1');
    await lonely.server.close();
    await lonely.stop();
  });

  it('shows the public keys of its tokens and nothing private', async () => {
    const { keys } = (await app.server.inject('/.well-known/jwks.json')).json<{ keys: Record<string, string>[] }>();
    // more than one where a file before this one has rotated them
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });
});

describe('metrics', () => {
  it('counts requests by route template and status, and shows pool, queues and event loop', async () => {
    await get(`/v1/orgs/${owner.orgId}/workspaces`);
    const text = (await app.server.inject('/metrics')).body;
    const route = String.raw`\/v1\/orgs\/\{org_id\}\/workspaces`;
    expect(text).toMatch(
      new RegExp(String.raw`platform_http_requests_total\{method="GET",route="${route}",status="200"\} [1-9]`),
    );
    for (const name of [
      'nodejs_eventloop_lag_p99_seconds',
      'platform_database_pool_waiting_requests',
      'platform_activity_queue_depth',
      'platform_event_streams',
      'platform_password_queue_depth',
      'platform_outbound_calls_running',
      'platform_outbound_calls_waiting',
      'platform_outbound_connections_idle',
    ]) {
      expect(text).toContain(`\n${name} `);
    }
    expect(text).not.toContain(owner.orgId);
  });
});

describe('outbound calls', () => {
  it('are counted by outcome', async () => {
    const call = app.services.outbound.request({ url: 'https://169.254.169.254/latest/meta-data' });
    await expect(call).rejects.toMatchObject({ code: 'blocked_address' });
    const text = (await app.server.inject('/metrics')).body;
    expect(text).toContain('\nplatform_outbound_calls_total{outcome="blocked_address"} 1\n');
    expect(text).toContain('\nplatform_outbound_calls_running 0\n');
  });
});

describe('trace ids', () => {
  it('echoes a usable one and stores it with the activity record', async () => {
    const answer = await app.server.inject({
      url: '/v1/auth/me',
      headers: { ...owner.headers, 'x-trace-id': 'my-trace.1' },
    });
    expect(answer.headers['x-trace-id']).toBe('my-trace.1');
    await app.services.activity.flush();
    expect(
      await app.database.prisma.activity.count({
        where: { traceId: 'my-trace.1', action: 'read', resourceType: 'user' },
      }),
    ).toBe(1);
  });

  it('replaces an unusable one, and takes the trace of traceparent where there is none', async () => {
    const bad = await app.server.inject({ url: '/healthz', headers: { 'x-trace-id': 'a b\tc' } });
    expect(bad.headers['x-trace-id']).toMatch(/^[0-9a-f-]{36}$/);
    const parent = await app.server.inject({
      url: '/healthz',
      headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
    });
    expect(parent.headers['x-trace-id']).toBe('4bf92f3577b34da6a3ce929d0e0e4736');
  });
});

describe('background tasks', () => {
  it('move the bucket of a new workspace from pending to ready, make its folder and say so on the stream', async () => {
    const created = await app.server.inject({
      method: 'POST',
      url: `/v1/orgs/${owner.orgId}/workspaces`,
      headers: owner.headers,
      payload: { organization_id: owner.orgId, name: 'with a bucket' },
    });
    const { workspace_id: id, bucket_status, storage_bucket } = created.json<Record<string, string>>();
    expect(bucket_status).toBe('pending');
    expect(storage_bucket).toBe(id!.toLowerCase());
    await waitUntil(
      async () =>
        (await get(`/v1/orgs/${owner.orgId}/workspaces/${id}`)).json<{ bucket_status: string }>().bucket_status ===
        'ready',
    );
    expect(existsSync(path.join(app.dataDir, 'files', storage_bucket!))).toBe(true);
    expect(await app.database.prisma.event.count({ where: { resourceId: id!, type: 'workspace.updated' } })).toBe(1);
  });

  it('remove what is past its time and keep the rest', async () => {
    const gone = await register(app);
    const kept = await register(app);
    const monthAgo = new Date(Date.now() - 31 * 24 * 3_600_000);
    await app.database.prisma.workspace.update({ where: { id: gone.workspaceId }, data: { deletedAt: monthAgo } });
    await app.database.prisma.workspace.update({ where: { id: kept.workspaceId }, data: { deletedAt: new Date() } });
    await app.database.prisma.user.update({
      where: { id: gone.userId },
      data: { isActive: false, deactivatedAt: monthAgo },
    });
    await app.retention.run();
    expect(await app.database.prisma.workspace.findUnique({ where: { id: gone.workspaceId } })).toBeNull();
    expect(await app.database.prisma.workspace.findUnique({ where: { id: kept.workspaceId } })).not.toBeNull();
    const purged = await app.database.prisma.user.findUniqueOrThrow({ where: { id: gone.userId } });
    expect([purged.email, purged.username, purged.passwordHash]).toEqual([
      `deleted-${gone.userId}@invalid`,
      gone.userId,
      null,
    ]);
    expect((await app.database.prisma.user.findUniqueOrThrow({ where: { id: kept.userId } })).email).toBe(kept.email);
  });
});

describe('retention', () => {
  const ago = (days: number) => new Date(Date.now() - days * 24 * 3_600_000);

  it('empties deleted accounts without a password too, each once, and no suspended one', async () => {
    const { prisma } = app.database;
    const [elsewhere, suspended] = [await register(app), await register(app)];
    const withoutPassword = { isActive: false, passwordHash: null, fullName: 'Somebody' };
    await prisma.user.update({ where: { id: elsewhere.userId }, data: { ...withoutPassword, deactivatedAt: ago(31) } });
    await prisma.user.update({ where: { id: suspended.userId }, data: withoutPassword });
    await app.retention.run();
    const purged = await prisma.user.findUniqueOrThrow({ where: { id: elsewhere.userId } });
    expect([purged.email, purged.fullName]).toEqual([`deleted-${elsewhere.userId}@invalid`, null]);
    await app.retention.run();
    expect(await prisma.user.findUniqueOrThrow({ where: { id: elsewhere.userId } })).toEqual(purged);
    const kept = await prisma.user.findUniqueOrThrow({ where: { id: suspended.userId } });
    expect([kept.email, kept.fullName]).toEqual([suspended.email, 'Somebody']);
  });

  it('keeps events for 7 days and the audit trail for 90', async () => {
    const { prisma } = app.database;
    const account = await register(app);
    for (const name of ['one', 'two', 'three'])
      await app.server.inject({
        method: 'PUT',
        url: `/v1/orgs/${account.orgId}/workspaces/${account.workspaceId}`,
        headers: account.headers,
        payload: { name },
      });
    const events = await prisma.event.findMany({
      where: {
        orgId: account.orgId,
        type: 'workspace.updated',
        actor: { path: ['principal_id'], equals: account.userId },
      },
      orderBy: { seq: 'asc' },
      select: { id: true },
    });
    expect(events).toHaveLength(3);
    for (const [index, days] of [8, 6, 0].entries())
      await prisma.event.update({
        where: { id: events[index]!.id },
        data: { timestamp: ago(days) },
        select: { id: true },
      });
    await app.retention.run();
    const keptEvents = await prisma.event.findMany({
      where: { id: { in: events.map(({ id }) => id) } },
      orderBy: { seq: 'asc' },
      select: { id: true },
    });
    expect(keptEvents).toEqual(events.slice(1));
  });

  it('removes the files of workspaces that go, be it with their organization, and keeps the others', async () => {
    const [alone, withAll, young, living] = await Promise.all(Array.from({ length: 4 }, () => register(app)));
    const { prisma } = app.database;
    const folder = ({ workspaceId }: Person) => path.join(app.dataDir, 'files', workspaceId.toLowerCase());
    const accounts = [alone!, withAll!, young!, living!];
    await waitFor(() =>
      expect(accounts.map((account) => existsSync(folder(account)))).toEqual([true, true, true, true]),
    );
    writeFileSync(path.join(folder(alone!), 'a file'), 'of a tenant');
    await prisma.workspace.update({ where: { id: alone!.workspaceId }, data: { deletedAt: ago(31) } });
    await prisma.organization.update({ where: { id: withAll!.orgId }, data: { deletedAt: ago(31) } });
    await prisma.workspace.update({ where: { id: young!.workspaceId }, data: { deletedAt: ago(29) } });
    await app.retention.run();
    expect(accounts.map((account) => existsSync(folder(account)))).toEqual([false, false, true, true]);
    expect(
      await prisma.workspace.count({ where: { id: { in: accounts.map((account) => account.workspaceId) } } }),
    ).toBe(2);
  });

  it('removes the counters of organizations that go, and keeps those of the others', async () => {
    const [gone, kept] = await Promise.all([register(app), register(app)]);
    const counters = ({ orgId }: Person) => app.database.prisma.resourceCount.count({ where: { orgId } });
    expect(await counters(gone)).toBeGreaterThan(0);
    await app.database.prisma.organization.update({ where: { id: gone.orgId }, data: { deletedAt: ago(31) } });
    await app.retention.run();
    expect(await app.database.prisma.organization.findUnique({ where: { id: gone.orgId } })).toBeNull();
    expect(await counters(gone)).toBe(0);
    expect(await counters(kept)).toBeGreaterThan(0);
  });
});

describe('configuration', () => {
  it('gives the limits of a request their documented defaults', () => {
    expect(loadConfig({})).toMatchObject({
      bodyLimitBytes: 2 * 1024 * 1024,
      rateLimitRps: 500,
      rateLimitBurst: 1000,
      accessTokenTtlSeconds: 1800,
    });
  });
});

describe('totals', () => {
  it('equal the number of workspaces that are not deleted, through creates, deletes and restores at once', async () => {
    const account = await register(app);
    const create = () =>
      app.server.inject({
        method: 'POST',
        url: `/v1/orgs/${account.orgId}/workspaces`,
        headers: account.headers,
        payload: { organization_id: account.orgId, name: 'counted' },
      });
    const made = await Promise.all(Array.from({ length: 12 }, create));
    const ids = made.map((answer) => answer.json<{ workspace_id: string }>().workspace_id);
    await Promise.all(
      ids.slice(0, 5).map((id) =>
        app.server.inject({
          method: 'DELETE',
          url: `/v1/orgs/${account.orgId}/workspaces/${id}`,
          headers: account.headers,
        }),
      ),
    );
    await app.database.pool.query('update workspaces set deleted_at = null where id = $1', [ids[0]]);
    const { total } = (
      await app.server.inject({ url: `/v1/orgs/${account.orgId}/workspaces?limit=1`, headers: account.headers })
    ).json<{ total: number }>();
    expect(total).toBe(1 + 12 - 5 + 1);
  });
});
