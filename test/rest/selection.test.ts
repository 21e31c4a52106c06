import { buildSchema, type FieldNode, type GraphQLCompositeType, Kind, parse, print, Source } from 'graphql';
import { describe, expect, it } from 'vitest';
import { type FieldShape, isVersion, lift, resultKey, rewrite, SelectionReader } from '../../rest/selection.ts';

const schema = buildSchema(`
  type Query { item: Item! }
  interface Thing { id: ID! }
  interface Named implements Thing { id: ID! name: String }
  type Item implements Named & Thing {
    id: ID! name: String ownerId: ID owner: Owner! owners: [Owner!]! some: [Owner] any: Any }
  type Owner implements Named & Thing { id: ID! name: String fullName: String item: Item }
  union Any = Item | Owner
`);

function partsOf(text: string) {
  const document = parse(new Source(text, 'file'));
  const fragments = new Map(
    document.definitions.flatMap((node) =>
      node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [],
    ),
  );
  const operation = document.definitions.find((node) => node.kind === Kind.OPERATION_DEFINITION);
  if (!operation) throw new Error(text);
  return { document, fragments, operation };
}

/** The shape of selections of a type, and the mistakes in them. */
function read(type: string, text: string) {
  const { fragments, operation } = partsOf(text);
  const problems: string[] = [];
  const reader = new SelectionReader(schema, fragments, problems);
  const shape = reader.shapeOf(schema.getType(type) as GraphQLCompositeType, [operation.selectionSet]);
  return { shape, problems };
}

/** A shape in short: `?` may be missing, `^` is lifted, and the type of each field. */
type Brief = Record<string, unknown>;
const brief = (fields: readonly FieldShape[]): Brief =>
  Object.fromEntries(
    fields.map(({ key, type, object, isFlattened, isOptional }) => [
      `${isFlattened ? '^' : ''}${key}${isOptional ? '?' : ''}`,
      object ? [String(type), brief(object.fields)] : type === null ? null : String(type),
    ]),
  );
const shown = (type: string, text: string) => {
  const { shape, problems } = read(type, text);
  expect(problems).toEqual([]);
  return brief(shape.fields);
};
const field = (text: string) => partsOf(`{ ${text} }`).operation.selectionSet.selections[0] as FieldNode;

describe('the key of a field in a result', () => {
  it.each([
    ['name', 'name'],
    ['ownerId', 'owner_id'],
    ['myKey: ownerId', 'myKey'],
    ['owner @flatten { id }', '_flat_owner'],
    ['theOwner: owner @flatten { id }', '_flat_theOwner'],
    ['revision @etag', '_etag'],
    ['item @etag { id }', 'item'],
  ])('%s: %s', (text, key) => {
    expect(resultKey(field(text))).toBe(key);
  });

  it('of a version is not shown, that of an object which has one is', () => {
    expect([field('a @etag'), field('a @etag { id }'), field('a')].map(isVersion)).toEqual([true, false, false]);
  });
});

describe('the executed form of a document', () => {
  const executed = (text: string, hasETag = false) => print(rewrite(parse(text), hasETag)).replaceAll(/\s+/g, ' ');

  it('asks for every field by its name in REST', () => {
    expect(executed('{ id ownerId other: fullName owner { fullName ...F } } fragment F on Owner { isNew }')).toBe(
      '{ id owner_id: ownerId other: fullName owner { full_name: fullName ...F } } ' +
        'fragment F on Owner { is_new: isNew }',
    );
  });

  it('has no directives of the document language, but those of GraphQL', () => {
    expect(
      executed(
        'query A($a: Int @range(min: 1), $b: Boolean!) @rest(method: GET, path: "/x") ' +
          '{ item(a: $a) @body @include(if: $b) { owner @flatten @skip(if: $b) { id } } }',
      ),
    ).toBe(
      'query A($a: Int, $b: Boolean!) ' +
        '{ item(a: $a) @include(if: $b) { _flat_owner: owner @skip(if: $b) { id } } }',
    );
  });

  it('asks for versions only where one becomes the ETag', () => {
    const text = '{ item @etag { id revision @etag } }';
    expect(executed(text)).toBe('{ item { id } }');
    expect(executed(text, true)).toBe('{ item { id _etag: revision } }');
  });

  it('keeps the places in the file, for errors', () => {
    const written = parse('{\n  ownerId\n}');
    const [operation] = rewrite(written, false).definitions;
    if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error('no operation');
    const [selected] = operation.selectionSet.selections as FieldNode[];
    expect([selected?.loc?.start, selected?.alias?.loc?.start]).toEqual([4, 4]);
  });
});

describe('the shape of a selection', () => {
  it('has fields in the order of the document, with the names of REST and their types', () => {
    expect(shown('Item', '{ ownerId id more: name owner { fullName } owners { id } __typename }')).toEqual({
      owner_id: 'ID',
      id: 'ID!',
      more: 'String',
      owner: ['Owner!', { full_name: 'String' }],
      owners: ['[Owner!]!', { id: 'ID!' }],
      __typename: null,
    });
    expect(Object.keys(shown('Item', '{ name id }'))).toEqual(['name', 'id']);
  });

  it('has no versions', () => {
    expect(shown('Item', '{ id ownerId @etag owner @etag { id name @etag } }')).toEqual({
      id: 'ID!',
      owner: ['Owner!', { id: 'ID!' }],
    });
  });

  it('merges what is selected twice', () => {
    expect(
      shown('Item', '{ owner { id } name owner { name } ...F } fragment F on Item { owner { fullName } }'),
    ).toEqual({ owner: ['Owner!', { id: 'ID!', name: 'String', full_name: 'String' }], name: 'String' });
  });

  it('says what may be missing: what is under a condition, unless it is asked for without one', () => {
    expect(
      shown(
        'Item',
        '{ id @include(if: true) name @skip(if: true) ownerId @other id ' +
          '... @include(if: true) { owner { name } } ...F @skip(if: true) } fragment F on Item { owners { id } }',
      ),
    ).toEqual({
      id: 'ID!',
      'name?': 'String',
      owner_id: 'ID',
      'owner?': ['Owner!', { name: 'String' }],
      'owners?': ['[Owner!]!', { id: 'ID!' }],
    });
    expect(shown('Item', '{ id id @include(if: true) name @skip(if: true) name @skip(if: false) }')).toEqual({
      id: 'ID!',
      'name?': 'String',
    });
  });

  it('says that a field of a narrower type may be missing, one of a wider type not', () => {
    expect(
      shown('Item', '{ ... on Item { id } ... on Named { name } ... on Thing { other: id } ... { more: id } }'),
    ).toEqual({ id: 'ID!', name: 'String', other: 'ID!', more: 'ID!' });
    expect(shown('Named', '{ ... on Thing { id } ... on Item { ownerId } ... on Named { name } }')).toEqual({
      id: 'ID!',
      'owner_id?': 'ID',
      name: 'String',
    });
    expect(shown('Thing', '{ ... on Named { name ... on Item { ownerId } } }')).toEqual({
      'name?': 'String',
      'owner_id?': 'ID',
    });
    expect(
      shown('Any', '{ ... on Item { id } ... on Named { name } __typename ... on Any { kind: __typename } }'),
    ).toEqual({ 'id?': 'ID!', 'name?': 'String', __typename: null, kind: null });
  });

  it('takes a fragment for the whole selection only if it is', () => {
    const fragmentOf = (text: string) => read('Item', `${text} fragment F on Item { id }`).shape.fragment;
    expect(fragmentOf('{ ...F }')).toBe('F');
    expect(fragmentOf('{ ...F name }')).toBeNull();
    expect(fragmentOf('{ name ...F }')).toBeNull();
    expect(fragmentOf('{ ... on Item { id } }')).toBeNull();
    expect(fragmentOf('{ id }')).toBeNull();
  });

  it('leaves unknown fragments, types and fields to the check of the document', () => {
    expect(shown('Item', '{ id ...Nope ... on Nope { name } }')).toEqual({ id: 'ID!' });
    expect(shown('Item', '{ nope { id } }')).toEqual({ nope: null });
  });

  it('has the fields of a lifted object in their place', () => {
    const { shape } = read('Item', '{ id owner @flatten { fullName item @flatten { ownerId } } name }');
    expect(brief(shape.fields)).toEqual({
      id: 'ID!',
      '^_flat_owner': ['Owner!', { full_name: 'String', '^_flat_item': ['Item', { owner_id: 'ID' }] }],
      name: 'String',
    });
    expect(lift(shape.fields).map(({ key }) => key)).toEqual(['id', 'full_name', 'owner_id', 'name']);
  });

  it.each([
    ['name', ''],
    ['owners', '{ id }'],
    ['some', '{ id }'],
  ])('lifts only one object: not %s', (name, selection) => {
    const { problems } = read('Item', `{ ${name} @flatten ${selection} }`);
    expect(problems).toEqual([`file:1:3 @flatten needs a field that is one object, '${name}' is not.`]);
  });

  it('has each key once, also among those that are lifted', () => {
    const { problems } = read('Item', '{ id owner @flatten { fullName id }\n fullName: name }');
    expect(problems).toEqual(["file:1:32 The response key 'id' is also given at file:1:3."]);
    expect(read('Item', '{ full_name: name\n owner @flatten { fullName } }').problems).toEqual([
      "file:2:19 The response key 'full_name' is also given at file:1:3.",
    ]);
  });
});
