import type { FastifyInstance } from 'fastify';

/** Serves the description of the event streams at `/asyncapi.json` to everybody: it is the same for all. */
export function addAsyncApi(server: FastifyInstance, document: object): void {
  const text = JSON.stringify(document);
  server.get('/asyncapi.json', { config: { isPublic: true } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text),
  );
}
