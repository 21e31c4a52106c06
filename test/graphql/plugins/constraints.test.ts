import { isInputObjectType } from 'graphql';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { Cursors } from '../../../src/data/cursors.ts';
import type { Constraints, JsonShape } from '../../../src/kernel/constraints.ts';
import { schema } from '../../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());
afterEach(() => vi.restoreAllMocks());

/** The form of a field of an input type: who checks the field asks it. */
function shapeOf(type: string, field: string): JsonShape {
  const input = schema.getType(type);
  if (!isInputObjectType(input)) throw new Error(`'${type}' is no input type.`);
  return (input.getFields()[field]!.extensions.constraints as Constraints).shape!;
}

const wrong = { path: ['name'], type: 'too_odd', msg: 'Input should be less odd', input: 'x' };
const APPLY = `mutation ($org: ID!, $ws: ID!, $input: ApplyRecipeInput!) {
  applyRecipe(orgId: $org, workspaceId: $ws, input: $input) { recipeId } }`;

it.each(['REST', 'GraphQL'])('a value that comes by %s is checked once, and refused if it is wrong', async (way) => {
  const { orgId: org, workspaceId: ws, headers } = owner;
  const recipe = { name: 'x' };
  const { post, graphql } = callsOf(app);
  const send = async () => {
    const answer =
      way === 'GraphQL'
        ? await graphql(APPLY, { org, ws, input: { recipeId: 'mine', recipe, dryRun: true } }, headers)
        : await post(
            `/v1/orgs/${org}/workspaces/${ws}/recipes/apply`,
            { recipe_id: 'mine', recipe, dry_run: true },
            headers,
          );
    return answer.body;
  };
  const check = vi.spyOn(shapeOf('ApplyRecipeInput', 'recipe'), 'check');
  check.mockReturnValue([]);
  expect(await send()).not.toContain('too_odd');
  expect(check.mock.calls).toEqual([[recipe]]);
  check.mockReturnValue([wrong]);
  expect(await send()).toContain('too_odd');
});

it.each([
  'workspaces(orgId: $org, first: 1) { nodes { apps(first: $first) { totalCount } } }',
  'workspaces(orgId: $org, first: 1) { totalCount } more: workspaces(orgId: $org, first: $first) { totalCount }',
])('every field of a document is checked: %s', async (selection) => {
  const query = `query ($org: ID!, $first: Int!) { ${selection} }`;
  const ask = async (first: number) =>
    (await callsOf(app).graphql(query, { org: owner.orgId, first }, owner.headers)).json<{ errors?: unknown[] }>();
  expect((await ask(0)).errors).toMatchObject([{ extensions: { code: 'VALIDATION_ERROR' } }]);
  expect((await ask(1)).errors).toBeUndefined();
});

/** A list of one workspace with more after it. */
async function firstPage() {
  const { get, post } = callsOf(app);
  const path = `/v1/orgs/${owner.orgId}/workspaces`;
  await post(path, { organization_id: owner.orgId, name: 'Newer' }, owner.headers);
  const page = await get(`${path}?limit=1`, owner.headers);
  return page.json<{ workspaces: { workspace_id: string }[]; next_cursor: string }>();
}

it('a cursor is opened once, over REST and over GraphQL, and has one seal', async () => {
  const { workspaces, next_cursor: cursor } = await firstPage();
  // what is sealed is readable: the id of the row
  expect(Buffer.from(cursor, 'base64url').toString('latin1')).toContain(` ${workspaces[0]!.workspace_id}\0`);
  const open = vi.spyOn(Cursors.prototype, 'decode');
  const opened = () => open.mock.calls.filter(([, text]) => text === cursor).length;
  const { get, graphql } = callsOf(app);
  const next = await get(`/v1/orgs/${owner.orgId}/workspaces?limit=1&cursor=${cursor}`, owner.headers);
  expect(next.statusCode).toBe(200);
  expect(opened()).toBe(1);
  const query =
    'query ($org: ID!, $after: String) { workspaces(orgId: $org, first: 1, after: $after) { nodes { id } } }';
  const same = await graphql(query, { org: owner.orgId, after: cursor }, owner.headers);
  const [{ workspace_id: id }] = next.json<{ workspaces: [{ workspace_id: string }] }>().workspaces;
  expect(same.json()).toEqual({ data: { workspaces: { nodes: [{ id }] } } });
  expect(opened()).toBe(2);
});

it('a cursor of an earlier release, which had another seal inside, is refused with its place', async () => {
  const { next_cursor: cursor } = await firstPage();
  const { get } = callsOf(app);
  const page = (text: string) => get(`/v1/orgs/${owner.orgId}/workspaces?limit=1&cursor=${text}`, owner.headers);
  const open = vi.spyOn(Cursors.prototype, 'decode');
  await page(cursor);
  const at = open.mock.calls.findIndex(([, text]) => text === cursor);
  const [cursors, [scope]] = [open.mock.contexts[at] as Cursors, open.mock.calls[at]!];
  const earlier = cursors.encode(scope, cursors.encode({ list: 'workspaces', filters: [owner.orgId] }, 'ws_1'));
  const answer = await page(earlier);
  expect(answer.statusCode).toBe(422);
  expect(answer.json()).toMatchObject({ detail: [{ loc: ['query', 'cursor'], type: 'value_error', input: earlier }] });
});
