import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type AccountHealth,
  accountAfter,
  type RequestOutcome,
} from '../../../src/models/provider-accounts/provider-account.health.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { accountsOf, entitle, entitlementsOf, type Model, modelUrl, newAccount, newModel } from './catalogue.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Account {
  status: string;
  status_reason: string | null;
  last_health_check: string | null;
  quota_policy: { current_month_tokens: number; current_month_requests: number; usage_period: string };
}

interface Setting {
  ann: Person;
  account: string;
  id: string;
  report: (outcome: RequestOutcome, more?: object) => Promise<{ status: number; body: Record<string, unknown> }>;
  accountNow: () => Promise<Account>;
  modelNow: () => Promise<Model>;
}

async function setting(status = 'active'): Promise<Setting> {
  const ann = await register(app, { name: 'ann' });
  const account = await newAccount(app, ann, {}, status);
  const { logical_model_id: id } = await newModel(ann, {}, [account]);
  await entitle(ann, id);
  return {
    ann,
    account,
    id,
    report: (outcome, more = {}) =>
      ann.call('POST', `${ann.home}/models/${id}/usage`, {
        provider_account_id: account,
        model_name: 'target-0',
        outcome: outcome.toLowerCase(),
        ...more,
      }),
    accountNow: async () => (await ann.call<Account>('GET', `${accountsOf(ann)}/${account}`)).body,
    modelNow: async () => (await ann.call<Model>('GET', modelUrl(ann, id))).body,
  };
}

test('a report updates the counters of entitlement, windows and account and the health, and is recorded', async () => {
  const { ann, account, id, report, accountNow, modelNow } = await setting();
  const sent = { input_tokens: 100, output_tokens: 23, latency_ms: 850, purpose: 'chat', execution_id: 'exec-1' };
  const { status, body } = await report('SUCCESS', sent);
  expect([status, body]).toEqual([
    200,
    {
      org_id: ann.orgId,
      workspace_id: ann.workspaceId,
      logical_model_id: id,
      request_count: 1,
      total_tokens: 123,
      tokens_this_month: 123,
      requests_today: 1,
      requests_this_minute: 1,
      tokens_this_minute: 123,
      consecutive_failures: 0,
    },
  ]);
  expect((await report('SUCCESS', { output_tokens: 7 })).body).toMatchObject({
    request_count: 2,
    total_tokens: 130,
    tokens_this_month: 130,
  });
  expect((await ann.call('GET', `${entitlementsOf(ann)}/${id}`)).body).toMatchObject({
    request_count: 2,
    total_tokens: 130,
    last_used_at: expect.stringMatching(/Z$/),
  });
  expect(await accountNow()).toMatchObject({
    status: 'active',
    last_health_check: expect.stringMatching(/Z$/),
    quota_policy: {
      current_month_tokens: 130,
      current_month_requests: 2,
      usage_period: new Date().toISOString().slice(0, 7),
    },
  });
  expect((await modelNow()).targets).toMatchObject([
    {
      consecutive_failures: 0,
      last_success: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\.\d{3}Z$/),
      last_failure: null,
    },
  ]);
  const records = await app.database.prisma.activity.findMany({
    where: { orgId: ann.orgId, action: 'execute', resourceType: 'model', resourceId: id },
    orderBy: { id: 'asc' },
  });
  expect(records).toHaveLength(2);
  expect(records[0]).toMatchObject({
    workspaceId: ann.workspaceId,
    executionId: 'exec-1',
    tokenUsage: { input: 100, output: 23, total: 123 },
    metadata: {
      provider_account_id: account,
      model_name: 'target-0',
      outcome: 'success',
      latency_ms: 850,
      purpose: 'chat',
    },
  });
  expect(await eventsOf(app, id, ann.orgId)).toEqual(['model.created']);
});

test('50 reports at the same time lose nothing, whatever they say of whom', async () => {
  const { ann, account, id, report } = await setting();
  const other = await newAccount(app, ann);
  await ann.call('PATCH', modelUrl(ann, id), {
    targets: [account, other].map((provider_account_id) => ({ provider_account_id, model_name: 'target-0' })),
  });
  const outcomes: RequestOutcome[] = ['SUCCESS', 'FAILURE', 'TIMEOUT', 'RATE_LIMITED', 'INVALID_REQUEST'];
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      report(outcomes[i % outcomes.length]!, {
        provider_account_id: i % 2 ? account : other,
        input_tokens: i,
        output_tokens: 1,
      }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
  const tokens = (50 * 49) / 2 + 50;
  expect(new Set(answers.map(({ body }) => body.request_count)).size).toBe(50);
  expect((await ann.call('GET', `${entitlementsOf(ann)}/${id}`)).body).toMatchObject({
    request_count: 50,
    total_tokens: tokens,
  });
  const accounts = await app.database.prisma.providerAccount.findMany({ where: { id: { in: [account, other] } } });
  expect(accounts.map(({ currentMonthRequests }) => currentMonthRequests)).toEqual([25n, 25n]);
  expect(accounts.reduce((sum, { currentMonthTokens }) => sum + Number(currentMonthTokens), 0)).toBe(tokens);
  const windows = await app.database.prisma.modelUsage.findMany({
    where: { entitlement: { logicalModelId: id, orgId: ann.orgId } },
  });
  expect(windows.find(({ window }) => window === 'month')).toMatchObject({ requests: 50n, tokens: BigInt(tokens) });
  expect(await app.database.prisma.activity.count({ where: { orgId: ann.orgId, action: 'execute' } })).toBe(50);
});

test('25 failures at the same time are 25 in a row', async () => {
  const { report, modelNow } = await setting();
  await Promise.all(Array.from({ length: 25 }, () => report('FAILURE')));
  expect((await modelNow()).targets).toMatchObject([{ consecutive_failures: 25 }]);
});

test('reports of several models at one account at the same time: none is lost there either', async () => {
  const { ann, account, report } = await setting();
  const others: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { logical_model_id } = await newModel(ann, {}, [account]);
    await entitle(ann, logical_model_id);
    others.push(logical_model_id);
  }
  const payload = { provider_account_id: account, model_name: 'target-0', outcome: 'timeout', input_tokens: 3 };
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      i % 4 === 3 ? report('FAILURE') : ann.call('POST', `${ann.home}/models/${others[i % 4]}/usage`, payload),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200));
  expect(await app.database.prisma.providerAccount.findUnique({ where: { id: account } })).toMatchObject({
    consecutiveFailures: 40,
    currentMonthRequests: 40n,
    currentMonthTokens: 90n,
  });
  // of all reports one made it degraded
  expect(await eventsOf(app, account)).toEqual(['provider_account.created', 'provider_account.degraded']);
});

test('reports, target changes and a deletion of the model at the same time: no fault reaches a caller', async () => {
  for (let round = 0; round < 5; round++) {
    const { ann, account, id, report } = await setting();
    const answers = await Promise.all([
      ...Array.from({ length: 8 }, () => report('FAILURE')),
      ...[1, 2, 3].map((weight) =>
        ann.call('PATCH', modelUrl(ann, id), {
          targets: [{ provider_account_id: account, model_name: 'target-0', weight }],
        }),
      ),
      ann.call('PATCH', `${accountsOf(ann)}/${account}`, { enabled: round % 2 === 0 }),
      ann.call('DELETE', modelUrl(ann, id)),
    ]);
    expect(answers.map(({ status }) => status).filter((status) => ![200, 204, 404].includes(status))).toEqual([]);
    expect(answers.at(-1)!.status).toBe(204);
    expect(await app.database.prisma.modelEntitlement.count({ where: { orgId: ann.orgId } })).toBe(0);
  }
});

describe('health', () => {
  test('three failures in a row make a target unhealthy, one success heals it; one event for each change', async () => {
    const { ann, account, id, report, accountNow, modelNow } = await setting('pending');
    expect(await modelNow()).toMatchObject({ status: 'unavailable' });
    await report('SUCCESS');
    expect([(await accountNow()).status, (await modelNow()).status]).toEqual(['active', 'active']);
    await report('FAILURE');
    await report('RATE_LIMITED');
    await report('INVALID_REQUEST');
    expect(await modelNow()).toMatchObject({
      status: 'active',
      targets: [{ consecutive_failures: 2, last_failure: expect.any(String) }],
    });
    expect((await report('TIMEOUT')).body).toMatchObject({ consecutive_failures: 3 });
    expect(await accountNow()).toMatchObject({ status: 'degraded', status_reason: '3 requests in a row failed.' });
    expect(await modelNow()).toMatchObject({ status: 'unavailable' });
    await report('FAILURE');
    await report('SUCCESS');
    expect([(await accountNow()).status, (await modelNow()).status]).toEqual(['active', 'active']);
    expect(await eventsOf(app, id, ann.orgId)).toEqual([
      'model.created',
      'model.updated',
      'model.updated',
      'model.updated',
    ]);
    expect(await eventsOf(app, account)).toEqual([
      'provider_account.created',
      'provider_account.updated',
      'provider_account.degraded',
      'provider_account.updated',
    ]);
  });

  test('other models at the account change with it', async () => {
    const { ann, account, report } = await setting();
    const { logical_model_id: other } = await newModel(ann, {}, [account]);
    for (let i = 0; i < 3; i++) await report('AUTH_FAILURE');
    expect((await ann.call<Model>('GET', modelUrl(ann, other))).body.status).toBe('unavailable');
    // at the first refusal: an account in error is no less active than a degraded one
    expect(await eventsOf(app, other, ann.orgId)).toEqual(['model.created', 'model.updated']);
  });

  const fresh: AccountHealth = { status: 'pending', statusReason: null, consecutiveFailures: 0, authFailures: 0 };
  test.each<[string, RequestOutcome[], string]>([
    ['pending', [], 'pending'],
    ['pending', ['FAILURE', 'FAILURE', 'FAILURE'], 'pending'],
    ['pending', ['SUCCESS'], 'active'],
    ['pending', ['AUTH_FAILURE', 'AUTH_FAILURE', 'AUTH_FAILURE'], 'error'],
    ['active', ['FAILURE', 'FAILURE'], 'active'],
    ['active', ['FAILURE', 'TIMEOUT', 'RATE_LIMITED'], 'degraded'],
    ['active', ['FAILURE', 'FAILURE', 'SUCCESS', 'FAILURE'], 'active'],
    ['active', ['INVALID_REQUEST', 'INVALID_REQUEST', 'INVALID_REQUEST'], 'active'],
    ['active', ['AUTH_FAILURE'], 'degraded'],
    ['active', ['AUTH_FAILURE', 'FAILURE', 'AUTH_FAILURE', 'AUTH_FAILURE'], 'error'],
    ['active', ['AUTH_FAILURE', 'AUTH_FAILURE', 'SUCCESS', 'AUTH_FAILURE'], 'degraded'],
    ['degraded', ['SUCCESS'], 'active'],
    ['error', ['FAILURE'], 'error'],
    ['error', ['SUCCESS'], 'active'],
  ])('an account that is %s, after %j, is %s', (status, outcomes, expected) => {
    expect(outcomes.reduce(accountAfter, { ...fresh, status }).status).toBe(expected);
  });

  test("refused credentials are the account's matter: its targets do not fail", async () => {
    const { report, accountNow, modelNow } = await setting();
    for (let i = 0; i < 3; i++) expect((await report('AUTH_FAILURE')).body).toMatchObject({ consecutive_failures: 0 });
    expect(await accountNow()).toMatchObject({
      status: 'error',
      status_reason: 'The provider refused the credentials 3 times without a success between.',
    });
    expect(await modelNow()).toMatchObject({ status: 'unavailable' });
    await report('SUCCESS');
    expect(await modelNow()).toMatchObject({ status: 'active' });
  });
});

test('a plain member cannot take an account from others: refused credentials count as a failure', async () => {
  const { ann, account, id, accountNow, modelNow } = await setting();
  const reportAs = async (role: 'member' | 'editor') => {
    const reporter = await colleague(app, ann, role);
    const { errors } = await reporter.ask(
      `mutation ($input: ReportModelUsageInput!) {
        reportModelUsage(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", logicalModelId: "${id}",
          input: $input) { consecutiveFailures } }`,
      { input: { providerAccountId: account, modelName: 'target-0', outcome: 'AUTH_FAILURE' } },
    );
    expect(errors).toBeUndefined();
  };
  for (let i = 0; i < 4; i++) await reportAs('member');
  expect(await accountNow()).toMatchObject({ status: 'degraded', status_reason: '3 requests in a row failed.' });
  expect((await modelNow()).targets).toMatchObject([{ consecutive_failures: 4 }]);
  for (let i = 0; i < 3; i++) await reportAs('editor');
  expect(await accountNow()).toMatchObject({ status: 'error' });
});

test('of failures at two accounts of a model at the same time none misses that its status moved', async () => {
  for (let round = 0; round < 8; round++) {
    const ann = await register(app, { name: 'ann' });
    const accounts = [await newAccount(app, ann), await newAccount(app, ann)];
    const { logical_model_id: id } = await newModel(ann, {}, accounts);
    await entitle(ann, id);
    const other = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
      organization_id: ann.orgId,
      name: 'Other',
    });
    const elsewhere = { ...ann, home: `/v1/orgs/${ann.orgId}/workspaces/${other.body.workspace_id}` };
    await entitle(elsewhere, id);
    // each at the edge: the next failure makes its account degraded
    await app.database.prisma.providerAccount.updateMany({
      where: { orgId: ann.orgId },
      data: { consecutiveFailures: 2 },
    });
    const ask = (workspaceId: string, index: number) =>
      ann.ask(
        `mutation ($input: ReportModelUsageInput!) {
          reportModelUsage(orgId: "${ann.orgId}", workspaceId: "${workspaceId}", logicalModelId: "${id}",
            input: $input) { consecutiveFailures } }`,
        { input: { providerAccountId: accounts[index], modelName: `target-${index}`, outcome: 'FAILURE' } },
      );
    await Promise.all([ask(ann.workspaceId, 0), ask(other.body.workspace_id, 1)]);
    const events = await app.database.prisma.event.findMany({
      where: { orgId: ann.orgId, resourceId: id, type: 'model.updated' },
      orderBy: { seq: 'asc' },
      select: { data: true },
    });
    expect(events.map(({ data }) => data)).toEqual([{ status: 'degraded' }, { status: 'unavailable' }]);
  }
});

test('a period that is over begins anew', async () => {
  const { ann, account, id, report, accountNow } = await setting();
  await report('SUCCESS', { input_tokens: 5 });
  await app.database.prisma.modelUsage.updateMany({
    where: { entitlement: { orgId: ann.orgId } },
    data: { period: '2020-01' },
  });
  await app.database.prisma.providerAccount.update({ where: { id: account }, data: { usagePeriod: '2020-01' } });
  expect((await report('SUCCESS', { input_tokens: 2 })).body).toMatchObject({
    logical_model_id: id,
    request_count: 2,
    total_tokens: 7,
    tokens_this_month: 2,
    requests_today: 1,
    requests_this_minute: 1,
    tokens_this_minute: 2,
  });
  expect((await accountNow()).quota_policy).toMatchObject({ current_month_tokens: 2, current_month_requests: 1 });
});

test('what was reported counts against the limits', async () => {
  const { ann, id, report } = await setting();
  await ann.call('PATCH', `${entitlementsOf(ann)}/${id}`, { workspace_limits: { max_tokens_per_month: 10 } });
  await report('SUCCESS', { input_tokens: 10 });
  expect((await ann.call('GET', `${ann.home}/models/${id}/route`)).body).toMatchObject({
    targets: [],
    refusal: { code: 'entitlement_limit', limit: { name: 'max_tokens_per_month', used: 10, maximum: 10 } },
  });
});

test('what is unknown is said; a target that is none of the model counts for the entitlement alone', async () => {
  const { ann, id, report, accountNow } = await setting();
  const eve = await register(app, { name: 'eve' });
  const foreign = await newAccount(app, eve);
  expect(await report('SUCCESS', { provider_account_id: foreign, input_tokens: 9 })).toMatchObject({
    status: 422,
    body: { detail: [{ type: 'value_error', loc: ['body', 'provider_account_id'] }] },
  });
  expect((await report('SUCCESS', { input_tokens: -1 })).status).toBe(422);
  expect((await report('GOOD' as RequestOutcome)).body).toMatchObject({
    detail: [{ type: 'literal_error', loc: ['body', 'outcome'] }],
  });
  expect((await report('SUCCESS', { model_name: 'gone', input_tokens: 4 })).body).toMatchObject({
    total_tokens: 4,
    consecutive_failures: null,
  });
  // whoever may use one model must not take down, or use up, the account that others are served by
  for (let i = 0; i < 3; i++) await report('AUTH_FAILURE', { model_name: 'gone', input_tokens: 100_000_000 });
  expect((await report('SUCCESS', { input_tokens: 100_000_001 })).status).toBe(422);
  expect(await accountNow()).toMatchObject({
    status: 'active',
    quota_policy: { current_month_tokens: 0, current_month_requests: 0 },
  });
  await ann.call('PATCH', `${entitlementsOf(ann)}/${id}`, { enabled: false });
  expect((await report('AUTH_FAILURE')).body).toMatchObject({ consecutive_failures: null });
  expect((await accountNow()).quota_policy).toMatchObject({ current_month_requests: 0 });
  await ann.call('PATCH', `${entitlementsOf(ann)}/${id}`, { enabled: true });
  const { logical_model_id: other } = await newModel(ann);
  const payload = { provider_account_id: foreign, model_name: 'x', outcome: 'success' };
  expect(await ann.call('POST', `${ann.home}/models/${other}/usage`, payload)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'model_entitlement', resource_id: other } },
  });
  expect(await eve.call('POST', `${eve.home}/models/${id}/usage`, payload)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'model', resource_id: id } },
  });
  expect(await eve.call('POST', `${ann.home}/models/${id}/usage`, payload)).toMatchObject({ status: 403 });
  const viewer = await colleague(app, ann, 'viewer');
  expect(await viewer.call('POST', `${ann.home}/models/${id}/usage`, payload)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'model:execute' } },
  });
});
