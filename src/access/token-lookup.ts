import DataLoader from 'dataloader';
import type { Sql } from '../data/sql.ts';
import { parseEndpointPattern } from '../kernel/endpoint-paths.ts';
import type { TokenPrincipal } from '../kernel/principal.ts';
import type { TokenGrant } from '../kernel/token-grant.ts';
import { FreshCache } from './fresh-cache.ts';
import { isGrantKey, readGrants } from './grant-lookup.ts';
import { expand } from './scopes.ts';
import { isVouchedFor } from './sso-demand.ts';
import type { TokenUses } from './token-uses.ts';

/** What is read about a token, its user and its organization. */
interface TokenRow {
  id: string;
  type: 'pat' | 'app';
  familyId: string;
  orgId: string;
  appId: string | null;
  workspaceId: string | null;
  scopes: string[];
  permissions: string[];
  workspaceIds: string[];
  namespaceIds: string[];
  environmentIds: string[];
  impliedWorkspaceIds: string[] | null;
  endpointPaths: string[];
  rateLimitRps: number | null;
  rateLimitBurst: number | null;
  /** For a token made by a token: the first token of the line. */
  rootFamilyId: string | null;
  rootRps: number | null;
  rootBurst: number | null;
  userId: string;
  username: string;
  isVerified: boolean;
  /** Its organization, if it demands single sign-on or a factor and the user has an identity there. */
  vouchedBy: string | null;
  /** Milliseconds until it expires or its revocation takes effect, by the clock of the database; `null` for never. */
  leftMs: number | null;
}

interface TokenState {
  /** `null` when there is no such token, or its user or organization is gone. */
  principal: TokenPrincipal | null;
  /** In terms of `performance.now()`. */
  endsAt: number;
}

/** Of namespaces and environments that are all gone, none: what a token named and is no more opens nothing else. */
const IMPLIED = `case when t.workspace_id is null and t.workspace_ids = '{}'
      and (t.namespace_ids <> '{}' or t.environment_ids <> '{}')
    then array(select n.workspace_id from namespaces n where n.id = any(t.namespace_ids) and n.org_id = t.org_id
      union select e.workspace_id from environments e where e.id = any(t.environment_ids) and e.org_id = t.org_id)
    end`;

// all nodes use one clock: that of the database
const TOKEN = `select t.token_hash as hash, t.id, t.token_type as type, t.family_id as "familyId",
    t.org_id as "orgId", t.app_id as "appId",
    t.workspace_id as "workspaceId", t.scopes, t.permissions,
    t.workspace_ids as "workspaceIds", t.namespace_ids as "namespaceIds",
    t.environment_ids as "environmentIds", ${IMPLIED} as "impliedWorkspaceIds",
    t.endpoint_paths as "endpointPaths", t.rate_limit_rps as "rateLimitRps",
    t.rate_limit_burst as "rateLimitBurst", t.root_family_id as "rootFamilyId", root.rps as "rootRps",
    root.burst as "rootBurst", u.id as "userId", u.username, u.is_verified as "isVerified",
    case when (o.sso_required or o.sso_required_domains <> '{}' or o.factor_required_at is not null)
      and ${isVouchedFor('t.org_id', 't.created_by_user_id')} then t.org_id end as "vouchedBy",
    (extract(epoch from least(t.expires_at, t.revoked_at) - now()) * 1000)::float8 as "leftMs"
  from api_tokens t join users u on u.id = t.created_by_user_id and u.is_active
  join organizations o on o.id = t.org_id and o.deleted_at is null
  left join lateral (select r.rate_limit_rps as rps, r.rate_limit_burst as burst from api_tokens r
    where r.family_id = t.root_family_id order by r.id desc limit 1) root on true
  where t.token_hash = any($1) and t.suspended_at is null`;

/** Finds the live token with a hash. Each node reads a token at most once a second. */
export class TokenLookup {
  readonly #sql: Sql;
  readonly #uses: TokenUses;
  readonly #tokens = new FreshCache<TokenState>();
  // batches simultaneous look-ups; keeps nothing
  readonly #loads = new DataLoader<string, TokenState>((hashes) => this.#read(hashes), { cache: false });

  constructor(sql: Sql, uses: TokenUses) {
    this.#sql = sql;
    this.#uses = uses;
  }

  /**
   * The principal of a token; `null` if the token is unknown, expired or revoked, or its user or organization is gone.
   */
  async find(hash: string): Promise<TokenPrincipal | null> {
    const { principal, endsAt } = await this.#tokens.get(hash, () => this.#loads.load(hash));
    if (!principal || performance.now() >= endsAt) return null;
    this.#uses.note(principal.token.id);
    return principal;
  }

  /** Reads tokens again, all in one statement. */
  async readAgain(hashes: readonly string[]): Promise<void> {
    await this.#tokens.readAgain(hashes, (asked) => this.#read(asked));
  }

  /** Tokens were revoked on this node. They are refused at once on this node. */
  drop(hashes: readonly string[]): void {
    for (const hash of hashes) this.#tokens.drop(hash);
  }

  /** The same for all tokens. */
  clear(): void {
    this.#tokens.clear();
  }

  async #read(keys: readonly string[]): Promise<TokenState[]> {
    const grants = keys.filter(isGrantKey);
    if (grants.length === 0) return this.#readTokens(keys);
    const tokens = keys.filter((key) => !isGrantKey(key));
    const [principals, states] = await Promise.all([
      readGrants(this.#sql, grants),
      tokens.length > 0 ? this.#readTokens(tokens) : [],
    ]);
    // their tokens say when they expire; a grant ends when it is taken back
    const ofGrants = principals.map((principal) => ({ principal, endsAt: Number.POSITIVE_INFINITY }));
    const found = new Map([...grants, ...tokens].map((key, index) => [key, [...ofGrants, ...states][index]!]));
    return keys.map((key) => found.get(key)!);
  }

  async #readTokens(hashes: readonly string[]): Promise<TokenState[]> {
    const asked = performance.now();
    const rows = await this.#sql.read<TokenRow & { hash: string }>(TOKEN, [hashes]);
    const found = new Map(rows.map((row) => [row.hash, row]));
    return hashes.map((hash) => {
      const row = found.get(hash);
      if (!row) return { principal: null, endsAt: 0 };
      return {
        principal: principalOf(row, hash),
        endsAt: row.leftMs === null ? Number.POSITIVE_INFINITY : asked + row.leftMs,
      };
    });
  }
}

function principalOf(row: TokenRow, hash: string): TokenPrincipal {
  const { userId, username, isVerified, orgId, vouchedBy } = row;
  const type = row.type === 'app' ? 'app_token' : 'api_token';
  const known = { userId, username, isVerified, isPlatformAdmin: false, vouchedBy, orgId };
  // a token signs nobody in: it works as long as its user has a factor
  return { ...known, type, provesFactor: true, token: grantOf(row, hash) };
}

/** Of a row that was read without them: whoever forgets to ask for workspaces that are implied reaches none. */
const unknownWorkspaces = (row: Pick<TokenRow, 'workspaceId' | 'workspaceIds' | 'namespaceIds' | 'environmentIds'>) =>
  !row.workspaceId && row.workspaceIds.length === 0 && row.namespaceIds.length + row.environmentIds.length > 0
    ? []
    : null;

/** The grant in the row of a token. */
export function grantOf(
  row: Omit<
    TokenRow,
    'userId' | 'username' | 'isVerified' | 'vouchedBy' | 'leftMs' | 'rootRps' | 'rootBurst' | 'impliedWorkspaceIds'
  > &
    Partial<Pick<TokenRow, 'rootRps' | 'rootBurst' | 'impliedWorkspaceIds'>>,
  hash: string,
): TokenGrant {
  const { id, type, familyId, orgId, appId, namespaceIds, environmentIds, rateLimitRps, rateLimitBurst } = row;
  return {
    id,
    type,
    familyId,
    hash,
    orgId,
    appId,
    permissions: expand(row.scopes, row.permissions),
    names: [...row.scopes, ...row.permissions],
    workspaceIds: row.workspaceId ? [row.workspaceId] : row.workspaceIds,
    namespaceIds,
    environmentIds,
    impliedWorkspaceIds: row.impliedWorkspaceIds === undefined ? unknownWorkspaces(row) : row.impliedWorkspaceIds,
    // stored values were validated; what can no longer be parsed allows nothing
    endpoints:
      row.endpointPaths.length === 0 ? null : row.endpointPaths.flatMap((text) => parseEndpointPattern(text) ?? []),
    rateLimitRps,
    rateLimitBurst,
    root: row.rootFamilyId
      ? { familyId: row.rootFamilyId, rateLimitRps: row.rootRps ?? null, rateLimitBurst: row.rootBurst ?? null }
      : null,
  };
}
