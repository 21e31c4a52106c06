import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { bucketsMade } from '../../support/buckets.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Applied {
  message: string;
  recipe_id: string;
  app_id: string;
  augmentation_id: string;
  endpoint_id: string;
  namespace_id: string;
  stage_ids: string[];
  step_ids: string[];
}

const apply = (who: Person, body: object) => who.call<Applied>('POST', `${who.home}/recipes/apply`, body);

/** The number of rows that a workspace has of each kind that recipes make. */
async function rowsOf(who: Person): Promise<Record<string, number>> {
  const tables = ['namespaces', 'apps', 'augmentations', 'endpoints', 'actions', 'events', 'activity'];
  const counts = tables.map((table) => `(select count(*)::int from ${table} where workspace_id = $1) as ${table}`);
  const { rows } = await app.database.pool.query<Record<string, number>>(`select ${counts.join(', ')}`, [
    who.workspaceId,
  ]);
  return rows[0]!;
}

const made = ({ namespaces, apps, augmentations, endpoints, actions }: Record<string, number>) => [
  namespaces,
  apps,
  augmentations,
  endpoints,
  actions,
];

/** The places and messages of a refusal. */
const refusals = (body: unknown) =>
  (body as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [loc.join('.'), msg]);

test('makes an app with everything that the recipe says, as if each part was made by itself', async () => {
  const ann = await register(app, { name: 'ann' });
  const org = `/v1/orgs/${ann.orgId}`;
  await ann.call('POST', `${org}/model-catalog`, { logical_model_id: 'large', name: 'Large' });
  const tools = (await ann.call<{ tools: { tool_id: string }[] }>('GET', `${org}/tools?search=slack`)).body.tools;
  const instance = await ann.call<{ instance_id: string }>('POST', `${ann.home}/tool-instances`, {
    tool_id: tools[0]!.tool_id,
    name: 'Our Slack',
  });
  expect(instance.status).toBe(201);

  const { status, body } = await apply(ann, {
    recipe_id: 'scheduled-report',
    parameters: { title: 'Mondays', model: 'large', cron: '15 7 * * 1', timezone: 'Europe/Berlin', channel: '#news' },
  });
  expect(status).toBe(200);
  expect(body).toEqual({
    message: 'Recipe applied successfully',
    recipe_id: 'scheduled-report',
    app_id: expect.stringMatching(/^app_/),
    augmentation_id: expect.stringMatching(/^aug_/),
    endpoint_id: expect.stringMatching(/^ep_/),
    namespace_id: expect.stringMatching(/^ns_/),
    stage_ids: [expect.stringMatching(/^stg_/), expect.stringMatching(/^stg_/), expect.stringMatching(/^stg_/)],
    step_ids: Array.from({ length: 4 }, () => expect.stringMatching(/^stp_/) as string),
  });
  const A = `${ann.home}/apps/${body.app_id}`;
  expect((await ann.call('GET', A)).body).toMatchObject({ name: 'Mondays', created_by: ann.userId });
  expect((await ann.call('GET', `${ann.home}/namespaces/${body.namespace_id}`)).body).toMatchObject({
    name: 'Mondays',
    slug: 'mondays',
    created_by: ann.userId,
  });
  const augmentation = (
    await ann.call<{ stages: { stage_id: string; steps: object[] }[] }>(
      'GET',
      `${A}/augmentations/${body.augmentation_id}`,
    )
  ).body;
  expect(augmentation).toMatchObject({ name: 'Report', status: 'active', created_by: ann.userId });
  expect(augmentation.stages.map(({ stage_id }) => stage_id)).toEqual(body.stage_ids);
  expect(augmentation.stages.flatMap(({ steps }) => steps)).toMatchObject([
    { step_id: body.step_ids[0], step_type: 'retrieval', logical_model_id: null },
    { step_id: body.step_ids[1], step_type: 'llm', logical_model_id: 'large' },
    {
      step_id: body.step_ids[2],
      tool_instance_id: instance.body.instance_id,
      tool_slug: 'slack',
      action: 'post_message',
      config: { parameters: { channel: '#news', text: '{{steps.draft.text}}' } },
    },
    { step_id: body.step_ids[3], step_type: 'output' },
  ]);
  expect((await ann.call('GET', `${A}/endpoints/${body.endpoint_id}`)).body).toMatchObject({
    path: '/report',
    method: 'POST',
    enabled: true,
    augmentation_id: body.augmentation_id,
  });
  const { actions } = (await ann.call<{ actions: { action_id: string }[] }>('GET', `${A}/actions`)).body;
  expect(actions).toMatchObject([
    {
      kind: 'scheduled',
      cron: '15 7 * * 1',
      timezone: 'Europe/Berlin',
      enabled: true,
      input: { topic: 'what changed in the workspace' },
      augmentation_id: body.augmentation_id,
    },
  ]);

  for (const [id, type] of [
    [body.app_id, 'app.created'],
    [body.namespace_id, 'namespace.created'],
    [body.augmentation_id, 'augmentation.created'],
    [body.endpoint_id, 'endpoint.created'],
    [actions[0]!.action_id, 'action.created'],
    ['scheduled-report', 'recipe.applied'],
  ] as const)
    expect(await eventsOf(app, id, ann.orgId)).toEqual([type]);
  const { rows } = await app.database.pool.query(
    `select data from events where type = 'recipe.applied' and org_id = $1`,
    [ann.orgId],
  );
  expect(rows).toEqual([{ data: { app_id: body.app_id, namespace_id: body.namespace_id } }]);
  const records = (await changesOf(app, 'scheduled-report')).filter(({ orgId }) => orgId === ann.orgId);
  expect(records).toMatchObject([
    {
      action: 'apply',
      resourceType: 'recipe',
      workspaceId: ann.workspaceId,
      userId: ann.userId,
      statusCode: 200,
      metadata: {
        also: [
          { action: 'create', resource_type: 'namespace', resource_id: body.namespace_id },
          { action: 'create', resource_type: 'app', resource_id: body.app_id },
          { action: 'create', resource_type: 'augmentation', resource_id: body.augmentation_id },
          { action: 'create', resource_type: 'endpoint', resource_id: body.endpoint_id },
          { action: 'create', resource_type: 'action', resource_id: actions[0]!.action_id },
        ],
      },
    },
  ]);
});

test('each recipe can be applied as it is; again, it makes another app; what is missing is listed', async () => {
  const ann = await register(app, { name: 'ann' });
  const messages: Record<string, string> = {};
  const { recipes } = (await ann.call<{ recipes: { id: string }[] }>('GET', `/v1/orgs/${ann.orgId}/recipes`)).body;
  for (const { id } of recipes) {
    const { status, body } = await apply(ann, { recipe_id: id });
    expect([id, status]).toEqual([id, 200]);
    messages[id] = body.message;
  }
  const applied = 'Recipe applied. Missing:';
  const held = 'Its schedules are disabled: enable them once it has all that it needs.';
  expect(messages).toEqual({
    'starter-chat': `${applied} the model 'default-chat'.`,
    'starter-summarizer': `${applied} the model 'default-chat'.`,
    'doc-qa': `${applied} the model 'default-chat', the model 'default-embedding', an embedding model.`,
    'web-research':
      `${applied} an instance of the tool 'http-request', an instance of the tool 'wikipedia', ` +
      "the model 'default-chat'.",
    'multi-step-agent': `${applied} an instance of the tool 'http-request', the model 'default-chat'.`,
    'scheduled-report': `${applied} an instance of the tool 'slack', the model 'default-chat'. ${held}`,
  });
  const again = (await apply(ann, { recipe_id: 'starter-chat', name: 'Chat' })).body;
  expect((await ann.call('GET', `${ann.home}/apps/${again.app_id}`)).body).toMatchObject({ name: 'Chat' });
  expect((await ann.call('GET', `${ann.home}/namespaces/${again.namespace_id}`)).body).toMatchObject({
    name: 'Chat 2',
    slug: 'chat-2',
  });
  // the workspace has its own
  const other = (await apply(ann, { recipe_id: 'starter-chat', name: 'Default' })).body;
  expect((await ann.call('GET', `${ann.home}/namespaces/${other.namespace_id}`)).body).toMatchObject({
    slug: 'default-2',
  });
  // the step that goes back names the stage that was made
  const agents = await ann.call<{ apps: { app_id: string; name: string }[] }>('GET', `${ann.home}/apps`);
  const agent = agents.body.apps.find(({ name }) => name === 'Agent')!.app_id;
  const { augmentations } = (
    await ann.call<{
      augmentations: { name: string; stages: { stage_id: string; name: string; steps: { config: object }[] }[] }[];
    }>('GET', `${ann.home}/apps/${agent}/augmentations`)
  ).body;
  const work = augmentations.find(({ name }) => name === 'Work')!.stages;
  expect(work[2]!.steps[1]!.config).toEqual({ if: "{{steps.review.text}} != 'yes'", goto: work[1]!.stage_id });
});

test('what is missing is listed with what uses it, and the steps keep its name; schedules wait for it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { body } = await ann.call<{ definition: { steps: object[]; app: object } }>(
    'GET',
    `/v1/orgs/${ann.orgId}/recipes/scheduled-report`,
  );
  const recipe = structuredClone(body);
  recipe.definition.app = { name: 'Report', metadata: { key: '{{secret.report}}' } };
  Object.assign(recipe.definition.steps[0]!, { tool: 'of-nobody', config: { auth: '{{secret.report}}' } });
  const mutation = `mutation ($org: ID!, $ws: ID!, $recipe: JSONObject, $dry: Boolean) {
    applyRecipe(orgId: $org, workspaceId: $ws, input: { recipeId: "scheduled-report", recipe: $recipe, dryRun: $dry }) {
      appId message missing { kind name usedBy } } }`;
  type Answer = { applyRecipe: { appId: string | null; message: string; missing: object[] } };
  const run = async (dry: boolean) =>
    (await ann.ask<Answer>(mutation, { org: ann.orgId, ws: ann.workspaceId, recipe, dry })).data.applyRecipe;
  const missing = [
    { kind: 'tool', name: 'of-nobody', usedBy: ['step.report.search'] },
    { kind: 'tool_instance', name: 'slack', usedBy: ['step.report.post'] },
    { kind: 'model', name: 'default-chat', usedBy: ['step.report.draft'] },
    { kind: 'secret', name: 'report', usedBy: ['app', 'step.report.search'] },
  ];
  expect(await run(true)).toMatchObject({ appId: null, missing });
  const made = await run(false);
  expect(made).toMatchObject({
    missing,
    message:
      "Recipe applied. Missing: the tool 'of-nobody', an instance of the tool 'slack', the model 'default-chat', " +
      "the secret 'report'. Its schedules are disabled: enable them once it has all that it needs.",
  });
  const A = `${ann.home}/apps/${made.appId}`;
  const { actions } = (await ann.call<{ actions: object[] }>('GET', `${A}/actions`)).body;
  expect(actions).toMatchObject([{ kind: 'scheduled', enabled: false, next_fire_at: null }]);
  const again = await ann.call<{ recipe: { definition: { steps: object[] } } }>('POST', `${A}/export-recipe`);
  expect(again.body.recipe.definition.steps).toMatchObject([
    { tool: 'of-nobody' },
    {},
    { tool: 'slack', action: 'post_message' },
    {},
  ]);
  // what is missing here is what must be connected
  const needs = await ann.call(
    'GET',
    `${ann.home}/namespaces/default/connections/requirements?app_id=${String(made.appId)}`,
  );
  expect(needs.body).toMatchObject({
    requirements: [{ tool_slug: 'slack', tool_instance_id: null, satisfied: false }],
    all_satisfied: false,
  });
});

test('several at once in one workspace all get slugs of their own', async () => {
  const ann = await register(app, { name: 'ann' });
  const answers = await Promise.all(Array.from({ length: 5 }, () => apply(ann, { recipe_id: 'starter-chat' })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const { namespaces } = (await ann.call<{ namespaces: { slug: string }[] }>('GET', `${ann.home}/namespaces`)).body;
  expect(namespaces.map(({ slug }) => slug).sort()).toEqual([
    'chat',
    'chat-2',
    'chat-3',
    'chat-4',
    'chat-5',
    'default',
  ]);
});

/** Somebody of whom nothing is made any more in the background. */
async function settled(): Promise<Person> {
  const ann = await register(app, { name: 'ann' });
  await bucketsMade(app);
  await app.jobsDone();
  return ann;
}

test('a dry run writes nothing, and says what would be made', async () => {
  const ann = await settled();
  const before = await rowsOf(ann);
  expect(await apply(ann, { recipe_id: 'multi-step-agent', name: 'Helper', dry_run: true })).toEqual({
    status: 200,
    body: {
      message:
        "The recipe would make the app 'Helper' with a namespace, 2 augmentations, 4 stages, 7 steps, 2 endpoints " +
        "and 1 action. Missing: an instance of the tool 'http-request', the model 'default-chat'.",
      recipe_id: 'multi-step-agent',
      app_id: null,
      augmentation_id: null,
      endpoint_id: null,
      namespace_id: null,
      stage_ids: [],
      step_ids: [],
    },
  });
  await app.services.activity.flush();
  expect(await rowsOf(ann)).toEqual({ ...before, activity: before.activity! + 1 });
  expect((await apply(ann, { recipe_id: 'starter-chat', dry_run: true, parameters: { tone: 'x' } })).status).toBe(422);
});

test('a failure half way leaves nothing', async () => {
  const ann = await settled();
  const before = await rowsOf(ann);
  // the last part cannot be written
  await app.database.pool.query(`create function refuse_action() returns trigger language plpgsql as $$ begin
    if new.cron = '59 23 31 12 *' then raise 'refused'; end if; return new; end $$`);
  await app.database.pool.query(
    'create trigger refuse_action before insert on actions for each row execute function refuse_action()',
  );
  const refused = await apply(ann, { recipe_id: 'scheduled-report', parameters: { cron: '59 23 31 12 *' } });
  await app.database.pool.query('drop function refuse_action() cascade');
  expect(refused.status).toBe(500);
  expect(made(await rowsOf(ann))).toEqual(made(before));
  expect((await rowsOf(ann)).events).toBe(before.events);
  expect((await apply(ann, { recipe_id: 'scheduled-report' })).status).toBe(200);
});

test('refuses parameters that are not declared or do not fit, each at its place', async () => {
  const ann = await register(app, { name: 'ann' });
  const before = made(await rowsOf(ann));
  const refused = async (recipe_id: string, parameters: unknown) => {
    const { status, body } = await apply(ann, { recipe_id, parameters });
    expect(status, JSON.stringify(body)).toBe(422);
    return refusals(body);
  };
  expect(await refused('starter-chat', { tone: 'rude', history_messages: 201, title: '', model: 7, other: 1 })).toEqual(
    [
      ['body.parameters.other', 'Extra inputs are not permitted'],
      ['body.parameters.model', 'Input should be a valid string'],
      ['body.parameters.tone', "Input should be 'friendly', 'formal' or 'brief'"],
      ['body.parameters.history_messages', 'Input should be less than or equal to 200'],
    ],
  );
  expect(await refused('starter-chat', { title: '' })).toEqual([
    ['body.parameters.title', 'String should have at least 1 character'],
    ['body.parameters.title', 'String should have at least 1 character'],
  ]);
  expect(await refused('starter-chat', { history_messages: '20' })).toEqual([
    ['body.parameters.history_messages', 'Input should be a valid integer'],
  ]);
  expect(await refused('multi-step-agent', { asks_first: 'no' })).toEqual([
    ['body.parameters.asks_first', 'Input should be a valid boolean'],
  ]);
  expect(await refused('scheduled-report', { cron: '61 * * * *' })).toEqual([
    [
      'body.parameters.cron',
      'Value error, the expression is not valid: minute, hour, day of the month, month, day of the week',
    ],
  ]);
  expect(await refused('scheduled-report', { timezone: 'Mars/Olympus' })).toEqual([
    ['body.parameters.timezone', "Value error, 'Mars/Olympus' is not a time zone of the IANA database"],
  ]);
  expect((await refused('starter-chat', ['a']))[0]![0]).toBe('body.parameters');
  expect(await refused('starter-chat', JSON.parse('{"__proto__":{"tone":"brief"}}'))).toHaveLength(1);
  expect(made(await rowsOf(ann))).toEqual(before);
  // what looks like a reference or a parameter is a text like any other, and is not filled in again
  const { body } = await apply(ann, {
    recipe_id: 'starter-summarizer',
    parameters: { language: '{{parameters.model}}' },
  });
  const { stages } = (
    await ann.call<{ stages: { steps: { config: object }[] }[] }>(
      'GET',
      `${ann.home}/apps/${body.app_id}/augmentations/${body.augmentation_id}`,
    )
  ).body;
  expect(stages[1]!.steps[1]!.config).toMatchObject({ language: '{{parameters.model}}' });
  expect(await apply(ann, { recipe_id: 'nothing' })).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'recipe', resource_id: 'nothing' } },
  });
  expect((await apply(ann, {})).status).toBe(422);
});

test('editors apply and export, others do not; a token needs each permission, where it may', async () => {
  const owner = await register(app, { name: 'owner' });
  const { app_id } = (await apply(owner, { recipe_id: 'starter-chat' })).body;
  const outcome: Record<string, number[]> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    outcome[role] = [
      (await somebody.call('POST', `${owner.home}/recipes/apply`, { recipe_id: 'starter-chat' })).status,
      (await somebody.call('POST', `${owner.home}/apps/${app_id}/export-recipe`)).status,
    ];
  }
  expect(outcome).toEqual({ viewer: [403, 403], member: [403, 403], editor: [200, 200], admin: [200, 200] });

  const parts = ['app', 'namespace', 'augmentation', 'endpoint', 'action'];
  const permissions = ['recipe:apply', ...parts.map((part) => `${part}:create`)];
  const refusalOf = async (restriction: object) => {
    const { headers } = await issueToken(app, owner, { permissions, ...restriction });
    const url = `${owner.home}/recipes/apply`;
    const answer = await app.server.inject({ method: 'POST', url, headers, payload: { recipe_id: 'starter-chat' } });
    const { details } = answer.json<{ details?: { required_permission: string } }>();
    return details?.required_permission ?? answer.statusCode;
  };
  expect(await refusalOf({})).toBe(200);
  for (const left of permissions)
    expect(await refusalOf({ permissions: permissions.filter((one) => one !== left) })).toBe(left);
  const { namespaces } = (
    await owner.call<{ namespaces: { namespace_id: string }[] }>('GET', `${owner.home}/namespaces`)
  ).body;
  expect(await refusalOf({ namespace_ids: [namespaces[0]!.namespace_id] })).toBe('recipe:apply');
  expect(await refusalOf({ workspace_ids: [owner.workspaceId] })).toBe(200);
  expect(await refusalOf({ app_id })).toBe('app:create');
});
