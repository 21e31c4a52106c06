import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { accountsOf, catalogOf, type Model, modelUrl, newAccount, newModel } from '../models/catalogue.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Account = Record<string, unknown> & { provider_account_id: string; status: string };
const thisMonth = () => new Date().toISOString().slice(0, 7);
const required = { name: 'Account', provider_type: 'openai', credentials_ref: 'env:OPENAI' };
const shownLimits = {
  requests_per_second: 1,
  requests_per_minute: 1,
  input_tokens_per_minute: 1,
  output_tokens_per_minute: 1,
  max_concurrency: 10,
  burst_size: 10,
  queue_policy: 'wait',
  queue_timeout_seconds: 300,
};
const placesOf = (body: unknown) =>
  (body as { detail: { type: string; loc: string[] }[] }).detail.map(({ loc, type }) => [loc.slice(1).join('.'), type]);

test('name, provider and credentials are enough; the defaults are those that the spec shows', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<Account>('POST', accountsOf(ann), required);
  expect(status).toBe(201);
  expect(body).toEqual({
    provider_account_id: expect.stringMatching(/^pa_/),
    org_id: ann.orgId,
    ...required,
    description: null,
    region: null,
    data_residency: null,
    status: 'pending',
    status_reason: null,
    routing_mode: 'direct',
    bridge_id: null,
    bridge_endpoint_name: null,
    quota_policy: {
      max_tokens_per_month: null,
      max_requests_per_month: null,
      current_month_tokens: 0,
      current_month_requests: 0,
      usage_period: thisMonth(),
    },
    rate_limit_policy: shownLimits,
    enabled: true,
    tags: {},
    last_health_check: null,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const url = `${accountsOf(ann)}/${body.provider_account_id}`;
  expect((await ann.call('GET', url)).body).toEqual(body);
  expect((await ann.call('GET', accountsOf(ann))).body).toEqual({
    total: 1,
    has_more: false,
    next_cursor: null,
    accounts: [body],
  });
  expect(await eventsOf(app, body.provider_account_id)).toEqual(['provider_account.created']);
  expect(await changesOf(app, body.provider_account_id)).toMatchObject([
    { action: 'create', resourceType: 'provider_account', orgId: ann.orgId, metadata: { provider_type: 'openai' } },
  ]);
  const data = (
    await ann.ask(
      `query ($orgId: ID!, $id: ID!) {
        providerAccount(orgId: $orgId, id: $id) { quotaPolicy { usagePeriod } rateLimitPolicy { queueTimeoutSeconds } }
        node(id: $id) { __typename id } }`,
      { orgId: ann.orgId, id: body.provider_account_id },
    )
  ).data;
  expect(data).toEqual({
    providerAccount: { quotaPolicy: { usagePeriod: thisMonth() }, rateLimitPolicy: { queueTimeoutSeconds: 300 } },
    node: { __typename: 'ProviderAccount', id: body.provider_account_id },
  });
});

test('a change leaves alone what it does not name; policies are replaced whole, null is their default', async () => {
  const ann = await register(app, { name: 'ann' });
  const given = {
    description: 'x',
    region: 'eu-west-1',
    data_residency: 'EU',
    tags: { a: '1' },
    quota_policy: { max_tokens_per_month: 9_007_199_254_740_991, max_requests_per_month: 5 },
    rate_limit_policy: { requests_per_second: 50, queue_policy: 'reject', queue_timeout_seconds: 0 },
  };
  const { body } = await ann.call<Account>('POST', accountsOf(ann), { ...required, ...given });
  const limits = { ...shownLimits, ...given.rate_limit_policy };
  expect(body).toMatchObject({ ...given, rate_limit_policy: limits });
  const url = `${accountsOf(ann)}/${body.provider_account_id}`;
  const change = async (fields: object) => (await ann.call<Account>('PATCH', url, fields)).body;
  expect(await change({})).toEqual({ ...body, updated_at: expect.any(String) });
  expect(await change({ quota_policy: { max_requests_per_month: 7 } })).toMatchObject({
    quota_policy: { max_tokens_per_month: null, max_requests_per_month: 7 },
    rate_limit_policy: limits,
  });
  expect(await change({ rate_limit_policy: { burst_size: 3 } })).toMatchObject({
    rate_limit_policy: { ...shownLimits, burst_size: 3 },
    quota_policy: { max_requests_per_month: 7 },
  });
  expect(await change({ rate_limit_policy: null, quota_policy: null, region: null, description: null })).toMatchObject({
    rate_limit_policy: shownLimits,
    quota_policy: { max_tokens_per_month: null, max_requests_per_month: null },
    region: null,
    description: null,
    data_residency: 'EU',
  });
});

describe('what is wrong is said at its place', () => {
  let ann: Person;
  beforeAll(async () => {
    ann = await register(app, { name: 'ann' });
  });
  test.each<[string, object, [string, string][]]>([
    [
      'nothing given',
      { name: undefined, provider_type: undefined, credentials_ref: undefined },
      [
        ['name', 'missing'],
        ['provider_type', 'missing'],
        ['credentials_ref', 'missing'],
      ],
    ],
    ['a provider in capitals', { provider_type: 'OpenAI' }, [['provider_type', 'string_pattern_mismatch']]],
    ['no credentials', { credentials_ref: '' }, [['credentials_ref', 'string_too_short']]],
    ['a secret by a name that is none', { credentials_ref: 'secret://nobody' }, [['credentials_ref', 'value_error']]],
    ['a secret by an id that is none', { credentials_ref: 'sec_none' }, [['credentials_ref', 'value_error']]],
    ['a bridge without id', { routing_mode: 'bridge' }, [['bridge_id', 'value_error']]],
    ['a routing mode that is no word', { routing_mode: 'Tunnel!' }, [['routing_mode', 'string_pattern_mismatch']]],
    [
      'policies',
      {
        quota_policy: { max_tokens_per_month: 0, max_requests_per_month: 9_007_199_254_740_992 },
        rate_limit_policy: {
          requests_per_second: 0,
          max_concurrency: 1.5,
          queue_policy: 'Drop it',
          queue_timeout_seconds: -1,
        },
      },
      [
        ['quota_policy.max_tokens_per_month', 'greater_than_equal'],
        ['quota_policy.max_requests_per_month', 'less_than_equal'],
        ['rate_limit_policy.requests_per_second', 'greater_than_equal'],
        ['rate_limit_policy.max_concurrency', 'int_from_float'],
        ['rate_limit_policy.queue_policy', 'string_pattern_mismatch'],
        ['rate_limit_policy.queue_timeout_seconds', 'greater_than_equal'],
      ],
    ],
  ])('%s', async (_title, fields, places) => {
    const { status, body } = await ann.call('POST', accountsOf(ann), { ...required, ...fields });
    expect([status, placesOf(body)]).toEqual([422, places]);
  });

  test('a change may not leave a bridge without its id', async () => {
    const { body } = await ann.call<Account>('POST', accountsOf(ann), {
      ...required,
      routing_mode: 'bridge',
      bridge_id: 'b-1',
    });
    const url = `${accountsOf(ann)}/${body.provider_account_id}`;
    const refused = [422, [['bridge_id', 'value_error']]];
    const change = async (fields: object) => {
      const answer = await ann.call('PATCH', url, fields);
      return [answer.status, answer.status === 422 ? placesOf(answer.body) : []];
    };
    expect(await change({ bridge_id: null })).toEqual(refused);
    expect(await change({ bridge_id: null, routing_mode: 'direct' })).toEqual([200, []]);
    expect(await change({ routing_mode: 'bridge' })).toEqual(refused);
    expect(await change({ routing_mode: 'bridge', bridge_id: 'b-2' })).toEqual([200, []]);
    expect(await change({ credentials_ref: 'secret://nobody' })).toEqual([422, [['credentials_ref', 'value_error']]]);
  });
});

test('credentials may be a secret of the organization, which then cannot be destroyed', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const secret = { name: 'OPENAI_KEY', secret_type: 'api_key', value: { key: 'canary' } };
  const made = await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, secret);
  expect(made.status).toBe(201);
  const { secret_id } = made.body;
  for (const credentials_ref of ['secret://OPENAI_KEY', secret_id]) {
    const { status, body } = await ann.call<Account>('POST', accountsOf(ann), { ...required, credentials_ref });
    expect([status, body.credentials_ref]).toEqual([201, credentials_ref]);
    const refused = await eve.call('POST', accountsOf(eve), { ...required, credentials_ref });
    expect([refused.status, placesOf(refused.body)]).toEqual([422, [['credentials_ref', 'value_error']]]);
    const destroyed = await ann.call('DELETE', `/v1/orgs/${ann.orgId}/secrets/${secret_id}?permanent=true`);
    expect(destroyed).toMatchObject({
      status: 409,
      body: {
        error: 'RESOURCE_CONFLICT',
        details: {
          reason: 'in_use',
          references: [{ resource_type: 'provider_account', resource_id: body.provider_account_id }],
        },
      },
    });
    expect((await ann.call('DELETE', `${accountsOf(ann)}/${body.provider_account_id}`)).status).toBe(204);
  }
});

test('what an earlier month used is not shown: the counters are those of the running month', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await newAccount(app, ann);
  const set = (usagePeriod: string) =>
    app.database.prisma.providerAccount.update({
      where: { id },
      data: { usagePeriod, currentMonthTokens: 12_345_678_901n, currentMonthRequests: 7n },
    });
  const shown = async () => (await ann.call<Account>('GET', `${accountsOf(ann)}/${id}`)).body.quota_policy;
  const policy = { max_tokens_per_month: null, max_requests_per_month: null, usage_period: thisMonth() };
  await set(thisMonth());
  expect(await shown()).toEqual({ ...policy, current_month_tokens: 12_345_678_901, current_month_requests: 7 });
  await set('2020-01');
  expect(await shown()).toEqual({ ...policy, current_month_tokens: 0, current_month_requests: 0 });
});

test('it is shown as disabled while it is not enabled; new credentials give one in error another chance', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await newAccount(app, ann);
  const { logical_model_id: model } = await newModel(ann, {}, [id]);
  const url = `${accountsOf(ann)}/${id}`;
  const change = async (fields: object) => {
    const { body } = await ann.call<Account>('PATCH', url, fields);
    return [body.status, body.status_reason];
  };
  expect(await change({ enabled: false })).toEqual(['disabled', 'Disabled by an administrator.']);
  expect((await ann.call<Model>('GET', modelUrl(ann, model))).body.status).toBe('unavailable');
  expect(await change({ enabled: true })).toEqual(['active', null]);
  expect(await eventsOf(app, model, ann.orgId)).toEqual(['model.created', 'model.updated', 'model.updated']);
  await app.database.prisma.providerAccount.update({
    where: { id },
    data: { status: 'error', statusReason: 'refused', authFailures: 3 },
  });
  expect(await change({ name: 'Other' })).toEqual(['error', 'refused']);
  expect(await change({ credentials_ref: 'env:OPENAI_2' })).toEqual(['pending', null]);
  expect(await app.database.prisma.providerAccount.findUnique({ where: { id } })).toMatchObject({ authFailures: 0 });
});

test('lists are filtered by provider, by the status that is shown, and by enabled', async () => {
  const ann = await register(app, { name: 'ann' });
  await newAccount(app, ann, { name: 'one' });
  await newAccount(app, ann, { name: 'two', provider_type: 'ollama', enabled: false });
  await newAccount(app, ann, { name: 'three', provider_type: 'ollama' }, 'error');
  const names = async (query: string) => {
    const { body } = await ann.call<{ total: number; accounts: { name: string }[] }>(
      'GET',
      `${accountsOf(ann)}?${query}`,
    );
    expect(body.total).toBe(body.accounts.length);
    return body.accounts.map(({ name }) => name);
  };
  expect(await names('')).toEqual(['three', 'two', 'one']);
  expect(await names('provider_type=ollama')).toEqual(['three', 'two']);
  expect(await names('status=active')).toEqual(['one']);
  expect(await names('status=disabled')).toEqual(['two']);
  expect(await names('enabled_only=true&provider_type=ollama')).toEqual(['three']);
  expect((await ann.call('GET', `${accountsOf(ann)}?limit=101`)).status).toBe(422);
});

describe('an account that a model uses', () => {
  test('is not deleted; the answer names the models', async () => {
    const ann = await register(app, { name: 'ann' });
    const id = await newAccount(app, ann);
    for (const logical_model_id of ['b', 'a'])
      await newModel(ann, { logical_model_id }, [id, { provider_account_id: id, model_name: 'x' }]);
    expect(await ann.call('DELETE', `${accountsOf(ann)}/${id}`)).toMatchObject({
      status: 409,
      body: {
        error: 'RESOURCE_CONFLICT',
        details: {
          resource_type: 'provider_account',
          resource_id: id,
          reason: 'in_use',
          references: [
            { resource_type: 'model', resource_id: 'a' },
            { resource_type: 'model', resource_id: 'b' },
          ],
        },
      },
    });
    for (const model of ['a', 'b']) await ann.call('PATCH', modelUrl(ann, model), { targets: [] });
    expect((await ann.call('DELETE', `${accountsOf(ann)}/${id}`)).status).toBe(204);
    expect(await eventsOf(app, id)).toEqual(['provider_account.created', 'provider_account.deleted']);
    expect((await ann.call('DELETE', `${accountsOf(ann)}/${id}`)).status).toBe(404);
  });

  test('a new target and the deletion at the same time: never a target without its account', async () => {
    const ann = await register(app, { name: 'ann' });
    const seen = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const id = await newAccount(app, ann);
      const payload = {
        logical_model_id: `raced-${round}`,
        name: 'Raced',
        targets: [{ provider_account_id: id, model_name: 'm' }],
      };
      const [deleted, created] = await Promise.all([
        ann.call('DELETE', `${accountsOf(ann)}/${id}`),
        ann.call<Model>('POST', catalogOf(ann), payload),
      ]);
      seen.add(`${deleted.status} ${created.status}`);
      const { body } = await ann.call<Model>('GET', modelUrl(ann, `raced-${round}`));
      if (created.status === 201) expect(body.targets).toHaveLength(1);
    }
    expect([...seen].filter((pair) => pair !== '204 422' && pair !== '409 201')).toEqual([]);
  });
});

test('a foreign account is missing; viewers and members see none', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const id = await newAccount(app, ann);
  for (const method of ['GET', 'PATCH', 'DELETE'] as const)
    expect(await eve.call(method, `${accountsOf(eve)}/${id}`, method === 'PATCH' ? {} : undefined)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'provider_account', resource_id: id } },
    });
  const member = await colleague(app, ann, 'member');
  expect(await member.call('GET', `${accountsOf(ann)}/${id}`)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'provider_account:read' } },
  });
  expect((await (await colleague(app, ann, 'editor')).call('GET', `${accountsOf(ann)}/${id}`)).status).toBe(200);
});
