import type { Socket } from 'node:net';
import type { ConnectionError, FastifyInstance } from 'fastify';
import { answerUnrouted, errorBody } from './errors.ts';
import { writeAnswer } from './raw-answer.ts';

const known: Record<string, [status: number, reason: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request_timeout'],
};

/** The start of a request: its method and path. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) (\S{1,8192}) HTTP\/1\.[01]\r?\n/;

/** For the Fastify constructor: answers malformed HTTP in the same shape as every other error. */
export function clientErrorHandler(this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  // no client is left to read an answer
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [, method, url] = (error.code === 'HPE_INVALID_METHOD' && REQUEST_LINE.exec(textOf(error))) || [];
  const [status, reason] = known[error.code ?? ''] ?? [400, 'malformed_http'];
  const malformed = { status, headers: {}, body: errorBody('INVALID_REQUEST', undefined, { reason }, status) };
  writeAnswer(socket, (method && url && answerUnrouted(this, { method, url })) || malformed);
}

/** The bytes that could not be parsed. The framework's type describes them as JSON, but they are a buffer. */
const textOf = ({ rawPacket }: ConnectionError): string =>
  Buffer.from(rawPacket as unknown as Uint8Array).toString('latin1');
