import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits, type WorkspaceDocument } from '../../../src/pipelines/workspace-documents/workspace-document.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { bucketsMade } from '../../support/buckets.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { changedTables, databaseChecksums } from '../../support/rows.ts';
import { issueToken } from '../../support/tokens.ts';
import {
  exported,
  type Imported,
  imported,
  newApp,
  newInstance,
  newModel,
  newSecret,
  newTool,
  newWorkspace,
  orgOf,
  sent,
} from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const refusals = (body: unknown) =>
  (body as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [loc.join('.'), msg]);

const empty: WorkspaceDocument = {
  format: 'workspace',
  version: 1,
  workspace: { name: 'Any' },
  namespaces: [],
  tools: [],
  tool_instances: [],
  environments: [],
  entitlements: [],
  apps: [],
};

/** The definition of an app of one step. */
const definition = (step: object = {}, more: object = {}) => ({
  app: { name: 'Shop' },
  augmentations: [{ key: 'answers', name: 'Answers' }],
  stages: [{ key: 'say', augmentation: 'answers', name: 'Say' }],
  steps: [{ key: 'ask', stage: 'say', name: 'Ask', step_type: 'llm', ...step }],
  ...more,
});

/** Somebody with something of every kind in a workspace. */
async function furnished(): Promise<Person> {
  const ann = await register(app, { name: 'ann' });
  await newModel(ann, 'large');
  await newSecret(ann, 'client');
  const { namespace_id } = await sent<{ namespace_id: string }>(ann, 'POST', `${ann.home}/namespaces`, {
    name: 'Sales',
    slug: 'sales',
  });
  await sent(ann, 'POST', `${ann.home}/environments`, { name: 'Live', slug: 'live' });
  const entitlement = { logical_model_id: 'large', workspace_limits: { max_requests_per_day: 9 } };
  await sent(ann, 'POST', `${ann.home}/model-entitlements`, entitlement);
  const tool = await newTool(ann, 'own');
  const instance = await newInstance(ann, ann.home, tool, {
    namespace_id,
    configuration: { url: 'https://api.example.test', api_key: 'KEPT' },
    connection_credentials: { client_id: 'us', client_secret_vault_id: 'secret://client' },
  });
  const steps = [{ name: 'Ask', step_type: 'llm', logical_model_id: 'large', tool_instance_id: instance }];
  const { url, augmentation_id } = await newApp(ann, ann.home, steps, { metadata: { of: namespace_id } });
  const action = { name: 'Daily', kind: 'scheduled', cron: '0 8 * * *', augmentation_id };
  await sent(ann, 'POST', `${url}/actions`, action);
  return ann;
}

test('a workspace goes to another organization: what that lacks is listed, and both faces say the same', async () => {
  const ann = await furnished();
  const { status, body } = await exported(ann);
  expect([status, body.warnings]).toEqual([200, []]);
  const { document } = body;
  expect(document).toMatchObject({
    format: 'workspace',
    version: 1,
    requirements: { tools: [], models: ['large'], secrets: ['client'] },
    namespaces: [{ slug: 'sales', name: 'Sales' }],
    tools: [{ slug: 'own', credential_schema: [{ name: 'api_key', type: 'string' }] }],
    tool_instances: [
      {
        key: 'ours',
        tool: 'own',
        namespace: 'sales',
        name: 'Ours',
        configuration: { url: 'https://api.example.test' },
        credentials: ['api_key'],
        connection_credentials: { client_id: 'us', client_secret: '{{secret.client}}' },
      },
    ],
    environments: [{ slug: 'live', name: 'Live', is_default: true, status: 'active' }],
    entitlements: [{ model: 'large', limits: { max_requests_per_day: 9 } }],
    apps: [
      {
        key: 'shop',
        definition: {
          app: { name: 'Shop', metadata: { of: '{{workspace.namespace.sales}}' } },
          steps: [{ key: 'ask', model: 'large', tool: 'own', tool_instance: 'ours' }],
          actions: [{ kind: 'scheduled', enabled: true }],
        },
      },
    ],
  });
  expect(JSON.stringify(document)).not.toContain('KEPT');
  const { data } = await ann.ask<{ exportWorkspace: object }>(
    'query ($org: ID!, $ws: ID!) { exportWorkspace(orgId: $org, workspaceId: $ws) { document warnings } }',
    { org: ann.orgId, ws: ann.workspaceId },
  );
  expect(data.exportWorkspace).toEqual(body);

  const bob = await register(app, { name: 'bob' });
  const answer = await imported(bob, bob.home, { document });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  const { message, made, missing, warnings } = answer.body;
  expect(message).toBe(
    'Imported 1 namespace, 1 environment, 1 tool, 1 tool instance and 1 app. Missing: ' +
      "the model 'large', the secret 'client', the credential 'api_key'. Its schedules are disabled: enable them " +
      'once it has all that it needs.',
  );
  expect(warnings).toEqual([]);
  expect(missing).toEqual([
    { kind: 'model', name: 'large', used_by: ['app.shop.step.answers.ask', 'entitlement.large'] },
    { kind: 'secret', name: 'client', used_by: ['tool_instance.ours'] },
    { kind: 'credential', name: 'api_key', used_by: ['tool_instance.ours'] },
  ]);
  const ids = Object.fromEntries(made.map(({ resource_type, resource_id }) => [resource_type, resource_id!]));
  expect(made.map(({ resource_type, key }) => [resource_type, key])).toEqual([
    ['namespace', 'sales'],
    ['environment', 'live'],
    ['tool', 'own'],
    ['tool_instance', 'ours'],
    ['app', 'shop'],
  ]);
  const url = `${bob.home}/apps/${ids.app}`;
  const { metadata } = (await bob.call<{ metadata: object }>('GET', url)).body;
  expect(metadata).toEqual({ of: ids.namespace });
  const { augmentations } = (await bob.call<{ augmentations: object[] }>('GET', `${url}/augmentations`)).body;
  expect(augmentations).toMatchObject([
    { stages: [{ steps: [{ tool_instance_id: ids.tool_instance, tool_slug: 'own' }] }] },
  ]);
  expect((await bob.call<{ actions: object[] }>('GET', `${url}/actions`)).body.actions).toMatchObject([
    { kind: 'scheduled', enabled: false, next_fire_at: null },
  ]);
  expect((await bob.call('GET', `${bob.home}/tool-instances/${ids.tool_instance}`)).body).toMatchObject({
    namespace_id: ids.namespace,
    configuration: { url: 'https://api.example.test' },
    has_credentials: false,
  });
  // each part has its event, and the import one of its own
  for (const [kind, id] of Object.entries(ids)) expect(await eventsOf(app, id)).toEqual([`${kind}.created`]);
  const counts = { namespaces: 1, environments: 1, tools: 1, tool_instances: 1, entitlements: 0, apps: 1 };
  expect(await eventsOf(app, bob.workspaceId)).toContain('workspace.imported');
  expect((await changesOf(app, bob.workspaceId)).at(-1)).toMatchObject({
    action: 'import',
    resourceType: 'workspace',
    metadata: counts,
  });
  // what was given afterwards is missing no more
  const own = await bob.call('PUT', `${bob.home}/tool-instances/${ids.tool_instance}`, {
    configuration: { url: 'https://api.example.test', api_key: 'x' },
  });
  expect(own.body).toMatchObject({ has_credentials: true });
});

test('a mapping puts what is there in place of models, secrets and instances, which are not made', async () => {
  const ann = await furnished();
  const { document } = (await exported(ann)).body;
  const bob = await register(app, { name: 'bob' });
  await newModel(bob, 'our/large');
  const secret = await newSecret(bob, 'ours');
  const first = await imported(bob, bob.home, {
    document: { ...document, namespaces: [], environments: [], entitlements: [], apps: [], tool_instances: [] },
  });
  expect(first.body.message).toBe('Imported 1 tool');
  const mine = await newInstance(bob, bob.home, first.body.made[0]!.resource_id!, { name: 'Mine' });
  const mapping = { models: { large: 'our/large' }, secrets: { client: secret }, tools: { 'own/ours': mine } };
  const { body } = await imported(bob, bob.home, { document, ...mapping });
  expect([body.message, body.missing, body.warnings]).toEqual([
    'Imported 1 namespace, 1 environment, 1 entitlement and 1 app',
    [],
    [],
  ]);
  const { app_id } = { app_id: body.made.at(-1)!.resource_id };
  const url = `${bob.home}/apps/${app_id}`;
  const { augmentations } = (await bob.call<{ augmentations: object[] }>('GET', `${url}/augmentations`)).body;
  expect(augmentations).toMatchObject([
    { stages: [{ steps: [{ tool_instance_id: mine, tool_slug: 'own', logical_model_id: 'our/large' }] }] },
  ]);
  expect((await bob.call<{ actions: object[] }>('GET', `${url}/actions`)).body.actions).toMatchObject([
    { enabled: true },
  ]);
  const wrong = { models: { small: 'our/large' }, secrets: { client: 'none' }, tools: { own: 'ti_none' } };
  const refused = await imported(bob, await newWorkspace(bob), { document, ...wrong });
  expect([refused.status, refusals(refused.body)]).toEqual([
    422,
    [
      ['body.tools.own', "Value error, there is no tool instance 'ti_none' in the workspace"],
      ['body.models.small', "Value error, the document uses no model 'small'"],
      ['body.secrets.client', "Value error, there is no secret 'none' that apps of the workspace can name"],
    ],
  ]);
});

test('what goes wrong anywhere leaves nothing, and each fault is named with its place', async () => {
  const ann = await furnished();
  const { document } = (await exported(ann)).body;
  const target = await newWorkspace(ann);
  await bucketsMade(app);
  await app.jobsDone();
  const refused = async (change: (copy: WorkspaceDocument) => unknown, home = target) => {
    const copy = structuredClone<WorkspaceDocument>(document);
    change(copy);
    const before = await databaseChecksums(app.database.pool);
    const { status, body } = await imported(ann, home, { document: copy });
    await app.jobsDone();
    const changed = changedTables(before, await databaseChecksums(app.database.pool));
    // the failure is recorded, and nothing else is
    expect(changed.filter((table) => !/^(activity|audit|api_tokens|sessions)/.test(table))).toEqual([]);
    expect(status, JSON.stringify(body)).toBe(422);
    return refusals(body);
  };
  // names that are taken, all of them
  expect(await refused(() => null, ann.home)).toEqual([
    ['body.document.namespaces.0.slug', "Value error, the workspace has a namespace 'sales' already"],
    ['body.document.environments.0.slug', "Value error, the workspace has an environment 'live' already"],
    ['body.document.entitlements.0.model', "Value error, the workspace has an entitlement to 'large' already"],
  ]);
  // the last app
  const app0 = document.apps[0]!;
  expect(
    await refused((copy) => copy.apps.push({ ...app0, key: 'last', definition: definition({ stage: 'none' }) })),
  ).toEqual([['body.document.apps.1.definition.steps.0.stage', "Value error, no stage has the key 'none'"]]);
  // what only the tool knows, once everything before it was written
  expect(
    await refused((copy) => {
      copy.tool_instances[0]!.configuration = { api_key: 'x' };
    }),
  ).toEqual([
    [
      'body.document.tool_instances.0.configuration.api_key',
      'Value error, the tool keeps it secret: give it to the instance afterwards',
    ],
  ]);
  expect(
    await refused((copy) => {
      copy.namespaces.push({ slug: 'sales', name: 'Again' }, { slug: 'default', name: 'Default' });
      copy.environments.push({ slug: 'test', name: 'Test', is_default: true });
      copy.tools[0]!.action_schemas = [{ name: 'send', url_template: 'https://x.test/{{nothing}}' }];
      copy.tool_instances[0]!.namespace = 'none';
      copy.tool_instances[0]!.connection_credentials = { client_secret: 'hunter2' };
      copy.apps.push(copy.apps[0]!);
    }),
  ).toEqual([
    ['body.document.namespaces.1.slug', "Value error, 'sales' is listed twice"],
    ['body.document.namespaces.2.slug', 'Value error, every workspace has it already'],
    ['body.document.environments.1.is_default', 'Value error, another environment is the default'],
    ['body.document.tools.0.action_schemas.0.url_template', expect.stringContaining('{{nothing}} names no parameter')],
    [
      'body.document.tool_instances.0.connection_credentials.client_secret',
      'Value error, this is not a reference: write {{secret.NAME}}',
    ],
    ['body.document.tool_instances.0.namespace', "Value error, no namespace of the document has the slug 'none'"],
    ['body.document.apps.1.key', "Value error, 'shop' is listed twice"],
  ]);
  expect(await refused((copy) => Object.assign(copy, { version: 2, surprise: 1 }))).toEqual([
    ['body.document.surprise', 'Extra inputs are not permitted'],
    ['body.document.version', 'Input should be less than or equal to 1'],
  ]);
  const many = Array.from({ length: limits.environments + 1 }, (_, at) => ({ slug: `e-${at}`, name: 'E' }));
  expect((await refused((copy) => (copy.environments = many)))[0]![0]).toBe('body.document.environments');
  const wide = await imported(ann, target, {
    document: { ...empty, workspace: { name: 'x', description: 'x'.repeat(limits.bytes) } },
  });
  expect([wide.status, refusals(wide.body)[0]![0]]).toEqual([422, 'body.document']);
});

test('a dry run says what would be made, and makes nothing', async () => {
  const ann = await furnished();
  const { document } = (await exported(ann)).body;
  const target = await newWorkspace(ann);
  const before = (await exported(ann, target)).body;
  const { status, body } = await imported(ann, target, { document, dry_run: true });
  expect([status, body.message]).toEqual([
    200,
    'The import would make 1 namespace, 1 environment, 1 tool instance, 1 entitlement and 1 app. Missing: ' +
      "the credential 'api_key'. Its schedules are disabled: enable them once it has all that it needs.",
  ]);
  expect(body.made.map(({ key, resource_id }) => [key, resource_id])).toEqual([
    ['sales', null],
    ['live', null],
    ['ours', null],
    ['large', null],
    ['shop', null],
  ]);
  expect((await exported(ann, target)).body).toEqual(before);
  // the record tells it from an import
  await app.services.activity.flush();
  const records = (await changesOf(app, target.split('/').at(-1)!)).filter(({ action }) => action === 'import');
  expect(records).toMatchObject([{ resourceType: 'workspace', metadata: { dry_run: true } }]);
  expect(refusals((await imported(ann, ann.home, { document, dry_run: true })).body)).toHaveLength(3);
});

test('a tool that is there is used as it is, with a warning where it differs; a disabled one is missing', async () => {
  const ann = await furnished();
  const { document } = (await exported(ann)).body;
  const bob = await register(app, { name: 'bob' });
  const tool = await newTool(bob, 'own', { description: 'Another one.', config_schema: [] });
  const first = await imported(bob, bob.home, { document });
  expect(first.body.warnings).toEqual(["The organization has a different tool 'own'. The import uses that tool."]);
  const instance = first.body.made.find(({ resource_type }) => resource_type === 'tool_instance')!.resource_id;
  expect((await bob.call('GET', `${bob.home}/tool-instances/${instance}`)).body).toMatchObject({ tool_id: tool });
  for (const status of ['deprecated', 'disabled']) await sent(bob, 'PUT', `${orgOf(bob)}/tools/${tool}`, { status });
  const second = await imported(bob, await newWorkspace(bob), { document });
  expect(second.body.made.map(({ resource_type }) => resource_type)).toEqual(['namespace', 'environment', 'app']);
  expect(second.body.missing).toContainEqual({
    kind: 'tool_instance',
    name: 'own',
    used_by: ['app.shop.step.answers.ask', 'tool_instance.ours'],
  });
});

test('two instances of one name stay apart, in a document and in the recipe of an app', async () => {
  const ann = await register(app, { name: 'ann' });
  const tool = await newTool(ann, 'own');
  const [one, two] = [await newInstance(ann, ann.home, tool), await newInstance(ann, ann.home, tool)];
  const steps = [one, two, one].map((tool_instance_id) => ({ name: 'Do', step_type: 'tool', tool_instance_id }));
  const { url } = await newApp(ann, ann.home, steps);
  const { document } = (await exported(ann)).body;
  expect(document.apps[0]!.definition.steps.map((step) => step.tool_instance)).toEqual(['ours', 'ours-2', 'ours']);
  type Recipe = { recipe: { id: string; definition: { steps: { tool_instance: string }[] } } };
  const { recipe } = (await ann.call<Recipe>('POST', `${url}/export-recipe`)).body;
  expect(recipe.definition.steps.map((step) => step.tool_instance)).toEqual(['Ours', 'Ours 2', 'Ours']);
  const tools = { 'own/Ours': two, 'own/Ours 2': one };
  const applied = await sent<{ app_id: string; augmentation_id: string }>(ann, 'POST', `${ann.home}/recipes/apply`, {
    recipe_id: recipe.id,
    recipe,
    tools,
  });
  const at = `${ann.home}/apps/${applied.app_id}/augmentations/${applied.augmentation_id}`;
  type Made = { stages: { steps: { tool_instance_id: string }[] }[] };
  const { stages } = (await ann.call<Made>('GET', at)).body;
  expect(stages[0]!.steps.map((step) => step.tool_instance_id)).toEqual([two, one, two]);
});

test('an import takes the permission to make each part, an export that to read each, and whole places', async () => {
  const ann = await furnished();
  const { document } = (await exported(ann)).body;
  const target = await newWorkspace(ann);
  const editor = await colleague(app, ann, 'editor');
  const viewer = await colleague(app, ann, 'viewer');
  const bob = await register(app, { name: 'bob' });
  expect((await exported(editor, ann.home)).body.document).toEqual(document);
  for (const who of [viewer, bob]) {
    expect((await exported(who, ann.home)).status).toBe(403);
    expect((await imported(who, target, { document: empty })).status).toBe(403);
  }
  const needed = async (part: Partial<WorkspaceDocument>, who = editor) => {
    const { status, body } = await imported(who, ann.home, { document: { ...empty, ...part }, dry_run: true });
    return status === 200
      ? 200
      : (body as unknown as { details: { required_permission: string } }).details.required_permission;
  };
  expect(await needed({ environments: [{ slug: 'e', name: 'E' }] })).toBe('environment:create');
  expect(await needed({ entitlements: [{ model: 'large' }] })).toBe('model_entitlement:create');
  expect(await needed({ tools: [{ slug: 'new', name: 'New', description: 'New.' }] })).toBe('tool:create');
  expect(await needed({ tools: document.tools })).toBe(200);
  expect(await needed({ apps: document.apps, namespaces: [{ slug: 'n', name: 'N' }] })).toBe(200);

  const { body: list } = await ann.call<{ namespaces: { namespace_id: string }[] }>('GET', `${ann.home}/namespaces`);
  const given = async (grant: object) => {
    const { headers } = await issueToken(app, ann, { ...grant });
    const url = (path: string) => `${ann.home}/${path}`;
    return {
      export: () => app.server.inject({ method: 'GET', url: url('export'), headers }),
      import: () => app.server.inject({ method: 'POST', url: url('import'), headers, payload: { document: empty } }),
    };
  };
  // it may not read the parts
  const whole = await given({ permissions: ['recipe:export', 'recipe:apply'] });
  expect((await whole.export()).json()).toMatchObject({ details: { required_permission: 'workspace:read' } });
  expect((await whole.import()).statusCode).toBe(200);
  const part = await given({ scopes: ['admin'], namespace_ids: [list.namespaces[0]!.namespace_id] });
  expect([(await part.export()).statusCode, (await part.import()).statusCode]).toEqual([403, 403]);
  const { body: apps } = await ann.call<{ apps: { app_id: string }[] }>('GET', `${ann.home}/apps`);
  const ofApp = await given({ scopes: ['admin'], app_id: apps.apps[0]!.app_id });
  expect([(await ofApp.export()).statusCode, (await ofApp.import()).statusCode]).toEqual([403, 403]);
});

test('a workspace with more than a document may have is not exported', async () => {
  const ann = await register(app, { name: 'ann' });
  for (let n = 0; n < 5; n++)
    await sent(ann, 'POST', `${ann.home}/apps`, { name: 'Large', metadata: { text: 'x'.repeat(200_000) } });
  expect(await exported(ann)).toMatchObject({
    status: 409,
    body: { error: 'RESOURCE_CONFLICT', details: { resource_id: ann.workspaceId, reason: 'too_large' } },
  });
});

test('imports into one workspace at once: one of them makes its parts, the others are told what is taken', async () => {
  const ann = await register(app, { name: 'ann' });
  const document = {
    ...empty,
    namespaces: [{ slug: 'sales', name: 'Sales' }],
    tools: [{ slug: 'own', name: 'Own', description: 'Own.' }],
    environments: [{ slug: 'live', name: 'Live' }],
  };
  const answers = await Promise.all([1, 2, 3, 4].map(() => imported(ann, ann.home, { document })));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 422)).toHaveLength(3);
  const copies = await Promise.all([1, 2, 3].map(async () => imported(ann, await newWorkspace(ann), { document })));
  expect(copies.map(({ status }) => status)).toEqual([200, 200, 200]);
  const { environments } = (await ann.call<{ environments: object[] }>('GET', `${ann.home}/environments`)).body;
  expect(environments).toMatchObject([{ slug: 'live', is_default: true }]);
});

test('the default environment of a workspace stays; where none is open, the imported one becomes it', async () => {
  const ann = await register(app, { name: 'ann' });
  const of = async (home: string) =>
    (
      await ann.call<{ environments: { slug: string; is_default: boolean }[] }>('GET', `${home}/environments`)
    ).body.environments
      .toReversed()
      .map(({ slug, is_default }) => [slug, is_default]);
  const first = {
    ...empty,
    environments: [
      { slug: 'a', name: 'A' },
      { slug: 'b', name: 'B', is_default: true },
    ],
  };
  const second = { ...empty, environments: [{ slug: 'c', name: 'C', is_default: true }] };
  for (const document of [first, second]) expect((await imported(ann, ann.home, { document })).status).toBe(200);
  expect(await of(ann.home)).toEqual([
    ['a', false],
    ['b', true],
    ['c', false],
  ]);
  const other = await newWorkspace(ann);
  const closed = { ...empty, environments: [{ slug: 'old', name: 'Old', status: 'archived' }] };
  for (const document of [closed, second]) expect((await imported(ann, other, { document })).status).toBe(200);
  expect(await of(other)).toEqual([
    ['old', false],
    ['c', true],
  ]);
});

test('an instance of an older version of its tool comes as it is, to be upgraded', async () => {
  const ann = await register(app, { name: 'ann' });
  const tool = await newTool(ann, 'own', { config_schema: [{ name: 'url', type: 'string' }] });
  await newInstance(ann, ann.home, tool, { configuration: { url: 'https://a.test' } });
  const config_schema = [
    { name: 'address', type: 'string', required: true },
    { name: 'limit', type: 'integer', default: 5 },
  ];
  await sent(ann, 'PUT', `${orgOf(ann)}/tools/${tool}`, { config_schema });
  const { document } = (await exported(ann)).body;
  const bob = await register(app, { name: 'bob' });
  const { body } = await imported(bob, bob.home, { document });
  const instance = body.made.find(({ resource_type }) => resource_type === 'tool_instance')!.resource_id;
  expect((await bob.call('GET', `${bob.home}/tool-instances/${instance}`)).body).toMatchObject({
    configuration: { url: 'https://a.test' },
    schema_version: 1,
    latest_schema_version: 2,
    upgrade_available: true,
  });
  const again = (await exported(bob)).body.document;
  expect([again.tools, again.tool_instances]).toEqual([document.tools, document.tool_instances]);
});

test('the answer of an import in GraphQL is that of REST', async () => {
  const ann = await register(app, { name: 'ann' });
  const document = { ...empty, apps: [{ key: 'shop', definition: definition({ model: 'of-nobody' }) }] };
  type Answer = { importWorkspace: Imported };
  const { data } = await ann.ask<Answer>(
    `mutation ($org: ID!, $ws: ID!, $document: JSONObject!) {
      importWorkspace(orgId: $org, workspaceId: $ws, input: { document: $document, dryRun: true }) {
        message made { resource_type: resourceType key resource_id: resourceId }
        missing { kind name used_by: usedBy } warnings } }`,
    { org: ann.orgId, ws: ann.workspaceId, document },
  );
  expect(data.importWorkspace).toEqual((await imported(ann, ann.home, { document, dry_run: true })).body);
});

test('an import names the client secret of an own tool only for who may see its value', async () => {
  const ann = await register(app, { name: 'ann' });
  await newSecret(ann, 'client');
  await newTool(ann, 'own');
  const editor = await colleague(app, ann, 'editor');
  const target = await newWorkspace(ann);
  const userId = editor.userId;
  const joined = await ann.call('POST', `${target}/members`, { user_id: userId, role: 'editor' });
  expect(joined.status, JSON.stringify(joined.body)).toBe(201);
  const instance = (tool: string, client_secret: string) => ({
    ...empty,
    tool_instances: [{ key: 'ours', tool, name: 'Ours', connection_credentials: { client_id: 'us', client_secret } }],
  });
  const isImported = async (who: Person, document: object, more: object = {}) => {
    const { status, body } = await imported(who, target, { document, ...more });
    return status === 200 ? [status, body.missing] : [status, (body as unknown as { details: object }).details];
  };
  const needsReveal = [403, expect.objectContaining({ required_permission: 'secret:reveal' })];
  const own = instance('own', '{{secret.client}}');
  expect(await isImported(editor, own)).toEqual(needsReveal);
  expect(await isImported(editor, own, { dry_run: true })).toEqual(needsReveal);
  expect(await isImported(editor, instance('own', 'secret://client'))).toEqual(needsReveal);
  const mapped = { secrets: { other: 'client' } };
  expect(await isImported(editor, instance('own', '{{secret.other}}'), mapped)).toEqual(needsReveal);
  expect((await ann.call<{ total: number }>('GET', `${target}/tool-instances`)).body.total).toBe(0);
  // the addresses of a built-in tool are fixed
  expect(await isImported(editor, instance('github', '{{secret.client}}'))).toEqual([200, []]);
  expect(await isImported(ann, own)).toEqual([200, []]);
});
