import type { InjectOptions } from 'fastify';
import type { CompiledOperation } from '../../rest/operation.ts';
import { routeOf } from './operations.ts';
import { injectable, type Parts } from './requests.ts';
import { thinned } from './thinned.ts';

/** A request that nobody should send, and what is odd about it. */
export interface HostileRequest {
  what: string;
  request: InjectOptions & { url: string };
}

const deep = (open: string, close: string, levels = 10_000) => open.repeat(levels) + close.repeat(levels);
const megabyte = 'm'.repeat(1024 * 1024);

/** Path segments as they are written in the URL. */
export const pathTexts = [
  '%00',
  'a%00b',
  '%ff',
  '%',
  '%zz',
  '%ED%A0%80',
  '%F0%9F%98%80',
  '..%2f..%2fetc',
  '%2e%2e',
  '__proto__',
  'constructor',
  'toString',
  'x'.repeat(1_000),
  'x'.repeat(10_000),
  '9'.repeat(40),
  '-1',
  'null',
  'undefined',
  "'%20or%201=1--",
  '%20',
  'x%3Fx=1',
  'x%23x',
  'ws_%2500',
  '{}',
  'id/id',
  '',
];

/** Values of query parameters, before they are escaped. */
export const queryTexts = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\u{1F600}',
  '%',
  '_%\\',
  "' or 1=1 --",
  '__proto__',
  'x'.repeat(10_000),
  '-1',
  '0',
  '1.5',
  '1e400',
  '0x10',
  ' 50',
  '50 ',
  '5e1',
  'NaN',
  'Infinity',
  '2147483648',
  '99999999999999999999',
  'true',
  '[]',
  '{}',
  '300000-01-01T00:00:00Z',
  '0000-00-00',
  '9999-12-31T23:59:59.999-23:59',
  '0001-01-01T00:00:00+23:59',
];

/** Query strings that are appended as they are. */
export const queryStrings = (name: string) => [
  `${name}[]=5`,
  `${name}[a]=5`,
  `${name}=1&${name}=2`,
  `${name}=%ff`,
  `${name}=%`,
  `${name}=%ED%A0%80`,
  `__proto__[polluted]=1`,
  `constructor[prototype][polluted]=1`,
  `${name}`,
  `=5`,
  '&&&==&',
  `${Array.from({ length: 2_000 }, (_, i) => `p${i}=1`).join('&')}`,
];

/** Bodies that are no good for any route, as bytes. */
export const bodies: [string, string | Buffer][] = [
  ['an empty body', ''],
  ['null', 'null'],
  ['a list', '[]'],
  ['a list of objects', '[{}]'],
  ['a number', '1'],
  ['a text', '"x"'],
  ['true', 'true'],
  ['half an object', '{'],
  ['a lone comma', '{"a":1,}'],
  ['a byte order mark', '\ufeff{}'],
  ['two documents', '{}{}'],
  ['a comment', '{/* */}'],
  ['NaN', '{"a":NaN}'],
  ['a deep list', deep('[', ']')],
  ['a deep object', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
  ['a deep list that does not end', '['.repeat(100_000)],
  ['__proto__', '{"__proto__":{"polluted":1}}'],
  ['an escaped __proto__', '{"__pr\\u006fto__":{"polluted":1}}'],
  ['constructor.prototype', '{"constructor":{"prototype":{"polluted":1}}}'],
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['UTF-16', Buffer.from('\ufeff{}', 'utf16le')],
  ['a key with NUL', '{"a\\u0000b":1}'],
  ['many keys', JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, i])))],
  ['3 MB', `{"a":"${'m'.repeat(3 * 1024 * 1024)}"}`],
];

/** What a single field may be set to, as JSON text. */
export const fieldValues: [string, string][] = [
  ['null', 'null'],
  ['an empty text', '""'],
  ['a list of an empty text', '[""]'],
  ['NUL', '"a\\u0000b"'],
  ['a lone surrogate', '"\\ud800"'],
  ['a reversed pair', '"\\udc00\\ud800"'],
  ['1 MB', `"${megabyte}"`],
  [
    '10 KB of noise',
    `"${Array.from({ length: 10_240 }, (_, i) => String.fromCharCode(97 + ((i * 7919) % 26))).join('')}"`,
  ],
  ['past 32 bits', '2147483648'],
  ['past 64 bits', '9223372036854775808'],
  ['1e400', '1e400'],
  ['-0', '-0'],
  ['a fraction', '1.5'],
  ['a list', '[[[]]]'],
  ['an object', '{"a":{"b":[]}}'],
  ['__proto__ inside', '{"a":{"__proto__":{"polluted":1}}}'],
  ['constructor inside', '{"constructor":{"prototype":{"polluted":1}}}'],
  ['a deep value', deep('[', ']', 5_000)],
  ['70 levels', `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`],
  ['NUL in a key', '{"a\\u0000b":"\\u0000"}'],
  ['a surrogate in a key', '{"\\ud800":1}'],
  ['many items', `[${Array.from({ length: 70_000 }, () => '"a"').join()}]`],
  ['a year that PostgreSQL has not', '"300000-01-01T00:00:00Z"'],
  ['controls', '"\\u0001\\u001b[31m\\r\\nX: y"'],
  ['directions', '"\\u202e\\u2066\\ufeff"'],
  ['LIKE characters', '"%_\\\\"'],
];

/** Copies of a value, in each of which one of its texts is empty, and where that text stands. */
export function* withOneTextEmpty(value: unknown, path = ''): Generator<[where: string, copy: unknown]> {
  if (typeof value === 'string') yield [path, ''];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    for (const [where, copy] of withOneTextEmpty(child, `${path}.${key}`)) {
      if (Array.isArray(value)) yield [where, (value as unknown[]).with(Number(key), copy)];
      else yield [where, { ...value, [key]: copy }];
    }
  }
}

const odd: [string, Record<string, string>][] = [
  ['text/plain', { 'content-type': 'text/plain' }],
  ['multipart', { 'content-type': 'multipart/form-data; boundary=x' }],
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['no media type at all', { 'content-type': ';' }],
  ['UTF-16', { 'content-type': 'application/json; charset=utf-16le' }],
  ['gzip', { 'content-encoding': 'gzip' }],
  ['a trace id of garbage', { 'x-trace-id': '\u00e9 <script>' }],
  ['a forged address', { 'x-forwarded-for': 'a\tb, 1.2.3.4, ::ffff:9.9.9.9' }],
  ['an idempotency key of 10 KB', { 'idempotency-key': 'k'.repeat(10_240) }],
  ['a bad If-Match', { 'if-match': '"\u00ff' }],
  ['any media type', { accept: 'application/xml;q=0.1' }],
];

const METHODS = ['HEAD', 'OPTIONS', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'] as const;

/** A route whose path holds odd texts, one at a time. */
export function* hostilePaths(operation: CompiledOperation, valid: () => Parts): Generator<HostileRequest> {
  for (const { name, in: place, wireName } of operation.parameters) {
    if (place !== 'path') continue;
    for (const text of thinned(pathTexts, `${routeOf(operation)} ${name}`)) {
      const parts = valid();
      const params = { ...parts.params, [wireName]: text };
      const request = injectable(operation, { ...parts, params }, { rawPath: true });
      yield { what: `path ${name}=${text.slice(0, 30)}`, request };
    }
  }
}

/**
 * What is odd and can be done to the address and the head of a request to one route, starting from a valid one: of each
 * kind of oddness and each place for it a third, or everything in `npm run test:all`.
 */
export function* hostileHeads(operation: CompiledOperation, valid: () => Parts): Generator<HostileRequest> {
  yield* hostilePaths(operation, valid);
  yield* hostileQueries(operation, valid);
  yield* hostileHeaders(operation, valid);
  yield* hostileAddresses(operation, valid);
}

function* hostileQueries(operation: CompiledOperation, valid: () => Parts): Generator<HostileRequest> {
  for (const { name, in: place, wireName } of operation.parameters) {
    if (place !== 'query') continue;
    const where = `${routeOf(operation)} ?${name}`;
    for (const text of thinned(queryTexts, where)) {
      const parts = valid();
      yield {
        what: `query ${name}=${JSON.stringify(text.slice(0, 30))}`,
        request: injectable(operation, { ...parts, query: { ...parts.query, [wireName]: text } }),
      };
    }
    for (const text of thinned(queryStrings(wireName), `${where} as it is`)) {
      const request = injectable(operation, valid());
      yield {
        what: `?${text.slice(0, 40)}`,
        request: { ...request, url: `${request.url}${request.url.includes('?') ? '&' : '?'}${text}` },
      };
    }
  }
}

function* hostileHeaders(operation: CompiledOperation, valid: () => Parts): Generator<HostileRequest> {
  for (const [what, headers] of thinned(odd, `${routeOf(operation)} headers`)) {
    const request = injectable(operation, valid());
    yield { what: `header: ${what}`, request: { ...request, headers: { ...request.headers, ...headers } } };
  }
}

/** What is odd and can be done to the body of a request to one route: the same choice as {@link hostileHeads}. */
export function* hostileBodies(operation: CompiledOperation, valid: () => Parts): Generator<HostileRequest> {
  const route = routeOf(operation);
  for (const [what, body] of thinned(bodies, `${route} bodies`)) {
    const request = injectable(operation, valid());
    yield {
      what: `body: ${what}`,
      request: { ...request, headers: { 'content-type': 'application/json', ...request.headers }, payload: body },
    };
  }
  for (const [index, key] of Object.keys((valid().body as object | undefined) ?? {}).entries()) {
    for (const [what, json] of thinned(fieldValues, `${route} ${key}`)) {
      if (what === 'many items' && index > 0) continue; // what it costs does not depend on where it stands
      const parts = valid();
      const { [key]: _left, ...rest } = parts.body as Record<string, unknown>;
      const others = JSON.stringify(rest).slice(1, -1);
      const payload = `{${others}${others ? ',' : ''}${JSON.stringify(key)}:${json}}`;
      const request = { ...injectable(operation, parts), payload };
      yield { what: `${key}: ${what}`, request };
      if (what === 'null')
        yield {
          what: `${key} twice`,
          request: { ...request, payload: `{${JSON.stringify(key)}:1,${payload.slice(1)}` },
        };
    }
  }
  for (const [where, body] of thinned([...withOneTextEmpty(valid().body)], `${route} texts`))
    yield { what: `${where} empty`, request: injectable(operation, { ...valid(), body }) };
}

const SUFFIXES = ['/', '//', '/.', '/%2e%2e', ';x=1', '.json', '/x'];

/** Paths that are nearly the route's, and methods that it does not have. */
function* hostileAddresses(operation: CompiledOperation, valid: () => Parts): Generator<HostileRequest> {
  const request = injectable(operation, valid());
  for (const suffix of thinned(SUFFIXES, `${routeOf(operation)} suffixes`)) {
    const [path, query] = request.url.split('?', 2);
    yield { what: `path and '${suffix}'`, request: { ...request, url: `${path}${suffix}${query ? `?${query}` : ''}` } };
  }
  for (const method of thinned(METHODS, `${routeOf(operation)} methods`))
    if (method !== operation.method) yield { what: method, request: { ...request, method: method as 'GET' } };
}
