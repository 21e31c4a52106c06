import type { Access } from '../../access/access.ts';
import { isVouchedFor } from '../../access/sso-demand.ts';
import type { Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { isLiveOrganization, isLiveWorkspace } from '../../tenancy/views.ts';

/** The account that a webhook acts for, as it is now. */
export interface CallingWebhook {
  orgId: string;
  workspaceId: string | null;
  actsFor: string;
  /** `null` if there is no such account. */
  username: string | null;
  isActive: boolean | null;
  isVerified: boolean | null;
  /** Whether an identity provider of the organization vouches for the account. */
  isVouchedFor: boolean;
}

/** The account `u` of a webhook `h`, for a statement. */
export const CALLER_COLUMNS = `h.org_id as "orgId", h.workspace_id as "workspaceId", h.acts_for as "actsFor",
  u.username, u.is_active and u.deactivated_at is null as "isActive", u.is_verified as "isVerified",
  ${isVouchedFor('h.org_id', 'h.acts_for')} as "isVouchedFor"`;
export const CALLER_JOIN = 'left join users u on u.id = h.acts_for';

/** Whether a webhook `h` is in use: those of a deleted place wait until it is restored or gone. */
export const IN_USE = `h.is_enabled and ${isLiveOrganization('h.org_id')}
  and (h.workspace_id is null or ${isLiveWorkspace('h.workspace_id')})`;

/** Whether the database was restored from a copy whose transactions had higher numbers. */
export const IS_AHEAD = 'h.position_xid >= pg_snapshot_xmax(pg_current_snapshot())';

/**
 * The caller whose rights a webhook has: those of the user who decided last what goes where. `no access` if the account
 * may not follow the events of its place any more; `deleted` if the place was deleted at this moment.
 */
export async function callerOf(access: Access, webhook: CallingWebhook): Promise<Caller | 'no access' | 'deleted'> {
  if (!webhook.isActive) return 'no access';
  const caller: Caller = {
    ...systemCaller('webhooks'),
    principal: {
      type: 'user',
      userId: webhook.actsFor,
      username: webhook.username ?? '',
      isPlatformAdmin: false,
      isVerified: webhook.isVerified === true,
      // a webhook lasts as an API token does, whatever its user signs in with
      vouchedBy: webhook.isVouchedFor ? webhook.orgId : null,
      provesFactor: true,
      sessionId: '',
      orgId: webhook.orgId,
      token: null,
    },
  };
  try {
    // who may not change webhooks any more has none that goes on
    await access.requireOrganization(caller, webhook.orgId, 'webhook:read');
    if (webhook.workspaceId !== null)
      await access.requireWorkspace(caller, webhook.orgId, webhook.workspaceId, 'sync:subscribe');
    return caller;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'RESOURCE_NOT_FOUND') return 'deleted';
    if (error instanceof ApiError && error.code === 'FORBIDDEN') return 'no access';
    throw error;
  }
}
