import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  parse,
  print,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { schema } from '../../src/graphql/schema.ts';
import { operationsDir } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { snakeCase } from '../support/names.ts';
import { operations, routeOf } from '../support/operations.ts';
import { graphqlRequest, injectable, type Parts, partsOf, toGraphQL } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

/*
 * The documents once more, read here without the façade's own code: parsed, freed of its directives, asked over /graphql, and the
 * answer renamed and flattened. What comes out must be what REST answers.
 */
const sources = readdirSync(operationsDir, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.graphql'))
  .map((file) => parse(readFileSync(path.join(operationsDir, file), 'utf8')));
const definitions = sources.flatMap((document) => document.definitions);
const fragments = new Map(
  definitions
    .filter((node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION)
    .map((node) => [node.name.value, node]),
);
const written = new Map(
  definitions
    .filter((node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION)
    .map((node) => [node.name!.value, node]),
);
const real = new Set(
  schema
    .getDirectives()
    .map(({ name }) => name)
    .filter((name) => name !== 'oneOf'),
);

const isMarked = (node: FieldNode, directive: string) =>
  node.directives?.some(({ name }) => name.value === directive) ?? false;

/** The operation with its fragments, without the directives of the façade. */
function plain(operation: OperationDefinitionNode): string {
  const used = new Map<string, FragmentDefinitionNode>();
  const follow = (node: OperationDefinitionNode | FragmentDefinitionNode) => {
    visit(node, {
      FragmentSpread: ({ name }) => {
        const fragment = fragments.get(name.value)!;
        if (used.has(name.value)) return;
        used.set(name.value, fragment);
        follow(fragment);
      },
    });
  };
  follow(operation);
  const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...used.values()] };
  return print(visit(document, { Directive: ({ name }) => (real.has(name.value) ? undefined : null) }));
}

type Json = Record<string, unknown>;

/** An answer of GraphQL in the form of REST. */
function translate(value: unknown, type: GraphQLOutputType, selection: SelectionSetNode | undefined): unknown {
  const named = getNamedType(type);
  if (Array.isArray(value)) return value.map((item) => translate(item, type, selection));
  if (!isObjectType(named) || !selection || typeof value !== 'object' || value === null) return value;
  const result: Json = {};
  for (const node of fieldsOf(selection)) {
    const key = node.alias?.value ?? node.name.value;
    const field = named.getFields()[node.name.value]!;
    const inner = translate((value as Json)[key], field.type, node.selectionSet);
    if (isMarked(node, 'flatten')) Object.assign(result, inner);
    else result[node.alias ? key : snakeCase(key)] = inner;
  }
  return result;
}

function fieldsOf(selection: SelectionSetNode): FieldNode[] {
  return selection.selections.flatMap((node) => {
    // a version is a header
    if (node.kind === Kind.FIELD) return isMarked(node, 'etag') && !node.selectionSet ? [] : node;
    const inner = node.kind === Kind.FRAGMENT_SPREAD ? fragments.get(node.name.value)!.selectionSet : node.selectionSet;
    return fieldsOf(inner);
  });
}

/** Goes down to the field that is the body. */
function bodyIn(data: Json, selection: SelectionSetNode, type: GraphQLObjectType): unknown {
  for (const node of fieldsOf(selection)) {
    const inner = data[node.alias?.value ?? node.name.value];
    const field = type.getFields()[node.name.value]!;
    if (isMarked(node, 'body')) return translate(inner, field.type, node.selectionSet);
    if (node.selectionSet)
      return bodyIn(inner as Json, node.selectionSet, getNamedType(field.type) as GraphQLObjectType);
  }
  throw new Error('no field has @body');
}

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000' } });
  world = await createWorld(app);
  for (const list of listRoutes) await addRows(app, world, list, 3);
});
afterAll(() => app.close());

function variablesOf(operation: CompiledOperation, { params, query, body }: Parts): Json {
  const numbers = new Set(['Int', 'Float']);
  const given: Json = { ...params };
  for (const { name, type, wireName } of operation.parameters) {
    const text = query[wireName];
    if (text !== undefined)
      given[name] = numbers.has(getNamedType(type).name)
        ? Number(text)
        : getNamedType(type).name === 'Boolean'
          ? text === 'true'
          : text;
  }
  return operation.body ? { ...given, [operation.body.name]: toGraphQL(body, operation.body.type) } : given;
}

const ask = async (operation: CompiledOperation, parts: Parts) => {
  const answer = await app.server.inject(
    graphqlRequest(plain(written.get(operation.name)!), variablesOf(operation, parts), parts.headers.authorization),
  );
  return answer.json<{
    data?: Json | null;
    errors?: { extensions: { code: string; details: { issues?: { path: unknown[]; type: string; msg: string }[] } } }[];
  }>();
};

describe.each(
  operations.filter(({ type }) => type === 'query').map((operation) => [routeOf(operation), operation] as const),
)('%s', (_title, operation) => {
  test.each(['owner', 'admin', 'viewer'] as const)('REST and GraphQL give %s the same', async (role) => {
    for (const requiredOnly of [true, false]) {
      const parts = partsOf(operation, world, { token: world.accounts[role].token, requiredOnly });
      const [rest, graphql] = [await app.server.inject(injectable(operation, parts)), await ask(operation, parts)];
      if (rest.statusCode >= 400) {
        expect(graphql.errors?.[0]?.extensions.code).toBe(
          rest.statusCode === 422 ? 'VALIDATION_ERROR' : rest.json<{ error: string }>().error,
        );
        continue;
      }
      expect(graphql.errors).toBeUndefined();
      const node = written.get(operation.name)!;
      expect(rest.json()).toEqual(bodyIn(graphql.data!, node.selectionSet, schema.getQueryType()!));
      expect(rest.body).not.toMatch(/"[a-z]+[A-Z]\w*":/);
    }
  });
});

describe.each(
  operations.filter(({ type }) => type === 'mutation').map((operation) => [routeOf(operation), operation] as const),
)('%s', (_title, operation) => {
  test('REST and GraphQL refuse a viewer, and ids that do not exist, with the same code', async () => {
    for (const [token, changed] of [
      [world.accounts.viewer.token, false],
      [world.accounts.owner.token, true],
    ] as const) {
      const parts = partsOf(operation, world, { token });
      const names = Object.keys(parts.params).filter((name) => name !== 'org_id');
      if (changed && names.length === 0) continue;
      if (changed) parts.params[names.at(-1)!] = 'none_00000000000000000000000000';
      // what a viewer may do, such as leaving, would change the world
      if (!changed && (operation.isPublic || names.length === 0)) continue;
      const rest = await app.server.inject(injectable(operation, parts));
      if (rest.statusCode < 400) continue;
      const graphql = await ask(operation, parts);
      expect(graphql.errors?.[0]?.extensions.code).toBe(
        rest.statusCode === 422 ? 'VALIDATION_ERROR' : rest.json<{ error: string }>().error,
      );
      if (rest.statusCode !== 422)
        expect(graphql.errors?.[0]?.extensions.details).toEqual(rest.json<{ details: unknown }>().details);
    }
  });

  if (!operation.body) return;
  test('bounds are said in the same words: type, message and place of each failure', async () => {
    const { type, name: variable } = operation.body!;
    const fields = Object.values(type.getFields());
    const bad: Json = {};
    for (const { name, extensions } of fields) {
      const { maxLength, pattern, oneOf, format } = (extensions.constraints ?? {}) as {
        maxLength?: number;
        pattern?: string;
        oneOf?: string[];
        format?: string;
      };
      if (maxLength !== undefined) bad[snakeCase(name)] = 'x'.repeat(maxLength + 1);
      else if (oneOf || pattern !== undefined || format) bad[snakeCase(name)] = '!';
    }
    if (Object.keys(bad).length === 0) return;
    const parts = partsOf(operation, world, { token: world.accounts.owner.token });
    parts.body = { ...(parts.body as Json), ...bad };
    const rest = await app.server.inject(injectable(operation, parts));
    const graphql = await ask(operation, parts);
    expect(rest.statusCode, rest.body).toBe(422);
    const said = graphql.errors?.[0]?.extensions.details.issues?.map(({ path: at, type: code, msg }) => ({
      loc: ['body', ...at.slice(1).map((part) => snakeCase(String(part)))],
      type: code,
      msg,
    }));
    const detail = rest
      .json<{ detail: { loc: unknown; type: string; msg: string }[] }>()
      .detail.map(({ loc, type: code, msg }) => ({ loc, type: code, msg }));
    expect(detail).toEqual(said);
    expect(variable).toBe('body');
  });
});

test('1,000 random reads by five roles: REST and GraphQL answer equal, byte for byte once translated', async () => {
  const reads = operations.filter(({ type, isPublic }) => type === 'query' && !isPublic);
  let state = 20_250_101;
  const random = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
  const ids = Object.values(world.ids);
  for (let i = 0; i < 1_000; i++) {
    const operation = reads[random(reads.length)]!;
    const role = (['owner', 'admin', 'editor', 'member', 'viewer'] as const)[random(5)]!;
    const parts = partsOf(operation, world, { token: world.accounts[role].token });
    const names = Object.keys(parts.params);
    if (names.length > 0 && random(3) === 0) parts.params[names[random(names.length)]!] = ids[random(ids.length)]!;
    if (operation.parameters.some(({ name }) => name === 'limit')) parts.query.limit = String(1 + random(5));
    const [rest, graphql] = await Promise.all([app.server.inject(injectable(operation, parts)), ask(operation, parts)]);
    const node = written.get(operation.name)!;
    if (rest.statusCode >= 400)
      expect(graphql.errors?.[0]?.extensions.code, routeOf(operation)).toBe(rest.json<{ error: string }>().error);
    else
      expect(rest.json(), routeOf(operation)).toEqual(bodyIn(graphql.data!, node.selectionSet, schema.getQueryType()!));
  }
}, 60_000);
