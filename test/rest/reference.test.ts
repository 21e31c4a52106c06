import { afterAll, describe, expect, it } from 'vitest';
import { CompileError } from '../../rest/documents.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import { fileOf, inReadingOrder, readReference } from '../../rest/reference.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

const operation = (name: string, file: string, more: Partial<CompiledOperation> = {}) =>
  ({ name, file, body: null, isAddition: false, ...more }) as CompiledOperation;
const withBody = { body: {} } as Partial<CompiledOperation>;
const operations = [
  operation('CreateItem', 'items.graphql', withBody),
  operation('ListItems', 'items.graphql'),
  operation('Health', 'additions/health.graphql'),
];
const read = (files: Record<string, string>) => readReference(folderOf({ 'a.graphql': '', ...files }), operations);

describe('what the reference has beyond the documents', () => {
  it('is nothing but a group for each file, if nobody says more', () => {
    expect(read({})).toEqual({
      groups: [
        { file: 'items', name: 'items' },
        { file: 'health', name: 'health' },
      ],
      examples: {},
    });
  });

  it('are groups in their order, before files without a group, and examples of bodies', () => {
    expect(
      read({
        'groups.json': '[{ "file": "health", "name": "Health", "description": "Is it up?" }]',
        'examples.json': '{ "CreateItem": { "display_name": "hat" } }',
      }),
    ).toEqual({
      groups: [
        { file: 'health', name: 'Health', description: 'Is it up?' },
        { file: 'items', name: 'items' },
      ],
      examples: { CreateItem: { display_name: 'hat' } },
    });
  });

  it('may name only files and operations that exist', () => {
    const wrong = () =>
      read({
        'groups.json': '[{ "file": "itmes", "name": "Items" }, { "file": "items", "name": "Items" }]',
        'examples.json': '{ "ListItems": {}, "CreateItem": {}, "Nothing": {} }',
      });
    expect(wrong).toThrow(CompileError);
    try {
      wrong();
    } catch (error) {
      expect((error as CompileError).problems).toEqual([
        "groups.json: there is no file 'itmes.graphql'.",
        "examples.json: there is no operation 'ListItems' with a body.",
        "examples.json: there is no operation 'Nothing' with a body.",
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
