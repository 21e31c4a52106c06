import { GraphQLBoolean, GraphQLFloat, GraphQLID, GraphQLInt, GraphQLScalarType, GraphQLString } from 'graphql';
import { describe, expect, it } from 'vitest';
import { isOverloaded } from '../../src/core/json-shape.ts';
import { jsonTypeOf } from '../../src/core/json-type.ts';

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
    expect(isOverloaded(text, { maxDepth: depth })).toBe(false);
    if (depth > 0) expect(isOverloaded(text, { maxDepth: depth - 1 })).toBe(true);
  });

  it('has at most so many lists and objects, however deep', () => {
    const text = '[{}, [], {"a": []}]';
    expect(isOverloaded(text, { maxDepth: 9, maxBrackets: 5 })).toBe(false);
    expect(isOverloaded(text, { maxDepth: 9, maxBrackets: 4 })).toBe(true);
    expect(isOverloaded('[]', { maxDepth: 9, maxBrackets: 0 })).toBe(true);
  });

  it('with a string that does not end has nothing after it', () => {
    expect(isOverloaded('"[[[[', { maxDepth: 1 })).toBe(false);
    expect(isOverloaded('"[[[[\\"', { maxDepth: 1 })).toBe(false);
    expect(isOverloaded('[["', { maxDepth: 1 })).toBe(true);
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
