import type { FastifyInstance } from 'fastify';

/** RFC 6455: the server goes away. */
const GOING_AWAY = 1001;

/** Closes all sockets with the reason, because the service stops. Their streams have sent their last event before. */
export function closeSockets(this: FastifyInstance, done: () => void): void {
  // the last events of streams are sent by then
  setImmediate(() => {
    for (const client of this.websocketServer.clients) client.close(GOING_AWAY, 'shutdown');
    this.websocketServer.close(() => undefined);
    done();
  });
}
