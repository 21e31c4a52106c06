import {
  buildSchema,
  type GraphQLCompositeType,
  type GraphQLOutputType,
  Kind,
  parse,
  parseType,
  typeFromAST,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { reshapeOf } from '../../rest/output.ts';
import { SelectionReader } from '../../rest/selection.ts';

const schema = buildSchema(`
  type Query { item: Item }
  interface Named { name: String }
  type Item implements Named {
    id: ID name: String colour: Colour colours: [Colour] size: Size owner: Owner owners: [Owner] grid: [[Owner]]
  }
  type Owner implements Named { name: String colour: Colour town: Town }
  type Town { townName: String size: Size }
  enum Colour { RED LIGHT_BLUE }
  enum Size { small large }
  enum Mixed { small LIGHT_BLUE }
`);
const typeOf = (text: string) => typeFromAST(schema, parseType(text) as never) as GraphQLOutputType;

/** The change that a result needs whose type and selection are these. */
function reshape(type: string, selection: string) {
  const [operation] = parse(selection).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error(selection);
  const named = schema.getType(/\w+/.exec(type)![0]) as GraphQLCompositeType;
  return reshapeOf(typeOf(type), new SelectionReader(schema, new Map(), []).shapeOf(named, [operation.selectionSet]));
}
/** The text of a result after the change: the order of its keys counts. */
const changed = (type: string, selection: string, value: unknown) =>
  JSON.stringify(reshape(type, selection)!(structuredClone(value)));

describe('a result', () => {
  it('needs no change where its names are right already', () => {
    expect(reshape('Item', '{ id size owner { town { size } } __typename }')).toBeNull();
    expect(reshapeOf(typeOf('Size'), null)).toBeNull();
    expect(reshapeOf(typeOf('String'), null)).toBeNull();
    expect(reshapeOf(null, null)).toBeNull();
  });

  it('has the values of enums in their REST names', () => {
    const colour = reshapeOf(typeOf('[[Colour]]'), null)!;
    expect(['RED', 'LIGHT_BLUE', null, undefined].map(colour)).toEqual(['red', 'light_blue', null, null]);
    expect(['small', 'LIGHT_BLUE'].map(reshapeOf(typeOf('Mixed'), null)!)).toEqual(['small', 'light_blue']);
    expect(colour([['RED'], null, ['LIGHT_BLUE', null]])).toEqual([['red'], null, ['light_blue', null]]);
    expect(
      changed('Item', '{ id colour colours owner { colour } }', {
        id: 'RED',
        colour: 'LIGHT_BLUE',
        colours: ['RED'],
        owner: { colour: 'RED' },
      }),
    ).toBe('{"id":"RED","colour":"light_blue","colours":["red"],"owner":{"colour":"red"}}');
  });

  it('gets no key that it did not have', () => {
    expect(changed('Item', '{ id colour owner { colour } }', { id: 'a' })).toBe('{"id":"a"}');
    expect(changed('Item', '{ id colour owner { colour } }', { owner: null })).toBe('{"owner":null}');
    expect(changed('Item', '{ id colour owner @flatten { name } }', { _flat_owner: { name: 'n' } })).toBe(
      '{"name":"n"}',
    );
  });

  it('is changed in lists of any depth, and where it is null', () => {
    const town = '{ grid { town @flatten { townName } } }';
    expect(changed('Item', town, { grid: [[{ _flat_town: { town_name: 't' } }, null], null] })).toBe(
      '{"grid":[[{"town_name":"t"},null],null]}',
    );
    expect(changed('[Item]', '{ colour }', [{ colour: 'RED' }, null])).toBe('[{"colour":"red"},null]');
    expect(reshape('Item', '{ colour }')!(null)).toBeNull();
    expect(reshape('Item', '{ colour }')!(undefined)).toBeUndefined();
  });

  it('has the fields of a lifted object in its place, changed as all others', () => {
    const selection = '{ id owner @flatten { name colour town @flatten { townName size } } colour owners { colour } }';
    const rest = { colour: 'RED', owners: [{ colour: 'LIGHT_BLUE' }] };
    const full = { name: 'n', colour: 'LIGHT_BLUE', _flat_town: { town_name: 't', size: 'small' } };
    // the colour of the item comes later and wins; documents with two of a name are refused
    expect(changed('Item', selection, { id: '1', _flat_owner: full, ...rest })).toBe(
      '{"id":"1","name":"n","colour":"red","town_name":"t","size":"small","owners":[{"colour":"light_blue"}]}',
    );
  });

  it('has null for each field of a lifted object that is null, also of those within it', () => {
    const selection = '{ id owner @flatten { name town @flatten { townName size } } }';
    const nothing = '{"id":"1","name":null,"town_name":null,"size":null}';
    expect(changed('Item', selection, { id: '1', _flat_owner: null })).toBe(nothing);
    expect(changed('Item', selection, { id: '1' })).toBe(nothing);
    expect(changed('Item', selection, { id: '1', _flat_owner: { name: 'n', _flat_town: null } })).toBe(
      '{"id":"1","name":"n","town_name":null,"size":null}',
    );
  });

  it('lacks what was left out by a condition, and has null where it was there and null', () => {
    const selection = '{ name ... on Item { id owner @flatten { town { size } colour } } }';
    expect(changed('Named', selection, { name: 'n' })).toBe('{"name":"n"}');
    expect(changed('Named', selection, { name: 'n', id: '1', _flat_owner: null })).toBe(
      '{"name":"n","id":"1","town":null,"colour":null}',
    );
    expect(changed('Named', selection, { name: 'n', id: '1', _flat_owner: { town: null, colour: 'RED' } })).toBe(
      '{"name":"n","id":"1","town":null,"colour":"red"}',
    );
  });
});
