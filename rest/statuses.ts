import type { GraphQLInputType } from 'graphql';
import { GraphQLID, getNamedType, isInputObjectType } from 'graphql';
import { type ErrorCode, errorCatalogue } from '../src/core/errors.ts';
import type { ErrorSet } from './directives.ts';
import type { CompiledOperation } from './operation.ts';

/** The bodies that each error set of the spec lists. */
const errorSets: Record<ErrorSet, readonly number[]> = {
  A: [401, 403, 422, 429, 500],
  A0: [401, 403, 429, 500],
  B: [401, 403, 404, 422, 500],
  C: [422],
  S: [422, 429],
  S0: [429],
};

/** Whatever is asked for: an unreadable request, one too many, a fault of ours, a database that is away. */
const anywhere: ErrorCode[] = [
  'INVALID_REQUEST',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_SERVER_ERROR',
  'SERVICE_UNAVAILABLE',
];

/**
 * Every status other than success that an operation can answer, in ascending order: what its form tells, what its field
 * declares (`mayFail`) and what the spec's error set lists.
 */
export function failureStatuses(operation: CompiledOperation): number[] {
  const { isPublic, method, parameters, body, type, mayFail } = operation;
  const failures = new Set<ErrorCode>([...anywhere, ...mayFail]);
  if (!isPublic) for (const failure of ['AUTHENTICATION_FAILED', 'FORBIDDEN'] as const) failures.add(failure);
  if (parameters.length > 0 || body) failures.add('VALIDATION_ERROR');
  if (namesResource(operation)) failures.add('RESOURCE_NOT_FOUND');
  if (type === 'mutation') failures.add('RESOURCE_CONFLICT');
  if (expectsVersion(operation)) failures.add('PRECONDITION_FAILED');
  if (body) failures.add('PAYLOAD_TOO_LARGE');
  // where no body is wanted too: what comes with one must have a type that can be read
  if (method !== 'GET') failures.add('UNSUPPORTED_MEDIA_TYPE');
  const statuses = new Set([
    ...[...failures].map((code) => errorCatalogue[code].status),
    ...errorSets[operation.errors],
  ]);
  return [...statuses].sort((a, b) => a - b);
}

/** A variable of the path, or an identifier anywhere in the input. */
const namesResource = ({ parameters, body }: CompiledOperation): boolean =>
  parameters.some((parameter) => parameter.in === 'path' || getNamedType(parameter.type) === GraphQLID) ||
  (body !== null && hasField(body.type, (_name, type) => getNamedType(type) === GraphQLID));

/** `If-Match`, or the version in the input. */
const expectsVersion = ({ takesIfMatch, body }: CompiledOperation): boolean =>
  takesIfMatch || (body !== null && hasField(body.type, (name) => name === 'expectedVersion'));

function hasField(type: GraphQLInputType, matches: (name: string, type: GraphQLInputType) => boolean): boolean {
  const named = getNamedType(type);
  if (!isInputObjectType(named)) return false;
  return Object.values(named.getFields()).some(
    (field) => matches(field.name, field.type) || hasField(field.type, matches),
  );
}

/** What a status says, beyond the message of its first code. */
const descriptions: Record<number, string> = {
  400: 'The request cannot be read; `details.reason` says why.',
  401: 'Authentication is missing or invalid.',
  403: 'The caller lacks the permission in `details.required_permission`.',
  404: 'The resource does not exist or is hidden from the caller.',
  409: 'Something with this value exists, the state of the resource does not allow this, or the `Idempotency-Key` is in use.',
  412: 'The resource was changed since it was read; `details.current_version` is its version now.',
  413: 'The body has more than `details.limit_bytes` bytes.',
  415: 'The body is not of the type in `details.expected`.',
  422: 'Invalid parameters or body: all failures at once.',
  429: 'Too many requests; `details.retry_after` says for how many seconds to wait.',
  500: 'A fault of the service.',
  502: 'The service in `details.upstream` failed.',
  503: 'The service cannot answer now; `details.retry_after` says for how many seconds to wait.',
  504: 'The service in `details.upstream` did not answer in time.',
};

/** Content of `details`, where the code has some, as the examples of the document show it. */
const details: Partial<Record<ErrorCode, Record<string, unknown>>> = {
  INVALID_REQUEST: { reason: 'idempotency_key' },
  FORBIDDEN: { required_permission: 'workspace:create' },
  RESOURCE_NOT_FOUND: { resource_type: 'workspace', resource_id: 'ws_01M7YDNKP9EQGSJ8EQS85QTN9P' },
  RESOURCE_ALREADY_EXISTS: { resource_type: 'environment', field: 'slug', value: 'production', resource_id: null },
  RESOURCE_CONFLICT: {
    resource_type: 'organization',
    resource_id: 'org_01M7YDNKCMBEFDG2BQ8Z4D4Y0W',
    reason: 'last_owner',
  },
  IDEMPOTENCY_CONFLICT: { reason: 'different_request' },
  PRECONDITION_FAILED: { current_version: 3 },
  PAYLOAD_TOO_LARGE: { limit_bytes: 2_097_152 },
  UNSUPPORTED_MEDIA_TYPE: { expected: 'application/json' },
  RATE_LIMIT_EXCEEDED: { retry_after: 1 },
  SERVICE_UNAVAILABLE: { retry_after: 1 },
  UPSTREAM_ERROR: { upstream: 'oauth' },
  UPSTREAM_TIMEOUT: { upstream: 'oauth' },
};

export interface FailureResponse {
  /** Name of the shared response. */
  name: string;
  description: string;
  /** One body by code. */
  examples: Record<string, unknown>;
}

/** What routes answer: their documents are never too large. */
const codes = (Object.keys(errorCatalogue) as ErrorCode[]).filter((code) => code !== 'OPERATION_TOO_LARGE');
const names: Record<number, string> = {
  404: 'NotFound',
  409: 'Conflict',
  422: 'InvalidInput',
  429: 'RateLimited',
  500: 'InternalError',
};
const pascal = (code: string) =>
  code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** What a failure with this status looks like. */
export function failureResponse(status: number): FailureResponse {
  const own = codes.filter((code) => errorCatalogue[code].status === status);
  const example = (code: ErrorCode) => ({
    error: code,
    message: errorCatalogue[code].message,
    details: details[code] ?? {},
    timestamp: '2026-01-02T03:04:05.678901',
    status_code: status,
  });
  const examples =
    status === 422
      ? { VALIDATION_ERROR: { detail: [{ type: 'missing', loc: ['body', 'name'], msg: 'Field required', input: {} }] } }
      : Object.fromEntries(own.map((code) => [code, example(code)]));
  return { name: names[status] ?? pascal(own[0] ?? String(status)), description: descriptions[status] ?? '', examples };
}
