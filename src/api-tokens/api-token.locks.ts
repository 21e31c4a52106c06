import { forbidden, notFound, unauthenticated } from '../core/errors.ts';
import type { Tx } from '../data/changes.ts';
import { statement } from '../data/writes.ts';

/** Whose token it is, and where it works. */
export interface TokenMaker {
  orgId: string;
  userId: string;
  /** Of an app's token: the app. */
  appId: string | null;
}

/** What is no more that a token needs. */
type Lost = 'user' | 'membership' | 'app';

/**
 * Locks what a new token lives by: its organization, the membership, its user, its app. Whoever deactivates the user,
 * removes the member or deletes the app either waits, and then finds the new token, or was first, and then it is not
 * made.
 * @param orElse the error when one of them is gone
 */
export function demandMaker(tx: Tx, { orgId, userId, appId }: TokenMaker, orElse: (lost: Lost) => Error): void {
  tx.demand('organizations', { id: orgId, deletedAt: null }, 'share', () => orElse('membership'));
  tx.demand('organization_members', { orgId, userId }, 'share', () => orElse('membership'));
  tx.demand('users', { id: userId, isActive: true }, 'share', () => orElse('user'));
  if (appId) tx.demand('apps', { id: appId }, 'key share', () => orElse('app'));
}

/**
 * The same for minting, with the token that asks, where it is one: it must be alive by the clock of the database.
 * @throws AUTHENTICATION_FAILED when the user or the asking token is no more, FORBIDDEN `organization:access` after
 * leaving,
 *   RESOURCE_NOT_FOUND `app`
 */
export async function lockForMinting(tx: Tx, maker: TokenMaker, askingTokenId: string | null): Promise<void> {
  demandMaker(tx, maker, (lost) => {
    if (lost === 'user') return unauthenticated();
    return lost === 'app' ? notFound('app', maker.appId!) : forbidden('organization:access');
  });
  if (!askingTokenId) return;
  const alive = statement`t.id = ${askingTokenId} and (t.revoked_at is null or t.revoked_at > clock_timestamp())
    and (t.expires_at is null or t.expires_at > clock_timestamp())`;
  if ((await tx.lockAll('api_tokens', alive, 'share')).length === 0) throw unauthenticated();
}
