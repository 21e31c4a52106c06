import type { FastifyInstance } from 'fastify';
import { CLIENT_DOCUMENT, ownClientAt } from '../tools/connections/own-client.ts';

/** Serves the document by which authorization servers of others know this service, which nobody has registered. */
export function addClientDocument(server: FastifyInstance, publicUrl: () => string): void {
  server.get(CLIENT_DOCUMENT, { exposeHeadRoute: false }, (_request, reply) =>
    reply.header('cache-control', 'public, max-age=3600').send(ownClientAt(publicUrl())),
  );
}
