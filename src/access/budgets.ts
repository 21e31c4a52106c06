import { RateLimiterRedis } from 'rate-limiter-flexible';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import { Budget, refusalOr, type SharedPoints } from './throttle.ts';
import { type CallerBuckets, OwnBuckets, SharedBuckets } from './token-buckets.ts';

/** Makes the budgets of what callers may take: counted by all nodes together in Redis, or by this node. */
export class Budgets {
  readonly #link: RedisLink | null;
  readonly #names = new Set<string>();

  constructor(link: RedisLink | null) {
    this.#link = link;
  }

  /**
   * A budget of points per window and key.
   * @param name the same on all nodes, and no other budget's
   * @param points 0 for no limit
   */
  of(name: string, points: number, seconds: number): Budget {
    this.#take(name);
    if (points === 0) return new Budget(Number.MAX_SAFE_INTEGER, seconds);
    return new Budget(points, seconds, this.#link && sharedPoints(this.#link, { name, points, seconds }));
  }

  /** Token buckets by key. */
  buckets(name: string, line: { rps: number; burst: number }): CallerBuckets {
    this.#take(name);
    const own = new OwnBuckets(line);
    return this.#link ? new SharedBuckets(this.#link, name, { own, line }) : own;
  }

  #take(name: string): void {
    if (this.#names.has(name)) throw new Error(`Two budgets are named '${name}'.`);
    this.#names.add(name);
  }
}

function sharedPoints(
  link: RedisLink,
  { name, points, seconds }: { name: string; points: number; seconds: number },
): SharedPoints {
  let limiter: RateLimiterRedis | undefined;
  const ask = <T>(question: (of: RateLimiterRedis) => Promise<T>): Promise<T> =>
    link.ask((storeClient) => {
      limiter ??= new RateLimiterRedis({
        storeClient,
        points,
        duration: seconds,
        keyPrefix: link.prefix(`budget:${name}`),
      });
      return question(limiter);
    });
  return {
    take: (key) => ask((of) => of.consume(link.hidden(key)).catch(refusalOr)),
    look: (key) => ask((of) => of.get(link.hidden(key))),
    giveBack: (key) => ask((of) => of.reward(link.hidden(key))),
  };
}
