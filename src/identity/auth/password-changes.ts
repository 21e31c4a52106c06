import type { Tx } from '../../data/tx.ts';
import type { User } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { unauthenticated } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { type RevocationReason, revokeTokens } from '../api-tokens/api-token.revocation.ts';
import { livingTokensOf } from '../api-tokens/living-tokens.ts';
import { revokeGrantsOf } from '../oauth/grant-revocation.ts';
import { livingGrantsOf, NO_GRANTS } from '../oauth/living-grants.ts';
import type { AuthDeps } from './auth.service.ts';
import { findEmailToken, useEmailToken } from './email-tokens.ts';
import { Lockout } from './lockout.ts';
import { demandGoodPassword } from './password-policy.ts';

/** How many API tokens, and how many applications, a notification names: the mail lists more. */
const NAMED = 10;

/** What a new password ends, besides sessions and mailed links. */
interface Ending {
  /** The session to keep. */
  keptSessionId?: string;
  /** Where the change is recorded: the organization that the user works in; `null` if nobody is signed in. */
  orgId: string | null;
  revokesTokens: boolean;
}

/** Sets new passwords: with a mailed link, or with the current password. */
export class PasswordChanges {
  readonly #deps: AuthDeps;
  readonly #lockout: Lockout;

  constructor(deps: AuthDeps) {
    this.#deps = deps;
    this.#lockout = new Lockout(deps.prisma);
  }

  /**
   * Sets a new password, and ends all sessions and what was granted to applications. API tokens stay unless
   * `revokeTokens`. If the address was never verified before, they are always revoked: somebody else may have created
   * them.
   * @returns the user
   * @throws AUTHENTICATION_FAILED for a token that is unknown, used or expired
   */
  async reset(
    caller: AnyCaller,
    {
      token,
      newPassword,
      revokeTokens: isAsked,
    }: { token: string; newPassword: string; revokeTokens?: boolean | null },
  ): Promise<string> {
    const { prisma, sql, changes, passwords, config, factorEnds } = this.#deps;
    const known = await findEmailToken(sql, token, 'reset_password');
    if (!known) throw unauthenticated();
    const owner = await prisma.user.findUniqueOrThrow({ where: { id: known.userId } });
    await demandGoodPassword(newPassword, owner, config.passwordBlocklist, ['input', 'newPassword']);
    const passwordHash = await passwords.hash(newPassword);
    await changes.run(caller, async (tx) => {
      const used = await useEmailToken(tx, token, ['reset_password']);
      if (!used) throw unauthenticated();
      const user = await tx.lock('users', { id: used.userId }, 'no key update', unauthenticated);
      // whoever has the link has the address, so it is verified too
      tx.update('users', { id: user.id }, { passwordHash, isVerified: true });
      // somebody else may have added them, as an address that nobody had proven
      if (!user.isVerified) factorEnds.removeAll(tx, user.id);
      else await factorEnds.endDoubtful(tx, user.id);
      await this.#end(tx, user, 'password_reset', {
        orgId: null,
        revokesTokens: isAsked === true || !user.isVerified,
      });
    });
    await this.#lockout.succeeded(known.userId);
    return known.userId;
  }

  /**
   * Changes the caller's password and ends their other sessions.
   * @throws AUTHENTICATION_FAILED when the current password is wrong
   */
  async change(
    caller: Caller,
    input: { currentPassword: string; newPassword: string; revokeTokens?: boolean | null },
  ): Promise<void> {
    const { prisma, changes, passwords, currentPassword, config } = this.#deps;
    const { userId, sessionId, orgId } = sessionOf(caller, 'user:update');
    const currentHash = await currentPassword.check(userId, input.currentPassword);
    const owner = await prisma.user.findUniqueOrThrow({ where: { id: userId } });
    await demandGoodPassword(input.newPassword, owner, config.passwordBlocklist, ['input', 'newPassword']);
    const passwordHash = await passwords.hash(input.newPassword);
    await changes.run(caller, async (tx) => {
      // somebody else may have changed it meanwhile
      tx.change('users', { id: userId, passwordHash: currentHash }, { passwordHash }, unauthenticated);
      const revokesTokens = input.revokeTokens === true;
      await this.#end(tx, owner, 'password_changed', { keptSessionId: sessionId, orgId, revokesTokens });
    });
  }

  /** Ends all access through the old password, including pending mailed links, and tells the user what stays. */
  async #end(
    tx: Tx,
    user: User,
    reason: RevocationReason & ('password_reset' | 'password_changed'),
    { keptSessionId, orgId, revokesTokens }: Ending,
  ): Promise<void> {
    const { sessions, authentication, mail } = this.#deps;
    sessions.revokeAll(tx, user.id, reason, keptSessionId);
    const revoked = revokesTokens ? await revokeTokens(tx, authentication, { userId: user.id }, reason) : 0;
    for (const purpose of ['reset_password', 'change_email'])
      tx.remove('email_tokens', { userId: user.id, purpose, usedAt: null });
    // whoever takes an account back does not know which programs somebody else has let in
    const endsGrants = reason === 'password_reset';
    if (endsGrants && !revokesTokens) revokeGrantsOf(tx, authentication, { userId: user.id }, reason);
    const living = await livingTokensOf(tx, user.id);
    const grants = endsGrants || revokesTokens ? NO_GRANTS : await livingGrantsOf(tx, user.id);
    tx.audit({
      action: 'update',
      resourceType: 'user',
      resourceId: user.id,
      orgId,
      userId: user.id,
      metadata: {
        password: reason === 'password_reset' ? 'reset' : 'changed',
        ...(revokesTokens ? { tokens_revoked: revoked } : {}),
      },
    });
    mail.passwordChanged(tx, user, { living, grants, revoked });
    const tokens = { names: living.tokens.slice(0, NAMED).map(({ name }) => name), total: living.total };
    const applications = { names: grants.applications.slice(0, NAMED).map(({ name }) => name), total: grants.total };
    tx.announce({
      type: `user.${reason}`,
      orgId: null,
      resourceType: 'user',
      resourceId: user.id,
      facts: { tokens, applications },
    });
    tx.afterCommit(() => authentication.sessionsChanged());
  }
}
