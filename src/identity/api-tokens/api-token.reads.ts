import { columnsOf, words } from '../../data/paging.ts';
import type { ApiToken as ApiTokenRow } from '../../generated/prisma/client.ts';

const columns = columnsOf(
  words(
    'id orgId tokenType ownerType ownerId createdByUserId appId workspaceId name description prefix scopes permissions',
    'workspaceIds namespaceIds environmentIds endpointPaths rateLimitRps rateLimitBurst issuedAt expiresAt',
    'refreshExpiresAt lastUsedAt suspendedAt revokedAt revokedReason resourceVersion',
  ),
);

/** A token as lists show it: without its text and without a hash of it (spec, API token). */
export type ApiToken = Pick<ApiTokenRow, keyof typeof columns>;

/** API tokens and app tokens. */
export const tokens = { kind: 'api_token', from: 'api_tokens', columns } as const;

// Lists show the newest revoked tokens, for 90 days (defaults §3): a program that refreshes every minute must not push
// live tokens out of the list.
const MOST_REVOKED = 5_000;

/** Conditions of a token list. @param whose the condition on `r`, a token of the list */
export const shown = (whose: string): string[] => [
  `(t.revoked_at is null or t.revoked_at > now() - interval '90 days')`,
  `(t.revoked_at is null or t.id > coalesce((select r.id from api_tokens r
    where ${whose} and r.revoked_at is not null order by r.id desc offset ${MOST_REVOKED} limit 1), ''))`,
];

/** The tokens of a type that the caller's user created in an organization. */
export const ownTokens = (type: 'pat' | 'app') =>
  ({
    ...tokens,
    below: ['orgId'],
    mine: `t.created_by_user_id between $me and $me and t.token_type = '${type}'`,
    index: { lead: 't.created_by_user_id' },
    listed: shown(`r.org_id = $1 and r.created_by_user_id = $me and r.token_type = '${type}'`),
  }) as const;
