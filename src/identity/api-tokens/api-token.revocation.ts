import type { Authentication } from '../../access/authentication.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { Prisma } from '../../generated/prisma/client.ts';
import { revokeGrantsOf } from '../oauth/grant-revocation.ts';

/** Why a token was revoked, as its audit record says. */
export type RevocationReason =
  | 'revoked_by_user'
  | 'revoked_by_admin'
  | 'owner_deactivated'
  | 'owner_left'
  | 'maker_revoked'
  | 'password_reset'
  | 'password_changed'
  | 'address_confirmed'
  | 'identity_linked'
  | 'refresh_token_reuse';

/** The tokens to revoke. */
export type RevocationTarget =
  | { id: string }
  | { familyId: string }
  /** The tokens that a user created, in one organization or in all. */
  | { userId: string; orgId?: string };

interface Revoked {
  id: string;
  orgId: string;
  appId: string | null;
  workspaceId: string | null;
  tokenType: string;
  tokenHash: string;
  userId: string;
  name: string;
  prefix: string;
  reason: string;
}

/**
 * Revokes tokens immediately, with their whole families: predecessors in their grace period and successors. This node
 * refuses them at once, every other node within a second. Each gets its own audit record and event. The families of
 * tokens that they created are revoked too (`maker_revoked`): whoever stole a token must not keep the tokens created
 * with it. Tokens that are already revoked stay unchanged. With all tokens of a user, what the user has granted to
 * applications ends too.
 * @returns how many were still alive
 */
export async function revokeTokens(
  tx: Tx,
  authentication: Authentication,
  target: RevocationTarget,
  reason: RevocationReason,
): Promise<number> {
  // programs that somebody else let in would stay otherwise
  if ('userId' in target) revokeGrantsOf(tx, authentication, target, reason);
  const condition = conditionOf(target);
  const ids = await lockLineage(tx, condition);
  if (ids.length === 0) return 0;
  const revoked = await tx.query<Revoked>(Prisma.sql`
    update api_tokens set revoked_at = date_trunc('milliseconds', clock_timestamp()),
      revoked_reason = case when family_id in (select family_id from api_tokens where ${condition})
        then ${reason} else 'maker_revoked' end
    where id = any(${ids}) and ${ALIVE}
    returning id, org_id as "orgId", app_id as "appId", workspace_id as "workspaceId", token_type as "tokenType",
      token_hash as "tokenHash", created_by_user_id as "userId", name, prefix, revoked_reason as reason`);
  // the last record names the request: that of the token that the request names, if it names one
  const isNamed = ({ id }: Revoked) => 'id' in target && id === target.id;
  for (const row of [...revoked.filter((row) => !isNamed(row)), ...revoked.filter(isNamed)]) {
    const { userId, name, prefix: of, reason: why } = row;
    recordChange(tx, 'revoke', resourceOf(row), row, { reason: why }, { userIds: [userId], name, of, reason: why });
  }
  tx.afterCommit(() => authentication.apiTokensRevoked(revoked.map(({ tokenHash }) => tokenHash)));
  return revoked.length;
}

/** Includes expired tokens, because they can be refreshed. */
const ALIVE = Prisma.sql`(revoked_at is null or revoked_at > clock_timestamp())`;

/**
 * Locks all live tokens of the families and of the tokens they created. A concurrent refresh or creation holds a lock
 * on its token, so this waits for it and finds the result in the next pass. It repeats until a pass finds no token that
 * was not locked before.
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

/** The resource word of a token in permissions, events and audit records. */
export const resourceOf = ({ tokenType }: { tokenType: string }): 'api_token' | 'app_token' =>
  tokenType === 'app' ? 'app_token' : 'api_token';
