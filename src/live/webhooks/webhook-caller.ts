import type { Access } from '../../access/access.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type ActingUser, callerOf } from '../sending/acting-user.ts';

/** The caller whose rights a webhook has: see {@link callerOf}. */
export const webhookCaller = (
  access: Access,
  webhook: ActingUser & { workspaceId: string | null },
): Promise<Caller | 'no access' | 'deleted'> =>
  callerOf(webhook, 'webhooks', async (caller) => {
    // who may not change webhooks any more has none that goes on
    await access.requireOrganization(caller, webhook.orgId, 'webhook:read');
    if (webhook.workspaceId !== null)
      await access.requireWorkspace(caller, webhook.orgId, webhook.workspaceId, 'sync:subscribe');
  });
