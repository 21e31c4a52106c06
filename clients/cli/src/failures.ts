import {
  ApiError,
  AuthenticationFailedError,
  ConflictError,
  ForbiddenError,
  InvalidInputError,
  NotFoundError,
  PreconditionFailedError,
  RateLimitedError,
  UnavailableError,
} from 'platform-management-client';
import { KeyringError } from './keyring.ts';

/** A command that lacks something, or has something that it does not accept. `details` are for programs. */
export class UsageError extends Error {
  readonly details: object | undefined;

  constructor(message: string, details?: object) {
    super(message);
    this.details = details;
  }
}

/** What was waited for has not come in time. It may still come. `details` are what was begun, for programs. */
export class WaitedTooLongError extends Error {
  readonly details: object;

  constructor(message: string, details: object) {
    super(message);
    this.details = details;
  }
}

/** The service did what was asked, and it came to nothing. `details` are for programs. */
export class OutcomeError extends Error {
  readonly details: object;

  constructor(message: string, details: object) {
    super(message);
    this.details = details;
  }
}

/** Ends a command that has said all there is to say. */
export class Ended extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`ended with the exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Exit codes. They are documented and do not change. */
export const exitCodes = {
  failed: 1,
  usage: 2,
  authentication: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  invalidInput: 7,
  unavailable: 8,
  waitedTooLong: 9,
} as const;

const byClass: [abstract new (...given: never[]) => Error, number][] = [
  [UsageError, exitCodes.usage],
  [AuthenticationFailedError, exitCodes.authentication],
  [KeyringError, exitCodes.authentication],
  [ForbiddenError, exitCodes.forbidden],
  [NotFoundError, exitCodes.notFound],
  [ConflictError, exitCodes.conflict],
  [PreconditionFailedError, exitCodes.conflict],
  [InvalidInputError, exitCodes.invalidInput],
  [RateLimitedError, exitCodes.unavailable],
  [UnavailableError, exitCodes.unavailable],
  [WaitedTooLongError, exitCodes.waitedTooLong],
];

/** The exit code for what a command threw. */
export function exitCodeOf(error: unknown): number {
  const known = byClass.find(([type]) => error instanceof type);
  if (known) return known[1];
  // `fetch` could not reach the service
  return error instanceof TypeError && error.cause !== undefined ? exitCodes.unavailable : exitCodes.failed;
}

/** What went wrong, in one or a few lines for people. */
export function messageOf(error: unknown): string {
  if (error instanceof InvalidInputError)
    return error.issues.map(({ loc, msg }) => `${loc.slice(1).join('.') || loc.join('.')}: ${msg}`).join('\n');
  if (error instanceof ApiError) return error.message + (error.traceId ? `\nTrace id: ${error.traceId}` : '');
  if (error instanceof TypeError && error.cause instanceof Error)
    return `The service cannot be reached: ${error.cause.message || error.cause.name}`;
  return error instanceof Error ? error.message : String(error);
}

/** The same for programs. */
export function objectOf(error: unknown): object {
  const message = messageOf(error);
  if (error instanceof UsageError) return { error: 'USAGE', message, ...(error.details && { details: error.details }) };
  if (error instanceof WaitedTooLongError) return { error: 'WAITED_TOO_LONG', message, details: error.details };
  if (error instanceof OutcomeError) return { error: 'FAILED', message, details: error.details };
  if (error instanceof KeyringError) return { error: 'KEYRING', message };
  if (!(error instanceof ApiError)) return { error: 'FAILED', message };
  const issues = error instanceof InvalidInputError ? { issues: error.issues } : {};
  return { error: error.code, message: error.message, details: error.details, trace_id: error.traceId, ...issues };
}
