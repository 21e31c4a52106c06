import { buildSchema, type GraphQLInputObjectType, GraphQLScalarType, parse, parseValue } from 'graphql';
import { describe, expect, it } from 'vitest';
import { externalDefault, plain, targetsOf } from '../../rest/targets.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';

const schema = buildSchema(`
  directive @mark(text: String) on FIELD
  enum Colour { RED LIGHT_BLUE }
  scalar Day
  type Query {
    find("The text." text: String, count: Int = 7, tags: [String!], filter: Filter, matrix: [[Int!]!]): String
    any(where: [Filter!]): Query
  }
  input Filter { "A name." ownerName: String, size: Int! = 3, inner: Filter, colours: [Colour!] = [LIGHT_BLUE] }
  input Defaults {
    none: String
    text: String = "Ab"
    nothing: Int = null
    colour: Colour = LIGHT_BLUE
    colours: [Colour!] = [RED, LIGHT_BLUE]
    one: [Int!] = 5
    list: [[Int]] = [[1, null], [2]]
    object: Filter = { ownerName: "aB", colours: [RED] }
    empty: Filter = { ownerName: null }
    day: Day = "2026-01-02"
  }
`);
const { find } = schema.getQueryType()!.getFields();
const filter = (schema.getType('Filter') as GraphQLInputObjectType).getFields();
const constrain = (element: object | undefined, constraints: Constraints) =>
  Object.assign(element ?? {}, { extensions: { constraints } });
const argument = (name: string) => find!.args.find((each) => each.name === name);
constrain(argument('text'), { maxLength: 5 });
constrain(argument('tags'), { maxItems: 2, item: { maxLength: 3 } });
constrain(filter.size, { min: 1 });

const targets = (text: string) => Object.fromEntries(targetsOf(schema, parse(text)));
const target = (constraints: Constraints = {}, description = '', defaultValue?: unknown) => ({
  constraints,
  description,
  defaultValue,
});

describe('what a variable feeds', () => {
  it('are arguments, with their bounds, description and default', () => {
    expect(targets('query ($a: String, $b: Int) { find(text: $a, count: $b) }')).toEqual({
      a: [target({ maxLength: 5 }, 'The text.')],
      b: [target({}, '', 7)],
    });
  });

  it('are fields of input objects, however deep', () => {
    expect(targets('query ($a: String, $b: Int) { find(filter: { ownerName: $a, inner: { size: $b } }) }')).toEqual({
      a: [target({}, 'A name.')],
      b: [target({ min: 1 }, '', 3)],
    });
    expect(targets('query ($a: Int) { any(where: [{ size: 1 }, { size: $a }]) { find } }')).toEqual({
      a: [target({ min: 1 }, '', 3)],
    });
  });

  it('are items of lists, with the bounds of an item and without the default of the list', () => {
    expect(targets('query ($a: String!) { find(tags: ["x", $a]) }')).toEqual({ a: [target({ maxLength: 3 })] });
    expect(targets('query ($a: Colour!) { find(filter: { colours: [$a] }) }')).toEqual({ a: [target()] });
    expect(targets('query ($a: Int!) { find(matrix: [[1], [$a]]) }')).toEqual({ a: [target()] });
  });

  it('are all of its places in the document and its fragments', () => {
    expect(
      targets(`
        query ($a: Int) { find(count: $a, filter: { size: $a }) ...More }
        fragment More on Query { any { find(count: $a) } }
      `),
    ).toEqual({ a: [target({}, '', 7), target({ min: 1 }, '', 3), target({}, '', 7)] });
  });

  it('are not arguments of directives, and nothing that does not exist', () => {
    expect(targets('query ($a: String) { find(text: "x") @mark(text: $a) }')).toEqual({});
    expect(targets('query ($a: String) { find(nope: $a, filter: { nope: $a }, text: [$a], tags: { a: $a }) }')).toEqual(
      {},
    );
  });

  it('is nothing for values that are written down', () => {
    expect(targets('{ find(text: "a", count: 1, tags: ["b"], filter: { size: 2 }) }')).toEqual({});
    expect(targets('{ find(filter: null, tags: null, matrix: 1) any(where: { size: 1 }) { find } }')).toEqual({});
  });
});

describe('a default of the schema', () => {
  const fields = (schema.getType('Defaults') as GraphQLInputObjectType).getFields();

  it.each([
    ['none', undefined],
    ['text', 'Ab'],
    ['nothing', null],
    ['colour', 'light_blue'],
    ['colours', ['red', 'light_blue']],
    ['one', [5]],
    ['list', [[1, null], [2]]],
    ['object', { owner_name: 'aB', size: 3, colours: ['red'] }],
    ['empty', { owner_name: null, size: 3, colours: ['light_blue'] }],
    ['day', '2026-01-02'],
  ])('is shown as a client would send it: %s', (name, expected) => {
    expect(externalDefault(fields[name]!)).toEqual(expected);
  });

  it('that a scalar keeps in another form is shown in its own', () => {
    const type = new GraphQLScalarType<Date, string>({
      name: 'Day',
      serialize: (value) => (value as Date).toISOString().slice(0, 10),
    });
    expect(externalDefault({ type, extensions: {}, defaultValue: new Date('2026-03-04') })).toBe('2026-03-04');
  });
});

describe('a literal of a document', () => {
  it.each([
    ['1', 1],
    ['-1.5e2', -150],
    ['"a"', 'a'],
    ['true', true],
    ['false', false],
    ['null', null],
    ['LIGHT_BLUE', 'light_blue'],
    ['[1, [RED], null]', [1, ['red'], null]],
    ['{ ownerName: "x", inner: { size: 2 } }', { ownerName: 'x', inner: { size: 2 } }],
  ])('%s is the JSON value that REST writes', (text, expected) => {
    expect(plain(parseValue(text))).toEqual(expected);
  });
});
