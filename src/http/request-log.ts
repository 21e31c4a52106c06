import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../platform/logger.ts';

/** Paths that contain a token, or none that matters, are shown in short. */
const shownPath = (path: string): string => /^\/(?:account|files\/uploads)\/(?=.)/.exec(path)?.[0].concat('…') ?? path;

/**
 * One line per answered request, with its trace id: changes and failures at `info`, successful reads at `debug`. Only
 * the path is logged, never the query, headers or bodies: they may contain tokens.
 */
export function addRequestLog(server: FastifyInstance, logger: Logger): void {
  const log = (request: FastifyRequest, reply: FastifyReply): void => {
    const { caller } = request;
    if (!caller) return; // refused before it was parsed, and answered in the documented shape
    const { statusCode } = reply;
    const level =
      statusCode >= 500
        ? 'warn'
        : statusCode >= 400 || (request.method !== 'GET' && request.method !== 'HEAD')
          ? 'info'
          : 'debug';
    if (!logger.isLevelEnabled(level)) return; // a line that is not logged must cost nothing
    request.log[level](
      {
        method: request.method,
        path: shownPath(caller.request.path),
        status: statusCode,
        duration_ms: Math.round(reply.elapsedTime * 10) / 10,
        user_id: caller.principal?.userId,
        ...(reply.errorCode ? { error: reply.errorCode } : {}),
      },
      'request',
    );
  };
  server.addHook('onResponse', (request, reply, done) => {
    log(request, reply);
    done();
  });
}
