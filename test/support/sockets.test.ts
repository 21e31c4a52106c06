import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { INITIALISED_LATE, openAcknowledged } from './sockets.ts';

/** A server that answers the first message of each socket in turn: with a code it closes, with `null` it lets in. */
async function serverThat(answers: (number | null)[]): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => server.close());
  server.on('connection', (socket) =>
    socket.once('message', () => {
      const code = answers.shift();
      if (code) socket.close(code);
      else socket.send(JSON.stringify({ type: 'connection_ack' }));
    }),
  );
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('fails as soon as a socket is closed that was not let in', async () => {
  const url = await serverThat([1013]);
  await expect(openAcknowledged(url, 'Bearer x')).rejects.toThrow(
    'The socket was not let in, among []; closed with 1013',
  );
});

it('tries again where the first message came too late', async () => {
  const socket = await openAcknowledged(await serverThat([INITIALISED_LATE, null]), 'Bearer x');
  expect(socket.code).toBeNull();
  socket.close();
});
