import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import helmet from 'helmet';

/** The headers that helmet sets on every response. They never differ, so helmet is called only once. */
function securityHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  const protect = helmet({
    // pages set their own policy; JSON needs none
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
 * Responses are for the caller only, and some contain secrets: no cache may store them, unless the route says
 * otherwise. This applies to every request, not by path: only the router knows what a path means.
 */
export function addAnswerHeaders(server: FastifyInstance): void {
  const headers = { ...securityHeaders(), 'cache-control': 'no-store' };
  server.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
}
