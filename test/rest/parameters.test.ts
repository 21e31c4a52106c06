import { type GraphQLSchema, Kind, parse, Source } from 'graphql';
import { describe, expect, it } from 'vitest';
import { facadeSchema } from '../../rest/directives.ts';
import { parametersOf, templateVariables } from '../../rest/parameters.ts';
import { toySchema } from './toy.ts';

const schema: GraphQLSchema = facadeSchema(
  toySchema({
    constraints: {
      'Shop.items.first': { min: 1, max: 100 },
      'Shop.items.tags': { maxItems: 2, item: { maxLength: 3 } },
      'Query.echo.text': { maxLength: 4 },
      'Filter.ownerId': { minLength: 2 },
    },
  }),
);

/** What is read of the variables of an operation, and the mistakes in them without their place. */
function read(variables: string, selection: string, { path = '/v1/x', type = 'query' } = {}) {
  const document = parse(new Source(`${type} A(${variables}) { ${selection} }`, 'file'));
  const [operation] = document.definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error(variables);
  const problems: string[] = [];
  const { parameters, body } = parametersOf(schema, document, operation, path, problems);
  return { parameters, body, problems: problems.map((problem) => problem.replace(/^file:1:\d+ /, '')) };
}
const problemsOf = (...args: Parameters<typeof read>) => read(...args).problems;
const mutation = { type: 'mutation' };
const echo = 'echo(text: $a)';

describe('the variables of a template', () => {
  it.each([
    ['/v1/items', []],
    ['/v1/{a}', ['a']],
    ['/v1/{b_c}/x/{a}/{}', ['b_c', 'a', '']],
  ])('%s: %j', (path, names) => {
    expect(templateVariables(path)).toEqual(names);
  });
});

describe('a parameter', () => {
  it('is all that the client and the reference must know of it', () => {
    const { parameters, body, problems } = read(
      '$trace: String @header(name: "X-Trace"), $limit: Int @range(max: 50), $item_id: ID!, $word: String! = "a"',
      'shop(id: $item_id) { items(first: $limit, after: $trace) { totalCount } } echo(text: $word)',
      { path: '/v1/{item_id}' },
    );
    expect([body, problems]).toEqual([null, []]);
    expect(parameters.map((parameter) => ({ ...parameter, type: String(parameter.type) }))).toEqual([
      {
        name: 'item_id',
        in: 'path',
        wireName: 'item_id',
        type: 'ID!',
        isRequired: true,
        isCommaList: false,
        defaultValue: undefined,
        constraints: {},
        description: '',
      },
      {
        name: 'limit',
        in: 'query',
        wireName: 'limit',
        type: 'Int',
        isRequired: false,
        isCommaList: false,
        defaultValue: 20,
        constraints: { min: 1, max: 50 },
        description: 'How many.',
      },
      {
        name: 'word',
        in: 'query',
        wireName: 'word',
        type: 'String!',
        isRequired: false,
        isCommaList: false,
        defaultValue: 'a',
        constraints: { maxLength: 4 },
        description: '',
      },
      {
        name: 'trace',
        in: 'header',
        wireName: 'x-trace',
        type: 'String',
        isRequired: false,
        isCommaList: false,
        defaultValue: undefined,
        constraints: {},
        description: '',
      },
    ]);
  });

  it('is in the order path as in the template, query and header as in the document', () => {
    const { parameters } = read(
      '$h2: String @header(name: "b"), $h1: String @header(name: "a"), $q2: String, $q1: String, $b: ID!, $a: ID!',
      'a: echo(text: $h2) b: echo(text: $h1) c: echo(text: $q2) d: echo(text: $q1) e: echo(ids: [$b, $a])',
      { path: '/v1/{a}/x/{b}' },
    );
    expect(parameters.map(({ name }) => name)).toEqual(['a', 'b', 'q2', 'q1', 'h2', 'h1']);
  });

  it('that is a list has the bounds of the list, and those of its items', () => {
    const { parameters } = read(
      '$tags: [String!] @oneOf(values: ["a"]) @commaList, $ids: [ID!] @oneOf(values: ["x"])',
      'shop(id: "1") { items(tags: $tags) { totalCount } } echo(ids: $ids)',
    );
    expect(parameters).toMatchObject([
      { isCommaList: true, constraints: { maxItems: 2, item: { maxLength: 3, oneOf: ['a'] } } },
      { isCommaList: false, constraints: { item: { oneOf: ['x'] } } },
    ]);
  });

  it('has the tightest bounds of all its places, the first description and the first default', () => {
    const { parameters, problems } = read(
      '$n: Int, $owner: ID',
      'a: echo(count: 1) shop(id: "1") { items(first: $n) { totalCount } } ' +
        'search(filter: { minCount: $n, ownerId: $owner })',
    );
    expect(problems).toEqual([]);
    expect(parameters).toMatchObject([
      { constraints: { min: 1, max: 100 }, defaultValue: 20, description: 'How many.' },
      { constraints: { minLength: 2 }, defaultValue: undefined, description: '' },
    ]);
  });

  it('has what a later place says where an earlier one says nothing', () => {
    const later = 'search(filter: { minCount: $n }) shop(id: "1") { items(first: $n) { totalCount } }';
    expect(read('$n: Int', later).parameters).toMatchObject([{ defaultValue: 20, description: 'How many.' }]);
  });

  it('that feeds nothing is free', () => {
    expect(read('$a: String', 'health')).toMatchObject({
      parameters: [{ name: 'a', in: 'query', constraints: {}, defaultValue: undefined, description: '' }],
      problems: [],
    });
  });

  it('may have null as default of its own', () => {
    expect(read('$n: Int = null', 'shop(id: "1") { items(first: $n) { totalCount } }').parameters).toMatchObject([
      { defaultValue: null, isRequired: false },
    ]);
  });

  it('is required if it may not be null and has no default', () => {
    const required = (variable: string) => read(variable, echo).parameters[0]?.isRequired;
    expect(['$a: String!', '$a: String! = "a"', '$a: String', '$a: String = "a"'].map(required)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('of a type that does not exist is left to the check of the document', () => {
    expect(read('$a: Nope', echo)).toEqual({ parameters: [], body: null, problems: [] });
  });
});

describe('a parameter is refused', () => {
  const path = '/v1/{a}';
  const inPath = "Variable '$a': a variable of the path is a non-null scalar without a default.";

  it.each<[string, string, string[]]>([
    ['$a: String', echo, [inPath]],
    ['$a: String! = "a"', echo, [inPath]],
    ['$a: [ID!]!', 'echo(ids: $a)', [inPath]],
    ['$a: String! @header(name: "a")', echo, ["Variable '$a': @header on a variable of the path."]],
    ['$a: String!', echo, []],
    ['$a: Colour!', 'shop(id: "1") { items(colour: $a) { totalCount } }', []],
  ])('in the path: %s', (variables, selection, problems) => {
    expect(problemsOf(variables, selection, { path })).toEqual(problems);
  });

  it.each<[string, string, string[]]>([
    [
      '$a: Filter!',
      'search(filter: $a)',
      ["Variable '$a': the type Filter! needs @body; a parameter is a scalar, an enum or a list of them."],
    ],
    [
      '$a: [Filter!]',
      'echo(text: $a)',
      ["Variable '$a': the type [Filter!] needs @body; a parameter is a scalar, an enum or a list of them."],
    ],
    ['$a: [ID!] @header(name: "a")', 'echo(ids: $a)', ["Variable '$a': @header needs a single value."]],
    ['$a: String @header(name: "a")', echo, []],
    ['$a: String @commaList', echo, ["Variable '$a': @commaList needs a list type."]],
    ['$a: [ID!]! @commaList', 'echo(ids: $a)', []],
    ['$a: Int @range', 'echo(count: $a)', ["Variable '$a': @range needs min, max or both."]],
    ['$a: Int = 9 @range(max: 5)', 'echo(count: $a)', ["Variable '$a': the default is outside of @range."]],
    ['$a: [ID!] = ["b"] @oneOf(values: ["a"])', 'echo(ids: $a)', ["Variable '$a': the default 'b' is not in @oneOf."]],
  ])('elsewhere: %s', (variables, selection, problems) => {
    expect(problemsOf(variables, selection)).toEqual(problems);
  });

  it('at its place in the file', () => {
    const document = parse(new Source('query A(\n  $a: String @commaList) { echo(text: $a) }', 'file'));
    const problems: string[] = [];
    parametersOf(schema, document, document.definitions[0] as never, '/v1/x', problems);
    expect(problems).toEqual(["file:2:3 Variable '$a': @commaList needs a list type."]);
  });
});

describe('a body', () => {
  const update = 'updateItem(id: "1", input: $a)';

  it('is one input object', () => {
    const { parameters, body, problems } = read('$a: ItemInput! @body', 'createItem(input: $a) { id }', mutation);
    expect([parameters, problems]).toEqual([[], []]);
    expect({ ...body, type: String(body?.type) }).toEqual({
      name: 'a',
      type: 'ItemInput',
      isRequired: true,
      description: '',
      fileField: null,
      takesForm: false,
    });
  });

  it('may be left out if it may be null or has a default', () => {
    const isRequired = (variable: string) => read(variable, 'plant(root: $a)', mutation).body?.isRequired;
    expect(isRequired('$a: UpdateItemInput! @body')).toBe(true);
    expect(isRequired('$a: UpdateItemInput @body')).toBe(false);
    expect(isRequired('$a: UpdateItemInput! = {} @body')).toBe(false);
  });

  it('may be a form, with or without a file', () => {
    expect(read('$a: UpdateItemInput! @body @form', update, mutation)).toMatchObject({
      body: { takesForm: true, fileField: null },
      problems: [],
    });
    expect(
      read('$a: PictureInput! @upload(file: "picture")', 'addPicture(id: "1", input: $a)', mutation),
    ).toMatchObject({ body: { takesForm: false, fileField: 'picture' }, problems: [] });
  });

  it('is described by its type, else by the argument that it feeds', () => {
    const described = (text: string) => {
      const copy = toySchema();
      const argument = copy.getMutationType()?.getFields().updateItem?.args[1];
      Object.assign(argument ?? {}, { description: 'The changes.' });
      Object.assign(copy.getType('UpdateItemInput') ?? {}, { description: text || undefined });
      const document = parse('mutation A($a: UpdateItemInput! @body) { updateItem(id: "1", input: $a) }');
      const { body } = parametersOf(facadeSchema(copy), document, document.definitions[0] as never, '/v1/x', []);
      return body?.description;
    };
    expect([described('What changes.'), described('')]).toEqual(['What changes.', 'The changes.']);
  });

  it.each<[string, string[]]>([
    ['$a: ID! @body', ["Variable '$a': @body needs an input object type."]],
    ['$a: [UpdateItemInput!] @body', ["Variable '$a': @body needs an input object type."]],
    ['$a: ID! @upload(file: "x")', ["Variable '$a': @upload needs an input object type."]],
    ['$a: PictureInput! @upload(file: "x")', ["Variable '$a': @upload needs a field 'x' of the type ID."]],
    ['$a: PictureInput! @upload(file: "count")', ["Variable '$a': @upload needs a field 'count' of the type ID."]],
    ['$a: UpdateItemInput @body @range(min: 1)', ["Variable '$a': @range and @body exclude each other."]],
    ['$a: UpdateItemInput @body @oneOf(values: ["a"])', ["Variable '$a': @oneOf and @body exclude each other."]],
    ['$a: UpdateItemInput @body @header(name: "a")', ["Variable '$a': @header and @body exclude each other."]],
    ['$a: UpdateItemInput @body @lastEventId', ["Variable '$a': @lastEventId and @body exclude each other."]],
    [
      '$a: PictureInput @upload(file: "picture") @commaList',
      ["Variable '$a': @commaList and @upload exclude each other."],
    ],
    ['$a: Tree! @body', ["Variable '$a': the input type 'Tree' contains itself."]],
    ['$a: Clash! @body', ["Variable '$a': two fields of 'Clash' have the same name in REST."]],
    [
      '$a: UpdateItemInput! @body, $b: UpdateItemInput @body',
      ["Variable '$b': there can be only one variable with @body or @upload."],
    ],
  ])('is refused: %s', (variables, problems) => {
    expect(problemsOf(variables, update, mutation)).toEqual(problems);
  });

  it('cannot be part of the path', () => {
    expect(problemsOf('$a: UpdateItemInput! @body', update, { ...mutation, path: '/v1/{a}' })).toEqual([
      "Variable '$a': the body cannot be part of the path.",
    ]);
  });

  it('is the first of two, and a wrong one is none', () => {
    const { body } = read('$a: ID @body, $b: UpdateItemInput @body, $c: ItemInput @body', update, mutation);
    expect(body?.name).toBe('b');
    expect(problemsOf('$a: ID @body, $b: UpdateItemInput @body', update, mutation)).toEqual([
      "Variable '$a': @body needs an input object type.",
    ]);
  });
});
