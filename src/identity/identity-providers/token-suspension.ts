import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';

/*
 * API tokens whose user came through an identity provider are suspended when that provider is switched off or deleted,
 * or when the link of the user is removed, until the user signs in at a provider of the organization again
 * (docs/decisions/0067). Call it while the rows of its users are locked: a new token locks them too, so none that is
 * made meanwhile is missed.
 */

/** The users of a provider, or one of them. */
interface ProviderUsers {
  identityProviderId: string;
  orgId: string;
  /** `null`: all whom the provider knows. */
  userId?: string | null;
}

/** Locks the users of a provider, whose tokens are to be suspended. */
export async function lockUsersOf(tx: Tx, identityProviderId: string): Promise<void> {
  const linked = statement`t.id in (select user_id from identity_links
    where identity_provider_id = ${identityProviderId})`;
  await tx.lockUnread('users', linked, 'no key update');
}

/**
 * Suspends the tokens of users whom no other provider of the organization knows.
 * @returns how many were alive
 */
export async function suspendTokens(
  tx: Tx,
  { identityProviderId, orgId, userId = null }: ProviderUsers,
): Promise<number> {
  const suspended = await tx.query(statement`
    update api_tokens t set suspended_at = now()
    where t.org_id = ${orgId} and t.suspended_at is null and (t.revoked_at is null or t.revoked_at > now())
      and t.created_by_user_id in (select l.user_id from identity_links l
        where l.identity_provider_id = ${identityProviderId} and l.ended_at is null
          and l.user_id = coalesce(${userId}, l.user_id))
      and not exists (select from identity_links o join identity_providers p on p.id = o.identity_provider_id
        where o.org_id = ${orgId} and o.user_id = t.created_by_user_id and o.ended_at is null and p.is_active
          and p.id <> ${identityProviderId})
    returning t.id`);
  return suspended.length;
}

/** A user of a provider has signed in: the organization knows them again. */
export function resumeTokens(tx: Tx, { orgId, userId }: { orgId: string; userId: string }): void {
  tx.write(statement`update api_tokens set suspended_at = null
    where org_id = ${orgId} and created_by_user_id = ${userId} and suspended_at is not null`);
}
