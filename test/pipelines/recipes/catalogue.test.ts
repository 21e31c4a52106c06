import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isBuilt } from '../../../scripts/build.mjs';
import { buildChecksFile } from '../../../src/paths.ts';
import { builtInRecipesDir, faultsOf, readBuiltInRecipes } from '../../../src/pipelines/recipes/built-in-recipes.ts';
import type { RecipeDocument } from '../../../src/pipelines/recipes/recipe-document.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';

let app: TestApp;
let ann: Person;
let recipes: string;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
  recipes = `/v1/orgs/${ann.orgId}/recipes`;
});
afterAll(() => app.close());

const files = readdirSync(builtInRecipesDir);
const read = (file: string) => JSON.parse(readFileSync(path.join(builtInRecipesDir, file), 'utf8')) as RecipeDocument;

test.each(files)('%s is a recipe by the published schema, as any JSON Schema library reads it', async (file) => {
  const answer = await app.server.inject({ url: '/schemas/recipe.json' });
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'application/schema+json; charset=utf-8']);
  const check = new Ajv2020({ strict: true, validateFormats: false }).compile(answer.json());
  expect(check(read(file)), JSON.stringify(check.errors)).toBe(true);
  expect(check({ ...read(file), category: 'hard' })).toBe(false);
  expect(faultsOf(read(file))).toEqual([]);
});

test('lists all recipes in the order of the catalogue, or those of one category', async () => {
  const all = await ann.call<{ recipes: { id: string }[]; total: number }>('GET', recipes);
  expect(all.status).toBe(200);
  expect(all.body.total).toBe(6);
  expect(all.body.recipes.map(({ id }) => id)).toEqual([
    'starter-chat',
    'starter-summarizer',
    'doc-qa',
    'web-research',
    'multi-step-agent',
    'scheduled-report',
  ]);
  expect(all.body.recipes[2]).toEqual({
    id: 'doc-qa',
    name: 'Questions about documents',
    description: 'Answers questions from the documents of a namespace, and says which it used.',
    category: 'intermediate',
    icon: 'book-open',
    tags: ['documents', 'retrieval', 'questions'],
    needs_embedding: true,
  });
  const some = await ann.call('GET', `${recipes}?category=starter`);
  expect(some.body).toEqual({ recipes: all.body.recipes.slice(0, 2), total: 2 });
  expect(await ann.call('GET', `${recipes}?category=hard`)).toMatchObject({
    status: 422,
    body: {
      detail: [
        {
          type: 'literal_error',
          loc: ['query', 'category'],
          msg: "Input should be 'starter', 'intermediate' or 'advanced'",
          input: 'hard',
        },
      ],
    },
  });
});

test('shows a recipe with what it needs and what it makes, and 404 for any other word', async () => {
  const file = read('web-research.json');
  expect(await ann.call('GET', `${recipes}/web-research`)).toEqual({
    status: 200,
    body: { ...file, requirements: { tools: ['http-request', 'wikipedia'], models: ['default-chat'], secrets: [] } },
  });
  for (const id of ['web-researc', '__proto__', '..%2Fstarter-chat'])
    expect(await ann.call('GET', `${recipes}/${id}`), id).toMatchObject({
      status: 404,
      body: { error: 'RESOURCE_NOT_FOUND', details: { resource_type: 'recipe', resource_id: decodeURIComponent(id) } },
    });
});

test('GraphQL has the same, and the categories', async () => {
  const answer = await app.server.inject(
    graphqlRequest(
      `query ($orgId: ID!) {
        recipes(orgId: $orgId, category: advanced) { total recipes { id requirements { tools models secrets } } }
        recipe(orgId: $orgId, id: "doc-qa") { needsEmbedding definition parameters }
        recipeCategories(orgId: $orgId) { category total }
      }`,
      { orgId: ann.orgId },
      ann.accessToken,
    ),
  );
  const { definition, parameters } = read('doc-qa.json');
  expect(answer.json()).toEqual({
    data: {
      recipes: {
        total: 2,
        recipes: [
          { id: 'multi-step-agent', requirements: { tools: ['http-request'], models: ['default-chat'], secrets: [] } },
          { id: 'scheduled-report', requirements: { tools: ['slack'], models: ['default-chat'], secrets: [] } },
        ],
      },
      recipe: { needsEmbedding: true, definition, parameters },
      recipeCategories: [
        { category: 'starter', total: 2 },
        { category: 'intermediate', total: 2 },
        { category: 'advanced', total: 2 },
      ],
    },
  });
});

test('every member reads them, a stranger does not', async () => {
  const viewer = await colleague(app, ann, 'viewer');
  const stranger = await register(app, { name: 'zoe' });
  expect((await viewer.call('GET', recipes)).status).toBe(200);
  for (const url of [recipes, `${recipes}/doc-qa`, `${recipes}/nothing`])
    expect(await stranger.call('GET', url)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization:access' } },
    });
});

test('only files that are those of the build are not checked again', () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'recipes-'));
  const write = (change: object) =>
    writeFileSync(path.join(dir, 'doc-qa.json'), JSON.stringify({ ...read('doc-qa.json'), ...change }));
  let known = '';
  const isKnown = (digest: string) => digest === known;
  try {
    write({});
    readBuiltInRecipes(dir, (digest) => {
      known = digest;
      return false;
    });
    expect(readBuiltInRecipes(dir, isKnown)).toEqual(readBuiltInRecipes(dir));
    write({ surprise: 1 });
    expect(() => readBuiltInRecipes(dir, isKnown)).toThrow(
      /doc-qa\.json cannot be used\. .*Extra inputs are not permitted/,
    );
    expect(readBuiltInRecipes(dir, () => true)).toHaveLength(1);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test.runIf(isBuilt())('the files are those that the build has checked', () => {
  readBuiltInRecipes(builtInRecipesDir, (digest) => {
    expect(JSON.parse(readFileSync(buildChecksFile, 'utf8'))).toMatchObject({ recipes: digest });
    return true;
  });
  expect.assertions(1);
});

test('a file that is wrong stops the start, which names the file and the places', () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'recipes-'));
  const good = read('scheduled-report.json');
  const write = (change: (recipe: typeof good) => unknown) => {
    writeFileSync(path.join(dir, 'scheduled-report.json'), JSON.stringify(change(structuredClone(good))));
    return () => readBuiltInRecipes(dir);
  };
  try {
    expect(write((recipe) => recipe)()).toHaveLength(1);
    expect(write(({ version: _version, ...recipe }) => ({ ...recipe, surprise: 1 }))).toThrow(
      /scheduled-report\.json cannot be used\. (?=.*version: Field required)(?=.*Extra inputs are not permitted)/,
    );
    expect(write((recipe) => ({ ...recipe, id: 'other' }))).toThrow("Its id is 'other': the file must have that name.");
    for (const [change, message] of [
      [
        (d: typeof good.definition) => (d.steps[1]!.stage = 'nowhere'),
        'definition.steps.1.stage: Value error, no stage',
      ],
      [(d: typeof good.definition) => (d.steps[1]!.key = d.steps[0]!.key), "definition.steps.1.key: Value error, 'sea"],
      [(d: typeof good.definition) => (d.endpoint!.augmentation = 'none'), 'definition.endpoint.augmentation: Value'],
      [(d: typeof good.definition) => (d.actions![0]!.timezone = 'Mars'), 'definition.actions.0.timezone: Value error'],
      [(d: typeof good.definition) => (d.app.name = '{{parameters.none}}'), "the parameter 'none' is not declared"],
    ] as const)
      expect(
        write((recipe) => {
          change(recipe.definition);
          return recipe;
        }),
        message,
      ).toThrow(message);
    expect(
      write((recipe) => ({ ...recipe, parameters: recipe.parameters.map((p) => ({ ...p, default: 7 })) })),
    ).toThrow('parameters.0.default: Input should be a valid string');
    writeFileSync(path.join(dir, 'scheduled-report.json'), '{');
    expect(() => readBuiltInRecipes(dir)).toThrow(/scheduled-report\.json cannot be used\. .*JSON/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
