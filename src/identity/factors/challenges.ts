import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Seal } from '../../platform/keys/seal.ts';

/** What a challenge is for. One for something else is none. */
export type ChallengePurpose = 'sign in' | 'passkey sign in' | 'new passkey' | 'proof';

/** Whom a challenge was given to, and what binds it to its moment. */
export interface ChallengeHolder {
  /** The user; `null` before anybody is known. */
  userId: string | null;
  /** The session, or what stands for the password that was right: neither ends unnoticed. */
  bond: string | null;
}

export interface Challenge extends ChallengeHolder {
  hash: string;
  /** What an authenticator signs. */
  nonce: string;
  expiresAt: Date;
}

/** Long enough to find one's phone, or to write ten codes down. */
export const CHALLENGE_SECONDS = 300;

/**
 * Challenges of sign-ins and of passkeys: sealed, good for five minutes and once. They are stored only when they are
 * used, so that strangers who ask for many of them write nothing.
 */
export class Challenges {
  readonly retention = [`delete from used_challenges where expires_at < now() - interval '1 day'`];
  readonly #seal: Seal;

  constructor({ seal }: { seal: Seal }) {
    this.#seal = seal;
  }

  /** @returns the challenge as its holder sends it back, and what an authenticator is to sign */
  issue(purpose: ChallengePurpose, { userId, bond }: ChallengeHolder): { token: string; nonce: string } {
    const nonce = randomToken();
    const facts = JSON.stringify([nonce, userId, bond, Date.now() + CHALLENGE_SECONDS * 1_000]);
    return { token: this.#seal.seal(facts, purpose).toString('base64url'), nonce };
  }

  /** What a challenge says; `null` for one that was altered, has expired or is for something else. */
  read(purpose: ChallengePurpose, token: string): Challenge | null {
    const sealed = Buffer.from(token, 'base64url');
    // one spelling: it is used up by its text
    if (sealed.toString('base64url') !== token) return null;
    let text: string;
    try {
      text = this.#seal.open(sealed, purpose);
    } catch {
      // whatever is wrong with it has one answer
      return null;
    }
    const [nonce, userId, bond, until] = JSON.parse(text) as [string, string | null, string | null, number];
    if (until <= Date.now()) return null;
    return { hash: tokenHash(token), nonce, userId, bond, expiresAt: new Date(until) };
  }

  /** Uses a challenge up, for all nodes. @returns whether it was the first time */
  async use(tx: Tx, { hash, expiresAt }: Challenge): Promise<boolean> {
    const used = await tx.query(statement`
      insert into used_challenges (hash, expires_at) values (${hash}, ${expiresAt})
      on conflict do nothing returning hash`);
    return used.length > 0;
  }
}
