import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { rateLimited } from '../graphql/errors.ts';

/** What a token bucket says of one request. */
export interface BucketState {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Whole seconds until the next request is allowed. */
  retryAfter: number;
}

/** Token buckets by key: `burst` at once, then `rps`. Their number is bounded: the least used are forgotten first. */
export class TokenBuckets {
  readonly #rps: number;
  readonly #burst: number;
  readonly #buckets = new LRUCache<string, { tokens: number; at: number }>({ max: 100_000 });

  constructor(rps: number, burst: number) {
    this.#rps = rps;
    this.#burst = Math.max(1, burst);
  }

  /** Takes `cost` tokens, all or none. */
  take(key: string, cost = 1, now = performance.now()): BucketState {
    const bucket = this.#buckets.get(key) ?? { tokens: this.#burst, at: now };
    bucket.tokens = Math.min(this.#burst, bucket.tokens + ((now - bucket.at) / 1000) * this.#rps);
    bucket.at = now;
    const allowed = bucket.tokens >= cost;
    if (allowed) bucket.tokens -= cost;
    this.#buckets.set(key, bucket);
    return {
      allowed,
      limit: this.#burst,
      remaining: Math.floor(bucket.tokens),
      resetSeconds: Math.ceil((this.#burst - bucket.tokens) / this.#rps),
      retryAfter: allowed ? 0 : Math.max(1, Math.ceil((cost - bucket.tokens) / this.#rps)),
    };
  }
}

/** A budget of so many points per window and key, in this process. */
export class Budget {
  readonly #limiter: RateLimiterMemory;

  constructor(points: number, seconds: number) {
    this.#limiter = new RateLimiterMemory({ points, duration: seconds });
  }

  /** Takes a point. @returns seconds to wait, 0 when it was granted. */
  async take(key: string): Promise<number> {
    try {
      await this.#limiter.consume(key);
      return 0;
    } catch (refusal) {
      if (refusal instanceof RateLimiterRes) return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
      throw refusal;
    }
  }

  /** Takes a point. @throws RATE_LIMIT_EXCEEDED */
  async demand(key: string): Promise<void> {
    const wait = await this.take(key);
    if (wait > 0) throw rateLimited(wait);
  }

  /** @throws RATE_LIMIT_EXCEEDED when nothing is left; takes nothing. */
  async check(key: string): Promise<void> {
    const state = await this.#limiter.get(key);
    if (state && state.remainingPoints <= 0) throw rateLimited(state.msBeforeNext / 1000);
  }
}
