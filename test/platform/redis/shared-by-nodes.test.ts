// own process: starts a server, which is slow from a large process
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { keptLog } from '../../support/log-lines.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { type EventSource, openEvents } from '../../support/sockets.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

const FAILURES = 5;
const BURST = 40;
/** As long as it may be: what comes sooner was not found by a poll. */
const LONG_POLL = { EVENT_POLL_MS: '60000' };

let redis: RedisServer;
let open: TestApp;
let ann: Person;
beforeAll(async () => {
  redis = await startRedis();
  open = await startTestApp();
  ann = await register(open);
});
afterAll(async () => {
  await open.close();
  await redis.stop();
});

const nodes: TestApp[] = [];
const node = async (env: Record<string, string> = {}): Promise<TestApp> => {
  const started = await open.another({
    REDIS_URL: redis.url,
    TRUSTED_PROXIES: '127.0.0.1',
    LOGIN_FAILURES_PER_MINUTE: String(FAILURES),
    ...env,
  });
  nodes.push(started);
  return started;
};
afterEach(async () => {
  for (const end of asking) await end();
  asking.clear();
  redis.thaw();
  await redis.start(); // if the test has killed it
  for (const one of nodes.splice(0)) await one.close();
});

let addresses = 0;
/** Of a client that has not called yet. */
const newAddress = () => `198.51.100.${++addresses}`;

let names = 0;
/** The status of a failed sign-in, at an account that nobody has, so that no account is locked. */
const failedSignIn = async (app: TestApp, address: string): Promise<number> =>
  (
    await callsOf(app).post(
      '/v1/auth/login',
      { username: `nobody${++names}`, password: 'wrong password' },
      { 'x-forwarded-for': address },
    )
  ).statusCode;

/** How many failures two nodes let pass, asked in turns. */
async function failuresLetPass([a, b]: [TestApp, TestApp]): Promise<number> {
  const address = newAddress();
  const statuses = [];
  for (let n = 0; n < FAILURES + 1; n++) statuses.push(await failedSignIn(a, address), await failedSignIn(b, address));
  return statuses.filter((status) => status === 401).length;
}

interface Ready {
  status: string;
  redis: { status: string; reason?: string; since?: string };
}
const ready = async (app: TestApp) => {
  const answer = await app.server.inject('/readyz');
  return { code: answer.statusCode, body: answer.json<Ready>() };
};
const isShared = async (app: TestApp) => (await ready(app)).body.redis.status === 'ok';
const metric = async (app: TestApp, name: string) =>
  Number(new RegExp(`^${name} (.*)$`, 'm').exec((await app.server.inject('/metrics')).body)?.[1]);

describe('two nodes with one Redis', () => {
  it('count failed sign-ins together, to the exact one, and say that all is well', async () => {
    const [a, b] = [await node(), await node()];
    expect(await failuresLetPass([a, b])).toBe(FAILURES);
    expect(await ready(a)).toMatchObject({ code: 200, body: { status: 'ready', redis: { status: 'ok' } } });
    expect(await metric(b, 'platform_redis_up')).toBe(1);
    expect(await metric(b, 'platform_redis_failures_total')).toBe(0);
  });

  it('count requests together: a caller has one burst, and is told what is left of it', async () => {
    const limits = { RATE_LIMIT_RPS: '1', RATE_LIMIT_BURST: String(BURST) };
    const both = [await node(limits), await node(limits)];
    const from = { 'x-forwarded-for': newAddress() };
    const startedAt = Date.now();
    const answers = await Promise.all(
      Array.from({ length: 2 * BURST }, (_, n) => callsOf(both[n % 2]!).get('/v1/auth/providers', from)),
    );
    const granted = answers.filter(({ statusCode }) => statusCode !== 429);
    // one more flows in each second
    const most = BURST + Math.ceil((Date.now() - startedAt) / 1_000);
    expect(granted.length).toBeGreaterThanOrEqual(BURST);
    expect(granted.length).toBeLessThanOrEqual(most);
    const left = granted.map(({ headers }) => Number(headers['x-ratelimit-remaining'])).sort((x, y) => y - x);
    expect(left[0]).toBe(BURST - 1);
    const refused = answers.find(({ statusCode }) => statusCode === 429)!;
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  });

  it('charge what an operation costs beyond its request together', async () => {
    const limits = { RATE_LIMIT_RPS: '1', RATE_LIMIT_BURST: '10' };
    const [a, b] = [await node(limits), await node(limits)];
    const bob = await register(open);
    const query = `{ ${Array.from({ length: 8 }, (_, n) => `m${n}: me { id }`).join(' ')} }`;
    const ask = (app: TestApp) =>
      app.server.inject({ method: 'POST', url: '/graphql', headers: bob.headers, payload: { query } });
    expect((await ask(a)).json<{ errors?: unknown }>().errors).toBeUndefined();
    const refused = (await ask(b)).json<{ errors: { extensions: { code: string } }[] }>();
    expect(refused.errors[0]!.extensions.code).toBe('RATE_LIMIT_EXCEEDED');
  });

  it('leave no client, account or address in Redis that can be read, and nothing for ever', async () => {
    const a = await node({ RATE_LIMIT_RPS: '5' });
    const address = newAddress();
    await failedSignIn(a, address);
    await a.server.inject({ url: '/v1/auth/me', headers: ann.headers });
    const keys = await redis.client.keys('*');
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) {
      expect(key).toMatch(/^platform:[\w-]{12}:(budget:[a-z_]+|rate:callers|presence):[\w-]{22}$/);
      expect(await redis.client.pttl(key)).not.toBe(-1);
    }
  });
});

/** Requests to all of them, one after the other, until it ends. */
function keepAsking(apps: readonly TestApp[]): { statuses: readonly number[]; end: () => Promise<void> } {
  const statuses: number[] = [];
  const address = newAddress();
  let isOver = false;
  const requests = apps.map(async (app) => {
    while (!isOver) {
      statuses.push(await failedSignIn(app, address));
      statuses.push((await app.server.inject({ url: '/v1/auth/me', headers: ann.headers })).statusCode);
    }
  });
  const end = async (): Promise<void> => {
    isOver = true;
    await Promise.all(requests);
  };
  asking.add(end);
  return { statuses, end };
}
const asking = new Set<() => Promise<void>>();

describe('Redis that is killed', () => {
  it('costs no request: each node counts by itself, says so, and shares again when Redis is back', async () => {
    const { logger, lines } = keptLog();
    const [a, b] = [await node(), await node()];
    const watched = await startTestApp({
      env: { DATA_DIR: open.dataDir, REDIS_URL: redis.url },
      databaseUrl: open.database.url,
      logger,
    });
    nodes.push(watched);
    const { statuses, end } = keepAsking([a, b, watched]);
    await waitUntil(() => statuses.length > 20);
    await redis.kill();
    await waitUntil(async () => !(await isShared(a)) && !(await isShared(b)) && !(await isShared(watched)));
    const soFar = statuses.length;
    await waitUntil(() => statuses.length > soFar + 20);
    expect(await failuresLetPass([a, b])).toBe(2 * FAILURES);

    const { code, body } = await ready(a);
    expect([code, body.status, body.redis.status]).toEqual([200, 'ready', 'away']);
    expect(body.redis.reason).toMatch(/^[A-Z]+$/);
    expect(Date.parse(body.redis.since!)).toBeLessThanOrEqual(Date.now());
    expect(await metric(a, 'platform_redis_up')).toBe(0);
    expect(await metric(a, 'platform_redis_failures_total')).toBeGreaterThan(0);

    await redis.start();
    await waitUntil(async () => (await isShared(a)) && (await isShared(b)) && (await isShared(watched)));
    expect(await failuresLetPass([a, b])).toBe(FAILURES);
    await end();
    expect(statuses.filter((status) => ![200, 401, 429].includes(status))).toEqual([]);
    expect(lines.filter((line) => line.includes('Redis is away'))).toHaveLength(1);
    expect(lines.join('')).not.toContain(redis.password);
    expect(lines.join('')).not.toContain(encodeURIComponent(redis.password));
  });
});

describe('Redis that takes connections and does not answer', () => {
  it('holds up what it was asked once; whoever comes later does not ask, until it answers', async () => {
    const [a, b] = [await node(), await node()];
    redis.freeze();
    expect(await failuresLetPass([a, b])).toBe(2 * FAILURES);
    expect(await ready(a)).toMatchObject({ code: 200, body: { redis: { status: 'away', reason: 'ETIMEDOUT' } } });
    redis.thaw();
    await waitUntil(async () => (await isShared(a)) && (await isShared(b)));
    expect(await failuresLetPass([a, b])).toBe(FAILURES);
  });
});

describe('Redis that is not there at the start', () => {
  it('delays no start for long: the node says it once, and takes Redis when it comes', async () => {
    await redis.kill();
    const { logger, lines } = keptLog();
    const late = await startTestApp({
      env: { DATA_DIR: open.dataDir, REDIS_URL: redis.url, LOGIN_FAILURES_PER_MINUTE: String(FAILURES) },
      databaseUrl: open.database.url,
      logger,
    });
    nodes.push(late);
    expect((await ready(late)).body).toMatchObject({ status: 'ready', redis: { status: 'away' } });
    expect(await failedSignIn(late, newAddress())).toBe(401);
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'Redis is away: until it answers, each node counts budgets by itself, and polls for events of other nodes',
    ]);
    await redis.start();
    await waitUntil(() => isShared(late));
  });

  it('neither does a wrong password, which no log and no probe repeats', async () => {
    const { logger, lines } = keptLog();
    const wrong = await startTestApp({
      env: { DATA_DIR: open.dataDir, REDIS_URL: `redis://:not-the-password@127.0.0.1:${redis.port}` },
      databaseUrl: open.database.url,
      logger,
    });
    nodes.push(wrong);
    const { code, body } = await ready(wrong);
    expect(code).toBe(200);
    expect(body.redis).toMatchObject({ status: 'away', reason: 'WRONGPASS' });
    expect(lines).toHaveLength(1);
    expect(lines[0] + JSON.stringify(body)).not.toContain('not-the-password');
  });
});

const stream = (app: TestApp, person: Person) =>
  openEvents(`${app.url}${ann.home}/sync/stream`, { headers: person.headers });

const updates = ({ events }: EventSource) => events.filter(({ event }) => event === 'workspace.updated').length;
const rename = async (app: TestApp): Promise<void> => {
  const payload = { name: `Name ${++names}` };
  const made = await app.server.inject({ method: 'PUT', url: ann.home, headers: ann.headers, payload });
  expect(made.statusCode).toBe(200);
};

/** Three events of a node reach the stream before two polls could have brought them. */
async function threeArrive(from: TestApp, events: EventSource): Promise<void> {
  const begunAt = performance.now();
  for (const nth of [1, 2, 3]) {
    await rename(from);
    await waitUntil(() => updates(events) === nth);
  }
  expect(performance.now() - begunAt).toBeLessThan(Number(LONG_POLL.EVENT_POLL_MS));
}

describe('events of another node', () => {
  it('reach a stream at once, without its poll', async () => {
    const [a, b] = [await node(LONG_POLL), await node(LONG_POLL)];
    await b.listen();
    const events = await stream(b, ann);
    await events.next(({ event }) => event === 'connected');
    await threeArrive(a, events);
    events.close();
  });

  it('reach it again after Redis was away, and by the poll meanwhile', async () => {
    const [a, b] = [await node(), await node()];
    await b.listen();
    const events = await stream(b, ann);
    await events.next(({ event }) => event === 'connected');
    await redis.kill();
    await rename(a);
    await waitUntil(() => updates(events) === 1);
    await redis.start();
    await waitUntil(async () => (await isShared(a)) && (await isShared(b)));
    events.close();
    const waking = await node(LONG_POLL);
    await waking.listen();
    const later = await stream(waking, ann);
    await later.next(({ event }) => event === 'connected');
    await threeArrive(a, later);
    later.close();
  });
});

describe('who is present', () => {
  const PRESENCE = `subscription Present($orgId: ID!, $workspaceId: ID!) {
    presence(orgId: $orgId, workspaceId: $workspaceId) { userId joinedAt } }`;
  const following = async (app: TestApp) => {
    await app.listen();
    const body = { query: PRESENCE, variables: { orgId: ann.orgId, workspaceId: ann.workspaceId } };
    const events = await openEvents(`${app.url}/graphql`, {
      method: 'POST',
      headers: { ...ann.headers, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify(body),
    });
    const listed = (userId: string) => events.next(({ data }) => data.includes(userId));
    return { events, listed };
  };
  const join = (app: TestApp, person: Person) =>
    app.server.inject({ method: 'POST', url: `${ann.home}/sync/presence/join`, headers: person.headers });

  it('is seen on the other node, read from the database by one of them, and by each without Redis', async () => {
    const [a, b] = [await node(), await node()];
    const both = await Promise.all([following(a), following(b)]);
    const bob = await colleague(open, ann, 'editor');
    expect((await join(a, bob)).statusCode).toBe(200);
    const [one, other] = await Promise.all(both.map(({ listed }) => listed(bob.userId)));
    expect(JSON.parse(one!.data)).toEqual(JSON.parse(other!.data));
    await waitFor(async () => expect(await redis.client.keys('platform:*:presence:*')).toHaveLength(1));
    await redis.kill();
    const eve = await colleague(open, ann, 'admin');
    expect((await join(b, eve)).statusCode).toBe(200);
    await Promise.all(both.map(({ listed }) => listed(eve.userId)));
    for (const { events } of both) events.close();
  });
});
