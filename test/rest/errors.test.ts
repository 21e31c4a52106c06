import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { GraphQLError } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerOf, errorBody } from '../../rest/errors.ts';
import type { ErrorCode } from '../../src/kernel/errors.ts';
import {
  ApiError,
  alreadyExists,
  conflict,
  errorCatalogue,
  forbidden,
  InputError,
  invalidInput,
  notFound,
  rateLimited,
} from '../../src/kernel/errors.ts';
import type { ToyServer } from './toy.ts';
import { removeFolders, toyServer } from './toy.ts';

let toy: ToyServer;
/** What the resolver of the next request throws. */
let thrown: unknown;
const fail = () => {
  throw thrown;
};

beforeAll(async () => {
  toy = await toyServer(
    `
    query Fault @rest(method: GET, path: "/v1/fault") { fault @body }
    query Health @rest(method: GET, path: "/v1/health") { health @body }
    query Item($item_id: ID!)
      @rest(method: GET, path: "/v1/items/{item_id}") { item(id: $item_id) @body { name others { id fullName } } }
    query Several @rest(method: GET, path: "/v1/several") { several @body { first second third } }
    query Search($org_id: ID!, $owner: ID, $least: Int, $more: [ID!])
      @rest(method: GET, path: "/v1/orgs/{org_id}/search") {
      search(filter: { ownerId: $owner, minCount: $least }, ids: $more) @body
      item(id: $org_id) { name }
    }
    query List($limit: Int, $shop_id: ID!, $cursor: String @header(name: "x-cursor"))
      @rest(method: GET, path: "/v1/shops/{shop_id}/items") {
      shop(id: $shop_id) { items(first: $limit, after: $cursor) @body { items: nodes { name } } }
    }
    mutation Create($body: ItemInput! @body)
      @rest(method: POST, path: "/v1/items") { createItem(input: $body) @body { name } }
    mutation Remove($item_id: ID!)
      @rest(method: DELETE, path: "/v1/items/{item_id}", status: 204) { removeItem(id: $item_id) @body }
  `,
    {
      resolvers: {
        Query: {
          fault: fail,
          search: fail,
          item: () => ({ name: 'n', others: [{ id: 'a' }, { id: 'b' }] }),
          shop: () => ({}),
          several: () => ({}),
          health: () => 'ok',
        },
        Shop: { items: fail },
        Owner: { fullName: ({ id }: { id: string }) => (id === 'b' ? fail() : 'x') },
        Several: {
          first: async () => Promise.reject(new ApiError('RESOURCE_CONFLICT', { reason: 'late' })),
          second: () => {
            throw forbidden('a:b');
          },
          third: () => {
            throw invalidInput(['x'], 'no');
          },
        },
        Mutation: { createItem: fail, removeItem: fail },
      },
    },
  );
});
afterAll(async () => {
  await toy.server.close();
  removeFolders();
});

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/;
const failing = async (error: unknown, url = '/v1/fault') => {
  thrown = error;
  return toy.send({ url });
};

describe('errors of the catalogue', () => {
  it('have the keys of the spec in its order, and a timestamp with microseconds and no zone', async () => {
    const { text } = await failing(forbidden('user:read'));
    const body = JSON.parse(text) as { timestamp: string };
    expect(Object.keys(body)).toEqual(['error', 'message', 'details', 'timestamp', 'status_code']);
    expect(body.timestamp).toMatch(TIMESTAMP);
    expect(Math.abs(Date.parse(`${body.timestamp}Z`) - Date.now())).toBeLessThan(60_000);
  });

  it.each<[ApiError, number, object]>([
    [forbidden('user:read'), 403, { required_permission: 'user:read' }],
    [notFound('workspace', 'ws_1'), 404, { resource_type: 'workspace', resource_id: 'ws_1' }],
    [
      alreadyExists('user', 'email', 'a@b.c'),
      409,
      { resource_type: 'user', field: 'email', value: 'a@b.c', resource_id: null },
    ],
    [conflict('app', 't', 'in_use', 'In use.'), 409, { resource_type: 'app', resource_id: 't', reason: 'in_use' }],
    [new ApiError('PRECONDITION_FAILED', { current_version: 3 }), 412, { current_version: 3 }],
    [rateLimited(1.2), 429, { retry_after: 2 }],
    [new ApiError('UPSTREAM_TIMEOUT', { upstream: 'idp' }), 504, { upstream: 'idp' }],
  ])('are mapped: %s', async (error, status, details) => {
    const answer = await failing(error);
    expect(answer.body).toEqual({
      error: error.code,
      message: error.message,
      details,
      timestamp: expect.stringMatching(TIMESTAMP) as string,
      status_code: status,
    });
    expect(answer.status).toBe(status);
    expect(toy.faults).toEqual([]);
  });

  it('all have a status', () => {
    for (const code of Object.keys(errorCatalogue) as ErrorCode[])
      expect(errorCatalogue[code].status).toBeGreaterThanOrEqual(400);
    expect(errorBody('FORBIDDEN').status_code).toBe(403);
  });

  it('tell how to go on in headers', async () => {
    expect((await failing(rateLimited(7))).headers).toMatchObject({ 'retry-after': '7' });
    const unavailable = await failing(new ApiError('SERVICE_UNAVAILABLE'));
    expect(unavailable).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { details: { retry_after: 1 } },
    });
    expect((await toy.send({ url: '/v1/fault', as: null })).headers).toMatchObject({ 'www-authenticate': 'Bearer' });
  });

  it('are found in hooks of the server as well', () => {
    expect(answerOf(rateLimited(3))).toMatchObject({ status: 429, headers: { 'retry-after': '3' } });
    expect(answerOf(new Error('x'))).toBeNull();
    expect(answerOf('x')).toBeNull();
  });
});

describe('strangers', () => {
  it('get one 401 with empty details, except on public operations', async () => {
    const { status, body } = await toy.send({ url: '/v1/fault', as: null });
    expect([status, body]).toEqual([
      401,
      {
        error: 'AUTHENTICATION_FAILED',
        message: errorCatalogue.AUTHENTICATION_FAILED.message,
        details: {},
        timestamp: expect.stringMatching(TIMESTAMP) as string,
        status_code: 401,
      },
    ]);
    expect((await toy.send({ url: '/v1/health', as: null })).status).toBe(200);
  });

  it('do not learn what is wrong with their input', async () => {
    expect((await toy.send({ url: '/v1/shops/1/items?limit=x', as: null })).status).toBe(401);
  });
});

describe('faults', () => {
  it.each([
    new Error('password=hunter2'),
    new TypeError('x of undefined'),
    new GraphQLError('raw'),
    new GraphQLError('raw', { extensions: { code: 'P2002' } }),
    new ApiError('INTERNAL_SERVER_ERROR', { secret: 1 }, 'secret'),
  ])('are masked and reported: %s', async (error) => {
    toy.faults.length = 0;
    const { status, body } = await failing(error);
    expect([status, body]).toEqual([
      500,
      {
        error: 'INTERNAL_SERVER_ERROR',
        message: errorCatalogue.INTERNAL_SERVER_ERROR.message,
        details: {},
        timestamp: expect.stringMatching(TIMESTAMP) as string,
        status_code: 500,
      },
    ]);
    expect(toy.faults).toEqual([error]);
    toy.faults.length = 0;
  });
});

describe('routes', () => {
  it.each(['/v1/nope', '/', '/v1/items/1/2', '/v1//items'])('unknown: %s is 404', async (url) => {
    const { status, body } = await toy.send({ url: `${url}?secret=1` });
    expect([status, body]).toMatchObject([
      404,
      { error: 'RESOURCE_NOT_FOUND', details: { resource_type: 'route', resource_id: `GET ${url}` }, status_code: 404 },
    ]);
  });

  it('known with another method: 405 with Allow', async () => {
    for (const as of ['me', null]) {
      const answer = await toy.send({ method: 'PATCH', url: '/v1/items/1', as });
      expect(answer).toMatchObject({
        status: 405,
        headers: { allow: 'DELETE, GET, HEAD' },
        body: { error: 'METHOD_NOT_ALLOWED', details: { allowed: ['DELETE', 'GET', 'HEAD'] }, status_code: 405 },
      });
    }
  });

  it('accept a trailing slash without a redirect, and HEAD where there is GET', async () => {
    expect((await toy.send({ url: '/v1/health/' })).status).toBe(200);
    expect(await toy.send({ method: 'HEAD', url: '/v1/health' })).toMatchObject({ status: 200, text: '' });
  });

  it('refuse a bad escape with 400 and a parameter past all ids with 404', async () => {
    expect(await toy.send({ url: '/v1/items/%ff' })).toMatchObject({
      status: 400,
      body: { error: 'INVALID_REQUEST', status_code: 400 },
    });
    expect(await toy.send({ url: `/v1/items/${'x'.repeat(2000)}` })).toMatchObject({
      status: 404,
      body: { error: 'RESOURCE_NOT_FOUND', details: { resource_type: 'route' } },
    });
  });

  it('know their operation', async () => {
    const seen = await toyServer(
      'query Item($item_id: ID!) @rest(method: GET, path: "/v1/items/{item_id}") { item(id: $item_id) @body { id } }',
      {},
      {
        principal: (request) => request.routeOptions.config,
      },
    );
    await seen.get('/v1/items/1');
    expect(seen.contexts).toMatchObject([
      {
        principal: { operation: 'Item', isPublic: false, template: '/v1/items/{item_id}' },
        operation: { name: 'Item', method: 'GET', path: '/v1/items/{item_id}', successStatus: 200, type: 'query' },
      },
    ]);
  });
});

describe('malformed HTTP', () => {
  const raw = async (text: string) => {
    const socket = connect((toy.server.server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(text);
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    return [Number(head.split(' ')[1]), JSON.parse(body) as unknown];
  };

  it('is answered in the same shape', async () => {
    await toy.server.listen({ port: 0, host: '127.0.0.1' });
    expect(await raw('nonsense\r\n\r\n')).toMatchObject([
      400,
      { error: 'INVALID_REQUEST', details: { reason: 'malformed_http' }, status_code: 400 },
    ]);
    const long = `GET / HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`;
    expect(await raw(long)).toMatchObject([
      431,
      { error: 'INVALID_REQUEST', details: { reason: 'headers_too_large' }, status_code: 431 },
    ]);
  });
});

describe('input errors of the schema', () => {
  const located = async (url: string, path: (string | number)[], more: object = {}) => {
    thrown = new InputError([{ path, type: 't', msg: 'm', ...more }]);
    const { body } = await toy.send({ url, headers: { 'x-cursor': 'abc' } });
    return (body as { detail: { loc: unknown; input: unknown }[] }).detail.map(({ loc, input }) => [loc, input]);
  };

  it('point to the query parameter that fed the argument', async () => {
    expect(await located('/v1/shops/s1/items?limit=5', ['first'])).toEqual([[['query', 'limit'], '5']]);
    expect(await located('/v1/shops/s1/items', ['first'])).toEqual([[['query', 'limit'], null]]);
  });

  it('point to the header that fed the argument', async () => {
    expect(await located('/v1/shops/s1/items', ['after'])).toEqual([[['header', 'x-cursor'], 'abc']]);
  });

  it('point through object literals', async () => {
    const url = '/v1/orgs/o1/search?owner=me&least=3&more=a&more=b';
    expect(await located(url, ['filter', 'ownerId'])).toEqual([[['query', 'owner'], 'me']]);
    expect(await located(url, ['filter', 'minCount'])).toEqual([[['query', 'least'], '3']]);
    expect(await located(url, ['ids', 1])).toEqual([[['query', 'more', 1], 'b']]);
  });

  it('point into the body, in the names of REST, and take the value from there', async () => {
    thrown = new InputError([
      { path: ['input', 'maxCostPer1kTokens'], type: 't', msg: 'm' },
      { path: ['input', 'parts', 1, 'partName'], type: 't', msg: 'm', ctx: { a: 1 } },
      { path: ['input', 'metadata', 'someKey', 'aB'], type: 't', msg: 'm' },
      { path: ['input', 'password'], type: 't', msg: 'm' },
      { path: ['input', 'count'], type: 't', msg: 'm', input: 'given' },
    ]);
    const input = {
      display_name: 'x',
      max_cost_per_1k_tokens: 1,
      parts: [{ part_name: 'p' }, { part_name: 'q' }],
      metadata: { someKey: { aB: 2 } },
      password: 'geheim',
    };
    const { status, body } = await toy.post('/v1/items', input);
    expect([status, body]).toEqual([
      422,
      {
        detail: [
          { type: 't', loc: ['body', 'max_cost_per_1k_tokens'], msg: 'm', input: 1 },
          { type: 't', loc: ['body', 'parts', 1, 'part_name'], msg: 'm', input: 'q', ctx: { a: 1 } },
          { type: 't', loc: ['body', 'metadata', 'someKey', 'aB'], msg: 'm', input: 2 },
          { type: 't', loc: ['body', 'password'], msg: 'm', input: '[redacted]' },
          { type: 't', loc: ['body', 'count'], msg: 'm', input: 'given' },
        ],
      },
    ]);
  });

  it('fall back to the parameter of that name', async () => {
    expect(await located('/v1/shops/s1/items', ['shopId'])).toEqual([[['path', 'shop_id'], 's1']]);
    expect(await located('/v1/shops/s1/items', ['somethingElse'])).toEqual([[['query', 'something_else'], null]]);
  });
});

describe('several errors', () => {
  it('the first one by the order of the document wins, not by time', async () => {
    expect((await toy.get('/v1/several')).body).toMatchObject({ error: 'RESOURCE_CONFLICT' });
  });

  it('an answer never carries partial data', async () => {
    const { status, text } = await failing(forbidden('owner:read'), '/v1/items/1');
    expect(status).toBe(403);
    expect(text).not.toContain('"n"');
  });
});
