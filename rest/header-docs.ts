import type { CompiledOperation } from './operation.ts';

type JsonObject = { [key: string]: unknown };

/** A named part of the document. */
export const component = (kind: string, name: string): JsonObject => ({ $ref: `#/components/${kind}/${name}` });

const always: Record<string, JsonObject> = {
  Authorization: {
    name: 'authorization',
    in: 'header',
    required: false,
    description: 'Access token: `Bearer <token>`.',
    schema: { type: ['string', 'null'] },
  },
  TraceId: {
    name: 'x-trace-id',
    in: 'header',
    required: false,
    description:
      'Correlates logs and activity records. The answer repeats it. 1 to 128 characters of `A-Z a-z 0-9 . _ -`; ' +
      'any other value is replaced.',
    schema: { type: ['string', 'null'] },
  },
};

/** Header of operations that can require a certain version of their resource. */
const ifMatch: JsonObject = {
  name: 'if-match',
  in: 'header',
  required: false,
  description: 'One or more `ETag` values of earlier answers, or `*`. Nothing changes unless one of them matches.',
  schema: { type: 'string', pattern: '^(?:\\*|(?:W/)?"[!#-~]*"(?:, *(?:W/)?"[!#-~]*")*)$' },
};

/** Header of requests that can be sent twice and are carried out once. */
const idempotencyKey: JsonObject = {
  name: 'idempotency-key',
  in: 'header',
  required: false,
  description:
    'For 24 hours, the same key with the same request gets the first answer again, and nothing is done twice. The ' +
    'key with another request is refused with 409.',
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  example: '4f1c7a52-0f0e-4d0c-9a55-6a3c4f6d1b1e',
};

/** Headers of requests, by their names in the document. */
export const requestHeaders = { ...always, IfMatch: ifMatch, IdempotencyKey: idempotencyKey };

const text = (description: string): JsonObject => ({ description, schema: { type: 'string' } });
const count = (description: string): JsonObject => ({ description, schema: { type: 'integer', minimum: 0 } });

/** Headers of answers, by their names in the document. */
export const answerHeaders: Record<string, JsonObject> = {
  ETag: text(
    'The version of the resource, for `If-Match`. Counters and values that the service maintains do not raise it.',
  ),
  TraceId: text('The id under which logs and activity records know the request.'),
  RateLimitLimit: count('Requests that the caller may send at once.'),
  RateLimitRemaining: count('Requests that the caller may still send.'),
  RateLimitReset: count('Seconds until the caller may again send `x-ratelimit-limit` requests at once.'),
  RetryAfter: count('Seconds to wait before the request can be sent again.'),
  IdempotentReplayed: {
    description: 'The answer is that of an earlier request with the same `Idempotency-Key`.',
    schema: { type: 'string', enum: ['true'] },
  },
};

const headersNamed = (names: Readonly<Record<string, string>>): JsonObject =>
  Object.fromEntries(Object.entries(names).map(([header, name]) => [header, component('headers', name)]));

/** Every answer has them; the limits only where there are some. */
const shared = {
  'x-trace-id': 'TraceId',
  'x-ratelimit-limit': 'RateLimitLimit',
  'x-ratelimit-remaining': 'RateLimitRemaining',
  'x-ratelimit-reset': 'RateLimitReset',
};

export const successHeaders = (operation: CompiledOperation): JsonObject =>
  headersNamed({
    ...(operation.etag ? { ETag: 'ETag' } : {}),
    ...shared,
    ...(operation.isReplayed ? { 'idempotent-replayed': 'IdempotentReplayed' } : {}),
  });

export const failureHeaders = (status: number): JsonObject =>
  headersNamed({ ...shared, ...(status === 429 || status === 503 ? { 'retry-after': 'RetryAfter' } : {}) });

/** The headers that an operation takes, except those that one of its own variables reads. */
export function headersOf(operation: CompiledOperation): JsonObject[] {
  const own = new Set(operation.parameters.map((parameter) => parameter.wireName));
  const taken = {
    ...always,
    ...(operation.takesIfMatch ? { IfMatch: ifMatch } : {}),
    ...(operation.isReplayed ? { IdempotencyKey: idempotencyKey } : {}),
  };
  return Object.entries(taken).flatMap(([key, { name }]) =>
    own.has(String(name)) ? [] : [component('parameters', key)],
  );
}
