/** How a request through an account ended, as its sender reports it. */
export type RequestOutcome = 'SUCCESS' | 'FAILURE' | 'TIMEOUT' | 'RATE_LIMITED' | 'AUTH_FAILURE' | 'INVALID_REQUEST';

/** The inputs of an account's status (defaults §13). */
export interface AccountHealth {
  /** `pending`, `active`, `degraded` or `error`. Whether the account is enabled does not matter here. */
  status: string;
  statusReason: string | null;
  /** Requests in a row that failed. */
  consecutiveFailures: number;
  /** Requests in a row whose credentials were refused. */
  authFailures: number;
}

/**
 * Number of failures in a row that make an active account degraded, and of refused credentials that put any account in
 * error.
 */
const TOLERATED = 3;

/** Whether the outcome says something about health. A request that was itself wrong does not. */
export const affectsHealth = (outcome: RequestOutcome): boolean => outcome !== 'INVALID_REQUEST';

/**
 * The health of an account after one more request: `pending → active` at the first success, `active ⇄ degraded`,
 * `→ error` after three refused credentials, `→ active` at the next success from any state.
 */
export function accountAfter(before: AccountHealth, outcome: RequestOutcome): AccountHealth {
  if (!affectsHealth(outcome)) return before;
  if (outcome === 'SUCCESS') return { status: 'active', statusReason: null, consecutiveFailures: 0, authFailures: 0 };
  const consecutiveFailures = before.consecutiveFailures + 1;
  const isRefused = outcome === 'AUTH_FAILURE';
  // Another failure says nothing about the credentials: only a success resets this count.
  const authFailures = before.authFailures + (isRefused ? 1 : 0);
  const counted = { ...before, consecutiveFailures, authFailures };
  if (authFailures >= TOLERATED)
    return {
      ...counted,
      status: 'error',
      statusReason: 'The provider refused the credentials 3 times without a success between.',
    };
  if (before.status !== 'active' || (!isRefused && consecutiveFailures < TOLERATED)) return counted;
  return {
    ...counted,
    status: 'degraded',
    statusReason: isRefused ? 'The provider refused the credentials.' : '3 requests in a row failed.',
  };
}

/**
 * Failures in a row of a target after one more request. Refused credentials count for the account only: after a repair
 * there, its targets must not be left failing.
 */
export function targetFailuresAfter(before: number, outcome: RequestOutcome): number {
  if (outcome === 'SUCCESS') return 0;
  return affectsHealth(outcome) && outcome !== 'AUTH_FAILURE' ? before + 1 : before;
}
