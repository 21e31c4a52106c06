import type { FastifyInstance } from 'fastify';
import type { Caller } from '../access/caller.ts';
import type { Config } from '../config.ts';
import { rateLimited } from '../graphql/errors.ts';
import { type BucketState, TokenBuckets } from '../infra/throttle.ts';

const UNLIMITED_PATHS = new Set(['/healthz', '/readyz', '/metrics']);

/** One token bucket per caller: the user, or the client address of a stranger (defaults §0.5). */
export class CallerLimit {
  readonly #buckets: TokenBuckets | null;

  constructor({ rateLimitRps, rateLimitBurst }: Pick<Config, 'rateLimitRps' | 'rateLimitBurst'>) {
    this.#buckets = rateLimitRps > 0 ? new TokenBuckets(rateLimitRps, rateLimitBurst) : null;
  }

  /** Takes `cost` requests from the caller's budget; `null` where there is no limit. */
  take({ principal, request }: Caller, cost: number): BucketState | null {
    return this.#buckets?.take(principal ? `user:${principal.userId}` : `ip:${request.ip}`, cost) ?? null;
  }

  /** @throws RATE_LIMIT_EXCEEDED */
  demand(caller: Caller, cost: number): void {
    const bucket = this.take(caller, cost);
    if (bucket && !bucket.allowed) throw rateLimited(bucket.retryAfter);
  }
}

/** Counts each request, and says on every answer where its caller stands. */
export function addRateLimit(server: FastifyInstance, limit: CallerLimit): void {
  server.addHook('onRequest', async (request, reply) => {
    if (UNLIMITED_PATHS.has(request.caller.request.path)) return;
    const bucket = limit.take(request.caller, 1);
    if (!bucket) return;
    reply.headers({
      'x-ratelimit-limit': bucket.limit,
      'x-ratelimit-remaining': bucket.remaining,
      'x-ratelimit-reset': bucket.resetSeconds,
    });
    if (!bucket.allowed) throw rateLimited(bucket.retryAfter);
  });
}
