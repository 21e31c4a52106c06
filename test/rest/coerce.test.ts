import {
  buildSchema,
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLFloat,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLScalarType,
  GraphQLString,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { readerOf, withinType } from '../../rest/coerce.ts';
import { at, echoOf, Issues } from '../../rest/issues.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';

const schema = buildSchema(`
  enum Colour { RED DARK_BLUE }
  input Part { partName: String! count: Int! = 3 weights: [Float!] inner: Inner }
  input Inner { name: String! weights: [Float!] }
  input Open { id: ID! rest: Any }
  scalar Any
`);
const inputOf = (name: string) => schema.getType(name) as GraphQLInputType;
const Int53 = new GraphQLScalarType({ name: 'Int53', extensions: { jsonType: 'int53' } });
Object.assign(schema.getType('Any')!, { extensions: { jsonType: 'any' } });
Object.assign(schema.getType('Open')!, { extensions: { unknownKeys: 'rest' } });

const list = (type: GraphQLInputType) => new GraphQLList(type);
const nonNull = (type: GraphQLList<GraphQLInputType> | GraphQLScalarType) => new GraphQLNonNull(type);

function read(type: GraphQLInputType, value: unknown, constraints: Constraints = {}) {
  const issues = new Issues(echoOf());
  const result = readerOf(type, constraints)(value, at(null, 'body'), issues);
  return issues.items.length > 0 ? issues.items : result;
}
const refused = (type: string, msg: string, input: unknown, more: { at?: (string | number)[]; ctx?: object } = {}) => [
  { type, loc: ['body', ...(more.at ?? [])], msg, input, ...(more.ctx ? { ctx: more.ctx } : {}) },
];

describe('null', () => {
  it('is read where the type allows it', () => {
    for (const type of [GraphQLInt, GraphQLString, list(GraphQLID), inputOf('Colour'), inputOf('Part')])
      expect(read(type, null)).toBeNull();
    expect(read(list(GraphQLInt), [1, null])).toEqual([1, null]);
  });

  it('is a wrong type where it does not, or where the field cannot be cleared', () => {
    const wrong = refused('int_type', 'Input should be a valid integer', null);
    expect(read(nonNull(GraphQLInt), null)).toEqual(wrong);
    expect(read(GraphQLInt, null, { notNull: true })).toEqual(wrong);
    expect(read(list(nonNull(GraphQLInt)), [null])).toEqual([{ ...wrong[0], loc: ['body', 0] }]);
    expect(read(list(GraphQLInt), [null], { item: { notNull: true } })).toEqual([{ ...wrong[0], loc: ['body', 0] }]);
  });
});

describe('numbers', () => {
  const above = (input: unknown, le: number) =>
    refused('less_than_equal', `Input should be less than or equal to ${le}`, input, { ctx: { le } });
  const below = (input: unknown, ge: number) =>
    refused('greater_than_equal', `Input should be greater than or equal to ${ge}`, input, { ctx: { ge } });

  it('have the range of GraphQL', () => {
    expect(read(GraphQLInt, 2147483647)).toBe(2147483647);
    expect(read(GraphQLInt, -2147483648)).toBe(-2147483648);
    expect(read(GraphQLInt, 2147483648)).toEqual(above(2147483648, 2147483647));
    expect(read(GraphQLInt, '-2147483649')).toEqual(below('-2147483649', -2147483648));
    expect(read(GraphQLFloat, 1e300)).toBe(1e300);
  });

  it('that count much have the range that JSON keeps exact', () => {
    expect(read(Int53, Number.MAX_SAFE_INTEGER)).toBe(9007199254740991);
    expect(read(Int53, Number.MIN_SAFE_INTEGER)).toBe(-9007199254740991);
    expect(read(Int53, '9007199254740993')).toEqual(above('9007199254740993', 9007199254740991));
    expect(read(Int53, -9007199254740992)).toEqual(below(-9007199254740992, -9007199254740991));
  });

  it('have narrower bounds where the schema says so', () => {
    expect(read(GraphQLInt, 4, { min: 5 })).toEqual(below(4, 5));
    expect(read(Int53, 6, { max: 5 })).toEqual(above(6, 5));
    expect(withinType(GraphQLInt, { min: 1 })).toEqual({ min: 1, max: 2147483647 });
    expect(withinType(Int53, { max: 1 })).toEqual({ min: Number.MIN_SAFE_INTEGER, max: 1 });
    for (const type of [GraphQLFloat, GraphQLString, inputOf('Colour'), list(GraphQLInt)])
      expect(withinType(type, { max: 1 })).toEqual({ max: 1 });
  });

  it('are of a wrong type before they are out of bounds', () => {
    expect(read(GraphQLInt, 0.5, { min: 5 })).toEqual(
      refused('int_from_float', 'Input should be a valid integer, got a number with a fractional part', 0.5),
    );
  });
});

describe('bounds', () => {
  it('show the value as it was sent', () => {
    expect(read(GraphQLString, 'abc', { maxLength: 2 })).toEqual(
      refused('string_too_long', 'String should have at most 2 characters', 'abc', { ctx: { max_length: 2 } }),
    );
    expect(read(GraphQLFloat, '1.50', { max: 1 })).toEqual(
      refused('less_than_equal', 'Input should be less than or equal to 1', '1.50', { ctx: { le: 1 } }),
    );
  });

  it('of a free value show the part that breaks them, or why it is not shown', () => {
    const nul = 'Input should be a valid string, NUL characters and lone surrogates are not allowed';
    expect(read(inputOf('Any'), { a: ['\0'] })).toEqual(refused('string_unicode', nul, '\0', { at: ['a', 0] }));
    expect(read(inputOf('Any'), { a: 'long' }, { maxBytes: 5 })).toEqual(
      refused('too_long', 'JSON should have at most 5 bytes, not 12', '[too large]', {
        ctx: { max_length: 5, actual_length: 12 },
      }),
    );
    expect(read(inputOf('Any'), '\0')).toEqual(refused('string_unicode', nul, '\0'));
  });

  it('are checked of what can be read only', () => {
    expect(read(GraphQLString, 5, { minLength: 9 })).toEqual(
      refused('string_type', 'Input should be a valid string', 5),
    );
    const issues = new Issues(echoOf());
    const where = at(null, 'body');
    expect(readerOf(GraphQLBoolean, {})('x', where, issues)).toBeUndefined();
    // a failure of before is no failure of this value
    expect(readerOf(GraphQLInt, { max: 1 })(2, where, issues)).toBe(2);
    expect(readerOf(GraphQLInt, { max: 1 })(1, where, issues)).toBe(1);
    expect(issues.items.map(({ type }) => type)).toEqual(['bool_parsing', 'less_than_equal']);
  });
});

describe('enumerations', () => {
  it('have the names of REST, and no others', () => {
    expect(read(inputOf('Colour'), 'red')).toBe('RED');
    expect(read(inputOf('Colour'), 'dark_blue')).toBe('DARK_BLUE');
    for (const wrong of ['RED', 'blue', '', 1, true])
      expect(read(inputOf('Colour'), wrong)).toEqual(
        refused('literal_error', "Input should be 'red' or 'dark_blue'", wrong, {
          ctx: { expected: "'red' or 'dark_blue'" },
        }),
      );
  });
});

describe('words', () => {
  const Words = new GraphQLEnumType({
    name: 'Words',
    values: { GET: {}, not_yet: {}, PUT: {} },
    extensions: { isWords: true },
  });
  const text = (wrong: unknown) => refused('string_type', 'Input should be a valid string', wrong);
  const literal = (expected: string, wrong: string) =>
    refused('literal_error', `Input should be ${expected}`, wrong, { ctx: { expected } });

  it('are read as they are spelled in the schema, and refused as texts of a set are', () => {
    for (const word of ['GET', 'not_yet']) expect(read(Words, word)).toBe(word);
    for (const wrong of ['get', 'NOT_YET', '']) {
      expect(read(Words, wrong)).toEqual(literal("'GET', 'not_yet' or 'PUT'", wrong));
      expect(read(GraphQLString, wrong, { oneOf: ['GET', 'not_yet', 'PUT'] })).toEqual(read(Words, wrong));
    }
    for (const wrong of [1, true, {}, ['GET']]) expect(read(Words, wrong)).toEqual(text(wrong));
    expect(read(Words, null)).toBeNull();
    expect(read(Words, null, { notNull: true })).toEqual(text(null));
    expect(read(new GraphQLNonNull(Words), null)).toEqual(text(null));
  });

  it('may be fewer of the set', () => {
    expect(read(Words, 'PUT', { oneOf: ['GET', 'PUT'] })).toBe('PUT');
    expect(read(Words, 'not_yet', { oneOf: ['GET', 'PUT'] })).toEqual(literal("'GET' or 'PUT'", 'not_yet'));
  });
});

describe('lists', () => {
  it('are lists, of which every item is read', () => {
    expect(read(list(GraphQLInt), ['1', 2])).toEqual([1, 2]);
    expect(read(list(GraphQLInt), [])).toEqual([]);
    for (const wrong of ['1', 1, { 0: 1 }])
      expect(read(list(GraphQLInt), wrong)).toEqual(refused('list_type', 'Input should be a valid list', wrong));
    expect(read(list(list(GraphQLInt)), [[1], [2, 'x'], 3])).toEqual([
      ...refused('int_parsing', 'Input should be a valid integer, unable to parse string as an integer', 'x', {
        at: [1, 1],
      }),
      ...refused('list_type', 'Input should be a valid list', 3, { at: [2] }),
    ]);
  });

  it('are neither too short nor too long, or their items are not looked at', () => {
    const sized = (word: string, bound: number, key: string, input: unknown[]) =>
      refused(
        word === 'least' ? 'too_short' : 'too_long',
        `List should have at ${word} ${bound} items after validation, not ${input.length}`,
        input,
        { ctx: { field_type: 'List', [key]: bound, actual_length: input.length } },
      );
    expect(read(list(GraphQLInt), ['x'], { minItems: 2 })).toEqual(sized('least', 2, 'min_length', ['x']));
    expect(read(list(GraphQLInt), [1, 2, 3], { maxItems: 2 })).toEqual(sized('most', 2, 'max_length', [1, 2, 3]));
    expect(read(list(GraphQLInt), [1, 2], { minItems: 2, maxItems: 2 })).toEqual([1, 2]);
  });

  it('have the bounds of their items once', () => {
    const long = (item: number) =>
      refused('string_too_long', 'String should have at most 1 character', 'ab', {
        at: [item],
        ctx: { max_length: 1 },
      });
    const item = { maxLength: 1 };
    expect(read(list(GraphQLString), ['a', 'ab', 'ab'], { item })).toEqual([...long(1), ...long(2)]);
    expect(read(list(GraphQLString), ['ab'], { item, minItems: 1, maxItems: 5 })).toEqual(long(0));
    const nul = 'Input should be a valid string, NUL characters and lone surrogates are not allowed';
    expect(read(list(GraphQLString), ['a', '\0'], { maxItems: 5 })).toEqual(
      refused('string_unicode', nul, '\0', { at: [1] }),
    );
  });
});

describe('objects', () => {
  it('have the names of the schema, and nothing that was not sent', () => {
    expect(read(inputOf('Part'), { part_name: 'a' })).toEqual({ partName: 'a' });
    expect(read(inputOf('Part'), { part_name: 'a', count: '4', weights: null, partName: 'b', unknown: 1 })).toEqual({
      partName: 'a',
      count: 4,
      weights: null,
    });
    const inherited = Object.create({ part_name: 'of the prototype' }) as object;
    expect(read(inputOf('Part'), inherited)).toEqual(refused('missing', 'Field required', {}, { at: ['part_name'] }));
  });

  it('are complete, at every depth', () => {
    const given = { part_name: 'a', inner: { weights: [1] } };
    expect(read(inputOf('Part'), given)).toEqual(
      refused('missing', 'Field required', { weights: [1] }, { at: ['inner', 'name'] }),
    );
  });

  it('are no other values', () => {
    const msg = 'Input should be a valid dictionary or object to extract fields from';
    for (const wrong of [[], 'a', 1, true])
      expect(read(inputOf('Part'), wrong)).toEqual(refused('model_attributes_type', msg, wrong));
    expect(read(new GraphQLNonNull(inputOf('Part') as GraphQLScalarType), null)).toEqual(
      refused('model_attributes_type', msg, null),
    );
  });

  it('may have a field for all keys that are not their own', () => {
    expect(read(inputOf('Open'), { id: 'a', one: 1, twoWords: { b: [2] } })).toEqual({
      id: 'a',
      rest: { one: 1, twoWords: { b: [2] } },
    });
    expect(read(inputOf('Open'), { id: 'a' })).toEqual({ id: 'a' });
    expect(read(inputOf('Open'), { id: 'a', rest: 1 })).toEqual({ id: 'a', rest: { rest: 1 } });
  });
});
