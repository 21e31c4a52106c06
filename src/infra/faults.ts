import { ApiError } from '../graphql/errors.ts';

// what PostgreSQL says without a connection (class 08, shutdown, start-up) or without resources (class 53: no slot, memory or disk left; a
// disk that fails), what sockets say, and Prisma's names for them
const AWAY =
  /^(57P0[123]|08...|53...|58030|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT|P1001|P1002|P1008|P1017|P2024|P2028)$/;
// where a layer between keeps only the words
const AWAY_WORDS =
  /Code: `(57P0[123]|08...|53...|58030)`|terminating connection|Connection terminated|the database system is |timeout exceeded when trying to connect|Can't reach database server|is not queryable|Cannot use a pool after calling end/;
const MAX_CAUSES = 6;

interface Cause {
  code?: unknown;
  originalCode?: unknown;
  message?: unknown;
  cause?: unknown;
  originalError?: unknown;
}

/** Whether an error means that the database cannot be reached, or has no connection or no room left: nothing that a caller did. */
export function isDatabaseAway(error: unknown): boolean {
  let at: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && typeof at === 'object' && at !== null; depth++) {
    const { code, originalCode, message, cause, originalError }: Cause = at;
    if (AWAY.test(String(code)) || AWAY.test(String(originalCode)) || AWAY_WORDS.test(String(message))) return true;
    at = originalError ?? cause;
  }
  return false;
}

/** The error that callers get: 503 while the database is away, everything else as it is. */
export function callerError(error: unknown): unknown {
  return isDatabaseAway(error) ? new ApiError('SERVICE_UNAVAILABLE', { retry_after: 1 }) : error;
}
