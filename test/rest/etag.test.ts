import { buildSchema } from 'graphql';
import { afterAll, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

const schema = buildSchema(`
  type Query { item(id: ID!): Item items: [Item!]! thing: Thing named: Named }
  union Thing = Item | Extra
  interface Named { id: ID! }
  type Mutation { change(id: ID!, expectedVersion: Int): Changed! touch(id: ID!): Item! }
  type Changed { message: String! item: Item! items: [Item!]! extra: Extra! }
  type Item implements Named { id: ID! revision: Int! next: Item others: [Item!]! extra: Extra! }
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
const LIST = '@rest(method: GET, path: "/v1/items")';
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
  expect(() => compile(text)).toThrow(/:1:\d+ An answer can have only one @etag\./);
});

it('a version in fragments and below conditions is found', () => {
  const data = { item: { id: 'a', _etag: 3 } };
  for (const set of [
    '... { ...Item }',
    '... on Item { ...Item }',
    'id ... on Item { ... { revision @etag } }',
    '...Item ... { kind: __typename @skip(if: true) }',
    '...Outer',
  ]) {
    const text = `fragment Outer on Item { ... { ...Item } }
      query Get($id: ID!) ${GET} { item(id: $id) @body { ${set} } }`;
    expect(answer(text, data)).toEqual(['"3"', '{"id":"a"}']);
  }
});

it('a version of what may be another thing is found as well', () => {
  const thing = `query Get ${LIST} { thing @body { ... on Item { ...Item } ... on Extra { colour } } }`;
  expect(answer(thing, { thing: { id: 'a', _etag: 3 } })).toEqual(['"3"', '{"id":"a"}']);
  expect(answer(thing, { thing: { colour: 'red' } })).toEqual([null, '{"colour":"red"}']);
  const named = `query Get ${LIST} { named @body { id ... on Item { revision @etag } } }`;
  expect(answer(named, { named: { id: 'a', _etag: 5 } })).toEqual(['"5"', '{"id":"a"}']);
});

it('what has no version is not searched for one', () => {
  expect(
    only(`query Get($id: ID!) ${GET} { item(id: $id) @body { id next { id } extra { colour } } }`).etag,
  ).toBeNull();
  expect(only(`query Get($id: ID!) ${GET} { item(id: $id) { id @body } }`).etag).toBeNull();
  expect(
    only(`query Get($id: ID!) ${GET} { item(id: $id) { revision @etag extra @body { colour } } }`).etag,
  ).toBeNull();
});

it('the objects of a list have no version of their own, even if it is marked', () => {
  const change = (field: string) => `mutation Change($id: ID!) ${PUT} { change(id: $id) @body { message ${field} } }`;
  expect(only(change('items @etag { ...Item }')).etag).toBeNull();
  expect(only(change('item @etag { id next { ...Item } }')).etag).toBeNull();
  expect(only(change('item @etag { next @etag { id } }')).etag).toBeNull();
});

it('the version is taken at any depth that is marked, also below a body that is not the root', () => {
  const deep = `mutation Change($id: ID!) ${PUT} {
    change(id: $id) @body { message item @etag { next @etag { ...Item } } } }`;
  expect(answer(deep, { change: { message: 'Done', item: { next: { id: 'b', _etag: 6 } } } })).toEqual([
    '"6"',
    '{"message":"Done","item":{"next":{"id":"b"}}}',
  ]);
  const below = `mutation Change($id: ID!) ${PUT} { change(id: $id) { item @body { ...Item } } }`;
  expect(answer(below, { change: { item: { id: 'a', _etag: 2 } } })).toEqual(['"2"', '{"id":"a"}']);
});

it('an answer without the object has no version', () => {
  const { etag } = only(`query Get($id: ID!) ${GET} { item(id: $id) @body { ...Item } }`);
  const tagOf = (data: Record<string, unknown> | null | undefined) => etag?.({ data: data as Record<string, unknown> });
  expect([tagOf({ item: null }), tagOf({}), tagOf(null), tagOf(undefined), tagOf({ item: { id: 'a' } })]).toEqual(
    Array(5).fill(null),
  );
  expect(tagOf({ item: { _etag: '3' } })).toBeNull();
});

it('If-Match is taken where the root field takes a version that the document leaves open', () => {
  expect(only(`mutation Change($id: ID!) ${PUT} { change(id: $id) @body { message } }`).takesIfMatch).toBe(true);
  expect(
    only(`mutation Change($id: ID!) ${PUT} { change(id: $id, expectedVersion: 1) @body { message } }`).takesIfMatch,
  ).toBe(false);
  expect(only(`mutation Touch($id: ID!) ${PUT} { touch(id: $id) @body { id } }`).takesIfMatch).toBe(false);
});
