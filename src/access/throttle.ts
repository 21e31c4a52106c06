import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { rateLimited } from '../kernel/errors.ts';
import { lruOf } from '../kernel/lru.ts';

/** The state of a token bucket after a request. */
export interface BucketState {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Seconds until the bucket is full again. */
  resetSeconds: number;
  /** Whole seconds until the next request is allowed. */
  retryAfter: number;
}

/** Buckets count in millionths of a request and in microseconds: whole numbers, exact at every boundary. */
const MICRO = 1_000_000;

/** How many requests at once, and how many per second after that. */
export interface RateLine {
  rps: number;
  burst: number;
}

/**
 * Token buckets by key: `burst` at once, then `rps`, unless a key has its own line. Their number is limited: the least
 * recently used are dropped first.
 */
export class TokenBuckets {
  readonly #line: RateLine;
  readonly #buckets = lruOf<{ left: number; at: number }>(100_000);

  constructor(rps: number, burst: number) {
    this.#line = { rps, burst };
  }

  /** Takes `cost` tokens, all or none. */
  take(key: string, cost = 1, now = performance.now(), line = this.#line): BucketState {
    const { rps } = line;
    const burst = Math.max(1, line.burst);
    const at = Math.round(now * 1_000);
    const bucket = this.#buckets.get(key) ?? { left: burst * MICRO, at };
    bucket.left = Math.min(burst * MICRO, bucket.left + Math.max(0, at - bucket.at) * rps);
    bucket.at = at;
    const wanted = cost * MICRO;
    const allowed = bucket.left >= wanted;
    if (allowed) bucket.left -= wanted;
    this.#buckets.set(key, bucket);
    const secondsFor = (missing: number) => Math.ceil(missing / MICRO / rps);
    return {
      allowed,
      limit: burst,
      remaining: Math.floor(bucket.left / MICRO),
      resetSeconds: secondsFor(burst * MICRO - bucket.left),
      retryAfter: allowed ? 0 : Math.max(1, secondsFor(wanted - bucket.left)),
    };
  }

  /** Returns tokens that were taken and not needed. */
  giveBack(key: string, cost = 1): void {
    const bucket = this.#buckets.get(key);
    if (bucket) bucket.left = Math.min(Math.max(1, this.#line.burst) * MICRO, bucket.left + cost * MICRO);
  }
}

/** A budget of points per window and key, in this process. */
export class Budget {
  readonly #limiter: RateLimiterMemory;

  constructor(points: number, seconds: number) {
    this.#limiter = new RateLimiterMemory({ points, duration: seconds });
  }

  /**
   * Takes a point.
   * @returns the seconds to wait; 0 when it was granted
   */
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

  /**
   * Takes nothing.
   * @throws RATE_LIMIT_EXCEEDED when nothing is left
   */
  async check(key: string): Promise<void> {
    const state = await this.#limiter.get(key);
    if (state && state.remainingPoints <= 0) throw rateLimited(state.msBeforeNext / 1000);
  }
}
