import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { catalogOf, entitle, type Model, modelUrl, newAccount, newModel } from './catalogue.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Problem {
  detail: { type: string; loc: (string | number)[]; msg: string }[];
}
const placesOf = (body: unknown) => (body as Problem).detail.map(({ loc, type }) => [loc.slice(1).join('.'), type]);

const noConstraints = {
  data_residency: [],
  require_audit_log: false,
  max_cost_per_1k_tokens: null,
  max_latency_ms: null,
  allow_caching: null,
  cache_ttl_seconds: null,
};

test('only id and name are needed; everything else has its default, and every field is there', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<Model>('POST', catalogOf(ann), { logical_model_id: 'gpt-4o', name: 'GPT' });
  expect(status).toBe(201);
  expect(body).toEqual({
    logical_model_id: 'gpt-4o',
    org_id: ann.orgId,
    name: 'GPT',
    description: null,
    model_type: 'chat',
    status: 'active',
    status_reason: null,
    capabilities: {},
    default_temperature: null,
    default_top_p: null,
    default_max_tokens: null,
    fallback_chain: [],
    targets: [],
    constraints: noConstraints,
    enabled: true,
    healthy_targets_count: 0,
    total_targets_count: 0,
    tags: {},
    created_by: ann.userId,
    created_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
    updated_at: expect.stringMatching(/Z$/),
  });
  expect((await ann.call('GET', modelUrl(ann, 'gpt-4o'))).body).toEqual(body);
  const list = (await ann.call('GET', catalogOf(ann))).body;
  expect(list).toEqual({ total: 1, has_more: false, next_cursor: null, models: [body] });
  expect(await eventsOf(app, 'gpt-4o', ann.orgId)).toEqual(['model.created']);
});

test('all fields are stored as given, targets with their defaults, in their order', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two] = [await newAccount(app, ann), await newAccount(app, ann)];
  const given = {
    description: 'Fast',
    model_type: 'embedding',
    capabilities: { vision: true, tool_use: false },
    default_temperature: 0.7,
    default_top_p: 1,
    default_max_tokens: 4096,
    tags: { Team: 'red', 'cost centre': '42' },
    enabled: false,
    constraints: {
      data_residency: ['eu', 'CH'],
      require_audit_log: true,
      max_cost_per_1k_tokens: '0.0025',
      max_latency_ms: 800,
      allow_caching: true,
      cache_ttl_seconds: 60,
    },
  };
  const body = await newModel(ann, { logical_model_id: 'full', ...given }, [
    two,
    {
      provider_account_id: one,
      weight: 0,
      priority: 7,
      enabled: false,
      temperature_override: 2,
      max_tokens_override: 1,
    },
  ]);
  const target = { last_failure: null, last_success: null, consecutive_failures: 0 };
  expect(body).toMatchObject({
    ...given,
    status: 'degraded',
    status_reason: '1 of 2 targets is healthy: 1 disabled.',
    healthy_targets_count: 1,
    total_targets_count: 2,
  });
  expect(body.targets).toEqual([
    {
      ...target,
      provider_account_id: two,
      model_name: 'target-0',
      weight: 100,
      priority: 1,
      enabled: true,
      temperature_override: null,
      max_tokens_override: null,
    },
    {
      ...target,
      provider_account_id: one,
      model_name: 'target-1',
      weight: 0,
      priority: 7,
      enabled: false,
      temperature_override: 2,
      max_tokens_override: 1,
    },
  ]);
});

test('GraphQL gives the same, with the accounts of the targets for those who may read them', async () => {
  const ann = await register(app, { name: 'ann' });
  const account = await newAccount(app, ann, { name: 'At the provider' });
  const { logical_model_id: logicalModelId } = await newModel(ann, { tags: { a: 'b' } }, [account]);
  const query = `query ($orgId: ID!, $logicalModelId: ID!) {
    logicalModel(orgId: $orgId, logicalModelId: $logicalModelId) {
      id logicalModelId modelType tags capabilities constraints { dataResidency maxCostPer1kTokens }
      targets { modelName account { name status } } } }`;
  const variables = { orgId: ann.orgId, logicalModelId };
  const model = {
    id: expect.stringMatching(/^mdl_/),
    logicalModelId,
    modelType: 'chat',
    tags: { a: 'b' },
    capabilities: {},
    constraints: { dataResidency: [], maxCostPer1kTokens: null },
  };
  expect(await ann.ask(query, variables)).toEqual({
    data: {
      logicalModel: {
        ...model,
        targets: [{ modelName: 'target-0', account: { name: 'At the provider', status: 'active' } }],
      },
    },
  });
  const viewer = await colleague(app, ann, 'viewer');
  const seen = await viewer.ask(query, variables);
  expect(seen.data).toEqual({ logicalModel: { ...model, targets: [{ modelName: 'target-0', account: null }] } });
  expect(seen.errors).toMatchObject([
    { extensions: { code: 'FORBIDDEN', details: { required_permission: 'provider_account:read' } } },
  ]);
});

test('an identifier may hold slashes and colons: the path takes it percent-encoded', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = 'meta/llama-3.1:70b_instruct//x';
  await newModel(ann, { logical_model_id: id });
  const url = modelUrl(ann, id);
  expect(url).toContain('meta%2Fllama-3.1%3A70b_instruct%2F%2Fx');
  expect((await ann.call('GET', url)).body).toMatchObject({ logical_model_id: id });
  expect((await ann.call('PATCH', url, { name: 'Llama' })).body).toMatchObject({ logical_model_id: id, name: 'Llama' });
  expect((await ann.call('DELETE', url)).status).toBe(204);
  expect(await ann.call('GET', url)).toMatchObject({
    status: 404,
    body: { error: 'RESOURCE_NOT_FOUND', details: { resource_type: 'model', resource_id: id } },
  });
});

test('an identifier is taken once per organization: of two at once one is made', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const payload = { logical_model_id: 'same', name: 'Same' };
  const answers = await Promise.all([1, 2].map(() => ann.call<Model>('POST', catalogOf(ann), payload)));
  expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 409]);
  expect(answers.find(({ status }) => status === 409)).toMatchObject({
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'model', field: 'logical_model_id', value: 'same', resource_id: 'same' },
    },
  });
  expect((await eve.call('POST', catalogOf(eve), payload)).status).toBe(201);
});

test('a change leaves alone what it does not name; null clears; an empty one changes nothing', async () => {
  const ann = await register(app, { name: 'ann' });
  const before = await newModel(ann, { description: 'x', default_temperature: 1, tags: { a: '1', b: '2' } });
  const url = modelUrl(ann, before.logical_model_id);
  const { updated_at: _then, ...kept } = before;
  expect((await ann.call('PATCH', url, {})).body).toMatchObject(kept);
  const { body } = await ann.call<Model>('PATCH', url, {
    description: null,
    default_temperature: null,
    tags: { b: '3' },
    constraints: { max_latency_ms: 5 },
  });
  expect(body).toEqual({
    ...before,
    description: null,
    default_temperature: null,
    tags: { b: '3' },
    constraints: { ...noConstraints, max_latency_ms: 5 },
    updated_at: expect.any(String),
  });
  expect((await ann.call('PATCH', url, { constraints: null })).body).toMatchObject({ constraints: noConstraints });
  expect((await changesOf(app, before.logical_model_id)).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', {}],
    ['update', { fields: [] }],
    ['update', { fields: ['description', 'defaultTemperature', 'tags', 'constraints'] }],
    ['update', { fields: ['constraints'] }],
  ]);
});

test('targets are replaced whole; one that stays keeps its failures and successes', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two] = [await newAccount(app, ann), await newAccount(app, ann)];
  const { logical_model_id: id } = await newModel(ann, {}, [one, two]);
  await app.database.prisma.modelTarget.updateMany({
    where: { providerAccountId: { in: [one, two] } },
    data: { consecutiveFailures: 2, lastFailure: new Date('2026-01-02T03:04:05.678Z') },
  });
  const targets = [
    { provider_account_id: two, model_name: 'new' },
    { provider_account_id: one, model_name: 'target-0', weight: 5 },
  ];
  const { body } = await ann.call<Model>('PATCH', modelUrl(ann, id), { targets });
  expect(body.targets).toMatchObject([
    { provider_account_id: two, model_name: 'new', consecutive_failures: 0, last_failure: null, weight: 100 },
    { model_name: 'target-0', consecutive_failures: 2, last_failure: '2026-01-02T03:04:05.678Z', weight: 5 },
  ]);
  expect((await ann.call('PATCH', modelUrl(ann, id), { targets: [] })).body).toMatchObject({
    targets: [],
    total_targets_count: 0,
    status: 'active',
  });
});

describe('what is wrong is said at its place', () => {
  let ann: Person;
  let account: string;
  let foreign: string;
  beforeAll(async () => {
    ann = await register(app, { name: 'ann' });
    account = await newAccount(app, ann);
    foreign = await newAccount(app, await register(app, { name: 'eve' }));
    await newModel(ann, { logical_model_id: 'there' });
  });
  const target = (more: object) => ({ provider_account_id: account, model_name: 'm', ...more });

  test.each<[string, () => object, [string, string][]]>([
    ['no id', () => ({ logical_model_id: undefined }), [['logical_model_id', 'missing']]],
    ['a blank in the id', () => ({ logical_model_id: 'a b' }), [['logical_model_id', 'string_pattern_mismatch']]],
    [
      'an id too long',
      () => ({ logical_model_id: 'x'.repeat(129) }),
      [['logical_model_id', 'string_pattern_mismatch']],
    ],
    ['an id that paths swallow', () => ({ logical_model_id: '..' }), [['logical_model_id', 'string_pattern_mismatch']]],
    ['an empty name', () => ({ name: '' }), [['name', 'string_too_short']]],
    [
      'numbers out of bounds',
      () => ({ default_temperature: 2.1, default_top_p: -0.1, default_max_tokens: 0 }),
      [
        ['default_temperature', 'less_than_equal'],
        ['default_top_p', 'greater_than_equal'],
        ['default_max_tokens', 'greater_than_equal'],
      ],
    ],
    [
      'values of maps',
      () => ({ capabilities: { vision: 'yes', audio: true }, tags: { ok: 'x', number: 1 } }),
      [
        ['capabilities.vision', 'bool_type'],
        ['tags.number', 'string_type'],
      ],
    ],
    ['a map that is a list', () => ({ tags: [] }), [['tags', 'dict_type']]],
    ['a long tag', () => ({ tags: { a: 'x'.repeat(257) } }), [['tags.a', 'string_too_long']]],
    [
      'too many tags',
      () => ({ tags: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, ''])) }),
      [['tags', 'too_long']],
    ],
    ['an empty key', () => ({ tags: { '': 'x' } }), [['tags..[key]', 'string_too_short']]],
    ['six fallbacks', () => ({ fallback_chain: Array(6).fill('there') }), [['fallback_chain', 'too_long']]],
    [
      'fallbacks that are unknown, itself, or there twice',
      () => ({ fallback_chain: ['there', 'nowhere', 'new', 'there'] }),
      [
        ['fallback_chain.1', 'value_error'],
        ['fallback_chain.2', 'value_error'],
        ['fallback_chain.3', 'value_error'],
      ],
    ],
    [
      'targets',
      () => ({
        targets: [
          target({ weight: 1001, priority: 0 }),
          { model_name: 'm' },
          target({ max_tokens_override: 0, temperature_override: 3, model_name: '' }),
        ],
      }),
      [
        ['targets.0.weight', 'less_than_equal'],
        ['targets.0.priority', 'greater_than_equal'],
        ['targets.1.provider_account_id', 'missing'],
        ['targets.2.model_name', 'string_too_short'],
        ['targets.2.temperature_override', 'less_than_equal'],
        ['targets.2.max_tokens_override', 'greater_than_equal'],
      ],
    ],
    [
      '51 targets',
      () => ({ targets: Array.from({ length: 51 }, (_, i) => target({ model_name: `m${i}` })) }),
      [['targets', 'too_long']],
    ],
    [
      'accounts of nobody and of others',
      () => ({
        targets: [target({}), target({ provider_account_id: foreign }), target({ provider_account_id: 'pa_none' })],
      }),
      [
        ['targets.1.provider_account_id', 'value_error'],
        ['targets.2.provider_account_id', 'value_error'],
      ],
    ],
    [
      'the same target twice',
      () => ({ targets: [target({}), target({ weight: 1 })] }),
      [['targets.1.model_name', 'value_error']],
    ],
    [
      'constraints',
      () => ({ constraints: { data_residency: [''], max_cost_per_1k_tokens: '-1', max_latency_ms: 0 } }),
      [
        ['constraints.data_residency.0', 'string_too_short'],
        ['constraints.max_cost_per_1k_tokens', 'string_pattern_mismatch'],
        ['constraints.max_latency_ms', 'greater_than_equal'],
      ],
    ],
  ])('%s', async (_title, fields, places) => {
    const { status, body } = await ann.call('POST', catalogOf(ann), {
      logical_model_id: 'new',
      name: 'New',
      ...fields(),
    });
    expect([status, placesOf(body)]).toEqual([422, places]);
  });

  test('a change cannot clear what must be, nor set a status that is derived', async () => {
    const nulls = {
      name: null,
      model_type: null,
      capabilities: null,
      fallback_chain: null,
      enabled: null,
      tags: null,
      targets: null,
    };
    const wrong = await ann.call('PATCH', modelUrl(ann, 'there'), { status: 'degraded' });
    expect([wrong.status, placesOf(wrong.body)]).toEqual([422, [['status', 'literal_error']]]);
    const { status, body } = await ann.call('PATCH', modelUrl(ann, 'there'), nulls);
    expect(status).toBe(422);
    expect(placesOf(body)).toEqual([
      ['name', 'string_type'],
      ['model_type', 'string_type'],
      ['capabilities', 'dict_type'],
      ['fallback_chain', 'list_type'],
      ['enabled', 'bool_type'],
      ['tags', 'dict_type'],
      ['targets', 'list_type'],
    ]);
  });

  test('lists take 1 to 100 rows', async () => {
    for (const [limit, status] of [
      [0, 422],
      [101, 422],
      [100, 200],
    ])
      expect((await ann.call('GET', `${catalogOf(ann)}?limit=${limit}`)).status).toBe(status);
  });
});

describe('fallback chains', () => {
  test('lead nowhere back, however long the way', async () => {
    const ann = await register(app, { name: 'ann' });
    for (const id of ['a', 'b', 'c', 'd']) await newModel(ann, { logical_model_id: id });
    const chain = (id: string, fallback_chain: string[]) => ann.call('PATCH', modelUrl(ann, id), { fallback_chain });
    expect((await chain('a', ['b'])).status).toBe(200);
    expect((await chain('b', ['d', 'c'])).status).toBe(200);
    const { status, body } = await chain('c', ['d', 'a']);
    expect(status).toBe(422);
    expect(body).toEqual({
      detail: [
        {
          type: 'value_error',
          loc: ['body', 'fallback_chain', 1],
          msg: "Value error, it leads back to 'c': a → b → c",
          input: 'a',
          ctx: { error: "it leads back to 'c': a → b → c" },
        },
      ],
    });
    expect((await chain('a', ['a'])).status).toBe(422);
    expect((await chain('b', [])).status).toBe(200);
    expect((await chain('c', ['d', 'a'])).status).toBe(200);
  });

  test('two changes that close a circle together: one of them is refused, every time', async () => {
    const ann = await register(app, { name: 'ann' });
    for (let round = 0; round < 10; round++) {
      const [one, two] = [await newModel(ann), await newModel(ann)].map(({ logical_model_id: id }) => id) as [
        string,
        string,
      ];
      const answers = await Promise.all([
        ann.call('PATCH', modelUrl(ann, one), { fallback_chain: [two] }),
        ann.call('PATCH', modelUrl(ann, two), { fallback_chain: [one] }),
      ]);
      expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 422]);
    }
  });

  test('models of another organization are not known', async () => {
    const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
    await newModel(eve, { logical_model_id: 'theirs' });
    const { logical_model_id: id } = await newModel(ann);
    expect((await ann.call('PATCH', modelUrl(ann, id), { fallback_chain: ['theirs'] })).status).toBe(422);
  });
});

describe('status', () => {
  const table: [string, object, object, number, string][] = [
    ['all is well', {}, {}, 0, 'active'],
    ['two failures', {}, {}, 2, 'active'],
    ['three failures', {}, {}, 3, 'unavailable'],
    ['the target is disabled', { enabled: false }, {}, 0, 'unavailable'],
    ['the account is disabled', {}, { enabled: false }, 0, 'unavailable'],
    ['the account is pending', {}, { status: 'pending' }, 0, 'unavailable'],
    ['the account is degraded', {}, { status: 'degraded' }, 0, 'unavailable'],
    ['the account is in error', {}, { status: 'error' }, 0, 'unavailable'],
  ];
  test.each(table)('%s: it is derived from the targets', async (_title, target, account, failures, status) => {
    const ann = await register(app, { name: 'ann' });
    const [one, good] = [await newAccount(app, ann), await newAccount(app, ann)];
    await app.database.prisma.providerAccount.update({ where: { id: one }, data: account });
    const alone = await newModel(ann, {}, [{ provider_account_id: one, ...target }]);
    const both = await newModel(ann, {}, [{ provider_account_id: one, ...target }, good]);
    await app.database.prisma.modelTarget.updateMany({
      where: { providerAccountId: one },
      data: { consecutiveFailures: failures },
    });
    const healthy = status === 'active' ? 1 : 0;
    const read = async ({ logical_model_id: id }: Model) => (await ann.call<Model>('GET', modelUrl(ann, id))).body;
    expect(await read(alone)).toMatchObject({ status, healthy_targets_count: healthy, total_targets_count: 1 });
    const expected = healthy ? 'active' : 'degraded';
    expect(await read(both)).toMatchObject({
      status: expected,
      healthy_targets_count: healthy + 1,
      total_targets_count: 2,
    });
    expect((await read(both)).status_reason === null).toBe(expected === 'active');
  });

  test('set by hand it wins, until it is given back', async () => {
    const ann = await register(app, { name: 'ann' });
    const { logical_model_id: id } = await newModel(ann, {}, [await newAccount(app, ann, {}, 'error')]);
    const shown = async (status: string | null) => {
      const { body } = await ann.call<Model>('PATCH', modelUrl(ann, id), { status });
      return [body.status, body.status_reason];
    };
    const derived = ['unavailable', '0 of 1 targets are healthy: 1 at an account that is not active.'];
    expect(await shown('deprecated')).toEqual(['deprecated', 'Set to deprecated by an administrator.']);
    expect(await shown('disabled')).toEqual(['disabled', 'Set to disabled by an administrator.']);
    expect(await shown('active')).toEqual(derived);
    expect(await shown('deprecated')).toEqual(['deprecated', 'Set to deprecated by an administrator.']);
    expect(await shown(null)).toEqual(derived);
  });
});

test('lists are filtered by type, by the status that is shown and by enabled; pages and totals agree', async () => {
  const ann = await register(app, { name: 'ann' });
  const [good, bad] = [await newAccount(app, ann), await newAccount(app, ann, {}, 'error')];
  const kinds: [string, object, string[]][] = [
    ['active', {}, [good]],
    ['degraded', {}, [good, bad]],
    ['unavailable', {}, [bad]],
    ['embedding', { model_type: 'embedding', enabled: false }, []],
  ];
  for (let i = 0; i < 3; i++)
    for (const [name, fields, targets] of kinds) await newModel(ann, { name, ...fields }, targets);
  const { logical_model_id: old } = await newModel(ann, { name: 'deprecated' }, [bad]);
  await ann.call('PATCH', modelUrl(ann, old), { status: 'deprecated' });

  interface Page {
    total: number;
    has_more: boolean;
    next_cursor: string | null;
    models: { name: string }[];
  }
  const walk = async (query: string) => {
    const names: string[] = [];
    let total = 0;
    for (let cursor: string | null = ''; cursor !== null; ) {
      const url: string = `${catalogOf(ann)}?limit=2&${query}${cursor ? `&cursor=${cursor}` : ''}`;
      const { status, body } = await ann.call<Page>('GET', url);
      expect(status).toBe(200);
      names.push(...body.models.map(({ name }) => name));
      cursor = body.next_cursor;
      ({ total } = body);
    }
    expect(total).toBe(names.length);
    return names;
  };
  const thrice = (...names: string[]) => [0, 1, 2].flatMap(() => names);
  expect(await walk('status=active')).toEqual(thrice('embedding', 'active'));
  expect(await walk('status=degraded')).toEqual(thrice('degraded'));
  expect(await walk('status=unavailable')).toEqual(thrice('unavailable'));
  expect(await walk('status=deprecated')).toEqual(['deprecated']);
  expect(await walk('status=nonsense')).toEqual([]);
  expect(await walk('model_type=embedding')).toEqual(thrice('embedding'));
  expect(await walk('enabled_only=true&status=active')).toEqual(thrice('active'));
  expect(await walk('enabled_only=true')).toEqual(['deprecated', ...thrice('unavailable', 'degraded', 'active')]);
  expect(await walk('')).toHaveLength(13);
  const data = (
    await ann.ask<{ organization: { models: { totalCount: number; nodes: { status: string }[] } } }>(
      `query ($id: ID!) { organization(id: $id) {
        models(first: 1, status: "degraded") { totalCount nodes { status } } } }`,
      { id: ann.orgId },
    )
  ).data;
  expect(data.organization.models).toEqual({ totalCount: 3, nodes: [{ status: 'degraded' }] });
});

test('a deleted model takes its entitlements along and leaves all chains, with an event for each', async () => {
  const ann = await register(app, { name: 'ann' });
  const { logical_model_id: id } = await newModel(ann, { logical_model_id: 'gone' }, [await newAccount(app, ann)]);
  const { logical_model_id: other } = await newModel(ann, { logical_model_id: 'stays' });
  const { logical_model_id: first } = await newModel(ann, { logical_model_id: 'first', fallback_chain: [id, other] });
  const entitlement = (await entitle(ann, id)) as { entitlement_id: string };
  await entitle(ann, other);
  expect((await ann.call('DELETE', modelUrl(ann, id))).status).toBe(204);
  expect((await ann.call('GET', modelUrl(ann, first))).body).toMatchObject({ fallback_chain: [other] });
  expect((await ann.call('GET', `${ann.home}/model-entitlements`)).body).toMatchObject({
    total: 1,
    entitlements: [{ logical_model_id: other }],
  });
  expect(await eventsOf(app, id, ann.orgId)).toEqual(['model.created', 'model.deleted']);
  expect(await eventsOf(app, first, ann.orgId)).toEqual(['model.created', 'model.updated']);
  expect(await eventsOf(app, entitlement.entitlement_id)).toEqual([
    'model_entitlement.created',
    'model_entitlement.deleted',
  ]);
  expect((await changesOf(app, id)).at(-1)).toMatchObject({
    action: 'delete',
    resourceType: 'model',
    metadata: { entitlements: [entitlement.entitlement_id], fallback_chains: [first] },
  });
  expect((await ann.call('DELETE', modelUrl(ann, id))).status).toBe(404);
});

test('two tenants with the same identifiers never mix', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  await newModel(ann, { logical_model_id: 'shared', name: 'of ann' });
  await newModel(eve, { logical_model_id: 'shared', name: 'of eve', fallback_chain: [] });
  await newModel(eve, { logical_model_id: 'also', fallback_chain: ['shared'] });
  expect((await ann.call('GET', modelUrl(ann, 'shared'))).body).toMatchObject({ name: 'of ann' });
  expect((await ann.call('PATCH', modelUrl(ann, 'shared'), { name: 'changed' })).status).toBe(200);
  expect((await ann.call('DELETE', modelUrl(ann, 'shared'))).status).toBe(204);
  expect((await eve.call('GET', modelUrl(eve, 'shared'))).body).toMatchObject({ name: 'of eve' });
  expect((await eve.call('GET', modelUrl(eve, 'also'))).body).toMatchObject({ fallback_chain: ['shared'] });
  for (const method of ['GET', 'PATCH', 'DELETE'] as const)
    expect(await ann.call(method, modelUrl(eve, 'shared'), method === 'PATCH' ? {} : undefined)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization:access' } },
    });
});
