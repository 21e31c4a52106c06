import { buildSchema, GraphQLEnumType, GraphQLNonNull, GraphQLString, isEnumType } from 'graphql';
import { expect, it } from 'vitest';
import { plainCheckOf } from '../../src/engine/execution/values.ts';

it('a word is plain: it is its own value', () => {
  const type = buildSchema('type Query { a: Int } enum Words { rising falling }').getType('Words');
  if (!isEnumType(type)) throw new Error('no enum');
  for (const words of [type, new GraphQLNonNull(type)]) {
    const isPlain = plainCheckOf(words)!;
    expect(['rising', 'falling', 'other', 'toString', 1, null].map(isPlain)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  }
});

it('a name that stands for another value is not, nor is a list', () => {
  expect(plainCheckOf(new GraphQLEnumType({ name: 'Step', values: { HOUR: { value: 'hour' } } }))).toBeNull();
  expect(plainCheckOf(GraphQLString)!('any')).toBe(true);
});
