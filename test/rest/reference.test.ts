import { buildSchema, type GraphQLInputObjectType } from 'graphql';
import { afterAll, describe, expect, it } from 'vitest';
import { derivedExample, derivedGroup } from '../../rest/derived-reference.ts';
import { CompileError } from '../../rest/documents.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import { fileOf, inReadingOrder, readReference } from '../../rest/reference.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

const operation = (name: string, file: string, more: Partial<CompiledOperation> = {}) =>
  ({ name, file, body: null, isAddition: false, ...more }) as CompiledOperation;
const types = buildSchema(`
  "Something to sell."
  type Item { id: ID! }
  enum Colour { DARK_RED BLUE }
  input Item1 { displayName: String!, note: String, sizes: [Float!], colour: Colour, inStock: Boolean, ownerId: ID }
  input Owned { ownerId: ID!, colour: Colour = BLUE }
  input Nested { item: Item1! }
  scalar Odd
  input OddOnes { odd: Odd! }
  type Query { item(a: Item1, b: Owned, c: Nested, d: OddOnes): Item }
`);
const inputOf = (name: string) => types.getType(name) as GraphQLInputObjectType;
const bodyOf = (name: string) => ({ body: { type: inputOf(name), fileField: null } }) as Partial<CompiledOperation>;
const withBody = bodyOf('Item1');
const operations = [
  operation('CreateItem', 'items.graphql', withBody),
  operation('ListItems', 'items.graphql'),
  operation('Health', 'additions/health.graphql'),
];
const read = (files: Record<string, string>) => readReference(folderOf({ 'a.graphql': '', ...files }), operations);

describe('what the reference has beyond the documents', () => {
  it('is a group for each file and an example for each body that follow from the schema, if nobody says more', () => {
    expect(read({})).toEqual({
      groups: [
        { file: 'items', name: 'Items' },
        { file: 'health', name: 'Health' },
      ],
      examples: {
        CreateItem: {
          display_name: 'Example display name',
          note: 'Example note',
          sizes: [1],
          colour: 'dark_red',
          in_stock: true,
        },
      },
      answers: {},
    });
  });

  it('are groups in their order, before files without a group, and examples of bodies', () => {
    expect(
      read({
        'groups.json': '[{ "file": "health", "name": "Health", "description": "Is it up?" }]',
        'examples.json': '{ "CreateItem": { "display_name": "hat" } }',
        'answers.json': '{ "ListItems": [] }',
      }),
    ).toEqual({
      groups: [
        { file: 'health', name: 'Health', description: 'Is it up?' },
        { file: 'items', name: 'Items' },
      ],
      examples: { CreateItem: { display_name: 'hat' } },
      answers: { ListItems: [] },
    });
  });

  it('is described by what its operations create', () => {
    const create = { method: 'POST', response: { kind: 'value', type: types.getType('Item') } } as never;
    const remove = { method: 'DELETE', response: { kind: 'empty', type: types.getType('Boolean') } } as never;
    const described = { file: 'new-items', name: 'New items', description: 'Something to sell.' };
    expect(derivedGroup('new-items', [remove, create])).toEqual(described);
    expect(derivedGroup('new-items', [remove])).toEqual({ file: 'new-items', name: 'New items' });
  });

  it('leaves a body to whoever knows it, where a required field is no plain value', () => {
    expect(derivedExample(inputOf('Owned'))).toEqual({ owner_id: '{owner_id}', colour: 'dark_red' });
    expect([derivedExample(inputOf('Nested')), derivedExample(inputOf('OddOnes'))]).toEqual([null, null]);
    const bounded = (constraints: object) => {
      const type = inputOf('Item1');
      const { displayName } = type.getFields();
      Object.assign(displayName!, { extensions: { constraints } });
      const example = derivedExample(type)?.display_name;
      Object.assign(displayName!, { extensions: {} });
      return example;
    };
    expect(bounded({ oneOf: ['a', 'b'] })).toBe('a');
    expect(bounded({ format: 'email' })).toBe('ann@example.com');
    expect(bounded({ maxLength: 9 })).toBe('Example d');
    expect([bounded({ pattern: '[a-z]+' }), bounded({ minLength: 99 })]).toEqual([undefined, undefined]);
  });

  it('may name only files and operations that exist', () => {
    const wrong = () =>
      read({
        'groups.json': '[{ "file": "itmes", "name": "Items" }, { "file": "items", "name": "Items" }]',
        'examples.json': '{ "ListItems": {}, "CreateItem": {}, "Nothing": {} }',
        'answers.json': '{ "ListItems": {}, "Gone": {} }',
      });
    expect(wrong).toThrow(CompileError);
    try {
      wrong();
    } catch (error) {
      expect((error as CompileError).problems).toEqual([
        "groups.json: there is no file 'itmes.graphql'.",
        "examples.json: there is no operation 'ListItems' with a body.",
        "examples.json: there is no operation 'Nothing' with a body.",
        "answers.json: there is no operation 'Gone': npm run examples:record.",
      ]);
    }
  });
});

describe('the name of a document', () => {
  it.each([
    ['items.graphql', 'items'],
    ['additions/more/items.graphql', 'items'],
    ['items.graphql.old.graphql', 'items.graphql.old'],
    ['items', 'items'],
  ])('%s is %s', (file, name) => {
    expect(fileOf({ file })).toBe(name);
  });
});

describe('the reading order', () => {
  it('is that of the groups, in each the spec before additions, then that of the documents', () => {
    const all = [
      operation('Unknown', 'unknown.graphql'),
      operation('More', 'additions/items.graphql', { isAddition: true }),
      operation('Last', 'last.graphql'),
      operation('Second', 'items.graphql'),
      operation('Third', 'items.graphql'),
      operation('First', 'first.graphql'),
    ];
    const groups = ['first', 'items', 'last'].map((file) => ({ file, name: file }));
    const order = inReadingOrder(all, { groups, examples: {} }).map(({ name }) => name);
    expect(order).toEqual(['First', 'Second', 'Third', 'More', 'Last', 'Unknown']);
    expect(all[0]?.name).toBe('Unknown');
  });
});
