import { isVouchedFor } from '../../access/sso-demand.ts';
import type { Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { systemCaller } from '../../kernel/system-caller.ts';

/** The account that a receiver acts for, as it is now. */
export interface ActingUser {
  orgId: string;
  actsFor: string;
  /** `null` if there is no such account. */
  username: string | null;
  isActive: boolean | null;
  isVerified: boolean | null;
  /** Whether an identity provider of the organization vouches for the account. */
  isVouchedFor: boolean;
}

/** The account `u` of a receiver `h`, for a statement. */
export const CALLER_COLUMNS = `h.org_id as "orgId", h.acts_for as "actsFor",
  u.username, u.is_active and u.deactivated_at is null as "isActive", u.is_verified as "isVerified",
  ${isVouchedFor('h.org_id', 'h.acts_for')} as "isVouchedFor"`;
export const CALLER_JOIN = 'left join users u on u.id = h.acts_for';

/** Whether the database was restored from a copy whose transactions had higher numbers. */
export const IS_AHEAD = 'h.position_xid >= pg_snapshot_xmax(pg_current_snapshot())';

/**
 * The caller whose rights a receiver has: those of the user who decided last what goes where. `no access` if the
 * account may not read what is sent any more; `deleted` if the place was deleted at this moment.
 * @param demand whether the caller may go on @throws FORBIDDEN, RESOURCE_NOT_FOUND
 */
export async function callerOf(
  user: ActingUser,
  noun: 'webhooks' | 'audit streams',
  demand: (caller: Caller) => Promise<unknown>,
): Promise<Caller | 'no access' | 'deleted'> {
  if (!user.isActive) return 'no access';
  const caller: Caller = {
    ...systemCaller(noun),
    principal: {
      type: 'user',
      userId: user.actsFor,
      username: user.username ?? '',
      isPlatformAdmin: false,
      isVerified: user.isVerified === true,
      // it lasts as an API token does, whatever its user signs in with
      vouchedBy: user.isVouchedFor ? user.orgId : null,
      provesFactor: true,
      sessionId: '',
      orgId: user.orgId,
      token: null,
    },
  };
  try {
    await demand(caller);
    return caller;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'RESOURCE_NOT_FOUND') return 'deleted';
    if (error instanceof ApiError && error.code === 'FORBIDDEN') return 'no access';
    throw error;
  }
}
