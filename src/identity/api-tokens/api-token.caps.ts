import type { Config } from '../../config.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { conflict } from '../../kernel/errors.ts';
import type { ResourceWord } from '../../kernel/resources.ts';
import type { TokenMaker } from './api-token.locks.ts';

export type TokenCaps = Pick<Config, 'maxTokensPerOwner' | 'maxTokensPerOrganization'>;

interface Live {
  ofOrganization: number;
  ofOwner: number;
}

/**
 * Locks an organization's count of live tokens until the transaction ends and checks that one more is allowed, for the
 * owner (a user in the organization, or an app) and for the organization. An expired token counts as long as it can be
 * refreshed. Call it before locking any row, so that a waiting caller holds no locks that others need.
 * @throws RESOURCE_CONFLICT `limit_reached` with the `limit`
 */
export async function lockTokenCaps(
  tx: Tx,
  { maxTokensPerOwner, maxTokensPerOrganization }: TokenCaps,
  { orgId, userId, appId }: TokenMaker,
): Promise<void> {
  if (maxTokensPerOwner === 0 && maxTokensPerOrganization === 0) return;
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`tokens of ${orgId}`}, 0))`);
  // A separate statement sees what was committed while the lock was awaited.
  const [live] = (await tx.query<Live>(statement`
    select count(*)::int as "ofOrganization",
      count(*) filter (where case when ${appId}::text is null then token_type = 'pat' and created_by_user_id = ${userId}
        else app_id = ${appId} end)::int as "ofOwner"
    from api_tokens where org_id = ${orgId} and revoked_at is null 
      and (refresh_expires_at is null or refresh_expires_at > now())`)) as [Live];
  if (maxTokensPerOwner > 0 && live.ofOwner >= maxTokensPerOwner)
    throw appId
      ? limitReached('app', appId, 'The app has', maxTokensPerOwner)
      : limitReached('user', userId, 'You have', maxTokensPerOwner);
  if (maxTokensPerOrganization > 0 && live.ofOrganization >= maxTokensPerOrganization)
    throw limitReached('organization', orgId, 'The organization has', maxTokensPerOrganization);
}

const limitReached = (resourceType: ResourceWord, resourceId: string, whose: string, limit: number) =>
  conflict(
    resourceType,
    resourceId,
    'limit_reached',
    `${whose} ${limit} tokens, which is the most. Revoke some first.`,
    {
      limit,
    },
  );
