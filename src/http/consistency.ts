import type { FastifyInstance } from 'fastify';
import type { ReplicaReads } from '../data/replica-reads.ts';

/** By which an answer says what later reads have to see, and a later request that its reads must see it. */
export const CONSISTENCY_HEADER = 'x-consistency';

/** Says it in the answers to requests that changed something, or asked where events are. */
export function addConsistency(server: FastifyInstance, replicaReads: ReplicaReads): void {
  server.addHook('onSend', (request, reply, payload, done) => {
    const position = replicaReads.headerOf(request.caller.request);
    if (position !== null) reply.header(CONSISTENCY_HEADER, position);
    done(null, payload);
  });
}
