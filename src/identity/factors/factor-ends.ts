import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { UserCredentials } from '../../vault/secrets/user-credentials.ts';

/** What ends the factors of an account, besides its user. */
export class FactorEnds {
  readonly #credentials: UserCredentials;

  constructor(deps: { credentials: UserCredentials }) {
    this.#credentials = deps.credentials;
  }

  /** Removes all factors of a user: passkeys would be a way in, and the others would keep its owner out. */
  removeAll(tx: Tx, userId: string): void {
    tx.write(statement`delete from passkeys where user_id = ${userId}`);
    this.removeTotp(tx, userId);
    tx.write(statement`delete from recovery_codes where user_id = ${userId}`);
  }

  removeTotp(tx: Tx, userId: string): void {
    tx.write(statement`delete from totp_factors where user_id = ${userId}`);
    this.#credentials.remove(tx, userId);
  }

  /**
   * The address of an account was proven by a link alone: whoever made its factors before may be somebody else. They
   * stay, as its password does, and end with it: when its owner takes the account back by a reset.
   */
  doubt(tx: Tx, userId: string): void {
    tx.write(statement`update passkeys set is_doubtful = true where user_id = ${userId}`);
    tx.write(statement`update totp_factors set is_doubtful = true where user_id = ${userId}`);
  }

  /** @returns whether some of the factors were doubtful: then all of them are gone */
  async endDoubtful(tx: Tx, userId: string): Promise<boolean> {
    const doubtful = await tx.query(statement`
      select from passkeys where user_id = ${userId} and is_doubtful
      union all select from totp_factors where user_id = ${userId} and is_doubtful`);
    if (doubtful.length > 0) this.removeAll(tx, userId);
    return doubtful.length > 0;
  }
}
