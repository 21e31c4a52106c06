import { buildSchema, GraphQLEnumType, isInputObjectType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { fieldOfUnknownKeys, isWords, restFields, restValues } from '../../rest/names.ts';
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

const schema = buildSchema(`
  type Query { ownerId: ID, plainName: String, more: String }
  input Clash { ownerId: ID, owner_id: ID }
  enum Status { RATE_LIMITED ok }
  enum Same { RATE_LIMITED rate_limited }
`);
const query = schema.getQueryType()!;
const withUnknownKeys = (unknownKeys: unknown) => ({
  name: 'Query',
  extensions: { unknownKeys },
  getFields: () => query.getFields(),
});

describe('the fields of a type in REST', () => {
  it('are in the order of their declaration', () => {
    expect([...restFields(query).keys()]).toEqual(['owner_id', 'plain_name', 'more']);
  });

  it('do not have the field that receives unknown keys', () => {
    expect([...restFields(withUnknownKeys('more')).keys()]).toEqual(['owner_id', 'plain_name']);
    expect(fieldOfUnknownKeys(withUnknownKeys('more'))?.name).toBe('more');
  });

  it.each([['nope'], [undefined], [true]])('are all of them where no field receives unknown keys: %j', (name) => {
    expect(fieldOfUnknownKeys(withUnknownKeys(name))).toBeNull();
    expect([...restFields(withUnknownKeys(name)).keys()]).toEqual(['owner_id', 'plain_name', 'more']);
    expect(fieldOfUnknownKeys({ name: 'Query', getFields: () => query.getFields() })).toBeNull();
  });

  it('have different names', () => {
    const clash = schema.getType('Clash');
    if (!isInputObjectType(clash)) throw new Error('no input type');
    expect(() => restFields(clash)).toThrow("fields 'ownerId' and 'owner_id' of Clash are both 'owner_id' in REST");
  });
});

describe('the values of an enum in REST', () => {
  const valuesOf = (name: string) => restValues(schema.getType(name) as GraphQLEnumType);

  it('lead to those of the schema', () => {
    expect([...valuesOf('Status')]).toEqual([
      ['rate_limited', 'RATE_LIMITED'],
      ['ok', 'ok'],
    ]);
  });

  it('are different', () => {
    expect(() => valuesOf('Same')).toThrow('two values of Same are the same in REST');
  });
});

it('words have the same name in REST', () => {
  const Words = new GraphQLEnumType({ name: 'Words', values: { GET: {}, ok: {} }, extensions: { isWords: true } });
  expect([...restValues(Words)]).toEqual([
    ['GET', 'GET'],
    ['ok', 'ok'],
  ]);
  expect([isWords(Words), isWords(schema.getType('Status') as GraphQLEnumType)]).toEqual([true, false]);
});
