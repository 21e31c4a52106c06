import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

const SWEEP_MS = 100;

/**
 * While the server closes, ends the connections without a request. Node itself ends only connections that carried a
 * request before: a connection that a client has opened in advance would delay the shutdown until its timeout.
 */
export function endUnusedConnections(server: FastifyInstance): void {
  const open = new Set<Socket>();
  const busy = new Map<Socket, number>();
  const count = (socket: Socket, change: 1 | -1) => busy.set(socket, (busy.get(socket) ?? 0) + change);
  server.server
    .on('connection', (socket: Socket) => {
      open.add(socket);
      socket.once('close', () => {
        open.delete(socket);
        busy.delete(socket);
      });
    })
    .on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      count(socket, 1);
      response.once('close', () => open.has(socket) && count(socket, -1));
    })
    // a connection that became a WebSocket is closed by its own code
    .prependListener('upgrade', ({ socket }: IncomingMessage) => count(socket, 1));
  const sweep = () => {
    for (const socket of open) if (!busy.get(socket)) socket.destroy();
  };
  let timer: NodeJS.Timeout | undefined;
  server.addHook('preClose', async () => {
    timer = setInterval(sweep, SWEEP_MS);
  });
  // tells the client to send nothing more on a connection that is about to end
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (timer) reply.header('connection', 'close');
    done();
  });
  server.addHook('onClose', async () => clearInterval(timer));
}
