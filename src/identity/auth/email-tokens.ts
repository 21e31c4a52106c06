import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';

export type EmailPurpose = 'verify_email' | 'reset_password' | 'change_email';

const LIFETIME_HOURS: Record<EmailPurpose, number> = { verify_email: 24, reset_password: 1, change_email: 24 };

/**
 * Creates a token for the address. Older tokens with the same purpose stop working.
 * @returns the token to mail
 */
export function issueEmailToken(tx: Tx, user: { id: string; email: string }, purpose: EmailPurpose): string {
  const token = randomToken();
  tx.remove('email_tokens', { userId: user.id, purpose, usedAt: null });
  tx.insert('email_tokens', {
    hash: tokenHash(token),
    userId: user.id,
    purpose,
    email: user.email,
    expiresAt: new Date(Date.now() + LIFETIME_HOURS[purpose] * 3_600_000),
  });
  return token;
}

/** Whether a link for a purpose was mailed to a user that still works. */
export async function hasLiveEmailToken(db: QueryRunner, userId: string, purpose: EmailPurpose): Promise<boolean> {
  const live = await db.query(statement`
    select 1 from email_tokens t join users u on u.id = t.user_id and u.email = t.email
    where t.user_id = ${userId} and t.purpose = ${purpose} and t.used_at is null and t.expires_at > now() limit 1`);
  return live.length > 0;
}

/** A mailed token and what it proves. */
export interface UsedEmailToken {
  userId: string;
  purpose: EmailPurpose;
  /** The address to which it was mailed. */
  email: string;
}

/** Finds the user of a token without using it up, for work that pays only when the token is valid. `null` as below. */
export async function findEmailToken(
  db: QueryRunner,
  token: string,
  purpose: EmailPurpose,
): Promise<{ userId: string } | null> {
  const [row] = await db.query<{ userId: string }>(statement`
    select t.user_id as "userId" from email_tokens t
    join users u on u.id = t.user_id and u.email = t.email and u.is_active
    where t.hash = ${tokenHash(token)} and t.purpose = ${purpose} and t.used_at is null and t.expires_at > now()`);
  return row ?? null;
}

/**
 * Uses up a token. One statement decides which of many equal requests wins.
 * @returns `null` when the token is unknown, used, expired, for another purpose, or was mailed to an address that is no
 * longer the user's
 */
export async function useEmailToken(
  tx: Tx,
  token: string,
  purposes: readonly EmailPurpose[],
): Promise<UsedEmailToken | null> {
  const [row] = await tx.query<UsedEmailToken>(statement`
    update email_tokens t set used_at = now() from users u
    where t.hash = ${tokenHash(token)} and t.purpose = any(${purposes}) and t.used_at is null and t.expires_at > now()
      and u.id = t.user_id and (u.email = t.email or t.purpose = 'change_email') and u.is_active
    returning t.user_id as "userId", t.purpose, t.email`);
  return row ?? null;
}
