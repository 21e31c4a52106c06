import { ApiError, type ErrorDetails, wrongPassword } from '../../kernel/errors.ts';
import { CHALLENGE_SECONDS } from './challenges.ts';
import type { FactorMethod } from './factor-proofs.ts';

/** What goes on with a sign-in whose password was right. */
export interface FactorChallenge {
  /** Proves that the password was right. */
  token: string;
  methods: readonly FactorMethod[];
  /** What a browser asks a passkey with; `null` for a user without one. */
  passkeyOptions: object | null;
}

/** 401: the password was right, and is not enough. */
export class FactorRequired extends ApiError {
  readonly challenge: FactorChallenge;

  constructor(challenge: FactorChallenge) {
    const details: ErrorDetails = {
      reason: 'factor_required',
      challenge: challenge.token,
      methods: challenge.methods,
      expires_in: CHALLENGE_SECONDS,
      passkey_options: challenge.passkeyOptions,
    };
    super('AUTHENTICATION_FAILED', details, 'The password is right. Prove a second factor to go on.');
    this.challenge = challenge;
  }
}

/** 401 for a proof that is wrong: of whatever kind, and for whatever reason. */
export const wrongFactor = () => wrongPassword('This does not prove your second factor.');

/** 401 for a challenge that is over, used up, or was given for something else. */
export const deadChallenge = () => wrongPassword('This took too long, or was done before. Begin again.');
