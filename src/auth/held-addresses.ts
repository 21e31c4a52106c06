import type { Authentication } from '../access/authentication.ts';
import { revokeTokens } from '../api-tokens/api-token.revocation.ts';
import type { Tx } from '../data/changes.ts';
import { statement } from '../data/writes.ts';
import type { Sessions } from './sessions.ts';

/*
 * An account holds its address if its address leads to it: by its password, by mailed links, and at identity providers.
 * One account holds an address. It loses the address to whoever proves it first (docs/decisions/0027).
 */

/**
 * Gives an address to the account that has just proven it. Another account that never proved it loses it, with the
 * links that were mailed to it, and is told. An account that has proven it before keeps it.
 * @returns whether the account holds the address now
 */
export async function holdAddress(tx: Tx, userId: string, email: string): Promise<boolean> {
  const key = email.toLowerCase();
  const displaced = await tx.query<{ id: string }>(statement`
    update users set email_key = null where email_key = ${key} and id <> ${userId} and not is_verified returning id`);
  for (const { id } of displaced) {
    tx.remove('email_tokens', { userId: id, usedAt: null });
    tx.announce({ type: 'user.address_lost', orgId: null, resourceType: 'user', resourceId: id, facts: {} });
  }
  const held = await tx.query(statement`
    update users set email_key = ${key} where id = ${userId}
      and not exists (select from users o where o.email_key = ${key} and o.id <> ${userId}) returning id`);
  return held.length > 0;
}

/** Takes the address from an account for which nobody proved it, because an identity provider alone says it. */
export const releaseAddress = (tx: Tx, userId: string): void => tx.update('users', { id: userId }, { emailKey: null });

/**
 * Gives accounts their address back once no identity provider leads to them any more: else nobody could ever sign in to
 * them. An account whose address somebody else holds goes without.
 */
export function returnAddresses(tx: Tx, userIds: readonly string[]): void {
  tx.write(statement`update users u set email_key = lower(u.email)
    where u.id = any(${userIds}::text[]) and u.email_key is null and u.deactivated_at is null
      and not exists (select from identity_links l where l.user_id = u.id)
      and not exists (select from users o where o.email_key = lower(u.email))
      and not exists (select from users o where lower(o.email) = lower(u.email) and o.email_key is null
        and o.id < u.id and o.id = any(${userIds}::text[]))`);
}

/**
 * Ends every way into an account whose address was never proven, but that of the person who is linked to it now: it may
 * have been somebody else who registered with the address.
 */
export async function endUnprovenAccess(
  tx: Tx,
  { sessions, authentication }: { sessions: Sessions; authentication: Authentication },
  userId: string,
): Promise<{ tokensRevoked: number }> {
  tx.update('users', { id: userId }, { passwordHash: null });
  tx.remove('email_tokens', { userId, usedAt: null });
  sessions.revokeAll(tx, userId, 'identity_linked');
  const tokensRevoked = await revokeTokens(tx, authentication, { userId }, 'identity_linked');
  tx.afterCommit(() => authentication.sessionsChanged());
  return { tokensRevoked };
}
