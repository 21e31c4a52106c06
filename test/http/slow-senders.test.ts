import { once } from 'node:events';
import net from 'node:net';
import { setTimeout } from 'node:timers/promises';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clientErrorHandler } from '../../rest/client-errors.ts';
import { cutOffSlowSenders } from '../../src/http/slow-senders.ts';

const TIMEOUT_MS = 300;
let server: FastifyInstance;
let port: number;
beforeEach(async () => {
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
afterEach(() => server.close());

/** Sends a byte every 50 ms, or none after the head. @returns what was answered */
async function send(path: string, bytes: number, sends = bytes): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
    if (answer.includes('}')) socket.end();
  });
  socket.on('error', () => undefined); // it is cut off while it sends
  await once(socket, 'connect');
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: a/b\r\ncontent-length: ${bytes}\r\n\r\n`);
  const closed = once(socket, 'close');
  for (let sent = 0; sent < sends && !socket.destroyed; sent++) {
    await setTimeout(50);
    if (socket.writable) socket.write('x');
  }
  await closed;
  return answer;
}

test('a body must have arrived in time, a file must only keep arriving', async () => {
  const [slow, file, quick] = await Promise.all([send('/json', 20), send('/file', 20), send('/json', 2)]);
  expect(slow).toMatch(/^HTTP\/1\.1 408 /);
  expect(file).toContain('{"bytes":20}');
  expect(quick).toContain('{"bytes":2}');
});

test('a file that stops arriving is not waited for', async () => {
  expect(await send('/file', 20, 3)).toMatch(/^HTTP\/1\.1 408 /);
});
