// The lowest possible cost of streams: a loop that writes the same bytes to every WebSocket or SSE connection. Not
// TypeScript: what compiles it would use memory, and release it while that of the streams is measured.
import websocket from '@fastify/websocket';
import Fastify from 'fastify';

const server = Fastify();
await server.register(websocket, { options: { perMessageDeflate: false } });
/** @type {Set<import('ws').WebSocket>} */
const sockets = new Set();
/** @type {Set<import('node:http').ServerResponse>} */
const responses = new Set();

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
server.post('/event', (request) => {
  const { text } = /** @type {{ text: string }} */ (request.body);
  for (const socket of sockets) socket.send(text);
  for (const response of responses) response.write(text);
  return { streams: sockets.size + responses.size };
});
console.log(`listening ${await server.listen({ host: '127.0.0.1', port: 0 })}`);
process.once('SIGTERM', () => process.exit());
