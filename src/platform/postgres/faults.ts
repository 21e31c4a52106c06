import { ApiError, unavailable } from '../../kernel/errors.ts';

// PostgreSQL's codes for no connection (class 08, shutdown, start-up), for a server that takes no changes as long as it
// follows another, and for no resources (class 53: no slot, memory or disk left; a disk failure), the codes of sockets,
// and those of Prisma
const AWAY_CODES = '57P0[123]|25006|08...|53...|58030|P1001|P1002|P1008|P1017|P2024|P2028';
const SOCKET_CODES = 'ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT';
const AWAY = new RegExp(`^(${AWAY_CODES}|${SOCKET_CODES})$`);
// messages, because some layers do not keep the code
const AWAY_WORDS = new RegExp(
  [
    'Code: `(57P0[123]|25006|08...|53...|58030)`',
    'terminating connection',
    'Connection terminated',
    'the database system is ',
    'is not currently accepting connections',
    'timeout exceeded when trying to connect',
    "Can't reach database server",
    'is not queryable',
    'Cannot use a pool after calling end',
  ].join('|'),
);
// the limits of `openDatabase`: a statement, a wait for a lock, an idle transaction and a long one that were cancelled
const TIMED_OUT_CODES = '57014|55P03|25P0[34]';
const TIMED_OUT = new RegExp(`^(${TIMED_OUT_CODES})$`);
const TIMED_OUT_WORDS =
  /Code: `(57014|55P03|25P0[34])`|(canceling statement|terminating connection) due to [\w-]+ timeout/;
// files and other sockets have the same codes as the sockets of the database
const OF_DATABASE = new RegExp(`^(${AWAY_CODES}|${TIMED_OUT_CODES})$`);
const OF_DATABASE_WORDS = new RegExp(`${AWAY_WORDS.source}|${TIMED_OUT_WORDS.source}`);
const MAX_CAUSES = 6;

interface Cause {
  code?: unknown;
  originalCode?: unknown;
  message?: unknown;
  cause?: unknown;
  originalError?: unknown;
}

/**
 * Whether an error means that the database is unreachable, or has no connection or no space left: not the caller's
 * fault.
 */
export const isDatabaseAway = (error: unknown): boolean => isCausedBy(error, AWAY, AWAY_WORDS);

/** Whether the database cancelled something that took too long, because of locks or load. */
export const hasTimedOut = (error: unknown): boolean => isCausedBy(error, TIMED_OUT, TIMED_OUT_WORDS);

function isCausedBy(error: unknown, codes: RegExp, words: RegExp): boolean {
  let at: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && typeof at === 'object' && at !== null; depth++) {
    const { code, originalCode, message, cause, originalError }: Cause = at;
    if (codes.test(String(code)) || codes.test(String(originalCode)) || words.test(String(message))) return true;
    at = originalError ?? cause;
  }
  return false;
}

/**
 * The same as {@link callerError} for an error that may have nothing to do with the database: it stays as it is unless
 * it surely comes from there.
 */
export const callerErrorOfAny = (error: unknown): unknown =>
  isCausedBy(error, OF_DATABASE, OF_DATABASE_WORDS) ? callerError(error) : error;

/**
 * The error that callers get: 503 while the database is unreachable or has cancelled something that took too long; any
 * other error unchanged.
 */
export function callerError(error: unknown): unknown {
  if (hasTimedOut(error))
    return new ApiError(
      'SERVICE_UNAVAILABLE',
      { retry_after: 1, reason: 'database_timeout' },
      'The database did not finish in time. Nothing was changed; try again.',
    );
  return isDatabaseAway(error) ? unavailable() : error;
}

/** For the `catch` of a promise. @throws what {@link callerError} makes of the error */
export function throwCallerError(error: unknown): never {
  throw callerError(error);
}
