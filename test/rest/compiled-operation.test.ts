import { print } from 'graphql';
import { afterAll, describe, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { CompileError } from '../../rest/documents.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

afterAll(removeFolders);

const schema = toySchema();
const { shop, item, health } = schema.getQueryType()!.getFields();
Object.assign(shop!.extensions, { mayFail: ['UPSTREAM_ERROR'] });
Object.assign(item!.extensions, { mayFail: ['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'] });

const compile = (documents: string | Record<string, string>) => compileOperations(schema, folderOf(documents));
const only = (document: string) => compile(document)[0]!;
const rest = (method: string, more = '') => `@rest(method: ${method}, path: "/v1/x" ${more})`;

/** The mistakes that stop the start, with places that do not depend on the folder. */
function problemsOf(documents: string | Record<string, string>): string[] {
  try {
    compile(documents);
    return [];
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    return error.problems.map((problem) => problem.replaceAll(/\S*operations-\w+\//g, ''));
  }
}

describe('an operation', () => {
  it('has its route, its type and what the schema says of its root field', () => {
    expect(
      only('query Shop($id: ID!) @rest(method: GET, path: "/v1/shops/{id}", errors: C) { shop(id: $id) @body { id } }'),
    ).toMatchObject({
      name: 'Shop',
      type: 'query',
      method: 'GET',
      path: '/v1/shops/{id}',
      url: '/v1/shops/:id',
      errors: 'C',
      description: 'A shop.',
      mayFail: ['UPSTREAM_ERROR'],
      isPublic: false,
      body: null,
      rootField: 'shop',
    });
    expect(only(`mutation A ${rest('POST')} { removeItem(id: "1") @body }`)).toMatchObject({
      type: 'mutation',
      description: '',
      mayFail: [],
      rootField: 'removeItem',
    });
    expect(only(`query A ${rest('GET')} { health @body }`).isPublic).toBe(health!.extensions.access === 'public');
  });

  it('may fail as any of its root fields may', () => {
    const text = `query A ${rest('GET')} { shop(id: "1") { id @body } ...More }
      fragment More on Query { item(id: "1") { id } }`;
    expect(only(text).mayFail).toEqual(['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT']);
  });

  it.each([
    ['', '', 200],
    ['status: 201', '', 201],
    ['status: 204', '', 204],
    ['', '@empty', 204],
    ['status: 204', '@empty', 204],
    ['', '@nothing', 200],
    ['status: 202', '@nothing', 202],
  ])('answers the status that its document says: %s %s', (status, mark, expected) => {
    expect(only(`mutation A ${rest('POST', status)} { removeItem(id: "1") @body ${mark} }`).status).toBe(expected);
  });

  it('knows where the arguments of its root field come from', () => {
    const text = `query Echo($word: String!, $n: Int, $from: String @header(name: "x"), $ids: [ID!], $on: DateTime)
      @rest(method: GET, path: "/v1/{word}") {
      echo(text: $word, count: $n, header: $from, ids: ["a"], flag: true) @body
      more: echo(ids: $ids, on: $on)
    }`;
    expect(only(text).rootArguments).toEqual({
      text: { in: 'params', name: 'word' },
      count: { in: 'query', name: 'n' },
    });
    expect(only(`query A ${rest('GET')} { health @body }`).rootArguments).toEqual({});
    const created = only(
      `mutation A($input: ItemInput! @body) ${rest('POST')} { createItem(input: $input) @body { id } }`,
    );
    expect([created.rootArguments, created.body?.name]).toEqual([{}, 'input']);
  });

  it('has as its root field the first that it selects itself', () => {
    const text = `query A ${rest('GET')} { ...F health @body fault } fragment F on Query { several { first } }`;
    expect(only(text).rootField).toBe('health');
    expect(only(`query A ${rest('GET')} { ... on Query { health @body } }`)).toMatchObject({
      rootField: '',
      rootArguments: {},
    });
  });

  it('is executed with its own fragments only, each once, in the names of REST', () => {
    const [a] = compile({
      'a.graphql': `query A ${rest('GET')} { item(id: "1") @body { ...One ...Two } }`,
      'fragments.graphql': `
        fragment One on Item { ...Deep ownerId }
        fragment Two on Item { ...Deep }
        fragment Deep on Item { createdAt owner { ...Who } }
        fragment Who on Owner { fullName }
        fragment Unused on Item { metadata }
      `,
    });
    expect(print(a!.document).replaceAll(/\s+/g, ' ')).toBe(
      'query A { item(id: "1") { ...One ...Two } } ' +
        'fragment One on Item { ...Deep owner_id: ownerId } ' +
        'fragment Deep on Item { created_at: createdAt owner { ...Who } } ' +
        'fragment Who on Owner { full_name: fullName } ' +
        'fragment Two on Item { ...Deep }',
    );
  });
});

describe('mistakes', () => {
  it('in one operation do not hide those of others', () => {
    expect(
      problemsOf({
        'a.graphql': `query A ${rest('GET')} { helth @body }`,
        'b.graphql': 'query B { health @body }',
        'c.graphql': 'query C @rest(method: GET, path: "/v1/c/") { health }',
        'd.graphql': 'fragment D on Item { id @body name @empty }',
      }),
    ).toEqual([
      expect.stringContaining('a.graphql:1:46 Cannot query field "helth"'),
      'd.graphql:1:25 @body cannot stand in a fragment.',
      'd.graphql:1:36 @empty cannot stand in a fragment.',
      "b.graphql:1:1 Operation 'B' has no @rest.",
      expect.stringContaining("c.graphql:1:9 '/v1/c/' is no path template"),
      "c.graphql:1:1 Operation 'C' has no @body field.",
    ]);
  });

  it.each(['GET', 'DELETE'])('a body on %s', (method) => {
    const text = `mutation A($body: UpdateItemInput! @body) ${rest(method)} {
      updateItem(id: "1", input: $body) @body }`;
    expect(problemsOf(text)).toEqual([`shop.graphql:1:1 A ${method} has no body.`]);
    expect(problemsOf(text.replace(method, 'PATCH'))).toEqual([]);
  });

  it('a stream that is not read', () => {
    const text = (method: string) => `subscription A ${rest(method)} { events(itemId: "1") @body { id } }`;
    expect(problemsOf(text('PUT'))).toEqual(['shop.graphql:1:1 A subscription is a GET or a POST route.']);
    expect([problemsOf(text('GET')), problemsOf(text('POST'))]).toEqual([[], []]);
  });

  it('two operations for one route', () => {
    const of = (name: string, method: string, path: string) =>
      `query ${name} @rest(method: ${method}, path: "${path}") { health @body }\n`;
    expect(problemsOf(of('A', 'GET', '/v1/a') + of('B', 'PUT', '/v1/a') + of('C', 'GET', '/v1/b'))).toEqual([]);
    expect(problemsOf(of('A', 'GET', '/v1/a') + of('B', 'GET', '/v1/a') + of('C', 'GET', '/v1/a'))).toEqual([
      'shop.graphql:2:1 The route GET /v1/a is already that of shop.graphql:1:1 A.',
      'shop.graphql:3:1 The route GET /v1/a is already that of shop.graphql:2:1 B.',
    ]);
  });

  it('keys that REST makes equal', () => {
    const text = `query A ${rest('GET')} { item(id: "1") @body { ownerId\n owner_id: name } }`;
    expect(problemsOf(text)).toEqual([expect.stringContaining('Fields "owner_id" conflict')]);
  });

  it('a fragment that is never used is none', () => {
    expect(problemsOf(`query A ${rest('GET')} { health @body } fragment F on Item { id }`)).toEqual([]);
    expect(problemsOf(`query A ${rest('GET')} { health @body } fragment F on Item { it }`)).toEqual([
      expect.stringContaining('Cannot query field "it" on type "Item"'),
    ]);
  });
});
