import type { AccessTokens } from '../../access/access-tokens.ts';
import type { Authentication } from '../../access/authentication.ts';
import { randomToken, successorOf, tokenHash } from '../../access/random-token.ts';
import type { Config } from '../../config.ts';
import type { Changes } from '../../data/changes.ts';
import type { Tx } from '../../data/tx.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { PrismaClient } from '../../generated/prisma/client.ts';
import { unauthenticated } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { systemCaller } from '../../kernel/system-caller.ts';

/** The result of a sign-in or a refresh. */
export interface TokenPair {
  accessToken: string;
  refreshToken: string;
  tokenType: 'bearer';
  /** Seconds until the access token expires. */
  expiresIn: number;
}

/**
 * How long after its sign-in a session becomes that of a browser or of a front end: a token that was stolen later makes
 * no longer session.
 */
const HANDED_OVER_WITHIN_SECONDS = 600;

/** What holds a session that was handed over: the cookie of a browser, or a code for a front end. */
interface SessionHolder {
  cookieHash?: string;
  codeHash?: string;
  userAgent?: string;
  seconds: number;
}

/** Who opens a session, for which organization and from where. */
export interface NewSession {
  userId: string;
  orgId: string | null;
  /** Of the client, after trusted proxies. */
  address: string;
}

/** The user of a session and the organization that it works in. */
export interface SessionFacts {
  sessionId: string;
  userId: string;
  orgId: string | null;
}

/** How somebody signed in who did so with more than a password. */
export interface SessionOrigin {
  /** `passkey`, `saml` or `oidc`. */
  method: string;
  /** When a second factor was proven. */
  factorAt: Date;
  identityProviderId: string;
  /** What the provider knows the user by. */
  subject: string;
  /** The session at the provider, and the format of the subject at a SAML provider: for a sign-out at either end. */
  sessionIndex: string | null;
  nameIdFormat: string | null;
  /** The ID token of an OpenID provider, sealed. */
  idToken: Uint8Array<ArrayBuffer> | null;
}

/** Whose sessions a provider ends. */
export interface EndedSubject {
  identityProviderId: string;
  /** `null`: whoever has one of the sessions. */
  subject: string | null;
  sessionIndexes: readonly string[];
  /** Sessions of the subject of which the provider had not named its own are ended too. */
  isOfUnnamedToo?: boolean;
}

/** How long a replaced refresh token is still accepted: the response may have been lost, or another tab was faster. */
const GRACE_SECONDS = 60;
/**
 * How long a token that was given out twice may come back late: its other owner asks again when the access token
 * expires.
 */
const OWED_SECONDS = 3_600;
const DAY_MS = 24 * 3600 * 1000;

interface SessionDeps {
  prisma: PrismaClient;
  changes: Changes;
  tokens: AccessTokens;
  authentication: Authentication;
  secret: Buffer;
  config: Pick<Config, 'refreshTokenIdleDays' | 'refreshTokenAbsoluteDays'>;
}

/** Sessions and their refresh tokens (defaults §1). All tokens of a session are one family. */
export class Sessions {
  readonly retention = [
    `delete from sessions where expires_at < now() - interval '1 day' or revoked_at < now() - interval '30 days'`,
    `delete from refresh_tokens where expires_at < now() - interval '1 day'`,
  ];
  readonly #deps: SessionDeps;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
  }

  /** Opens a session in the transaction of the sign-in. */
  async open(tx: Tx, { userId, orgId, address }: NewSession, origin: Partial<SessionOrigin> = {}): Promise<TokenPair> {
    const { config } = this.#deps;
    const id = newId('session');
    const expiresAt = new Date(Date.now() + config.refreshTokenAbsoluteDays * DAY_MS);
    tx.insert('sessions', { id, userId, orgId, address, ...origin, expiresAt });
    return this.equip(tx, { userId, orgId, sessionId: id });
  }

  /**
   * Gives the session of a sign-in to a browser or to a front end: its refresh tokens end, and it lasts so many seconds
   * at most. @throws AUTHENTICATION_FAILED when it has ended, was opened long ago, or was handed over already
   */
  async handOver(tx: Tx, sessionId: string, to: SessionHolder): Promise<void> {
    const { cookieHash = null, codeHash = null, userAgent = null, seconds } = to;
    const handedOver =
      await tx.query(statement`update sessions set cookie_hash = ${cookieHash}, code_hash = ${codeHash},
        user_agent = coalesce(${userAgent}, user_agent),
        expires_at = least(expires_at, now() + make_interval(secs => ${seconds}))
      where id = ${sessionId} and revoked_at is null and cookie_hash is null and code_hash is null
        and created_at > now() - make_interval(secs => ${HANDED_OVER_WITHIN_SECONDS}) returning id`);
    if (handedOver.length === 0) throw unauthenticated();
    tx.write(statement`delete from refresh_tokens where session_id = ${sessionId}`);
  }

  /** Gives a session that has no refresh token its first one. */
  async equip(tx: Tx, session: SessionFacts): Promise<TokenPair> {
    const refreshToken = randomToken();
    const { sessionId } = session;
    tx.insert('refresh_tokens', { hash: tokenHash(refreshToken), sessionId, expiresAt: this.#idleEnd() });
    return this.#pair(session, refreshToken);
  }

  /**
   * Exchanges a refresh token for its successor. Repeating this within a minute returns the very same successor, even
   * if that one was used meanwhile. A token that comes back later ends the whole family, because somebody else has it.
   * Only a successor that was returned by a repetition may be that late, once and within an hour, because it has two
   * owners. They get the newest token of the session, and no further late use is allowed.
   * @param onReuse called with the session that was ended because of reuse
   * @throws AUTHENTICATION_FAILED for any fault of the token
   */
  async refresh(refreshToken: string, onReuse: (session: SessionFacts) => void): Promise<TokenPair & SessionFacts> {
    const successor = successorOf(refreshToken, this.#deps.secret);
    const session = await this.#rotate(tokenHash(refreshToken), tokenHash(successor));
    if (session) return { ...(await this.#pair(session, successor)), ...session };
    const known = await this.#replaced(tokenHash(refreshToken));
    if (!known) throw unauthenticated();
    const again = await this.#repeat(refreshToken, successor, known);
    if (again) return { ...(await this.#pair(known, again)), ...known };
    await this.#endReused(known);
    onReuse(known);
    throw unauthenticated();
  }

  /** Ends a session and tells its user. The service is the actor, because the sender of the token is unknown. */
  async #endReused({ sessionId, userId }: SessionFacts): Promise<void> {
    const { changes, authentication } = this.#deps;
    await changes.run(systemCaller('refresh token reuse'), async (tx) => {
      const { text, values } = revocation('id', sessionId, 'refresh_token_reuse');
      const ended = await tx.query({ text: `${text} returning id`, values });
      // of requests that come together, the first one ends it
      if (ended.length > 0)
        tx.announce({
          type: 'session.refresh_token_reused',
          orgId: null,
          resourceType: 'session',
          resourceId: sessionId,
          facts: { userIds: [userId] },
        });
      tx.afterCommit(() => authentication.sessionChanged(sessionId));
    });
  }

  /** Ends a session. Its access tokens stop working at once on this node, and within a second on others. */
  revoke(tx: Tx, sessionId: string, reason: string): void {
    tx.write(revocation('id', sessionId, reason));
  }

  /** Ends all sessions of a user, except the given one. */
  revokeAll(tx: Tx, userId: string, reason: string, exceptSessionId = ''): void {
    tx.write(revocation('user_id', userId, reason, exceptSessionId));
  }

  /**
   * Ends all that an identity provider has let in, or one user of it: sessions, the codes for new ones, and what was
   * granted to applications in its sessions.
   */
  revokeOfProvider(tx: Tx, providerId: string, reason: string, userId: string | null = null): void {
    tx.write(statement`update sessions set revoked_at = now(), revoked_reason = ${reason}
      where identity_provider_id = ${providerId} and revoked_at is null
        and user_id = coalesce(${userId}, user_id)`);
    tx.write(statement`update sso_codes set used_at = now()
      where identity_provider_id = ${providerId} and used_at is null and user_id = coalesce(${userId}, user_id)`);
    tx.write(statement`update oauth_grants set revoked_at = now(), revoked_reason = ${reason}
      where identity_provider_id = ${providerId} and revoked_at is null and user_id = coalesce(${userId}, user_id)`);
  }

  /**
   * Ends the sessions that an identity provider made for what it knows somebody by, and the codes for new ones.
   * @param ended `sessionIndexes` are those of the provider; none: all of the subject. Without a subject they alone
   * decide
   * @returns whose they were, each user once
   */
  async endOfSubject(tx: Tx, ended: EndedSubject): Promise<{ userId: string; orgId: string | null }[]> {
    const { identityProviderId: id, subject, sessionIndexes, isOfUnnamedToo = false } = ended;
    const isAll = sessionIndexes.length === 0;
    if (isAll && subject === null) throw new Error('a sign-out names neither a user nor a session');
    tx.write(statement`update sso_codes set used_at = now()
      where identity_provider_id = ${id} and subject = coalesce(${subject}, subject) and used_at is null
        and (${isAll}::boolean or session_index = any(${sessionIndexes}::text[])
          or ${isOfUnnamedToo}::boolean and session_index is null)`);
    return tx.query<{ userId: string; orgId: string | null }>(statement`
      with ended as (
        update sessions set revoked_at = now(), revoked_reason = 'single_logout'
        where identity_provider_id = ${id} and subject = coalesce(${subject}, subject) and revoked_at is null
          and (${isAll}::boolean or session_index = any(${sessionIndexes}::text[])
            or ${isOfUnnamedToo}::boolean and session_index is null)
        returning user_id, org_id
      )
      select distinct on (user_id) user_id as "userId", org_id as "orgId" from ended order by user_id`);
  }

  /** One statement decides which of many equal refreshes rotates. The token and its successor change together. */
  async #rotate(hash: string, successorHash: string): Promise<SessionFacts | null> {
    const [session] = await this.#deps.prisma.$queryRaw<SessionFacts[]>`
      with rotated as (
        update refresh_tokens r set replaced_at = now() from sessions s join users u on u.id = s.user_id
        where r.hash = ${hash} and r.replaced_at is null and r.expires_at > now()
          and s.id = r.session_id and s.revoked_at is null and s.expires_at > now() and u.is_active
        returning s.id, s.user_id, s.org_id
      ), successor as (
        insert into refresh_tokens (hash, session_id, expires_at)
        select ${successorHash}, id, ${this.#idleEnd()}::timestamptz from rotated
      )
      select id as "sessionId", user_id as "userId", org_id as "orgId" from rotated`;
    return session ?? null;
  }

  /** The live session of a token that was already rotated. */
  async #replaced(hash: string): Promise<SessionFacts | null> {
    const [session] = await this.#deps.prisma.$queryRaw<SessionFacts[]>`
      select s.id as "sessionId", s.user_id as "userId", s.org_id as "orgId" from refresh_tokens r
      join sessions s on s.id = r.session_id and s.revoked_at is null and s.expires_at > now()
      join users u on u.id = s.user_id and u.is_active
      where r.hash = ${hash} and r.replaced_at is not null`;
    return session ?? null;
  }

  /** The token that an already rotated token is exchanged for; `null` when it comes too late. */
  async #repeat(refreshToken: string, successor: string, { sessionId }: SessionFacts): Promise<string | null> {
    const { prisma } = this.#deps;
    const hash = tokenHash(refreshToken);
    const isInGrace = await prisma.$executeRaw`
      update refresh_tokens s set reissued_at = now() from refresh_tokens r
      where s.hash = ${tokenHash(successor)} and r.hash = ${hash}
        and r.replaced_at >= now() - make_interval(secs => ${GRACE_SECONDS})`;
    if (isInGrace > 0) return successor;
    // the late use ends with the grace time of this response, which may be lost too; the token in the response allows
    // no late use
    const isOwed = await prisma.$executeRaw`
      update refresh_tokens
      set reissued_at = least(reissued_at, now() - make_interval(secs => ${OWED_SECONDS - GRACE_SECONDS}))
      where hash = ${hash} and expires_at > now() and reissued_at > now() - make_interval(secs => ${OWED_SECONDS})`;
    return isOwed > 0 ? this.#newest(successor, sessionId) : null;
  }

  /**
   * The only token of the session that was not rotated. It is found by deriving successors step by step. `null` when it
   * has expired.
   */
  async #newest(successor: string, sessionId: string): Promise<string | null> {
    const tokens = await this.#deps.prisma.refreshToken.findMany({ where: { sessionId } });
    const newest = tokens.find(({ replacedAt, expiresAt }) => !replacedAt && expiresAt > new Date())?.hash;
    let token = successor;
    for (let steps = 0; newest && steps < tokens.length; steps++) {
      if (tokenHash(token) === newest) return token;
      token = successorOf(token, this.#deps.secret);
    }
    return null;
  }

  async #pair(
    session: { userId: string; orgId: string | null; sessionId: string },
    refreshToken: string,
  ): Promise<TokenPair> {
    const { tokens } = this.#deps;
    return {
      accessToken: await tokens.issue(session),
      refreshToken,
      tokenType: 'bearer',
      expiresIn: tokens.ttlSeconds,
    };
  }

  #idleEnd(): Date {
    return new Date(Date.now() + this.#deps.config.refreshTokenIdleDays * DAY_MS);
  }
}

const revocation = (column: 'id' | 'user_id', value: string, reason: string, except = ''): Statement => ({
  text: `update sessions set revoked_at = $3, revoked_reason = $2
    where ${column} = $1 and revoked_at is null and id <> $4`,
  values: [value, reason, new Date(), except],
});
