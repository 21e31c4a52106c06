import type { Authentication } from '../../access/authentication.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { Config } from '../../config.ts';
import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { notFound } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { MOST_SHOWN } from '../pages/most-shown.ts';
import type { Sessions } from './sessions.ts';

/** A session that has not ended, as its user sees it. */
export interface LivingSession {
  id: string;
  createdAt: Date;
  expiresAt: Date;
  /** `password`, `saml` or `oidc`. */
  method: string;
  userAgent: string | null;
  /** Whether it is of a browser at pages of this origin. */
  isBrowser: boolean;
}

interface BrowserSessionDeps {
  sql: Sql;
  changes: Changes;
  authentication: Authentication;
  sessions: Sessions;
  config: Pick<Config, 'refreshTokenIdleDays'>;
}

const MAX_USER_AGENT = 300;
const DAY_SECONDS = 86_400;

const LIVING = `select id, created_at as "createdAt", expires_at as "expiresAt", method, user_agent as "userAgent",
    cookie_hash is not null as "isBrowser"
  from sessions where user_id = $1 and revoked_at is null and expires_at > now()
  order by id desc limit ${MOST_SHOWN + 1}`;
const IS_OWN = 'select from sessions where id = $1 and user_id = $2 and revoked_at is null and expires_at > now()';

/** Sessions that a cookie holds, of browsers at pages of this origin (docs/decisions/0063). */
export class BrowserSessions {
  readonly #deps: BrowserSessionDeps;

  constructor(deps: BrowserSessionDeps) {
    this.#deps = deps;
  }

  /**
   * Gives the session of a sign-in to the browser: a new cookie holds it, its refresh tokens end, and so does the
   * session that the browser had before.
   * @param former what the cookie held before
   * @returns what the new one holds
   * @throws AUTHENTICATION_FAILED when the session has ended, was opened long ago, or was handed over already
   */
  async open(caller: Caller, { former, userAgent }: { former: string | null; userAgent: string }): Promise<string> {
    const { changes, authentication, sessions, config } = this.#deps;
    const { sessionId } = sessionOf(caller, 'user:update');
    const token = randomToken();
    await changes.run(caller, async (tx) => {
      await sessions.handOver(tx, sessionId, {
        cookieHash: tokenHash(token),
        userAgent: userAgent.slice(0, MAX_USER_AGENT),
        seconds: config.refreshTokenIdleDays * DAY_SECONDS,
      });
      if (former !== null)
        tx.write(statement`update sessions set revoked_at = now(), revoked_reason = 'signed_in_again'
          where cookie_hash = ${tokenHash(former)} and revoked_at is null`);
      tx.afterCommit(() => authentication.sessionsChanged());
    });
    return token;
  }

  /** The sessions of the caller, newest first: one more than are shown, if there are more. */
  list({ principal }: Caller): Promise<LivingSession[]> {
    return this.#deps.sql.read<LivingSession>(LIVING, [principal.userId]);
  }

  /** Ends a session of the caller. @throws RESOURCE_NOT_FOUND */
  async end(caller: Caller, id: string): Promise<void> {
    const { userId, orgId } = sessionOf(caller, 'user:update');
    if ((await this.#deps.sql.read(IS_OWN, [id, userId])).length === 0) throw notFound('session', id);
    await this.#deps.changes.run(caller, async (tx) => {
      this.#deps.sessions.revoke(tx, id, 'logout');
      tx.audit({ action: 'logout', resourceType: 'user', resourceId: userId, orgId, metadata: { session_id: id } });
      tx.afterCommit(() => this.#deps.authentication.sessionChanged(id));
    });
  }
}
