import type { FastifyInstance } from 'fastify';
import { type Authentication, credentialOf } from '../access/authentication.ts';
import type { Caller } from '../access/caller.ts';
import type { BucketState } from '../access/throttle.ts';
import { rateLimited } from '../core/errors.ts';
import { callerError } from '../platform/postgres/faults.ts';
import { type CallerLimit, messageOf } from './rate-limit.ts';

/** Probes and metrics: they answer everybody alike, and always. */
const OPEN_PATHS = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * Finds out who calls, for a price. A credential that is not known to be good counts against the address that it comes
 * from, before anything is looked up: once that has nothing left, guesses cost no statement. What turns out to be good
 * is given back, so that callers behind one address do not use up one another's budget.
 */
export class Admission {
  readonly #authentication: Authentication;
  readonly #limit: CallerLimit;

  constructor(authentication: Authentication, limit: CallerLimit) {
    this.#authentication = authentication;
    this.#limit = limit;
  }

  /**
   * Counts a request, and sets its principal where the credential is good.
   * @returns the state of the budget that it was counted against; `null` where there is no limit
   */
  async request(caller: Caller, header: string | undefined): Promise<BucketState | null> {
    const counted = await this.identify(caller, header);
    return counted ?? this.#limit.take(caller, 1);
  }

  /**
   * Sets the caller's principal where the credential is good; costs nothing then.
   * @returns the state of the address' budget, where the credential was counted against it
   */
  async identify(caller: Caller, header: string | undefined): Promise<BucketState | null> {
    const credential = credentialOf(header);
    if (!credential) return null;
    // what this service has signed is no guess, and costs no look-up to tell
    const isFree = this.#authentication.isTrusted(credential) || (await this.#authentication.isSigned(credential));
    const bucket = isFree ? null : this.#limit.take(caller, 1);
    if (bucket && !bucket.allowed) return bucket;
    caller.principal = await this.#authentication.authenticate(credential);
    if (!caller.principal) return bucket;
    if (bucket) this.#limit.giveBack(caller);
    return null;
  }
}

/** Authenticates and counts each request, and says on every answer where its caller stands. */
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
