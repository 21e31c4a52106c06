import {
  buildSchema,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLObjectType,
  Kind,
  parse,
  parseType,
  typeFromAST,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { JsonSchemas } from '../../rest/json-schema.ts';
import { KEY, reference, TEXT } from '../../rest/schema-parts.ts';
import { SelectionReader } from '../../rest/selection.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';

const schema = buildSchema(`
  scalar Moment
  scalar Counter
  scalar Address @specifiedBy(url: "https://example.test/address")
  scalar Free
  scalar Plain
  scalar Labels
  scalar Flags
  enum Colour { RED LIGHT_BLUE }
  type Query { item: Item! items: [Item!]! label: Labels! }
  "A thing to sell."
  type Item {
    id: ID!
    "What it is called."
    itemName: String!
    count: Int
    size: Counter!
    ratio: Float!
    isNew: Boolean!
    colour: Colour
    colours: [Colour!]!
    grid: [[Int]]
    since: Moment!
    free: Free
    plain: Plain!
    labels: Labels!
    owner: Owner
    maker: Owner!
    others: [Owner!]!
  }
  type Owner { name: String! town: Town! shade: Colour }
  type Town { townName: String! }
  "What makes an item."
  input ItemInput { "Shown to all." itemName: String! count: Int! = 3 note: String colour: Colour = RED inner: Inner }
  input Inner { parts: [Inner!] }
  input Open { name: String rest: Labels! }
  input Loose { name: String rest: Free! }
  input Closed { name: String }
`);
const jsonType = (name: string, extensions: object) => Object.assign(schema.getType(name)!, { extensions });
jsonType('Moment', { jsonType: 'date-time' });
jsonType('Counter', { jsonType: 'int53' });
jsonType('Address', { jsonType: 'string' });
jsonType('Free', { jsonType: 'any' });
jsonType('Plain', { jsonType: 'object' });
jsonType('Labels', { jsonType: 'object', jsonValues: 'string' });
jsonType('Flags', { jsonType: 'object', jsonValues: 'boolean' });
jsonType('Open', { unknownKeys: 'rest' });
jsonType('Loose', { unknownKeys: 'rest' });
jsonType('Closed', { isClosed: true });

const typeOf = (text: string) => typeFromAST(schema, parseType(text) as never) as GraphQLInputType;
const objectOf = (name: string) => schema.getType(name) as GraphQLInputObjectType;
/** The schema of an input, and the components that it refers to. */
function inputOf(type: string, constraints: Constraints = {}, isText = false) {
  const schemas = new JsonSchemas();
  return { shown: schemas.input(typeOf(type), constraints, isText), components: schemas.components };
}
const input = (...args: Parameters<typeof inputOf>) => inputOf(...args).shown;
const NULL = { type: 'null' };

describe('the schema of an input', () => {
  it.each([
    ['String!', { type: 'string', pattern: TEXT }],
    ['ID!', { type: 'string', pattern: TEXT }],
    ['Int!', { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }],
    ['Counter!', { type: 'integer', format: 'int64', minimum: 1 - 2 ** 53, maximum: 2 ** 53 - 1 }],
    ['Float!', { type: 'number' }],
    ['Boolean!', { type: 'boolean' }],
    ['Moment!', { type: 'string', format: 'date-time' }],
    ['Address!', { type: 'string', pattern: TEXT, externalDocs: { url: 'https://example.test/address' } }],
    ['Colour!', { type: 'string', enum: ['red', 'light_blue'] }],
    ['Free!', {}],
    ['Plain!', { type: 'object', propertyNames: { pattern: KEY }, additionalProperties: true }],
    [
      'Labels!',
      {
        type: 'object',
        propertyNames: { minLength: 1, maxLength: 64, pattern: KEY },
        additionalProperties: { type: 'string', pattern: TEXT },
      },
    ],
    [
      'Flags!',
      {
        type: 'object',
        propertyNames: { minLength: 1, maxLength: 64, pattern: KEY },
        additionalProperties: { type: 'boolean' },
      },
    ],
    ['[String!]!', { type: 'array', items: { type: 'string', pattern: TEXT } }],
    ['[[Boolean!]!]!', { type: 'array', items: { type: 'array', items: { type: 'boolean' } } }],
  ])('says what %s is on the wire', (type, expected) => {
    expect(input(type)).toEqual(expected);
  });

  it.each([
    ['String', { type: ['string', 'null'], pattern: TEXT }],
    ['Float', { type: ['number', 'null'] }],
    ['Int', { type: ['integer', 'null'], format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }],
    ['Moment', { anyOf: [{ type: 'string', format: 'date-time' }, NULL] }],
    ['Colour', { type: ['string', 'null'], enum: ['red', 'light_blue', null] }],
    ['[Float]', { type: ['array', 'null'], items: { type: ['number', 'null'] } }],
    ['Free', {}],
    ['Inner', { anyOf: [reference('Inner'), NULL] }],
  ])('allows null for %s', (type, expected) => {
    expect(input(type)).toEqual(expected);
  });

  it('has no null where it cannot be sent, or clears nothing', () => {
    expect(input('Float', {}, true)).toEqual({ type: 'number' });
    expect(input('[Float]', {}, true)).toEqual({ type: 'array', items: { type: 'number' } });
    expect(input('Float', { notNull: true })).toEqual({ type: 'number' });
    expect(input('[Float]', { notNull: true })).toEqual({ type: 'array', items: { type: ['number', 'null'] } });
  });

  it.each<[string, Constraints, object]>([
    ['Int!', { min: 1, max: 9 }, { type: 'integer', format: 'int32', minimum: 1, maximum: 9 }],
    ['Float!', { min: 0 }, { type: 'number', minimum: 0 }],
    ['String!', { minLength: 1, maxLength: 5 }, { type: 'string', minLength: 1, maxLength: 5, pattern: TEXT }],
    ['String!', { maxBytes: 10 }, { type: 'string', 'x-max-bytes': 10, pattern: TEXT }],
    ['String!', { pattern: 'a|b' }, { type: 'string', pattern: '^(?:a|b)$' }],
    ['String!', { pattern: 'a', oneOf: ['a'] }, { type: 'string', pattern: '^(?:a)$', enum: ['a'] }],
    ['String!', { oneOf: ['a', 'b'] }, { type: 'string', enum: ['a', 'b'] }],
    ['String!', { format: 'uri' }, { type: 'string', format: 'uri' }],
    ['String!', { format: 'email', sensitive: true }, { type: 'string', format: 'email' }],
    ['String!', { sensitive: true }, { type: 'string', format: 'password', pattern: TEXT }],
    ['Moment!', { minLength: 1, sensitive: true }, { type: 'string', format: 'date-time' }],
    ['Boolean!', { min: 1, minLength: 1 }, { type: 'boolean' }],
    ['[Float!]!', { minItems: 1, maxItems: 2 }, { type: 'array', items: { type: 'number' }, minItems: 1, maxItems: 2 }],
    [
      '[String!]!',
      { item: { maxLength: 3 } },
      { type: 'array', items: { type: 'string', maxLength: 3, pattern: TEXT } },
    ],
    ['Free!', { maxBytes: 10 }, { 'x-max-bytes': 10 }],
    [
      'Plain!',
      { maxBytes: 10, maxItems: 2 },
      {
        type: 'object',
        propertyNames: { pattern: KEY },
        additionalProperties: true,
        maxProperties: 2,
        'x-max-bytes': 10,
      },
    ],
    [
      'Labels!',
      { maxItems: 2, item: { maxLength: 3 } },
      {
        type: 'object',
        propertyNames: { minLength: 1, maxLength: 64, pattern: KEY },
        additionalProperties: { type: 'string', maxLength: 3, pattern: TEXT },
        maxProperties: 2,
      },
    ],
  ])('states the bounds of %s: %j', (type, constraints, expected) => {
    expect(input(type, constraints)).toEqual(expected);
  });

  it('refers to the form of a JSON object', () => {
    const shape = { name: 'Recipe', schema: { type: 'object', additionalProperties: false }, check: () => [] };
    const { shown, components } = inputOf('Plain!', { shape, maxBytes: 10 });
    expect(shown).toEqual({ ...reference('Recipe'), 'x-max-bytes': 10 });
    expect(components.Recipe).toEqual({
      type: 'object',
      propertyNames: { pattern: KEY },
      additionalProperties: false,
    });
  });

  it('bounds a free value by no schema that contains itself, which generators of clients cannot read', () => {
    for (const type of ['Free', 'Plain', '[Free!]']) expect(inputOf(type).components).toEqual({});
  });
});

describe('the schema of an input object', () => {
  it('is a component with its name, with the fields in the names of REST', () => {
    const { shown, components } = inputOf('ItemInput!');
    expect(shown).toEqual(reference('ItemInput'));
    expect(components.ItemInput).toEqual({
      type: 'object',
      description: 'What makes an item.',
      properties: {
        item_name: { type: 'string', pattern: TEXT, description: 'Shown to all.' },
        count: { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1, default: 3 },
        note: { type: ['string', 'null'], pattern: TEXT },
        colour: { type: ['string', 'null'], enum: ['red', 'light_blue', null], default: 'red' },
        inner: { anyOf: [reference('Inner'), NULL] },
      },
      required: ['item_name'],
      propertyNames: { not: { const: '__proto__' } },
    });
    // it contains itself
    expect(components.Inner).toEqual({
      type: 'object',
      properties: { parts: { type: ['array', 'null'], items: reference('Inner') } },
      propertyNames: { not: { const: '__proto__' } },
    });
  });

  it('is another one for a form, where a field is the file', () => {
    const schemas = new JsonSchemas();
    expect(schemas.inputObject(objectOf('Closed'))).toEqual(reference('Closed'));
    expect(schemas.inputObject(objectOf('Closed'), 'name')).toEqual(reference('ClosedForm'));
    const closed = { type: 'object', additionalProperties: false };
    expect(schemas.components).toEqual({
      Closed: { ...closed, properties: { name: { type: ['string', 'null'], pattern: TEXT } } },
      ClosedForm: { ...closed, properties: { name: { type: 'string', format: 'binary' } } },
    });
  });

  it('says of unknown keys what the field that receives them says', () => {
    expect(inputOf('Open').components.Open).toEqual({
      type: 'object',
      properties: { name: { type: ['string', 'null'], pattern: TEXT } },
      propertyNames: { minLength: 1, maxLength: 64, pattern: KEY },
      additionalProperties: { type: 'string', pattern: TEXT },
    });
  });
});

/** The schema of what a selection of `Query` shows. */
function outputOf(text: string, schemas = new JsonSchemas()) {
  const document = parse(text);
  const fragments = new Map(
    document.definitions.flatMap((node) =>
      node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [],
    ),
  );
  const [operation] = document.definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error(text);
  const root = schema.getQueryType() as GraphQLObjectType;
  const shape = new SelectionReader(schema, fragments, []).shapeOf(root, [operation.selectionSet]);
  return { shown: schemas.output(root, shape) as { anyOf?: unknown; type: unknown; properties: object }, schemas };
}
const item = (fields: string) =>
  (outputOf(`{ item { ${fields} } }`).shown.properties as { item: { properties: object; required?: string[] } }).item;

describe('the schema of an answer', () => {
  it('says what each field is on the wire, with its description, and that it is there', () => {
    const shown = item('id itemName count size ratio isNew colour colours grid since free plain labels');
    expect(shown).toEqual({
      type: 'object',
      properties: {
        id: { type: 'string' },
        item_name: { type: 'string', description: 'What it is called.' },
        count: { type: ['integer', 'null'], format: 'int32' },
        size: { type: 'integer', format: 'int64' },
        ratio: { type: 'number' },
        is_new: { type: 'boolean' },
        colour: { type: ['string', 'null'], enum: ['red', 'light_blue', null] },
        colours: { type: 'array', items: { type: 'string', enum: ['red', 'light_blue'] } },
        grid: {
          type: ['array', 'null'],
          items: { type: ['array', 'null'], items: { type: ['integer', 'null'], format: 'int32' } },
        },
        since: { type: 'string', format: 'date-time' },
        free: {},
        plain: { type: 'object', additionalProperties: true },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
      },
      required: Object.keys(shown.properties),
    });
  });

  it('has objects and lists of them as they were selected', () => {
    expect(item('owner { name } others { name }').properties).toEqual({
      owner: { type: ['object', 'null'], properties: { name: { type: 'string' } }, required: ['name'] },
      others: {
        type: 'array',
        items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
    });
  });

  it('has the name of a type, and leaves out what may be missing', () => {
    expect(item('__typename id @include(if: true)')).toEqual({
      type: 'object',
      properties: { __typename: { type: 'string' }, id: { type: 'string' } },
      required: ['__typename'],
    });
    expect(item('id @skip(if: true)')).toEqual({ type: 'object', properties: { id: { type: 'string' } } });
  });

  it('has fields that were lifted, null where their object may be null, missing where it may be missing', () => {
    expect(item('maker @flatten { name town @flatten { townName } }')).toEqual({
      type: 'object',
      properties: { name: { type: 'string' }, town_name: { type: 'string' } },
      required: ['name', 'town_name'],
    });
    const both = { type: ['string', 'null'] };
    expect(item('owner @flatten { name __typename town @flatten { townName } }')).toEqual({
      type: 'object',
      properties: { name: both, __typename: both, town_name: both },
      required: ['name', '__typename', 'town_name'],
    });
    expect(item('id maker @flatten @include(if: true) { name town @flatten { townName } }')).toMatchObject({
      properties: { name: { type: 'string' }, town_name: { type: 'string' } },
      required: ['id'],
    });
    expect(item('id owner @flatten { shade town { townName } }').properties).toMatchObject({
      shade: { type: ['string', 'null'], enum: ['red', 'light_blue', null] },
      town: { type: ['object', 'null'] },
    });
  });

  it('of a whole fragment is a component with its name, once', () => {
    const { shown, schemas } = outputOf(`
      { item { ...Thing } items { ...Thing } }
      fragment Thing on Item { id }
    `);
    expect(shown).toMatchObject({
      properties: { item: reference('Thing'), items: { type: 'array', items: reference('Thing') } },
    });
    expect(schemas.components).toEqual({
      Thing: {
        type: 'object',
        description: 'A thing to sell.',
        properties: { id: { type: 'string' } },
        required: ['id'],
      },
    });
  });

  it('of a fragment has another name where an input has it already', () => {
    const schemas = new JsonSchemas();
    schemas.input(typeOf('Inner'), {});
    const { shown } = outputOf('{ item { ...Inner } items { ...Inner } } fragment Inner on Item { id }', schemas);
    expect(shown).toMatchObject({
      properties: { item: reference('InnerOutput'), items: { items: reference('InnerOutput') } },
    });
    expect(Object.keys(schemas.components)).toEqual(['Inner', 'InnerOutput']);
  });

  it('of an object without a selection is any object', () => {
    expect(new JsonSchemas().output(schema.getQueryType()!, null)).toEqual({ type: ['object', 'null'] });
  });
});
