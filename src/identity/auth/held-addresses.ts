import type { Authentication } from '../../access/authentication.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { revokeTokens } from '../api-tokens/api-token.revocation.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';
import type { Sessions } from './sessions.ts';

/*
 * An account holds its address if the address leads to the account: by its password, by mailed links, and at identity
 * providers. One account holds an address (docs/decisions/0027).
 */

/** An account that an identity provider signs in. */
interface Federated {
  id: string;
  email: string;
  isVerified: boolean;
  hasPassword: boolean;
  /** Whether it holds its address. */
  isHolder: boolean;
}

interface Ends {
  sessions: Sessions;
  authentication: Authentication;
  factorEnds: FactorEnds;
}

/**
 * Gives an address to the account that has just proven it. Another account that never proved the address loses it, with
 * the links that were mailed to it, and is told. An account that has proven it before keeps it.
 */
export async function holdAddress(tx: Tx, userId: string, email: string): Promise<void> {
  const key = email.toLowerCase();
  const displaced = await tx.query<{ id: string }>(statement`
    update users set email_key = null where email_key = ${key} and id <> ${userId} and not is_verified returning id`);
  for (const { id } of displaced) {
    tx.remove('email_tokens', { userId: id, usedAt: null });
    tx.announce({ type: 'user.address_lost', orgId: null, resourceType: 'user', resourceId: id, facts: {} });
  }
  tx.write(statement`update users set email_key = ${key} where id = ${userId}
    and not exists (select from users o where o.email_key = ${key} and o.id <> ${userId})`);
}

/**
 * What it means for an account that a provider of an organization signs it in. In a proven domain that proves the
 * address. Whoever registered an account without a proof may be somebody else: the first link ends all that led there,
 * and without a proof of the domain the account does not hold the address any more.
 * @param isNew whether the account is linked now
 * @returns what the record of the change says of it
 */
export async function settleAddress(
  tx: Tx,
  deps: Ends,
  { id, email, isVerified, hasPassword, isHolder }: Federated,
  { isProven, isNew, orgId }: { isProven: boolean; isNew: boolean; orgId: string },
): Promise<Record<string, unknown>> {
  // one that was linked before this rule still has its password
  const ends = !isVerified && (isNew || hasPassword);
  const record = ends ? await endUnprovenAccess(tx, deps, { id, hasPassword, orgId }) : {};
  if (isProven) {
    if (!isVerified) tx.update('users', { id }, { isVerified: true });
    if (!isVerified || !isHolder) await holdAddress(tx, id, email);
  } else if (!isVerified && isHolder) tx.update('users', { id }, { emailKey: null });
  return record;
}

async function endUnprovenAccess(
  tx: Tx,
  { sessions, authentication, factorEnds }: Ends,
  { id, hasPassword, orgId }: { id: string; hasPassword: boolean; orgId: string },
): Promise<Record<string, unknown>> {
  tx.update('users', { id }, { passwordHash: null });
  tx.remove('email_tokens', { userId: id, usedAt: null });
  factorEnds.removeAll(tx, id);
  // providers of other organizations are ways in, too
  tx.write(statement`delete from identity_links where user_id = ${id} and org_id <> ${orgId}`);
  sessions.revokeAll(tx, id, 'identity_linked');
  const revoked = await revokeTokens(tx, authentication, { userId: id }, 'identity_linked');
  tx.afterCommit(() => authentication.sessionsChanged());
  return { ...(hasPassword ? { password_removed: true } : {}), tokens_revoked: revoked };
}

/**
 * Gives accounts their address back, unproven, once no identity provider leads to them any more: else nobody could ever
 * sign in to them. An account whose address somebody else holds goes without.
 */
export function returnAddresses(tx: Tx, userIds: readonly string[]): void {
  tx.write(statement`update users u set email_key = lower(u.email), is_verified = false
    where u.id = any(${userIds}::text[]) and u.email_key is null and u.deactivated_at is null
      and not exists (select from identity_links l where l.user_id = u.id and l.ended_at is null)
      and not exists (select from users o where o.email_key = lower(u.email))
      and not exists (select from users o where lower(o.email) = lower(u.email) and o.email_key is null
        and o.id < u.id and o.id = any(${userIds}::text[]))`);
}

/**
 * Ends the links of members who leave, or of an organization that is deleted. The provider signs them in no more, and
 * creates no other account in their place; a member who comes back is linked anew.
 * @param userId all members, without one
 */
export async function endLinks(tx: Tx, orgId: string, userId: string | null = null): Promise<void> {
  const ended = await tx.query<{ userId: string }>(statement`
    update identity_links set ended_at = now()
    where org_id = ${orgId} and user_id = coalesce(${userId}, user_id) and ended_at is null
    returning user_id as "userId"`);
  if (ended.length > 0) returnAddresses(tx, [...new Set(ended.map((link) => link.userId))]);
}
