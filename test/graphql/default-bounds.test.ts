import {
  GraphQLEnumType,
  GraphQLID,
  GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addDefaultBounds } from '../../src/graphql/default-bounds.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { type Person, register } from '../support/person.ts';

const Json = new GraphQLScalarType({ name: 'JSON', extensions: { jsonType: 'any' } });
const Texts = new GraphQLScalarType({ name: 'StringMap', extensions: { jsonType: 'object', jsonValues: 'string' } });
const Flags = new GraphQLScalarType({ name: 'BooleanMap', extensions: { jsonType: 'object', jsonValues: 'boolean' } });
const list = (type: GraphQLInputType) => new GraphQLList(new GraphQLNonNull(type));

/** The constraints of an input field, and of an argument, of this type with these constraints. */
function boundsOf(type: GraphQLInputType, constraints?: Constraints): [unknown, unknown] {
  const input = { type, extensions: constraints ? { constraints } : {} };
  const Input = new GraphQLInputObjectType({ name: 'Input', fields: { field: input } });
  const args = { argument: input, input: { type: Input } };
  const query = new GraphQLObjectType({ name: 'Query', fields: { ask: { type: GraphQLString, args } } });
  addDefaultBounds(new GraphQLSchema({ query }));
  return [
    Input.getFields().field!.extensions.constraints,
    query.getFields().ask!.args.find(({ name }) => name === 'argument')!.extensions.constraints,
  ];
}

describe('an input without a bound', () => {
  const bound = { maxLength: 9 };
  test.each<[string, GraphQLInputType, Constraints | undefined]>([
    ['a text', GraphQLString, undefined],
    ['a required text', new GraphQLNonNull(GraphQLString), { minLength: 1 }],
    ['a text of a free pattern', GraphQLString, { pattern: '[a-z]+' }],
    ['a text of a pattern that is open at its end', GraphQLString, { pattern: 'a{2,}' }],
    ['a list of texts', list(GraphQLString), { maxItems: 9 }],
    ['an endless list', list(GraphQLString), { item: bound }],
    ['an endless list of identifiers', list(GraphQLID), undefined],
    ['an endless map', Texts, { item: bound }],
    ['a map of texts', Texts, { maxItems: 9 }],
    ['an endless map of flags', Flags, undefined],
  ])('%s does not build', (_title, type, constraints) => {
    expect(() => boundsOf(type, constraints)).toThrow(
      "State 'constraints' that bound the size of: Query.ask(argument:), Input.field.",
    );
  });

  test.each<[string, GraphQLInputType, Constraints | undefined, Constraints]>([
    ['an identifier', GraphQLID, undefined, { maxLength: 1_024 }],
    ['an identifier like another', GraphQLID, { sameAs: 'orgId' }, { maxLength: 1_024, sameAs: 'orgId' }],
    ['a JSON value', Json, { notNull: true }, { maxBytes: 262_144, notNull: true }],
    ['a list of them', list(Json), { maxItems: 9 }, { maxItems: 9, item: { maxBytes: 262_144 } }],
  ])('%s has that of its type', (_title, type, constraints, expected) => {
    expect(boundsOf(type, constraints)).toEqual([expected, expected]);
  });
});

test('a word of a set is held to the set, or to the part of it that is stated', () => {
  const Words = new GraphQLEnumType({ name: 'Words', values: { a: {}, b: {} }, extensions: { isWords: true } });
  expect(boundsOf(Words)[0]).toEqual({ oneOf: ['a', 'b'] });
  expect(boundsOf(Words, { notNull: true })[0]).toEqual({ oneOf: ['a', 'b'], notNull: true });
  expect(boundsOf(Words, { oneOf: ['b'] })[0]).toEqual({ oneOf: ['b'] });
  expect(boundsOf(list(Words), { maxItems: 2 })[0]).toEqual({ maxItems: 2, item: { oneOf: ['a', 'b'] } });
  const Others = new GraphQLEnumType({ name: 'Others', values: { A: {} } });
  expect(boundsOf(Others)[0]).toBeUndefined();
});

test.each<[string, GraphQLInputType, Constraints | undefined]>([
  ['characters', GraphQLString, { maxLength: 9 }],
  ['bytes', GraphQLString, { maxBytes: 9 }],
  ['words', GraphQLString, { oneOf: ['a'] }],
  ['a pattern', GraphQLString, { pattern: '[*+]{1,9}\\+' }],
  ['an identifier', GraphQLID, { maxLength: 9 }],
  ['a JSON value', Json, { maxBytes: 9 }],
  ['a map', Texts, { maxItems: 9, item: { maxLength: 9 } }],
  ['a map of flags', Flags, { maxItems: 9 }],
  ['a list', list(GraphQLID), { maxItems: 9, item: { maxLength: 9 } }],
])('a stated bound stays: %s', (_title, type, constraints) => {
  expect(boundsOf(type, constraints)).toEqual([constraints, constraints]);
});

describe('of the service', () => {
  let app: TestApp;
  let owner: Person;
  beforeAll(async () => {
    app = await startTestApp();
    owner = await register(app);
  });
  afterAll(() => app.close());

  const ask = (name: string, query: string, value: string) =>
    callsOf(app).graphql(
      `query ($org: ID!, $value: ${name}!) { ${query} }`,
      { org: owner.orgId, value },
      owner.headers,
    );

  test.each([
    ['ID', 'workspace(orgId: $org, id: $value) { id }', 'id'],
    ['String', 'toolBySlug(orgId: $org, slug: $value) { id }', 'slug'],
    ['String', 'secretByName(orgId: $org, name: $value) { id }', 'name'],
  ])('%s: %s names nothing that no path can name', async (type, query, argument) => {
    const accepted = await ask(type, query, 'x'.repeat(1_024));
    expect(accepted.json().errors).toMatchObject([{ extensions: { code: 'RESOURCE_NOT_FOUND' } }]);
    const refused = await ask(type, query, 'x'.repeat(1_025));
    expect(refused.json().errors).toMatchObject([
      {
        extensions: {
          code: 'VALIDATION_ERROR',
          details: { issues: [{ path: [argument], type: 'string_too_long', ctx: { max_length: 1_024 } }] },
        },
      },
    ]);
  });
});
