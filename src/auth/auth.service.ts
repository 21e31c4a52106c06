import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { AccessTokens } from '../access/access-tokens.ts';
import type { Actor, Caller } from '../access/caller.ts';
import type { Passwords } from '../access/passwords.ts';
import { tokenHash } from '../access/tokens.ts';
import type { Config } from '../config.ts';
import type { PrismaClient, User } from '../generated/prisma/client.ts';
import { forbidden, unauthenticated } from '../graphql/errors.ts';
import type { ActivityRecorder } from '../infra/activity.ts';
import type { Background } from '../infra/background.ts';
import type { Changes } from '../infra/change.ts';
import { Budget } from '../infra/throttle.ts';
import type { AccountMail } from './account-mail.ts';
import { issueEmailToken, useEmailToken } from './email-tokens.ts';
import { Lockout } from './lockout.ts';
import { ensureGoodPassword } from './password-policy.ts';
import type { Sessions, TokenPair } from './sessions.ts';

export interface AuthDeps {
  config: Config;
  prisma: PrismaClient;
  changes: Changes;
  access: Access;
  authentication: Authentication;
  tokens: AccessTokens;
  passwords: Passwords;
  sessions: Sessions;
  mail: AccountMail;
  background: Background;
  activity: ActivityRecorder;
}

/** A token pair and whose it is. */
export interface SignIn extends TokenPair {
  userId: string;
  orgId: string | null;
}

/** Sign-in and what stands around it (spec, Auth). */
export class AuthService {
  readonly #deps: AuthDeps;
  readonly #lockout: Lockout;
  readonly #failuresByAddress: Budget;
  // asking for mails: per mail address silently, per client address with 429
  readonly #mailsByAddress = new Budget(3, 3600);
  readonly #mailsByClient = new Budget(10, 3600);

  constructor(deps: AuthDeps) {
    this.#deps = deps;
    this.#lockout = new Lockout(deps.prisma);
    this.#failuresByAddress = new Budget(deps.config.loginFailuresPerMinute || Number.MAX_SAFE_INTEGER, 60);
  }

  /**
   * Signs in with a user name or e-mail address. Unknown names, wrong passwords and dead accounts get the same answer after the
   * same work.
   */
  async login(caller: Caller, { username, password }: { username: string; password: string }): Promise<SignIn> {
    const { prisma, passwords, config } = this.#deps;
    await this.#failuresByAddress.check(caller.request.ip);
    const name = username.toLowerCase();
    const user = await prisma.user.findFirst({ where: { OR: [{ usernameKey: name }, { emailKey: name }] } });
    const lockKey = user?.id ?? `name:${tokenHash(name)}`;
    await this.#lockout.check(lockKey);
    const isRight = await passwords.verify(user?.isActive ? user.passwordHash : null, password);
    if (!user || !isRight) {
      await this.#lockout.failed(lockKey);
      await this.#failuresByAddress.take(caller.request.ip);
      this.#deps.activity.record(
        caller,
        { action: 'login', resourceType: 'user', resourceId: null, orgId: null, userId: user?.id ?? null },
        { statusCode: 401, errorCode: 'AUTHENTICATION_FAILED' },
      );
      throw unauthenticated();
    }
    if (config.requireVerifiedEmail && !user.isVerified) {
      throw forbidden('account:verified', 'Confirm your e-mail address before you sign in.');
    }
    await this.#lockout.succeeded(lockKey);
    if (passwords.isOutdated(user.passwordHash!)) {
      await prisma.user.update({ where: { id: user.id }, data: { passwordHash: await passwords.hash(password) } });
    }
    return this.#signIn(caller, user);
  }

  /** Ends the caller's session: the access token dies at once. */
  async logout(actor: Actor): Promise<void> {
    const { sessionId, userId, orgId } = actor.principal;
    await this.#deps.changes.run(actor, async (tx) => {
      await this.#deps.sessions.revoke(tx.db, sessionId, 'logout');
      tx.audit({ action: 'logout', resourceType: 'user', resourceId: userId, orgId });
      tx.afterCommit(() => this.#deps.authentication.sessionChanged(sessionId));
    });
  }

  /** @throws AUTHENTICATION_FAILED for whatever is wrong with the token */
  async refresh(caller: Caller, refreshToken: string): Promise<TokenPair> {
    const { userId, orgId, sessionId: _session, ...pair } = await this.#deps.sessions.refresh(refreshToken);
    this.#deps.activity.record(caller, { action: 'refresh', resourceType: 'user', resourceId: userId, orgId, userId }, { statusCode: 200 });
    return pair;
  }

  /** Binds the session to another organization of the caller's. @throws FORBIDDEN `organization:access` */
  async switchOrganization(actor: Actor, orgId: string): Promise<{ accessToken: string; tokenType: 'bearer'; expiresIn: number; orgId: string }> {
    const { access, changes, tokens } = this.#deps;
    await access.requireOrganization(actor, orgId, 'organization:access');
    const { sessionId, userId } = actor.principal;
    await changes.run(actor, async (tx) => {
      await tx.db.session.update({ where: { id: sessionId }, data: { orgId } });
      tx.audit({ action: 'update', resourceType: 'organization', resourceId: orgId, orgId, metadata: { switched: true } });
    });
    return { accessToken: await tokens.issue({ userId, orgId, sessionId }), tokenType: 'bearer', expiresIn: tokens.ttlSeconds, orgId };
  }

  /** @throws AUTHENTICATION_FAILED for a token that is unknown, used or expired */
  async verifyEmail(caller: Caller, token: string): Promise<void> {
    await this.#deps.changes.run(caller, async (tx) => {
      const used = await useEmailToken(tx.db, token, 'verify_email');
      if (!used) throw unauthenticated();
      await tx.db.user.update({ where: { id: used.userId }, data: { isVerified: true } });
      tx.audit({ action: 'update', resourceType: 'user', resourceId: used.userId, orgId: null, userId: used.userId, metadata: { verified: true } });
      tx.afterCommit(() => this.#deps.authentication.sessionsChanged());
    });
  }

  /** Mails a new verification link, if there is such an account and it needs one; the answer and its time never tell. */
  async resendVerification(caller: Caller, email: string): Promise<void> {
    await this.#requestMail(caller, email, async (user) => {
      if (user.isVerified) return;
      this.#deps.mail.verification(user, await issueEmailToken(this.#deps.prisma, user, 'verify_email'));
    });
  }

  /** Mails a reset link, if there is such an account; the answer and its time never tell. */
  async forgotPassword(caller: Caller, email: string): Promise<void> {
    await this.#requestMail(caller, email, async (user) => {
      this.#deps.mail.passwordReset(user, await issueEmailToken(this.#deps.prisma, user, 'reset_password'));
    });
  }

  /** Sets a new password and ends all sessions. @throws AUTHENTICATION_FAILED for a token that is unknown, used or expired */
  async resetPassword(caller: Caller, { token, newPassword }: { token: string; newPassword: string }): Promise<void> {
    const { prisma, changes, passwords, sessions, authentication, config, mail } = this.#deps;
    const known = await prisma.emailToken.findUnique({ where: { hash: tokenHash(token) }, include: { user: true } });
    if (!known) throw unauthenticated();
    ensureGoodPassword(newPassword, known.user, config.passwordBlocklist, ['input', 'newPassword']);
    const passwordHash = await passwords.hash(newPassword);
    await changes.run(caller, async (tx) => {
      const used = await useEmailToken(tx.db, token, 'reset_password');
      if (!used) throw unauthenticated();
      // the link came to the address, so the address is proven too
      const user = await tx.db.user.update({ where: { id: used.userId }, data: { passwordHash, isVerified: true } });
      await sessions.revokeAll(tx.db, user.id, 'password_reset');
      await tx.db.emailToken.deleteMany({ where: { userId: user.id, purpose: 'reset_password', usedAt: null } });
      tx.audit({ action: 'update', resourceType: 'user', resourceId: user.id, orgId: null, userId: user.id, metadata: { password: 'reset' } });
      tx.afterCommit(() => {
        authentication.sessionsChanged();
        mail.passwordChanged(user);
      });
    });
    await this.#lockout.succeeded(known.userId);
  }

  /** Changes the own password and ends the other sessions. @throws AUTHENTICATION_FAILED when the current one is wrong */
  async changePassword(actor: Actor, { currentPassword, newPassword }: { currentPassword: string; newPassword: string }): Promise<void> {
    const { prisma, changes, passwords, sessions, authentication, config, mail } = this.#deps;
    const { userId, sessionId } = actor.principal;
    const user = await prisma.user.findUniqueOrThrow({ where: { id: userId } });
    await this.#lockout.check(userId);
    if (!(await passwords.verify(user.passwordHash, currentPassword))) {
      await this.#lockout.failed(userId);
      throw unauthenticated();
    }
    ensureGoodPassword(newPassword, user, config.passwordBlocklist, ['input', 'newPassword']);
    const passwordHash = await passwords.hash(newPassword);
    await changes.run(actor, async (tx) => {
      await tx.db.user.update({ where: { id: userId }, data: { passwordHash } });
      await sessions.revokeAll(tx.db, userId, 'password_changed', sessionId);
      await tx.db.emailToken.deleteMany({ where: { userId, purpose: 'reset_password', usedAt: null } });
      tx.audit({ action: 'update', resourceType: 'user', resourceId: userId, orgId: null, metadata: { password: 'changed' } });
      tx.afterCommit(() => {
        authentication.sessionsChanged();
        mail.passwordChanged(user);
      });
    });
  }

  async #signIn(caller: Caller, user: User): Promise<SignIn> {
    const { changes, prisma, sessions } = this.#deps;
    const orgId = await homeOf(prisma, user);
    caller.signedInAs = { userId: user.id, username: user.username };
    return changes.run(caller, async (tx) => {
      const pair = await sessions.open(tx.db, { userId: user.id, orgId });
      await tx.db.user.update({ where: { id: user.id }, data: { lastLogin: new Date() } });
      tx.audit({ action: 'login', resourceType: 'user', resourceId: user.id, orgId });
      return { ...pair, userId: user.id, orgId };
    });
  }

  async #requestMail(caller: Caller, email: string, send: (user: User) => Promise<void>): Promise<void> {
    await this.#mailsByClient.demand(caller.request.ip);
    const key = email.toLowerCase();
    this.#deps.background.run('account mail', async () => {
      if ((await this.#mailsByAddress.take(key)) > 0) return;
      const user = await this.#deps.prisma.user.findUnique({ where: { emailKey: key } });
      if (user?.isActive) await send(user);
    });
  }
}

/** The organization that a new session works in: that of the default workspace, else the oldest membership. */
async function homeOf(prisma: PrismaClient, user: Pick<User, 'id' | 'defaultWorkspaceId'>): Promise<string | null> {
  const [row] = await prisma.$queryRaw<{ orgId: string }[]>`
    select m.org_id as "orgId" from organization_members m join organizations o on o.id = m.org_id
    where m.user_id = ${user.id} and o.deleted_at is null
    order by (m.org_id = (select w.org_id from workspaces w where w.id = ${user.defaultWorkspaceId} and w.deleted_at is null)) desc nulls last, m.id
    limit 1`;
  return row?.orgId ?? null;
}
