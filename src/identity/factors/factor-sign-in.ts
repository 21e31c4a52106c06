import { tokenHash } from '../../access/random-token.ts';
import type { Budget } from '../../access/throttle.ts';
import { findRow } from '../../data/find-row.ts';
import type { User } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import type { AuthDeps, AuthService, SignIn, SignInCheck } from '../auth/auth.service.ts';
import { CHALLENGE_SECONDS, type Challenge, type Challenges } from './challenges.ts';
import type { FactorProofs, GivenProof } from './factor-proofs.ts';
import { deadChallenge, FactorRequired, wrongFactor } from './factor-refusals.ts';
import type { CredentialJson, PasskeyCeremonies } from './passkey-ceremonies.ts';

interface SecondFactorDeps {
  challenges: Challenges;
  proofs: FactorProofs;
  ceremonies: PasskeyCeremonies;
}

interface FactorSignInDeps extends SecondFactorDeps, Pick<AuthDeps, 'sql' | 'budgets' | 'config'> {
  auth: AuthService;
}

/** What begins something with a passkey. */
export interface PasskeyBeginning {
  /** Sent back with the answer of the authenticator. */
  challenge: string;
  /** What the browser is called with. */
  options: object;
  /** Seconds until it is over. */
  expiresIn: number;
}

/** Stands for a password in a challenge: it ends with the password. */
const bondOf = ({ passwordHash }: Pick<User, 'passwordHash'>): string => tokenHash(`password ${passwordHash ?? ''}`);

/**
 * Signs people in by more than a password: with a second factor after it, or with a passkey instead of it
 * (docs/decisions/0064).
 */
export class FactorSignIn {
  readonly #deps: FactorSignInDeps;
  readonly #beginnings: Budget;

  constructor(deps: FactorSignInDeps) {
    this.#deps = deps;
    this.#beginnings = deps.budgets.of('passkey_sign_ins', deps.config.ssoStartsPerMinute, 60);
  }

  /**
   * Ends a sign-in whose password was right.
   * @throws AUTHENTICATION_FAILED, RATE_LIMIT_EXCEEDED after ten wrong codes
   */
  async complete(
    caller: AnyCaller,
    { challenge: token, ...given }: GivenProof & { challenge: string },
  ): Promise<SignIn> {
    const { sql, auth, proofs, challenges } = this.#deps;
    await auth.demandTries(caller);
    const challenge = challenges.read('sign in', token);
    const user = challenge?.userId ? await findRow(sql, 'users', { id: challenge.userId }) : null;
    // a new password ends what the old one began
    if (!challenge || !user || bondOf(user) !== challenge.bond)
      throw await auth.refused(caller, { user, error: deadChallenge(), failed: 'challenge' });
    if (!given.credential) await proofs.takeTry(user.id);
    const signIn = await this.#signIn(caller, user, challenge, given);
    await proofs.succeeded(user.id);
    return signIn;
  }

  /** Begins a sign-in with a passkey. Nobody is known yet. @throws RATE_LIMIT_EXCEEDED */
  async beginWithPasskey(caller: AnyCaller): Promise<PasskeyBeginning> {
    await this.#beginnings.demand(caller.request.ip);
    const { token, nonce } = this.#deps.challenges.issue('passkey sign in', { userId: null, bond: null });
    const options = await this.#deps.ceremonies.request(nonce, []);
    return { challenge: token, options, expiresIn: CHALLENGE_SECONDS };
  }

  /**
   * Signs somebody in with a passkey alone, which counts as two factors: the authenticator knows its user.
   * @throws AUTHENTICATION_FAILED for whatever is wrong
   */
  async withPasskey(
    caller: AnyCaller,
    { challenge: token, credential }: { challenge: string; credential: CredentialJson },
  ): Promise<SignIn> {
    const { sql, auth, proofs, challenges } = this.#deps;
    await auth.demandTries(caller);
    const challenge = challenges.read('passkey sign in', token);
    if (!challenge) throw await auth.refused(caller, { user: null, error: deadChallenge(), failed: 'challenge' });
    const passkey = await proofs.passkeyBy(sql, credential);
    const user = passkey && (await findRow(sql, 'users', { id: passkey.userId, isActive: true }));
    if (!user) throw await auth.refused(caller, { user: null, error: wrongFactor(), failed: 'passkey' });
    return this.#signIn(caller, user, challenge, { credential }, { isAlone: true });
  }

  async #signIn(
    caller: AnyCaller,
    user: User,
    challenge: Challenge,
    given: GivenProof,
    { isAlone = false } = {},
  ): Promise<SignIn> {
    const { auth, challenges, proofs } = this.#deps;
    try {
      return await auth.finishSignIn(caller, user, async (tx) => {
        const proven = await proofs.prove(tx, user.id, given, challenge.nonce);
        if (!proven || (isAlone && !proven.isUserVerified)) throw wrongFactor();
        if (!(await challenges.use(tx, challenge))) throw deadChallenge();
        return {
          origin: { ...(isAlone ? { method: 'passkey' } : {}), factorAt: new Date() },
          metadata: { factor: proven.method },
        };
      });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'AUTHENTICATION_FAILED') throw error;
      throw await auth.refused(caller, { user, error, failed: 'factor' });
    }
  }
}

/** Asks for a second factor after a password. */
export class SecondFactor {
  readonly #deps: SecondFactorDeps;

  constructor(deps: SecondFactorDeps) {
    this.#deps = deps;
  }

  /**
   * What a right password says of an account with a second factor. The user's row is locked, so that no factor is added
   * meanwhile.
   * @throws FactorRequired
   */
  demandIfAny: SignInCheck = async (tx, user) => {
    const { challenges, proofs, ceremonies } = this.#deps;
    const methods = await proofs.methodsOf(tx, user.id);
    if (methods.length === 0) return;
    const { token, nonce } = challenges.issue('sign in', { userId: user.id, bond: bondOf(user) });
    const passkeyOptions = methods.includes('passkey')
      ? await ceremonies.request(nonce, await proofs.passkeysOf(tx, user.id))
      : null;
    throw new FactorRequired({ token, methods, passkeyOptions });
  };
}
