import { buildSchema, type FragmentDefinitionNode, Kind, parse, print } from 'graphql';
import { expect, test } from 'vitest';
import { completed } from '../../rest/whole.ts';

const schema = buildSchema(`
  scalar JSON
  enum Colour { RED }
  type Owner { name: String }
  type Item {
    name: String!
    tags: [String!]!
    metadata: JSON
    colour: Colour
    owner: Owner
    price(currency: String): Float
    id: ID!
    version: Int!
    createdAt: String
  }
  type Query { item: Item }
`);

const fragment = (text: string) =>
  parse(text).definitions.find((node) => node.kind === Kind.FRAGMENT_DEFINITION) as FragmentDefinitionNode;
const plain = (text: string) => text.replaceAll(/\s+/g, ' ');

test('a whole fragment selects what it lists, then all other plain fields in the order of the type', () => {
  const written = fragment('fragment Item on Item @whole { version @etag item_id: id }');
  expect(plain(print(completed(schema, written)))).toBe(
    'fragment Item on Item @whole { version @etag item_id: id name tags metadata colour createdAt }',
  );
});

test('any other fragment, and one of an unknown type, stays as it is', () => {
  for (const text of ['fragment Item on Item { id }', 'fragment Item on Nothing @whole { id }']) {
    const written = fragment(text);
    expect(completed(schema, written)).toBe(written);
  }
});
