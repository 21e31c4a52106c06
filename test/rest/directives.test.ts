import { buildSchema, Kind, type OperationDefinitionNode, parse, printSchema } from 'graphql';
import { expect, it } from 'vitest';
import {
  directiveNode,
  facadeDirectives,
  facadeSchema,
  has,
  headerOf,
  isFacadeDirective,
  oneOfOf,
  rangeOf,
  restOf,
  uploadOf,
} from '../../rest/directives.ts';

const schema = buildSchema('directive @own on FIELD  type Query { health: String }');
const operation = (text: string) => parse(text).definitions[0] as OperationDefinitionNode;
const variable = (directives: string) => operation(`query ($a: Int ${directives}) { a }`).variableDefinitions![0]!;

it('documents are written with these directives', () => {
  const directives = facadeDirectives.map(({ name, args: of, locations, isRepeatable }) => {
    const written = of.map((each) => `${each.name}: ${each.type.toString()}`).join(', ');
    return `@${name}(${written}) ${locations.join(' ')}${isRepeatable ? ' repeatable' : ''}`;
  });
  expect(directives).toEqual([
    '@rest(method: RestMethod!, path: String!, errors: RestErrorSet, status: Int, maxValues: Int, ' +
      'replayed: Boolean!) QUERY MUTATION SUBSCRIPTION',
    '@body() VARIABLE_DEFINITION FIELD',
    '@upload(file: String!) VARIABLE_DEFINITION',
    '@form() VARIABLE_DEFINITION',
    '@range(min: Float, max: Float) VARIABLE_DEFINITION',
    '@oneOf(values: [String!]!) VARIABLE_DEFINITION',
    '@header(name: String!) VARIABLE_DEFINITION',
    '@commaList() VARIABLE_DEFINITION',
    '@flatten() FIELD',
    '@empty() FIELD',
    '@nothing() FIELD',
    '@etag() FIELD',
    '@redirect() FIELD',
    '@eventId() FIELD',
    '@lastEventId() VARIABLE_DEFINITION',
    '@whole() FRAGMENT_DEFINITION',
  ]);
});

it('has the methods and the sets of errors that routes may have', () => {
  const printed = printSchema(facadeSchema(schema));
  expect(printed).toContain('enum RestMethod {\n  GET\n  POST\n  PUT\n  PATCH\n  DELETE\n}');
  expect(printed).toContain('enum RestErrorSet {\n  A\n  A0\n  B\n  C\n  S\n  S0\n}');
});

it('keeps the types and directives of the product, but for the @oneOf of graphql-js', () => {
  const names = facadeSchema(schema)
    .getDirectives()
    .map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['own', 'include', 'skip', 'deprecated', 'rest', 'body']));
  expect(names.filter((name) => name === 'oneOf')).toHaveLength(1);
  expect(facadeSchema(schema).getDirective('oneOf')?.locations).toEqual(['VARIABLE_DEFINITION']);
  expect(facadeSchema(schema).getQueryType()?.getFields().health?.type.toString()).toBe('String');
});

it('only those of the façade are its own', () => {
  const [field] = operation('{ a @body @include(if: true) @own @etag }').selectionSet.selections;
  expect(field?.directives?.map((node) => [node.name.value, isFacadeDirective(node)])).toEqual([
    ['body', true],
    ['include', false],
    ['own', false],
    ['etag', true],
  ]);
});

it('a route is read with its defaults', () => {
  expect(restOf(operation('query A @rest(method: PUT, path: "/v1/x") { a }'))).toEqual({
    method: 'PUT',
    path: '/v1/x',
    errors: 'B',
    replayed: true,
  });
  expect(restOf(operation('query A @rest(method: GET, path: "/v1/y", errors: S0, status: 202) { a }'))).toEqual({
    method: 'GET',
    path: '/v1/y',
    errors: 'S0',
    status: 202,
    replayed: true,
  });
  expect(restOf(operation('query A { a }'))).toBeUndefined();
});

it('the directives of a variable are read with their arguments', () => {
  expect(rangeOf(variable('@range(min: 1, max: 2.5)'))).toEqual({ min: 1, max: 2.5 });
  expect(rangeOf(variable('@range(min: null)'))).toEqual({ min: null });
  expect(uploadOf(variable('@upload(file: "picture")'))).toEqual({ file: 'picture' });
  expect(oneOfOf(variable('@oneOf(values: ["a", "b"])'))).toEqual({ values: ['a', 'b'] });
  expect(headerOf(variable('@header(name: "X-Trace")'))).toEqual({ name: 'X-Trace' });
  const none = variable('@commaList');
  expect([rangeOf(none), uploadOf(none), oneOfOf(none), headerOf(none)]).toEqual(Array(4).fill(undefined));
});

it('the last event of a client is in the header that browsers send', () => {
  expect(headerOf(variable('@lastEventId'))).toEqual({ name: 'last-event-id' });
});

it('a directive is there or not, whatever stands beside it', () => {
  const node = variable('@commaList @form');
  expect([has(node, 'commaList'), has(node, 'form'), has(node, 'body')]).toEqual([true, true, false]);
  expect(directiveNode(node, 'form')?.name.value).toBe('form');
  expect(directiveNode(node, 'body')).toBeUndefined();
  const bare = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: 'made' } } as const;
  expect([has(bare, 'body'), directiveNode(bare, 'body')]).toEqual([false, undefined]);
});
