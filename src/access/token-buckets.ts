import type { RedisLink } from '../platform/redis/redis-link.ts';
import { type BucketState, bucketState, MICRO, type RateLine, TokenBuckets } from './throttle.ts';

type MaybePromise<T> = T | Promise<T>;

/** Token buckets of callers, wherever they are counted. */
export interface CallerBuckets {
  /** Takes `cost` tokens, all or none. */
  take(key: string, cost: number, line: RateLine): MaybePromise<BucketState>;
  /** Returns a token that was taken and not needed. */
  giveBack(key: string): void;
}

/** Counted in this process. */
export class OwnBuckets implements CallerBuckets {
  readonly #buckets: TokenBuckets;

  constructor({ rps, burst }: RateLine) {
    this.#buckets = new TokenBuckets(rps, burst);
  }

  take(key: string, cost: number, line: RateLine): BucketState {
    return this.#buckets.take(key, cost, performance.now(), line);
  }

  giveBack(key: string): void {
    this.#buckets.giveBack(key);
  }
}

/**
 * The same rule as {@link TokenBuckets}, run by Redis with its own clock: clocks of nodes may differ. A cost below zero
 * gives back. A bucket that is full again is forgotten.
 */
const TAKE = `local rps, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
local known = redis.call('hmget', KEYS[1], 'left', 'at')
local left, at = tonumber(known[1]) or burst, tonumber(known[2]) or now
left = math.min(burst, left + math.max(0, now - at) * rps)
local allowed = 0
if left >= wanted then
  allowed = 1
  left = math.min(burst, left - wanted)
end
redis.call('hset', KEYS[1], 'left', string.format('%.0f', left), 'at', string.format('%.0f', now))
redis.call('pexpire', KEYS[1], math.ceil((burst - left) / rps / 1000) + 1000)
return {allowed, string.format('%.0f', left)}`;

/** Counted in Redis by all nodes together. While it is away, in this process: each node then has whole buckets. */
export class SharedBuckets implements CallerBuckets {
  readonly #link: RedisLink;
  readonly #kind: string;
  readonly #own: OwnBuckets;
  readonly #run: ReturnType<RedisLink['script']>;
  readonly #line: RateLine;

  constructor(link: RedisLink, name: string, { own, line }: { own: OwnBuckets; line: RateLine }) {
    this.#link = link;
    this.#kind = `rate:${name}`;
    this.#own = own;
    this.#line = line;
    this.#run = link.script('platformTake', TAKE);
  }

  async take(key: string, cost: number, line: RateLine): Promise<BucketState> {
    try {
      return await this.#ask(key, cost, line);
    } catch {
      return this.#own.take(key, cost, line); // the link has told
    }
  }

  giveBack(key: string): void {
    // a token that was taken here meanwhile, or is lost, is back within a second
    this.#ask(key, -1, this.#line).catch(() => this.#own.giveBack(key));
  }

  async #ask(key: string, cost: number, { rps, burst }: RateLine): Promise<BucketState> {
    const most = Math.max(1, burst) * MICRO;
    const answer = await this.#run([this.#link.key(this.#kind, key)], [rps, most, cost * MICRO]);
    const [allowed, left] = answer as [number, string];
    return bucketState({ isAllowed: allowed === 1, left: Number(left), wanted: cost * MICRO, line: { rps, burst } });
  }
}
