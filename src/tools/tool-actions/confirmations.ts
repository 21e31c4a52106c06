import { isSameSecret, randomToken, tokenHash } from '../../access/random-token.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { canonicalJson } from '../../kernel/json-object.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Seal } from '../../platform/keys/seal.ts';

/** How long somebody may think about it. */
const CONFIRM_SECONDS = 300;

/** Who confirms, and for which instance. */
export interface ConfirmationOf {
  orgId: string;
  toolInstanceId: string;
  userId: string;
  /** The token that the caller signed in with, if any. */
  tokenId: string | null;
}

/** A new confirmation. */
export interface IssuedConfirmation {
  token: string;
  expiresAt: Date;
}

/**
 * Confirmations of calls. Each is good once, for five minutes, for the caller who got it and for exactly the call that
 * was shown: the database has only a hash of the token, and a fingerprint of the call.
 */
export class Confirmations implements Owner {
  readonly retention = [`delete from tool_confirmations where expires_at < now() - interval '1 day'`];
  readonly #seal: Seal;

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  /** Stores what a new confirmation is for. @param call all that decides what is sent, without credentials */
  issue(tx: Tx, { orgId, toolInstanceId, userId, tokenId }: ConfirmationOf, call: unknown): IssuedConfirmation {
    const token = randomToken();
    const expiresAt = new Date(Date.now() + CONFIRM_SECONDS * 1_000);
    const digest = this.#digest(call);
    tx.insert('tool_confirmations', {
      hash: tokenHash(token),
      orgId,
      toolInstanceId,
      userId,
      tokenId,
      digest,
      expiresAt,
    });
    return { token, expiresAt };
  }

  /**
   * Uses up a confirmation. The first try of its caller ends it, whether or not the call is the same: commit it.
   * @returns whether it is for this call. It is not if it is unknown, used, expired, or somebody else's
   */
  async consume(
    tx: Tx,
    token: string,
    { orgId, toolInstanceId, userId, tokenId }: ConfirmationOf,
    call: unknown,
  ): Promise<boolean> {
    const [found] = await tx.query<{ digest: string; isOpen: boolean }>(statement`
      delete from tool_confirmations where hash = ${tokenHash(token)} and org_id = ${orgId}
        and tool_instance_id = ${toolInstanceId} and user_id = ${userId} and token_id is not distinct from ${tokenId}
      returning digest, expires_at > now() as "isOpen"`);
    return found?.isOpen === true && isSameSecret(found.digest, this.#digest(call));
  }

  /** Arguments may be secret, so a plain hash of them could be guessed. */
  #digest(call: unknown): string {
    return this.#seal.fingerprint(canonicalJson(call));
  }
}

/** The same for whatever is wrong with a confirmation. */
export const unconfirmed = () =>
  invalidInput(
    ['input', 'confirmation'],
    'the confirmation is unknown, was used, has expired or is for another call: ask for a new one',
  );
