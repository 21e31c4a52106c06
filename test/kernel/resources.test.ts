import { getNamedType, isNonNullType, isObjectType } from 'graphql';
import { expect, test } from 'vitest';
import { kindOfId, newId } from '../../src/kernel/ids.ts';
import { declarationOf, isResourceWord, resourceWords } from '../../src/kernel/resources.ts';
import { snakeCase } from '../../src/kernel/snake-case.ts';
import { operations, routeOf } from '../support/operations.ts';

test('each kind of identifier has a prefix of its own', () => {
  for (const word of resourceWords) {
    const { prefix } = declarationOf(word);
    if (prefix !== undefined) expect([word, kindOfId(`${prefix}_00000000000000000000000000`)]).toEqual([word, word]);
  }
  expect(kindOfId(newId('workspace'))).toBe('workspace');
});

test('what a route may not find has a resource word', () => {
  const unknown = operations.flatMap((operation) => {
    const { type, response } = operation;
    const shown = getNamedType(response.type);
    const mayBeMissing = type === 'query' && isObjectType(shown) && !isNonNullType(response.type);
    return mayBeMissing && !isResourceWord(snakeCase(shown.name)) ? [routeOf(operation)] : [];
  });
  expect(unknown).toEqual([]);
});
