import { buildSchema, type GraphQLField, isInputObjectType, Kind } from 'graphql';
import { afterAll, expect, it, test } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { coversArguments } from '../../rest/coverage.ts';
import { operationOf } from '../../rest/documents.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';
import { schema as product } from '../../src/wiring/schema.ts';
import { operations, routeOf } from '../support/operations.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

/** A schema in which some arguments and fields have constraints. */
function schemaWith(constraints: Readonly<Record<string, Constraints>>) {
  const schema = buildSchema(`
    scalar Text
    enum Order { rising falling }
    input Inner { name: String, tags: [String!] }
    input Outer { name: String, inner: Inner, many: [Inner!], order: Order, size: Int = 3, text: Text }
    type Query {
      list(first: Int = 5, name: String, other: String, ids: [ID!], order: Order, one: Inner): Int
      free(name: String): Int
    }
    type Mutation { make(name: String, input: Outer): Int }
  `);
  Object.assign(schema.getType('Text')!, { extensions: { jsonType: 'string' } });
  const elements = Object.values(schema.getTypeMap()).flatMap((type) => [
    ...(isInputObjectType(type) ? Object.values(type.getFields()).map((field) => [type.name, field] as const) : []),
    ...('getFields' in type && !isInputObjectType(type)
      ? Object.values(type.getFields()).flatMap((field) =>
          'args' in field ? field.args.map((argument) => [field.name, argument] as const) : [],
        )
      : []),
  ]);
  for (const [name, bounds] of Object.entries(constraints)) {
    const found = elements.filter(([owner, element]) => `${owner}.${element.name}` === name);
    expect(found, name).toHaveLength(1);
    found[0]![1].extensions = { constraints: bounds };
  }
  return schema;
}

function covers(schema: typeof product, { document, type, parameters, body }: CompiledOperation): boolean {
  const operation = operationOf(document);
  const node = operation.selectionSet.selections.find((selection) => selection.kind === Kind.FIELD)!;
  const field = schema.getRootType(operation.operation)!.getFields()[node.name.value]!;
  expect(type).toBe(operation.operation);
  return coversArguments(node, field as GraphQLField<unknown, unknown>, operation, { parameters, body });
}

const GET = '@rest(method: GET, path: "/v1/x")';
const POST = '@rest(method: POST, path: "/v1/x")';
function isCovered(text: string, constraints: Readonly<Record<string, Constraints>> = {}): boolean {
  const schema = schemaWith(constraints);
  return covers(schema, compileOperations(schema, folderOf(text))[0]!);
}
const list = (variables: string, args: string) =>
  `query A${variables && `(${variables})`} ${GET} { list${args} @body }`;
const make = `mutation A($input: Outer @body) ${POST} { make(input: $input) @body }`;

test.each(operations.map((operation) => [routeOf(operation), operation] as const))(
  '%s: what it reads is checked once',
  (_route, operation) => expect(covers(product, operation)).toBe(true),
);

it('a variable has all bounds of its argument, and may have narrower ones', () => {
  const bounds = {
    'list.first': { min: 1, max: 100 },
    'list.name': { maxLength: 9, pattern: 'a+', oneOf: ['a', 'aa'] },
  };
  expect(isCovered(list('$n: Int, $s: String', '(first: $n, name: $s)'), bounds)).toBe(true);
  expect(isCovered(list('$n: Int! = 7 @range(min: 5, max: 50)', '(first: $n)'), bounds)).toBe(true);
  expect(isCovered(list('$s: String @oneOf(values: ["a"])', '(name: $s)'), bounds)).toBe(true);
  expect(isCovered(list('$ids: [ID!]', '(ids: $ids)'), { 'list.ids': { maxItems: 3, item: { maxLength: 3 } } })).toBe(
    true,
  );
});

it('a variable of two arguments with different patterns keeps only one of them', () => {
  const both = list('$s: String', '(name: $s, other: $s)');
  expect(isCovered(both, { 'list.name': { pattern: 'a' }, 'list.other': { pattern: 'b' } })).toBe(false);
  expect(isCovered(both, { 'list.name': { pattern: 'a', maxLength: 3 }, 'list.other': { maxLength: 2 } })).toBe(true);
});

it.each([
  ['written in the document', list('', '(first: 7)'), list('', '(first: 1000)')],
  ['a default of the document', list('$n: Int = 7', '(first: $n)'), list('$n: Int = 1000', '(first: $n)')],
])('a constant, %s, obeys the schema', (_what, good, bad) => {
  const bounds = { 'list.first': { max: 100 } };
  expect([isCovered(good, bounds), isCovered(bad, bounds)]).toEqual([true, false]);
});

it('a default of the schema obeys the schema', () => {
  for (const text of [list('', ''), list('$n: Int', '(first: $n)')])
    expect([isCovered(text, { 'list.first': { max: 5 } }), isCovered(text, { 'list.first': { max: 4 } })]).toEqual([
      true,
      false,
    ]);
});

it('a null that is written in the document is one that may be', () => {
  const text = list('', '(name: null)');
  expect([isCovered(text), isCovered(text, { 'list.name': { notNull: true } })]).toEqual([true, false]);
});

it('an object that is written in the document is each of its fields, also those that it leaves out', () => {
  const text = list('$s: String', '(one: { name: $s })');
  expect(isCovered(text, { 'Inner.name': { maxLength: 3 } })).toBe(true);
  const create = (input: string) => `mutation A($s: String) ${POST} { make(input: ${input}) @body }`;
  expect(isCovered(create('{ name: $s, inner: { name: "aa" } }'), { 'Inner.name': { maxLength: 3 } })).toBe(true);
  expect(isCovered(create('{ name: $s, inner: { name: "aa" } }'), { 'Inner.name': { maxLength: 1 } })).toBe(false);
  expect(isCovered(create('{ name: $s }'), { 'Outer.size': { max: 2 } })).toBe(false);
});

const inner = `query A($one: Inner @body) ${POST} { list(one: $one) @body }`;

it('a body is all fields of its type, and of those in it', () => {
  const bounds = {
    'Inner.name': { maxLength: 3 },
    'Inner.tags': { maxItems: 2, item: { maxLength: 3 }, notNull: true },
  };
  expect(isCovered(inner, bounds)).toBe(true);
  // a list has no bound in bytes; `Text` is not read as its scalar does
  expect(isCovered(inner, { 'Inner.tags': { maxBytes: 10 } })).toBe(false);
  expect(isCovered(make)).toBe(false);
});

it('an order, and an object as a whole, have no bounds that the façade would read', () => {
  expect(isCovered(list('$o: Order', '(order: $o)'))).toBe(true);
  expect(isCovered(list('$o: Order', '(order: $o)'), { 'list.order': { oneOf: ['rising'] } })).toBe(false);
  for (const bounds of [{ notNull: true }, { maxBytes: 3 }])
    expect(isCovered(inner, { 'list.one': bounds })).toBe(false);
});

it('words are held to their bounds, as they are read', () => {
  const isRead = (bounds: Constraints) => {
    const schema = schemaWith({ 'list.order': bounds });
    schema.getType('Order')!.extensions = { isWords: true };
    return covers(schema, compileOperations(schema, folderOf(list('$o: Order', '(order: $o)')))[0]!);
  };
  expect(isRead({ oneOf: ['rising'] })).toBe(true);
  expect(isRead({ oneOf: ['rising'], notNull: true })).toBe(true);
  expect(isRead({ maxBytes: 3 })).toBe(false);
});
