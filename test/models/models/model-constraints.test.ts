import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { entitle, newAccount, newModel } from './catalogue.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Limit {
  scope: string;
  resourceId: string;
  name: string;
  maximum: number | null;
  used: number | null;
}
interface Route {
  targets: { modelName: string; isProbe: boolean }[];
  leftOut: { modelName: string; reason: string; message: string; retryAfterSeconds: number | null }[];
  refusal: { code: string; limit: Limit | null } | null;
  strictestRate: Limit | null;
}

const ARGS = '$orgId: ID!, $workspaceId: ID!, $logicalModelId: ID!';
const GIVEN = 'orgId: $orgId, workspaceId: $workspaceId, logicalModelId: $logicalModelId';

async function route(who: Person, place: Person, logicalModelId: string): Promise<Route> {
  const limit = 'scope resourceId name maximum used';
  const { data, errors } = await who.ask<{ routeModel: Route }>(
    `query (${ARGS}) { routeModel(${GIVEN}, seed: 1) { targets { modelName isProbe } strictestRate { ${limit} }
      leftOut { modelName reason message retryAfterSeconds } refusal { code limit { ${limit} } } } }`,
    { orgId: place.orgId, workspaceId: place.workspaceId, logicalModelId },
  );
  expect(errors).toBeUndefined();
  return data.routeModel;
}

/** What became of a try of `target-0`. */
async function report(
  who: Person,
  place: Person,
  logicalModelId: string,
  account: string,
  told: object,
): Promise<void> {
  const { errors } = await who.ask(
    `mutation (${ARGS}, $input: ReportModelUsageInput!) { reportModelUsage(${GIVEN}, input: $input) { requestCount } }`,
    {
      orgId: place.orgId,
      workspaceId: place.workspaceId,
      logicalModelId,
      input: { providerAccountId: account, modelName: 'target-0', outcome: 'SUCCESS', ...told },
    },
  );
  expect(errors).toBeUndefined();
}

async function setting(constraints: object) {
  const ann = await register(app, { name: 'ann' });
  const [first, second] = [await newAccount(app, ann), await newAccount(app, ann)];
  const { logical_model_id: id } = await newModel(ann, { constraints }, [
    { provider_account_id: first, priority: 1 },
    { provider_account_id: second, priority: 2 },
  ]);
  await entitle(ann, id);
  const names = async () => (await route(ann, ann, id)).targets.map(({ modelName }) => modelName);
  return { ann, id, first, names };
}

/** As if the figures of the first target had been told so many seconds earlier. */
const age = (id: string, seconds: number) =>
  app.database.pool.query(
    `update model_targets set latency_at = latency_at - $2 * interval '1 second',
       cost_at = cost_at - $2 * interval '1 second'
     where model_id = (select id from logical_models where logical_model_id = $1)`,
    [id, seconds],
  );

/** Some may have passed on a slow machine. */
const secondsLeftOf = (all: number): unknown =>
  expect.toSatisfy((seconds: number) => seconds > all - 60 && seconds <= all);

describe('a target that reports tell to be beyond what the model allows', () => {
  test('in latency: is left out for 5 minutes, then it is a probe, and one good answer brings it back', async () => {
    const { ann, id, first, names } = await setting({ max_latency_ms: 500 });
    expect(await names()).toEqual(['target-0', 'target-1']);
    await report(ann, ann, id, first, { latencyMs: 500 });
    expect(await names()).toEqual(['target-0', 'target-1']);
    await report(ann, ann, id, first, { latencyMs: 1_000 });
    const after = await route(ann, ann, id);
    expect(after.targets.map(({ modelName }) => modelName)).toEqual(['target-1']);
    expect(after.leftOut).toEqual([
      {
        modelName: 'target-0',
        reason: 'LATENCY',
        message: "The target 'target-0' takes 600 ms; the model allows 500 ms.",
        retryAfterSeconds: secondsLeftOf(300),
      },
    ]);
    await age(id, 301);
    expect((await route(ann, ann, id)).targets.find(({ modelName }) => modelName === 'target-0')).toMatchObject({
      isProbe: true,
    });
    // what is no longer believed does not weigh on the average
    await report(ann, ann, id, first, { latencyMs: 400 });
    expect(await names()).toEqual(['target-0', 'target-1']);
  });

  test('in cost for 1,000 tokens: is left out for an hour', async () => {
    const { ann, id, first, names } = await setting({ max_cost_per_1k_tokens: '0.02' });
    await report(ann, ann, id, first, { cost: '0.06', inputTokens: 1_000, outputTokens: 2_000 });
    expect(await names()).toEqual(['target-0', 'target-1']);
    await report(ann, ann, id, first, { cost: '0.09', inputTokens: 1_000 });
    const after = await route(ann, ann, id);
    expect(after.targets.map(({ modelName }) => modelName)).toEqual(['target-1']);
    expect(after.leftOut).toEqual([
      {
        modelName: 'target-0',
        reason: 'COST',
        message: "The target 'target-0' costs 0.034; the model allows 0.02.",
        retryAfterSeconds: secondsLeftOf(3_600),
      },
    ]);
    await age(id, 86_401);
    expect(await names()).toContain('target-0');
  });

  test('stays if the model allows everything, nothing was reported, or a plain member reported it', async () => {
    const free = await setting({});
    await report(free.ann, free.ann, free.id, free.first, { latencyMs: 100_000, cost: '1000', inputTokens: 1 });
    expect(await free.names()).toEqual(['target-0', 'target-1']);
    const { ann, id, first, names } = await setting({ max_latency_ms: 1, max_cost_per_1k_tokens: '0.01' });
    await report(ann, ann, id, first, { outcome: 'FAILURE', latencyMs: 100_000 });
    await report(ann, ann, id, first, { cost: '5' });
    await report(await colleague(app, ann, 'member'), ann, id, first, { latencyMs: 9, cost: '5', inputTokens: 1 });
    expect(await names()).toEqual(['target-0', 'target-1']);
  });
});

describe('a model that requires an audit log', () => {
  const recordsOf = (orgId: string, resourceId: string) =>
    app.database.prisma.activity.findMany({
      where: { orgId, resourceId, resourceType: 'model', action: 'read' },
      select: { userId: true, success: true, metadata: true, workspaceId: true },
    });

  test('is routed to only when the record of that, with its targets, is written; it is recorded once', async () => {
    const { ann, id, first } = await setting({ require_audit_log: true });
    await route(ann, ann, id);
    const records = await recordsOf(ann.orgId, id);
    expect(records).toEqual([
      {
        userId: ann.userId,
        workspaceId: ann.workspaceId,
        success: true,
        metadata: {
          require_audit_log: [id],
          targets: [
            { logical_model_id: id, provider_account_id: first, model_name: 'target-0' },
            { logical_model_id: id, provider_account_id: expect.any(String), model_name: 'target-1' },
          ],
        },
      },
    ]);
    await app.services.activity.flush();
    expect(await recordsOf(ann.orgId, id)).toHaveLength(1);
  });

  test('is not routed to where it cannot be recorded', async () => {
    const { ann, id } = await setting({ require_audit_log: true });
    const { pool } = app.database;
    await pool.query(
      `create function refuse_read() returns trigger language plpgsql as $$
       begin raise 'the audit trail is full'; end $$`,
    );
    await pool.query(
      `create trigger refuse_read before insert on activity for each row
       when (new.metadata ? 'require_audit_log') execute function refuse_read()`,
    );
    try {
      const answer = await ann.call('GET', `${ann.home}/models/${id}/route`);
      expect([answer.status, JSON.stringify(answer.body).includes('target-')]).toEqual([500, false]);
    } finally {
      await waitFor(() => pool.query('drop trigger refuse_read on activity; drop function refuse_read()'));
    }
  });
});

test('a route names the strictest rate: the entitlement’s, or that of the token that asks', async () => {
  const { ann, id } = await setting({});
  expect((await route(ann, ann, id)).strictestRate).toBeNull();
  const { id: tokenId, plaintext_token: token } = await issueToken(app, ann, {
    rate_limit_rps: 1,
    rate_limit_burst: 10,
  });
  const program = caller(app, { ...ann, accessToken: token });
  const ofToken = { scope: 'TOKEN', resourceId: tokenId, name: 'rate_limit_rps', maximum: 1, used: null };
  expect((await route(program, ann, id)).strictestRate).toEqual(ofToken);
  const limitTo = (requests_per_minute: number) =>
    ann.call<{ entitlement_id: string }>('PATCH', `${ann.home}/model-entitlements/${id}`, {
      workspace_limits: { requests_per_minute },
    });
  await limitTo(61);
  expect((await route(program, ann, id)).strictestRate).toEqual(ofToken);
  const { body } = await limitTo(59);
  const ofEntitlement = {
    scope: 'ENTITLEMENT',
    resourceId: body.entitlement_id,
    name: 'requests_per_minute',
    maximum: 59,
    used: 0,
  };
  for (const who of [ann, program]) expect((await route(who, ann, id)).strictestRate).toEqual(ofEntitlement);
  // beyond its own rate the token is refused, and told that it is its own
  const answers = await Promise.all(Array.from({ length: 60 }, () => program.call('GET', ann.home)));
  expect(answers.find(({ status }) => status === 429)).toMatchObject({
    body: { message: `Too many requests for the rate limit of the token '${tokenId}'. Try again later.` },
  });
});
