import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { SendChannel } from './channel.ts';

/** Why the service disables a receiver. */
export type DisabledReason = 'failing' | 'no_access';

/** Disables receivers that cannot go on, and says so. */
export class Disabling {
  readonly #changes: Changes;

  readonly #channel: SendChannel;

  constructor(changes: Changes, channel: SendChannel) {
    this.#changes = changes;
    this.#channel = channel;
  }

  async disable(id: string, reason: DisabledReason): Promise<void> {
    await this.#changes.run(systemCaller(this.#channel.receivers), async (tx) => {
      const receiver = await tx.lock(this.#channel.receivers, { id }, 'no key update');
      if (receiver?.isEnabled) disabled(tx, this.#channel, receiver, reason);
    });
  }
}

/** Disables a receiver whose row is locked, as a part of a change. */
export function disabled(
  tx: Tx,
  { receivers, noun }: SendChannel,
  { id, orgId, name }: { id: string; orgId: string; name: string },
  reason: DisabledReason,
): void {
  tx.update(receivers, { id }, { isEnabled: false, disabledReason: reason });
  const place = { id, orgId };
  tx.audit({ action: 'update', resourceType: noun, resourceId: id, orgId, metadata: { disabled_reason: reason } });
  emitChange(tx, 'disabled', noun, place, { reason }, { name });
}
