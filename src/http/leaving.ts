import { createServer } from 'node:http';
import type { Server } from 'node:net';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** A turn of the event loop that is no longer has only looked for new connections. */
const SHORT_TURN_MS = 0.1;
const MOST_TURNS = 1_000;

/** How a node goes: before it takes no more, it lets proxies know. */
export interface Leaving {
  readonly hasBegun: boolean;
  /** Goes on answering for so long. Proxies learn from `/readyz`, and send no second request over a connection. */
  begin(seconds: number): Promise<void>;
}

/**
 * Makes a server close in an order that loses nothing: it refuses connections first, and only then ends streams and
 * sockets, whose clients come back at once and are to reach another node. Answers that are sent meanwhile say that
 * their connection ends. To be called before anything else has a `preClose`.
 */
export function addLeaving(server: FastifyInstance): Leaving {
  let hasBegun = false;
  server.addHook('preClose', async () => {
    hasBegun = true;
    warmUp();
    await untilQuiet(server.server);
    // What is under way goes on, and Fastify waits for it. HTTP's own `close` looks for idle connections first, while
    // new ones come: it does so later, when Fastify calls it.
    if (server.server.listening) closeSocket(server.server);
  });
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (hasBegun) reply.header('connection', 'close');
    done();
  });
  return {
    get hasBegun() {
      return hasBegun;
    },
    async begin(seconds) {
      hasBegun = true;
      await delay(seconds * 1_000);
    },
  };
}

/** Closes a server that never listened, so that the real close need not be compiled while connections come. */
function warmUp(): void {
  closeSocket(createServer());
}

/** `close` of the class of servers that HTTP's extends. */
function closeSocket(server: Server): void {
  const ofSockets = Object.getPrototypeOf(Object.getPrototypeOf(server)) as Server;
  ofSockets.close.call(server);
}

/**
 * Resolves right after a short turn of the event loop that has found no new connection: a turn takes in one. A
 * connection that waits in the queue of the listening socket when that is closed would be reset, and a proxy could not
 * know whether its request was read.
 */
async function untilQuiet(server: Server): Promise<void> {
  let taken = 0;
  const take = () => taken++;
  server.on('connection', take);
  for (let turns = 0; turns < MOST_TURNS; turns++) {
    const [began, before] = [performance.now(), taken];
    await turn();
    if (taken === before && performance.now() - began < SHORT_TURN_MS) break;
  }
  server.off('connection', take);
}
