import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';

const SWEEP_MS = 1_000;

interface SlowSenderOptions {
  /** Within this time a body must have arrived; of a file, some bytes must arrive in each such time. */
  timeoutMs: number;
}

interface BodyProgress {
  isFile: boolean;
  /** Bytes of the connection at the last check at which there were new ones. */
  bytes: number;
  since: number;
}

/** The longest time that a request may take to arrive, with its file. */
export const UPLOAD_TIMEOUT_MS = 3_600_000;

/**
 * Ends requests whose body arrives too slowly, with 408. Node has one limit for all requests, and that is the one for
 * files, which take longer than other bodies.
 */
export function cutOffSlowSenders(server: FastifyInstance, { timeoutMs }: SlowSenderOptions): void {
  const sending = new Map<IncomingMessage, BodyProgress>();
  server.addHook('onRequest', (request, _reply, done) => {
    const { raw } = request;
    const hasBody = raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0;
    // what is injected has no connection
    if (hasBody && (raw.socket as { bytesRead?: number }).bytesRead !== undefined) {
      const isFile = request.routeOptions.config.takesFile ?? false;
      sending.set(raw, { isFile, bytes: raw.socket.bytesRead, since: Date.now() });
      raw.once('close', () => sending.delete(raw));
    }
    done();
  });
  const sweep = () => {
    const now = Date.now();
    for (const [request, state] of sending) {
      if (request.complete) sending.delete(request);
      else if (state.isFile && request.socket.bytesRead !== state.bytes) {
        state.bytes = request.socket.bytesRead;
        state.since = now;
      } else if (now - state.since >= timeoutMs) cutOff(server, request);
    }
  };
  const timer = setInterval(sweep, Math.min(SWEEP_MS, timeoutMs / 2)).unref();
  server.addHook('onClose', async () => clearInterval(timer));
}

/** As Node itself does. */
function cutOff({ server }: FastifyInstance, { socket }: IncomingMessage): void {
  const error = Object.assign(new Error('the body arrives too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  server.emit('clientError', error, socket);
}
