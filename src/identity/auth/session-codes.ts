import type { Authentication } from '../../access/authentication.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { Config } from '../../config.ts';
import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { ApiError, unauthenticated } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { mayFollowUnasked, withParameter } from '../../kernel/redirect-targets.ts';
import type { SignIn } from './auth.service.ts';
import type { SessionFacts, Sessions } from './sessions.ts';

interface SessionCodeDeps {
  sql: Sql;
  changes: Changes;
  authentication: Authentication;
  sessions: Sessions;
  config: Pick<Config, 'ssoRedirectUris' | 'refreshTokenAbsoluteDays'>;
  publicUrl: () => string;
}

const CODE_SECONDS = 60;

const HOLDER = `select u.id as "userId", u.username from sessions s join users u on u.id = s.user_id
  where s.code_hash = $1 and s.revoked_at is null and s.expires_at > now() and u.is_active`;

/**
 * Codes by which the page of the sign-in hands a session over to a front end (docs/decisions/0063). The code belongs to
 * the session: whatever ends that, ends the code, and a code that nobody exchanges leaves no session.
 */
export class SessionCodes {
  readonly #deps: SessionCodeDeps;

  constructor(deps: SessionCodeDeps) {
    this.#deps = deps;
  }

  /** Whether a sign-in with a password may end there: as at a provider, but never at the own pages of the service. */
  mayEndAt(address: string): boolean {
    const { config, publicUrl } = this.#deps;
    return mayFollowUnasked(address, { listed: config.ssoRedirectUris, publicUrl: publicUrl() });
  }

  /**
   * Hands the session of a sign-in over: its refresh tokens end, and a code for new ones comes with the browser.
   * @returns where the browser goes
   * @throws INVALID_REQUEST for an address that the operator has not listed; AUTHENTICATION_FAILED when the session has
   * ended, was opened long ago, or is already that of a browser or of a front end
   */
  async handOver(caller: Caller, address: string): Promise<string> {
    const { changes, authentication, sessions } = this.#deps;
    if (!this.mayEndAt(address)) throw new ApiError('INVALID_REQUEST', { reason: 'form_fields' });
    const { sessionId } = sessionOf(caller, 'user:update');
    const code = randomToken();
    await changes.run(caller, async (tx) => {
      await sessions.handOver(tx, sessionId, { codeHash: tokenHash(code), seconds: CODE_SECONDS });
      tx.afterCommit(() => authentication.sessionsChanged());
    });
    return withParameter(address, 'code', code);
  }

  /**
   * Gives whoever brings the code the tokens of its session, once.
   * @returns `null` for a code of something else
   * @throws AUTHENTICATION_FAILED when somebody else was faster
   */
  async exchange(caller: AnyCaller, code: string): Promise<SignIn | null> {
    const { sql, changes, authentication, sessions, config } = this.#deps;
    const hash = tokenHash(code);
    const [holder] = await sql.read<{ userId: string; username: string }>(HOLDER, [hash]);
    if (!holder) return null;
    const signedIn: AnyCaller = { ...caller, principal: null, signedInAs: holder };
    const signIn = await changes.run(signedIn, async (tx) => {
      // the hash stays: a session is handed over no second time
      const [session] = await tx.query<SessionFacts>(statement`
        update sessions set expires_at = created_at + make_interval(days => ${config.refreshTokenAbsoluteDays}),
          code_used_at = now()
        where code_hash = ${hash} and code_used_at is null and revoked_at is null and expires_at > now()
        returning id as "sessionId", user_id as "userId", org_id as "orgId"`);
      if (!session) throw unauthenticated();
      const { sessionId, userId, orgId } = session;
      const pair = await sessions.equip(tx, session);
      const metadata = { session_id: sessionId };
      tx.audit({ action: 'refresh', resourceType: 'user', resourceId: userId, orgId, metadata });
      tx.afterCommit(() => authentication.sessionsChanged());
      return { ...pair, userId, orgId };
    });
    caller.signedInAs = holder;
    return signIn;
  }
}
