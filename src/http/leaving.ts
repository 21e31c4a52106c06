import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** How a node goes: before it takes no more, it lets proxies know. */
export interface Leaving {
  readonly hasBegun: boolean;
  /** Goes on answering for so long. Proxies learn from `/readyz`, and send no second request over a connection. */
  begin(seconds: number): Promise<void>;
}

/** Adds to answers of a server that is about to close that their connection ends. */
export function addLeaving(server: FastifyInstance): Leaving {
  let hasBegun = false;
  server.addHook('preClose', async () => {
    hasBegun = true;
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
