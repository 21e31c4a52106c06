import { ApiError } from '../graphql/errors.ts';

const AWAY = /^(57P0[123]|08...|53300|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT|P1001|P1002|P1008|P1017|P2024)$/;
const AWAY_MESSAGES = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Unable to start a transaction in the given time',
  "Can't reach database server",
  'Cannot use a pool after calling end',
];
const MAX_CAUSES = 5;

/** Whether an error means that the database cannot be reached or has no connection left: nothing that a caller did. */
export function isDatabaseAway(error: unknown): boolean {
  let at: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth++) {
    const code = 'code' in at ? String(at.code) : '';
    const { message } = at;
    if (AWAY.test(code) || AWAY_MESSAGES.some((text) => message.includes(text))) return true;
    if ('originalError' in at && at.originalError) at = at.originalError;
    else at = at.cause;
  }
  return false;
}

/** The error that callers get: 503 while the database is away, everything else as it is. */
export function callerError(error: unknown): unknown {
  return isDatabaseAway(error) ? new ApiError('SERVICE_UNAVAILABLE', { retry_after: 1 }) : error;
}
