import { getIntrospectionQuery } from 'graphql';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { TokenBuckets } from '../../src/access/throttle.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { type Person, register } from '../support/person.ts';
import { openAcknowledged } from '../support/sockets.ts';

describe('a token bucket', () => {
  it('lets a burst through and then so many per second, to the exact request', () => {
    const buckets = new TokenBuckets(10, 20);
    const admitted = (from: number, requests: number) =>
      Array.from({ length: requests }, () => buckets.take('a', 1, from)).filter((state) => state.allowed).length;
    expect(admitted(0, 100)).toBe(20);
    expect(admitted(99, 100)).toBe(0);
    expect(admitted(100, 100)).toBe(1);
    expect(admitted(1_100, 100)).toBe(10);
    expect(admitted(1_000_000, 100)).toBe(20);
  });

  it('says how many are left, when it is full again and how long to wait, in whole seconds of at least 1', () => {
    const buckets = new TokenBuckets(2, 10);
    expect(buckets.take('a', 4, 0)).toEqual({ allowed: true, limit: 10, remaining: 6, resetSeconds: 2, retryAfter: 0 });
    expect(buckets.take('a', 6, 0)).toEqual({ allowed: true, limit: 10, remaining: 0, resetSeconds: 5, retryAfter: 0 });
    expect(buckets.take('a', 1, 0)).toEqual({
      allowed: false,
      limit: 10,
      remaining: 0,
      resetSeconds: 5,
      retryAfter: 1,
    });
    expect(buckets.take('a', 8, 0).retryAfter).toBe(4);
  });

  it('takes all of a cost or nothing', () => {
    const buckets = new TokenBuckets(1, 10);
    expect(buckets.take('a', 11, 0).allowed).toBe(false);
    expect(buckets.take('a', 10, 0).allowed).toBe(true);
  });

  it('is one for each key', () => {
    const buckets = new TokenBuckets(1, 1);
    expect([buckets.take('a', 1, 0).allowed, buckets.take('b', 1, 0).allowed, buckets.take('a', 1, 0).allowed]).toEqual(
      [true, true, false],
    );
  });
});

describe('the limit of a caller', () => {
  const BURST = 6;
  let app: TestApp;
  let open: TestApp;
  let user: Person;

  beforeAll(async () => {
    // buckets fill with this clock: standing still, it makes every count exact
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    open = await startTestApp();
    app = await open.another({
      RATE_LIMIT_RPS: '1',
      RATE_LIMIT_BURST: String(BURST),
      TRUSTED_PROXIES: '127.0.0.1',
    });
  });
  afterAll(async () => {
    await open.close();
    vi.restoreAllMocks();
  });

  const fresh = async () => {
    user = await register(open);
    return callsOf(app);
  };
  const from = (address: string) => ({ 'x-forwarded-for': address });

  it('is told on every answer', async () => {
    const { get } = await fresh();
    const { headers } = await get('/v1/auth/me', user.headers);
    expect(headers['x-ratelimit-limit']).toBe(String(BURST));
    expect(headers['x-ratelimit-remaining']).toBe(String(BURST - 1));
    expect(headers['x-ratelimit-reset']).toBe('1');
    for (const url of ['/v1/nowhere', '/v1/orgs/org_x/workspaces', '/v1/users']) {
      expect(Object.keys((await get(url, user.headers)).headers)).toEqual(
        expect.arrayContaining(['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']),
      );
    }
  });

  it('is 429 beyond the burst, with Retry-After and the same in the body', async () => {
    const { get } = await fresh();
    const answers = await Promise.all(Array.from({ length: BURST + 4 }, () => get('/v1/auth/me', user.headers)));
    expect(answers.filter((answer) => answer.statusCode === 200)).toHaveLength(BURST);
    const refused = answers.find((answer) => answer.statusCode === 429)!;
    expect(refused.json()).toMatchObject({
      error: 'RATE_LIMIT_EXCEEDED',
      details: { retry_after: 1 },
      status_code: 429,
    });
    expect(refused.headers).toMatchObject({
      'retry-after': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-limit': String(BURST),
    });
  });

  it('is one for REST and GraphQL, every path and every method', async () => {
    const { get, put, graphql } = await fresh();
    await get('/v1/auth/me', user.headers);
    await get('/v1/auth/me/?x=1', user.headers);
    await put(`/v1/users/${user.userId}`, {}, user.headers);
    const answer = await graphql('{ me { id } }', {}, user.headers);
    expect(answer.headers['x-ratelimit-remaining']).toBe(String(BURST - 4));
  });

  it('counts each root field of GraphQL', async () => {
    const { get, graphql } = await fresh();
    await graphql('{ a: me { id } b: me { id } c: me { id } d: me { id } }', {}, user.headers);
    expect((await get('/v1/auth/me', user.headers)).headers['x-ratelimit-remaining']).toBe(String(BURST - 5));
    const answer = await graphql('{ a: me { id } b: me { id } c: me { id } d: me { id } }', {}, user.headers);
    expect(answer.json().errors[0].extensions).toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
      details: { retry_after: expect.any(Number) },
    });
  });

  it('counts what comes over a socket', async () => {
    const { get } = await fresh();
    const socket = await openAcknowledged(await app.listen(), user.headers.authorization);
    const ask = async (id: string) => {
      socket.send({ id, type: 'subscribe', payload: { query: '{ me { id } }' } });
      return JSON.stringify(await socket.next((message) => message.id === id && message.type !== 'complete'));
    };
    for (let i = 1; i <= BURST; i++) expect(await ask(`${i}`)).toContain(user.userId);
    expect(await ask(`${BURST + 1}`)).toContain('RATE_LIMIT_EXCEEDED');
    expect((await get('/v1/auth/me', user.headers)).statusCode).toBe(429);
    socket.close();
  });

  it('belongs to the user, not to the address or the token', async () => {
    const { get } = await fresh();
    const { access_token } = (
      await callsOf(open).post('/v1/auth/login', { username: user.username, password: user.password })
    ).json();
    await get('/v1/auth/me', { ...user.headers, ...from('198.51.100.20') });
    const answer = await get('/v1/auth/me', { authorization: access_token, ...from('198.51.100.21') });
    expect(answer.headers['x-ratelimit-remaining']).toBe(String(BURST - 2));
  });

  it('belongs to the address of a stranger, whatever headers pretend', async () => {
    const { get } = await fresh();
    const remaining = async (headers: Record<string, string>) =>
      Number((await get('/v1/auth/config', headers)).headers['x-ratelimit-remaining']);
    expect(await remaining(from('198.51.100.30'))).toBe(BURST - 1);
    expect(await remaining(from('9.9.9.9, 198.51.100.30'))).toBe(BURST - 2);
    expect(await remaining({ ...from('198.51.100.30'), 'x-real-ip': '9.9.9.9', forwarded: 'for=9.9.9.9' })).toBe(
      BURST - 3,
    );
    expect(await remaining({ ...from('198.51.100.30'), authorization: 'Bearer made-up' })).toBe(BURST - 4);
    expect(await remaining(from('198.51.100.31'))).toBe(BURST - 1);
  });

  it('counts a whole /64 of IPv6 as one address', async () => {
    const { get } = await fresh();
    const remaining = async (address: string) =>
      Number((await get('/v1/auth/config', from(address))).headers['x-ratelimit-remaining']);
    expect(await remaining('2001:db8:0:1::1')).toBe(BURST - 1);
    expect(await remaining('2001:db8:0:1:ffff::2')).toBe(BURST - 2);
    expect(await remaining('2001:db8:0:2::1')).toBe(BURST - 1);
  });

  it('is charged by size for questions about the schema itself', async () => {
    const small = await startTestApp({
      env: { RATE_LIMIT_RPS: '1', RATE_LIMIT_BURST: '60', DATA_DIR: open.dataDir },
      databaseUrl: open.database.url,
    });
    try {
      const ask = async () => (await callsOf(small).graphql(getIntrospectionQuery())).json();
      // each takes half of what may be had at once, whatever the limit is
      expect((await ask()).errors).toBeUndefined();
      await ask();
      expect((await ask()).errors).toMatchObject([{ extensions: { code: 'RATE_LIMIT_EXCEEDED' } }]);
    } finally {
      await small.close();
    }
  });

  it('does not believe X-Forwarded-For of a peer that is no trusted proxy', async () => {
    const direct = await startTestApp({
      env: { RATE_LIMIT_RPS: '1', RATE_LIMIT_BURST: '2', DATA_DIR: open.dataDir },
      databaseUrl: open.database.url,
    });
    try {
      const { get } = callsOf(direct);
      const statuses = [];
      for (const address of ['198.51.100.40', '198.51.100.41', '198.51.100.42']) {
        statuses.push((await get('/v1/auth/config', from(address))).statusCode);
      }
      expect(statuses).toEqual([200, 200, 429]);
    } finally {
      await direct.close();
    }
  });

  it('leaves probes and metrics alone', async () => {
    const { get } = await fresh();
    for (let request = 0; request < BURST * 2; request++)
      expect((await get('/healthz', from('198.51.100.50'))).statusCode).toBe(200);
    expect((await get('/metrics', from('198.51.100.50'))).headers['x-ratelimit-limit']).toBeUndefined();
  });

  it('is off where it is set to 0', async () => {
    expect((await callsOf(open).get('/v1/auth/config')).headers['x-ratelimit-limit']).toBeUndefined();
  });
});

describe('credentials in GraphQL', () => {
  it('may be tried once per request: aliases cannot guess in bulk', async () => {
    const app = await startTestApp();
    try {
      const account = await register(app);
      const guess = (alias: string, password: string) =>
        `${alias}: login(input: { username: "${account.username}", password: "${password}" }) { expiresIn }`;
      const answer = await callsOf(app).graphql(
        `mutation { ${guess('a', 'wrong password')} ${guess('b', account.password)} }`,
      );
      expect(answer.json()).toMatchObject({ errors: [{ extensions: { code: 'OPERATION_TOO_LARGE' } }] });
      expect(answer.json().data ?? null).toBeNull();
      expect(await app.database.prisma.session.count()).toBe(1);
    } finally {
      await app.close();
    }
  });
});
