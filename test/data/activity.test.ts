import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ActivityOutcome, ActivityRecorder } from '../../src/data/activity.ts';
import { Sql } from '../../src/data/sql.ts';
import type { ActivityAction } from '../../src/kernel/actions.ts';
import type { AnyCaller } from '../../src/kernel/caller.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { graphqlRequest } from '../support/requests.ts';
import { waitUntil } from '../support/wait.ts';

let app: TestApp;
let ann: Person;
let number = 0;
let traceId: string;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());
beforeEach(() => {
  traceId = `recorder-${++number}`;
});

const recorder = () => app.services.activity;
const written = () =>
  app.database.prisma.activity.findMany({ where: { traceId }, orderBy: { id: 'asc' }, select: { action: true } });

interface How {
  by?: ActivityRecorder;
  outcome?: ActivityOutcome;
  resourceId?: string | null;
}

/** Records something that nobody in particular did. */
function record(
  action: string,
  metadata?: Record<string, unknown>,
  { by = recorder(), outcome = { statusCode: 200 }, resourceId = null }: How = {},
): void {
  const request = {
    method: 'GET',
    path: '/',
    ip: '::1',
    successStatus: 200,
    startedAt: 0,
    recorded: false,
    isRest: true,
  };
  const caller: AnyCaller = { principal: null, request: { ...request, traceId } };
  // the texts tell the records apart, whatever the product's own actions are
  const entry = {
    action: action as ActivityAction,
    resourceType: 'user',
    resourceId,
    orgId: null,
    metadata,
  } as const;
  by.record(caller, entry, outcome);
}

describe('the recorder', () => {
  it('keeps of ids that no table could hold what can be stored', async () => {
    const query = `{ workspace(orgId: "a\\u0000b", id: "x${'y'.repeat(300)}") { id } }`;
    const request = graphqlRequest(query, {}, `Bearer ${ann.accessToken}`);
    const answer = await app.server.inject({ ...request, headers: { ...request.headers, 'x-trace-id': traceId } });
    expect(answer.statusCode).toBe(200);
    expect(answer.json().errors).toHaveLength(1);
    await recorder().flush();
    const records = await app.database.prisma.activity.findMany({ where: { traceId } });
    expect(records).toMatchObject([
      { action: 'read', resourceType: 'workspace', principalId: ann.userId, orgId: null, success: false },
    ]);
    const named = records[0]!.named as Record<string, string>;
    expect([named.org_id, named.user_id]).toEqual(['a\uFFFDb', ann.userId]);
    expect([named.workspace_id, named.resource_id]).toEqual([expect.stringMatching(/^x.{127}$/), named.workspace_id]);
    expect(recorder().depth).toBe(0);
  });

  it('writes the others where PostgreSQL refuses one', async () => {
    record('first');
    record('a lone surrogate', { text: '\ud800' });
    record('second');
    record('a NUL', { text: '\0' });
    record('a NUL \0 in a column');
    record('third');
    await recorder().flush();
    expect(recorder().depth).toBe(0);
    expect(await written()).toEqual([{ action: 'first' }, { action: 'second' }, { action: 'third' }]);
  });

  it('writes what a transaction recorded by the connections of others, while it is still open', async () => {
    const lost = recorder().lost;
    await app.database.prisma.$transaction(async () => {
      record('inside');
      // its timer takes the record
      await waitUntil(() => recorder().depth === 0);
      await recorder().flush();
    });
    expect([await written(), recorder().lost]).toEqual([[{ action: 'inside' }], lost]);
  });

  it.each([
    ['of what succeeded', { statusCode: 200 }],
    ['of what failed', { statusCode: 404, errorCode: 'RESOURCE_NOT_FOUND' } as const],
  ])('has a plan of its statement for any number of records: %s', async (_, outcome) => {
    // as PostgreSQL comes, not as the databases of tests are set
    const options = '-c plan_cache_mode=auto';
    const pool = new pg.Pool({ connectionString: app.database.url, max: 1, options });
    const own = new ActivityRecorder(new Sql(pool), () => undefined);
    for (let batch = 0; batch < 12; batch++) {
      record(`${outcome.statusCode}`, {}, { by: own, outcome, resourceId: 'usr_1' });
      await own.flush();
    }
    const { rows } = await pool.query(
      `select custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements
        where statement like 'insert into activity%'`,
    );
    await pool.end();
    // PostgreSQL plans the first five for their values
    expect(rows).toEqual([{ custom: 5, generic: 7 }]);
    expect(await written()).toHaveLength(12);
  });

  it('has written everything when a flush ends, also what an earlier one took', async () => {
    const ended: string[] = [];
    const flush = (name: string) =>
      recorder()
        .flush()
        .then(() => ended.push(name));
    record('one');
    const first = flush('first');
    record('two');
    const second = flush('second');
    await flush('third');
    expect(ended).toEqual(['first', 'second', 'third']);
    expect(await written()).toEqual([{ action: 'one' }, { action: 'two' }]);
    expect(recorder().depth).toBe(0);
    await Promise.all([first, second]);
  });
});
