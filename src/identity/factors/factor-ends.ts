import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { UserCredentials } from '../../vault/secrets/user-credentials.ts';

/**
 * Factors of which none is older may be those of somebody else, who has got at the password: their owner takes the
 * account back within this time. Who has an older one has proven it for each factor that was added since.
 */
const NEW_DAYS = 7;

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

  /**
   * Ends the factors of an account that its owner takes back by a reset, if somebody else may have added them: some are
   * doubtful, or all are new.
   */
  async endDoubtful(tx: Tx, userId: string): Promise<void> {
    const [found] = await tx.query<{ ends: boolean | null }>(statement`
      select bool_or(is_doubtful)
        or min(created_at) filter (where counts) > now() - make_interval(days => ${NEW_DAYS}) as ends
      from (select is_doubtful, created_at, true as counts from passkeys where user_id = ${userId}
        union all select is_doubtful, created_at, confirmed_at is not null
          from totp_factors where user_id = ${userId}) factors`);
    if (found?.ends) this.removeAll(tx, userId);
  }
}
