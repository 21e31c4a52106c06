import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import type { OpenApiDocument } from '../../rest/openapi.ts';
import { buildOpenApi } from '../../rest/openapi.ts';
import { readReference } from '../../rest/reference.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

afterAll(removeFolders);

/** No NUL. */
const TEXT = '^[^\\x00]*$';

let document: OpenApiDocument;
beforeAll(() => {
  const schema = toySchema({
    constraints: {
      'Shop.items.first': { min: 1, max: 200 },
      'ItemInput.displayName': { minLength: 2, maxLength: 5, pattern: '[a-z]+' },
      'ItemInput.tags': { maxItems: 50, item: { maxLength: 64 } },
      'ItemInput.count': { min: 0 },
      'ItemInput.password': { sensitive: true },
      'UpdateItemInput.description': { format: 'email' },
      'UpdateItemInput.tags': { notNull: true },
      'Query.echo.text': { oneOf: ['a', 'b'] },
    },
  });
  const dir = folderOf({
    'items.graphql': `
      query ListItems($shop_id: ID!, $limit: Int @range(max: 100), $cursor: String, $colour: Colour, $tags: [String!])
        @rest(method: GET, path: "/v1/shops/{shop_id}/items", errors: B) {
        shop(id: $shop_id) {
          items(first: $limit, after: $cursor, colour: $colour, tags: $tags) @body {
            items: nodes { ...Item } ...Page } }
      }
      # Makes an item.
      # It is yours.
      mutation CreateItem($body: ItemInput! @body)
        @rest(method: POST, path: "/v1/items", errors: A, status: 201) { createItem(input: $body) @body { ...Item } }
      mutation UpdateItem($item_id: ID!, $body: UpdateItemInput! @body)
        @rest(method: PUT, path: "/v1/items/{item_id}", errors: C) { updateItem(id: $item_id, input: $body) @body }
      mutation RemoveItem($item_id: ID!)
        @rest(method: DELETE, path: "/v1/items/{item_id}", status: 204, errors: S) { removeItem(id: $item_id) @body }
      mutation TouchItem($item_id: ID!)
        @rest(method: POST, path: "/v1/items/{item_id}/touch", errors: S0, replayed: false) {
          removeItem(id: $item_id) @body @nothing }
      subscription Stream($item_id: ID!, $trace: Int @header(name: "x-trace-id"))
        @rest(method: GET, path: "/v1/items/{item_id}/stream", errors: A0) {
        events(itemId: $item_id, last: $trace) @body { id type }
      }
      subscription Resumable($item_id: ID!, $seen: String @lastEventId)
        @rest(method: GET, path: "/v1/items/{item_id}/resumable") {
        events(itemId: $item_id, after: $seen) @body { cursor @eventId type }
      }
      # Tells what happens, line by line.
      subscription Follow($item_id: ID!) @rest(method: POST, path: "/v1/items/{item_id}/follow", errors: A0) {
        events(itemId: $item_id) @body { type }
      }
      fragment Item on Item { item_id: id name ownerId colour tags metadata createdAt owner @flatten {
        owner_name: name } others { ...Owner } owner { ...Owner } }
      fragment Owner on Owner { name }
      fragment Page on ItemConnection { total: totalCount pageInfo @flatten {
        has_more: hasNextPage next_cursor: endCursor } }
    `,
    'groups.json': '[{ "file": "items", "name": "Items", "description": "Things to sell." }]',
    'examples.json': '{ "CreateItem": { "display_name": "hat" } }',
    'additions/health.graphql':
      'query Health($word: String! = "a", $ids: [ID!] @commaList) @rest(method: GET, path: "/v1/health") ' +
      '{ health @body echo(text: $word, ids: $ids) }',
  });
  const { echo } = schema.getQueryType()!.getFields();
  Object.assign(echo!.extensions, { mayFail: ['RESOURCE_CONFLICT', 'UPSTREAM_ERROR'] });
  const operations = compileOperations(schema, dir);
  document = buildOpenApi(operations, readReference(dir, operations), {
    info: { title: 'Shop', version: '1', description: 'A toy.' },
    publicUrl: 'https://shop.test',
  });
});

const operation = (path: string, method: string) =>
  document.paths[path]?.[method] as { parameters: object[]; responses: Record<string, unknown> } & Record<
    string,
    unknown
  >;
const schemaOf = (name: string) =>
  document.components.schemas[name] as { properties: Record<string, object>; required?: string[] };

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(structuredClone(document));
    expect(result).toMatchObject({ valid: true });
    expect(document.openapi).toBe('3.1.0');
    expect(document.servers).toEqual([{ url: 'https://shop.test' }]);
  });

  it('has a validator that can fail', async () => {
    const broken = structuredClone(document) as unknown as { paths: Record<string, { get: { responses: unknown } }> };
    const path = broken.paths['/v1/health'];
    if (path) path.get.responses = 'none';
    expect(await new Validator().validate(broken)).toMatchObject({ valid: false });
  });

  it('has an entry for every operation, named after it and grouped by its file, additions last', () => {
    const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, tags }]) => [method, path, operationId, tags]),
    );
    expect(entries).toEqual([
      ['get', '/v1/shops/{shop_id}/items', 'ListItems', ['Items']],
      ['post', '/v1/items', 'CreateItem', ['Items']],
      ['put', '/v1/items/{item_id}', 'UpdateItem', ['Items']],
      ['delete', '/v1/items/{item_id}', 'RemoveItem', ['Items']],
      ['post', '/v1/items/{item_id}/touch', 'TouchItem', ['Items']],
      ['get', '/v1/items/{item_id}/stream', 'Stream', ['Items']],
      ['get', '/v1/items/{item_id}/resumable', 'Resumable', ['Items']],
      ['post', '/v1/items/{item_id}/follow', 'Follow', ['Items']],
      ['get', '/v1/health', 'Health', ['Health']],
    ]);
    expect(document.tags).toEqual([{ name: 'Items', description: 'Things to sell.' }, { name: 'Health' }]);
  });

  it('describes by the comment of the document, else by the schema', () => {
    expect(operation('/v1/items', 'post')).toMatchObject({
      summary: 'Makes an item',
      description: 'Makes an item.\nIt is yours.',
    });
    expect(operation('/v1/shops/{shop_id}/items', 'get')).toMatchObject({ summary: 'A shop', description: 'A shop.' });
  });

  it('states parameters with bounds, defaults, enums and descriptions, and the headers of each operation', () => {
    expect(operation('/v1/shops/{shop_id}/items', 'get').parameters).toEqual([
      { name: 'shop_id', in: 'path', required: true, schema: { type: 'string', pattern: TEXT } },
      {
        name: 'limit',
        in: 'query',
        required: false,
        description: 'How many.',
        schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 100, default: 20 },
      },
      { name: 'cursor', in: 'query', required: false, schema: { type: 'string', pattern: TEXT } },
      { name: 'colour', in: 'query', required: false, schema: { type: 'string', enum: ['red', 'green', 'blue'] } },
      {
        name: 'tags',
        in: 'query',
        required: false,
        schema: { type: 'array', items: { type: 'string', pattern: TEXT } },
      },
      { $ref: '#/components/parameters/Authorization' },
      { $ref: '#/components/parameters/TraceId' },
    ]);
    expect(operation('/v1/health', 'get').parameters.slice(0, 2)).toEqual([
      { name: 'word', in: 'query', required: false, schema: { type: 'string', enum: ['a', 'b'], default: 'a' } },
      {
        name: 'ids',
        in: 'query',
        required: false,
        style: 'form',
        explode: false,
        schema: { type: 'array', items: { type: 'string', pattern: TEXT } },
      },
    ]);
    expect(
      operation('/v1/items/{item_id}/stream', 'get').parameters.filter(
        (parameter) => 'in' in parameter && parameter.in === 'header',
      ),
    ).toHaveLength(1);
  });

  it('states bodies with REST names, constraints, nullability and required fields', () => {
    expect(operation('/v1/items', 'post').requestBody).toEqual({
      required: true,
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/ItemInput' },
          example: { display_name: 'hat' },
        },
      },
    });
    const { properties, required } = schemaOf('ItemInput');
    expect(required).toEqual(['display_name']);
    expect(properties).toMatchObject({
      display_name: {
        type: 'string',
        minLength: 2,
        maxLength: 5,
        pattern: '^(?:[a-z]+)$',
        description: 'Shown to everybody.',
      },
      max_cost_per_1k_tokens: { type: ['number', 'null'] },
      count: { type: ['integer', 'null'], minimum: 0, maximum: 2 ** 31 - 1 },
      colour: { type: ['string', 'null'], enum: ['red', 'green', 'blue', null] },
      tags: { type: ['array', 'null'], maxItems: 50, items: { type: 'string', maxLength: 64, pattern: TEXT } },
      parts: { type: ['array', 'null'], items: { $ref: '#/components/schemas/PartInput' } },
      metadata: {
        type: ['object', 'null'],
        propertyNames: { pattern: '^(?!__proto__$)[^\\x00]*$' },
        additionalProperties: true,
      },
      due_at: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
      password: { anyOf: [{ type: 'string', format: 'password' }, { type: 'null' }] },
      size: { type: 'integer', default: 3 },
    });
    expect(properties.anything).toEqual({});
    expect(schemaOf('UpdateItemInput').properties).toMatchObject({
      description: { anyOf: [{ type: 'string', format: 'email' }, { type: 'null' }] },
      // cannot be cleared
      tags: { type: 'array' },
    });
    expect(schemaOf('UpdateItemInput')).toMatchObject({ propertyNames: { not: { const: '__proto__' } } });
    expect(schemaOf('UpdateItemInput').required).toBeUndefined();
  });

  it('states responses in their real shape', () => {
    expect(operation('/v1/shops/{shop_id}/items', 'get').responses['200']).toEqual({
      description: 'Success.',
      headers: expect.any(Object) as object,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: {
              items: { type: 'array', items: { $ref: '#/components/schemas/Item' } },
              total: { type: 'integer', format: 'int32' },
              has_more: { type: 'boolean' },
              next_cursor: { type: ['string', 'null'] },
            },
            required: ['items', 'total', 'has_more', 'next_cursor'],
          },
        },
      },
    });
    expect(schemaOf('Item')).toEqual({
      type: 'object',
      properties: {
        item_id: { type: 'string' },
        name: { type: 'string' },
        owner_id: { type: ['string', 'null'] },
        colour: { type: ['string', 'null'], enum: ['red', 'green', 'blue', null] },
        tags: { type: 'array', items: { type: 'string' } },
        metadata: {},
        created_at: { type: ['string', 'null'], format: 'date-time' },
        // of a nullable object
        owner_name: { type: ['string', 'null'] },
        others: { type: 'array', items: { $ref: '#/components/schemas/Owner' } },
        owner: { anyOf: [{ $ref: '#/components/schemas/Owner' }, { type: 'null' }] },
      },
      required: [
        'item_id',
        'name',
        'owner_id',
        'colour',
        'tags',
        'metadata',
        'created_at',
        'owner_name',
        'others',
        'owner',
      ],
    });
  });

  it('states the status of success and what it carries', () => {
    expect(Object.keys(operation('/v1/items', 'post').responses)).toContain('201');
    expect(operation('/v1/items/{item_id}', 'delete').responses['204']).toEqual({
      description: 'Success without a body.',
      headers: expect.any(Object) as object,
    });
    expect(operation('/v1/items/{item_id}/touch', 'post').responses['200']).toMatchObject({
      content: { 'application/json': { schema: { type: 'null' } } },
    });
    expect(operation('/v1/items/{item_id}/stream', 'get').responses['200']).toMatchObject({
      content: { 'text/event-stream': { schema: { type: 'object' } } },
    });
  });

  it('shows how a stream is resumed: the header, and data without the id of the frame', () => {
    const { parameters, responses } = operation('/v1/items/{item_id}/resumable', 'get');
    expect(parameters).toContainEqual(
      expect.objectContaining({ name: 'last-event-id', in: 'header', required: false }) as object,
    );
    expect(responses['200']).toMatchObject({
      content: { 'text/event-stream': { schema: { properties: { type: { type: 'string' } }, required: ['type'] } } },
    });
    expect(JSON.stringify(responses['200'])).not.toContain('cursor');
  });

  it('shows a stream that is asked for by POST as lines of JSON', () => {
    expect(operation('/v1/items/{item_id}/follow', 'post').responses['200']).toEqual({
      description: 'Lines of JSON, each as soon as it is known. The schema describes one.',
      headers: expect.any(Object) as object,
      content: {
        'application/x-ndjson': {
          schema: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] },
        },
      },
    });
  });

  it.each([
    ['A', '/v1/items', 'post', [201, 400, 401, 403, 409, 413, 415, 422, 429, 500, 503]],
    ['A0', '/v1/items/{item_id}/stream', 'get', [200, 400, 401, 403, 404, 422, 429, 500, 503]],
    ['B', '/v1/shops/{shop_id}/items', 'get', [200, 400, 401, 403, 404, 422, 429, 500, 503]],
    ['B', '/v1/health', 'get', [200, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503]],
    ['C', '/v1/items/{item_id}', 'put', [200, 400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503]],
    ['S', '/v1/items/{item_id}', 'delete', [204, 400, 401, 403, 404, 409, 415, 422, 429, 500, 503]],
  ])('lists every status of an operation, beside the error set %s of the spec', (set, path, method, statuses) => {
    expect(Object.keys(operation(path, method).responses).map(Number)).toEqual(statuses);
    expect(operation(path, method)['x-error-set']).toBe(set);
  });

  it('states the headers of answers, and the key of requests that may be sent twice', () => {
    const headersAt = (path: string, method: string, status: string) =>
      (operation(path, method).responses[status] as { headers: object }).headers;
    const shared = ['x-trace-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];
    expect(Object.keys(headersAt('/v1/items', 'post', '201'))).toEqual([...shared, 'idempotent-replayed']);
    expect(Object.keys(headersAt('/v1/shops/{shop_id}/items', 'get', '200'))).toEqual(shared);
    const { RateLimited, NotFound } = document.components.responses as Record<string, { headers: object }>;
    expect(Object.keys(RateLimited!.headers)).toEqual([...shared, 'retry-after']);
    expect(Object.keys(NotFound!.headers)).toEqual(shared);
    const key = { $ref: '#/components/parameters/IdempotencyKey' };
    expect(operation('/v1/items', 'post').parameters).toContainEqual(key);
    for (const method of ['put', 'delete'])
      expect(operation('/v1/items/{item_id}', method).parameters).not.toContainEqual(key);
    const touched = operation('/v1/items/{item_id}/touch', 'post');
    expect(touched.parameters).not.toContainEqual(key);
    expect(JSON.stringify(touched.responses)).not.toContain('IdempotentReplayed');
    expect(document.components.parameters).toMatchObject({
      IdempotencyKey: { name: 'idempotency-key', in: 'header', required: false },
    });
    const named = JSON.stringify(document.paths).matchAll(/#\/components\/(parameters|headers)\/(\w+)/g);
    for (const [, kind, name] of named) expect(document.components[kind!]).toHaveProperty(name!);
  });

  it('uses two error bodies', () => {
    expect(document.components.responses).toMatchObject({
      InvalidInput: { content: { 'application/json': { schema: { $ref: '#/components/schemas/ValidationError' } } } },
      NotFound: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    });
    expect(schemaOf('Error').required).toEqual(['error', 'message', 'details', 'timestamp', 'status_code']);
  });

  it('claims no length of the trace id that is not refused', () => {
    expect(document.components.parameters).toMatchObject({ TraceId: { schema: { type: ['string', 'null'] } } });
    expect(JSON.stringify(document.components.parameters)).not.toContain('maxLength');
  });

  it('marks additions and public operations', () => {
    expect(operation('/v1/health', 'get')).toMatchObject({ 'x-addition': true });
    expect(operation('/v1/items', 'post')).not.toHaveProperty('x-addition');
    expect(operation('/v1/items', 'post')).not.toHaveProperty('security');
    expect(document.security).toEqual([{ bearer: [] }]);
  });
});
