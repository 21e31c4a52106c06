import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { errorBody } from './errors.ts';

const known: Record<string, [status: number, reason: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request_timeout'],
};

/** For the Fastify constructor: answers what is no HTTP request at all in the shape of every other error. */
export function clientErrorHandler(error: NodeJS.ErrnoException, socket: Socket): void {
  // nobody is there to read an answer
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [status, reason] = known[error.code ?? ''] ?? [400, 'malformed_http'];
  const body = JSON.stringify(errorBody('INVALID_REQUEST', undefined, { reason }, status));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ].join('\r\n');
  if (socket.writable) socket.end(`${head}\r\n\r\n${body}`);
  else socket.destroy(error);
}
