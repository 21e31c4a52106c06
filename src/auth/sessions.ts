import type { AccessTokens } from '../access/access-tokens.ts';
import type { Authentication } from '../access/authentication.ts';
import { randomToken, successorOf, tokenHash } from '../access/tokens.ts';
import type { Config } from '../config.ts';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
import { unauthenticated } from '../graphql/errors.ts';
import { newId } from '../infra/ids.ts';

/** What a sign-in or a refresh hands out. */
export interface TokenPair {
  accessToken: string;
  refreshToken: string;
  tokenType: 'bearer';
  /** Seconds until the access token expires. */
  expiresIn: number;
}

/** Whose session it is, and the organization that it works in. */
export interface SessionFacts {
  sessionId: string;
  userId: string;
  orgId: string | null;
}

type Db = Prisma.TransactionClient;

/** For so long the parent of the newest refresh token is still honoured: the answer to it may have been lost on its way. */
const GRACE_MS = 60_000;
const DAY_MS = 24 * 3600 * 1000;

interface Deps {
  prisma: PrismaClient;
  tokens: AccessTokens;
  authentication: Authentication;
  secret: Buffer;
  config: Pick<Config, 'refreshTokenIdleDays' | 'refreshTokenAbsoluteDays'>;
}

/** Sessions and their refresh tokens (defaults §1). All tokens of a session are one family. */
export class Sessions {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Opens a session within the transaction of the sign-in. */
  async open(db: Db, user: { userId: string; orgId: string | null }): Promise<TokenPair> {
    const { config } = this.#deps;
    const id = newId('session');
    const refreshToken = randomToken();
    await db.session.create({
      data: {
        id,
        ...user,
        expiresAt: new Date(Date.now() + config.refreshTokenAbsoluteDays * DAY_MS),
        refreshTokens: { create: { hash: tokenHash(refreshToken), expiresAt: this.#idleEnd() } },
      },
    });
    return this.#pair({ ...user, sessionId: id }, refreshToken);
  }

  /**
   * Exchanges a refresh token for its successor. Repeating it within a minute gives the very same successor; a token that was
   * used before that ends the whole family, because somebody else has it.
   * @param onReuse told of the session that was ended for that
   * @throws AUTHENTICATION_FAILED for whatever is wrong with the token
   */
  async refresh(refreshToken: string, onReuse: (session: SessionFacts) => void): Promise<TokenPair & SessionFacts> {
    const hash = tokenHash(refreshToken);
    const successor = successorOf(refreshToken, this.#deps.secret);
    const session =
      (await this.#rotate(hash, tokenHash(successor))) ?? (await this.#repeat(hash, tokenHash(successor), onReuse));
    if (!session) throw unauthenticated();
    return { ...(await this.#pair(session, successor)), ...session };
  }

  /** Ends a session: its access tokens die at once, here, and within a second elsewhere. */
  async revoke(db: Db, sessionId: string, reason: string): Promise<void> {
    await db.session.updateMany({
      where: { id: sessionId, revokedAt: null },
      data: { revokedAt: new Date(), revokedReason: reason },
    });
  }

  /** Ends all sessions of a user, but perhaps the one that asks for it. */
  async revokeAll(db: Db, userId: string, reason: string, exceptSessionId?: string): Promise<void> {
    await db.session.updateMany({
      where: { userId, revokedAt: null, ...(exceptSessionId ? { id: { not: exceptSessionId } } : {}) },
      data: { revokedAt: new Date(), revokedReason: reason },
    });
  }

  /** One statement decides which of many equal refreshes rotates; the token and its successor change together. */
  async #rotate(hash: string, successorHash: string): Promise<SessionFacts | null> {
    const [session] = await this.#deps.prisma.$queryRaw<SessionFacts[]>`
      with rotated as (
        update refresh_tokens r set replaced_at = now() from sessions s join users u on u.id = s.user_id
        where r.hash = ${hash} and r.replaced_at is null and r.expires_at > now()
          and s.id = r.session_id and s.revoked_at is null and s.expires_at > now() and u.is_active
        returning s.id, s.user_id, s.org_id
      ), successor as (
        insert into refresh_tokens (hash, session_id, expires_at) select ${successorHash}, id, ${this.#idleEnd()}::timestamptz from rotated
      )
      select id as "sessionId", user_id as "userId", org_id as "orgId" from rotated`;
    return session ?? null;
  }

  /** A token that was rotated already: a repetition, or theft. */
  async #repeat(
    hash: string,
    successorHash: string,
    onReuse: (session: SessionFacts) => void,
  ): Promise<SessionFacts | null> {
    const { prisma } = this.#deps;
    const used = await prisma.refreshToken.findUnique({
      where: { hash },
      include: { session: { include: { user: true } } },
    });
    if (
      !used?.replacedAt ||
      used.session.revokedAt ||
      used.session.expiresAt < new Date() ||
      !used.session.user.isActive
    )
      return null;
    const session = { sessionId: used.sessionId, userId: used.session.userId, orgId: used.session.orgId };
    const child = await prisma.refreshToken.findUnique({ where: { hash: successorHash } });
    if (child && !child.replacedAt && Date.now() - used.replacedAt.getTime() <= GRACE_MS) return session;
    await this.revoke(prisma, used.sessionId, 'refresh_token_reuse');
    this.#deps.authentication.sessionChanged(used.sessionId);
    onReuse(session);
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
