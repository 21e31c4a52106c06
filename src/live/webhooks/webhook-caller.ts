import type { Access } from '../../access/access.ts';
import type { Caller } from '../../kernel/caller.ts';
import { isRefusal } from '../../kernel/errors.ts';
import { systemCaller } from '../../kernel/system-caller.ts';

/** The account that a webhook acts for, as it is now. */
export interface CallingWebhook {
  orgId: string;
  workspaceId: string | null;
  actsFor: string;
  /** `null` if there is no such account. */
  username: string | null;
  isActive: boolean | null;
  isVerified: boolean | null;
}

/** The account `u` of a webhook `w`, for a statement. */
export const CALLER_COLUMNS = `w.org_id as "orgId", w.workspace_id as "workspaceId", w.acts_for as "actsFor",
  u.username, u.is_active and u.deactivated_at is null as "isActive", u.is_verified as "isVerified"`;
export const CALLER_JOIN = 'left join users u on u.id = w.acts_for';

/**
 * The caller whose rights a webhook has: those of the user who decided last what goes where.
 * `null` if the account may not follow the events of its place any more.
 */
export async function callerOf(access: Access, actor: CallingWebhook): Promise<Caller | null> {
  if (!actor.isActive) return null;
  const caller: Caller = {
    ...systemCaller('webhooks'),
    principal: {
      type: 'user',
      userId: actor.actsFor,
      username: actor.username ?? '',
      isPlatformAdmin: false,
      isVerified: actor.isVerified === true,
      sessionId: '',
      orgId: actor.orgId,
      token: null,
    },
  };
  try {
    // who may not change webhooks any more has none that goes on
    await access.requireOrganization(caller, actor.orgId, 'webhook:read');
    if (actor.workspaceId !== null)
      await access.requireWorkspace(caller, actor.orgId, actor.workspaceId, 'sync:subscribe');
    return caller;
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}
