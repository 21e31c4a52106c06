import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TokenBuckets } from '../../../src/access/throttle.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { openAcknowledged, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';

describe('a bucket with a line of its own', () => {
  it('lets through its burst and its rate exactly, beside the usual line', () => {
    const buckets = new TokenBuckets(500, 1_000);
    const own = { rps: 2, burst: 10 };
    const admitted = (now: number, requests: number) =>
      Array.from({ length: requests }, () => buckets.take('token', 1, now, own)).filter(({ allowed }) => allowed)
        .length;
    expect(admitted(0, 1_000)).toBe(10);
    expect(admitted(499, 1_000)).toBe(0);
    expect(admitted(500, 1_000)).toBe(1);
    expect(admitted(10_500, 1_000)).toBe(10);
    expect(buckets.take('token', 1, 10_500, own)).toEqual({
      allowed: false,
      limit: 10,
      remaining: 0,
      resetSeconds: 5,
      retryAfter: 1,
    });
    expect(buckets.take('user', 1, 0).limit).toBe(1_000);
  });
});

describe('the limit of a token', () => {
  let app: TestApp;
  let limited: TestApp;
  let owner: Person;
  let now: number;

  beforeAll(async () => {
    app = await startTestApp();
    limited = await app.another({ RATE_LIMIT_RPS: '3', RATE_LIMIT_BURST: '7' });
    await app.listen();
    owner = await register(app);
  });
  afterAll(() => app.close());
  // buckets fill with this clock: standing still, it makes every count exact
  beforeEach(() => {
    now = Math.floor(performance.now());
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now);
    return () => spy.mockRestore();
  });

  const ask = (headers: { authorization: string }, node = app) => callsOf(node).get('/v1/auth/config', headers);
  const remaining = async (headers: { authorization: string }) =>
    Number((await ask(headers)).headers['x-ratelimit-remaining']);

  it.each([
    [{ rate_limit_rps: 4, rate_limit_burst: 6 }, 6, 4, 6, 4],
    [{ rate_limit_rps: 4 }, 8, 4, 8, 4],
    [{ rate_limit_burst: 6 }, 6, 500, 6, 3],
    [{}, null, null, 7, 3],
  ])(
    '%j: its own where set, else the usual line, also where the service has none',
    async (body, burst, rps, burstOf, rpsOf) => {
      const { headers } = await issueToken(app, owner, body);
      for (const [node, limit, rate] of [
        [app, burst, rps],
        [limited, burstOf, rpsOf],
      ] as const) {
        const admitted = async () => {
          const answers = await Promise.all(Array.from({ length: 20 }, () => ask(headers, node)));
          return answers.filter(({ statusCode }) => statusCode === 200).length;
        };
        expect((await ask(headers, node)).headers['x-ratelimit-limit']).toBe(
          limit === null ? undefined : String(limit),
        );
        if (limit === null || rate === null) continue;
        expect(await admitted()).toBe(limit - 1);
        now += 1_000;
        expect(await admitted()).toBe(Math.min(limit, rate));
      }
    },
  );

  it('of 1,000 requests at once lets through the burst and no more, with Retry-After', async () => {
    const { headers } = await issueToken(app, owner, { rate_limit_rps: 5, rate_limit_burst: 10 });
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => ask(headers)));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(10);
    const refused = answers.find(({ statusCode }) => statusCode === 429)!;
    expect(refused.headers).toMatchObject({
      'retry-after': '1',
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
    });
    expect(refused.json().details).toEqual({ retry_after: 1 });
  });

  it('bounds what it made too: a token that a token made draws on both', async () => {
    const parent = await issueToken(app, owner, {
      permissions: ['api_token:create', 'organization:access', 'user:read'],
      rate_limit_rps: 5,
      rate_limit_burst: 10,
    });
    const mint = async (maker: typeof parent, body: object) => {
      const url = `/v1/orgs/${owner.orgId}/api-tokens`;
      const answer = await callsOf(app).post(url, { name: 'made', ...body }, maker.headers);
      expect(answer.statusCode).toBe(201);
      return { authorization: `Bearer ${answer.json().plaintext_token}` };
    };
    const names = { permissions: ['user:read'], rate_limit_rps: 4, rate_limit_burst: 4 };
    const [one, two] = [await mint(parent, names), await mint(parent, names)];
    const deep = await mint(parent, { ...names, permissions: ['api_token:create', 'user:read'] });
    const grandchild = await mint({ ...parent, headers: deep }, names);
    now += 10_000;
    const admitted = async (headers: { authorization: string }) => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask(headers)));
      return answers.filter(({ statusCode }) => statusCode === 200).length;
    };
    expect([await admitted(one), await admitted(two), await admitted(grandchild)]).toEqual([4, 4, 2]);
    expect(await admitted(parent.headers)).toBe(0);
    now += 1_000;
    // what a token may not do for itself takes nothing from its maker
    expect([await admitted(one), await admitted(parent.headers)]).toEqual([4, 1]);
  });

  it('is one for REST, GraphQL by its root fields, WebSocket and the opening of streams', async () => {
    const { headers } = await issueToken(app, owner, { rate_limit_rps: 1, rate_limit_burst: 20 });
    const { graphql } = callsOf(app);
    expect(await remaining(headers)).toBe(19);
    await graphql('{ a: organizations { totalCount } b: organizations { totalCount } }', {}, headers);
    expect(await remaining(headers)).toBe(16);
    const socket = await openAcknowledged(app.url, headers.authorization); // the upgrade is a stranger's request
    const query = `{ a: organizations { totalCount } b: organizations { totalCount } c: organizations { totalCount } }`;
    socket.send({ id: '1', type: 'subscribe', payload: { query } });
    await socket.next(({ id, type }) => id === '1' && type === 'next');
    socket.close();
    expect(await remaining(headers)).toBe(12);
    const stream = await openEvents(`${app.url}/graphql`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({
        query: `subscription { workspaceEvents(orgId: "${owner.orgId}", workspaceId: "${owner.workspaceId}") { id } }`,
      }),
    });
    stream.close();
    expect(await remaining(headers)).toBe(10);
  });

  it('counts what a socket asks for whatever comes of it: no document, an invalid one, a refused one', async () => {
    const { headers } = await issueToken(app, owner, { rate_limit_rps: 1, rate_limit_burst: 5 });
    const socket = await openAcknowledged(app.url, headers.authorization);
    const ask = async (id: string, query: string) => {
      socket.send({ id, type: 'subscribe', payload: { query } });
      const answer = JSON.stringify(await socket.next((message) => message.id === id && message.type !== 'complete'));
      return answer.includes('RATE_LIMIT_EXCEEDED') ? 'limited' : 'answered';
    };
    const documents = ['{', '{ nope }', '{ organization(id: "org_none") { id } }', '{ me { id } }', '}'];
    for (const [index, query] of documents.entries()) expect(await ask(`a${index}`, query)).toBe('answered');
    for (const [index, query] of documents.entries()) expect(await ask(`b${index}`, query)).toBe('limited');
    expect((await callsOf(app).get('/v1/auth/me', headers)).statusCode).toBe(429);
    now += 1_000;
    expect(await ask('later', '{ nope }')).toBe('answered');
    socket.close();
  });

  it('tells an operation that asks for more than the burst that it will never fit', async () => {
    const { headers } = await issueToken(app, owner, { rate_limit_rps: 2, rate_limit_burst: 10 });
    const fields = (count: number) =>
      `{ ${Array.from({ length: count }, (_, i) => `a${i}: organizations { totalCount }`).join(' ')} }`;
    const refusal = async (count: number) =>
      (await callsOf(app).graphql(fields(count), {}, headers)).json().errors?.[0];
    // one was taken on arrival: full again in half a second, which rounds up to one
    expect(await refusal(12)).toMatchObject({
      message: 'The operation counts as 12 requests; you may make 10 at once.',
      extensions: { code: 'RATE_LIMIT_EXCEEDED', details: { retry_after: 1 } },
    });
    now += 1_000;
    expect(await refusal(10)).toBeUndefined();
    expect((await callsOf(app).graphql(fields(1), {}, headers)).statusCode).toBe(429);
  });

  it('is not that of its user, nor of another token; what it is refreshed to shares it', async () => {
    const own = { rate_limit_rps: 1, rate_limit_burst: 5 };
    const [one, two] = [await issueToken(app, owner, own), await issueToken(app, owner, own)];
    expect([await remaining(one.headers), await remaining(one.headers)]).toEqual([4, 3]);
    expect(await remaining(two.headers)).toBe(4);
    const next = await callsOf(app).post(`/v1/orgs/${owner.orgId}/api-tokens/refresh`, {
      refresh_token: one.refresh_token_plaintext,
    });
    expect(await remaining({ authorization: next.json().plaintext_token })).toBe(2);
  });
});
