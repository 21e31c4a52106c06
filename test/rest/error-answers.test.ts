import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import Fastify, { type FastifyInstance, type InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  answerOf,
  answerUnrouted,
  errorBody,
  frameworkErrors,
  registerErrorShapes,
  unknownRoute,
  ValidationFailure,
} from '../../rest/errors.ts';
import { ApiError, errorCatalogue } from '../../src/kernel/errors.ts';

const TIMESTAMP = expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/) as string;

describe('the answer to an error', () => {
  it('is what the catalogue has for its code', () => {
    expect(answerOf(new ApiError('FORBIDDEN', { a: 1 }, 'No.'))).toEqual({
      status: 403,
      headers: {},
      body: { error: 'FORBIDDEN', message: 'No.', details: { a: 1 }, timestamp: TIMESTAMP, status_code: 403 },
    });
    expect(answerOf({ extensions: { code: 'UPSTREAM_ERROR' } })).toMatchObject({
      status: 502,
      body: { message: errorCatalogue.UPSTREAM_ERROR.message, details: {} },
    });
  });

  it('lists what is invalid', () => {
    const item = { type: 't', loc: ['body', 'tags', 1], msg: 'm', input: 1 };
    const failure = new ValidationFailure([item, { ...item, loc: ['query', 'a'], msg: 'n' }]);
    expect(answerOf(failure)).toEqual({ status: 422, headers: {}, body: { detail: failure.detail } });
    expect([failure.name, failure.message]).toEqual(['ValidationFailure', 'body.tags.1: m; query.a: n']);
  });

  it.each([
    [undefined],
    [null],
    ['FORBIDDEN'],
    [new Error('x')],
    [{ extensions: {} }],
    [{ extensions: { code: 'NOT_OURS' } }],
    [{ extensions: { code: 'toString' } }],
    [{ extensions: { code: ['FORBIDDEN'] } }],
    [{ code: 'FORBIDDEN' }],
    [new ApiError('INTERNAL_SERVER_ERROR')],
    [new ApiError('VALIDATION_ERROR')],
    [new ApiError('OPERATION_TOO_LARGE')],
  ])('is none for what is a fault: %j', (error) => {
    expect(answerOf(error)).toBeNull();
  });

  it('tells in headers how to go on', () => {
    const headersOf = (...of: ConstructorParameters<typeof ApiError>) => answerOf(new ApiError(...of))?.headers;
    expect(headersOf('AUTHENTICATION_FAILED')).toEqual({ 'www-authenticate': 'Bearer' });
    expect(headersOf('METHOD_NOT_ALLOWED', { allowed: ['GET', 'PUT'] })).toEqual({ allow: 'GET, PUT' });
    expect(headersOf('METHOD_NOT_ALLOWED')).toEqual({});
    expect(headersOf('FORBIDDEN', { allowed: ['GET'] })).toEqual({});
    expect(headersOf('UPSTREAM_TIMEOUT', { retry_after: 3 })).toEqual({ 'retry-after': '3' });
    expect(headersOf('UPSTREAM_TIMEOUT', { retry_after: 'soon' })).toEqual({});
    expect(headersOf('RATE_LIMIT_EXCEEDED', { retry_after: 7 })).toEqual({ 'retry-after': '7' });
  });

  it.each(['RATE_LIMIT_EXCEEDED', 'SERVICE_UNAVAILABLE'] as const)('says when to come again: %s', (code) => {
    expect(answerOf(new ApiError(code, { a: 1 }, 'Later.'))).toMatchObject({
      status: errorCatalogue[code].status,
      headers: { 'retry-after': '1' },
      body: { error: code, message: 'Later.', details: { a: 1, retry_after: 1 } },
    });
  });

  it('has the time to the microsecond', () => {
    const before = Date.now() - 1_000;
    const times = Array.from({ length: 3_000 }, () => errorBody('FORBIDDEN').timestamp);
    for (const time of times) expect(time).toEqual(TIMESTAMP);
    expect(new Set(times.map((time) => time.slice(-3))).size).toBeGreaterThan(100);
    for (const time of [times[0], times.at(-1)]) {
      const ms = Date.parse(`${time}Z`);
      expect([ms >= before, ms <= Date.now() + 1_000]).toEqual([true, true]);
    }
  });

  it('may have another status than the catalogue says', () => {
    expect(errorBody('INVALID_REQUEST', undefined, { reason: 'x' }, 431)).toEqual({
      error: 'INVALID_REQUEST',
      message: errorCatalogue.INVALID_REQUEST.message,
      details: { reason: 'x' },
      timestamp: TIMESTAMP,
      status_code: 431,
    });
  });
});

describe('a path without a route', () => {
  it('is named without its query, and not at any length', () => {
    expect(unknownRoute({ method: 'GET', url: '/v1/x?token=secret' })).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      message: "There is no route 'GET /v1/x'.",
      details: { resource_type: 'route', resource_id: 'GET /v1/x' },
    });
    const { details } = unknownRoute({ method: 'GET', url: `/${'x'.repeat(500)}` });
    expect(details.resource_id).toBe(`GET /${'x'.repeat(251)}`);
  });
});

describe('a server', () => {
  let server: FastifyInstance;
  /** What the handler throws, what it is shown as, and what was reported. */
  let thrown: unknown;
  let shown: ((error: unknown) => unknown) | undefined;
  const faults: unknown[] = [];
  const codes: unknown[] = [];
  beforeAll(async () => {
    server = Fastify({ bodyLimit: 100, frameworkErrors, routerOptions: { maxParamLength: 20 } });
    registerErrorShapes(server, { onFault: (error) => faults.push(error), shown: (error) => shown?.(error) });
    server.addHook('onResponse', async (_request, { errorCode }) => void codes.push(errorCode));
    server.get('/throws', async () => {
      throw thrown;
    });
    server.post('/items/:id', async () => 'fine');
    server.post('/files', { config: { takesFile: true } }, async () => 'fine');
    server.get('/pages/*', (_request, reply) => reply.callNotFound());
    server.get('/unreadable', (request, reply) => frameworkErrors(new Error('x'), request, reply));
    await server.ready();
  });
  afterAll(async () => server.close());

  const ask = async (options: InjectOptions) => {
    codes.length = 0;
    faults.length = 0;
    const answer = await server.inject(options);
    const { error, details } = answer.json<{ error?: string; details?: unknown }>();
    return [answer.statusCode, error, details];
  };
  const throwing = (error: unknown, asWhat?: typeof shown) => {
    thrown = error;
    shown = asWhat;
    return ask({ url: '/throws' });
  };
  const fastifyError = (code: string | undefined, statusCode: number | undefined) =>
    Object.assign(new Error('secret'), { code, statusCode });

  it('answers errors of the catalogue as JSON, and remembers their code', async () => {
    thrown = new ApiError('FORBIDDEN');
    const answer = await server.inject('/throws');
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([403, 'application/json; charset=utf-8']);
    expect(await throwing(new ApiError('RESOURCE_CONFLICT', { a: 1 }))).toEqual([409, 'RESOURCE_CONFLICT', { a: 1 }]);
    expect([codes, faults]).toEqual([['RESOURCE_CONFLICT'], []]);
    expect(await throwing(new ValidationFailure([]))).toEqual([422, undefined, undefined]);
    expect([codes, faults]).toEqual([['VALIDATION_ERROR'], []]);
  });

  it.each<[string | undefined, number | undefined]>([
    ['FST_ERR_VALIDATION', 500],
    ['FST_ERR_VALIDATION', 399],
    ['FST_ERR_VALIDATION', undefined],
    ['ERR_FST_OTHER', 400],
    [undefined, 400],
  ])('masks and reports a fault: %s %s', async (code, status) => {
    const fault = fastifyError(code, status);
    expect(await throwing(fault)).toEqual([500, 'INTERNAL_SERVER_ERROR', {}]);
    expect([codes, faults]).toEqual([['INTERNAL_SERVER_ERROR'], [fault]]);
  });

  it.each<[string, number, string]>([
    ['FST_ERR_CTP_EMPTY_JSON_BODY', 400, 'empty_json_body'],
    ['FST_ERR_VALIDATION', 499, 'validation'],
    ['FST_BASIC', 401, 'basic'],
    ['FST_ERR_OF_CTP_FST_ERR_', 400, 'of_ctp_fst_err_'],
  ])('says why the framework refused a request: %s', async (code, status, reason) => {
    expect(await throwing(fastifyError(code, status))).toEqual([400, 'INVALID_REQUEST', { reason }]);
    expect(faults).toEqual([]);
  });

  it('shows an error as another one where it is told to', async () => {
    const cause = new Error('the database is away');
    expect(await throwing(cause, () => new ApiError('SERVICE_UNAVAILABLE', { retry_after: 2 }))).toEqual([
      503,
      'SERVICE_UNAVAILABLE',
      { retry_after: 2 },
    ]);
    expect([codes, faults]).toEqual([['SERVICE_UNAVAILABLE'], []]);
    expect((await throwing(cause, (error) => error))[0]).toBe(500);
    expect(faults).toEqual([cause]);
    // what has an answer keeps it
    expect((await throwing(new ApiError('FORBIDDEN'), () => new ApiError('UPSTREAM_ERROR')))[0]).toBe(403);
    expect((await throwing(fastifyError('FST_X', 400), () => new ApiError('UPSTREAM_ERROR')))[0]).toBe(400);
    shown = undefined;
  });

  it('refuses a body that is too large, or of another type than its route takes', async () => {
    const post = (url: string, type: string, payload: string) =>
      ask({ method: 'POST', url, payload, headers: { 'content-type': type } });
    expect(await post('/items/1', 'application/json', `"${'x'.repeat(100)}"`)).toEqual([
      413,
      'PAYLOAD_TOO_LARGE',
      { limit_bytes: 100 },
    ]);
    const of = (expected: string) => [415, 'UNSUPPORTED_MEDIA_TYPE', { expected }];
    expect(await post('/items/1', 'a/b', 'x')).toEqual(of('application/json'));
    expect(await post('/files', 'a/b', 'x')).toEqual(of('multipart/form-data'));
  });

  it('knows paths and their methods, before it looks at a body', async () => {
    const wrong = { payload: '{', headers: { 'content-type': 'a/b' } };
    const route = (id: string) => ({ resource_type: 'route', resource_id: id });
    expect(await ask({ method: 'POST', url: '/nowhere', ...wrong })).toEqual([
      404,
      'RESOURCE_NOT_FOUND',
      route('POST /nowhere'),
    ]);
    expect(await ask({ method: 'PUT', url: '/items/1', ...wrong })).toEqual([
      405,
      'METHOD_NOT_ALLOWED',
      { allowed: ['POST'] },
    ]);
    expect(await ask({ url: '/nowhere' })).toEqual([404, 'RESOURCE_NOT_FOUND', route('GET /nowhere')]);
    // a route that finds nothing allows its method all the same
    expect(await ask({ url: '/pages/a' })).toEqual([404, 'RESOURCE_NOT_FOUND', route('GET /pages/a')]);
    expect(answerUnrouted(server, { method: 'FROB', url: '/items/1' })).toMatchObject({ status: 405 });
    expect(answerUnrouted(server, { method: 'FROB', url: '/nowhere' })).toMatchObject({ status: 404 });
  });

  it('answers what the router refuses before any hook, with the id of the request', async () => {
    const answer = await server.inject({ method: 'POST', url: '/items/%ff' });
    expect([answer.statusCode, answer.json<{ details: object }>().details]).toEqual([400, { reason: 'bad_url' }]);
    expect(answer.headers['x-trace-id']).toMatch(/^req-/);
    expect(await ask({ method: 'POST', url: `/items/${'x'.repeat(21)}` })).toEqual([
      404,
      'RESOURCE_NOT_FOUND',
      { resource_type: 'route', resource_id: `POST /items/${'x'.repeat(21)}` },
    ]);
    expect(await ask({ url: '/unreadable' })).toEqual([400, 'INVALID_REQUEST', { reason: 'unreadable' }]);
  });

  it('answers CONNECT, which no route has', async () => {
    await server.listen({ port: 0, host: '127.0.0.1' });
    const connecting = async (target: string) => {
      const socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1');
      socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: x\r\n\r\n`);
      return await text(socket);
    };
    expect(await connecting('example.test:443')).toMatch(
      /^HTTP\/1\.1 404 Not Found\r\n.*"resource_id":"CONNECT example\.test:443"/s,
    );
    expect(await connecting('/items/1')).toMatch(/^HTTP\/1\.1 405 .*\r\nallow: POST\r\n/s);
  });
});
