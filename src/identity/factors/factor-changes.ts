import type { Tx } from '../../data/tx.ts';
import type { UserPrincipal } from '../../kernel/principal.ts';

/** What can happen to the factors of a user. */
export type FactorChange = 'totp_added' | 'totp_removed' | 'passkey_added' | 'passkey_removed' | 'recovery_codes';

/**
 * Records what has happened to the caller's factors, and tells them by mail: it may have been somebody else.
 * @param removedId the passkey that was removed: the record is about it
 */
export function changeFactors(
  tx: Tx,
  { userId, orgId }: UserPrincipal,
  factor: FactorChange,
  removedId: string | null = null,
): void {
  tx.audit({
    ...(removedId === null
      ? { action: 'update', resourceType: 'user', resourceId: userId }
      : { action: 'delete', resourceType: 'passkey', resourceId: removedId }),
    orgId,
    metadata: { factor },
  });
  tx.announce({
    type: 'user.factors_changed',
    orgId: null,
    resourceType: 'user',
    resourceId: userId,
    facts: { reason: factor },
  });
}
