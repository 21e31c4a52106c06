import type { Authentication } from '../../access/authentication.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';

/** Ends what a user has granted to applications, in one organization or in all. */
export function revokeGrantsOf(
  tx: Tx,
  authentication: Authentication,
  { userId, orgId = null }: { userId: string; orgId?: string | null },
  reason: string,
): void {
  tx.write(statement`update oauth_grants set revoked_at = now(), revoked_reason = ${reason}
    where user_id = ${userId} and org_id = coalesce(${orgId}, org_id) and revoked_at is null`);
  tx.afterCommit(() => authentication.grantsChanged());
}
