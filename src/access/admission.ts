import type { AnyCaller } from '../kernel/caller.ts';
import { type Authentication, credentialOf } from './authentication.ts';
import type { CallerLimit } from './caller-limit.ts';
import type { BucketState } from './throttle.ts';

/**
 * Authenticates callers within a limit. A credential that is not known to be valid counts against its client address
 * before anything is looked up, so guesses beyond the budget cost no statement. If the credential turns out to be
 * valid, the point is returned. So callers behind one address do not use up each other's budget.
 */
export class Admission {
  readonly #authentication: Authentication;
  readonly #limit: CallerLimit;

  constructor(authentication: Authentication, limit: CallerLimit) {
    this.#authentication = authentication;
    this.#limit = limit;
  }

  /**
   * Counts a request, and sets the caller's principal if the credential is valid.
   * @returns the state of the budget that the request counted against; `null` if there is no limit
   */
  async request(caller: AnyCaller, header: string | undefined): Promise<BucketState | null> {
    const counted = await this.identify(caller, header);
    return counted ?? this.#limit.take(caller, 1);
  }

  /**
   * Sets the caller's principal if the credential is valid; that costs nothing.
   * @returns the state of the address' budget, if the credential counted against it
   */
  async identify(caller: AnyCaller, header: string | undefined): Promise<BucketState | null> {
    const credential = credentialOf(header);
    if (!credential) return null;
    // a token that this service has signed is no guess, and checking the signature needs no look-up
    const isFree = this.#authentication.isTrusted(credential) || (await this.#authentication.isSigned(credential));
    const bucket = isFree ? null : this.#limit.take(caller, 1);
    if (bucket && !bucket.allowed) return bucket;
    caller.principal = await this.#authentication.authenticate(credential);
    if (!caller.principal) return bucket;
    if (bucket) this.#limit.giveBack(caller);
    return null;
  }
}
