import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the range from which systems give ports to connections, and to programs that ask for any (Linux from 32768,
 * others from 49152): a port that is free now is still free when it is used.
 */
const FIRST = 20_000;
const COUNT = 12_000;

let next = randomInt(COUNT);

/** A port that nobody listens on. No two of a process are the same. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + (next++ % COUNT);
    if (await isFree(port)) return port;
  }
  throw new Error(`All ports from ${FIRST} on are taken.`);
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
      .once('error', () => resolve(false))
      .listen(port, () => server.close(() => resolve(true)));
  });
