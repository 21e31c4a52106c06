import type { Authentication } from '../access/authentication.ts';
import type { Tx } from '../data/changes.ts';
import { recordChange } from '../data/record-change.ts';
import { Prisma } from '../generated/prisma/client.ts';

/** Why a token was revoked, as its record says. `rotated`: it was refreshed. */
export type RevocationReason =
  | 'revoked_by_user'
  | 'revoked_by_admin'
  | 'owner_deactivated'
  | 'owner_left'
  | 'maker_revoked'
  | 'password_reset'
  | 'password_changed'
  | 'address_confirmed'
  | 'refresh_token_reuse';

/** Which tokens. */
export type RevocationTarget =
  | { id: string }
  | { familyId: string }
  /** Those that a user made: in one organization, or in all. */
  | { userId: string; orgId?: string };

interface Revoked {
  id: string;
  orgId: string;
  appId: string | null;
  workspaceId: string | null;
  tokenType: string;
  tokenHash: string;
  reason: string;
}

/**
 * Revokes tokens from now on with their whole families: what they were refreshed from and is in its grace, and what
 * they were refreshed to. Refused at once on this node, within a second on every other. Each leaves its record and
 * event. Families of tokens that they made go with them (`maker_revoked`): whoever stole one must not keep what it
 * made. What is revoked already stays as it is.
 * @returns how many were still alive
 */
export async function revokeTokens(
  tx: Tx,
  authentication: Authentication,
  target: RevocationTarget,
  reason: RevocationReason,
): Promise<number> {
  const condition = conditionOf(target);
  const ids = await lockLineage(tx, condition);
  if (ids.length === 0) return 0;
  const revoked = await tx.query<Revoked>(Prisma.sql`
    update api_tokens set revoked_at = date_trunc('milliseconds', clock_timestamp()),
      revoked_reason = case when family_id in (select family_id from api_tokens where ${condition}) then ${reason} else 'maker_revoked' end
    where id = any(${ids}) and ${ALIVE}
    returning id, org_id as "orgId", app_id as "appId", workspace_id as "workspaceId", token_type as "tokenType", token_hash as "tokenHash",
      revoked_reason as reason`);
  for (const row of revoked) recordChange(tx, 'revoke', resourceOf(row), row, { reason: row.reason });
  tx.afterCommit(() => authentication.apiTokensRevoked(revoked.map(({ tokenHash }) => tokenHash)));
  return revoked.length;
}

/** Also one that has expired: it can be refreshed. */
const ALIVE = Prisma.sql`(revoked_at is null or revoked_at > clock_timestamp())`;

/**
 * Locks all live tokens of the families and of what they made. Who is refreshing or minting with one of them locks it,
 * so it is waited for, and what came of it is found by the next look: until a look finds nothing that was not locked
 * before.
 */
async function lockLineage(tx: Tx, condition: Prisma.Sql): Promise<string[]> {
  for (let held: string[] = []; ; ) {
    const ofLineage = Prisma.sql`${ALIVE} and t.family_id in (
      with recursive families as (
        select family_id from api_tokens where ${condition}
        union select m.family_id from api_tokens m join families f on m.maker_family_id = f.family_id
      )
      select family_id from families)`;
    const rows = await tx.lockAll('api_tokens', ofLineage, 'update');
    const known = new Set(held);
    held = rows.map(({ id }) => id);
    if (held.every((id) => known.has(id))) return held;
  }
}

function conditionOf(target: RevocationTarget): Prisma.Sql {
  if ('id' in target) return Prisma.sql`id = ${target.id}`;
  if ('familyId' in target) return Prisma.sql`family_id = ${target.familyId}`;
  const { userId, orgId } = target;
  return orgId
    ? Prisma.sql`created_by_user_id = ${userId} and org_id = ${orgId}`
    : Prisma.sql`created_by_user_id = ${userId}`;
}

/** The resource word of a token: of its permissions, events and records. */
export const resourceOf = ({ tokenType }: { tokenType: string }): 'api_token' | 'app_token' =>
  tokenType === 'app' ? 'app_token' : 'api_token';
