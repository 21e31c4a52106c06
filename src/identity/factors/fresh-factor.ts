import { FRESH_MINUTES, FreshFactorNeeded } from '../../access/step-up.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { sessionOf } from '../../kernel/principal.ts';

/**
 * Demands that the caller has proven a second factor within the last ten minutes, if they have one: before a change
 * that could take the account away from them. A session that somebody has stolen is not enough for it.
 * @throws FORBIDDEN `user:update` for API tokens, and with the reason `fresh_factor`
 */
export async function demandFreshFactor(db: QueryRunner, caller: Caller): Promise<void> {
  const { userId, sessionId } = sessionOf(caller, 'user:update');
  const [found] = await db.query<{ isFresh: boolean }>(statement`
    select not exists (select from totp_factors where user_id = ${userId} and confirmed_at is not null)
        and not exists (select from passkeys where user_id = ${userId})
      or exists (select from sessions where id = ${sessionId} and user_id = ${userId} and revoked_at is null
        and factor_at > now() - make_interval(mins => ${FRESH_MINUTES})) as "isFresh"`);
  if (!found?.isFresh) throw new FreshFactorNeeded('user:update');
}
