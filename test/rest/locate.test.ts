import { buildSchema, GraphQLError, GraphQLID, type GraphQLInputObjectType, GraphQLInt, Kind, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { byPlace, Locator } from '../../rest/locate.ts';
import type { BodyParameter, Parameter } from '../../rest/parameters.ts';
import { rewrite } from '../../rest/selection.ts';
import type { InputIssue } from '../../src/kernel/errors.ts';

const schema = buildSchema(`
  type Query {
    item(id: ID, count: Int, filter: Filter, filters: [Filter!], ids: [ID!], matrix: [[Int]]): Item
    any: Any
  }
  type Mutation { change(input: Filter): Item }
  interface Named { name(first: Int): String }
  type Item implements Named {
    name(first: Int, count: Int): String
    ownerId: ID
    others(first: Int): [Item]
    next: Item
  }
  type Owner implements Named { name(first: Int): String isNew: Boolean }
  union Any = Item | Owner
  input Filter { ownerId: ID minCount: Int inner: Filter parts: [Filter!] metadata: Free tagNames: [String!] }
  scalar Free
`);
const parameter = (name: string, place: Parameter['in'], wireName = name) =>
  ({ name, in: place, wireName, type: place === 'path' ? GraphQLID : GraphQLInt }) as Parameter;
const parameters = [
  parameter('item_id', 'path'),
  parameter('limit', 'query'),
  parameter('more_ids', 'query'),
  parameter('trace', 'header', 'x-trace'),
];
const body = { name: 'body', type: schema.getType('Filter') as GraphQLInputObjectType } as BodyParameter;

function locatorOf(text: string, withBody = true) {
  const document = rewrite(parse(text), false);
  const operation = document.definitions.find((node) => node.kind === Kind.OPERATION_DEFINITION);
  if (!operation) throw new Error(text);
  return new Locator(schema, document, operation, { parameters, body: withBody ? body : null });
}
const nothing = { params: {}, query: {}, headers: {}, body: undefined };
const issue = (path: InputIssue['path'], more: Partial<InputIssue> = {}): InputIssue => ({
  path,
  type: 't',
  msg: 'm',
  ...more,
});
/** Where an issue of the field at `at` lies. */
const locOf = (text: string, at: (string | number)[] | undefined, path: InputIssue['path'], withBody = true) =>
  locatorOf(text, withBody)
    .locate({ path: at }, [issue(path)], nothing)
    .map(({ loc }) => loc)[0];

describe('an issue of an argument', () => {
  const text = `query ($item_id: ID, $limit: Int, $more_ids: [ID!], $trace: Int, $body: Filter) {
    item(
      id: $item_id, count: $trace, filter: { ownerId: $item_id, inner: { minCount: $limit, parts: [$body] } },
      filters: [{ minCount: 1 }, { minCount: $limit, tagNames: ["a"] }, $body], ids: $more_ids, matrix: [[1, $limit]]
    ) { ownerId }
  }`;

  it.each<[InputIssue['path'], (string | number)[]]>([
    [['id'], ['path', 'item_id']],
    [['count'], ['header', 'x-trace']],
    [['ids'], ['query', 'more_ids']],
    [
      ['ids', 1],
      ['query', 'more_ids', 1],
    ],
    [
      ['filter', 'ownerId'],
      ['path', 'item_id'],
    ],
    [
      ['filter', 'inner', 'minCount'],
      ['query', 'limit'],
    ],
    [
      ['filters', 1, 'minCount'],
      ['query', 'limit'],
    ],
    [
      ['matrix', 0, 1],
      ['query', 'limit'],
    ],
    // the rest of the path is within the value
    [['filters', 2], ['body']],
    [
      ['filters', 2, 'inner', 'ownerId'],
      ['body', 'inner', 'owner_id'],
    ],
    [
      ['filter', 'inner', 'parts', 0, 'minCount'],
      ['body', 'min_count'],
    ],
  ])('lies at the variable that feeds it: %j', (path, loc) => {
    expect(locOf(text, ['item'], path)).toEqual(loc);
  });

  it.each<[InputIssue['path'], (string | number)[]]>([
    // what is written in the document was not sent
    [
      ['filters', 0, 'minCount'],
      ['body', 'filters', 0, 'min_count'],
    ],
    [
      ['filters', 7, 'minCount'],
      ['body', 'filters', 7, 'min_count'],
    ],
    [
      ['filter', 'nope'],
      ['body', 'filter', 'nope'],
    ],
    [['filter'], ['body', 'filter']],
    [
      ['nope', 'aB'],
      ['body', 'nope', 'a_b'],
    ],
    [[], ['body']],
    [
      ['itemId', 'partName', 2],
      ['path', 'item_id', 'part_name', 2],
    ],
    [['limit'], ['query', 'limit']],
  ])('that no variable feeds lies at the parameter of its name, else in the body: %j', (path, loc) => {
    expect(locOf(text, ['item'], path)).toEqual(loc);
  });

  it('that is written in another form than its type is not looked for within it', () => {
    const short = '{ item(filter: null, ids: "a", matrix: 1) { ownerId } }';
    expect(locOf(short, ['item'], ['filter', 'ownerId'])).toEqual(['body', 'filter', 'owner_id']);
    expect(locOf(short, ['item'], ['ids', 0])).toEqual(['body', 'ids', 0]);
    expect(locOf(short, ['item'], ['count'])).toEqual(['body', 'count']);
  });

  it('lies in the query string where there is no body', () => {
    expect(locOf('{ item { ownerId } }', ['item'], ['someName', 0], false)).toEqual(['query', 'some_name', 0]);
  });

  it('of an error without a place is guessed by its name', () => {
    expect(locOf(text, undefined, ['id'])).toEqual(['body', 'id']);
    expect(locOf(text, [], ['id'])).toEqual(['body', 'id']);
    expect(locOf(text, ['nope'], ['id'])).toEqual(['body', 'id']);
  });

  it('in the body has the names of REST, but keys of free values as they are', () => {
    const change = 'mutation ($body: Filter) { change(input: $body) { ownerId } }';
    const at = (...path: InputIssue['path']) => locOf(change, ['change'], ['input', ...path]);
    expect(at()).toEqual(['body']);
    expect(at('minCount')).toEqual(['body', 'min_count']);
    expect(at('parts', 3, 'inner', 'ownerId')).toEqual(['body', 'parts', 3, 'inner', 'owner_id']);
    expect(at('tagNames', 0)).toEqual(['body', 'tag_names', 0]);
    expect(at('metadata', 'aB', 0, 'cD')).toEqual(['body', 'metadata', 'aB', 0, 'cD']);
    expect(at('nopeNope', 'aB')).toEqual(['body', 'nopeNope', 'aB']);
    expect(at('parts', 'aB', 'ownerId')).toEqual(['body', 'parts', 'aB', 'ownerId']);
  });
});

describe('an issue below the root', () => {
  const text = `query ($limit: Int, $more_ids: Int, $trace: Int, $item_id: Int) {
    item { name(first: 1) ownerId ...F next { others(first: $limit) { name(first: $more_ids) } } }
    again: item { next { theName: name(first: $trace) } }
    any { __typename ... on Item { name(first: $item_id) } ... on Owner { other: name(first: $limit) } }
  }
  fragment F on Item { next { name(count: $trace) } ...G }
  fragment G on Named { given: name(first: $more_ids) }`;

  it.each<[(string | number)[], InputIssue['path'], (string | number)[]]>([
    [['item', 'next', 'others'], ['first'], ['query', 'limit']],
    [['item', 'next', 'others', 3, 'name'], ['first'], ['query', 'more_ids']],
    [['again', 'next', 'theName'], ['first'], ['header', 'x-trace']],
    [['item', 'next', 'name'], ['count'], ['header', 'x-trace']],
    [['item', 'given'], ['first'], ['query', 'more_ids']],
    [['any', 'name'], ['first'], ['path', 'item_id']],
    [['any', 'other'], ['first'], ['query', 'limit']],
    // of a field that is not there, its parent is meant
    [['item', 'next', 'others', 0, 'nope'], ['first'], ['query', 'limit']],
    [['item', 'name'], ['first'], ['body', 'first']],
    [['item', 'nope'], ['first'], ['body', 'first']],
  ])('is found by the path of the answer: %j %j', (at, path, loc) => {
    expect(locOf(text, at, path)).toEqual(loc);
  });
});

describe('located issues', () => {
  const text = `query ($item_id: ID, $limit: Int, $trace: Int, $body: Filter, $more_ids: [ID!]) {
    item(id: $item_id, count: $limit, filter: $body, ids: $more_ids) { name(first: $trace) }
  }`;
  const request = {
    params: { item_id: 'i1' },
    query: { limit: '5', more_ids: 'a' },
    headers: { 'x-trace': 'abc' },
    body: { min_count: 2, parts: [{ owner_id: 'o' }], metadata: null },
  };
  const inputOf = (...path: InputIssue['path']) =>
    locatorOf(text)
      .locate({ path: ['item'] }, [issue(path)], request)
      .map(({ input }) => input)[0];

  it('show what was sent', () => {
    expect(inputOf('id')).toBe('i1');
    expect(inputOf('count')).toBe('5');
    expect(inputOf('filter')).toBe(request.body);
    expect(inputOf('filter', 'parts', 0, 'ownerId')).toBe('o');
    expect(inputOf('filter', 'parts', 0)).toEqual({ owner_id: 'o' });
    expect(inputOf('filter', 'metadata')).toBeNull();
  });

  it('show null for what was not sent, and the one value where a list was expected', () => {
    expect(inputOf('filter', 'ownerId')).toBeNull();
    expect(inputOf('filter', 'metadata', 'x')).toBeNull();
    expect(inputOf('filter', 'minCount', 'x')).toBeNull();
    expect(inputOf('filter', 'toString')).toBeNull();
    expect(inputOf('ids', 0)).toBe('a');
    expect(inputOf('filter', 'parts', 4)).toEqual([{ owner_id: 'o' }]);
  });

  it('keep the value that the issue names, and all that it says', () => {
    const ctx = { a: 1 };
    expect(locatorOf(text).locate({ path: ['item'] }, [issue(['id'], { input: null, ctx })], request)).toEqual([
      { path: ['id'], type: 't', msg: 'm', ctx, loc: ['path', 'item_id'], input: null },
    ]);
  });

  it('are in the order path, query, header, body', () => {
    const issues = [['filter'], ['count'], ['id'], ['limit']].map((path, n) => issue(path, { type: String(n) }));
    const located = locatorOf(text).locate({ path: ['item'] }, issues, request);
    expect(located.map(({ type, loc }) => [type, loc[0]])).toEqual([
      ['2', 'path'],
      ['1', 'query'],
      ['3', 'query'],
      ['0', 'body'],
    ]);
    const places = ['body', 'header', 'query', 'path'].map((place) => ({ loc: [place, 'x'] }));
    expect(places.sort(byPlace).map(({ loc }) => loc[0])).toEqual(['path', 'query', 'header', 'body']);
  });
});

describe('a variable', () => {
  it('is found in the request by its name', () => {
    const locator = locatorOf('{ item { ownerId } }');
    expect(locator.variable('body', ['inner', 'ownerId'])).toEqual(['body', 'inner', 'owner_id']);
    expect(locator.variable('trace', [])).toEqual(['header', 'x-trace']);
    expect(locator.variable('limit', [0, 'aB'])).toEqual(['query', 'limit', 0, 'aB']);
    expect(locator.variable('limit', ['ownerId'], body.type)).toEqual(['query', 'limit', 'owner_id']);
    expect(locator.variable('nope', [])).toBeNull();
    expect(locatorOf('{ item { ownerId } }', false).variable('body', [])).toBeNull();
  });
});

describe('errors', () => {
  const text = `{
    any { ... on Item { next { ownerId name } } }
    item { ownerId others { ownerId name } next { name } }
  }`;
  const sorted = (...paths: ((string | number)[] | undefined)[]) =>
    locatorOf(text)
      .sort(paths.map((path, n) => new GraphQLError(String(n), { path })))
      .map(({ message }) => Number(message));

  it('are sorted by the document, not by time', () => {
    expect(sorted(['item', 'next', 'name'], ['item', 'owner_id'], ['any', 'next', 'name'])).toEqual([2, 1, 0]);
  });

  it('are sorted by the index in a list', () => {
    const at = (index: number, name: string) => ['item', 'others', index, name];
    expect(sorted(at(10, 'owner_id'), at(2, 'name'), at(2, 'owner_id'), at(1, 'name'))).toEqual([3, 2, 1, 0]);
  });

  it('of an object come before those of its fields, and those without a place first', () => {
    expect(sorted(['item', 'next', 'name'], ['item', 'next'], ['item'], undefined)).toEqual([3, 2, 1, 0]);
  });

  it('of one place stay in their order', () => {
    expect(sorted(['item', 'next'], ['item', 'next'], ['item', 'next'])).toEqual([0, 1, 2]);
  });
});

it('there is no locator for a kind of operation that the schema does not have', () => {
  expect(() => locatorOf('subscription { x }')).toThrow('The schema has no subscription type.');
});
