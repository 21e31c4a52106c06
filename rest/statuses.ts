import type { GraphQLInputType } from 'graphql';
import { GraphQLID, getNamedType, isInputObjectType } from 'graphql';
import { type ErrorCode, errorCatalogue } from '../src/kernel/errors.ts';
import type { ErrorSet } from './directives.ts';
import type { CompiledOperation } from './operation.ts';

/** The statuses that each error set of the spec lists. */
const errorSets: Record<ErrorSet, readonly number[]> = {
  A: [401, 403, 422, 429, 500],
  A0: [401, 403, 429, 500],
  B: [401, 403, 404, 422, 500],
  C: [422],
  S: [422, 429],
  S0: [429],
};

/** Any operation: an unreadable request, too many requests, an internal error, an unavailable database. */
const anywhere: ErrorCode[] = [
  'INVALID_REQUEST',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_SERVER_ERROR',
  'SERVICE_UNAVAILABLE',
];

/**
 * Every failure status that an operation can answer, in ascending order: those that follow from its form, those that
 * its field declares (`mayFail`) and those that the spec's error set lists.
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
  // also without a declared body: a body that is sent anyway must have a readable type
  if (method !== 'GET') failures.add('UNSUPPORTED_MEDIA_TYPE');
  const statuses = new Set([
    ...[...failures].map((code) => errorCatalogue[code].status),
    ...errorSets[operation.errors],
  ]);
  return [...statuses].sort((a, b) => a - b);
}

/** Whether it has a path variable, or an identifier anywhere in the input. */
const namesResource = ({ parameters, body }: CompiledOperation): boolean =>
  parameters.some((parameter) => parameter.in === 'path' || getNamedType(parameter.type) === GraphQLID) ||
  (body !== null && hasField(body.type, (_name, type) => getNamedType(type) === GraphQLID));

/** Whether it takes `If-Match`, or a version in the input. */
const expectsVersion = ({ takesIfMatch, body }: CompiledOperation): boolean =>
  takesIfMatch || (body !== null && hasField(body.type, (name) => name === 'expectedVersion'));

function hasField(type: GraphQLInputType, matches: (name: string, type: GraphQLInputType) => boolean): boolean {
  const named = getNamedType(type);
  if (!isInputObjectType(named)) return false;
  return Object.values(named.getFields()).some(
    (field) => matches(field.name, field.type) || hasField(field.type, matches),
  );
}

/** Description of each status, beyond the message of its first code. */
const descriptions: Record<number, string> = {
  400: 'The request cannot be read. `details.reason` says why.',
  401: 'Authentication is missing or invalid.',
  403: 'The caller lacks the permission in `details.required_permission`.',
  404: 'The resource does not exist or is hidden from the caller.',
  409:
    'A resource with this value already exists, the state of the resource does not allow the change, ' +
    'or the `Idempotency-Key` is in use.',
  412: 'The resource has changed since it was read. `details.current_version` is its current version.',
  413: 'The body is larger than `details.limit_bytes` bytes.',
  415: 'The content type of the body is not the one in `details.expected`.',
  416: 'The range lies beyond the end of the file, which has `details.size_bytes` bytes.',
  422: 'Invalid parameters or body. Lists all failures at once.',
  429: 'Too many requests. Retry after `details.retry_after` seconds.',
  500: 'Internal error of the service.',
  502: 'The service in `details.upstream` failed.',
  503: 'The service cannot answer now. Retry after `details.retry_after` seconds.',
  504: 'The service in `details.upstream` did not answer in time.',
};

/** `details` of each code that has some, as shown in the document's examples. */
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
  RANGE_NOT_SATISFIABLE: { size_bytes: 1_024 },
  RATE_LIMIT_EXCEEDED: { retry_after: 1 },
  SERVICE_UNAVAILABLE: { retry_after: 1 },
  UPSTREAM_ERROR: { upstream: 'oauth' },
  UPSTREAM_TIMEOUT: { upstream: 'oauth' },
};

export interface FailureResponse {
  /** Name of the shared response. */
  name: string;
  description: string;
  /** One example body per code. */
  examples: Record<string, unknown>;
}

/** Codes that routes answer. The operation of a route is never too large. */
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

/** The shared response of a failure status. */
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
