import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import type { Webhook } from '../../generated/prisma/client.ts';
import { systemCaller } from '../../kernel/system-caller.ts';

/** Why the service disables a webhook. */
export type DisabledReason = 'failing' | 'no_access';

/** Disables webhooks that cannot go on, and says so. */
export class WebhookDisabling {
  readonly #changes: Changes;

  constructor(changes: Changes) {
    this.#changes = changes;
  }

  async disable(id: string, reason: DisabledReason): Promise<void> {
    await this.#changes.run(systemCaller('webhooks'), async (tx) => {
      const webhook = await tx.lock('webhooks', { id }, 'no key update');
      if (webhook?.isEnabled) disabled(tx, webhook, reason);
    });
  }
}

/** Disables a webhook whose row is locked, as a part of a change. */
export function disabled(
  tx: Tx,
  { id, orgId, name }: Pick<Webhook, 'id' | 'orgId' | 'name'>,
  reason: DisabledReason,
): void {
  tx.update('webhooks', { id }, { isEnabled: false, disabledReason: reason });
  const place = { id, orgId };
  tx.audit({ action: 'update', resourceType: 'webhook', resourceId: id, orgId, metadata: { disabled_reason: reason } });
  emitChange(tx, 'disabled', 'webhook', place, { reason }, { name });
}
