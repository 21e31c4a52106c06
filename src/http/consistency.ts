import type { FastifyInstance } from 'fastify';
import type { ReplicaReads } from '../data/replica-reads.ts';

/** By which an answer says what it wrote, and a later request that its reads must see it. */
export const CONSISTENCY_HEADER = 'x-consistency';

/** Says in the answer of each request that changed something what later reads have to see. */
export function addConsistency(server: FastifyInstance, replicaReads: ReplicaReads): void {
  server.addHook('onSend', (request, reply, payload, done) => {
    const position = replicaReads.headerOf(request.caller.request);
    if (position !== null) reply.header(CONSISTENCY_HEADER, position);
    done(null, payload);
  });
}
