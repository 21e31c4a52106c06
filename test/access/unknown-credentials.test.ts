import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { formatToken } from '../../src/access/api-token-format.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { type Person, register } from '../support/person.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';
import { openAcknowledged, openSocket } from '../support/sockets.ts';

/** Credentials that are not known to be good are looked up for as long as their address has a budget. */
describe('guesses at tokens', () => {
  const BURST = 5;
  let open: TestApp;
  let app: TestApp;
  let queries: QueryLog;
  let address = 0;
  let from: Record<string, string>;

  beforeAll(async () => {
    // buckets fill with this clock: standing still, it makes every count exact
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    open = await startTestApp();
    app = await open.another({
      RATE_LIMIT_RPS: '1',
      RATE_LIMIT_BURST: String(BURST),
      TRUSTED_PROXIES: '127.0.0.1',
    });
    queries = logQueries(app.database.pool);
    await app.listen();
  });
  afterAll(async () => {
    await open.close();
    vi.restoreAllMocks();
  });
  beforeEach(() => {
    from = { 'x-forwarded-for': `198.51.100.${++address}` };
  });

  /** How often somebody was looked up. */
  const lookups = async (work: () => Promise<unknown>) =>
    (await queries.during(work)).filter((statement) => /from (?:api_tokens|sessions)/.test(statement)).length;
  const ask = (authorization: string) => callsOf(app).get('/v1/auth/me', { authorization, ...from });
  const guess = () => ask(`Bearer ${formatToken('pat')}`);
  const useUp = async () => {
    for (let i = 0; i < BURST; i++) expect((await guess()).statusCode).toBe(401);
    expect((await guess()).statusCode).toBe(429);
  };

  it('cost a handful of statements, however many there are', async () => {
    const statuses: number[] = [];
    const statements = await lookups(async () => {
      for (let i = 0; i < 200; i++) statuses.push((await guess()).statusCode);
    });
    expect(statuses.filter((status) => status === 429)).toHaveLength(200 - BURST);
    expect(statements).toBe(BURST);
  });

  it('cost no more when they come at once', async () => {
    let statuses: number[] = [];
    const statements = await lookups(async () => {
      statuses = (await Promise.all(Array.from({ length: 200 }, guess))).map(({ statusCode }) => statusCode);
    });
    // so many are looked up, those of a moment in one statement
    expect(statuses.filter((status) => status === 401)).toHaveLength(BURST);
    expect(statements).toBeGreaterThan(0);
    expect(statements).toBeLessThanOrEqual(BURST);
  });

  it('cost one statement when they are all the same', async () => {
    const token = `Bearer ${formatToken('pat')}`;
    const statements = await lookups(() => Promise.all(Array.from({ length: 50 }, () => ask(token))));
    expect(statements).toBe(1);
  });

  it('are no access tokens of this service: those are heard from an address that has nothing left', async () => {
    const user: Person = await register(open);
    await useUp();
    expect((await ask(user.headers.authorization!)).statusCode).toBe(200);
  });

  it('cost no statement at probes', async () => {
    const { get } = callsOf(app);
    const probe = () => get('/healthz', { authorization: `Bearer ${formatToken('pat')}`, ...from });
    expect(await lookups(() => Promise.all(Array.from({ length: 20 }, probe)))).toBe(0);
  });

  it('do not lock out who was known at that address before', async () => {
    const user: Person = await register(open);
    expect((await ask(user.headers.authorization)).statusCode).toBe(200);
    await useUp();
    expect((await ask(user.headers.authorization)).statusCode).toBe(200);
  });

  it('are not paid for by those whose tokens are good', async () => {
    for (let i = 0; i < 2 * BURST; i++) {
      const user = await register(open);
      expect((await ask(user.headers.authorization)).statusCode).toBe(200);
    }
  });

  it('count the same in the greeting of a socket', async () => {
    const user = await register(open);
    const socket = await openSocket(app.url, from);
    await useUp().catch(() => undefined); // the upgrade took one of them
    socket.send({ type: 'connection_init', payload: { authorization: `Bearer ${formatToken('pat')}` } });
    expect(await socket.closed()).toBe(1013);
    from = { 'x-forwarded-for': `198.51.100.${++address}` };
    const good = await openAcknowledged(app.url, user.headers.authorization);
    good.close();
  });
});
