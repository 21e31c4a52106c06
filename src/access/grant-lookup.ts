import type { Sql } from '../data/sql.ts';
import type { TokenPrincipal } from '../kernel/principal.ts';
import { expandScope } from './scopes.ts';

/** What is read about a grant, its user and its application. */
interface GrantRow {
  id: string;
  orgId: string;
  applicationId: string;
  scopes: string[];
  workspaceIds: string[];
  userId: string;
  username: string;
  isVerified: boolean;
  /** The organization of the identity provider whose session gave it. */
  vouchedBy: string | null;
  /** Whether it was given in a session with a second factor, or such a session is its own. */
  provesFactor: boolean;
}

// a grant that was given for a session ends with it
const GRANT = `select g.id, g.org_id as "orgId", g.application_id as "applicationId", g.scopes,
    g.workspace_ids as "workspaceIds", u.id as "userId", u.username, u.is_verified as "isVerified",
    (select p.org_id from identity_providers p where p.id = g.identity_provider_id and p.is_active) as "vouchedBy",
    g.with_factor or coalesce(s.factor_at is not null, false) as "provesFactor"
  from oauth_grants g
  join users u on u.id = g.user_id and u.is_active
  join organizations o on o.id = g.org_id and o.deleted_at is null
  left join sessions s on s.id = g.session_id and s.revoked_at is null and s.expires_at > now()
  where g.id = any($1) and g.revoked_at is null and (g.session_id is null or s.id is not null)`;

const PREFIX = 'oauth:';

/** What the tokens of a grant with these scopes are looked up by, where an API token has its hash. */
export const grantKey = (grantId: string, scopes: readonly string[]): string =>
  `${PREFIX}${grantId} ${scopes.join(' ')}`;

export const isGrantKey = (key: string): boolean => key.startsWith(PREFIX);

/** The principals of the tokens with these keys; `null` for a grant that is unknown or has ended. One statement. */
export async function readGrants(sql: Sql, keys: readonly string[]): Promise<(TokenPrincipal | null)[]> {
  const asked = keys.map((key) => {
    const [id = '', ...scopes] = key.slice(PREFIX.length).split(' ');
    return { key, id, scopes };
  });
  const rows = await sql.read<GrantRow>(GRANT, [[...new Set(asked.map(({ id }) => id))]]);
  const found = new Map(rows.map((row) => [row.id, row]));
  return asked.map(({ key, id, scopes }) => {
    const row = found.get(id);
    return row ? principalOf(row, key, scopes) : null;
  });
}

/** A token never has more than its grant, and may have less. */
function principalOf(row: GrantRow, hash: string, scopes: readonly string[]): TokenPrincipal {
  const { id, orgId, applicationId, workspaceIds, userId, username, isVerified, vouchedBy, provesFactor } = row;
  const granted = scopes.filter((scope) => row.scopes.includes(scope));
  return {
    type: 'api_token',
    userId,
    username,
    isVerified,
    isPlatformAdmin: false,
    vouchedBy,
    provesFactor,
    orgId,
    token: {
      id,
      type: 'pat',
      familyId: id,
      hash,
      orgId,
      appId: null,
      applicationId,
      permissions: new Set(granted.flatMap(expandScope)),
      names: granted,
      workspaceIds,
      namespaceIds: [],
      environmentIds: [],
      impliedWorkspaceIds: null,
      endpoints: null,
      rateLimitRps: null,
      rateLimitBurst: null,
      root: null,
    },
  };
}
