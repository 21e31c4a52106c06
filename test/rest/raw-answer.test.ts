import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { writeAnswer } from '../../rest/raw-answer.ts';

describe('an answer to a connection without a request', () => {
  it('is a whole HTTP response, after which the connection ends', async () => {
    const socket = new PassThrough();
    writeAnswer(socket, { status: 431, headers: { 'x-request-id': '1' }, body: { message: 'é' } } as never);
    expect(await text(socket)).toBe(
      'HTTP/1.1 431 Request Header Fields Too Large\r\n' +
        'content-type: application/json; charset=utf-8\r\ncontent-length: 16\r\nconnection: close\r\n' +
        'x-request-id: 1\r\n\r\n{"message":"é"}',
    );
    expect(socket.writableEnded).toBe(true);
  });

  it('of a status without a name has none', async () => {
    const socket = new PassThrough();
    writeAnswer(socket, { status: 599, headers: {}, body: {} } as never);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 599 \r\n/);
  });

  it('is not written where nobody can read it: the connection closes without an error', async () => {
    const socket = new PassThrough();
    socket.end();
    const closed = once(socket, 'close');
    writeAnswer(socket, { status: 400, headers: {}, body: {} } as never);
    await closed;
    expect(socket.destroyed).toBe(true);
  });
});
