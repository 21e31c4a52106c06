import type { Config } from '../config.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import { rateLimited } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { TokenGrant } from '../kernel/token-grant.ts';
import type { Budgets } from './budgets.ts';
import type { BucketState, RateLine } from './throttle.ts';
import type { CallerBuckets } from './token-buckets.ts';

type MaybePromise<T> = T | Promise<T>;

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
  readonly #buckets: CallerBuckets;

  constructor({ rateLimitRps, rateLimitBurst }: Pick<Config, 'rateLimitRps' | 'rateLimitBurst'>, budgets: Budgets) {
    this.#isOn = rateLimitRps > 0;
    this.#line = { rps: rateLimitRps || USUAL_RPS, burst: rateLimitBurst };
    this.#buckets = budgets.buckets('callers', this.#line);
  }

  /**
   * Takes `cost` requests from the caller's budget; `null` if there is no limit. At once if this node alone counts.
   */
  take({ principal, request }: AnyCaller, cost: number): MaybePromise<BucketState | null> {
    const token = principal?.token ?? null;
    const own = this.#takeFrom(keyOf(principal, request.ip), cost, token && this.#lineOf(token));
    const { root } = token ?? {};
    return root ? whenKnown(own, (bucket) => this.#takeFromRoot(root, bucket, cost)) : own;
  }

  /** A token made by a token draws on the rate of its maker too; otherwise making tokens would bypass that rate. */
  #takeFromRoot(
    root: NonNullable<TokenGrant['root']>,
    own: BucketState | null,
    cost: number,
  ): MaybePromise<BucketState | null> {
    if (own?.allowed === false) return own;
    return whenKnown(this.#takeFrom(keyOfFamily(root.familyId), cost, this.#lineOf(root)), (shared) =>
      own && (!shared || (shared.allowed && own.remaining <= shared.remaining)) ? own : shared,
    );
  }

  #takeFrom(key: string, cost: number, line: RateLine | null): MaybePromise<BucketState | null> {
    if (!this.#isOn && !line) return null;
    return this.#buckets.take(key, cost, line ?? this.#line);
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
  demandRest(caller: AnyCaller, asked: number, more = 0): MaybePromise<void> {
    const token = caller.principal?.token;
    const { burst } = (token && this.#lineOf(token)) ?? this.#line;
    const total = asked + Math.min(more, Math.floor(burst / 2));
    if (total <= 1) return;
    return whenKnown(this.take(caller, total - 1), (bucket) => demandGranted(bucket, total));
  }
}

/** @throws RATE_LIMIT_EXCEEDED */
function demandGranted(bucket: BucketState | null, total: number): void {
  if (!bucket || bucket.allowed) return;
  throw total > bucket.limit
    ? rateLimited(
        bucket.resetSeconds,
        `The operation counts as ${total} requests; you may make ${bucket.limit} at once.`,
      )
    : rateLimited(bucket.retryAfter);
}

/** Goes on with a value as soon as it is known: at once, where nobody had to be asked. */
const whenKnown = <T, R>(value: MaybePromise<T>, goOn: (value: T) => MaybePromise<R>): MaybePromise<R> =>
  value instanceof Promise ? value.then(goOn) : goOn(value);

const keyOfFamily = (familyId: string): string => `token:${familyId}`;

const keyOf = (principal: Principal | null, ip: string): string =>
  principal?.token ? keyOfFamily(principal.token.familyId) : principal ? `user:${principal.userId}` : `ip:${ip}`;

/** The message for a refusal by a token's own limit, which says so. */
export function messageOf({ principal }: AnyCaller): string | undefined {
  const token = principal?.token;
  if (!token || (token.rateLimitRps ?? token.rateLimitBurst) === null) return undefined;
  return `Too many requests for the rate limit of the token '${token.id}'. Try again later.`;
}
