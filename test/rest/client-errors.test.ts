import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import Fastify, { type ConnectionError, type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientErrorHandler } from '../../rest/client-errors.ts';
import { registerErrorShapes } from '../../rest/errors.ts';

let server: FastifyInstance;
beforeAll(async () => {
  server = Fastify();
  registerErrorShapes(server, { onFault: () => undefined });
  server.get('/v1/items/:id', async () => null);
  await server.ready();
});
afterAll(async () => server.close());

/** What a connection gets whose bytes Node's parser refused with a code. */
async function answerTo(code: string | undefined, bytes: string | Buffer = '') {
  const socket = new PassThrough();
  const error = Object.assign(new Error('Parse Error'), { code, rawPacket: Buffer.from(bytes) });
  clientErrorHandler.call(server, error as unknown as ConnectionError, socket as unknown as Socket);
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
  const { error: name, details, status_code } = JSON.parse(body) as Record<string, unknown>;
  return { status: Number(head.split(' ')[1]), allow: /^allow: (.*)$/m.exec(head)?.[1], name, details, status_code };
}
const refused = (status: number, reason: string) => ({
  status,
  allow: undefined,
  name: 'INVALID_REQUEST',
  details: { reason },
  status_code: status,
});
const malformed = refused(400, 'malformed_http');

describe('bytes that are no HTTP', () => {
  it.each([
    ['HPE_HEADER_OVERFLOW', refused(431, 'headers_too_large')],
    ['ERR_HTTP_REQUEST_TIMEOUT', refused(408, 'request_timeout')],
    ['HPE_INVALID_CONSTANT', malformed],
    [undefined, malformed],
  ])('are answered by what the parser says of them: %s', async (code, answer) => {
    expect(await answerTo(code, 'GET /v1/items/1 HTTP/1.1\r\n')).toEqual(answer);
  });
});

describe('a method that the parser does not know', () => {
  const unknown = (bytes: string | Buffer) => answerTo('HPE_INVALID_METHOD', bytes);

  it.each(['FROB', 'X', "a!#$%&'*+.^_`|~-09Z", 'M'.repeat(64)])(
    'is not allowed on a known path: %s',
    async (method) => {
      expect(await unknown(`${method} /v1/items/1 HTTP/1.1\r\nhost: x\r\n\r\n`)).toEqual({
        status: 405,
        allow: 'GET, HEAD',
        name: 'METHOD_NOT_ALLOWED',
        details: { allowed: ['GET', 'HEAD'] },
        status_code: 405,
      });
    },
  );

  it.each(['FROB /v1/items/1 HTTP/1.0\r\n', 'FROB /v1/items/1?a=b HTTP/1.1\n'])(
    'whatever the line ends with: %j',
    async (line) => {
      expect((await unknown(line)).status).toBe(405);
    },
  );

  it('finds no route on another path', async () => {
    expect(await unknown('FROB /v1/other?secret=1 HTTP/1.1\r\n')).toEqual({
      status: 404,
      allow: undefined,
      name: 'RESOURCE_NOT_FOUND',
      details: { resource_type: 'route', resource_id: 'FROB /v1/other' },
      status_code: 404,
    });
    const long = `/${'x'.repeat(8_191)}`;
    expect((await unknown(`FROB ${long} HTTP/1.1\r\n`)).status).toBe(404);
    expect((await unknown(Buffer.from('FROB /v1/\xe9 HTTP/1.1\r\n', 'latin1'))).details).toEqual({
      resource_type: 'route',
      resource_id: 'FROB /v1/é',
    });
  });

  it.each([
    '',
    'FROB\r\n',
    'FROB /v1/items/1\r\n',
    'FROB /v1/items/1 HTTP/2.0\r\n',
    'FROB /v1/items/1 HTTP/1.2\r\n',
    'FROB /v1/items/1 HTTP/1.1',
    'FROB /v1/items/1 HTTP/1.1\rx',
    'FROB  /v1/items/1 HTTP/1.1\r\n',
    ' FROB /v1/items/1 HTTP/1.1\r\n',
    '\r\nFROB /v1/items/1 HTTP/1.1\r\n',
    'FR(OB /v1/items/1 HTTP/1.1\r\n',
    'FRÖB /v1/items/1 HTTP/1.1\r\n',
  ])('is malformed where its line is none: %j', async (line) => {
    expect(await unknown(line)).toEqual(malformed);
  });

  it('is malformed where its line is too long to be one', async () => {
    for (const line of [`${'M'.repeat(65)} /v1/items/1`, `FROB /${'x'.repeat(8_192)}`])
      expect(await unknown(`${line} HTTP/1.1\r\n`)).toEqual(malformed);
  });
});

describe('a connection that nobody reads', () => {
  it('gets no answer', async () => {
    const reset = new PassThrough();
    const error = (code: string) =>
      Object.assign(new Error('x'), { code, rawPacket: Buffer.alloc(0) }) as unknown as ConnectionError;
    clientErrorHandler.call(server, error('ECONNRESET'), reset as unknown as Socket);
    expect([reset.writableEnded, reset.readableLength]).toEqual([false, 0]);
    const gone = new PassThrough();
    gone.destroy();
    clientErrorHandler.call(server, error('HPE_INVALID_CONSTANT'), gone as unknown as Socket);
    expect([gone.writableEnded, gone.readableLength]).toEqual([false, 0]);
  });
});
