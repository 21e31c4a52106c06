import type { Caller } from '../access/caller.ts';
import type { Principal } from '../access/principal.ts';
import { type BucketState, type RateLine, TokenBuckets } from '../access/throttle.ts';
import type { TokenGrant } from '../access/token-grant.ts';
import type { Config } from '../config.ts';
import { rateLimited } from '../core/errors.ts';

/** The pace of a token that sets only its burst where the service itself has no limit. */
const USUAL_RPS = 500;

/**
 * One token bucket per caller (defaults §0.5): the user, the client address of a stranger, or the API token. A token's
 * own figures hold also where the service has no limit; what it was refreshed to shares its bucket, so that a refresh
 * gives no second one. What a token made has its own bucket and draws on that of the first token of its line.
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
    const token = principal?.token ?? null;
    const own = this.#takeFrom(keyOf(principal, request.ip), cost, token && this.#lineOf(token));
    if (!token?.root || own?.allowed === false) return own;
    // what a token made draws on the rate of its maker too, or making some would be a way past it
    const shared = this.#takeFrom(keyOfFamily(token.root.familyId), cost, this.#lineOf(token.root));
    return own && (!shared || (shared.allowed && own.remaining <= shared.remaining)) ? own : shared;
  }

  #takeFrom(key: string, cost: number, line: RateLine | null): BucketState | null {
    if (!this.#isOn && !line) return null;
    return this.#buckets.take(key, cost, performance.now(), line ?? this.#line);
  }

  /** Gives back a request that was counted as a stranger's. */
  giveBack({ request }: Caller): void {
    this.#buckets.giveBack(keyOf(null, request.ip));
  }

  /** What a token sets of itself; `null` when that is nothing. */
  #lineOf({
    rateLimitRps: rps,
    rateLimitBurst: burst,
  }: Pick<TokenGrant, 'rateLimitRps' | 'rateLimitBurst'>): RateLine | null {
    if (rps === null && burst === null) return null;
    return { rps: rps ?? this.#line.rps, burst: burst ?? 2 * rps! };
  }

  /**
   * Takes what an operation asks for beyond the one that was taken when it arrived.
   * @param asked what it asks for in all
   * @param more what it costs beside that; charged up to half of the caller's burst, so that waiting always helps
   * @throws RATE_LIMIT_EXCEEDED; one that asks for more than the caller may ever have at once is told so, because no
   * waiting helps
   */
  demandRest(caller: Caller, asked: number, more = 0): void {
    const token = caller.principal?.token;
    const { burst } = (token && this.#lineOf(token)) ?? this.#line;
    const total = asked + Math.min(more, Math.floor(burst / 2));
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

const keyOfFamily = (familyId: string): string => `token:${familyId}`;

const keyOf = (principal: Principal | null, ip: string): string =>
  principal?.token ? keyOfFamily(principal.token.familyId) : principal ? `user:${principal.userId}` : `ip:${ip}`;

/** Of a token's own limit the refusal says that it is one. */
export function messageOf({ principal }: Caller): string | undefined {
  const token = principal?.token;
  if (!token || (token.rateLimitRps ?? token.rateLimitBurst) === null) return undefined;
  return `Too many requests for the rate limit of the token '${token.id}'. Try again later.`;
}
