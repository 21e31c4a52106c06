import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { entitle, entitlementsOf, modelUrl, newAccount, newModel } from './catalogue.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Tried {
  logical_model_id: string;
  provider_account_id: string;
  model_name: string;
  is_fallback: boolean;
  is_probe: boolean;
}
interface Excluded {
  logical_model_id: string;
  provider_account_id: string | null;
  model_name: string | null;
  reason: string;
  message: string;
  retry_after_seconds: number | null;
  limit: { scope: string; resource_id: string; name: string; maximum: number; used: number } | null;
}
interface Route {
  logical_model_id: string;
  targets: Tried[];
  left_out: Excluded[];
  refusal: (Omit<Excluded, 'reason'> & { code: string }) | null;
}

async function route(owner: Person, id: string, request: object = {}): Promise<Route> {
  const asked = new URLSearchParams(
    Object.entries({ seed: 1, ...request }).map(([key, value]) => [key, String(value)]),
  );
  const url = `${owner.home}/models/${encodeURIComponent(id)}/route?${asked}`;
  const { status, body } = await owner.call<Route>('GET', url);
  if (status !== 200) throw new Error(`${url} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
const namesOf = ({ targets }: Route) => targets.map(({ model_name }) => model_name);
const reasonsOf = ({ left_out }: Route) => left_out.map(({ model_name, reason }) => [model_name, reason]);

test('answers the targets with their settings, overrides before defaults', async () => {
  const ann = await register(app, { name: 'ann' });
  const account = await newAccount(app, ann, {
    region: 'eu',
    routing_mode: 'bridge',
    bridge_id: 'b',
    bridge_endpoint_name: 'e',
  });
  const { logical_model_id } = await newModel(
    ann,
    { logical_model_id: 'a/b', default_temperature: 1, default_top_p: 0.5, default_max_tokens: 100 },
    [{ provider_account_id: account, temperature_override: 0, priority: 2, weight: 7 }],
  );
  await entitle(ann, logical_model_id);
  const answer = {
    logical_model_id: 'a/b',
    targets: [
      {
        logical_model_id: 'a/b',
        provider_account_id: account,
        model_name: 'target-0',
        provider_type: 'openai',
        region: 'eu',
        routing_mode: 'bridge',
        bridge_id: 'b',
        bridge_endpoint_name: 'e',
        priority: 2,
        weight: 7,
        temperature: 0,
        top_p: 0.5,
        max_tokens: 100,
        is_fallback: false,
        is_probe: false,
      },
    ],
    left_out: [],
    refusal: null,
    strictest_rate: null,
  };
  expect(await route(ann, 'a/b')).toEqual(answer);
  expect((await ann.call('GET', `${ann.home}/models/a%2Fb/route`)).body).toEqual(answer);
});

test('orders by priority, then by weight; the same seed gives the same order', async () => {
  const ann = await register(app, { name: 'ann' });
  const account = await newAccount(app, ann);
  const target = (model_name: string, priority: number, weight: number) => ({
    provider_account_id: account,
    model_name,
    priority,
    weight,
  });
  const { logical_model_id: id } = await newModel(ann, {}, [
    target('late', 9, 1000),
    target('heavy', 1, 900),
    target('light', 1, 100),
    target('middle', 5, 1),
  ]);
  await entitle(ann, id);
  const firsts = { heavy: 0, light: 0 };
  for (let seed = 0; seed < 60; seed++) {
    const names = namesOf(await route(ann, id, { seed }));
    expect(names.slice(2)).toEqual(['middle', 'late']);
    firsts[names[0] as 'heavy' | 'light'] += 1;
    expect(names).toEqual(namesOf(await route(ann, id, { seed })));
  }
  // seeds are fixed: 6 of 60 are expected
  expect(firsts.light).toBeGreaterThan(0);
  expect(firsts.heavy).toBeGreaterThan(4 * firsts.light);
});

describe('each target that is left out has its reason', () => {
  type Setup = [
    string,
    { account?: object; row?: () => object; target?: object; health?: () => object; model?: object },
    string | null,
  ];
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000);
  const month = () => new Date().toISOString().slice(0, 7);
  const table: Setup[] = [
    ['nothing is wrong', {}, null],
    ['the target is disabled', { target: { enabled: false } }, 'target_disabled'],
    ['the account is disabled', { account: { enabled: false } }, 'account_disabled'],
    ['an account that was never used may be tried', { row: () => ({ status: 'pending' }) }, null],
    ['a degraded account may be tried', { row: () => ({ status: 'degraded' }) }, null],
    ['the credentials were refused', { row: () => ({ status: 'error', lastHealthCheck: ago(10) }) }, 'account_error'],
    ['two failures', { health: () => ({ consecutiveFailures: 2, lastFailure: ago(1) }) }, null],
    ['three failures, just now', { health: () => ({ consecutiveFailures: 3, lastFailure: ago(1) }) }, 'target_failing'],
    [
      'data is kept elsewhere',
      { account: { data_residency: 'us', region: 'eu' }, model: { constraints: { data_residency: ['EU'] } } },
      'data_residency',
    ],
    ['nobody knows where data is kept', { model: { constraints: { data_residency: ['eu'] } } }, 'data_residency'],
    [
      'data is kept where it is served',
      { account: { region: 'EU' }, model: { constraints: { data_residency: ['ch', 'eu'] } } },
      null,
    ],
    [
      'the requests of the month are used up',
      {
        account: { quota_policy: { max_requests_per_month: 5 } },
        row: () => ({ usagePeriod: month(), currentMonthRequests: 5n }),
      },
      'account_quota',
    ],
    [
      'the tokens of the month are used up',
      {
        account: { quota_policy: { max_tokens_per_month: 100 } },
        row: () => ({ usagePeriod: month(), currentMonthTokens: 100n }),
      },
      'account_quota',
    ],
    [
      'what was used was of another month',
      {
        account: { quota_policy: { max_requests_per_month: 5 } },
        row: () => ({ usagePeriod: '2020-01', currentMonthRequests: 5n }),
      },
      null,
    ],
    ['it has no weight, and others have', { target: { weight: 0 } }, 'weight_zero'],
  ];
  test.each(table)('%s', async (_title, { account, row, target, health, model }, reason) => {
    const ann = await register(app, { name: 'ann' });
    const [one, good] = [await newAccount(app, ann, account), await newAccount(app, ann, { region: 'eu' })];
    if (row) await app.database.prisma.providerAccount.update({ where: { id: one }, data: row() });
    const { logical_model_id: id } = await newModel(ann, model, [
      { provider_account_id: one, model_name: 'odd', ...target },
      { provider_account_id: good, model_name: 'good' },
    ]);
    if (health) await app.database.prisma.modelTarget.updateMany({ where: { providerAccountId: one }, data: health() });
    await entitle(ann, id);
    const answer = await route(ann, id);
    expect(reasonsOf(answer)).toEqual(reason ? [['odd', reason]] : []);
    expect(namesOf(answer).sort()).toEqual(reason ? ['good'] : ['good', 'odd']);
    expect(answer.refusal).toBeNull();
    if (reason)
      expect(answer.left_out[0]).toMatchObject({
        logical_model_id: id,
        provider_account_id: one,
        message: expect.stringMatching(/\.$/),
      });
  });
});

test('weights of 0 are used where nothing else is left', async () => {
  const ann = await register(app, { name: 'ann' });
  const [good, off] = [await newAccount(app, ann), await newAccount(app, ann, { enabled: false })];
  const { logical_model_id: id } = await newModel(ann, {}, [
    { provider_account_id: good, model_name: 'spare', weight: 0 },
    { provider_account_id: off, model_name: 'usual' },
  ]);
  await entitle(ann, id);
  const answer = await route(ann, id);
  expect(namesOf(answer)).toEqual(['spare']);
  expect(reasonsOf(answer)).toEqual([['usual', 'account_disabled']]);
});

test('a failed target that has rested is tried again: after the others, one time in ten before them', async () => {
  const ann = await register(app, { name: 'ann' });
  const [good, bad, refused] = [
    await newAccount(app, ann),
    await newAccount(app, ann),
    await newAccount(app, ann, {}, 'error'),
  ];
  const { logical_model_id: id } = await newModel(ann, {}, [
    { provider_account_id: bad, model_name: 'rested', weight: 1000 },
    { provider_account_id: good, model_name: 'good', weight: 1, priority: 9 },
    { provider_account_id: refused, model_name: 'refused', priority: 10 },
  ]);
  await entitle(ann, id);
  const set = async (failed: number, checked: number) => {
    const lastFailure = new Date(Date.now() - failed * 1000);
    await app.database.prisma.modelTarget.updateMany({
      where: { providerAccountId: bad },
      data: { consecutiveFailures: 5, lastFailure },
    });
    const lastHealthCheck = new Date(Date.now() - checked * 1000);
    await app.database.prisma.providerAccount.update({ where: { id: refused }, data: { lastHealthCheck } });
  };
  await set(5, 200);
  const resting = await route(ann, id);
  expect(namesOf(resting)).toEqual(['good']);
  expect(resting.left_out).toMatchObject([
    { model_name: 'rested', reason: 'target_failing' },
    { model_name: 'refused', reason: 'account_error' },
  ]);
  const [first, second] = resting.left_out.map(({ retry_after_seconds }) => retry_after_seconds!) as [number, number];
  expect([first > 0 && first <= 25, second > 60 && second <= 100]).toEqual([true, true]);
  await set(60, 400);
  const orders = new Map<string, number>();
  for (let seed = 0; seed < 100; seed++) {
    const answer = await route(ann, id, { seed });
    expect(answer.targets.map(({ is_probe }) => is_probe).filter(Boolean)).toHaveLength(2);
    const order = namesOf(answer).join(' ');
    orders.set(order, (orders.get(order) ?? 0) + 1);
  }
  expect([...orders.keys()].sort()).toEqual(['good rested refused', 'rested good refused']);
  const probedFirst = orders.get('rested good refused')!;
  expect(probedFirst).toBeGreaterThan(2);
  expect(probedFirst).toBeLessThan(25);
});

describe('the whole request is refused, with the limit that won', () => {
  async function granted(fields: object) {
    const ann = await register(app, { name: 'ann' });
    const { logical_model_id: id } = await newModel(ann, {}, [await newAccount(app, ann)]);
    const { entitlement_id } = (await entitle(ann, id, fields)) as { entitlement_id: string };
    return { ann, id, entitlement_id };
  }

  test('without an entitlement, although another workspace has one', async () => {
    const ann = await register(app, { name: 'ann' });
    const { logical_model_id: id } = await newModel(ann, {}, [await newAccount(app, ann)]);
    expect(await route(ann, id)).toEqual({
      logical_model_id: id,
      targets: [],
      left_out: [],
      refusal: {
        code: 'not_entitled',
        message: `The workspace has no entitlement for the model '${id}'.`,
        limit: null,
        retry_after_seconds: null,
      },
      strictest_rate: null,
    });
  });

  test.each([
    ['entitlement_disabled', { enabled: false }, {}, {}],
    ['step_type_not_allowed', { allowed_step_types: ['llm'] }, { step_type: 'agent' }, { step_type: 'llm' }],
    ['endpoint_not_allowed', { allowed_endpoints: ['/chat'] }, { endpoint: '/chat2' }, { endpoint: '/chat' }],
    ['purpose_not_allowed', { allowed_purposes: ['a', 'b'] }, {}, { purpose: 'b' }],
  ])('%s', async (code, fields, refused, allowed) => {
    const { ann, id } = await granted(fields);
    expect((await route(ann, id, refused)).refusal).toMatchObject({ code, limit: null, retry_after_seconds: null });
    if (code === 'entitlement_disabled') await ann.call('PATCH', `${entitlementsOf(ann)}/${id}`, { enabled: true });
    expect(await route(ann, id, allowed)).toMatchObject({ refusal: null, targets: [{ logical_model_id: id }] });
  });

  const now = () => new Date().toISOString();
  test.each([
    ['max_tokens_per_month', 'month', () => now().slice(0, 7), 28 * 86_400 + 4 * 86_400],
    ['max_requests_per_day', 'day', () => now().slice(0, 10), 86_400],
    ['requests_per_minute', 'minute', () => now().slice(0, 16), 60],
    ['tokens_per_minute', 'minute', () => now().slice(0, 16), 60],
  ] as const)('%s', async (name, window, period, longest) => {
    const { ann, id, entitlement_id } = await granted({ workspace_limits: { [name]: 100 } });
    const set = async (at: string, used: number) => {
      const counted = { period: at, requests: BigInt(used), tokens: BigInt(used) };
      await app.database.prisma.modelUsage.upsert({
        where: { entitlementId_window: { entitlementId: entitlement_id, window } },
        create: { entitlementId: entitlement_id, window, ...counted },
        update: counted,
      });
    };
    // a minute may end between the writing and the asking
    await waitFor(async () => {
      await set(period(), 99);
      expect((await route(ann, id)).refusal).toBeNull();
      const estimated = (await route(ann, id, { estimated_tokens: 2 })).refusal;
      expect(estimated?.code ?? null).toBe(name.includes('tokens') ? 'entitlement_limit' : null);
    });
    await waitFor(async () => {
      await set(period(), 100);
      expect((await route(ann, id)).refusal).toEqual({
        code: 'entitlement_limit',
        message: `The limit ${name} of the entitlement allows 100, and 100 were used.`,
        limit: { scope: 'entitlement', resource_id: entitlement_id, name, maximum: 100, used: 100 },
        retry_after_seconds: expect.toSatisfy((seconds: number) => seconds >= 1 && seconds <= longest),
      });
    });
    await set('2020-01-01', 100);
    expect((await route(ann, id)).refusal).toBeNull();
  });

  test('of several limits, by the one that lasts longest', async () => {
    const {
      ann,
      id,
      entitlement_id: entitlementId,
    } = await granted({
      workspace_limits: { max_tokens_per_month: 1, max_requests_per_day: 1, requests_per_minute: 1 },
    });
    const [month, day] = [now().slice(0, 7), now().slice(0, 10)];
    await app.database.prisma.modelUsage.createMany({
      data: [
        { entitlementId, window: 'day', period: day, requests: 9n, tokens: 9n },
        { entitlementId, window: 'month', period: month, requests: 9n, tokens: 9n },
      ],
    });
    expect((await route(ann, id)).refusal).toMatchObject({
      limit: { name: 'max_tokens_per_month', used: 9, maximum: 1 },
    });
    await ann.call('PATCH', `${entitlementsOf(ann)}/${id}`, {
      workspace_limits: { max_requests_per_day: 1, requests_per_minute: 1 },
    });
    expect((await route(ann, id)).refusal).toMatchObject({ limit: { name: 'max_requests_per_day' } });
  });

  test('by the quota of the account, where nothing else is wrong; else by everything together', async () => {
    const ann = await register(app, { name: 'ann' });
    const quota = { quota_policy: { max_requests_per_month: 1 } };
    const [spent, off] = [await newAccount(app, ann, quota), await newAccount(app, ann, { enabled: false })];
    await app.database.prisma.providerAccount.update({
      where: { id: spent },
      data: { usagePeriod: now().slice(0, 7), currentMonthRequests: 1n },
    });
    const { logical_model_id: one } = await newModel(ann, {}, [spent]);
    const { logical_model_id: two } = await newModel(ann, {}, [spent, off]);
    const { logical_model_id: none } = await newModel(ann);
    for (const id of [one, two, none]) await entitle(ann, id);
    expect((await route(ann, one)).refusal).toMatchObject({
      code: 'account_quota',
      limit: {
        scope: 'provider_account',
        resource_id: spent,
        name: 'max_requests_per_month',
        maximum: null,
        used: null,
      },
      retry_after_seconds: expect.any(Number),
    });
    expect((await route(ann, two)).refusal).toMatchObject({
      code: 'nothing_left',
      message: `Nothing can be tried for the model '${two}' now: account quota, account disabled.`,
      limit: null,
      retry_after_seconds: expect.any(Number),
    });
    expect(await route(ann, none)).toMatchObject({
      left_out: [
        { logical_model_id: none, model_name: null, provider_account_id: null, reason: 'model_without_targets' },
      ],
      refusal: { code: 'nothing_left', retry_after_seconds: null },
    });
  });
});

describe('the fallback chain', () => {
  test('comes after the model, then the chains of its models; each model once, with its own entitlement', async () => {
    const ann = await register(app, { name: 'ann' });
    const account = await newAccount(app, ann);
    const add = async (id: string, fallback_chain: string[], isEntitled = true) => {
      await newModel(ann, { logical_model_id: id, fallback_chain }, [
        { provider_account_id: account, model_name: `at-${id}` },
      ]);
      if (isEntitled) await entitle(ann, id);
    };
    await add('e', []);
    await add('d', ['e']);
    await add('c', ['e']);
    await add('foreign', ['d'], false);
    await add('b', ['d', 'c']);
    await add('a', ['b', 'foreign', 'c']);
    const answer = await route(ann, 'a');
    expect(answer.targets.map((target) => [target.model_name, target.is_fallback])).toEqual([
      ['at-a', false],
      ['at-b', true],
      ['at-c', true],
      ['at-d', true],
      ['at-e', true],
    ]);
    expect(answer.left_out).toMatchObject([{ logical_model_id: 'foreign', model_name: null, reason: 'not_entitled' }]);
  });

  test('stands in for a model that is disabled, deprecated ones are used', async () => {
    const ann = await register(app, { name: 'ann' });
    const account = await newAccount(app, ann);
    const { logical_model_id: spare } = await newModel(ann, {}, [
      { provider_account_id: account, model_name: 'spare' },
    ]);
    const { logical_model_id: id } = await newModel(ann, { fallback_chain: [spare] }, [account]);
    for (const each of [id, spare]) await entitle(ann, each);
    for (const change of [{ enabled: false }, { enabled: true, status: 'disabled' }]) {
      await ann.call('PATCH', modelUrl(ann, id), change);
      const answer = await route(ann, id);
      expect(namesOf(answer)).toEqual(['spare']);
      expect(answer.left_out).toMatchObject([{ logical_model_id: id, model_name: null, reason: 'model_disabled' }]);
    }
    await ann.call('PATCH', modelUrl(ann, id), { status: 'deprecated' });
    expect(namesOf(await route(ann, id))).toEqual(['target-0', 'spare']);
  });

  test('is not walked without end: 16 models at most', async () => {
    const ann = await register(app, { name: 'ann' });
    const account = await newAccount(app, ann);
    let fallback_chain: string[] = [];
    for (let i = 0; i < 20; i++) {
      const { logical_model_id } = await newModel(ann, { fallback_chain }, [account]);
      await entitle(ann, logical_model_id);
      fallback_chain = [logical_model_id];
    }
    const answer = await route(ann, fallback_chain[0]!);
    expect(answer.targets).toHaveLength(16);
    expect(answer.left_out).toMatchObject([{ model_name: null, reason: 'too_many_models' }]);
  });
});

test('members may ask, viewers may not; strangers learn nothing; an unknown model is missing', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const { logical_model_id: id } = await newModel(ann, {}, [await newAccount(app, ann)]);
  await entitle(ann, id);
  const url = `${ann.home}/models/${id}/route`;
  const answers: Record<string, number> = {};
  for (const role of ['viewer', 'member'] as const)
    answers[role] = (await (await colleague(app, ann, role)).call('GET', url)).status;
  expect(answers).toEqual({ viewer: 403, member: 200 });
  expect(await eve.call('GET', url)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'organization:access' } },
  });
  for (const owner of [eve, ann])
    expect(await owner.call('GET', `${owner.home}/models/${owner === eve ? id : 'none'}/route`)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'model' } },
    });
  const { data } = await ann.ask<{ routeModel: object }>(
    `query ($orgId: ID!, $workspaceId: ID!, $logicalModelId: ID!) {
      routeModel(orgId: $orgId, workspaceId: $workspaceId, logicalModelId: $logicalModelId, purpose: "x") {
      targets { modelName } leftOut { reason } refusal { code limit { scope } } } }`,
    { orgId: ann.orgId, workspaceId: ann.workspaceId, logicalModelId: id },
  );
  expect(data).toEqual({ routeModel: { targets: [{ modelName: 'target-0' }], leftOut: [], refusal: null } });
  await app.services.activity.flush();
  const records = await app.database.prisma.activity.findMany({
    where: { orgId: ann.orgId, resourceType: 'model', resourceId: id, success: true, action: { not: 'create' } },
    select: { action: true, userId: true },
  });
  expect(new Set(records.map(({ action }) => action))).toEqual(new Set(['read']));
  expect(records).toHaveLength(2);
});
