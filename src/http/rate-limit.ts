import type { Caller } from '../access/caller.ts';
import type { Principal } from '../access/principal.ts';
import type { TokenGrant } from '../access/token-grant.ts';
import type { Config } from '../config.ts';
import { rateLimited } from '../graphql/errors.ts';
import { type BucketState, type RateLine, TokenBuckets } from '../infra/throttle.ts';

/** The pace of a token that sets only its burst where the service itself has no limit. */
const USUAL_RPS = 500;

/**
 * One token bucket per caller (defaults §0.5): the user, the client address of a stranger, or the API token. A token's own figures hold
 * also where the service has no limit; what it was refreshed to shares its bucket, so that a refresh gives no second one.
 */
export class CallerLimit {
  readonly #line: RateLine;
  readonly #isOn: boolean;
  readonly #buckets: TokenBuckets;

  constructor({ rateLimitRps, rateLimitBurst }: Pick<Config, 'rateLimitRps' | 'rateLimitBurst'>) {
    this.#isOn = rateLimitRps > 0;
    this.#line = { rps: rateLimitRps || USUAL_RPS, burst: rateLimitBurst };
    this.#buckets = new TokenBuckets(this.#line.rps, this.#line.burst);
  }

  /** Takes `cost` requests from the caller's budget; `null` where there is no limit. */
  take({ principal, request }: Caller, cost: number): BucketState | null {
    const own = principal?.token && this.#lineOf(principal.token);
    if (!this.#isOn && !own) return null;
    return this.#buckets.take(keyOf(principal, request.ip), cost, performance.now(), own ?? this.#line);
  }

  /** Gives back a request that was counted as a stranger's. */
  giveBack({ request }: Caller): void {
    this.#buckets.giveBack(keyOf(null, request.ip));
  }

  /** What a token sets of itself; `null` when that is nothing. */
  #lineOf({ rateLimitRps: rps, rateLimitBurst: burst }: TokenGrant): RateLine | null {
    if (rps === null && burst === null) return null;
    return { rps: rps ?? this.#line.rps, burst: burst ?? 2 * rps! };
  }

  /**
   * Takes what an operation asks for beyond the one that was taken when it arrived.
   * @param total what it asks for in all
   * @throws RATE_LIMIT_EXCEEDED; one that asks for more than the caller may ever have at once is told so, because no waiting helps
   */
  demandRest(caller: Caller, total: number): void {
    if (total <= 1) return;
    const bucket = this.take(caller, total - 1);
    if (!bucket || bucket.allowed) return;
    throw total > bucket.limit
      ? rateLimited(
          bucket.resetSeconds,
          `The operation counts as ${total} requests; you may make ${bucket.limit} at once.`,
        )
      : rateLimited(bucket.retryAfter);
  }
}

const keyOf = (principal: Principal | null, ip: string): string =>
  principal?.token ? `token:${principal.token.familyId}` : principal ? `user:${principal.userId}` : `ip:${ip}`;
