import { once } from 'node:events';
import net from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { clientErrorHandler } from '../../rest/client-errors.ts';
import { cutOffSlowSenders } from '../../src/http/connections.ts';
import { waitUntil } from '../support/wait.ts';

const TIMEOUT_MS = 300;
let server: FastifyInstance;
let port: number;
beforeEach(async () => {
  // time passes only when a test says so
  vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] });
  server = Fastify({ clientErrorHandler });
  cutOffSlowSenders(server, { timeoutMs: TIMEOUT_MS });
  server.addContentTypeParser('*', async (_request: unknown, payload: AsyncIterable<Buffer>) => {
    let bytes = 0;
    for await (const chunk of payload) bytes += chunk.length;
    return bytes;
  });
  server.post('/json', async ({ body }) => ({ bytes: body }));
  server.post('/file', { config: { takesFile: true } }, async ({ body }) => ({ bytes: body }));
  port = Number(new URL(await server.listen({ host: '127.0.0.1', port: 0 })).port);
});
afterEach(async () => {
  vi.useRealTimers();
  await server.close();
});

/** A request whose body is sent byte by byte. */
interface Sender {
  /** Resolves when the server has the byte, unless it has cut the sender off. */
  sendByte(): Promise<void>;
  /** What was answered, once the connection is closed. */
  answered: Promise<string>;
}

async function open(path: string, bytes: number): Promise<Sender> {
  const accepted = once(server.server, 'connection') as Promise<[net.Socket]>;
  const socket = net.connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
    if (answer.includes('}')) socket.end();
  });
  socket.on('error', () => undefined); // it is cut off while it sends
  const [received] = await accepted;
  const send = async (text: string) => {
    if (socket.writable) socket.write(text);
    await waitUntil(() => received.destroyed || received.bytesRead === socket.bytesWritten);
  };
  await send(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\ncontent-length: ${bytes}\r\n\r\n`);
  return { sendByte: () => send('x'), answered: once(socket, 'close').then(() => answer) };
}

test('a body must have arrived in time, a file must only keep arriving', async () => {
  const slow = await open('/json', 20);
  const file = await open('/file', 20);
  const quick = await open('/json', 2);
  for (let sent = 0; sent < 20; sent++) {
    for (const sender of sent < 2 ? [slow, file, quick] : [slow, file]) await sender.sendByte();
    vi.advanceTimersByTime(TIMEOUT_MS / 2);
  }
  expect(await slow.answered).toMatch(/^HTTP\/1\.1 408 /);
  expect(await file.answered).toContain('{"bytes":20}');
  expect(await quick.answered).toContain('{"bytes":2}');
});

test('a file that stops arriving is not waited for', async () => {
  const file = await open('/file', 20);
  for (let sent = 0; sent < 3; sent++) await file.sendByte();
  vi.advanceTimersByTime(2 * TIMEOUT_MS);
  expect(await file.answered).toMatch(/^HTTP\/1\.1 408 /);
});
