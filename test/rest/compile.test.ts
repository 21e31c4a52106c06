import { readFileSync } from 'node:fs';
import { print } from 'graphql';
import { afterAll, describe, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { readDocuments } from '../../rest/documents.ts';
import { isBuilt } from '../../scripts/build.mjs';
import { buildChecksFile, operationsDir } from '../../src/paths.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

afterAll(removeFolders);

const compile = (documents: string | Record<string, string>) => compileOperations(toySchema(), folderOf(documents));
const rest = '@rest(method: GET, path: "/v1/x")';

describe('compileOperations', () => {
  it('reads operations and shared fragments from every folder, and marks additions', () => {
    const operations = compile({
      'items.graphql':
        '# One item.\n# With its owner.\n' +
        'query Item($item_id: ID!) @rest(method: GET, path: "/v1/items/{item_id}", errors: A) ' +
        '{ item(id: $item_id) @body { ...Item } }',
      'fragments/item.graphql': 'fragment Item on Item { item_id: id name }',
      'additions/health.graphql': 'query Health @rest(method: GET, path: "/v1/health") { health @body }',
    });
    expect(
      operations.map(({ name, file, line, isAddition, isPublic, errors, status, url, comment }) => ({
        name,
        file,
        line,
        isAddition,
        isPublic,
        errors,
        status,
        url,
        comment,
      })),
    ).toEqual([
      {
        name: 'Health',
        file: 'additions/health.graphql',
        line: 1,
        isAddition: true,
        isPublic: true,
        errors: 'B',
        status: 200,
        url: '/v1/health',
        comment: '',
      },
      {
        name: 'Item',
        file: 'items.graphql',
        line: 3,
        isAddition: false,
        isPublic: false,
        errors: 'A',
        status: 200,
        url: '/v1/items/:item_id',
        comment: 'One item.\nWith its owner.',
      },
    ]);
  });

  it('counts an operation as public only if all of its root fields are, also those of fragments', () => {
    const [both, mixed] = compile(`
      query Both @rest(method: GET, path: "/v1/a") { health @body again: health }
      query Mixed @rest(method: GET, path: "/v1/b") { health @body ...More }
      fragment More on Query { fault }
    `);
    expect([both?.isPublic, mixed?.isPublic]).toEqual([true, false]);
  });

  it('orders parameters path first, in the order of the template, then query, then header', () => {
    const [operation] = compile(`
      query Echo($count: Int, $trace: String @header(name: "X-Trace-Id"), $b: String!, $a: ID!)
        @rest(method: GET, path: "/v1/{a}/{b}") {
        echo(text: $b, ids: [$a], header: $trace, count: $count) @body
      }
    `);
    expect(operation?.parameters.map((parameter) => `${parameter.in} ${parameter.wireName}`)).toEqual([
      'path a',
      'path b',
      'query count',
      'header x-trace-id',
    ]);
  });

  it('tightens the bounds of a variable by the schema and by @range', () => {
    const schema = toySchema({
      constraints: {
        'Shop.items.first': { min: 10, max: 100 },
        'Shop.items.tags': { maxItems: 2, item: { maxLength: 3 } },
        'Filter.minCount': { min: 0 },
      },
    });
    const [items, search] = compileOperations(
      schema,
      folderOf(`
        query Items($limit: Int @range(min: 5, max: 500), $tags: [String!] @oneOf(values: ["a"]))
          @rest(method: GET, path: "/v1/x") {
          shop(id: "1") { items(first: $limit, tags: $tags) @body { totalCount } }
        }
        query Search($least: Int! @range(min: 1))
          @rest(method: GET, path: "/v1/y") { search(filter: { minCount: $least }) @body }
      `),
    );
    expect(items?.parameters.map((parameter) => parameter.constraints)).toEqual([
      { min: 10, max: 100 },
      { maxItems: 2, item: { maxLength: 3, oneOf: ['a'] } },
    ]);
    expect(items?.parameters.map((parameter) => parameter.defaultValue)).toEqual([20, undefined]);
    expect(search?.parameters[0]?.constraints).toEqual({ min: 1 });
  });
});

describe('a mistake in the documents stops the start, naming file, line and column:', () => {
  // every case is one file `shop.graphql`; the expectation names the position in it
  const cases: [what: string, document: string, expected: RegExp][] = [
    ['a syntax error', `query A ${rest} {\n  health @body`, /shop\.graphql:2:\d+ Syntax Error/],
    ['an unknown field', `query A ${rest} {\n  helth @body\n}`, /shop\.graphql:2:3 Cannot query field "helth"/],
    [
      'an unknown type of a variable',
      `query A($a: Itm) ${rest} { health @body }`,
      /shop\.graphql:1:13 Unknown type "Itm"/,
    ],
    [
      'an unknown type of a fragment',
      `query A ${rest} { health @body }\nfragment F on Itm { id }`,
      /shop\.graphql:2:15 Unknown type "Itm"/,
    ],
    [
      'an unknown fragment',
      `query A ${rest} { item(id: "1") @body { ...Nope } }`,
      /shop\.graphql:1:\d+ Unknown fragment "Nope"/,
    ],
    ['an unknown directive', `query A ${rest} { health @boddy }`, /shop\.graphql:1:\d+ Unknown directive "@boddy"/],
    [
      'an unknown error set',
      'query A @rest(method: GET, path: "/v1/x", errors: Z) { health @body }',
      /shop\.graphql:1:\d+ Value "Z" does not exist in "RestErrorSet"/,
    ],
    ['an operation without a name', `query ${rest} { health @body }`, /shop\.graphql:1:1 An operation needs a name/],
    ['an operation without @rest', 'query A { health @body }', /shop\.graphql:1:1 Operation 'A' has no @rest/],
    [
      'a definition of a type',
      `query A ${rest} { health @body }\ntype T { a: Int }`,
      /shop\.graphql:2:1 Only operations and fragments/,
    ],
    [
      'a path variable that is not declared',
      'query A\n@rest(method: GET, path: "/v1/{a}") { health @body }',
      /shop\.graphql:2:1 The path variable '\{a\}' is not declared/,
    ],
    [
      'a variable that is not used',
      `query A($a: ID) ${rest} { health @body }`,
      /shop\.graphql:1:9 Variable "\$a" is never used/,
    ],
    [
      'a nullable path variable',
      'query A($a: String) @rest(method: GET, path: "/v1/{a}") { echo(text: $a) @body }',
      /shop\.graphql:1:9 Variable '\$a': a variable of the path is a non-null scalar/,
    ],
    [
      'a path variable that is a list',
      'query A($a: [ID!]!) @rest(method: GET, path: "/v1/{a}") { echo(ids: $a) @body }',
      /shop\.graphql:1:9 Variable '\$a': a variable of the path/,
    ],
    [
      'a path variable named twice',
      'query A($a: ID!) @rest(method: GET, path: "/v1/{a}/{a}") { item(id: $a) @body { id } }',
      /The path has '\{a\}' twice/,
    ],
    [
      'a path that is no template',
      'query A @rest(method: GET, path: "v1/x y") { health @body }',
      /shop\.graphql:1:9 'v1\/x y' is no path template/,
    ],
    [
      'a trailing slash in the template',
      'query A @rest(method: GET, path: "/v1/x/") { health @body }',
      /is no path template/,
    ],
    [
      'two operations for one route',
      `query A ${rest} { health @body }\nquery B ${rest} { fault @body }`,
      /shop\.graphql:2:1 The route GET \/v1\/x is already that of .*shop\.graphql:1:1 A/,
    ],
    [
      'two routes that differ in the name of a variable only',
      'query A($a: ID!) @rest(method: GET, path: "/v1/{a}") { item(id: $a) @body { id } }\n' +
        'query B($b: ID!) @rest(method: GET, path: "/v1/{b}") { item(id: $b) @body { name } }',
      /shop\.graphql:2:1 The route GET/,
    ],
    [
      'two operations of one name',
      `query A ${rest} { health @body }\nquery A @rest(method: GET, path: "/v1/y") { health @body }`,
      /shop\.graphql:2:1 Operation 'A' is already defined at .*shop\.graphql:1:1/,
    ],
    [
      'two fragments of one name',
      `query A ${rest} { health @body }\nfragment F on Item { id }\nfragment F on Item { name }`,
      /shop\.graphql:3:1 Fragment 'F' is already defined at .*shop\.graphql:2:1/,
    ],
    ['no @body field', `query A ${rest} { health }`, /shop\.graphql:1:1 Operation 'A' has no @body field/],
    [
      'two @body fields',
      `query A ${rest} { health @body\n fault @body }`,
      /shop\.graphql:2:2 Operation 'A' has more than one @body field/,
    ],
    [
      '@body below a list',
      `query A ${rest} { item(id: "1") { others { name @body } } }`,
      /shop\.graphql:1:\d+ @body cannot stand below a list/,
    ],
    [
      '@body in a fragment',
      `query A ${rest} { ...F }\nfragment F on Query { health @body }`,
      /shop\.graphql:2:30 @body cannot stand in a fragment/,
    ],
    [
      '@range on a string',
      `query A($a: String @range(min: 1)) ${rest} { echo(text: $a) @body }`,
      /shop\.graphql:1:9 Variable '\$a': @range needs an Int or a Float/,
    ],
    [
      '@range without a bound',
      `query A($a: Int! = 1 @range) ${rest} { echo(count: $a) @body }`,
      /@range needs min, max or both/,
    ],
    [
      '@range with min above max',
      `query A($a: Int! = 1 @range(min: 2, max: 1)) ${rest} { echo(count: $a) @body }`,
      /@range has a min above its max/,
    ],
    [
      'a default outside of @range',
      `query A($a: Int! = 9 @range(max: 5)) ${rest} { echo(count: $a) @body }`,
      /the default is outside of @range/,
    ],
    [
      '@oneOf on a number',
      `query A($a: Int! = 1 @oneOf(values: ["1"])) ${rest} { echo(count: $a) @body }`,
      /@oneOf needs a String or an ID/,
    ],
    [
      '@oneOf without values',
      `query A($a: String @oneOf(values: [])) ${rest} { echo(text: $a) @body }`,
      /@oneOf needs distinct values/,
    ],
    [
      'a default outside of @oneOf',
      `query A($a: String = "c" @oneOf(values: ["a", "b"])) ${rest} { echo(text: $a) @body }`,
      /the default 'c' is not in @oneOf/,
    ],
    [
      '@commaList on a scalar',
      `query A($a: String @commaList) ${rest} { echo(text: $a) @body }`,
      /@commaList needs a list/,
    ],
    [
      '@header on a list',
      `query A($a: [ID!] @header(name: "x")) ${rest} { echo(ids: $a) @body }`,
      /@header needs a single value/,
    ],
    [
      'a @body variable that is no input object',
      'mutation A($a: ID! @body) @rest(method: POST, path: "/v1/x") { removeItem(id: $a) @body }',
      /shop\.graphql:1:12 Variable '\$a': @body needs an input object type/,
    ],
    [
      'an input object without @body',
      `query A($a: Filter!) ${rest} { search(filter: $a) @body }`,
      /shop\.graphql:1:9 Variable '\$a': the type Filter! needs @body/,
    ],
    [
      'a body on GET',
      `query A($a: Filter! @body) ${rest} { search(filter: $a) @body }`,
      /shop\.graphql:1:1 A GET has no body/,
    ],
    [
      'an input type that contains itself',
      'mutation A($a: Tree! @body) @rest(method: POST, path: "/v1/x") { plant(root: $a) @body }',
      /shop\.graphql:1:12 Variable '\$a': the input type 'Tree' contains itself/,
    ],
    [
      'input fields with one REST name',
      'mutation A($a: Clash @body) @rest(method: POST, path: "/v1/x") { clash(input: $a) @body }',
      /shop\.graphql:1:12 Variable '\$a': two fields of 'Clash' have the same name in REST/,
    ],
    [
      'response keys that REST makes equal',
      `query A ${rest} { item(id: "1") @body { ownerId\n owner_id: id } }`,
      /shop\.graphql:1:\d+ Fields "owner_id" conflict/,
    ],
    [
      'response keys that @flatten makes equal',
      `query A ${rest} { item(id: "1") @body { name\n owner @flatten { name } } }`,
      /shop\.graphql:2:19 The response key 'name' is also given at .*shop\.graphql:1:\d+/,
    ],
    [
      '@flatten on a scalar',
      `query A ${rest} { item(id: "1") @body { name @flatten } }`,
      /shop\.graphql:1:\d+ @flatten needs a field that is one object/,
    ],
    [
      '@flatten on a list',
      `query A ${rest} { item(id: "1") @body { others @flatten { id } } }`,
      /@flatten needs a field that is one object/,
    ],
    [
      '@nothing together with 204',
      'mutation A @rest(method: DELETE, path: "/v1/x", status: 204) { removeItem(id: "1") @body @nothing }',
      /@nothing sends a body/,
    ],
    [
      'a status that is no success',
      'query A @rest(method: GET, path: "/v1/x", status: 404) { health @body }',
      /404 is no status of success/,
    ],
    [
      'a subscription that changes something',
      'subscription A @rest(method: PUT, path: "/v1/x") { events(itemId: "1") @body { id } }',
      /A subscription is a GET or a POST route/,
    ],
    [
      'lines with an id',
      'subscription A($a: String @lastEventId) @rest(method: POST, path: "/v1/x") { events(itemId: "1", after: $a) ' +
        '@body { id @eventId } }',
      /Lines have no id/,
    ],
    [
      'the id of a frame that nobody takes again',
      `subscription A ${rest} { events(itemId: "1") @body { id @eventId } }`,
      /@eventId needs a variable with @lastEventId/,
    ],
    [
      'a variable that takes ids which no frame has',
      `subscription A($a: String @lastEventId) ${rest} { events(itemId: "1", after: $a) @body { id } }`,
      /@lastEventId needs a field with @eventId/,
    ],
    [
      'two ids of a frame',
      `subscription A($a: String @lastEventId) ${rest} { events(itemId: "1", after: $a) @body {
        id @eventId type @eventId } }`,
      /A frame has one id/,
    ],
    [
      'the id of a frame below its object',
      `subscription A($a: String @lastEventId) ${rest} { events(itemId: "1", after: $a) @body { type owner {
        id @eventId } } }`,
      /@eventId stands on a plain field of the @body object/,
    ],
    [
      'the id of a frame in a fragment',
      `subscription A($a: String @lastEventId) ${rest} { events(itemId: "1", after: $a) @body { ...E }
        } fragment E on Event { id @eventId }`,
      /@eventId cannot stand in a fragment/,
    ],
    [
      'the id of a frame of what is no stream',
      `query A($a: ID! @lastEventId) ${rest} { item(id: $a) @body { id @eventId } }`,
      /Only a subscription has frames with an id/,
    ],
    [
      '@lastEventId together with @header',
      `subscription A($a: String @lastEventId @header(name: "x")) ${rest} { events(itemId: "1", after: $a) @body {
        id @eventId } }`,
      /@header and @lastEventId exclude each other/,
    ],
  ];

  it.each(cases)('%s', (_what, document, expected) => {
    expect(() => compile(document)).toThrow(expected);
  });

  it('a folder without documents', () => {
    expect(() => compile({})).toThrow(/holds no \*\.graphql file/);
  });

  it('all mistakes of all files at once', () => {
    const documents = {
      'a.graphql': `query A ${rest} { helth @body }`,
      'b.graphql': 'query B @rest(method: GET, path: "/v1/{b}") { health @body }',
    };
    expect(() => compile(documents)).toThrow(/a\.graphql:1:\d+ [^\n]+\n[^\n]+b\.graphql:1:\d+/);
  });
});

describe('documents that are known to be valid', () => {
  const documents = {
    'items.graphql': `query Items ${rest} { item(id: "1") @body { ...Item } }`,
    'fragments.graphql': 'fragment Item on Item { item_id: id name }',
  };
  const digestOf = (texts: Record<string, string>) => readDocuments(folderOf(texts)).digest;
  const known = digestOf(documents);
  const wereValid = (digest: string) => digest === known;

  it('give the same operations without being validated', () => {
    const [operation] = compileOperations(toySchema(), folderOf(documents), wereValid);
    expect(print(operation!.document)).toBe(print(compile(documents)[0]!.document));
    const wrong = { ...documents, 'fragments.graphql': 'fragment Item on Item { ownerId owner_id: id }' };
    const trusted = digestOf(wrong);
    expect(() => compileOperations(toySchema(), folderOf(wrong), (digest) => digest === trusted)).not.toThrow();
  });

  it.each([
    ['another text', { 'items.graphql': documents['items.graphql'].replace('...Item', 'nme') }, /"nme"/],
    ['another name of a file', { 'items.graphql': '', 'more.graphql': documents['items.graphql'] }, /Syntax Error/],
    ['a further file', { 'more.graphql': `query More ${rest} { helth @body }` }, /"helth"/],
    [
      'a mistake that only the rewritten document has',
      {
        'items.graphql': `query Items ${rest} { item(id: "1") @body { ...Item ownerId owner_id: id } }`,
      },
      /"owner_id" conflict/,
    ],
  ])('are others with %s, and validated', (_what, change, expected) => {
    expect(() => compileOperations(toySchema(), folderOf({ ...documents, ...change }), wereValid)).toThrow(expected);
  });

  it.runIf(isBuilt())('are those that the build has checked', () => {
    const checks = JSON.parse(readFileSync(buildChecksFile, 'utf8'));
    expect(checks).toMatchObject({ operations: readDocuments(operationsDir).digest });
  });
});
