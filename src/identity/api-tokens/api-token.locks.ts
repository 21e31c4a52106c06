import { demandLiveSession } from '../../access/live-session.ts';
import { isBehindBrokenGlass, ssoRequired } from '../../access/sso-admission.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden, notFound, unauthenticated } from '../../kernel/errors.ts';

/** The owner of a token and where the token works. */
export interface TokenMaker {
  orgId: string;
  userId: string;
  /** The app, for an app token. */
  appId: string | null;
}

/** What a token needs and has lost. */
type Lost = 'user' | 'membership' | 'app';

/**
 * Locks what a new token depends on: its organization, membership, user and app. A concurrent deactivation of the user,
 * removal of the member or deletion of the app either waits and then finds the new token, or comes first, and the token
 * is not created.
 * @param orElse the error if one of them is gone
 */
export function demandMaker(tx: Tx, { orgId, userId, appId }: TokenMaker, orElse: (lost: Lost) => Error): void {
  tx.demand('organizations', { id: orgId, deletedAt: null }, 'share', () => orElse('membership'));
  tx.demand('organization_members', { orgId, userId }, 'share', () => orElse('membership'));
  tx.demand('users', { id: userId, isActive: true }, 'share', () => orElse('user'));
  if (appId) tx.demand('apps', { id: appId }, 'key share', () => orElse('app'));
}

/**
 * Does the same for a new token, whose caller must still be there: a session that lives, or a token, which is locked
 * and must be alive by the clock of the database.
 * @throws AUTHENTICATION_FAILED if the user or the caller's session or token is gone, FORBIDDEN `organization:access`
 * if the user left, or has opened the organization with the password for an hour, which the token would
 * outlive; RESOURCE_NOT_FOUND `app`
 */
export async function lockForMinting(tx: Tx, caller: Caller, maker: TokenMaker): Promise<void> {
  if (isBehindBrokenGlass(caller.principal, maker.orgId)) throw ssoRequired();
  const askingTokenId = caller.principal.token?.id ?? null;
  demandMaker(tx, maker, (lost) => {
    if (lost === 'user') return unauthenticated();
    return lost === 'app' ? notFound('app', maker.appId!) : forbidden('organization:access');
  });
  await demandLiveSession(tx, caller);
  if (!askingTokenId) return;
  const alive = statement`t.id = ${askingTokenId} and t.suspended_at is null
    and (t.revoked_at is null or t.revoked_at > clock_timestamp())
    and (t.expires_at is null or t.expires_at > clock_timestamp())`;
  if ((await tx.lockAll('api_tokens', alive, 'share')).length === 0) throw unauthenticated();
}
