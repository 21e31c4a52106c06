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
export const MICRO = 1_000_000;

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
    return bucketState({ isAllowed: allowed, left: bucket.left, wanted, line });
  }

  /** Returns tokens that were taken and not needed. */
  giveBack(key: string, cost = 1): void {
    const bucket = this.#buckets.get(key);
    if (bucket) bucket.left = Math.min(Math.max(1, this.#line.burst) * MICRO, bucket.left + cost * MICRO);
  }
}

/** What a bucket says after it was asked for so many millionths. */
export function bucketState({
  isAllowed,
  left,
  wanted,
  line: { rps, burst: most },
}: {
  isAllowed: boolean;
  left: number;
  wanted: number;
  line: RateLine;
}): BucketState {
  const burst = Math.max(1, most);
  const secondsFor = (missing: number) => Math.ceil(missing / MICRO / rps);
  return {
    allowed: isAllowed,
    limit: burst,
    remaining: Math.floor(left / MICRO),
    resetSeconds: secondsFor(burst * MICRO - left),
    retryAfter: isAllowed ? 0 : Math.max(1, secondsFor(wanted - left)),
  };
}

/** Points that all nodes count together. Each question fails when they cannot be reached. */
export interface SharedPoints {
  take(key: string): Promise<RateLimiterRes>;
  look(key: string): Promise<RateLimiterRes | null>;
  giveBack(key: string): Promise<unknown>;
}

/**
 * A budget of points per window and key: counted by all nodes together, or in this process, which also counts while
 * what is shared cannot be reached.
 */
export class Budget {
  readonly #points: number;
  readonly #own: RateLimiterMemory;
  readonly #shared: SharedPoints | null;

  constructor(points: number, seconds: number, shared: SharedPoints | null = null) {
    this.#points = points;
    this.#own = new RateLimiterMemory({ points, duration: seconds });
    this.#shared = shared;
  }

  /**
   * Takes a point.
   * @returns the seconds to wait; 0 when it was granted
   */
  async take(key: string): Promise<number> {
    const { consumedPoints, msBeforeNext } = await this.#consume(key);
    return consumedPoints > this.#points ? Math.max(1, Math.ceil(msBeforeNext / 1000)) : 0;
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
    const state = await this.#look(key);
    if (state && state.remainingPoints <= 0) throw rateLimited(state.msBeforeNext / 1000);
  }

  /** Returns a point that was taken and not needed. */
  async giveBack(key: string): Promise<void> {
    if (this.#shared) {
      try {
        await this.#shared.giveBack(key);
        return;
      } catch {
        // as below
      }
    }
    await this.#own.reward(key);
  }

  async #consume(key: string): Promise<RateLimiterRes> {
    if (this.#shared) {
      try {
        return await this.#shared.take(key);
      } catch {
        // who cannot be asked has told that; this process counts instead
      }
    }
    return this.#own.consume(key).catch(refusalOr);
  }

  async #look(key: string): Promise<RateLimiterRes | null> {
    if (this.#shared) {
      try {
        return await this.#shared.look(key);
      } catch {
        // as above
      }
    }
    return this.#own.get(key);
  }
}

/** The library throws a refusal: it is an answer too. */
export function refusalOr(error: unknown): RateLimiterRes {
  if (error instanceof RateLimiterRes) return error;
  throw error;
}
