import { callbackify } from 'node:util';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Admission } from '../access/admission.ts';
import { messageOf } from '../access/caller-limit.ts';
import type { BucketState } from '../access/throttle.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import { rateLimited } from '../kernel/errors.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';
import { SCIM_PREFIX } from './scim-routes.ts';

/** Probes and metrics: they always answer every caller in the same way. */
const OPEN_PATHS = new Set(['/healthz', '/readyz', '/metrics']);

/** Authenticates and counts each request, and reports the state of the caller's budget on every response. */
export function addAdmission(
  server: FastifyInstance,
  admission: Admission,
  /** What the cookie of a page of this origin holds. */
  cookieOf: (request: FastifyRequest) => string | null,
): void {
  const awaited = callbackify((counted: Promise<BucketState | null>) => counted.catch(throwCallerError));
  server.addHook('onRequest', (request, reply, done) => {
    const { caller, headers } = request;
    // directories have tokens of their own, which their routes look up
    if (OPEN_PATHS.has(caller.request.path) || caller.request.path.startsWith(SCIM_PREFIX)) return done();
    const { authorization } = headers;
    const counted = admission.request(caller, authorization, authorization === undefined ? cookieOf(request) : null);
    // a caller who is known is admitted at once, as for nearly all requests
    if (!(counted instanceof Promise)) return done(refusalBy(counted, caller, reply));
    awaited(counted, (error, bucket) => done(error ?? refusalBy(bucket, caller, reply)));
  });
}

/** The refusal of a request that a budget has no room for; its state is in the headers of the answer. */
function refusalBy(bucket: BucketState | null, caller: AnyCaller, reply: FastifyReply): Error | undefined {
  if (!bucket) return undefined;
  reply.headers({
    'x-ratelimit-limit': bucket.limit,
    'x-ratelimit-remaining': bucket.remaining,
    'x-ratelimit-reset': bucket.resetSeconds,
  });
  return bucket.allowed ? undefined : rateLimited(bucket.retryAfter, messageOf(caller));
}
