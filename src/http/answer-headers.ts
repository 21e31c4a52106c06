import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import helmet from 'helmet';

/** What helmet sets on every answer. It is the same for all of them, so helmet is asked once. */
function securityHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  const protect = helmet({
    // pages set a policy of their own; JSON needs none
    contentSecurityPolicy: false,
    crossOriginResourcePolicy: { policy: 'cross-origin' },
  });
  const answer = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value;
    },
    removeHeader: () => undefined,
  };
  protect({} as IncomingMessage, answer as unknown as ServerResponse, () => undefined);
  return headers;
}

/**
 * Answers are the caller's alone, and some hold secrets: nothing between keeps them, unless the route says otherwise.
 * This holds for every request, not by its path: what a path means is known only to the router.
 */
export function addAnswerHeaders(server: FastifyInstance): void {
  const headers = { ...securityHeaders(), 'cache-control': 'no-store' };
  server.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
}
