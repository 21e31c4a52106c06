import { buildSchema, isInputObjectType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { restFields } from '../../rest/names.ts';
import { snakeCase } from '../../src/kernel/snake-case.ts';

describe('REST names', () => {
  it.each([
    ['name', 'name'],
    ['ownerId', 'owner_id'],
    ['maxCostPer1kTokens', 'max_cost_per_1k_tokens'],
    ['sha256', 'sha256'],
    ['sha256Hash', 'sha256_hash'],
    ['idpID', 'idp_id'],
    ['URLTemplate', 'url_template'],
    ['isMCPCompatible', 'is_mcp_compatible'],
    ['already_snake', 'already_snake'],
    ['__typename', '__typename'],
  ])('writes %s as %s', (graphql, rest) => {
    expect(snakeCase(graphql)).toBe(rest);
  });

  it('leads back through the names of the schema, not by guessing', () => {
    const type = buildSchema('type Query { a: Int } input I { maxCostPer1kTokens: Int idpID: ID }').getType('I');
    if (!isInputObjectType(type)) throw new Error('no input type');
    expect([...restFields(type)].map(([key, field]) => [key, field.name])).toEqual([
      ['max_cost_per_1k_tokens', 'maxCostPer1kTokens'],
      ['idp_id', 'idpID'],
    ]);
  });
});
