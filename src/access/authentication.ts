import { FreshCache } from '../infra/fresh-cache.ts';
import type { Sql } from '../infra/sql.ts';
import type { AccessTokens } from './access-tokens.ts';
import type { Principal } from './principal.ts';

interface SessionState {
  /** `null` when the session or its user is dead. */
  principal: Omit<Principal, 'orgId'> | null;
}

const SESSION = `select u.id as "userId", u.username, u.is_platform_admin as "isPlatformAdmin", u.is_verified as "isVerified"
  from sessions s join users u on u.id = s.user_id
  where s.id = $1 and s.revoked_at is null and s.expires_at > now() and u.is_active`;

/** Finds who is calling, by the same rules for REST, GraphQL, WebSocket and SSE. */
export class Authentication {
  readonly #tokens: AccessTokens;
  readonly #sql: Sql;
  readonly #sessions = new FreshCache<SessionState>();

  constructor(tokens: AccessTokens, sql: Sql) {
    this.#tokens = tokens;
    this.#sql = sql;
  }

  /**
   * The principal of an `authorization` header value (`Bearer …`, scheme case-insensitive, or a bare token); `null` when it is missing,
   * malformed, expired or revoked: those are never told apart.
   */
  async authenticate(header: string | undefined): Promise<Principal | null> {
    if (!header) return null;
    const token = /^\s*(?:bearer\s+)?([\w.~+/=-]+)\s*$/i.exec(header)?.[1];
    if (!token) return null;
    const claims = await this.#tokens.verify(token);
    if (!claims) return null;
    const { principal } = await this.#session(claims.sessionId);
    return principal && principal.userId === claims.userId ? { ...principal, orgId: claims.orgId } : null;
  }

  /**
   * What a principal that was found earlier is now; `null` when it would not be found any more. For sockets and streams, which outlive
   * their access token.
   */
  async renew({ sessionId, userId, orgId }: Principal): Promise<Principal | null> {
    const { principal } = await this.#session(sessionId);
    return principal?.userId === userId ? { ...principal, orgId } : null;
  }

  /** A session was ended on this node: it is refused at once, here. */
  sessionChanged(sessionId: string): void {
    this.#sessions.drop(sessionId);
  }

  /** Sessions of a user were ended, or the user changed. */
  sessionsChanged(): void {
    this.#sessions.clear();
  }

  #session(sessionId: string): SessionState | Promise<SessionState> {
    return this.#sessions.get(sessionId, async () => {
      const [row] = await this.#sql.read<Omit<Principal, 'type' | 'orgId' | 'sessionId'>>(SESSION, [sessionId]);
      return { principal: row ? { ...row, type: 'user' as const, sessionId } : null };
    });
  }
}
