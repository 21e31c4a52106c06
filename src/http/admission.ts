import type { FastifyInstance } from 'fastify';
import { type Authentication, credentialOf } from '../access/authentication.ts';
import type { Caller } from '../access/caller.ts';
import type { BucketState } from '../access/throttle.ts';
import { rateLimited } from '../kernel/errors.ts';
import { callerError } from '../platform/postgres/faults.ts';
import { type CallerLimit, messageOf } from './rate-limit.ts';

/** Probes and metrics: they always answer every caller in the same way. */
const OPEN_PATHS = new Set(['/healthz', '/readyz', '/metrics']);

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
  async request(caller: Caller, header: string | undefined): Promise<BucketState | null> {
    const counted = await this.identify(caller, header);
    return counted ?? this.#limit.take(caller, 1);
  }

  /**
   * Sets the caller's principal if the credential is valid; that costs nothing.
   * @returns the state of the address' budget, if the credential counted against it
   */
  async identify(caller: Caller, header: string | undefined): Promise<BucketState | null> {
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

/** Authenticates and counts each request, and reports the state of the caller's budget on every response. */
export function addAdmission(server: FastifyInstance, admission: Admission): void {
  server.addHook('onRequest', async ({ caller, headers }, reply) => {
    if (OPEN_PATHS.has(caller.request.path)) return;
    const bucket = await admission.request(caller, headers.authorization).catch((error: unknown) => {
      throw callerError(error);
    });
    if (!bucket) return;
    reply.headers({
      'x-ratelimit-limit': bucket.limit,
      'x-ratelimit-remaining': bucket.remaining,
      'x-ratelimit-reset': bucket.resetSeconds,
    });
    if (!bucket.allowed) throw rateLimited(bucket.retryAfter, messageOf(caller));
  });
}
