import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { LivingGrant, LivingGrants } from '../../platform/mail/account-mail.ts';

export const NO_GRANTS: LivingGrants = { applications: [], total: 0 };

/** More than anybody reads in an e-mail. */
const MOST = 50;

/** The applications that a user has let in and that still are: each once, however often. */
export async function livingGrantsOf(tx: Tx, userId: string): Promise<LivingGrants> {
  const rows = await tx.query<LivingGrant & { total: number }>(statement`
    select a.name, o.name as organization, max(g.last_used_at) as "lastUsedAt", count(*) over ()::int as total
    from oauth_grants g join applications a on a.id = g.application_id
    join organizations o on o.id = g.org_id and o.deleted_at is null
    left join sessions s on s.id = g.session_id and s.revoked_at is null and s.expires_at > now()
    where g.user_id = ${userId} and g.revoked_at is null and (g.session_id is null or s.id is not null)
    group by a.id, o.id order by max(g.id) desc limit ${MOST}`);
  return { applications: rows, total: rows[0]?.total ?? 0 };
}
