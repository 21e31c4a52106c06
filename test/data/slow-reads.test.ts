import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Answer, type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

const POOL = 10;
const SHARE = 4;
const EACH = 2;

let app: TestApp;
/** Another program at the same database: while it holds a table, statements that read it take for ever. */
let other: pg.Client;
/** Looks at what runs: inside the transaction of the other one, it would be told the same again and again. */
let looker: pg.Client;
beforeAll(async () => {
  app = await startTestApp({ env: { DATABASE_POOL_SIZE: String(POOL), SEARCH_TIMEOUT_MS: '2000' } });
});
afterAll(() => app.close());
beforeEach(async () => {
  [other, looker] = [new pg.Client(app.database.url), new pg.Client(app.database.url)];
  await Promise.all([other.connect(), looker.connect()]);
});
afterEach(() => Promise.all([other.end(), looker.end()]));

interface Refusal {
  error?: string;
  details?: { reason?: string; retry_after?: number };
}

const search = (person: Person): Promise<Answer<Refusal>> =>
  person.call('POST', `${person.home}/namespaces/default/artifacts/query`, { query: 'anything' });

const searching = async (): Promise<number> => {
  const { rows } = await looker.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
    where datname = current_database() and state = 'active' and query like 'with spaces as%'`,
  );
  return rows[0]!.n;
};

const blocked = () => other.query('begin; lock table artifact_chunks in access exclusive mode');

describe('reads that take long', () => {
  it('leave connections for everybody else, and one organization leaves some for the next', async () => {
    const [ann, bob, cleo] = [await register(app), await register(app), await register(app)];
    await blocked();
    const ofAnn = Array.from({ length: 12 }, () => search(ann));
    await waitUntil(async () => (await searching()) === EACH);
    const ofBoth = Array.from({ length: 24 }, (_, n) => search(n % 2 ? ann : bob));
    await waitUntil(async () => (await searching()) === SHARE);
    const others = Array.from({ length: 20 }, () => cleo.call('GET', '/v1/auth/me'));
    expect(new Set((await Promise.all(others)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(await searching()).toBeLessThanOrEqual(SHARE);
    await other.query('rollback');
    for (const { status, body } of await Promise.all([...ofAnn, ...ofBoth])) {
      if (status === 200) continue;
      // its turn did not come, or its statement did not end, before the table was free again
      expect([status, body]).toMatchObject([503, { error: 'SERVICE_UNAVAILABLE', details: { retry_after: 1 } }]);
      expect(['too_many_at_once', 'database_timeout']).toContain(body.details?.reason);
    }
    expect((await search(ann)).status).toBe(200);
  });

  it('end by a limit of their own, and wait for their turn only so long', async () => {
    const ann = await register(app);
    await blocked();
    const answers = await Promise.all(Array.from({ length: 12 }, () => search(ann)));
    await other.query('rollback');
    const reasons = new Set(answers.map(({ status, body }) => `${status} ${body.details?.reason}`));
    expect(reasons).toEqual(new Set(['503 database_timeout', '503 too_many_at_once']));
    expect((await search(ann)).status).toBe(200);
  });

  it('are sums of the usage of models, too: those of one organization hold only its share', async () => {
    const ann = await register(app);
    await other.query('begin; lock table model_usage_sums in access exclusive mode');
    let refused = 0;
    const ask = async () => {
      const { errors } = await ann.ask('query ($o: ID!, $w: ID!) { modelUsage(orgId: $o, workspaceId: $w) { step } }', {
        o: ann.orgId,
        w: ann.workspaceId,
      });
      if (errors?.[0]?.extensions.details?.reason === 'too_many_at_once') refused += 1;
    };
    const asked = Array.from({ length: 6 }, ask);
    await waitUntil(() => refused >= 6 - EACH);
    await other.query('rollback');
    await Promise.all(asked);
    expect(refused).toBeLessThan(6);
  });

  it('count in a GraphQL operation for what they cost', async () => {
    const ann = await register(app);
    const searches = (count: number) =>
      Array.from(
        { length: count },
        (_, n) => `a${n}: queryArtifacts(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}",
          namespaceId: "default", input: { query: "x" }) { totalResults }`,
      ).join('\n');
    expect((await ann.ask(`{ ${searches(10)} }`)).errors?.[0]?.extensions.code).toBe('OPERATION_TOO_LARGE');
    expect((await ann.ask(`{ ${searches(3)} }`)).errors).toBeUndefined();
  });
});
