import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RunOptions, runPipeline } from '../../../examples/runner/pipeline.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { type Augmentation, createPipeline } from '../augmentations/pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Applied {
  message: string;
  app_id: string;
  augmentation_id: string;
}
interface Missing {
  missing: { kind: string; name: string | null; used_by: string[] }[];
  total: number;
}
interface Definition {
  steps: Record<string, unknown>[];
}

const apply = (who: Person, body: object) => who.call<Applied>('POST', `${who.home}/recipes/apply`, body);
const missingOf = async (who: Person, appId: string) =>
  (await who.call<Missing>('GET', `${who.home}/apps/${appId}/missing`)).body;
const augmentationOf = async (who: Person, { app_id, augmentation_id }: Applied) =>
  (await who.call<Augmentation>('GET', `${who.home}/apps/${app_id}/augmentations/${augmentation_id}`)).body;
const refusals = (body: unknown) =>
  (body as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [loc.join('.'), msg]);

async function makeModel(who: Person, id: string, type = 'chat'): Promise<string> {
  const model = { logical_model_id: id, name: id, model_type: type };
  expect((await who.call('POST', `/v1/orgs/${who.orgId}/model-catalog`, model)).status).toBe(201);
  return id;
}

async function makeInstance(who: Person, slug: string, name = `Our ${slug}`, more: object = {}): Promise<string> {
  const { tools } = (
    await who.call<{ tools: { tool_id: string; slug: string }[] }>('GET', `/v1/orgs/${who.orgId}/tools?limit=200`)
  ).body;
  const tool_id = tools.find((tool) => tool.slug === slug)!.tool_id;
  const { status, body } = await who.call<{ instance_id: string }>('POST', `${who.home}/tool-instances`, {
    tool_id,
    name,
    ...more,
    ...(slug === 'http-request' && { configuration: { base_url: 'https://api.example.test' } }),
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.instance_id;
}

const makeSecret = async (who: Person, name: string) =>
  (
    await who.call<{ secret_id: string }>('POST', `/v1/orgs/${who.orgId}/secrets`, {
      name,
      secret_type: 'api_key',
      value: { api_key: 'k' },
    })
  ).body.secret_id;

/** A recipe with a tool of two instances, a model and a secret that no organization has. */
async function foreignRecipe(who: Person) {
  const { body } = await who.call<{ definition: Definition }>('GET', `/v1/orgs/${who.orgId}/recipes/scheduled-report`);
  const recipe = structuredClone(body);
  const [search, draft, post] = recipe.definition.steps;
  Object.assign(search!, { tool: 'of-others', tool_instance: 'One', config: { auth: 'Bearer {{secret.clientKey}}' } });
  Object.assign(draft!, { model: 'their/model' });
  Object.assign(post!, { tool: 'of-others', tool_instance: 'Two' });
  return recipe;
}

/** The question to each recipe, and the answer that its run ends with. */
const runs: Record<string, [input: Record<string, unknown>, answer: unknown]> = {
  'starter-chat': [{ message: 'Hello' }, { message: 'our/chat: Hello' }],
  'starter-summarizer': [
    { text: 'One. Two' },
    {
      summary:
        'our/chat: Make one summary of at most 150 words of these:\n\n' +
        '["our/chat: Summarize this part of a text:\\n\\nOne","our/chat: Summarize this part of a text:\\n\\nTwo"]',
    },
  ],
  'doc-qa': [
    { question: 'Why?' },
    {
      answer: 'our/chat: what is known of Why?\n\nQuestion: Why?',
      sources: ['a.txt', 'b.txt'],
    },
  ],
  'web-research': [
    { topic: 'Trains', addresses: ['https://a.test', 'https://b.test'] },
    {
      report: expect.stringMatching(
        /^our\/chat: our\/chat: Which.*Trains.*\n\nwikipedia summary Trains\n\["http-request request https:\/\/a/s,
      ) as string,
    },
  ],
  // it goes back once: the review says yes to the second result
  'multi-step-agent': [
    { task: 'Sweep' },
    { result: 'our/chat: our/chat: Divide this task into steps, with the tool for each: Sweep' },
  ],
  'scheduled-report': [
    { topic: 'the week' },
    { report: 'our/chat: Write a page about the week from this:\n\nwhat is known of the week' },
  ],
};

test('each built-in recipe, applied to an empty organization and mapped, runs and ends with its answer', async () => {
  const ann = await register(app, { name: 'ann' });
  const { recipes } = (await ann.call<{ recipes: { id: string }[] }>('GET', `/v1/orgs/${ann.orgId}/recipes`)).body;
  expect(recipes.map(({ id }) => id).sort()).toEqual(Object.keys(runs).sort());
  const models = { 'default-chat': await makeModel(ann, 'our/chat') };
  const embedding = { 'default-embedding': await makeModel(ann, 'our/embedding', 'embedding') };
  const instances: Record<string, string> = {};
  for (const slug of ['slack', 'wikipedia', 'http-request']) {
    await makeInstance(ann, slug, 'of nobody');
    instances[slug] = await makeInstance(ann, slug);
  }
  for (const { id } of recipes) {
    const { requirements } = (
      await ann.call<{ requirements: { tools: string[] } }>('GET', `/v1/orgs/${ann.orgId}/recipes/${id}`)
    ).body;
    const { status, body } = await apply(ann, {
      recipe_id: id,
      models: { ...models, ...(id === 'doc-qa' && embedding) },
      tools: Object.fromEntries(requirements.tools.map((slug) => [slug, instances[slug]])),
    });
    expect([id, status, body.message]).toEqual([id, 200, 'Recipe applied successfully']);
    expect(await missingOf(ann, body.app_id)).toEqual({ missing: [], total: 0 });
    let reviews = 0;
    const runners: RunOptions['runners'] = {
      llm: ({ key, logical_model_id: model }, config) => {
        expect(model).toMatch(/^our\//);
        if (key === 'review') return { text: ++reviews > 1 ? 'yes' : 'The floor is missing.' };
        return { text: `${model}: ${String(config.prompt)}`, call: { url: 'https://example.test' } };
      },
      embedding: () => ({ vector: [1] }),
      tool: ({ tool_instance_id, tool_slug, action }, config, item) => {
        expect(tool_instance_id).toBe(instances[tool_slug!]);
        const { title } = (config.parameters ?? {}) as { title?: string };
        return { result: `${tool_slug} ${action} ${title ?? (item as string | undefined) ?? ''}` };
      },
      retrieval: (_step, { query }) => ({
        context: `what is known of ${String(query)}`,
        documents: ['a.txt', 'b.txt'],
      }),
      transform: (_step, { input_template }) => ({ result: String(input_template).split('. ') }),
    };
    expect(await runPipeline(await augmentationOf(ann, body), runs[id]![0], { runners }), id).toEqual(runs[id]![1]);
    expect(reviews).toBe(id === 'multi-step-agent' ? 2 : 0);
  }
});

test('a mapping puts instances, models and secrets in place of what a recipe names, over both faces', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two] = [await makeInstance(ann, 'slack', 'One'), await makeInstance(ann, 'slack', 'Two')];
  await makeModel(ann, 'large');
  const secretId = await makeSecret(ann, 'search');
  const recipe = await foreignRecipe(ann);
  const mapping = {
    tools: { 'of-others': one, 'of-others/Two': two },
    models: { 'their/model': 'large' },
    secrets: { clientKey: secretId },
  };
  const { body } = await apply(ann, { recipe_id: 'scheduled-report', recipe, ...mapping });
  expect(body.message).toBe('Recipe applied successfully');
  const steps = (await augmentationOf(ann, body)).stages.flatMap((stage) => stage.steps);
  expect(steps).toMatchObject([
    { tool_instance_id: one, tool_slug: 'slack', config: { auth: 'Bearer {{secret.search}}' } },
    { logical_model_id: 'large' },
    { tool_instance_id: two, tool_slug: 'slack' },
    {},
  ]);
  // nothing is missing: its schedule runs
  const { actions } = (await ann.call<{ actions: object[] }>('GET', `${ann.home}/apps/${body.app_id}/actions`)).body;
  expect(actions).toMatchObject([{ enabled: true }]);

  type Answer = { applyRecipe: { message: string; missing: object[] } };
  const { data } = await ann.ask<Answer>(
    `mutation ($org: ID!, $ws: ID!, $recipe: JSONObject, $tools: JSONObject, $secrets: JSONObject) {
      applyRecipe(orgId: $org, workspaceId: $ws, input: { recipeId: "scheduled-report", recipe: $recipe, dryRun: true
        tools: $tools, secrets: $secrets }) { message missing { kind name usedBy } } }`,
    { org: ann.orgId, ws: ann.workspaceId, recipe, tools: { 'of-others': one }, secrets: { clientKey: 'search' } },
  );
  expect(data.applyRecipe).toEqual({
    message: expect.stringMatching(/Missing: the model 'their\/model'\./) as string,
    missing: [{ kind: 'model', name: 'their/model', usedBy: ['step.report.draft'] }],
  });
});

test('refuses a mapping with the place of each fault, and makes nothing', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  const theirs = await makeInstance(bob, 'slack');
  await makeModel(bob, 'large');
  const theirSecret = await makeSecret(bob, 'search');
  const recipe = await foreignRecipe(ann);
  const refused = async (mapping: object) => {
    const { status, body } = await apply(ann, { recipe_id: 'scheduled-report', recipe, ...mapping });
    expect(status, JSON.stringify(body)).toBe(422);
    return refusals(body);
  };
  expect(
    await refused({
      tools: { slack: theirs, 'of-others': theirs, 'of-others/Three': theirs },
      models: { 'their/model': 'large', large: 'large' },
      secrets: { clientKey: theirSecret, client_key: 'search' },
    }),
  ).toEqual([
    ['body.tools.slack', "Value error, the recipe uses no tool 'slack'"],
    ['body.tools.of-others', `Value error, there is no tool instance '${theirs}' in the workspace`],
    ['body.tools.of-others/Three', "Value error, the recipe uses no tool 'of-others/Three'"],
    ['body.models.their/model', "Value error, there is no model 'large' in the organization"],
    ['body.models.large', "Value error, the recipe uses no model 'large'"],
    ['body.secrets.clientKey', `Value error, there is no secret '${theirSecret}' that apps of the workspace can name`],
    ['body.secrets.client_key', "Value error, the recipe uses no secret 'client_key'"],
  ]);
  expect(await refused({ tools: { 'of-others': 7 } })).toEqual([
    ['body.tools.of-others', 'Input should be a valid string'],
  ]);
  expect((await refused({ models: ['large'] }))[0]![0]).toBe('body.models');
  expect((await refused({ secrets: { clientKey: null } }))[0]![0]).toBe('body.secrets.clientKey');
  const { apps } = (await ann.call<{ apps: object[] }>('GET', `${ann.home}/apps`)).body;
  expect(apps).toEqual([]);
});

test('longer names that a mapping puts into texts count for the limits of the parts', async () => {
  const long = 'n'.repeat(250);
  const { who, url, appId } = await createPipeline(app);
  await makeSecret(who, long);
  const recipe = await foreignRecipe(who);
  const wide = { ...recipe.definition.steps[0], config: { auth: '{{secret.clientKey}}'.repeat(3_000) } };
  const definition = { ...recipe.definition, steps: [wide, ...recipe.definition.steps.slice(1)] };
  const given = { recipe_id: 'scheduled-report', recipe: { ...recipe, definition }, secrets: { clientKey: long } };
  const refused = await apply(who, given);
  expect([refused.status, new Set(refusals(refused.body).map(([place]) => place))]).toEqual([
    422,
    new Set(['body.secrets']),
  ]);

  const metadata = { key: '{{secret.a}}'.repeat(1_200) };
  expect((await who.call('PUT', url, { metadata })).status).toBe(200);
  const mapped = await who.call('POST', `${url}/map-missing`, { secrets: { a: long } });
  expect([mapped.status, refusals(mapped.body)[0]![1]]).toMatchObject([422, expect.stringContaining('262144 bytes')]);
  expect(await eventsOf(app, appId)).toEqual(['app.created', 'app.updated']);
});

test('what an app misses is read at its own address, heals by names, and is mapped later', async () => {
  const ann = await register(app, { name: 'ann' });
  const recipe = await foreignRecipe(ann);
  Object.assign(recipe.definition, { app: { name: 'Report', metadata: { key: '{{secret.report "1"}}' } } });
  const { body } = await apply(ann, { recipe_id: 'scheduled-report', recipe });
  const missing = [
    { kind: 'tool', name: 'of-others', used_by: ['step.report.post', 'step.report.search'] },
    { kind: 'model', name: 'their/model', used_by: ['step.report.draft'] },
    { kind: 'secret', name: 'clientKey', used_by: ['step.report.search'] },
    { kind: 'secret', name: 'report "1"', used_by: ['app'] },
  ];
  expect(await missingOf(ann, body.app_id)).toEqual({ missing, total: 4 });
  const viewer = await colleague(app, ann, 'viewer');
  const url = `${ann.home}/apps/${body.app_id}`;
  expect((await viewer.call('GET', `${url}/missing`)).body).toEqual({ missing, total: 4 });
  const { data } = await ann.ask<{ missingParts: object }>(
    `query ($org: ID!, $ws: ID!, $app: ID!) {
      missingParts(orgId: $org, workspaceId: $ws, appId: $app) { total missing { kind name usedBy } } }`,
    { org: ann.orgId, ws: ann.workspaceId, app: body.app_id },
  );
  expect(data.missingParts).toEqual({
    total: 4,
    missing: missing.map(({ used_by, ...part }) => ({ ...part, usedBy: used_by })),
  });

  await makeSecret(ann, 'clientKey');
  await makeModel(ann, 'their/model');
  expect((await missingOf(ann, body.app_id)).missing.map(({ kind }) => kind)).toEqual(['tool', 'secret']);

  const map = (input: object, who = ann) => who.call<Missing>('POST', `${url}/map-missing`, input);
  const instance = await makeInstance(ann, 'slack');
  expect((await map({ tools: { 'of-others': instance } }, viewer)).status).toBe(403);
  const before = await augmentationOf(ann, body);
  expect(
    refusals((await map({ tools: { slack: instance, 'of-others': 'ti_none' }, models: { large: 'x' } })).body),
  ).toEqual([
    ['body.tools.slack', "Value error, no step of the app misses an instance of 'slack'"],
    ['body.tools.of-others', "Value error, there is no tool instance 'ti_none' in the workspace"],
    ['body.models.large', "Value error, no step of the app misses the model 'large'"],
  ]);
  expect(await augmentationOf(ann, body)).toEqual(before);
  expect(await map({ tools: { 'of-others': instance } })).toMatchObject({
    status: 200,
    body: { missing: [{ kind: 'secret', name: 'report "1"' }], total: 1 },
  });
  const after = await augmentationOf(ann, body);
  expect(after.stages.flatMap(({ steps }) => steps.map((step) => [step.tool_instance_id, step.tool_slug]))).toEqual([
    [instance, 'slack'],
    [null, null],
    [instance, 'slack'],
    [null, null],
  ]);
  expect(await eventsOf(app, body.augmentation_id)).toEqual(['augmentation.created', 'augmentation.updated']);
  expect((await changesOf(app, body.augmentation_id)).at(-1)).toMatchObject({
    action: 'update',
    resourceType: 'augmentation',
    metadata: { fields: ['stages'] },
  });
  // nothing to do is nothing done
  expect((await map({})).body.total).toBe(1);
  expect(await eventsOf(app, body.augmentation_id)).toHaveLength(2);
});

test('one rule on every way in: words may come later, identifiers must be there', async () => {
  const { who, url, appId, augmentation } = await createPipeline(app);
  const named = { name: 'Ask', step_type: 'llm', logical_model_id: 'later', tool_slug: 'slack' };
  const made = await augmentation({ stages: [{ name: 'Say', steps: [named] }] });
  expect(made.stages[0]!.steps[0]).toMatchObject({ logical_model_id: 'later', tool_slug: 'slack' });
  expect(await missingOf(who, appId)).toEqual({
    missing: [
      { kind: 'tool_instance', name: 'slack', used_by: ['step.answers.ask'] },
      { kind: 'model', name: 'later', used_by: ['step.answers.ask'] },
    ],
    total: 2,
  });
  const unknown = { name: 'Ask', step_type: 'tool', tool_instance_id: 'ti_none' };
  const refused = await who.call('POST', `${url}/augmentations`, {
    name: 'Two',
    stages: [{ name: 'Say', steps: [unknown] }],
  });
  expect([refused.status, refusals(refused.body)]).toEqual([
    422,
    [['body.stages.0.steps.0.tool_instance_id', "Value error, there is no tool instance 'ti_none' in the workspace"]],
  ]);
});

test('a tool instance that steps use goes only by force, which takes it from them', async () => {
  const { who, appId, augmentation } = await createPipeline(app);
  const instance = await makeInstance(who, 'slack');
  const made = await augmentation({
    stages: [{ name: 'Send', steps: [{ key: 'post', name: 'Post', step_type: 'tool', tool_instance_id: instance }] }],
  });
  const id = made.augmentation_id;
  const url = `${who.home}/tool-instances/${instance}`;
  const refused = await who.call<{ details: object }>('DELETE', url);
  expect([refused.status, refused.body.details]).toEqual([
    409,
    {
      resource_type: 'tool_instance',
      resource_id: instance,
      reason: 'in_use',
      references: [
        {
          resource_type: 'augmentation',
          resource_id: id,
          workspace_id: who.workspaceId,
          app_id: appId,
          steps: ['post'],
        },
      ],
    },
  ]);
  expect((await who.call('GET', url)).status).toBe(200);
  expect((await who.call('DELETE', `${url}?force=true`)).status).toBe(204);
  const after = (await who.call<Augmentation>('GET', `${who.home}/apps/${appId}/augmentations/${id}`)).body;
  expect(after.stages[0]!.steps[0]).toMatchObject({ tool_instance_id: null, tool_slug: 'slack' });
  expect(await eventsOf(app, id)).toEqual(['augmentation.created', 'augmentation.updated']);
  expect((await missingOf(who, appId)).missing).toEqual([
    { kind: 'tool_instance', name: 'slack', used_by: ['step.answers.post'] },
  ]);
  // an instance that no step uses needs no force
  expect((await who.call('DELETE', `${who.home}/tool-instances/${await makeInstance(who, 'slack')}`)).status).toBe(204);
});

test('a member deletes an own instance, and takes it from steps only with the right to change them', async () => {
  const { who, augmentation } = await createPipeline(app);
  const member = await colleague(app, who, 'member');
  const instance = await makeInstance({ ...member, orgId: who.orgId, home: who.home } as Person, 'slack');
  await augmentation({
    stages: [{ name: 'Send', steps: [{ name: 'Post', step_type: 'tool', tool_instance_id: instance }] }],
  });
  const url = `${who.home}/tool-instances/${instance}`;
  expect((await member.call('DELETE', url)).status).toBe(409);
  const forced = await member.call<{ details: { required_permission: string } }>('DELETE', `${url}?force=true`);
  expect([forced.status, forced.body.details.required_permission]).toEqual([403, 'augmentation:update']);
});

test('a model that steps name goes only by force, and they go on naming it', async () => {
  const { who, appId, augmentation } = await createPipeline(app);
  await makeModel(who, 'chat/large');
  const made = await augmentation({
    stages: [{ name: 'Say', steps: [{ key: 'ask', name: 'Ask', step_type: 'llm', logical_model_id: 'chat/large' }] }],
  });
  const url = `/v1/orgs/${who.orgId}/model-catalog/chat%2Flarge`;
  const refused = await who.call<{ details: object }>('DELETE', url);
  expect([refused.status, refused.body.details]).toMatchObject([
    409,
    {
      resource_type: 'model',
      resource_id: 'chat/large',
      reason: 'in_use',
      references: [{ resource_type: 'augmentation', resource_id: made.augmentation_id, steps: ['ask'] }],
    },
  ]);
  expect((await who.call('DELETE', `${url}?force=true`)).status).toBe(204);
  const missing = [{ kind: 'model', name: 'chat/large', used_by: ['step.answers.ask'] }];
  expect(await missingOf(who, appId)).toEqual({ missing, total: 1 });
  await makeModel(who, 'chat/large');
  expect(await missingOf(who, appId)).toEqual({ missing: [], total: 0 });
});

test('of an instance that is deleted while steps come to use it, one of the two is refused', async () => {
  const { who, url } = await createPipeline(app);
  for (let n = 0; n < 5; n++) {
    const instance = await makeInstance(who, 'slack', `Of round ${n}`);
    const stages = [{ name: 'Send', steps: [{ name: 'Post', step_type: 'tool', tool_instance_id: instance }] }];
    const [made, gone] = await Promise.all([
      who.call('POST', `${url}/augmentations`, { name: 'Answers', stages }),
      who.call('DELETE', `${who.home}/tool-instances/${instance}`),
    ]);
    expect([
      [201, 409],
      [422, 204],
    ]).toContainEqual([made.status, gone.status]);
  }
});

test('a missing secret is mapped in all texts of an app, with an event of each part that had it', async () => {
  const { who, url, appId, augmentation, endpoint, action } = await createPipeline(app);
  const id = await makeSecret(who, 'ours');
  await makeSecret(who, 'there');
  await who.call('PUT', url, { description: 'Uses {{secret.theirs "1"}}.', metadata: { kept: '{{secret.there}}' } });
  const config = { auth: ['Bearer {{secret.theirs "1"}}'], other: '{{secret.lacking}}' };
  const step = { name: 'Ask {{secret.lacking}}', step_type: 'llm', config };
  const one = await augmentation({ stages: [{ name: 'Say', steps: [step] }] });
  const two = await augmentation({ name: 'Two', metadata: { key: '{{secret.there}}' } });
  const { augmentation_id } = one;
  await endpoint({ path: '/a', augmentation_id, metadata: { key: '{{secret.lacking}}' } });
  const started = await action({ augmentation_id, input: { key: '{{secret.theirs "1"}}' } });
  const map = (secrets: object, by = who) => by.call<Missing>('POST', `${url}/map-missing`, { secrets });

  const refused = await map({ there: 'ours', 'theirs "1"': 'none', lacking: 'sec_none' });
  expect([refused.status, refusals(refused.body)]).toEqual([
    422,
    [
      ['body.secrets.there', "Value error, no text of the app misses the secret 'there'"],
      ['body.secrets.theirs "1"', "Value error, there is no secret 'none' that apps of the workspace can name"],
      ['body.secrets.lacking', "Value error, there is no secret 'sec_none' that apps of the workspace can name"],
    ],
  ]);
  expect((await map({ lacking: 'ours' }, await colleague(app, who, 'viewer'))).status).toBe(403);

  const mapped = await map({ 'theirs "1"': id, lacking: 'there' });
  expect([mapped.status, mapped.body]).toEqual([200, { missing: [], total: 0 }]);
  expect((await who.call('GET', url)).body).toMatchObject({
    description: 'Uses {{secret.ours}}.',
    metadata: { kept: '{{secret.there}}' },
  });
  const after = (await who.call<Augmentation>('GET', `${url}/augmentations/${augmentation_id}`)).body;
  expect(after.stages[0]!.steps[0]).toMatchObject({
    key: one.stages[0]!.steps[0]!.key,
    name: 'Ask {{secret.there}}',
    config: { auth: ['Bearer {{secret.ours}}'], other: '{{secret.there}}' },
  });
  expect(await eventsOf(app, appId)).toEqual(['app.created', 'app.updated', 'app.updated']);
  expect(await eventsOf(app, augmentation_id)).toEqual(['augmentation.created', 'augmentation.updated']);
  expect(await eventsOf(app, two.augmentation_id)).toEqual(['augmentation.created']);
  expect(await eventsOf(app, started.body.action_id)).toEqual(['action.created', 'action.updated']);
  const { endpoints } = (await who.call<{ endpoints: object[] }>('GET', `${url}/endpoints`)).body;
  expect(endpoints).toMatchObject([{ metadata: { key: '{{secret.there}}' } }]);
});

test('a namespace with tool instances that steps use goes only by force, which takes them from the steps', async () => {
  const { who, appId, augmentation } = await createPipeline(app);
  const made = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Sales' });
  const { namespace_id } = made.body;
  const instance = await makeInstance(who, 'slack', 'Ours', { namespace_id });
  const other = await makeInstance(who, 'slack', 'Of all');
  const stepOf = (key: string, tool_instance_id: string) => ({ key, name: key, step_type: 'tool', tool_instance_id });
  const steps = [stepOf('post', instance), stepOf('tell', other)];
  const used = await augmentation({ stages: [{ name: 'Send', steps }] });
  const url = `${who.home}/namespaces/${namespace_id}`;
  const refused = await who.call<{ details: object }>('DELETE', url);
  expect([refused.status, refused.body.details]).toEqual([
    409,
    {
      resource_type: 'namespace',
      resource_id: namespace_id,
      reason: 'in_use',
      references: [
        {
          resource_type: 'augmentation',
          resource_id: used.augmentation_id,
          workspace_id: who.workspaceId,
          app_id: appId,
          steps: ['post'],
        },
      ],
    },
  ]);
  expect((await who.call('GET', `${who.home}/tool-instances/${instance}`)).status).toBe(200);
  expect((await who.call('DELETE', `${url}?force=true`)).status).toBe(204);
  expect((await who.call('GET', `${who.home}/tool-instances/${instance}`)).status).toBe(404);
  const after = await augmentationOf(who, { app_id: appId, augmentation_id: used.augmentation_id, message: '' });
  expect(after.stages[0]!.steps.map((step) => [step.tool_instance_id, step.tool_slug])).toEqual([
    [null, 'slack'],
    [other, 'slack'],
  ]);
  expect(await missingOf(who, appId)).toEqual({
    missing: [{ kind: 'tool_instance', name: 'slack', used_by: ['step.answers.post'] }],
    total: 1,
  });
  expect(await eventsOf(app, used.augmentation_id)).toEqual(['augmentation.created', 'augmentation.updated']);
  // one that nothing uses needs no force
  const spare = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Spare' });
  await makeInstance(who, 'slack', 'Spare', { namespace_id: spare.body.namespace_id });
  expect((await who.call('DELETE', `${who.home}/namespaces/${spare.body.namespace_id}`)).status).toBe(204);
});
