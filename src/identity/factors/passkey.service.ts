import { brokenUnique } from '../../data/changes.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { CHALLENGE_SECONDS } from './challenges.ts';
import { addFactor, demandMayAdd, type FactorDeps, factorRemoved, lockUser } from './factor.service.ts';
import type { PasskeyBeginning } from './factor-sign-in.ts';
import { demandFreshFactor } from './fresh-factor.ts';
import type { CredentialJson } from './passkey-ceremonies.ts';

/** A passkey as its user sees it. */
export interface PasskeyView {
  id: string;
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
  isSynced: boolean;
}

const MOST_PASSKEYS = 20;
const COLUMNS = 'id, name, created_at as "createdAt", last_used_at as "lastUsedAt", is_synced as "isSynced"';

const wrongCredential = () =>
  invalidInput(['input', 'credential'], 'it is no new passkey that was made here for this challenge');

/** The passkeys of the caller (docs/decisions/0065). */
export class PasskeyService {
  readonly #deps: FactorDeps;

  constructor(deps: FactorDeps) {
    this.#deps = deps;
  }

  /** The passkeys of the caller, oldest first. */
  async list(caller: Caller): Promise<PasskeyView[]> {
    const { userId } = sessionOf(caller, 'user:read');
    return this.#deps.sql.read<PasskeyView>(`select ${COLUMNS} from passkeys where user_id = $1 order by id`, [userId]);
  }

  /** Begins to add a passkey. @throws as `demandMayAdd` */
  async begin(caller: Caller, currentPassword: string | null | undefined): Promise<PasskeyBeginning> {
    const { sql, proofs, challenges, ceremonies } = this.#deps;
    const { userId, username, sessionId } = await demandMayAdd(this.#deps, caller, currentPassword);
    const { token, nonce } = challenges.issue('new passkey', { userId, bond: sessionId });
    const user = { id: userId, name: username, displayName: username };
    const options = await ceremonies.creation(nonce, user, await proofs.passkeysOf(sql, userId));
    return { challenge: token, options, expiresIn: CHALLENGE_SECONDS };
  }

  /**
   * Adds a passkey that a browser has made for a challenge.
   * @returns it, and recovery codes, if they are the first ones
   * @throws InputError, RESOURCE_CONFLICT `limit_reached`, FORBIDDEN `fresh_factor`
   */
  async add(
    caller: Caller,
    input: { challenge: string; credential: CredentialJson; name: string },
  ): Promise<{ passkey: PasskeyView; recoveryCodes: string[] }> {
    const { sql, changes, challenges, ceremonies } = this.#deps;
    const principal = sessionOf(caller, 'user:update');
    // there may be a factor since it was begun
    await demandFreshFactor(sql, caller);
    const { userId, sessionId } = principal;
    const challenge = challenges.read('new passkey', input.challenge);
    if (challenge?.userId !== userId || challenge.bond !== sessionId)
      throw invalidInput(['input', 'challenge'], 'it is over, or of another session');
    const shown = await ceremonies.created(input.credential, challenge.nonce);
    if (!shown) throw wrongCredential();
    const id = newId('passkey');
    const { credentialId, publicKey, signCount, transports, isSynced } = shown;
    const row = {
      id,
      userId,
      name: input.name,
      credentialId,
      publicKey: new Uint8Array(publicKey),
      transports,
      isSynced,
    };
    return changes
      .run(caller, async (tx) => {
        await lockUser(tx, this.#deps, caller, principal);
        if (!(await challenges.use(tx, challenge))) throw invalidInput(['input', 'challenge'], 'it was used before');
        const own = await tx.query(statement`select from passkeys where user_id = ${userId}`);
        if (own.length >= MOST_PASSKEYS)
          throw conflict('user', userId, 'limit_reached', `An account has at most ${MOST_PASSKEYS} passkeys.`);
        const made = await tx.written(tx.create('passkeys', { ...row, signCount: BigInt(signCount) }));
        return { passkey: made, recoveryCodes: await addFactor(tx, principal, 'passkey_added') };
      })
      .catch((error: unknown) => {
        // one that another account has, too
        throw brokenUnique(error) ? wrongCredential() : error;
      });
  }

  /** @throws RESOURCE_NOT_FOUND */
  async rename(caller: Caller, id: string, name: string): Promise<PasskeyView> {
    const { userId, orgId } = sessionOf(caller, 'user:update');
    return this.#deps.changes.run(caller, async (tx) => {
      const renamed = tx.change('passkeys', { id, userId }, { name }, () => notFound('passkey', id));
      tx.audit({
        action: 'update',
        resourceType: 'passkey',
        resourceId: id,
        orgId,
        metadata: { factor: 'passkey_renamed' },
      });
      return tx.written(renamed);
    });
  }

  /** @throws FORBIDDEN `fresh_factor`, RESOURCE_NOT_FOUND */
  async remove(caller: Caller, id: string): Promise<{ id: string }> {
    const { sql, changes } = this.#deps;
    const principal = sessionOf(caller, 'user:update');
    await demandFreshFactor(sql, caller);
    await changes.run(caller, async (tx) => {
      await lockUser(tx, this.#deps, caller, principal);
      tx.remove('passkeys', { id, userId: principal.userId }, () => notFound('passkey', id));
      factorRemoved(tx, principal, 'passkey_removed', id);
    });
    return { id };
  }
}
