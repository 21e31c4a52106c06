import { buildSchema, Kind, parse, Source } from 'graphql';
import { describe, expect, it } from 'vitest';
import { bodyFieldOf } from '../../rest/body-field.ts';
import type { Parameter } from '../../rest/parameters.ts';
import { bodyReader, responseOf } from '../../rest/response.ts';

const schema = buildSchema(`
  type Query { bigItem: BigItem list: [BigItem] any: Any }
  type Subscription { bigItem: BigItem }
  type BigItem { id: ID ownerId: ID next: BigItem list: [BigItem] colour: Colour any: Any }
  type Other { id: ID }
  union Any = BigItem | Other
  enum Colour { RED LIGHT_BLUE }
`);

/** The response of a document, the mistakes in it, and the reader of its body. */
function responseFor(text: string, { status = null as number | null, path = ['org_id', 'item_id'], type = '' } = {}) {
  const [operation] = parse(new Source(text, 'file')).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error(text);
  const problems: string[] = [];
  const field = bodyFieldOf(schema, operation, problems)!;
  const kind = type || operation.operation;
  const response = responseOf(schema, new Map(), field, kind, status, problems);
  const parameters = [...path.map((name) => ({ name, in: 'path' })), { name: 'limit', in: 'query' }] as Parameter[];
  const read = bodyReader(field, response, kind, parameters, (errors) => new Error(`${errors.length} errors`));
  const request = { params: { org_id: 'o1', item_id: 'i1' }, query: { limit: '5' }, headers: {}, body: undefined };
  return {
    response,
    problems,
    bodyOf: (data: object | null, errors?: object[]) => read({ data, errors } as never, request),
  };
}

describe('what a document says of its response', () => {
  it.each([
    ['{ bigItem @body { id } }', null, 'value'],
    ['{ bigItem @body { id } }', 201, 'value'],
    ['{ bigItem @body { id } }', 204, 'empty'],
    ['{ bigItem @body @empty { id } }', null, 'empty'],
    ['{ bigItem @body @empty { id } }', 204, 'empty'],
    ['{ bigItem @body @nothing { id } }', null, 'nothing'],
    ['subscription { bigItem @body { id } }', null, 'events'],
  ])('%s with the status %j is: %s', (text, status, kind) => {
    const { response, problems } = responseFor(text, { status });
    expect([response.kind, problems]).toEqual([kind, []]);
  });

  it.each<[string, number | null, string[]]>([
    ['{ bigItem @body @nothing @empty { id } }', null, ['@nothing sends a body: it excludes 204 and @empty.']],
    ['{ bigItem @body @nothing { id } }', 204, ['@nothing sends a body: it excludes 204 and @empty.']],
    ['{ bigItem @body @empty { id } }', 201, ['@empty answers 204, not 201.']],
    ['{ bigItem @body { id } }', 199, ['199 is no status of success.']],
    ['{ bigItem @body { id } }', 300, ['300 is no status of success.']],
    ['{ bigItem @body { id } }', 200, []],
    ['{ bigItem @body { id } }', 299, []],
  ])('%s with the status %j is refused or not', (text, status, problems) => {
    expect(responseFor(text, { status }).problems).toEqual(problems.map((problem) => `file:1:3 ${problem}`));
  });

  it('has the shape of its object; none for a plain value', () => {
    const { response } = responseFor('{ bigItem @body { id ownerId } }');
    expect([response.shape?.fields.map(({ key }) => key), String(response.type)]).toEqual([
      ['id', 'owner_id'],
      'BigItem',
    ]);
    expect(responseFor('{ bigItem { id @body } }').response.shape).toBeNull();
  });

  it('names the fields that are not part of the body: plain ones of its object', () => {
    const { response } = responseFor('{ bigItem @body { id ownerId @redirect } }');
    expect([response.redirect, response.eventId]).toEqual(['owner_id', null]);
    const stream = responseFor('subscription { bigItem @body { ownerId @eventId id } }').response;
    expect([stream.redirect, stream.eventId]).toEqual([null, 'owner_id']);
    expect(responseFor('{ bigItem @body { next @redirect { id } } }').response.redirect).toBeNull();
    expect(responseFor('{ bigItem { id @body @redirect } }').response.redirect).toBeNull();
  });
});

describe('the body of a result', () => {
  it('is the value of the field, in the names of REST', () => {
    const { bodyOf } = responseFor('{ bigItem { next @body { id colour } } }');
    expect(bodyOf({ big_item: { next: { id: 'a', colour: 'LIGHT_BLUE' } } })).toEqual({
      id: 'a',
      colour: 'light_blue',
    });
    expect(responseFor('{ bigItem { list @body { id } } }').bodyOf({ big_item: { list: [{ id: 'a' }] } })).toEqual([
      { id: 'a' },
    ]);
    expect(responseFor('{ bigItem { colour @body } }').bodyOf({ big_item: { colour: 'RED' } })).toBe('red');
  });

  it('is an error where there are errors', () => {
    const { bodyOf } = responseFor('{ bigItem @body { id } }');
    expect(() => bodyOf(null, [{}, {}])).toThrow('2 errors');
    expect(bodyOf({ big_item: { id: 'a' } }, [])).toEqual({ id: 'a' });
  });

  const missing = (resource_id: string, resource_type = 'big_item') => ({
    code: 'RESOURCE_NOT_FOUND',
    details: { resource_type, resource_id },
  });
  const errorOf = (work: () => unknown) => {
    try {
      return work();
    } catch (error) {
      const { code, details } = error as { code: string; details: object };
      return { code, details };
    }
  };

  it('of a query is not found where an object is null, by the last variable of the path', () => {
    const { bodyOf } = responseFor('{ bigItem { next @body { id } } }');
    for (const data of [{ big_item: null }, { big_item: { next: null } }, {}])
      expect(errorOf(() => bodyOf(data))).toEqual(missing('i1'));
    const pathless = responseFor('{ bigItem @body { id } }', { path: [] });
    expect(errorOf(() => pathless.bodyOf({ big_item: null }))).toEqual(missing(''));
    const single = responseFor('{ any @body { ... on Other { id } } }', { path: ['org_id'] });
    expect(errorOf(() => single.bodyOf({ any: null }))).toEqual(missing('o1', 'any'));
  });

  it('is null where a list or a plain value is, or where nothing was asked for', () => {
    expect(responseFor('{ bigItem { list @body { id } } }').bodyOf({ big_item: { list: null } })).toBeNull();
    expect(responseFor('{ bigItem { colour @body } }').bodyOf({ big_item: { colour: null } })).toBeNull();
    expect(responseFor('{ bigItem @body { id } }', { type: 'mutation' }).bodyOf({ big_item: null })).toBeNull();
  });
});
