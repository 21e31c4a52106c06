import { brokenUnique } from '../../data/changes.ts';
import type { Tx } from '../../data/tx.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { alreadyExists, unauthenticated } from '../../kernel/errors.ts';
import { revokeTokens } from '../api-tokens/api-token.revocation.ts';
import type { AuthDeps } from './auth.service.ts';
import { type UsedEmailToken, useEmailToken } from './email-tokens.ts';
import { holdAddress } from './held-addresses.ts';
import { demandKeptDomain } from './kept-domains.ts';

/** An address that was proven, and whose it is. */
type VerifiedAddress = Pick<UsedEmailToken, 'userId' | 'email'>;

/**
 * Verifies addresses with mailed links: the address that an account was created with, or the one that it changes to.
 */
export class EmailProofs {
  readonly retention = [`delete from email_tokens where expires_at < now() - interval '1 day'`];
  readonly #deps: Pick<AuthDeps, 'changes' | 'authentication' | 'mail' | 'factorEnds'>;

  constructor(deps: Pick<AuthDeps, 'changes' | 'authentication' | 'mail' | 'factorEnds'>) {
    this.#deps = deps;
  }

  /**
   * Uses up the token of a link. The first proof of an address revokes the API tokens that were created before:
   * perhaps somebody else had registered the address. A caller who is signed in to the account at that moment has both
   * the account and the address, and keeps them. Sessions stay: whoever has the password could sign in again. The way
   * to take an account back is to reset its password. An account that does not hold its address, because only an
   * identity provider says it, gets it from somebody who is signed in; a link alone proves it for that account, and
   * leads nobody else there.
   * @returns the address and its account
   * @throws AUTHENTICATION_FAILED for a token that is unknown, used or expired, RESOURCE_ALREADY_EXISTS when another
   * account has taken the address meanwhile
   */
  async verify(caller: AnyCaller, token: string): Promise<VerifiedAddress> {
    let address = '';
    return this.#deps.changes
      .run(caller, async (tx) => {
        const used = await useEmailToken(tx, token, ['verify_email', 'change_email']);
        if (!used) throw unauthenticated();
        address = used.email;
        await this.#prove(tx, caller, used);
        return used;
      })
      .catch((error: unknown) => {
        throw brokenUnique(error) ? alreadyExists('user', 'email', address) : error;
      });
  }

  async #prove(tx: Tx, caller: AnyCaller, { userId, purpose, email }: UsedEmailToken): Promise<void> {
    const { authentication, mail, factorEnds } = this.#deps;
    const before = await tx.lock('users', { id: userId }, 'no key update', unauthenticated);
    const isChange = purpose === 'change_email';
    // the domain of the address may be demanded since the link was mailed
    if (isChange) await demandKeptDomain(tx, userId, email);
    const isTheirs = caller.principal?.type === 'user' && caller.principal.userId === userId;
    // of an account that does not hold its address, a link alone proves the address, in whatever spelling
    const isOther = email.toLowerCase() !== before.email.toLowerCase();
    const emailKey = isOther ? email.toLowerCase() : undefined;
    tx.update('users', { id: userId }, { ...(isChange ? { email, emailKey } : {}), isVerified: true });
    if (isTheirs && !isOther && before.emailKey === null) await holdAddress(tx, userId, email);
    // nobody has proven this address before
    const endsTokens = (isChange || !before.isVerified) && !isTheirs;
    const revoked = endsTokens ? await revokeTokens(tx, authentication, { userId }, 'address_confirmed') : 0;
    if (endsTokens) factorEnds.doubt(tx, userId);
    tx.audit({
      action: 'update',
      resourceType: 'user',
      resourceId: userId,
      orgId: null,
      userId,
      metadata: {
        verified: true,
        ...(isChange ? { fields: ['email'] } : {}),
        ...(endsTokens ? { tokens_revoked: revoked } : {}),
      },
    });
    if (isChange) {
      mail.emailChanged(tx, before, email);
      tx.announce({
        type: 'user.email_changed',
        orgId: null,
        resourceType: 'user',
        resourceId: userId,
        facts: { after: email },
      });
    }
    tx.afterCommit(() => authentication.sessionsChanged());
  }
}
