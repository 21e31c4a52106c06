import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { conditionKey, conditionVariables } from '../../src/engine/execution/conditions.ts';

describe('the variables that decide what a document selects', () => {
  it.each([
    ['query ($a: Boolean!) { x @skip(if: $a) }', ['a']],
    ['query ($a: Boolean!) { x @include(if: $a) y @skip(if: $a) }', ['a']],
    ['query ($a: Boolean!, $b: Boolean!) { x { y @skip(if: $b) } z @include(if: $a) }', ['b', 'a']],
    ['query ($a: Boolean!) { ... @skip(if: $a) { x } }', ['a']],
    ['query ($a: Boolean!) { ...P @include(if: $a) } fragment P on Query { x }', ['a']],
    ['query ($a: Boolean!) { ...P } fragment P on Query { x @include(if: $a) }', ['a']],
    ['query ($a: Boolean!) { x(if: $a) }', []],
    ['query ($a: Boolean!) { x @other(if: $a) }', []],
    ['{ x @skip(if: true) y }', []],
    ['{ x @skip }', []],
    ['type Query { x: Int }', []],
  ])('%s: %j', (text, names) => {
    expect(conditionVariables(parse(text))).toEqual(names);
  });
});

describe('their values', () => {
  it('are one text, other than for any other values', () => {
    const values = [true, false].flatMap((a) => [true, false].map((b) => ({ a, b })));
    const keys = values.map((variables) => conditionKey(['a', 'b'], variables));
    expect(new Set(keys).size).toBe(4);
    expect(keys).toEqual(values.map((variables) => conditionKey(['a', 'b'], { ...variables, c: 1 })));
    expect(conditionKey([], { a: true })).toBe(conditionKey([], {}));
    expect(conditionKey([], {})).not.toBeNull();
  });

  it.each([{}, { a: null }, { a: 'true' }, { a: 1 }])(
    'are none for %j, which is reported as a mistake',
    (variables) => {
      expect(conditionKey(['a'], variables)).toBeNull();
      expect(conditionKey(['b', 'a'], { b: true, ...variables })).toBeNull();
    },
  );
});
