// The lowest possible cost of streams: a loop that writes the same bytes to every WebSocket or SSE connection.
import type { ServerResponse } from 'node:http';
import websocket from '@fastify/websocket';
import Fastify from 'fastify';
import type { WebSocket } from 'ws';
import { serve } from './common.ts';

const server = Fastify();
await server.register(websocket, { options: { perMessageDeflate: false } });
const sockets = new Set<WebSocket>();
const responses = new Set<ServerResponse>();

server.get('/websocket', { websocket: true }, (socket) => {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
});
server.get('/sse', (_request, reply) => {
  reply.hijack();
  reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
  reply.raw.write(':\n\n');
  responses.add(reply.raw);
  reply.raw.once('close', () => responses.delete(reply.raw));
});
server.post<{ Body: { text: string } }>('/event', (request) => {
  const { text } = request.body;
  for (const socket of sockets) socket.send(text);
  for (const response of responses) response.write(text);
  return { streams: sockets.size + responses.size };
});
await serve(server);
