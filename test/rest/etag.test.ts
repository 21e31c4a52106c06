import { buildSchema } from 'graphql';
import { afterAll, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

const schema = buildSchema(`
  type Query { item(id: ID!): Item items: [Item!]! }
  type Mutation { change(id: ID!, expectedVersion: Int): Changed! touch(id: ID!): Item! }
  type Changed { message: String! item: Item! }
  type Item { id: ID! revision: Int! next: Item others: [Item!]! extra: Extra! }
  type Extra { colour: String! }
`);
// as the schema's own plugin marks it
Object.assign(schema.getMutationType()!.getFields().change!.extensions, { versionArgument: 'expectedVersion' });
const compile = (text: string) =>
  compileOperations(schema, folderOf(`fragment Item on Item { id revision @etag } ${text}`));
const only = (text: string) => compile(text)[0]!;
const answer = (text: string, data: unknown) => {
  const operation = only(text);
  const result = { data: structuredClone(data) as Record<string, unknown> };
  const tag = operation.etag?.(result) ?? null;
  return [tag, JSON.stringify(operation.bodyOf(result, { params: { id: '1' }, query: {}, headers: {}, body: null }))];
};
const GET = '@rest(method: GET, path: "/v1/items/{id}")';
const PUT = '@rest(method: PUT, path: "/v1/items/{id}")';

it('the version of the body is its ETag, and not in the body', () => {
  const text = `query Get($id: ID!) ${GET} { item(id: $id) @body { ...Item } }`;
  expect(answer(text, { item: { id: 'a', _etag: 3 } })).toEqual(['"3"', '{"id":"a"}']);
  expect(only(text).response.shape?.fields.map(({ key }) => key)).toEqual(['id']);
});

it('also where the body is built anew from what was asked for', () => {
  const text = `query Get($id: ID!) ${GET} { item(id: $id) @body { ...Item extra @flatten { colour } } }`;
  expect(answer(text, { item: { id: 'a', _etag: 3, _flat_extra: { colour: 'red' } } })).toEqual([
    '"3"',
    '{"id":"a","colour":"red"}',
  ]);
});

it('an object in the body is meant where it is marked', () => {
  const change = (mark: string) =>
    `mutation Change($id: ID!) ${PUT} { change(id: $id) @body { message item ${mark} { ...Item } } }`;
  const data = { change: { message: 'Done', item: { id: 'a', _etag: 4 } } };
  expect(answer(change('@etag'), data)).toEqual(['"4"', '{"message":"Done","item":{"id":"a"}}']);
  expect(only(change('')).etag).toBeNull();
  expect(JSON.stringify(only(change('')).document)).not.toContain('revision');
});

it('lists have none, and do not ask for versions', () => {
  const operation = only('query List @rest(method: GET, path: "/v1/items") { items @body { ...Item } }');
  expect(operation.etag).toBeNull();
  expect(JSON.stringify(operation.document)).not.toContain('revision');
});

it('a second version in the same answer is a mistake: it would be shown', () => {
  const text = `query Get($id: ID!) ${GET} { item(id: $id) @body { ...Item others { ...Item } } }`;
  expect(() => compile(text)).toThrow(/:1:\d+ The answer has more versions than one @etag\./);
});

it('If-Match is taken where the root field takes a version that the document leaves open', () => {
  expect(only(`mutation Change($id: ID!) ${PUT} { change(id: $id) @body { message } }`).takesIfMatch).toBe(true);
  expect(
    only(`mutation Change($id: ID!) ${PUT} { change(id: $id, expectedVersion: 1) @body { message } }`).takesIfMatch,
  ).toBe(false);
  expect(only(`mutation Touch($id: ID!) ${PUT} { touch(id: $id) @body { id } }`).takesIfMatch).toBe(false);
});
