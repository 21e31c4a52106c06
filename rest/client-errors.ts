import type { Socket } from 'node:net';
import type { ConnectionError, FastifyInstance } from 'fastify';
import { answerUnrouted, errorBody } from './errors.ts';
import { writeAnswer } from './raw-answer.ts';

const known: Record<string, [status: number, reason: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'headers_too_large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request_timeout'],
};

/** The start of a request, as far as it tells what is asked of which path. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) (\S{1,8192}) HTTP\/1\.[01]\r?\n/;

/** For the Fastify constructor: answers what is no HTTP request at all in the shape of every other error. */
export function clientErrorHandler(this: FastifyInstance, error: ConnectionError, socket: Socket): void {
  // nobody is there to read an answer
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const [, method, url] = (error.code === 'HPE_INVALID_METHOD' && REQUEST_LINE.exec(textOf(error))) || [];
  const [status, reason] = known[error.code ?? ''] ?? [400, 'malformed_http'];
  const malformed = { status, headers: {}, body: errorBody('INVALID_REQUEST', undefined, { reason }, status) };
  writeAnswer(socket, (method && url && answerUnrouted(this, { method, url })) || malformed);
}

/** The bytes that could not be read; the framework's type says what they look like as JSON. */
const textOf = ({ rawPacket }: ConnectionError): string =>
  Buffer.from(rawPacket as unknown as Uint8Array).toString('latin1');
