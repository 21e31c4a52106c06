import { Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** A turn of the event loop that is no longer has only looked for new connections. */
const SHORT_TURN_MS = 0.05;
const MOST_TURNS = 1_000;

/**
 * Closes the listening socket, and nothing else. HTTP's own `close` looks for idle connections first, while new ones
 * come: it does so later, when Fastify calls it.
 */
const closeSocket = (server: Server): void => void Server.prototype.close.call(server);

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
    if (server.server.listening) await closeWhenQuiet(server.server);
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
 * Closes the listening socket right after a short turn of the event loop that has found no new connection: a turn takes
 * in one. A connection that waits in the queue of the socket when that is closed is reset, and a proxy cannot know
 * whether its request was read. Between the last look for new connections and the close stands as little as can be, and
 * nothing that runs for the first time.
 */
function closeWhenQuiet(server: Server): Promise<void> {
  return new Promise((resolve) => {
    let [taken, before, turns] = [0, 0, 0];
    let began = 0;
    const take = () => taken++;
    const look = () => {
      const now = performance.now();
      const isQuiet = taken === before && now - began < SHORT_TURN_MS;
      if (isQuiet || ++turns === MOST_TURNS) {
        closeSocket(server);
        server.off('connection', take);
        resolve();
        return;
      }
      [before, began] = [taken, now];
      setImmediate(look);
    };
    closeSocket(new Server()); // compiles it
    server.on('connection', take);
    // the rest of this turn may look for nothing: the first that counts is the next
    setImmediate(() => {
      began = performance.now();
      setImmediate(look);
    });
  });
}
