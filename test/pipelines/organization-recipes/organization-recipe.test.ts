import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownLimits } from '../../../src/pipelines/organization-recipes/organization-recipe.words.ts';
import type { RecipeDocument } from '../../../src/pipelines/recipes/recipe-document.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Body = Record<string, unknown>;
interface Stored extends Body {
  organization_recipe_id: string;
  latest_version: number;
}
interface Version extends Body {
  organization_recipe_version_id: string;
  number: number;
}

const folderOf = ({ orgId }: Person) => `/v1/orgs/${orgId}/organization-recipes`;
const store = (who: Person, recipe: object) => who.call<Stored>('POST', folderOf(who), { recipe });
const stored = async (who: Person, recipe: object) => {
  const { status, body } = await store(who, recipe);
  expect(status, JSON.stringify(body)).toBe(201);
  return { ...body, url: `${folderOf(who)}/${body.organization_recipe_id}` };
};
const versionsOf = async (who: Person, url: string) => {
  type Page = { organization_recipe_versions: Version[]; total: number };
  return (await who.call<Page>('GET', `${url}/versions`)).body;
};
const apply = (who: Person, recipe_id: string, more: object = {}) =>
  who.call<{ app_id: string; recipe_id: string; message: string }>('POST', `${who.home}/recipes/apply`, {
    recipe_id,
    ...more,
  });
const nameOf = async (who: Person, appId: string) =>
  (await who.call<{ name: string }>('GET', `${who.home}/apps/${appId}`)).body.name;
const refusals = (body: unknown) =>
  (body as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [loc.join('.'), msg]);

/** A recipe of one step, whose app has this name. */
const document = (id: string, name = 'Helper'): RecipeDocument => ({
  id,
  name,
  description: `Makes ${name}.`,
  category: 'intermediate',
  icon: 'lifebuoy',
  tags: ['help'],
  needs_embedding: false,
  version: '1.0.0',
  parameters: [{ name: 'model', type: 'string', default: 'our-chat' }],
  definition: {
    app: { name },
    namespace: { name },
    augmentations: [{ key: 'answer', name: 'Answer' }],
    stages: [{ key: 'only', augmentation: 'answer', name: 'Only' }],
    steps: [
      {
        key: 'ask',
        stage: 'only',
        name: 'Ask',
        step_type: 'llm',
        model: '{{parameters.model}}',
        config: { key: '{{secret.mail}}' },
      },
    ],
    endpoint: { key: 'chat', augmentation: 'answer', name: 'Chat', path: '/chat' },
  },
});

test('stores, lists, changes and deletes recipes, with their events and records', async () => {
  const ann = await register(app, { name: 'ann' });
  const recipe = document('helper');
  const { url, ...body } = await stored(ann, { ...recipe, requirements: { tools: ['x'], models: [], secrets: [] } });
  const summary = {
    organization_recipe_id: expect.stringMatching(/^rcp_/),
    org_id: ann.orgId,
    slug: 'helper',
    name: 'Helper',
    description: 'Makes Helper.',
    category: 'intermediate',
    icon: 'lifebuoy',
    tags: ['help'],
    needs_embedding: false,
    latest_version: 1,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  };
  expect(body).toEqual(summary);
  // what it needs is derived, whatever the document says
  const requirements = { tools: [], models: ['our-chat'], secrets: ['mail'] };
  expect((await ann.call('GET', url)).body).toEqual({ ...body, recipe, requirements });
  const list = await ann.call<{ organization_recipes: Stored[]; total: number }>('GET', folderOf(ann));
  expect([list.body.total, list.body.organization_recipes]).toEqual([1, [body]]);

  const next = { ...document('helper', 'Better helper'), tags: [], icon: 'robot' };
  const changed = await ann.call('PUT', url, { recipe: next });
  const shown = { name: 'Better helper', description: 'Makes Better helper.', icon: 'robot', tags: [] };
  expect(changed.body).toEqual({ ...body, ...shown, latest_version: 2, updated_at: expect.any(String) });
  expect((await ann.call('GET', url)).body).toEqual({ ...changed.body, recipe: next, requirements });
  // nothing is no version
  expect((await ann.call('PUT', url, {})).body).toMatchObject({ latest_version: 2 });

  const id = body.organization_recipe_id;
  expect(await ann.call('DELETE', url)).toEqual({ status: 204, body: null });
  expect((await ann.call('GET', url)).status).toBe(404);
  expect((await ann.call('GET', `${url}/versions`)).status).toBe(404);
  expect(await eventsOf(app, id)).toEqual([
    'organization_recipe.created',
    'organization_recipe.updated',
    'organization_recipe.updated',
    'organization_recipe.deleted',
  ]);
  expect((await changesOf(app, id)).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['create', { slug: 'helper' }],
    ['update', { fields: ['recipe'], version: 2 }],
    ['update', { fields: [] }],
    ['delete', {}],
  ]);
});

test('keeps every version as it was, and applies the latest by slug or id and an old one by its own id', async () => {
  const ben = await register(app, { name: 'ben' });
  const first = document('desk', 'First desk');
  const { url, organization_recipe_id: id } = await stored(ben, first);
  await ben.call('PUT', url, { recipe: document('desk', 'Second desk') });
  const { organization_recipe_versions: versions, total } = await versionsOf(ben, url);
  expect([total, versions.map(({ number }) => number)]).toEqual([2, [2, 1]]);
  const [, old] = versions;
  expect(old).toEqual({
    organization_recipe_version_id: expect.stringMatching(/^rcpv_/),
    organization_recipe_id: id,
    number: 1,
    size_bytes: Buffer.byteLength(JSON.stringify(first)),
    created_by: ben.userId,
    created_at: expect.any(String),
  });
  const versionId = old!.organization_recipe_version_id;
  expect((await ben.call('GET', `${url}/versions/${versionId}`)).body).toEqual({
    ...old,
    recipe: first,
    requirements: { tools: [], models: ['our-chat'], secrets: ['mail'] },
  });

  const names = { desk: 'Second desk', [id]: 'Second desk', [versionId]: 'First desk' };
  for (const [recipe, name] of Object.entries(names)) {
    const applied = await apply(ben, recipe, { parameters: { model: 'their-chat' } });
    expect([applied.status, applied.body.recipe_id]).toEqual([200, 'desk']);
    expect(applied.body.message).toContain("Missing: the model 'their-chat', the secret 'mail'");
    expect(await nameOf(ben, applied.body.app_id)).toBe(name);
  }
  expect(refusals((await apply(ben, 'desk', { parameters: { tone: 'rude' } })).body)).toEqual([
    ['body.parameters.tone', 'Extra inputs are not permitted'],
  ]);
  // apps stay when their recipe goes
  const { app_id } = (await apply(ben, 'desk', { name: 'Mine' })).body;
  await ben.call('DELETE', url);
  expect(await nameOf(ben, app_id)).toBe('Mine');
  for (const recipe of Object.keys(names)) {
    const { status, body } = await apply(ben, recipe);
    expect([status, body]).toMatchObject([404, { details: { resource_type: 'recipe', resource_id: recipe } }]);
  }
});

test('refuses what could not be applied, with its places, and stores nothing of it', async () => {
  const cat = await register(app, { name: 'cat' });
  const good = document('good');
  const { url } = await stored(cat, good);
  const { definition } = good;
  const bad = (change: object) => ({ ...good, ...change });
  const places: [object, string[][]][] = [
    [
      bad({ definition: { ...definition, steps: [{ ...definition.steps[0], stage: 'other' }] } }),
      [['body.recipe.definition.steps.0.stage', "Value error, no stage has the key 'other'"]],
    ],
    [
      bad({ definition: { ...definition, steps: [{ ...definition.steps[0], config: { t: '{{steps.x.text}}' } }] } }),
      [['body.recipe.definition.steps.0.config.t', "Value error, no step has the key 'x'"]],
    ],
    [
      bad({ parameters: [{ name: 'model', type: 'string', default: 7 }] }),
      [['body.recipe.parameters.0.default', 'Input should be a valid string']],
    ],
    [
      bad({ parameters: [{ name: 'model', type: 'string', default: '' }] }),
      [['body.recipe.parameters.0.default', 'String should have at least 1 character']],
    ],
    [
      bad({ category: 'expert' }),
      [['body.recipe.category', "Input should be 'starter', 'intermediate' or 'advanced'"]],
    ],
  ];
  for (const [recipe, wanted] of places)
    for (const answer of [await store(cat, { ...recipe, id: 'bad' }), await cat.call('PUT', url, { recipe })]) {
      expect(answer.status).toBe(422);
      expect(refusals(answer.body)).toEqual(wanted);
    }
  const large = bad({ definition: { ...definition, app: { name: 'x', metadata: { text: 'x'.repeat(960 * 1024) } } } });
  expect((await store(cat, { ...large, id: 'large' })).status).toBe(422);
  const list = await cat.call<{ total: number }>('GET', folderOf(cat));
  expect([list.body.total, (await versionsOf(cat, url)).total]).toEqual([1, 1]);
});

test('leaves to the one who applies it what depends on a parameter without a default', async () => {
  const dan = await register(app, { name: 'dan' });
  const recipe = document('open');
  recipe.parameters = [
    { name: 'cron', type: 'string' },
    { name: 'model', type: 'string', enum: ['large', 'small'] },
  ];
  const daily = { key: 'daily', augmentation: 'answer', name: 'Daily', kind: 'scheduled' };
  recipe.definition.actions = [{ ...daily, cron: '{{parameters.cron}}', timezone: 'UTC' }];
  const { url } = await stored(dan, recipe);
  expect((await dan.call('GET', url)).body).toMatchObject({ requirements: { models: [] } });
  expect(refusals((await apply(dan, 'open', { parameters: { model: 'large' } })).body)).toEqual([
    ['body.parameters.cron', 'Field required'],
  ]);
  const wrong = await apply(dan, 'open', { parameters: { model: 'large', cron: 'daily' } });
  expect(refusals(wrong.body).map(([place]) => place)).toEqual(['body.parameters.cron']);
  const parameters = { cron: '0 8 * * *', model: 'large' };
  expect((await apply(dan, 'open', { parameters, dry_run: true })).status).toBe(200);
});

test('gives a slug once in an organization, and none of the catalogue', async () => {
  const eve = await register(app, { name: 'eve' });
  const { organization_recipe_id: id } = await stored(eve, document('one'));
  for (const [slug, resource_id] of [
    ['one', id],
    ['starter-chat', null],
  ] as const) {
    const { status, body } = await store(eve, document(slug));
    const details = { resource_type: 'organization_recipe', field: 'slug', value: slug, resource_id };
    expect([status, body]).toMatchObject([409, { error: 'RESOURCE_ALREADY_EXISTS', details }]);
  }
  // a version with another id moves the recipe to that slug
  const { url } = await stored(eve, document('two'));
  expect((await eve.call('PUT', url, { recipe: document('one') })).status).toBe(409);
  expect((await eve.call('PUT', url, { recipe: document('starter-chat') })).status).toBe(409);
  expect((await eve.call('PUT', url, { recipe: document('three') })).body).toMatchObject({ slug: 'three' });
  expect([(await apply(eve, 'two')).status, (await apply(eve, 'three')).status]).toEqual([404, 200]);
  await stored(eve, document('two'));
  const all = await Promise.all(Array.from({ length: 4 }, () => store(eve, document('raced'))));
  expect(all.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 409, 409, 409]);
  // another organization has its own
  const fay = await register(app, { name: 'fay' });
  await stored(fay, document('one'));
  for (const url of [`${folderOf(fay)}/${id}`, `${folderOf(eve)}/${id}`.replace(eve.orgId, fay.orgId)])
    expect((await fay.call('GET', url)).status).toBe(404);
  expect((await apply(fay, id)).status).toBe(404);
});

test('stores an app as a recipe, of which the same app can be made', async () => {
  const gus = await register(app, { name: 'gus' });
  const first = (await apply(gus, 'scheduled-report', { name: 'Mondays' })).body;
  const folder = `${gus.home}/apps/${first.app_id}/organization-recipes`;
  type Made = { organization_recipe: Stored; warnings: string[] };
  const plain = await gus.call<Made>('POST', folder, {});
  expect([plain.status, plain.body]).toMatchObject([
    201,
    { organization_recipe: { slug: 'mondays', name: 'Mondays', category: 'intermediate', icon: 'app' }, warnings: [] },
  ]);
  expect((await gus.call('POST', folder, {})).status).toBe(409);
  const said = { slug: 'weekly', name: 'Weekly', description: 'Of ours.', category: 'advanced', tags: ['ours'] };
  const { body } = await gus.call<Made>('POST', folder, { ...said, icon: 'calendar' });
  expect(body.organization_recipe).toMatchObject({ ...said, icon: 'calendar' });

  const again = await apply(gus, 'weekly');
  const exported = async (appId: string) =>
    (await gus.call<{ recipe: RecipeDocument }>('POST', `${gus.home}/apps/${appId}/export-recipe`)).body.recipe;
  const [before, after] = [await exported(first.app_id), await exported(again.body.app_id)];
  // the app's schedule waits for what is missing
  expect({ ...after, definition: { ...after.definition, actions: [] } }).toEqual({
    ...before,
    definition: { ...before.definition, actions: [] },
  });
});

test('changes only the version that the caller has seen, and keeps the newest ones', async () => {
  const hal = await register(app, { name: 'hal' });
  const { url, organization_recipe_id: id } = await stored(hal, document('many'));
  const update = `mutation ($orgId: ID!, $id: ID!, $recipe: JSONObject!, $seen: Int) {
    updateOrganizationRecipe(orgId: $orgId, id: $id, input: { recipe: $recipe }, expectedVersion: $seen) {
      latestVersion resourceVersion content { recipe } } }`;
  const variables = { orgId: hal.orgId, id, recipe: document('many', 'Next') };
  const { data } = await hal.ask<{ updateOrganizationRecipe: Body }>(update, { ...variables, seen: 1 });
  expect(data.updateOrganizationRecipe).toEqual({
    latestVersion: 2,
    resourceVersion: 2,
    content: { recipe: variables.recipe },
  });
  const stale = await hal.ask(update, { ...variables, seen: 1 });
  expect(stale.errors![0]!.extensions).toMatchObject({ code: 'PRECONDITION_FAILED', details: { current_version: 2 } });
  expect((await versionsOf(hal, url)).total).toBe(2);

  for (let number = 3; number <= ownLimits.versions + 2; number++)
    expect((await hal.call('PUT', url, { recipe: variables.recipe })).body).toMatchObject({ latest_version: number });
  const { organization_recipe_versions: kept, total } = await versionsOf(hal, url);
  expect([total, kept[0]!.number, kept.at(-1)!.number]).toEqual([ownLimits.versions, ownLimits.versions + 2, 3]);
});

test('shows the documents of a few recipes at once, and not those of a whole page', async () => {
  const kim = await register(app, { name: 'kim' });
  const recipes = ['three', 'two', 'one'].map((id) => document(id));
  for (const recipe of recipes.toReversed()) await stored(kim, recipe);
  const query = `query ($orgId: ID!, $first: Int!) { organizationRecipes(orgId: $orgId, first: $first) {
    nodes { versions(first: 1) { nodes { number } } content { recipe } } } }`;
  const ask = (first: number) =>
    kim.ask<{ organizationRecipes: { nodes: unknown[] } }>(query, { orgId: kim.orgId, first });
  expect((await ask(10)).data.organizationRecipes.nodes).toEqual(
    recipes.map((recipe) => ({ versions: { nodes: [{ number: 1 }] }, content: { recipe } })),
  );
  expect((await ask(50)).errors![0]!.extensions.code).toBe('OPERATION_TOO_LARGE');
});

test('records who read a version, and of which app a recipe was made', async () => {
  const lea = await register(app, { name: 'lea' });
  const { app_id } = (await apply(lea, 'starter-chat')).body;
  const made = await lea.call<{ organization_recipe: Stored }>(
    'POST',
    `${lea.home}/apps/${app_id}/organization-recipes`,
    { slug: 'made' },
  );
  const { organization_recipe_id } = made.body.organization_recipe;
  const url = `${folderOf(lea)}/${organization_recipe_id}`;
  const [version] = (await versionsOf(lea, url)).organization_recipe_versions;
  const { organization_recipe_version_id: versionId } = version!;
  await lea.call('GET', `${url}/versions/${versionId}`);
  await app.services.activity.flush();
  const select = { action: true, resourceType: true, resourceId: true, appId: true, workspaceId: true } as const;
  const recorded = (resourceId: string) => app.database.prisma.activity.findMany({ where: { resourceId }, select });
  expect(await recorded(versionId)).toEqual([
    {
      action: 'read',
      resourceType: 'organization_recipe_version',
      resourceId: versionId,
      appId: null,
      workspaceId: null,
    },
  ]);
  expect((await recorded(organization_recipe_id)).filter(({ action }) => action === 'create')).toEqual([
    {
      action: 'create',
      resourceType: 'organization_recipe',
      resourceId: organization_recipe_id,
      appId: app_id,
      workspaceId: lea.workspaceId,
    },
  ]);
});

test('stores as much as an organization may have', async () => {
  const ida = await register(app, { name: 'ida' });
  const { url } = await stored(ida, document('large'));
  const setSize = (bytes: number) =>
    app.database.pool.query('update organization_recipe_versions set size_bytes = $2 where org_id = $1', [
      ida.orgId,
      bytes,
    ]);
  const isFull = { error: 'RESOURCE_CONFLICT', details: { reason: 'limit_reached', limit: ownLimits.bytes } };
  await setSize(ownLimits.bytes);
  expect([await store(ida, document('more')), await ida.call('PUT', url, { recipe: document('large') })]).toMatchObject(
    [
      { status: 409, body: isFull },
      { status: 409, body: isFull },
    ],
  );
  await setSize(0);
  await app.database.pool.query(
    `insert into organization_recipes (id, org_id, slug, name, description, category, icon, tags, needs_embedding)
     select id || n, org_id, slug || n, name, description, category, icon, tags, needs_embedding
     from organization_recipes, generate_series(2, $2::int) n where org_id = $1`,
    [ida.orgId, ownLimits.recipes],
  );
  expect(await store(ida, document('more'))).toMatchObject({
    status: 409,
    body: { details: { reason: 'limit_reached', limit: ownLimits.recipes } },
  });
  expect((await ida.call('PUT', url, { recipe: document('large') })).status).toBe(200);
});

test('lets viewers read and editors change, and a token apply only what it may read', async () => {
  const jan = await register(app, { name: 'jan' });
  const { url } = await stored(jan, document('shared'));
  const { orgId, workspaceId, home } = jan;
  const joined = async (role: 'viewer' | 'editor') => ({
    ...(await colleague(app, jan, role)),
    orgId,
    workspaceId,
    home,
  });
  const [viewer, editor] = [await joined('viewer'), await joined('editor')];
  expect((await viewer.call('GET', url)).status).toBe(200);
  const forbidden = (permission: string) => ({ status: 403, body: { details: { required_permission: permission } } });
  expect(await store(viewer, document('theirs'))).toMatchObject(forbidden('organization_recipe:create'));
  expect(await viewer.call('PUT', url, {})).toMatchObject(forbidden('organization_recipe:update'));
  expect(await viewer.call('DELETE', url)).toMatchObject(forbidden('organization_recipe:delete'));
  expect((await editor.call('PUT', url, { recipe: document('shared') })).status).toBe(200);

  const { app_id } = (await apply(editor, 'shared')).body;
  const folder = `${jan.home}/apps/${app_id}/organization-recipes`;
  // an editor of the workspace alone has no say in the organization
  await jan.call('PATCH', `${jan.home}/members/${viewer.userId}`, { role: 'editor' });
  expect((await apply(viewer, 'shared')).status).toBe(200);
  expect(await viewer.call('POST', folder, { slug: 'theirs' })).toMatchObject(forbidden('organization_recipe:create'));

  const parts = ['app', 'namespace', 'augmentation', 'endpoint', 'action'].map((part) => `${part}:create`);
  const statusWith = async (permissions: string[]) => {
    const { headers } = await issueToken(app, jan, { permissions });
    const payload = { recipe_id: 'shared' };
    return (await app.server.inject({ method: 'POST', url: `${jan.home}/recipes/apply`, headers, payload })).statusCode;
  };
  expect(await statusWith(['recipe:apply', ...parts])).toBe(404);
  expect(await statusWith(['recipe:apply', ...parts, 'organization_recipe:read'])).toBe(200);
});
