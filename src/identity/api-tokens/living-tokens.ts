import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { LivingToken, LivingTokens } from '../../platform/mail/account-mail.ts';

export const NO_TOKENS: LivingTokens = { tokens: [], total: 0 };

/** More than anybody reads in an e-mail. */
const MOST = 50;

/** The tokens that a user created and that work, or can be refreshed. */
export async function livingTokensOf(tx: Tx, userId: string): Promise<LivingTokens> {
  const rows = await tx.query<LivingToken & { total: number }>(statement`
    select t.name, t.prefix, o.name as organization, t.last_used_at as "lastUsedAt", t.expires_at as "expiresAt",
      count(*) over ()::int as total
    from api_tokens t join organizations o on o.id = t.org_id and o.deleted_at is null
    join organization_members m on m.org_id = t.org_id and m.user_id = t.created_by_user_id
    where t.created_by_user_id = ${userId} and (t.revoked_at is null or t.revoked_at > clock_timestamp())
      and (t.expires_at is null or t.expires_at > now() or t.refresh_expires_at is null or t.refresh_expires_at > now())
    order by t.id desc limit ${MOST}`);
  return { tokens: rows, total: rows[0]?.total ?? 0 };
}
