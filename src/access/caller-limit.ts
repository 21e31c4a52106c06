import type { Config } from '../config.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import { rateLimited } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { TokenGrant } from '../kernel/token-grant.ts';
import { type BucketState, type RateLine, TokenBuckets } from './throttle.ts';

/** The rate of a token that sets only its burst, if the service itself has no limit. */
const USUAL_RPS = 500;

/**
 * One token bucket per caller (defaults §0.5): the user, the client address of an unauthenticated caller, or the API
 * token. A token's own limits apply even if the service has none. A refreshed token shares the bucket of its
 * predecessor, so a refresh gives no second one. A token made by a token has its own bucket and also draws on the
 * bucket of the first token of its line.
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

  /** Takes `cost` requests from the caller's budget; `null` if there is no limit. */
  take({ principal, request }: AnyCaller, cost: number): BucketState | null {
    const token = principal?.token ?? null;
    const own = this.#takeFrom(keyOf(principal, request.ip), cost, token && this.#lineOf(token));
    if (!token?.root || own?.allowed === false) return own;
    // a token made by a token draws on the rate of its maker too; otherwise making tokens would bypass that rate
    const shared = this.#takeFrom(keyOfFamily(token.root.familyId), cost, this.#lineOf(token.root));
    return own && (!shared || (shared.allowed && own.remaining <= shared.remaining)) ? own : shared;
  }

  #takeFrom(key: string, cost: number, line: RateLine | null): BucketState | null {
    if (!this.#isOn && !line) return null;
    return this.#buckets.take(key, cost, performance.now(), line ?? this.#line);
  }

  /** Returns a request that was counted as unauthenticated. */
  giveBack({ request }: AnyCaller): void {
    this.#buckets.giveBack(keyOf(null, request.ip));
  }

  /** The limits that a token itself sets; `null` if it sets none. */
  #lineOf({
    rateLimitRps: rps,
    rateLimitBurst: burst,
  }: Pick<TokenGrant, 'rateLimitRps' | 'rateLimitBurst'>): RateLine | null {
    if (rps === null && burst === null) return null;
    return { rps: rps ?? this.#line.rps, burst: burst ?? 2 * rps! };
  }

  /**
   * Charges the cost of an operation beyond the one request that was charged on arrival.
   * @param asked the whole cost of what it asks for
   * @param more additional cost; charged up to half of the caller's burst, so that waiting always helps
   * @throws RATE_LIMIT_EXCEEDED; the message says so if the operation asks for more than the caller may ever have at
   * once, because no waiting helps
   */
  demandRest(caller: AnyCaller, asked: number, more = 0): void {
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

/** The message for a refusal by a token's own limit, which says so. */
export function messageOf({ principal }: AnyCaller): string | undefined {
  const token = principal?.token;
  if (!token || (token.rateLimitRps ?? token.rateLimitBurst) === null) return undefined;
  return `Too many requests for the rate limit of the token '${token.id}'. Try again later.`;
}
