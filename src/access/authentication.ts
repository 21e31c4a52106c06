import DataLoader from 'dataloader';
import type { Sql } from '../data/sql.ts';
import { lruOf } from '../kernel/lru.ts';
import type { Principal, UserPrincipal } from '../kernel/principal.ts';
import { TextArray } from '../platform/postgres/text-array.ts';
import type { AccessClaims, AccessTokens } from './access-tokens.ts';
import { kindOfToken } from './api-token-format.ts';
import { demandsFactor, hasFactor } from './factor-demand.ts';
import { FreshCache } from './fresh-cache.ts';
import { grantKey } from './grant-lookup.ts';
import type { OAuthClaims, OAuthTokens } from './oauth-tokens.ts';
import { tokenHash } from './random-token.ts';
import { demandsSso, vouchesFor } from './sso-demand.ts';
import { TokenLookup } from './token-lookup.ts';
import type { TokenUses } from './token-uses.ts';

type MaybePromise<T> = T | Promise<T>;

interface SessionRow extends Omit<UserPrincipal, 'orgId' | 'type' | 'token' | 'brokenGlass' | 'factorAt'> {
  factorAt: Date | null;
  glassOf: string | null;
  glassUntil: Date | null;
}

interface SessionState {
  /** `null` when the session has ended or its user is inactive or gone. */
  principal: Omit<UserPrincipal, 'orgId'> | null;
}

/** The prefix of API tokens and app tokens. Access tokens never have it. */
const API_TOKEN = /^(?:pat|app)_/;

const SESSION = `select s.id as "sessionId", u.id as "userId", u.username, u.is_platform_admin as "isPlatformAdmin",
    u.is_verified as "isVerified", (select p.org_id from identity_providers p
      where p.id = s.identity_provider_id and p.is_active) as "vouchedBy",
    s.break_glass_org_id as "glassOf", s.break_glass_until as "glassUntil", s.factor_at as "factorAt",
    array(select m.org_id from organization_members m join organizations o on o.id = m.org_id
      where m.user_id = s.user_id and not ${vouchesFor('s.identity_provider_id', 'm.org_id')}
        and (${demandsSso('o', 'm.user_id')}
            and not (m.org_id = s.break_glass_org_id and s.break_glass_until > now() and m.role = 'owner'
              and o.sso_break_glass) is true
          or ${demandsFactor('o', 'm')} and not (s.factor_at is not null and ${hasFactor('m.user_id')}))
      ) as "shutOutOf"
  from sessions s join users u on u.id = s.user_id
  where s.id = any($1) and s.revoked_at is null and s.expires_at > now() and u.is_active`;

// for thousands of silent streams: nearly all sessions live, and the answer is empty
const ENDED = `select k.id from unnest($1::text[]) k(id)
  where not exists (${SESSION.replace('any($1)', 'k.id')})`;

// whose session a cookie is of is looked up apart from whether that session lives, which other credentials share
const OF_COOKIE = `select cookie_hash as hash, id as "sessionId", org_id as "orgId" from sessions
  where cookie_hash = any($1)`;

/** The token of an `authorization` header or a cookie, and the hash that is its cache key. */
export interface Credential {
  token: string;
  hash: string;
  /** Where the token is from. Default: the header. */
  from?: 'cookie';
  /** The path of the request: some tokens are for one part of the service only. */
  path?: string;
}

/** A session, as the cookie of a browser names it. */
interface CookieState {
  session: { sessionId: string; orgId: string | null } | null;
}

/** The credential of a header: `Bearer …` (the scheme in any case) or a bare token. `null` if there is none. */
export function credentialOf(header: string | undefined): Credential | null {
  const token = header && /^\s*(?:bearer\s+)?([\w.~+/=-]+)\s*$/i.exec(header)?.[1];
  return token ? { token, hash: tokenHash(token) } : null;
}

/** The credential of a cookie of a browser that is signed in. */
export const cookieCredential = (token: string): Credential => ({ token, hash: tokenHash(token), from: 'cookie' });

const LIVING = { lives: true };
const GONE = { lives: false };

/** How long a credential that was valid is looked up without counting against a limit. */
const TRUST_MS = 600_000;

/** Finds the caller, by the same rules for REST, GraphQL, WebSocket and SSE. */
export class Authentication {
  readonly #tokens: AccessTokens;
  readonly #oauthTokens: OAuthTokens;
  readonly #apiTokens: TokenLookup;
  readonly #uses: TokenUses;
  readonly #sql: Sql;
  readonly #sessions = new FreshCache<SessionState>();
  readonly #cookies = new FreshCache<CookieState>();
  readonly #cookieLoads = new DataLoader<string, CookieState>((hashes) => this.#readCookies(hashes), { cache: false });
  // batches simultaneous look-ups, such as those of the sockets of this node; keeps nothing
  readonly #sessionLoads = new DataLoader<string, SessionState>((ids) => this.#readSessions(ids), { cache: false });
  /** What the last look at open streams and sockets found: an event must not ask about each of its readers again. */
  readonly #living = new FreshCache<typeof LIVING>();
  readonly #endings = new DataLoader<string, boolean>(
    async (ids) => {
      const ended = await this.ended(ids);
      return ids.map((id) => ended.has(id));
    },
    { cache: false },
  );
  /** Hashes of credentials that were valid recently. */
  readonly #trusted = lruOf<true>(50_000, { ttl: TRUST_MS, ttlResolution: 1_000 });
  /** Hashes of credentials with a look-up in progress. */
  readonly #pending = new Map<string, number>();

  constructor(tokens: AccessTokens, oauthTokens: OAuthTokens, uses: TokenUses, sql: Sql) {
    this.#tokens = tokens;
    this.#oauthTokens = oauthTokens;
    this.#apiTokens = new TokenLookup(sql, uses);
    this.#uses = uses;
    this.#sql = sql;
  }

  /**
   * The principal of a credential. `null` when it is missing, malformed, expired or revoked; callers cannot tell these
   * cases apart. At once if it was found less than a second ago, as for nearly all requests.
   */
  authenticate(credential: Credential | null): MaybePromise<Principal | null> {
    if (!credential) return null;
    const { hash } = credential;
    const found = this.#find(credential);
    return found instanceof Promise ? this.#awaited(hash, found) : this.#noted(hash, found);
  }

  #noted(hash: string, principal: Principal | null): Principal | null {
    if (principal) this.#trust(hash);
    else this.#trusted.delete(hash);
    return principal;
  }

  async #awaited(hash: string, found: Promise<Principal | null>): Promise<Principal | null> {
    this.#pending.set(hash, (this.#pending.get(hash) ?? 0) + 1);
    try {
      return this.#noted(hash, await found);
    } finally {
      const left = this.#pending.get(hash)! - 1;
      if (left > 0) this.#pending.set(hash, left);
      else this.#pending.delete(hash);
    }
  }

  /** Whether this credential may be looked up without a limit: it was valid recently, or a look-up is in progress. */
  isTrusted({ hash }: Credential): boolean {
    return this.#trusted.has(hash) || this.#pending.has(hash);
  }

  /**
   * Whether it is an access token that this service has signed and that has not expired. Its session may have ended.
   */
  async isSigned({ token, hash, from, path = '' }: Credential): Promise<boolean> {
    if (from === 'cookie' || API_TOKEN.test(token)) return false;
    return (
      (await this.#oauthTokens.verify(token, path, hash)) !== null || (await this.#tokens.verify(token, hash)) !== null
    );
  }

  /**
   * Renewed only after half of its time: renewing on each request would cost as much as all look-ups of a known caller.
   */
  #trust(hash: string): void {
    if (this.#trusted.getRemainingTTL(hash) < TRUST_MS / 2) this.#trusted.set(hash, true);
  }

  #find({ token, hash, from, path = '' }: Credential): MaybePromise<Principal | null> {
    if (from === 'cookie') return this.#findByCookie(hash);
    if (API_TOKEN.test(token)) return this.#apiToken(token, hash);
    // no other token server has signed it, and reading its header again costs as much as all look-ups
    const granted = this.#tokens.hasVerified(hash) ? null : this.#oauthTokens.verify(token, path, hash);
    if (granted instanceof Promise)
      return granted.then((known) => (known ? this.#findGrant(known) : this.#findSession(token, hash)));
    return granted ? this.#findGrant(granted) : this.#findSession(token, hash);
  }

  #findGrant({ grantId, scopes }: OAuthClaims): Promise<Principal | null> {
    return this.#apiTokens.find(grantKey(grantId, scopes));
  }

  #findSession(token: string, hash: string): MaybePromise<Principal | null> {
    const claims = this.#tokens.verify(token, hash);
    return claims instanceof Promise ? claims.then((known) => this.#findUser(known)) : this.#findUser(claims);
  }

  async #findByCookie(hash: string): Promise<Principal | null> {
    const { session } = await this.#cookies.get(hash, () => this.#cookieLoads.load(hash));
    if (!session) return null;
    const { principal } = await this.#session(session.sessionId);
    return principal && inOrganization(principal, session.orgId);
  }

  #findUser(claims: AccessClaims | null): MaybePromise<Principal | null> {
    if (!claims) return null;
    const { userId, orgId } = claims;
    const userIn = ({ principal }: SessionState) =>
      principal?.userId === userId ? inOrganization(principal, orgId) : null;
    const session = this.#session(claims.sessionId);
    return session instanceof Promise ? session.then(userIn) : userIn(session);
  }

  /**
   * The current state of a principal that was found earlier; `null` when it is no longer valid. For sockets and
   * streams, which outlive their access token, but not an API token.
   */
  async renew(known: Principal): Promise<Principal | null> {
    if (known.token) return this.#apiTokens.find(known.token.hash);
    const { principal } = await this.#session(known.sessionId);
    return principal?.userId === known.userId ? inOrganization(principal, known.orgId) : null;
  }

  /**
   * Whether a principal that was found earlier is still valid. Answers at once if that is cached, as it is for each
   * event of a stream.
   */
  lives(known: Principal): boolean | Promise<boolean> {
    if (known.token) return this.#apiTokens.find(known.token.hash).then((principal) => principal !== null);
    if (this.#living.peek(known.sessionId)?.lives) return true;
    const session = this.#session(known.sessionId);
    const isAlive = ({ principal }: SessionState) => principal?.userId === known.userId;
    return session instanceof Promise ? session.then(isAlive) : isAlive(session);
  }

  /** Reads API tokens again, all of them at once. */
  async readTokensAgain(hashes: readonly string[]): Promise<void> {
    await this.#apiTokens.readAgain(hashes);
  }

  /** Like {@link lives}, for sockets that are idle: many at once read nothing of the sessions that live. */
  livesStill(known: Principal): boolean | Promise<boolean> {
    return known.token ? this.lives(known) : this.#endings.load(known.sessionId).then((hasEnded) => !hasEnded);
  }

  /**
   * Those of these sessions that have ended, or whose user is inactive or gone. Of the others it is known for a while
   * that they live.
   * @param written the same ids, for who asks about them again and again
   */
  async ended(sessionIds: readonly string[], written = new TextArray(sessionIds)): Promise<Set<string>> {
    const ended = new Set<string>();
    await this.#living.readAgain(sessionIds, async (ids) => {
      for (const { id } of await this.#sql.read<{ id: string }>(ENDED, [written])) ended.add(id);
      return ids.map((id) => (ended.has(id) ? GONE : LIVING));
    });
    for (const id of ended) this.#sessions.drop(id);
    return ended;
  }

  /** A session was ended on this node. It is refused at once on this node. */
  sessionChanged(sessionId: string): void {
    this.#sessions.drop(sessionId);
    this.#living.drop(sessionId);
    // what was granted for the session ends with it; its cookie may name another organization now
    this.#cookies.clear();
    this.#apiTokens.clear();
  }

  /** What was granted to applications was taken back on this node. */
  grantsChanged(): void {
    this.#apiTokens.clear();
  }

  /** Sessions of a user were ended, or the user changed. */
  sessionsChanged(): void {
    this.#sessions.clear();
    this.#cookies.clear();
    this.#living.clear();
    this.#apiTokens.clear();
  }

  /** API tokens with these hashes were revoked on this node. They are refused at once on this node. */
  apiTokensRevoked(hashes: readonly string[]): void {
    this.#apiTokens.drop(hashes);
  }

  /** The tokens of an app were deleted with it. */
  appDeleted(): void {
    this.#apiTokens.clear();
  }

  async #apiToken(token: string, hash: string): Promise<Principal | null> {
    const kind = kindOfToken(token);
    // a refresh token is no credential for requests; a wrong checksum needs no database query
    return kind === 'pat' || kind === 'app' ? this.#apiTokens.find(hash) : null;
  }

  #session(sessionId: string): SessionState | Promise<SessionState> {
    return this.#sessions.get(sessionId, () => this.#sessionLoads.load(sessionId));
  }

  async #readCookies(hashes: readonly string[]): Promise<CookieState[]> {
    const rows = await this.#sql.read<{ hash: string; sessionId: string; orgId: string | null }>(OF_COOKIE, [hashes]);
    const found = new Map(rows.map(({ hash, ...session }) => [hash, session]));
    return hashes.map((hash) => ({ session: found.get(hash) ?? null }));
  }

  async #readSessions(ids: readonly string[]): Promise<SessionState[]> {
    const rows = await this.#sql.read<SessionRow>(SESSION, [ids]);
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    // whoever is looked up is in use: a session that is asked for again is looked up again within a second
    for (const id of found.keys()) this.#uses.note(id);
    return ids.map((id) => {
      const row = found.get(id);
      return { principal: row ? principalOf(row) : null };
    });
  }
}

function principalOf({ glassOf, glassUntil, factorAt, ...known }: SessionRow): Omit<UserPrincipal, 'orgId'> {
  const brokenGlass = glassOf === null || glassUntil === null ? null : { orgId: glassOf, until: glassUntil.getTime() };
  return {
    ...known,
    type: 'user',
    token: null,
    brokenGlass,
    factorAt: factorAt?.getTime() ?? null,
    provesFactor: factorAt !== null,
  };
}

/** Property by property: on the way of each request, Node 20 takes microseconds for one after a spread. */
const inOrganization = (known: Omit<UserPrincipal, 'orgId'>, orgId: string | null): UserPrincipal => ({
  type: known.type,
  userId: known.userId,
  username: known.username,
  isVerified: known.isVerified,
  isPlatformAdmin: known.isPlatformAdmin,
  vouchedBy: known.vouchedBy ?? null,
  brokenGlass: known.brokenGlass ?? null,
  provesFactor: known.provesFactor ?? false,
  factorAt: known.factorAt ?? null,
  shutOutOf: known.shutOutOf ?? [],
  sessionId: known.sessionId,
  orgId,
  token: null,
});
