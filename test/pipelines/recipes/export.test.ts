import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../../src/pipelines/recipes/recipe.words.ts';
import type { RecipeDocument } from '../../../src/pipelines/recipes/recipe-document.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { type Augmentation, createPipeline, type Pipeline } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Exported {
  recipe: RecipeDocument;
  warnings: string[];
}

const exported = (who: Person, appId: string, from = who) =>
  who.call<Exported>('POST', `${from.home}/apps/${appId}/export-recipe`);
const apply = (who: Person, body: object) =>
  who.call<{ app_id: string; message: string }>('POST', `${who.home}/recipes/apply`, body);

/** What only one app has. */
const OF_ONE = new Set(
  (
    'app_id augmentation_id endpoint_id action_id org_id workspace_id created_by created_at updated_at ' +
    'next_fire_at last_fired_at'
  ).split(' '),
);

/** What the rows of an app say, without identifiers and times. */
async function contentOf({ url, who }: Pick<Pipeline, 'url' | 'who'>): Promise<unknown> {
  type Row = Record<string, unknown>;
  const list = async (name: string) =>
    (await who.call<Record<string, Row[]>>('GET', `${url}/${name}?limit=200`)).body[name]!.toReversed();
  const [augmentations, endpoints, actions] = [
    await list('augmentations'),
    await list('endpoints'),
    await list('actions'),
  ];
  const place = new Map(augmentations.map(({ augmentation_id }, at) => [augmentation_id, at]));
  const bare = (row: Row) => ({
    ...Object.fromEntries(Object.entries(row).filter(([name]) => !OF_ONE.has(name))),
    runs: place.get(row.augmentation_id),
  });
  const whole = (await who.call<Row>('GET', url)).body;
  return {
    app: bare(whole),
    augmentations: augmentations.map((one) => ({
      ...bare(one),
      stages: (one.stages as (Row & { steps: Row[] })[]).map(({ stage_id: _stage, ...stage }) => ({
        ...stage,
        steps: stage.steps.map(({ step_id: _step, ...step }) => step),
      })),
    })),
    endpoints: endpoints.map(bare),
    actions: actions.map(bare),
  };
}

const name = fc.oneof(
  fc.constantFrom('Answers', 'answers', 'Été 2025!', '日本', 'default', '{{parameters.x}}', 'a'.repeat(255)),
  fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }).filter((text) => !text.includes('\u0000')),
);
const description = fc.option(fc.constantFrom('', 'What it does.', '{{input.text}}'));
const json = fc.dictionary(
  fc.constantFrom('prompt', 'topK', 'nested', 'list', '{{input}}', 'constructor', 'auth'),
  fc.oneof(
    fc.constantFrom(
      '',
      '{{steps.find.text}}',
      '{{step.answer}}',
      '{{app}} {{literal.app}}',
      'ünï',
      '{{secret.search}}',
      'secret://database',
      'Keep the password: never say {{secret.search}}.',
      '{{parameters.model}}',
    ),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.oneof(fc.integer(), fc.constant('x')), { maxLength: 3 }),
    fc.constant({ a: { b: [] } }),
  ),
  { maxKeys: 4 },
);
const step = fc.record({
  key: fc.option(fc.constantFrom('find', 'answer', 'a-1')),
  name,
  step_type: fc.constantFrom('llm', 'tool', 'own.word:1'),
  config: json,
  logical_model_id: fc.option(fc.constantFrom('large', 'large', 'large', 'of-nobody')),
  tool_slug: fc.option(fc.constantFrom('wikipedia', 'slack', 'not-there'), { freq: 8 }),
  action: fc.option(fc.constantFrom('summary', 'post message')),
  tool_instance_id: fc.option(fc.constant('instance')),
});
const stage = fc.record({
  name,
  execution_mode: fc.constantFrom('sequential', 'parallel'),
  steps: fc.array(step, { maxLength: 3 }),
});
const runs = { augmentation: fc.nat(), name, description, enabled: fc.boolean() };
const wholeApp = fc.record({
  name,
  description,
  metadata: json,
  augmentations: fc.array(
    fc.record({
      name,
      description,
      status: fc.constantFrom('draft', 'active', 'archived'),
      metadata: json,
      stages: fc.array(stage, { maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
  endpoints: fc.array(fc.record({ ...runs, method: fc.constantFrom('GET', 'POST'), metadata: json }), {
    maxLength: 3,
  }),
  actions: fc.array(
    fc.record({
      ...runs,
      input: json,
      start: fc.constantFrom<object>(
        { kind: 'manual' },
        { kind: 'trigger', trigger_event: 'artifact.*' },
        { kind: 'scheduled', cron: '30 8 * * 1-5', timezone: 'Europe/Berlin' },
      ),
    }),
    { maxLength: 3 },
  ),
});

/** Steps of one augmentation as they may be: no key twice, and no reference to a step that is not there. */
function fitting<Stage extends { steps: { key: string | null; config: object }[] }>(stages: readonly Stage[]): Stage[] {
  const keys = new Set<string>();
  const isFirst = (key: string) => !keys.has(key) && keys.add(key).has(key);
  const keyed = stages.map((one) => ({
    ...one,
    steps: one.steps.map((step) => ({ ...step, key: step.key !== null && isFirst(step.key) ? step.key : null })),
  }));
  const texts = JSON.stringify(keyed);
  return JSON.parse(
    texts.replaceAll(/\{\{steps?\.([\w-]+)[^{}]*\}\}/g, (text, key: string) => (keys.has(key) ? text : 'nothing')),
  ) as Stage[];
}

/** Somebody with a model and a tool instance. */
async function equipped(): Promise<{ who: Person; instanceId: string }> {
  const who = await register(app, { name: 'ann' });
  const org = `/v1/orgs/${who.orgId}`;
  await who.call('POST', `${org}/model-catalog`, { logical_model_id: 'large', name: 'Large' });
  const { tools } = (await who.call<{ tools: { tool_id: string }[] }>('GET', `${org}/tools?search=wikipedia`)).body;
  const { body } = await who.call<{ instance_id: string }>('POST', `${who.home}/tool-instances`, {
    tool_id: tools[0]!.tool_id,
    name: 'Encyclopedia',
  });
  await who.call('POST', `${org}/secrets`, { name: 'search', secret_type: 'api_key', value: { api_key: 'k' } });
  return { who, instanceId: body.instance_id };
}

/** An action without whether its schedule is enabled: schedules of an app that lacks something are not. */
function withoutSchedule(at: unknown): unknown {
  if (typeof at !== 'object' || at === null || (at as { kind?: unknown }).kind !== 'scheduled') return at;
  return { ...at, enabled: null };
}

test('an exported app that is applied equals the app, row by row, and so does its own export', async () => {
  const { who, instanceId } = await equipped();
  await fc.assert(
    fc.asyncProperty(wholeApp, async (given) => {
      const made = await who.call<{ app_id: string }>('POST', `${who.home}/apps`, {
        name: given.name,
        description: given.description,
        metadata: given.metadata,
      });
      expect(made.status).toBe(201);
      const url = `${who.home}/apps/${made.body.app_id}`;
      const ids: string[] = [];
      for (const augmentation of given.augmentations) {
        const stages = fitting(augmentation.stages).map((one) => ({
          ...one,
          steps: one.steps.map((inner) => ({
            ...inner,
            tool_instance_id: inner.tool_instance_id && instanceId,
            // a tool of which the workspace has no instance; with an instance it is that of the instance
            tool_slug: inner.tool_instance_id || inner.tool_slug === 'wikipedia' ? null : inner.tool_slug,
          })),
        }));
        const answer = await who.call<{ augmentation_id: string }>('POST', `${url}/augmentations`, {
          ...augmentation,
          stages,
        });
        expect(answer.status, JSON.stringify(answer.body)).toBe(201);
        ids.push(answer.body.augmentation_id);
      }
      if (ids.length > 0) {
        for (const [at, { augmentation, ...endpoint }] of given.endpoints.entries()) {
          const payload = { ...endpoint, path: `/p-${at}`, augmentation_id: ids[augmentation % ids.length] };
          expect((await who.call('POST', `${url}/endpoints`, payload)).status).toBe(201);
        }
        for (const { augmentation, start, ...action } of given.actions) {
          const payload = { ...action, ...start, augmentation_id: ids[augmentation % ids.length] };
          expect((await who.call('POST', `${url}/actions`, payload)).status).toBe(201);
        }
      }
      const first = await exported(who, made.body.app_id);
      expect(first.status, JSON.stringify(first.body)).toBe(200);
      const { recipe, warnings } = first.body;
      expect(warnings).toEqual([]);
      expect(JSON.stringify(recipe)).not.toMatch(/[a-z]{2,5}_[0-9A-HJKMNP-TV-Z]{26}/);
      const copy = await apply(who, { recipe_id: recipe.id, recipe });
      expect(copy.status, JSON.stringify(copy.body)).toBe(200);
      const copyUrl = `${who.home}/apps/${copy.body.app_id}`;
      const { missing } = (await who.call<{ missing: object[] }>('GET', `${url}/missing`)).body;
      expect((await who.call<{ missing: object[] }>('GET', `${copyUrl}/missing`)).body.missing).toEqual(missing);
      const isWhole = missing.length === 0;
      expect(copy.body.message).toMatch(isWhole ? /^Recipe applied successfully$/ : /^Recipe applied\. Missing: /);
      const held = (content: unknown) =>
        isWhole ? content : JSON.parse(JSON.stringify(content), (_key, at: unknown) => withoutSchedule(at));
      expect(held(await contentOf({ url: copyUrl, who }))).toEqual(held(await contentOf({ url, who })));
      const again = (await exported(who, copy.body.app_id)).body;
      expect(held(again)).toEqual(held({ recipe, warnings: [] }));
    }),
    { numRuns: 30 },
  );
});

test('each recipe of the catalogue comes across whole: keys, references, and all texts', async () => {
  const { who } = await equipped();
  const org = `/v1/orgs/${who.orgId}`;
  const { recipes } = (await who.call<{ recipes: { id: string }[] }>('GET', `${org}/recipes`)).body;
  for (const { id } of recipes) {
    const { definition } = (await who.call<RecipeDocument>('GET', `${org}/recipes/${id}`)).body;
    const first = await apply(who, { recipe_id: id });
    const url = `${who.home}/apps/${first.body.app_id}`;
    const made = (await who.call<{ augmentations: Augmentation[] }>('GET', `${url}/augmentations`)).body.augmentations;
    const keys = made.toReversed().map(({ stages }) => stages.flatMap(({ steps }) => steps.map(({ key }) => key)));
    expect(keys.flat().sort(), id).toEqual(definition.steps.map(({ key }) => key).sort());
    for (const [at, { stages }] of made.toReversed().entries())
      for (const [, key] of JSON.stringify(stages).matchAll(/\{\{steps?\.([\w-]+)/g)) expect(keys[at]).toContain(key);
    const { recipe } = (await exported(who, first.body.app_id)).body;
    const copy = await apply(who, { recipe_id: recipe.id, recipe });
    expect(copy.status, JSON.stringify(copy.body)).toBe(200);
    const stagesOf = (content: unknown) => JSON.stringify(content).replaceAll(/stg_\w{26}/g, 'stage');
    const copyUrl = `${who.home}/apps/${copy.body.app_id}`;
    expect(stagesOf(await contentOf({ url: copyUrl, who })), id).toBe(stagesOf(await contentOf({ url, who })));
  }
});

test('apps that were made from the catalogue before steps had keys have those of its recipes', async () => {
  const migration = readFileSync('prisma/migrations/20261124163802_step_keys/migration.sql', 'utf8');
  const backfill = /WITH built_in[^;]+/.exec(migration)![0];
  const ann = await register(app);
  const { recipes } = (await ann.call<{ recipes: { id: string }[] }>('GET', `/v1/orgs/${ann.orgId}/recipes`)).body;
  const made: string[] = [];
  for (const { id } of recipes) made.push((await apply(ann, { recipe_id: id })).body.app_id);
  expect(made).toHaveLength(6);
  await app.database.pool.query(`update augmentation_steps set key = 'of-before-' || id`);
  await app.database.pool.query(backfill);
  for (const appId of made) {
    const { warnings, recipe } = (await exported(ann, appId)).body;
    expect(warnings.filter((text) => text.includes('refers to no step'))).toEqual([]);
    const copy = await apply(ann, { recipe_id: recipe.id, recipe });
    expect(copy.status, JSON.stringify(copy.body)).toBe(200);
  }
});

test('a text that looks like a reference to a step stays one, also if it is of before they were checked', async () => {
  const ann = await register(app);
  const pipeline = await createPipeline(app, ann);
  await pipeline.augmentation({ stages: [{ name: 'Say', steps: [{ name: 'Ask', step_type: 'llm' }] }] });
  const text = 'See {{steps.nowhere.text}} and {{step.nobody}}.';
  await app.database.pool.query(
    `update augmentation_steps set config = jsonb_build_object('prompt', $1::text) where id = (
       select p.id from augmentation_steps p join augmentation_stages s on s.id = p.stage_id
       join augmentations a on a.id = s.augmentation_id where a.app_id = $2 limit 1)`,
    [text, pipeline.appId],
  );
  const { recipe, warnings } = (await exported(ann, pipeline.appId)).body;
  expect(warnings.filter((warning) => warning.includes('refers to no step'))).toEqual([
    '{{steps.nowhere.text}} refers to no step of its augmentation. It is kept as text.',
    '{{step.nobody}} refers to no step of its augmentation. It is kept as text.',
  ]);
  expect(JSON.stringify(recipe)).toContain('See {{literal.steps.nowhere.text}} and {{literal.step.nobody}}.');
  const { status, body } = await apply(ann, { recipe_id: recipe.id, recipe });
  expect(status).toBe(200);
  const copy = await contentOf({ url: `${ann.home}/apps/${body.app_id}`, who: ann });
  expect(JSON.stringify(copy)).toContain(text);
});

test('two augmentations may have steps of one key; references to others name both', async () => {
  const { who, url, appId, augmentation } = await createPipeline(app);
  const stages = [{ name: 'Work', steps: [{ key: 'ask', name: 'Ask', step_type: 'llm' }] }];
  const one = await augmentation({ name: 'One', stages });
  const two = await augmentation({ name: 'Two', stages });
  const [first, second] = [one, two].map((made) => made.stages[0]!.steps[0]!.step_id);
  await who.call('PUT', url, { metadata: { first, second, text: '{{step.one.ask}}' } });
  const { recipe } = (await exported(who, appId)).body;
  expect(recipe.definition.app.metadata).toEqual({
    first: '{{step.one.ask}}',
    second: '{{step.two.ask}}',
    text: '{{literal.step.one.ask}}',
  });
  const copy = await apply(who, { recipe_id: recipe.id, recipe });
  const { metadata } = (
    await who.call<{ metadata: Record<string, string> }>('GET', `${who.home}/apps/${copy.body.app_id}`)
  ).body;
  expect(metadata).toEqual({
    first: expect.stringMatching(/^stp_\w{26}$/),
    second: expect.stringMatching(/^stp_\w{26}$/),
    text: '{{step.one.ask}}',
  });
  expect(new Set([first, second, metadata.first, metadata.second]).size).toBe(4);
  const refused = async (change: (steps: RecipeDocument['definition']['steps']) => void) => {
    const changed = structuredClone(recipe);
    change(changed.definition.steps);
    const answer = await apply(who, { recipe_id: recipe.id, recipe: changed });
    return [
      answer.status,
      (answer.body as unknown as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [
        loc.slice(3).join('.'),
        msg,
      ]),
    ];
  };
  // of a step of another augmentation there is nothing to use
  expect(
    await refused(([a, b]) => {
      a!.key = 'other';
      b!.config = { list: ['{{steps.other.text}}'] };
    }),
  ).toEqual([422, [['steps.1.config.list.0', "Value error, no step has the key 'other'"]]]);
  expect(
    await refused((steps) => {
      steps[1]!.stage = steps[0]!.stage;
    }),
  ).toEqual([422, [['steps.1.key', "Value error, 'ask' is listed twice"]]]);
});

test('identifiers become local names, and secrets their names or nothing', async () => {
  const { who, instanceId } = await equipped();
  const org = `/v1/orgs/${who.orgId}`;
  const secret = (await who.call<{ secret_id: string }>('GET', `${org}/secrets/by-name/search`)).body.secret_id;
  const { url, appId, augmentation, endpoint, action } = await createPipeline(app, who);
  const namespaces = await who.call<{ namespaces: { namespace_id: string }[] }>('GET', `${who.home}/namespaces`);
  const namespaceId = namespaces.body.namespaces[0]!.namespace_id;
  const { augmentation_id, stages } = await augmentation({
    stages: [{ name: 'Find', steps: [{ name: 'Search', step_type: 'tool', tool_instance_id: instanceId }] }],
  });
  await endpoint({ path: '/ask', augmentation_id });
  await endpoint({ path: '/more', augmentation_id, enabled: false });
  await action({ augmentation_id, input: { goto: stages[0]!.stage_id } });
  await who.call('PUT', url, {
    metadata: {
      self: `app ${appId} runs ${augmentation_id} at ${stages[0]!.steps[0]!.step_id}`,
      in: namespaceId,
      by: who.userId,
      reference: secret,
      named: 'secret://search',
      header: 'Bearer {{secret.search}}',
      api_key: 'sk-live-1',
      nested: [{ clientSecret: 'hush' }],
      max_tokens: 'many',
      [augmentation_id]: 1,
    },
  });
  const { recipe, warnings } = (await exported(who, appId)).body;
  expect(recipe).toEqual({
    id: 'shop',
    name: 'Shop',
    description: '',
    category: 'intermediate',
    icon: 'app',
    tags: [],
    needs_embedding: false,
    version: '1.0.0',
    requirements: { tools: ['wikipedia'], models: [], secrets: ['api_key', 'clientSecret', 'search'] },
    parameters: [],
    definition: {
      app: {
        name: 'Shop',
        metadata: {
          self: 'app {{app}} runs {{augmentation.answers}} at {{step.answers.search}}',
          in: '{{namespace}}',
          by: '{{user.1}}',
          reference: '{{secret.search}}',
          named: 'secret://search',
          header: 'Bearer {{secret.search}}',
          api_key: '{{secret.api_key}}',
          nested: [{ clientSecret: '{{secret.clientSecret}}' }],
          max_tokens: 'many',
          '{{augmentation.answers}}': 1,
        },
      },
      namespace: { name: 'Shop' },
      augmentations: [{ key: 'answers', name: 'Answers', status: 'active', metadata: {} }],
      stages: [{ key: 'find', augmentation: 'answers', name: 'Find', execution_mode: 'sequential' }],
      steps: [
        {
          key: 'search',
          stage: 'find',
          name: 'Search',
          step_type: 'tool',
          config: {},
          tool: 'wikipedia',
          tool_instance: 'Encyclopedia',
        },
      ],
      endpoint: {
        key: 'chat',
        augmentation: 'answers',
        name: 'Chat',
        path: '/ask',
        method: 'POST',
        enabled: true,
        metadata: {},
      },
      endpoints: [
        {
          key: 'chat-2',
          augmentation: 'answers',
          name: 'Chat',
          path: '/more',
          method: 'POST',
          enabled: false,
          metadata: {},
        },
      ],
      actions: [
        {
          key: 'report',
          augmentation: 'answers',
          name: 'Report',
          kind: 'manual',
          enabled: true,
          input: { goto: '{{stage.find}}' },
        },
      ],
    },
  });
  expect([...warnings].sort()).toEqual([
    'The recipe does not make the user that the app refers to. {{user.1}} replaces the reference.',
    "The text of 'api_key' may be a secret. {{secret.api_key}} replaces it.",
    "The text of 'clientSecret' may be a secret. {{secret.clientSecret}} replaces it.",
  ]);

  // somebody else gets an app of their own, with identifiers of its own
  const bob = await register(app, { name: 'bob' });
  const copy = (await apply(bob, { recipe_id: 'shop', recipe, name: 'Store' })).body;
  expect(copy.message).toBe(
    "Recipe applied. Missing: an instance of the tool 'wikipedia', the secret 'api_key', the secret 'clientSecret', " +
      "the secret 'search'.",
  );
  const { metadata } = (await bob.call<{ metadata: Record<string, string> }>('GET', `${bob.home}/apps/${copy.app_id}`))
    .body;
  expect(metadata.self).toMatch(new RegExp(`^app ${copy.app_id} runs aug_\\w{26} at stp_\\w{26}$`));
  expect(metadata.in).toMatch(/^ns_\w{26}$/);
  expect(metadata.in).not.toBe(namespaceId);
  expect(metadata.reference).toBe('{{secret.search}}');
  expect(await exported(bob, appId, who)).toMatchObject({ status: 403 });
  expect(await exported(bob, appId)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'app', resource_id: appId } },
  });
});

test('refuses a given recipe at the place that is wrong, and one that grows', async () => {
  const { who } = await equipped();
  const { appId, augmentation, endpoint, action } = await createPipeline(app, who);
  const { augmentation_id } = await augmentation({ stages: [{ name: 'Find', steps: [] }] });
  await endpoint({ path: '/ask', augmentation_id });
  await action({ augmentation_id });
  const { recipe } = (await exported(who, appId)).body;
  const refused = async (change: (copy: RecipeDocument) => unknown, more: object = {}) => {
    const copy = structuredClone(recipe);
    change(copy);
    const { status, body } = await apply(who, { recipe_id: 'shop', recipe: copy, ...more });
    expect(status, JSON.stringify(body)).toBe(422);
    const { detail } = body as unknown as { detail: { loc: unknown[] }[] };
    return detail.map(({ loc }) => loc.join('.'));
  };
  const definition = 'body.recipe.definition';
  expect(await refused(({ definition: d }) => (d.endpoint!.path = 'ask'))).toEqual([`${definition}.endpoint.path`]);
  expect(await refused(({ definition: d }) => (d.endpoint!.augmentation = 'none'))).toEqual([
    `${definition}.endpoint.augmentation`,
  ]);
  expect(await refused(({ definition: d }) => (d.endpoints = [{ ...d.endpoint!, key: 'other' }]))).toEqual([
    `${definition}.endpoints.0.path`,
  ]);
  expect(await refused(({ definition: d }) => (d.actions![0]!.trigger_event = 'no.event'))).toEqual([
    `${definition}.actions.0.trigger_event`,
    `${definition}.actions.0.trigger_event`,
  ]);
  expect(
    await refused(({ definition: d }) => {
      d.stages = Array.from({ length: 51 }, (_, at) => ({ ...d.stages[0]!, key: `s-${at}` }));
    }),
  ).toEqual([`${definition}.augmentations.0`]);
  expect(await refused((copy) => Object.assign(copy, { surprise: 1 }))).toHaveLength(1);
  expect(await refused((copy) => (copy.id = 'other'))).toEqual(['body.recipe_id']);
  expect(await refused((copy) => (copy.parameters = [{ name: 'x', type: 'integer', default: 'y' }]))).toEqual([
    'body.recipe.parameters.0.default',
  ]);
  // 40 KB that would become 80 MB
  const grown = (copy: RecipeDocument) => {
    copy.parameters = [{ name: 'x', type: 'string', max_length: 10_000 }];
    copy.definition.app.metadata = { text: '{{parameters.x}}'.repeat(2_500) };
  };
  expect(await refused(grown, { parameters: { x: 'a'.repeat(10_000) } })).toEqual(['body.parameters']);
  const wide = (copy: RecipeDocument) => {
    copy.parameters = [{ name: 'x', type: 'string', max_length: 10_000 }];
    copy.definition.app.name = 'App {{parameters.x}}';
  };
  expect(await refused(wide, { parameters: { x: 'a'.repeat(256) } })).toEqual(['body.parameters.x']);
});

test('an app that is more than a recipe may be is not exported', async () => {
  const { who, appId, augmentation } = await createPipeline(app);
  const metadata = { text: 'x'.repeat(250_000) };
  for (let n = 0; n < 5; n++) await augmentation({ metadata });
  expect(await exported(who, appId)).toMatchObject({
    status: 409,
    body: { error: 'RESOURCE_CONFLICT', details: { resource_type: 'app', resource_id: appId, reason: 'too_large' } },
  });
});

test('what is exported at the very limit is applied by both faces, and what is larger is not exported', async () => {
  const { who, url, appId, augmentation } = await createPipeline(app);
  for (const name of ['a', 'b', 'c']) await augmentation({ name, metadata: { text: 'x'.repeat(250_000) } });
  const fill = (bytes: number) => who.call('PUT', url, { metadata: { fill: 'x'.repeat(bytes) } });
  await fill(0);
  const least = Buffer.byteLength(JSON.stringify((await exported(who, appId)).body.recipe));
  const room = limits.bytes - least;
  expect((await fill(room + 1)).status).toBe(200);
  expect((await exported(who, appId)).status).toBe(409);
  await fill(room);
  const { status, body } = await exported(who, appId);
  expect([status, Buffer.byteLength(JSON.stringify(body.recipe))]).toEqual([200, limits.bytes]);
  const { id, ...recipe } = body.recipe;
  expect((await apply(who, { recipe_id: id, recipe: { id, ...recipe } })).status).toBe(200);
  const query = `mutation ($org: ID!, $ws: ID!, $id: ID!, $recipe: JSONObject) {
    applyRecipe(orgId: $org, workspaceId: $ws, input: { recipeId: $id, recipe: $recipe }) { appId } }`;
  const variables = { org: who.orgId, ws: who.workspaceId, id, recipe: body.recipe };
  const { data, errors } = await who.ask<{ applyRecipe: { appId: string } }>(query, variables);
  expect([errors, data.applyRecipe.appId]).toEqual([undefined, expect.stringMatching(/^app_/)]);
});

test('a text that grows beyond its bound by the names of what it mentions is not exported, and is named', async () => {
  const { who, url, appId, augmentation } = await createPipeline(app);
  const { augmentation_id } = await augmentation({ name: 'an augmentation with a long name of its own' });
  const mentioned = (count: number) => Array.from({ length: count }, () => augmentation_id).join(' ');
  expect((await who.call('PUT', url, { description: mentioned(60) })).status).toBe(200);
  const { body } = await exported(who, appId);
  expect((await apply(who, { recipe_id: body.recipe.id, recipe: body.recipe })).status).toBe(200);
  expect((await who.call('PUT', url, { description: mentioned(129) })).status).toBe(200);
  expect(await exported(who, appId)).toMatchObject({
    status: 409,
    body: {
      message: expect.stringContaining('description is longer than it may be'),
      details: { resource_id: appId, reason: 'too_large' },
    },
  });
});

test('secrets are found by their form too, wherever a text has them, and different ones stay apart', async () => {
  const { who, url, appId, augmentation, action } = await createPipeline(app);
  const config = {
    headers: [{ authorization: 'Bearer AAA' }, { authorization: 'Bearer BBB' }, { authorization: 'Bearer AAA' }],
    url: 'https://example.test/?q=1&access_token=SECRETsecret2',
    prompt: `Use ghp_${'a1'.repeat(18)} for {{input.text}}.`,
    dsn: 'postgres://u:SECRET5@db/app',
    body: '{"client_secret":"SECRET6secret"}',
    credentials: { pw: 'SECRET7' },
    named: '{{secret.authorization_2}}',
    kept: 'secret://database',
    random: 'Zq4mK7xP2wR9tL5vB8nC3hJ6',
  };
  const { augmentation_id } = await augmentation({
    description: 'Its key is sk-proj-SECRET8secret88.',
    stages: [{ name: 'Find', steps: [{ name: 'Search', step_type: 'tool', config }] }],
  });
  await action({ augmentation_id, input: { again: 'Bearer AAA1BBB2' } });
  await who.call('PUT', url, { metadata: { authorization: 'Bearer BBB' } });
  const { recipe, warnings } = (await exported(who, appId)).body;
  expect(JSON.stringify(recipe)).not.toMatch(/SECRET|AAA|BBB|ghp_/);
  expect(recipe.definition.app.metadata).toEqual({ authorization: '{{secret.authorization}}' });
  expect(recipe.definition.augmentations[0]!.description).toBe('Its key is {{secret.description}}.');
  expect(recipe.definition.steps[0]!.config).toEqual({
    headers: [
      { authorization: '{{secret.authorization_3}}' },
      { authorization: '{{secret.authorization}}' },
      { authorization: '{{secret.authorization_3}}' },
    ],
    url: 'https://example.test/?q=1&access_token={{secret.url}}',
    prompt: 'Use {{secret.prompt}} for {{input.text}}.',
    dsn: '{{secret.dsn}}',
    body: '{"client_secret":"{{secret.body}}"}',
    credentials: { pw: '{{secret.pw}}' },
    named: '{{secret.authorization_2}}',
    kept: 'secret://database',
    random: config.random,
  });
  expect(recipe.definition.actions![0]!.input).toEqual({ again: '{{secret.again}}' });
  expect(warnings).toContain("The text of 'random' has a random word that may be a secret. It was not replaced.");
  expect(warnings.filter((text) => text.includes('replaces it'))).toHaveLength(9);
  // the names are what a mapping fills
  const names = (recipe as unknown as { requirements: { secrets: string[] } }).requirements.secrets;
  expect(names).not.toContain('database');
  await who.call('POST', `/v1/orgs/${who.orgId}/secrets`, {
    name: 'one',
    secret_type: 'token',
    value: { token: 'x' },
  });
  const secrets = Object.fromEntries(names.map((one) => [one, 'one']));
  const copy = await apply(who, { recipe_id: recipe.id, recipe, secrets });
  expect(copy.body.message).toBe('Recipe applied successfully');
});
