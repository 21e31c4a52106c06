/** What kind of credential a connection has. */
export type AuthType = 'oauth2' | 'api_key';

/** The states of a connection (defaults §13). A tool instance shows `not_connected` where there is none. */
export type ConnectionStatus = 'pending' | 'connected' | 'expired' | 'needs_reauth' | 'error';

/** Seconds that an authorization may take. */
export const PENDING_SECONDS = 600;

const MINUTE = 60_000;
/** How long before its end an access token is refreshed, unless it lives shorter than twice that. */
const MARGIN_MS = 15 * MINUTE;
const FIRST_WAIT_MS = 30_000;
const LONGEST_WAIT_MS = 60 * MINUTE;
/** Failures in a row after which a connection whose access token has ended is in error. */
const TOLERATED = 3;

/** When a token that was just granted ends, and when it is refreshed. */
export interface TokenLifetime {
  expiresAt: Date | null;
  refreshAt: Date | null;
}

/**
 * Times of a new access token. @param lifetime seconds; `null` if the provider does not say: it is used until it is
 * refused
 */
export function lifetimeOf(lifetime: number | null, hasRefreshToken: boolean, now = Date.now()): TokenLifetime {
  if (lifetime === null) return { expiresAt: null, refreshAt: null };
  const lives = lifetime * 1_000;
  const margin = hasRefreshToken ? Math.min(MARGIN_MS, lives / 2) : 0;
  return { expiresAt: new Date(now + lives), refreshAt: new Date(now + lives - margin) };
}

/** A connection after a refresh that failed by no fault of the refresh token. */
export interface Failed {
  status: ConnectionStatus;
  refreshFailures: number;
  refreshAt: Date;
}

/**
 * While the access token lives, the connection stays connected. The next try is after 30 s, 1 min, … 1 h, and also when
 * the access token ends.
 * @param random from 0 to 1: spreads the tries of connections that failed together
 */
export function afterFailure(
  before: { status: string; refreshFailures: number; expiresAt: Date | null },
  now = Date.now(),
  random = Math.random(),
): Failed {
  const refreshFailures = before.refreshFailures + 1;
  const wait = Math.min(FIRST_WAIT_MS * 2 ** Math.min(refreshFailures - 1, 20), LONGEST_WAIT_MS);
  const next = now + wait * (0.9 + 0.1 * random);
  const ends = before.expiresAt?.getTime() ?? null;
  const lives = ends === null || ends > now;
  return {
    status: lives ? (before.status as ConnectionStatus) : refreshFailures >= TOLERATED ? 'error' : 'expired',
    refreshFailures,
    refreshAt: new Date(lives && ends !== null ? Math.min(next, ends) : next),
  };
}
