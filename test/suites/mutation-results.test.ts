import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  getNamedType,
  isInterfaceType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expendable } from '../support/expendable.ts';
import { gentlestFirst, routeOf } from '../support/operations.ts';
import { prepared } from '../support/prepared.ts';
import { expectOk, graphqlRequest } from '../support/requests.ts';
import { rootFields, selectionOf, titleOf } from '../support/root-fields.ts';
import { createWorld, type World } from '../support/world.ts';
import { writtenRequest } from '../support/written.ts';

/*
 * What clients that keep objects by their ids count on: a mutation returns what it changed, a delete says what is gone
 * and where it was, and a type without an id is part of the object that shows it.
 */

const mutations = rootFields.filter(({ kind }) => kind === 'mutation');
const upper = (name: string) => `${name[0]!.toUpperCase()}${name.slice(1)}`;

/** Revocations are none, where what was revoked can still be read: it is what they return. */
const deletions = mutations.filter(({ name }) =>
  /^(?:(?:delete|remove|unlink|unrelate)[A-Z]|revokeApplicationGrant$)/.test(name),
);
const PLACES = ['orgId', 'workspaceId', 'namespaceId', 'environmentId', 'appId'];

test('every mutation returns an object', () => {
  expect(mutations.length).toBeGreaterThan(120);
  const others = mutations.filter(({ field: { type } }) => !isNonNullType(type) || !isObjectType(type.ofType));
  expect(others.map(titleOf)).toEqual([]);
});

test('what deletes returns a type of its own, with the id and the place', () => {
  const payload = schema.getType('DeletePayload') as GraphQLInterfaceType;
  expect(isInterfaceType(payload)).toBe(true);
  const names = schema.getPossibleTypes(payload).map(({ name }) => name);
  expect(deletions.length).toBeGreaterThan(20);
  expect(names.toSorted()).toEqual(deletions.map(({ name }) => `${upper(name)}Payload`).toSorted());
  for (const { name, field } of deletions) {
    const type = getNamedType(field.type) as GraphQLObjectType;
    expect(type.name, name).toBe(`${upper(name)}Payload`);
    const given = field.args.map((argument) => argument.name).filter((argument) => PLACES.includes(argument));
    expect(Object.keys(type.getFields()), name).toEqual(expect.arrayContaining(['id', ...given]));
  }
});

const isPart = ({ name }: GraphQLObjectType) => /^(?:Query|Mutation|Subscription|PageInfo|__.*)$/.test(name);
const isPage = ({ name }: GraphQLObjectType) => /(?:Connection|Edge)$/.test(name);
const objects = Object.values(schema.getTypeMap()).filter(isObjectType);

test('only pages of lists are called Connection, and only their entries Edge', () => {
  const pages = objects.filter(isPage);
  expect(pages.length).toBeGreaterThan(50);
  for (const type of pages) {
    const fields = type.name.endsWith('Edge') ? ['cursor', 'node'] : ['edges', 'nodes', 'pageInfo', 'totalCount'];
    expect(Object.keys(type.getFields()), type.name).toEqual(expect.arrayContaining(fields));
  }
});

test('each type has an id, or is in the list of values for the caches of front ends', () => {
  const page = readFileSync(path.join(projectRoot, 'docs', 'guides', 'front-ends.md'), 'utf8');
  const [, listed = ''] = /const values = `([^`]+)`/.exec(page) ?? [];
  const values = objects.filter((type) => !isPart(type) && !isPage(type) && !('id' in type.getFields()));
  expect(listed.trim().split(/\s+/), 'docs/guides/front-ends.md').toEqual(values.map(({ name }) => name).toSorted());
});

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());

type Payload = Record<string, unknown> & { id: string };

/** What a model is known by in its organization is no identifier. */
const OTHERWISE = ['deleteLogicalModel'];

const placeKeys = {
  orgId: 'org_id',
  workspaceId: 'workspace_id',
  namespaceId: 'namespace_id',
  environmentId: 'environment_id',
  appId: 'app_id',
};

describe('a delete says what is gone', () => {
  const routes = gentlestFirst().filter(({ rootField }) => deletions.some(({ name }) => name === rootField));
  test('there is a route for each but one', () => {
    const without = deletions.filter(({ name }) => !routes.some(({ rootField }) => rootField === name));
    // test/identity/identity-providers/identity-link.test.ts
    expect(without.map(({ name }) => name)).toEqual(['unlinkIdentity']);
  });

  test.each(routes.map((route) => [route.rootField, route] as const))('%s', async (name, route) => {
    const root = deletions.find((deletion) => deletion.name === name)!;
    const parts = await expendable(app, world, route, 'owner');
    await prepared[routeOf(route)]?.(app, world, parts);
    const { query, variables } = writtenRequest(route, parts);
    const whole = query.replace(/\{\s*\w+\s*\}\s*\}\s*$/, `${selectionOf(root.field.type, 2)} }`);
    const { authorization } = world.as('owner');
    const read = async <Data>(document: string, given: Record<string, unknown>) =>
      (await expectOk<{ data: Data }>(app, graphqlRequest(document, given, authorization))).data;
    const payload = (await read<Record<string, Payload>>(whole, variables))[name]!;

    const named = Object.values(parts.params).at(-1);
    if (!OTHERWISE.includes(name)) expect(Object.values(payload)).toContain(named);
    const { type } = root.field;
    for (const { name: field, extensions } of Object.values((getNamedType(type) as GraphQLObjectType).getFields())) {
      const { beside } = extensions as { beside?: string };
      const object = (beside ? payload[field] : null) as { id: string; logicalModelId?: string } | null;
      // `null` is a place that it was not in, or that is gone too
      if (beside && object) expect([object.id, object.logicalModelId]).toContain(payload[beside]);
    }
    for (const [place, key] of Object.entries(placeKeys))
      if (root.field.args.some((argument) => argument.name === place)) expect(payload[place]).toBe(parts.params[key]);
    const { node } = await read<{ node: unknown }>('query ($id: ID!) { node(id: $id) { id } }', { id: payload.id });
    expect(node).toBeNull();
  });
});
