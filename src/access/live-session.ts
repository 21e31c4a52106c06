import type { QueryRunner } from '../data/find-row.ts';
import { statement } from '../data/writes.ts';
import type { Caller } from '../kernel/caller.ts';
import { unauthenticated } from '../kernel/errors.ts';

/**
 * Demands that the session of a caller who has signed in still lives: for a change that would outlive the session, such
 * as a new token or another address. Call it once the row of the user is locked. What ends all access to an account
 * locks that row: a request that waited for it meanwhile comes too late.
 * @throws AUTHENTICATION_FAILED
 */
export async function demandLiveSession(db: QueryRunner, { principal }: Caller): Promise<void> {
  if (principal.token) return;
  const live = await db.query(
    statement`select 1 from sessions where id = ${principal.sessionId} and revoked_at is null`,
  );
  if (live.length === 0) throw unauthenticated();
}
