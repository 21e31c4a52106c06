import fc from 'fast-check';
import { GraphQLFloat, GraphQLInt } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readerOf } from '../../rest/coerce.ts';
import { at, echoOf, Issues } from '../../rest/issues.ts';
import type { ToyServer } from './toy.ts';
import { removeFolders, toyServer } from './toy.ts';

afterAll(removeFolders);

const documents = `
  query Echo(
    $count: Int! = 7 @range(min: 1, max: 9), $text: String, $ratio: Float, $flag: Boolean, $ids: [ID!], $on: DateTime
  ) @rest(method: GET, path: "/v1/echo") {
    echo(count: $count, text: $text, ratio: $ratio, flag: $flag, ids: $ids, on: $on) @body
  }
  query Path($id: ID!, $n: Int!, $word: String! @oneOf(values: ["a", "b", "c"]), $token: String!)
    @rest(method: GET, path: "/v1/p/{id}/{n}") {
    echo(text: $word, count: $n, header: $token, ids: [$id]) @body
  }
  query Comma($ids: [ID!] @commaList) @rest(method: GET, path: "/v1/comma") { echo(ids: $ids) @body }
  query Header($last: Int @header(name: "Last-Event-ID"))
    @rest(method: GET, path: "/v1/header") { echo(count: 1, text: "x", ratio: 0.5) @body shop(id: "1") {
      items(first: $last) { totalCount } } }
  query Bounded($tags: [String!], $colour: Colour)
    @rest(method: GET, path: "/v1/bounded") { shop(id: "1") {
      items(tags: $tags, colour: $colour) @body { total: totalCount } } }
  mutation Create($body: ItemInput! @body)
    @rest(method: POST, path: "/v1/items") { createItem(input: $body) @body { name } }
  mutation Update($item_id: ID!, $body: UpdateItemInput! @body)
    @rest(method: PUT, path: "/v1/items/{item_id}") { updateItem(id: $item_id, input: $body) @body }
  mutation Rename($item_id: ID!, $name: String, $note: String) @rest(method: POST, path: "/v1/items/{item_id}/rename") {
    renameItem(id: $item_id, input: { displayName: $name, description: $note }) @body
  }
`;

let toy: ToyServer;
beforeAll(async () => {
  const given = (_: unknown, args: object) => args;
  toy = await toyServer(documents, {
    resolvers: {
      Query: { echo: given, shop: () => ({}) },
      Shop: { items: () => ({ totalCount: 1 }) },
      Mutation: {
        createItem: (_: unknown, { input }: { input: object }) => ({ name: JSON.stringify(input) }),
        updateItem: given,
        renameItem: given,
      },
    },
    constraints: {
      'ItemInput.displayName': { minLength: 2, maxLength: 5 },
      'ItemInput.count': { min: 1, max: 200 },
      'ItemInput.tags': { maxItems: 2, item: { maxLength: 3, pattern: '[a-z]+' } },
      'ItemInput.pin': { sensitive: true, minLength: 4 },
      'Shop.items.tags': { maxItems: 2, item: { maxLength: 3 } },
      'Query.echo.text': { maxLength: 4 },
    },
  });
});

const detail = (...items: object[]) => ({ status: 422, body: { detail: items } });
const echo = async (query: string) => (await toy.get(`/v1/echo?${query}`)).body;

describe('query parameters', () => {
  it.each([
    ['', { count: 7 }],
    ['count=5', { count: 5 }],
    ['count=%2B5', { count: 5 }],
    ['count=3&count=4', { count: 4 }],
    ['ratio=1.5', { count: 7, ratio: 1.5 }],
    ['ratio=-1e2', { count: 7, ratio: -100 }],
    ['text=', { count: 7, text: '' }],
    ['text=null', { count: 7, text: 'null' }],
    ['ids=a&ids=b', { count: 7, ids: ['a', 'b'] }],
    ['ids=a', { count: 7, ids: ['a'] }],
    ['ids=', { count: 7, ids: [''] }],
    ['on=2025-01-02T03:04:05Z', { count: 7, on: '2025-01-02T03:04:05.000Z' }],
    ['unknown=1&__proto__=1&constructor=2&count[]=3', { count: 7 }],
  ])('reads ?%s', async (query, expected) => {
    expect(await echo(query)).toEqual(expected);
  });

  it.each(['true', '1', 'yes', 'on', 't', 'y', 'True', 'YES'])('reads %s as true', async (text) => {
    expect(await echo(`flag=${text}`)).toEqual({ count: 7, flag: true });
  });
  it.each(['false', '0', 'no', 'off', 'f', 'n', 'FALSE'])('reads %s as false', async (text) => {
    expect(await echo(`flag=${text}`)).toEqual({ count: 7, flag: false });
  });

  it.each(['x', '1.5', '0x10', '%2050', '5e1', '', 'NaN', '١'])('refuses count=%s as an integer', async (text) => {
    expect(await toy.get(`/v1/echo?count=${text}`)).toEqual(
      detail({
        type: 'int_parsing',
        loc: ['query', 'count'],
        msg: 'Input should be a valid integer, unable to parse string as an integer',
        input: decodeURIComponent(text),
      }),
    );
  });

  it.each([
    [
      'count=0',
      {
        type: 'greater_than_equal',
        loc: ['query', 'count'],
        msg: 'Input should be greater than or equal to 1',
        input: '0',
        ctx: { ge: 1 },
      },
    ],
    [
      'count=10',
      {
        type: 'less_than_equal',
        loc: ['query', 'count'],
        msg: 'Input should be less than or equal to 9',
        input: '10',
        ctx: { le: 9 },
      },
    ],
    [
      'count=99999999999999999999',
      {
        type: 'less_than_equal',
        loc: ['query', 'count'],
        msg: 'Input should be less than or equal to 9',
        input: '99999999999999999999',
        ctx: { le: 9 },
      },
    ],
    [
      'ratio=abc',
      {
        type: 'float_parsing',
        loc: ['query', 'ratio'],
        msg: 'Input should be a valid number, unable to parse string as a number',
        input: 'abc',
      },
    ],
    [
      'ratio=1e999',
      { type: 'finite_number', loc: ['query', 'ratio'], msg: 'Input should be a finite number', input: '1e999' },
    ],
    [
      'flag=maybe',
      {
        type: 'bool_parsing',
        loc: ['query', 'flag'],
        msg: 'Input should be a valid boolean, unable to interpret input',
        input: 'maybe',
      },
    ],
    [
      'text=12345',
      {
        type: 'string_too_long',
        loc: ['query', 'text'],
        msg: 'String should have at most 4 characters',
        input: '12345',
        ctx: { max_length: 4 },
      },
    ],
    [
      'on=yesterday',
      {
        type: 'datetime_parsing',
        loc: ['query', 'on'],
        msg: 'Input should be a valid datetime, invalid character or missing part',
        input: 'yesterday',
        ctx: { error: 'invalid character or missing part' },
      },
    ],
    [
      'text=%00',
      {
        type: 'string_unicode',
        loc: ['query', 'text'],
        msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
        input: '\0',
      },
    ],
    [
      'ids=ok&ids=%00',
      {
        type: 'string_unicode',
        loc: ['query', 'ids', 1],
        msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
        input: '\0',
      },
    ],
  ])('refuses ?%s', async (query, item) => {
    expect(await toy.get(`/v1/echo?${query}`)).toEqual(detail(item));
  });

  it('applies the bounds that the schema states on the argument', async () => {
    expect(await toy.get('/v1/bounded?tags=a&tags=b&tags=c')).toEqual(
      detail({
        type: 'too_long',
        loc: ['query', 'tags'],
        msg: 'List should have at most 2 items after validation, not 3',
        input: ['a', 'b', 'c'],
        ctx: { field_type: 'List', max_length: 2, actual_length: 3 },
      }),
    );
    expect(await toy.get('/v1/bounded?tags=a&tags=abcd')).toEqual(
      detail({
        type: 'string_too_long',
        loc: ['query', 'tags', 1],
        msg: 'String should have at most 3 characters',
        input: 'abcd',
        ctx: { max_length: 3 },
      }),
    );
  });

  it('names the values of an enumeration', async () => {
    expect(await toy.get('/v1/bounded?colour=pink')).toEqual(
      detail({
        type: 'literal_error',
        loc: ['query', 'colour'],
        msg: "Input should be 'red', 'green' or 'blue'",
        input: 'pink',
        ctx: { expected: "'red', 'green' or 'blue'" },
      }),
    );
    expect((await toy.get('/v1/bounded?colour=red')).status).toBe(200);
  });

  it('splits a comma list', async () => {
    expect((await toy.get('/v1/comma?ids=a,%20b,,c')).body).toEqual({ count: 7, ids: ['a', 'b', 'c'] });
    expect((await toy.get('/v1/comma?ids=')).body).toEqual({ count: 7, ids: [] });
    expect((await toy.get('/v1/comma')).body).toEqual({ count: 7 });
  });
});

describe('all failures at once', () => {
  it('come in the order path, query, header, body; a missing parameter has the input null', async () => {
    expect(await toy.get('/v1/p/%00/x')).toEqual(
      detail(
        {
          type: 'string_unicode',
          loc: ['path', 'id'],
          msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
          input: '\0',
        },
        {
          type: 'int_parsing',
          loc: ['path', 'n'],
          msg: 'Input should be a valid integer, unable to parse string as an integer',
          input: 'x',
        },
        { type: 'missing', loc: ['query', 'word'], msg: 'Field required', input: null },
        { type: 'missing', loc: ['query', 'token'], msg: 'Field required', input: null },
      ),
    );
  });

  it('read headers too', async () => {
    const { body } = await toy.send({ url: '/v1/header', headers: { 'last-event-id': 'x' } });
    expect(body).toEqual({
      detail: [
        {
          type: 'int_parsing',
          loc: ['header', 'last-event-id'],
          msg: 'Input should be a valid integer, unable to parse string as an integer',
          input: 'x',
        },
      ],
    });
    expect((await toy.send({ url: '/v1/header', headers: { 'last-event-id': '3' } })).status).toBe(200);
  });

  it('never show a secret', async () => {
    const { body, text } = await toy.send({ url: '/v1/p/1/2?word=z&token=%00secret' });
    expect(body).toMatchObject({
      detail: [
        { type: 'literal_error', loc: ['query', 'word'] },
        { loc: ['query', 'token'], input: '[redacted]' },
      ],
    });
    expect(text).not.toContain('secret');
  });
});

const created = async (input: object) => {
  const { body } = await toy.post('/v1/items', input);
  return JSON.parse((body as { name: string }).name) as unknown;
};
const refused = async (input: unknown) => {
  const { status, body } = await toy.post('/v1/items', input);
  return { status, detail: (body as { detail?: unknown }).detail };
};
const name = { display_name: 'abc' };

describe('bodies', () => {
  it('reach the schema in its names, with free JSON untouched, defaults set and unknown fields dropped', async () => {
    const metadata = { camelCase: { snake_case: [1, null, { aB: 'c' }] } };
    expect(
      await created({
        ...name,
        max_cost_per_1k_tokens: 2,
        is_active: true,
        colour: 'red',
        parts: [{ part_name: 'p', weights: [1, 2.5] }],
        metadata,
        anything: [metadata],
        unknown: 1,
        displayName: 'not read',
      }),
    ).toEqual({
      displayName: 'abc',
      maxCostPer1kTokens: 2,
      isActive: true,
      colour: 'red',
      parts: [{ partName: 'p', weights: [1, 2.5] }],
      metadata,
      anything: [metadata],
      size: 3,
    });
  });

  it.each([
    [{ count: '5' }, { count: 5 }],
    [{ count: 5.0 }, { count: 5 }],
    [{ max_cost_per_1k_tokens: '1.5' }, { maxCostPer1kTokens: 1.5 }],
    [{ is_active: 'yes' }, { isActive: true }],
    [{ is_active: 0 }, { isActive: false }],
    [{ due_at: '2025-01-02T03:04:05Z' }, { dueAt: '2025-01-02T03:04:05.000Z' }],
    [
      { count: null, tags: null, parts: null, metadata: null, colour: null, due_at: null },
      { count: null, tags: null, parts: null, metadata: null, colour: null, dueAt: null },
    ],
    [{ even: 4 }, { even: 4 }],
  ])('accept %j', async (given, expected) => {
    expect(await created({ ...name, ...given })).toEqual({ displayName: 'abc', size: 3, ...expected });
  });

  it.each<[object, object]>([
    [
      { display_name: 5 },
      { type: 'string_type', loc: ['body', 'display_name'], msg: 'Input should be a valid string', input: 5 },
    ],
    [
      { display_name: null },
      { type: 'string_type', loc: ['body', 'display_name'], msg: 'Input should be a valid string', input: null },
    ],
    [
      { display_name: 'x' },
      {
        type: 'string_too_short',
        loc: ['body', 'display_name'],
        msg: 'String should have at least 2 characters',
        input: 'x',
        ctx: { min_length: 2 },
      },
    ],
    [
      { count: 1.5 },
      {
        type: 'int_from_float',
        loc: ['body', 'count'],
        msg: 'Input should be a valid integer, got a number with a fractional part',
        input: 1.5,
      },
    ],
    [
      { count: true },
      { type: 'int_type', loc: ['body', 'count'], msg: 'Input should be a valid integer', input: true },
    ],
    [
      { count: '1.5' },
      {
        type: 'int_parsing',
        loc: ['body', 'count'],
        msg: 'Input should be a valid integer, unable to parse string as an integer',
        input: '1.5',
      },
    ],
    [
      { count: 201 },
      {
        type: 'less_than_equal',
        loc: ['body', 'count'],
        msg: 'Input should be less than or equal to 200',
        input: 201,
        ctx: { le: 200 },
      },
    ],
    [
      { size: 2147483648 },
      {
        type: 'less_than_equal',
        loc: ['body', 'size'],
        msg: 'Input should be less than or equal to 2147483647',
        input: 2147483648,
        ctx: { le: 2147483647 },
      },
    ],
    [
      { size: -2147483649 },
      {
        type: 'greater_than_equal',
        loc: ['body', 'size'],
        msg: 'Input should be greater than or equal to -2147483648',
        input: -2147483649,
        ctx: { ge: -2147483648 },
      },
    ],
    [{ size: null }, { type: 'int_type', loc: ['body', 'size'], msg: 'Input should be a valid integer', input: null }],
    [
      { max_cost_per_1k_tokens: {} },
      { type: 'float_type', loc: ['body', 'max_cost_per_1k_tokens'], msg: 'Input should be a valid number', input: {} },
    ],
    [
      { is_active: 2 },
      {
        type: 'bool_parsing',
        loc: ['body', 'is_active'],
        msg: 'Input should be a valid boolean, unable to interpret input',
        input: 2,
      },
    ],
    [
      { is_active: [] },
      { type: 'bool_type', loc: ['body', 'is_active'], msg: 'Input should be a valid boolean', input: [] },
    ],
    [
      { colour: 1 },
      {
        type: 'literal_error',
        loc: ['body', 'colour'],
        msg: "Input should be 'red', 'green' or 'blue'",
        input: 1,
        ctx: { expected: "'red', 'green' or 'blue'" },
      },
    ],
    [{ tags: 'a' }, { type: 'list_type', loc: ['body', 'tags'], msg: 'Input should be a valid list', input: 'a' }],
    [
      { tags: ['a', 1] },
      { type: 'string_type', loc: ['body', 'tags', 1], msg: 'Input should be a valid string', input: 1 },
    ],
    [
      { tags: ['a', 'B'] },
      {
        type: 'string_pattern_mismatch',
        loc: ['body', 'tags', 1],
        msg: "String should match pattern '^[a-z]+$'",
        input: 'B',
        ctx: { pattern: '^[a-z]+$' },
      },
    ],
    [
      { tags: ['a', null] },
      { type: 'string_type', loc: ['body', 'tags', 1], msg: 'Input should be a valid string', input: null },
    ],
    [{ parts: [{}] }, { type: 'missing', loc: ['body', 'parts', 0, 'part_name'], msg: 'Field required', input: {} }],
    [
      { parts: [7] },
      {
        type: 'model_attributes_type',
        loc: ['body', 'parts', 0],
        msg: 'Input should be a valid dictionary or object to extract fields from',
        input: 7,
      },
    ],
    [
      { parts: [{ part_name: 'p', weights: [0, 'x'] }] },
      {
        type: 'float_parsing',
        loc: ['body', 'parts', 0, 'weights', 1],
        msg: 'Input should be a valid number, unable to parse string as a number',
        input: 'x',
      },
    ],
    [
      { metadata: [] },
      { type: 'dict_type', loc: ['body', 'metadata'], msg: 'Input should be a valid dictionary', input: [] },
    ],
    [
      { metadata: { a: ['\0'] } },
      {
        type: 'string_unicode',
        loc: ['body', 'metadata', 'a', 0],
        msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
        input: '\0',
      },
    ],
    [
      { due_at: 5 },
      { type: 'datetime_type', loc: ['body', 'due_at'], msg: 'Input should be a valid datetime', input: 5 },
    ],
    [
      { even: 3 },
      {
        type: 'value_error',
        loc: ['body', 'even'],
        msg: 'Value error, the number must be even',
        input: 3,
        ctx: { error: 'the number must be even' },
      },
    ],
  ])('refuse %j', async (given, item) => {
    expect(await refused({ ...name, ...given })).toEqual({ status: 422, detail: [item] });
  });

  it('refuse lone surrogates, and answer in well-formed text', async () => {
    const { status, text } = await toy.send({
      method: 'POST',
      url: '/v1/items',
      payload: '{"display_name":"a\\ud800"}',
      headers: { 'content-type': 'application/json' },
    });
    expect(status).toBe(422);
    expect(text).toContain('string_unicode');
    expect(text.isWellFormed() && !/\\ud[89ab]/i.test(text)).toBe(true);
  });

  it('show the enclosing object for a missing field, without its secrets', async () => {
    expect(
      await refused({ password: 'geheim', pin: '12345', parts: [], metadata: { token: 't', value: null, other: 1 } }),
    ).toEqual({
      status: 422,
      detail: [
        {
          type: 'missing',
          loc: ['body', 'display_name'],
          msg: 'Field required',
          input: {
            password: '[redacted]',
            pin: '[redacted]',
            parts: [],
            metadata: { token: '[redacted]', value: null, other: 1 },
          },
        },
      ],
    });
  });

  it('redact the values that the schema calls sensitive', async () => {
    expect(await refused({ ...name, pin: '123', password: 7 })).toEqual({
      status: 422,
      detail: [
        { type: 'string_type', loc: ['body', 'password'], msg: 'Input should be a valid string', input: '[redacted]' },
        {
          type: 'string_too_short',
          loc: ['body', 'pin'],
          msg: 'String should have at least 4 characters',
          input: '[redacted]',
          ctx: { min_length: 4 },
        },
      ],
    });
  });

  it('report every failure at once, keys in the order type, loc, msg, input, ctx', async () => {
    const { text } = await toy.send({
      method: 'POST',
      url: '/v1/items',
      payload: { count: 0, tags: 1 },
      headers: { 'content-type': 'application/json' },
    });
    const { detail: items } = JSON.parse(text) as { detail: { loc: unknown[] }[] };
    expect(items.map((item) => item.loc)).toEqual([
      ['body', 'display_name'],
      ['body', 'count'],
      ['body', 'tags'],
    ]);
    expect(Object.keys(items[0] ?? {})).toEqual(['type', 'loc', 'msg', 'input']);
    expect(Object.keys(items[1] ?? {})).toEqual(['type', 'loc', 'msg', 'input', 'ctx']);
  });

  it('do not echo huge values', async () => {
    const huge = {
      display_name: 'x'.repeat(1_000_000),
      tags: Array.from({ length: 50_000 }, () => 'a'),
      parts: Array.from({ length: 5_000 }, () => 1),
      metadata: Array.from({ length: 100 }, () => ['y'.repeat(1000)]),
    };
    const { status, text } = await toy.send({ method: 'POST', url: '/v1/items', payload: huge });
    expect(status).toBe(422);
    expect(text.length).toBeLessThan(50_000);
  });

  it.each([null, undefined])('call a body of %j missing', async (body) => {
    const missing = { type: 'missing', loc: ['body'], msg: 'Field required', input: null };
    expect(await refused(body)).toEqual({ status: 422, detail: [missing] });
  });

  it.each([[[]], ['text'], [5], [true]])('refuse %j as a whole', async (body) => {
    expect(await refused(body)).toEqual({
      status: 422,
      detail: [
        {
          type: 'model_attributes_type',
          loc: ['body'],
          msg: 'Input should be a valid dictionary or object to extract fields from',
          input: body,
        },
      ],
    });
  });
});

describe('numbers', () => {
  it('have no negative zero, which JSON would hide and a database would keep', () => {
    const issues = new Issues(echoOf());
    const where = at(null, 'query');
    expect(readerOf(GraphQLInt, {})('-0', where, issues)).toBe(0);
    expect(readerOf(GraphQLFloat, {})(-0, where, issues)).toBe(0);
    expect(issues.items).toEqual([]);
  });
});

describe('absent and null', () => {
  const update = async (body: unknown) =>
    (
      await toy.send({
        method: 'PUT',
        url: '/v1/items/1',
        payload: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
    ).body;

  it('stay different in a body', async () => {
    expect(await update({})).toEqual({ id: '1', input: {} });
    expect(await update({ description: null })).toEqual({ id: '1', input: { description: null } });
    expect(await update({ description: '' })).toEqual({ id: '1', input: { description: '' } });
  });

  it('leave out of an object literal what was not sent', async () => {
    expect((await toy.post('/v1/items/1/rename?name=x', {})).body).toEqual({ id: '1', input: { displayName: 'x' } });
  });

  it('need a body, if only an empty object', async () => {
    const missing = { detail: [{ type: 'missing', loc: ['body'], msg: 'Field required', input: null }] };
    expect((await toy.send({ method: 'PUT', url: '/v1/items/1' })).body).toEqual(missing);
    expect(
      (await toy.send({ method: 'PUT', url: '/v1/items/1', headers: { 'content-type': 'application/json' } })).body,
    ).toEqual(missing);
  });
});

describe('any input', () => {
  const keys = [
    'display_name',
    'max_cost_per_1k_tokens',
    'count',
    'colour',
    'is_active',
    'tags',
    'parts',
    'metadata',
    'anything',
    'due_at',
    'even',
    'password',
    'pin',
    'size',
    'part_name',
    'other',
  ];
  const { tree } = fc.letrec((tie) => ({
    leaf: fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.double(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom('red', '1', 'yes', '2025-01-01', '\0', '\ud800'),
    ),
    tree: fc.oneof(
      { maxDepth: 4 },
      tie('leaf'),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys), tie('tree'), { maxKeys: 6 }),
    ),
  }));

  it('in a body is accepted or refused as invalid, never a fault', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...keys), tree, { maxKeys: 8 }), async (body) => {
        const { status } = await toy.post('/v1/items', { ...name, ...body });
        expect([200, 422]).toContain(status);
      }),
      { numRuns: 300 },
    );
    expect(toy.faults).toEqual([]);
  });

  it('in a query string is accepted or refused as invalid, never a fault', async () => {
    const parameter = fc.tuple(
      fc.constantFrom('count', 'text', 'ratio', 'flag', 'ids', 'on', 'x[]'),
      fc.oneof(fc.string(), fc.constantFrom('%00', '%', '%ff', '1', 'true')),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(parameter, { maxLength: 5 }), async (parameters) => {
        const { status } = await toy.get(
          `/v1/echo?${parameters.map(([key, value]) => `${key}=${value.replace(/[#\s]/g, '+')}`).join('&')}`,
        );
        expect([200, 422]).toContain(status);
      }),
      { numRuns: 300 },
    );
    expect(toy.faults).toEqual([]);
  });
});
