import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** A turn of the event loop that is no longer took in all connections that wait, and none since. */
const SHORT_TURN_MS = 0.3;
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
    await untilQuiet();
    // what is under way goes on, and Fastify waits for it
    if (server.server.listening) server.server.close();
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

/**
 * Resolves right after a short turn of the event loop. A connection that waits in the queue of the listening socket
 * when that is closed would be reset, and a proxy could not know whether its request was read.
 */
async function untilQuiet(): Promise<void> {
  for (let turns = 0; turns < MOST_TURNS; turns++) {
    const began = performance.now();
    await turn();
    if (performance.now() - began < SHORT_TURN_MS) return;
  }
}
