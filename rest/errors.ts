import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode, ErrorDetails } from '../src/kernel/errors.ts';
import { ApiError, errorCatalogue } from '../src/kernel/errors.ts';
import { allowedMethods, rememberRoutes } from './allowed-methods.ts';
import type { ValidationItem } from './issues.ts';
import { writeAnswer } from './raw-answer.ts';

declare module 'fastify' {
  interface FastifyReply {
    /** The error code of the answer; `VALIDATION_ERROR` for invalid input. */
    errorCode?: ErrorCode;
  }
}

/** The spec's standard error, with its keys in wire order. */
export interface ErrorBody {
  error: ErrorCode;
  message: string;
  details: ErrorDetails;
  /** ISO 8601 in UTC with microseconds, without a zone suffix. */
  timestamp: string;
  status_code: number;
}

export const errorBody = (
  code: ErrorCode,
  message: string = errorCatalogue[code].message,
  details: ErrorDetails = {},
  status: number = errorCatalogue[code].status,
): ErrorBody => ({
  error: code,
  message,
  details,
  timestamp: timestamp(),
  status_code: status,
});

function timestamp(): string {
  const now = performance.timeOrigin + performance.now();
  const micros = Math.floor((now % 1) * 1000);
  return new Date(now).toISOString().replace('Z', String(micros).padStart(3, '0'));
}

/** Invalid parameters or body: answered with 422 and `{ detail }`. */
export class ValidationFailure extends Error {
  override readonly name = 'ValidationFailure';
  readonly detail: readonly ValidationItem[];

  constructor(detail: readonly ValidationItem[]) {
    super(detail.map((item) => `${item.loc.join('.')}: ${item.msg}`).join('; '));
    this.detail = detail;
  }
}

export interface ErrorAnswer {
  status: number;
  headers: Record<string, string>;
  body: ErrorBody | { detail: readonly ValidationItem[] };
}

/** The answer to an error of the catalogue. `null` for any other error, which is an internal one. */
export function answerOf(error: unknown): ErrorAnswer | null {
  if (error instanceof ValidationFailure) return { status: 422, headers: {}, body: { detail: error.detail } };
  if (typeof error !== 'object' || error === null) return null;
  const { message, extensions } = error as {
    message?: string;
    extensions?: { code?: unknown; details?: ErrorDetails };
  };
  const code = extensions?.code;
  if (!isErrorCode(code) || UNANSWERED.has(code)) return null;
  return catalogueAnswer(code, message, extensions?.details);
}

/** An explicit internal error is masked like any other. Invalid input is handled before. */
const UNANSWERED: ReadonlySet<ErrorCode> = new Set([
  'INTERNAL_SERVER_ERROR',
  'VALIDATION_ERROR',
  'OPERATION_TOO_LARGE',
]);

const isErrorCode = (code: unknown): code is ErrorCode =>
  typeof code === 'string' && Object.hasOwn(errorCatalogue, code);

function catalogueAnswer(code: ErrorCode, message?: string, details: ErrorDetails = {}): ErrorAnswer {
  const headers: Record<string, string> = {};
  if (code === 'AUTHENTICATION_FAILED') headers['www-authenticate'] = 'Bearer';
  if (code === 'METHOD_NOT_ALLOWED' && Array.isArray(details.allowed)) headers.allow = details.allowed.join(', ');
  if (typeof details.retry_after === 'number') headers['retry-after'] = String(details.retry_after);
  else if (code === 'RATE_LIMIT_EXCEEDED' || code === 'SERVICE_UNAVAILABLE')
    return catalogueAnswer(code, message, { ...details, retry_after: 1 });
  return { status: errorCatalogue[code].status, headers, body: errorBody(code, message, details) };
}

/** Maps a refusal by Fastify itself to the catalogue. `null` if the error is not a refusal of a request. */
function refusalOf(error: unknown, request: FastifyRequest): ApiError | null {
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: request.routeOptions.bodyLimit });
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new ApiError('UNSUPPORTED_MEDIA_TYPE', {
      expected: request.routeOptions.config.takesFile ? 'multipart/form-data' : 'application/json',
    });
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return unknownRoute(request);
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500 || !code?.startsWith('FST_')) return null;
  return new ApiError('INVALID_REQUEST', { reason: code.replace(/^FST_(?:ERR_)?(?:CTP_)?/, '').toLowerCase() });
}

const MAX_ROUTE_TEXT = 256;

/** 404 for a path without a route. */
export function unknownRoute({ method, url }: { method: string; url: string }): ApiError {
  const [path = ''] = url.split('?', 1);
  const route = `${method} ${path}`.slice(0, MAX_ROUTE_TEXT);
  return new ApiError(
    'RESOURCE_NOT_FOUND',
    { resource_type: 'route', resource_id: route },
    `There is no route '${route}'.`,
  );
}

/** The answer when no route was found: 405 when the path has other methods, else 404. */
function routeError(server: FastifyInstance, request: { method: string; url: string }): ApiError {
  const allowed = allowedMethods(server, request.url);
  // a route of this method matched and then declined, as a static folder does for a missing file
  const isOther = allowed.length > 0 && !allowed.includes(request.method);
  return isOther ? new ApiError('METHOD_NOT_ALLOWED', { allowed }) : unknownRoute(request);
}

/** The same for requests that reach no hook: methods that Node's parser does not know, and CONNECT. */
export const answerUnrouted = (server: FastifyInstance, request: { method: string; url: string }): ErrorAnswer | null =>
  answerOf(routeError(server, request));

export type OnRequestFault = (error: unknown, request: FastifyRequest) => void;

/** What becomes of errors outside the catalogue. */
export interface FaultHandling {
  /** The error that callers get for it, of the catalogue or not; by default the same. */
  shown?: ((error: unknown) => unknown) | undefined;
  /** Called for an error that is outside of the catalogue then. The client gets a masked 500. */
  onFault: OnRequestFault;
}

/** Answers any error. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { shown, onFault }: FaultHandling,
): FastifyReply {
  const answer = answerOf(error) ?? answerOf(refusalOf(error, request)) ?? answerOf(shown?.(error));
  if (!answer) onFault(error, request);
  const { status, headers, body } = answer ?? { status: 500, headers: {}, body: errorBody('INTERNAL_SERVER_ERROR') };
  reply.errorCode = 'error' in body ? body.error : 'VALIDATION_ERROR';
  return reply.code(status).headers(headers).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

/**
 * Gives every error answer of the server the spec's shapes: thrown errors, unknown routes (404) and known paths with
 * another method (405). Call it before any route is registered.
 */
export function registerErrorShapes(server: FastifyInstance, faults: FaultHandling): void {
  rememberRoutes(server);
  server.setErrorHandler((error, request, reply) => sendError(error, request, reply, faults));
  // before the framework looks at a body that no route reads
  server.addHook('preParsing', (request, _reply, _body, done) =>
    done(request.is404 ? routeError(server, request) : null),
  );
  server.setNotFoundHandler((request, reply) => sendError(routeError(server, request), request, reply, faults));
  server.server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const answer = answerUnrouted(server, { method: 'CONNECT', url: request.url ?? '' });
    if (answer) writeAnswer(socket, answer);
  });
}

/**
 * For the Fastify constructor: answers requests that the router refuses before any hook runs (a bad escape in the path,
 * a parameter that is too long).
 */
export function frameworkErrors(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalOf(error, request) ?? new ApiError('INVALID_REQUEST', { reason: 'unreadable' });
  reply.header('x-trace-id', request.id); // no hook has run
  sendError(refusal, request, reply, { onFault: () => undefined });
}
