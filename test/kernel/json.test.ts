import { GraphQLBoolean, GraphQLFloat, GraphQLID, GraphQLInt, GraphQLScalarType, GraphQLString } from 'graphql';
import { describe, expect, it } from 'vitest';
import { JsonBudget, overloadOf } from '../../src/kernel/json-shape.ts';
import { jsonTypeOf } from '../../src/kernel/json-type.ts';

describe('a JSON text', () => {
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

  it.each([
    ['', 0],
    ['1', 0],
    ['[]', 1],
    ['{"a": [1]}', 2],
    ['[[], [], []]', 2],
    ['{"a": {"b": {}}, "c": []}', 3],
    [deep(40), 40],
    ['[true, null, [[false]]]', 3],
    ['"[[["', 0],
    ['["[[[\\"[[["]', 1],
    ['["\\\\", [[]]]', 3],
    ['{"a\\\\\\"[": "[["}', 1],
  ])('%s is %i deep', (text, depth) => {
    expect(overloadOf(text, { maxDepth: depth, maxValues: 99 })).toBeNull();
    if (depth > 0) expect(overloadOf(text, { maxDepth: depth - 1, maxValues: 99 })).toBe('depth');
  });

  it.each([
    ['1', 0],
    ['"a,b,[{"', 0],
    ['"a\\",b"', 0],
    ['[]', 1],
    ['[1]', 1],
    ['[1, 2, 3]', 3],
    ['{"a": 1, "b:,c": "d:,e"}', 6],
    ['[{}, [], {"a": []}]', 9],
    ['{"a": {"b": 1}}', 6],
  ])('%s counts as %i values, however deep', (text, values) => {
    expect(overloadOf(text, { maxDepth: 9, maxValues: values })).toBeNull();
    if (values > 0) expect(overloadOf(text, { maxDepth: 9, maxValues: values - 1 })).toBe('values');
  });

  it('with a string that does not end has nothing after it', () => {
    const maxValues = 9;
    expect(overloadOf('"[[[[', { maxDepth: 1, maxValues })).toBeNull();
    expect(overloadOf('"[[[[\\"', { maxDepth: 1, maxValues })).toBeNull();
    expect(overloadOf('[["', { maxDepth: 1, maxValues })).toBe('depth');
  });

  it('shares its budget with the others of its request', () => {
    const budget = new JsonBudget({ maxDepth: 9, maxValues: 5 });
    expect(budget.take('[1, 2]')).toBeNull();
    expect(budget.takeItems('a,b,c')).toBeNull();
    expect(budget.take('{}')).toBeNull();
    expect(budget.takeItems('no comma')).toBeNull();
    expect(budget.takeItems('a,b')).toBe('values');
    expect(budget.take('1')).toBe('values');
  });
});

describe('the JSON type of a scalar', () => {
  it.each([
    [GraphQLID, 'string'],
    [GraphQLString, 'string'],
    [GraphQLInt, 'integer'],
    [GraphQLFloat, 'number'],
    [GraphQLBoolean, 'boolean'],
    [new GraphQLScalarType({ name: 'Time', extensions: { jsonType: 'date-time' } }), 'date-time'],
  ])('%s: %s', (scalar, type) => expect(jsonTypeOf(scalar)).toBe(type));

  it('must be declared', () => {
    expect(() => jsonTypeOf(new GraphQLScalarType({ name: 'Even' }))).toThrow('Even does not say what it is in JSON');
  });
});
