import type { AnyCaller } from '../kernel/caller.ts';
import type { Principal } from '../kernel/principal.ts';
import { type Authentication, type Credential, cookieCredential, credentialOf } from './authentication.ts';
import type { CallerLimit } from './caller-limit.ts';
import type { BucketState } from './throttle.ts';

type MaybePromise<T> = T | Promise<T>;

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
   * Counts a request, and sets the caller's principal if the credential is valid. At once if nothing has to be read.
   * @param cookie what the session cookie of a page of this origin holds: an `authorization` header wins over it
   * @returns the state of the budget that the request counted against; `null` if there is no limit
   */
  request(
    caller: AnyCaller,
    header: string | undefined,
    cookie: string | null = null,
  ): MaybePromise<BucketState | null> {
    const counted = this.identify(caller, header, cookie);
    const orTaken = (bucket: BucketState | null) => bucket ?? this.#limit.take(caller, 1);
    return counted instanceof Promise ? counted.then(orTaken) : orTaken(counted);
  }

  /**
   * Sets the caller's principal if the credential is valid; that costs nothing.
   * @returns the state of the address' budget, if the credential counted against it
   */
  identify(
    caller: AnyCaller,
    header: string | undefined,
    cookie: string | null = null,
  ): MaybePromise<BucketState | null> {
    const found = header === undefined && cookie !== null ? cookieCredential(cookie) : credentialOf(header);
    if (!found) return null;
    const credential = { ...found, path: caller.request.path };
    if (!this.#authentication.isTrusted(credential)) return this.#identifyStranger(caller, credential);
    const authenticated = this.#authentication.authenticate(credential);
    const known = (principal: Principal | null) => {
      caller.principal = principal;
      return null;
    };
    return authenticated instanceof Promise ? authenticated.then(known) : known(authenticated);
  }

  async #identifyStranger(caller: AnyCaller, credential: Credential): Promise<BucketState | null> {
    // a token that this service has signed is no guess, and checking the signature needs no look-up
    const bucket = (await this.#authentication.isSigned(credential)) ? null : await this.#limit.take(caller, 1);
    if (bucket && !bucket.allowed) return bucket;
    caller.principal = await this.#authentication.authenticate(credential);
    if (!caller.principal) return bucket;
    if (bucket) this.#limit.giveBack(caller);
    return null;
  }
}
