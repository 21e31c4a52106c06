import type { FastifyInstance } from 'fastify';

/** Answers are the caller's alone, and some hold secrets: nothing between keeps them, unless the route says otherwise. */
export function addCacheControl(server: FastifyInstance): void {
  // for every request, not by its path: what a path means is known only to the router
  server.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
  });
}
