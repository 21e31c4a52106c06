import type { FastifyInstance } from 'fastify';
import type { Admission } from '../access/admission.ts';
import { messageOf } from '../access/caller-limit.ts';
import { rateLimited } from '../kernel/errors.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';

/** Probes and metrics: they always answer every caller in the same way. */
const OPEN_PATHS = new Set(['/healthz', '/readyz', '/metrics']);

/** Authenticates and counts each request, and reports the state of the caller's budget on every response. */
export function addAdmission(server: FastifyInstance, admission: Admission): void {
  server.addHook('onRequest', async ({ caller, headers }, reply) => {
    if (OPEN_PATHS.has(caller.request.path)) return;
    const bucket = await admission.request(caller, headers.authorization).catch(throwCallerError);
    if (!bucket) return;
    reply.headers({
      'x-ratelimit-limit': bucket.limit,
      'x-ratelimit-remaining': bucket.remaining,
      'x-ratelimit-reset': bucket.resetSeconds,
    });
    if (!bucket.allowed) throw rateLimited(bucket.retryAfter, messageOf(caller));
  });
}
