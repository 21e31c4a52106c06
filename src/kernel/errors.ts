import { GraphQLError } from 'graphql';
import type { ResourceWord } from './resources.ts';
import { startingNoun } from './wording.ts';

/**
 * The one catalogue of what can go wrong for a caller: code, HTTP status and default message.
 * A code is a contract: it is never reused for something else. `/graphql` has statuses of its own.
 */
export const errorCatalogue = {
  AUTHENTICATION_FAILED: {
    status: 401,
    message: 'Authentication is missing or invalid. Sign in and send the access token as a Bearer token.',
  },
  FORBIDDEN: { status: 403, message: 'You do not have permission to do this.' },
  RESOURCE_NOT_FOUND: { status: 404, message: 'The resource was not found.' },
  RESOURCE_ALREADY_EXISTS: { status: 409, message: 'A resource with this value already exists.' },
  RESOURCE_CONFLICT: { status: 409, message: 'The resource is in a state that does not allow this.' },
  IDEMPOTENCY_CONFLICT: { status: 409, message: 'This Idempotency-Key cannot be used for this request.' },
  PRECONDITION_FAILED: { status: 412, message: 'The resource was changed since you read it.' },
  INVALID_REQUEST: { status: 400, message: 'The request is malformed.' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'This method is not allowed on this path.' },
  PAYLOAD_TOO_LARGE: { status: 413, message: 'The request body is too large.' },
  RANGE_NOT_SATISFIABLE: { status: 416, message: 'The range lies beyond the end of the file.' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, message: 'The content type of the request body is not supported.' },
  RATE_LIMIT_EXCEEDED: { status: 429, message: 'Too many requests. Try again later.' },
  UPSTREAM_ERROR: { status: 502, message: 'An upstream service failed.' },
  UPSTREAM_TIMEOUT: { status: 504, message: 'An upstream service did not answer in time.' },
  SERVICE_UNAVAILABLE: { status: 503, message: 'The service is not able to answer now. Try again later.' },
  INTERNAL_SERVER_ERROR: { status: 500, message: 'An internal error occurred.' },
  /** Carries the issues of each input: {@link InputError}. */
  VALIDATION_ERROR: { status: 422, message: 'The input is invalid.' },
  /** Only for documents that a client wrote. */
  OPERATION_TOO_LARGE: { status: 400, message: 'The operation asks for more than it may.' },
} as const;

export type ErrorCode = keyof typeof errorCatalogue;
export type ErrorDetails = Record<string, unknown>;

/** An error of the catalogue. Everything else that is thrown is a bug: it is masked and logged with its trace id. */
export class ApiError extends GraphQLError {
  override readonly name: string = 'ApiError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}, message: string = errorCatalogue[code].message) {
    super(message, { extensions: { code, details } });
    this.code = code;
    this.details = details;
  }
}

/** One invalid input, worded as pydantic 2 words it (defaults §0.2). */
export interface InputIssue {
  /** Where, as argument path in GraphQL names: `['input', 'tags', 3]`. */
  path: (string | number)[];
  /** Machine type, e.g. `string_too_short`. */
  type: string;
  msg: string;
  /** The offending value; omitted where the façade takes it from the request. */
  input?: unknown;
  ctx?: Record<string, unknown>;
}

/**
 * Invalid input, found by the schema's constraints or by a service. REST answers with the spec's validation error
 * (422).
 */
export class InputError extends GraphQLError {
  override readonly name: string = 'InputError';
  readonly code = 'VALIDATION_ERROR' satisfies ErrorCode;
  readonly issues: InputIssue[];

  constructor(issues: InputIssue[]) {
    super(issues.map((issue) => `${issue.path.join('.')}: ${issue.msg}`).join('; '), {
      extensions: { code: 'VALIDATION_ERROR', details: { issues } },
    });
    this.issues = issues;
  }
}

/** The code of an error; for anything that is not in the catalogue, that of an internal error. */
export function codeOf(error: unknown): ErrorCode {
  if (error instanceof ApiError) return error.code;
  return error instanceof InputError ? error.code : 'INTERNAL_SERVER_ERROR';
}

/** 401: one identical body for missing, malformed, expired and revoked credentials. */
export const unauthenticated = () => new ApiError('AUTHENTICATION_FAILED');

/** 401 for a password, which no token replaces: the message says so. */
export const wrongPassword = (message: string) => new ApiError('AUTHENTICATION_FAILED', {}, message);

/** 403 with the permission that is missing, in the form `resource:action`. */
export const forbidden = (requiredPermission: string, message?: string) =>
  new ApiError(
    'FORBIDDEN',
    { required_permission: requiredPermission },
    message ?? `You need the permission '${requiredPermission}' to do this.`,
  );

/**
 * Whether an error means that the caller may not see something or that it does not exist. A caller that only checks for
 * access treats both alike.
 */
export const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 'FORBIDDEN' || error.code === 'RESOURCE_NOT_FOUND');

/** 404; hidden and missing answer identically. */
export const notFound = (resourceType: ResourceWord, resourceId: string) => typeNotFound(resourceType, resourceId);

/** The same for the façade, which uses the names of the schema's types. */
export const typeNotFound = (resourceType: string, resourceId: string) =>
  new ApiError(
    'RESOURCE_NOT_FOUND',
    { resource_type: resourceType, resource_id: resourceId },
    `The ${resourceType.replaceAll('_', ' ')} '${resourceId}' was not found.`,
  );

/** 409 for a value that must be unique. */
export const alreadyExists = (
  resourceType: ResourceWord,
  field: string,
  value: string,
  resourceId: string | null = null,
) =>
  new ApiError(
    'RESOURCE_ALREADY_EXISTS',
    { resource_type: resourceType, field, value, resource_id: resourceId },
    `${startingNoun(resourceType.replaceAll('_', ' '))} with the ${field} '${value}' already exists.`,
  );

/** 409 for a state that forbids the change; `reason` is one of the words of defaults §0.3. */
export const conflict = (
  resourceType: ResourceWord,
  resourceId: string,
  reason: string,
  message: string,
  more: ErrorDetails = {},
) =>
  new ApiError('RESOURCE_CONFLICT', { resource_type: resourceType, resource_id: resourceId, reason, ...more }, message);

/** 429; `retryAfter` in whole seconds, at least 1. */
export const rateLimited = (retryAfter: number, message?: string) =>
  new ApiError('RATE_LIMIT_EXCEEDED', { retry_after: Math.max(1, Math.ceil(retryAfter)) }, message);

/** 503 for now: the same request may be answered a second later. */
export const unavailable = () => new ApiError('SERVICE_UNAVAILABLE', { retry_after: 1 });

/** The issue of a value that a service found to be invalid. */
export const valueIssue = (path: (string | number)[], error: string): InputIssue => ({
  path,
  msg: `Value error, ${error}`,
  type: 'value_error',
  ctx: { error },
});

/** One invalid argument. */
export const invalidInput = (path: (string | number)[], error: string) => new InputError([valueIssue(path, error)]);
