import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { freePort } from './free-port.ts';

it('gives a port that nobody listens on, and that the system gives to nobody by itself', async () => {
  const taken = (await freePort()) + 1;
  const server = createServer().listen(taken, '127.0.0.1');
  await once(server, 'listening');
  const port = await freePort();
  expect(port).not.toBe(taken);
  expect(port).toBeLessThan(32_768);
  server.close();
});
