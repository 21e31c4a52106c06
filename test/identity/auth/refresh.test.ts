import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { expectUnauthenticated } from '../../support/error-shapes.ts';
import { addToWorkspace, type Person, register } from '../../support/person.ts';
import { waitUntil } from '../../support/wait.ts';

let app: TestApp;
let api: Calls;
let user: Person;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
});
afterAll(() => app.close());
beforeEach(async () => {
  user = await register(app);
});

const refresh = (refresh_token: string) => api.post('/v1/auth/refresh', { refresh_token });
const next = async (token: string) => {
  const answer = await refresh(token);
  expect(answer.statusCode).toBe(200);
  return answer.json<{ access_token: string; refresh_token: string }>();
};
const hashOf = (token: string) => createHash('sha256').update(token).digest('hex');
const me = (accessToken: string) => api.get('/v1/auth/me', { authorization: `Bearer ${accessToken}` });
const tokensOf = ({ userId }: Person) => app.database.prisma.refreshToken.count({ where: { session: { userId } } });

/** Lets so many seconds pass since a token was replaced. */
const replacedAgo = (token: string, seconds: number) =>
  app.database.prisma.refreshToken.update({
    where: { hash: hashOf(token) },
    data: { replacedAt: new Date(Date.now() - seconds * 1_000) },
  });

/** When the token was given out a second time. */
const reissuedAgo = (token: string, seconds: number) =>
  app.database.prisma.refreshToken.update({
    where: { hash: hashOf(token) },
    data: { reissuedAt: new Date(Date.now() - seconds * 1_000) },
  });

describe('a refresh', () => {
  it('answers the four token fields in the order of the spec, without the user', async () => {
    const answer = await refresh(user.refreshToken);
    expect(Object.keys(answer.json())).toEqual(['access_token', 'refresh_token', 'token_type', 'expires_in']);
    expect(answer.json()).toMatchObject({ token_type: 'bearer', expires_in: 1800 });
  });

  it('gives a new pair that works', async () => {
    const pair = await next(user.refreshToken);
    expect(pair.refresh_token).not.toBe(user.refreshToken);
    expect(pair.access_token).not.toBe(user.accessToken);
    expect((await me(pair.access_token)).json().user_id).toBe(user.userId);
    expect((await me((await next(pair.refresh_token)).access_token)).statusCode).toBe(200);
  });

  it('leaves the access token of before as it was', async () => {
    await next(user.refreshToken);
    expect((await me(user.accessToken)).statusCode).toBe(200);
  });

  it('hands out tokens of 256 bits and keeps only their hashes', async () => {
    const { refresh_token } = await next(user.refreshToken);
    expect(Buffer.from(refresh_token, 'base64url')).toHaveLength(32);
    const [row] = await app.database.prisma.$queryRaw<
      { n: number }[]
    >`select count(*)::int as n from refresh_tokens t where t::text like ${`%${refresh_token}%`}`;
    expect(row?.n).toBe(0);
  });

  it('gives 50 that come at once with one token the same successor, and makes exactly one', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => refresh(user.refreshToken)));
    expect(answers.map((answer) => answer.statusCode)).toEqual(Array(50).fill(200));
    expect(new Set(answers.map((answer) => answer.json().refresh_token)).size).toBe(1);
    expect(await tokensOf(user)).toBe(2);
    expect((await me(answers[49]!.json().access_token)).statusCode).toBe(200);
  });

  it('keeps the organization that was switched to', async () => {
    const other = await register(app);
    await addToWorkspace(app, other, user.userId);
    const switched = await api.post('/v1/auth/switch-org', { org_id: other.orgId }, user.headers);
    expect(switched.statusCode).toBe(200);
    const { access_token } = await next(user.refreshToken);
    expect((await me(access_token)).json().settings.current_org_id).toBe(other.orgId);
  });

  it('is recorded under the account', async () => {
    await api.post('/v1/auth/refresh', { refresh_token: user.refreshToken }, { 'x-trace-id': 'a-refresh' });
    await app.services.activity.flush();
    expect(await app.database.prisma.activity.findMany({ where: { traceId: 'a-refresh' } })).toMatchObject([
      { action: 'refresh', resourceType: 'user', userId: user.userId, statusCode: 200, success: true },
    ]);
  });
});

describe('a refresh token that was replaced', () => {
  it('still gives the same successor within 60 seconds', async () => {
    // what a busy machine has not asked in time says nothing: it is tried again, by somebody else
    const { refresh_token, answer, who } = await waitUntil(async () => {
      const who = await register(app);
      const { refresh_token } = await next(who.refreshToken);
      const begun = Date.now();
      await replacedAgo(who.refreshToken, 58);
      const answer = await refresh(who.refreshToken);
      return Date.now() - begun < 2_000 && { refresh_token, answer, who };
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.json<{ refresh_token: string }>().refresh_token).toBe(refresh_token);
    expect(await tokensOf(who)).toBe(2);
  });

  it('ends the whole session when it comes back later: no token of it works any more', async () => {
    const pair = await next(user.refreshToken);
    await replacedAgo(user.refreshToken, 61);
    expectUnauthenticated(await refresh(user.refreshToken));
    expectUnauthenticated(await me(pair.access_token));
    expectUnauthenticated(await me(user.accessToken));
    expectUnauthenticated(await refresh(pair.refresh_token));
  });

  it('gives that successor within 60 seconds although it was used itself, and ends nothing', async () => {
    const second = await next(user.refreshToken);
    const third = await next(second.refresh_token);
    const fourth = await next(third.refresh_token);
    await replacedAgo(user.refreshToken, 30);
    expect((await next(user.refreshToken)).refresh_token).toBe(second.refresh_token);
    expect((await next(second.refresh_token)).refresh_token).toBe(third.refresh_token);
    for (const { access_token } of [second, third, fourth]) expect((await me(access_token)).statusCode).toBe(200);
    expect((await me((await next(fourth.refresh_token)).access_token)).statusCode).toBe(200);
    expect(await tokensOf(user)).toBe(5);
  });

  it('never ends the session of two tabs, whichever of them refreshes when', async () => {
    const steps = 5;
    const orders = Array.from({ length: 2 ** steps }, (_, bits) =>
      Array.from({ length: steps }, (_, step) => ((bits >> step) & 1) as 0 | 1),
    );
    await Promise.all(
      orders.map(async (order) => {
        const { refreshToken } = await register(app);
        const tabs = [refreshToken, refreshToken] as [string, string];
        for (const tab of order) tabs[tab] = (await next(tabs[tab])).refresh_token;
        for (const held of tabs) expect((await me((await next(held)).access_token)).statusCode).toBe(200);
      }),
    );
  });

  it('does not strand who gets an already used successor: it works once more, and gives the newest', async () => {
    const second = await next(user.refreshToken);
    const third = await next(second.refresh_token);
    const fourth = await next(third.refresh_token);
    expect((await next(user.refreshToken)).refresh_token).toBe(second.refresh_token);
    for (const token of [user.refreshToken, second.refresh_token, third.refresh_token]) await replacedAgo(token, 1_800);
    const late = await Promise.all([next(second.refresh_token), next(second.refresh_token)]);
    for (const { refresh_token } of late) expect(refresh_token).toBe(fourth.refresh_token);
    for (const { access_token } of late) expect((await me(access_token)).statusCode).toBe(200);
    expect((await next(fourth.refresh_token)).refresh_token).not.toBe(fourth.refresh_token);
    // once more, no more: an hour after it was given out again it is somebody else who has it
    await reissuedAgo(second.refresh_token, 3_601);
    expectUnauthenticated(await refresh(second.refresh_token));
    expectUnauthenticated(await me(fourth.access_token));
  });

  it('owes nothing for what it gave so late: who comes late with that too ends the session', async () => {
    const second = await next(user.refreshToken);
    await next(user.refreshToken);
    const third = await next(second.refresh_token);
    await replacedAgo(second.refresh_token, 1_800);
    expect((await next(second.refresh_token)).refresh_token).toBe(third.refresh_token);
    const fourth = await next(third.refresh_token);
    await replacedAgo(third.refresh_token, 61);
    expectUnauthenticated(await refresh(third.refresh_token));
    expectUnauthenticated(await me(fourth.access_token));
  });

  it('ends the session when it comes back later, also after it was repeated in time', async () => {
    const pair = await next(user.refreshToken);
    await next(user.refreshToken);
    await replacedAgo(user.refreshToken, 61);
    expectUnauthenticated(await refresh(user.refreshToken));
    expectUnauthenticated(await me(pair.access_token));
  });

  it('leaves other sessions of the account alone', async () => {
    const other = (await api.post('/v1/auth/login', { username: user.username, password: user.password })).json();
    await next(user.refreshToken);
    await replacedAgo(user.refreshToken, 61);
    await refresh(user.refreshToken);
    expect((await me(other.access_token)).statusCode).toBe(200);
  });

  it('leaves a record when it ended a session', async () => {
    await next(user.refreshToken);
    await replacedAgo(user.refreshToken, 61);
    await api.post('/v1/auth/refresh', { refresh_token: user.refreshToken }, { 'x-trace-id': 'a-reuse' });
    await app.services.activity.flush();
    expect(await app.database.prisma.activity.findMany({ where: { traceId: 'a-reuse' } })).toMatchObject([
      {
        action: 'refresh',
        resourceId: user.userId,
        principalType: 'anonymous',
        statusCode: 401,
        metadata: { session_ended: 'refresh_token_reuse' },
      },
    ]);
  });
});

describe('a session', () => {
  it('ends after 7 days without a refresh, which each refresh puts off', async () => {
    const idleDays = async (token: string) => {
      const { expiresAt } = await app.database.prisma.refreshToken.findUniqueOrThrow({
        where: { hash: hashOf(token) },
      });
      return (expiresAt.getTime() - Date.now()) / 86_400_000;
    };
    expect(await idleDays(user.refreshToken)).toBeCloseTo(7, 1);
    await app.database.prisma.refreshToken.updateMany({
      where: { session: { userId: user.userId } },
      data: { expiresAt: new Date(Date.now() + 600_000) },
    });
    const { refresh_token } = await next(user.refreshToken);
    expect(await idleDays(refresh_token)).toBeCloseTo(7, 1);
    await app.database.prisma.refreshToken.update({
      where: { hash: hashOf(refresh_token) },
      data: { expiresAt: new Date(Date.now() - 1_000) },
    });
    expectUnauthenticated(await refresh(refresh_token));
  });

  it('ends 30 days after the sign-in, whatever is refreshed', async () => {
    const session = await app.database.prisma.session.findFirstOrThrow({ where: { userId: user.userId } });
    expect((session.expiresAt.getTime() - Date.now()) / 86_400_000).toBeCloseTo(30, 1);
    const pair = await next(user.refreshToken);
    await app.database.prisma.session.update({
      where: { id: session.id },
      data: { expiresAt: new Date(Date.now() - 1_000) },
    });
    expectUnauthenticated(await refresh(pair.refresh_token));
    expectUnauthenticated(await refresh(user.refreshToken));
  });

  it('cannot be refreshed by an access token, a made-up token or nothing', async () => {
    expectUnauthenticated(await refresh(user.accessToken));
    expectUnauthenticated(await refresh('made-up'));
    expect((await api.post('/v1/auth/refresh', {})).statusCode).toBe(422);
    expect((await api.post('/v1/auth/refresh', { refresh_token: 'x'.repeat(1_025) })).json().detail[0].input).toBe(
      '[redacted]',
    );
  });

  it('cannot be used by its refresh token as bearer', async () => {
    expectUnauthenticated(await me(user.refreshToken));
  });
});

describe('signing out', () => {
  it('answers 200 null and kills the access token and the refresh token at once', async () => {
    const answer = await api.post('/v1/auth/logout', undefined, user.headers);
    expect([answer.statusCode, answer.body]).toEqual([200, 'null']);
    expectUnauthenticated(await me(user.accessToken));
    expectUnauthenticated(await refresh(user.refreshToken));
    expectUnauthenticated(await api.post('/v1/auth/logout', undefined, user.headers));
  });

  it('ends this session alone', async () => {
    const other = (await api.post('/v1/auth/login', { username: user.username, password: user.password })).json();
    await api.post('/v1/auth/logout', undefined, user.headers);
    expect((await me(other.access_token)).statusCode).toBe(200);
  });

  it('is 401 for a stranger', async () => {
    expectUnauthenticated(await api.post('/v1/auth/logout'));
  });

  it('kills the newest tokens when it is asked with an older access token of the session', async () => {
    const pair = await next(user.refreshToken);
    await api.post('/v1/auth/logout', undefined, user.headers);
    expectUnauthenticated(await me(pair.access_token));
    expectUnauthenticated(await refresh(pair.refresh_token));
  });
});

describe('switching the organization', () => {
  it('gives an access token bound to it, and no refresh token', async () => {
    const other = await register(app);
    await addToWorkspace(app, other, user.userId, 'viewer');
    const answer = await api.post('/v1/auth/switch-org', { org_id: other.orgId }, user.headers);
    expect(Object.keys(answer.json())).toEqual(['access_token', 'token_type', 'expires_in', 'org_id']);
    expect(answer.json()).toMatchObject({ token_type: 'bearer', expires_in: 1800, org_id: other.orgId });
    expect((await me(answer.json().access_token)).json()).toMatchObject({
      roles: ['viewer'],
      settings: { current_org_id: other.orgId },
    });
  });

  it('is 403 organization:access for a foreign one and for one that is not there, with the same body', async () => {
    const other = await register(app);
    const foreign = await api.post('/v1/auth/switch-org', { org_id: other.orgId }, user.headers);
    const missing = await api.post('/v1/auth/switch-org', { org_id: 'org_00000000000000000000000000' }, user.headers);
    expect(foreign.statusCode).toBe(403);
    expect(foreign.json()).toMatchObject({
      error: 'FORBIDDEN',
      details: { required_permission: 'organization:access' },
    });
    expect({ ...missing.json(), timestamp: '' }).toEqual({ ...foreign.json(), timestamp: '' });
    expect((await me((await next(user.refreshToken)).access_token)).json().settings.current_org_id).toBe(user.orgId);
  });
});

describe('a restart', () => {
  it('logs nobody out', async () => {
    const env = { DATA_DIR: app.dataDir };
    const before = await startTestApp({ env, databaseUrl: app.database.url });
    const account = await register(before);
    const first = (await callsOf(before).post('/v1/auth/refresh', { refresh_token: account.refreshToken })).json();
    await before.close();

    const after = await startTestApp({ env, databaseUrl: app.database.url });
    try {
      expect((await callsOf(after).get('/v1/auth/me', account.headers)).json().user_id).toBe(account.userId);
      const repeated = (await callsOf(after).post('/v1/auth/refresh', { refresh_token: account.refreshToken })).json();
      expect(repeated.refresh_token).toBe(first.refresh_token);
    } finally {
      await after.close();
    }
  });
});
