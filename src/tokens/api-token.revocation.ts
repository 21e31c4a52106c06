import type { Authentication } from '../access/authentication.ts';
import { Prisma } from '../generated/prisma/client.ts';
import type { Tx } from '../infra/change.ts';
import { recordChange } from '../infra/record-change.ts';

/** Why a token was revoked, as its record says. `rotated`: it was refreshed. */
export type RevocationReason =
  | 'revoked_by_user'
  | 'revoked_by_admin'
  | 'owner_deactivated'
  | 'owner_left'
  | 'maker_revoked'
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
 * Revokes tokens from now on, those in the grace of a refresh too: refused at once on this node, within a second on every other. Each
 * leaves its record and event. Tokens that they made go with them (`maker_revoked`): whoever stole one must not keep what it made.
 * @returns how many were still alive
 */
export async function revokeTokens(
  tx: Tx,
  authentication: Authentication,
  target: RevocationTarget,
  reason: RevocationReason,
): Promise<number> {
  const revoked = await tx.db.$queryRaw<Revoked[]>`
    with recursive hit as (select id, family_id from api_tokens where ${conditionOf(target)} and (revoked_at is null or revoked_at > now())),
    made as (
      select t.id, t.family_id from api_tokens t join hit on t.maker_family_id = hit.family_id
      union select t.id, t.family_id from api_tokens t join made on t.maker_family_id = made.family_id
    )
    update api_tokens set revoked_at = now(), revoked_reason = case when id in (select id from hit) then ${reason} else 'maker_revoked' end
    where (id in (select id from hit) or id in (select id from made)) and (revoked_at is null or revoked_at > now())
    returning id, org_id as "orgId", app_id as "appId", workspace_id as "workspaceId", token_type as "tokenType", token_hash as "tokenHash",
      revoked_reason as reason`;
  for (const row of revoked) recordChange(tx, 'revoke', resourceOf(row), row, { reason: row.reason });
  if (revoked.length > 0)
    tx.afterCommit(() => authentication.apiTokensRevoked(revoked.map(({ tokenHash }) => tokenHash)));
  return revoked.length;
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
