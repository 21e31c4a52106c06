import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { ExecutionResult } from 'graphql';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { frameOf } from '../../rest/events.ts';
import { Frame } from '../../src/engine/live/frames.ts';
import { type SentStream, sendFrames } from '../../src/engine/live/send-frames.ts';
import { forbidden, invalidInput } from '../../src/kernel/errors.ts';
import type { ToyServer } from './toy.ts';
import { removeFolders, toyServer } from './toy.ts';

const documents = `
  subscription Stream($item_id: ID!, $last: Int, $after: String @lastEventId)
    @rest(method: GET, path: "/v1/items/{item_id}/stream") {
    events(itemId: $item_id, last: $last, after: $after) @body { id type itemId data cursor @eventId }
  }
`;

/** A source under the control of the test. */
class Source implements AsyncGenerator<unknown, void, void> {
  readonly #waiting: ((step: IteratorResult<unknown, void>) => void)[] = [];
  pulled = 0;
  #end: () => void = () => undefined;
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  async next(): Promise<IteratorResult<unknown, void>> {
    this.pulled += 1;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
  async return(): Promise<IteratorResult<unknown, void>> {
    this.#end();
    return { done: true, value: undefined };
  }
  async throw(error: unknown): Promise<never> {
    throw error;
  }
  emit(step: IteratorResult<unknown, void>): void {
    this.#waiting.shift()?.(step);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
  [Symbol.asyncIterator](): this {
    return this;
  }
}

let toy: ToyServer | undefined;
afterEach(async () => {
  const closed = toy?.server.close();
  toy?.server.server.closeAllConnections(); // the client opens one in advance for what it might ask next
  await closed;
  toy = undefined;
  removeFolders();
});

async function listen(subscribe: () => AsyncGenerator<unknown> | Source): Promise<string> {
  toy = await toyServer(documents, { subscribe });
  await toy.server.listen({ port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${(toy.server.server.address() as AddressInfo).port}/v1/items/i1/stream`;
}
const headers = { authorization: 'me' };

describe('an event stream', () => {
  it('sends the events of the subscription with their names and ids, and ends with the subscription', async () => {
    const url = await listen(async function* () {
      yield { id: '1', cursor: '7-1', type: 'item.created', itemId: 'i1', data: { aB: 1 } };
      yield { id: '2', cursor: null, type: 'item.deleted', itemId: null, data: null };
    });
    const answer = await fetch(url, { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-cache, no-transform');
    expect(answer.headers.get('x-accel-buffering')).toBe('no');
    expect(await answer.text()).toBe(
      'retry: 3000\n\n' +
        'id: 7-1\nevent: item.created\ndata: {"id":"1","type":"item.created","item_id":"i1","data":{"aB":1}}\n\n' +
        'event: item.deleted\ndata: {"id":"2","type":"item.deleted","item_id":null,"data":null}\n\n',
    );
  });

  it('resumes where the client says that it was', async () => {
    const seen: unknown[] = [];
    const url = await listen(async function* (_root: unknown, args: unknown) {
      yield { id: '1', type: 'item.created' };
      seen.push(args);
    } as () => AsyncGenerator<unknown>);
    await (await fetch(url, { headers: { ...headers, 'last-event-id': '7-1' } })).text();
    await (await fetch(`${url}?after=8-1&last=3`, { headers })).text();
    expect(seen).toEqual([
      { itemId: 'i1', after: '7-1' },
      { itemId: 'i1', last: 3 },
    ]);
  });

  it('says at the header that nothing can be resumed from its value', async () => {
    await listen(() => {
      throw invalidInput(['after'], 'this is not the cursor of an event');
    });
    expect(await toy?.send({ url: '/v1/items/i1/stream', headers: { 'last-event-id': 'x' } })).toMatchObject({
      status: 422,
      body: {
        detail: [
          {
            type: 'value_error',
            loc: ['header', 'last-event-id'],
            input: 'x',
            msg: expect.stringContaining('cursor') as string,
          },
        ],
      },
    });
  });

  it('closes its source as soon as the client disconnects', async () => {
    const source = new Source();
    const url = await listen(() => source);
    const client = new AbortController();
    const answer = await fetch(url, { headers, signal: client.signal });
    expect(answer.status).toBe(200);
    client.abort();
    await source.ended;
  });

  it('ends in good order when the server closes', async () => {
    const source = new Source();
    const url = await listen(() => source);
    const answer = await fetch(url, { headers });
    const text = answer.text();
    await toy?.server.close();
    expect(await text).toBe('retry: 3000\n\n');
    await source.ended;
  });

  it('lets a source that knows of the shutdown send its closing event', async () => {
    const source = new Source();
    const url = await listen(() => source);
    const text = (await fetch(url, { headers })).text();
    const closing = toy?.server.close();
    source.emit({ done: false, value: { id: '9', cursor: '9-9', type: 'stream.closing' } });
    await new Promise(setImmediate);
    source.emit({ done: true, value: undefined });
    await closing;
    expect(await text).toContain('id: 9-9\nevent: stream.closing\n');
  });

  it('answers errors before the first byte like any other operation', async () => {
    await listen(() => {
      throw forbidden('sync:subscribe');
    });
    expect(await toy?.get('/v1/items/i1/stream')).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', details: { required_permission: 'sync:subscribe' } },
    });
    expect(await toy?.send({ url: '/v1/items/i1/stream', as: null })).toMatchObject({ status: 401 });
    expect(await toy?.send({ url: '/v1/items/i1/stream?last=x' })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['query', 'last'] }] },
    });
    expect(await toy?.send({ method: 'HEAD', url: '/v1/items/i1/stream' })).toMatchObject({ status: 405 });
  });

  it('says masked what went wrong after it, and reports it', async () => {
    const url = await listen(async function* () {
      yield { id: '1', type: 'a' };
      throw new Error('secret');
    });
    const text = await (await fetch(url, { headers })).text();
    expect(text).toMatch(
      /data: {"id":"1".*\n\nevent: error\ndata: {"error":"INTERNAL_SERVER_ERROR",.*"details":{}.*}\n\n$/s,
    );
    expect(text).not.toContain('secret');
    expect(toy?.faults).toHaveLength(1);
  });
});

describe.each([
  ['written straight to the connection', false],
  ['written by Node', true],
])('a response of frames, %s', (_way, isPlain) => {
  const sent: SentStream = {
    isPlain,
    status: 200,
    headers: {},
    beginning: Buffer.from('begin\n'),
    ping: Buffer.from('ping\n'),
    end: Buffer.from('end\n'),
    bytesOf: ({ text }) => Buffer.from(text),
    farewell: () => null,
    onFault: () => undefined,
  };
  const framed = (source: Source) => ({
    take: async () => {
      const { done, value } = await source.next();
      return done ? null : new Frame(value as ExecutionResult, undefined);
    },
    return: () => source.return(),
  });
  /** A response, and what takes its bytes: all of them, or none after the beginning. */
  const responseTo = (takes: (text: string) => boolean) => {
    let text = '';
    const client = new Writable({
      highWaterMark: 1024 * 1024,
      write(chunk: Buffer, _encoding, done) {
        text += String(chunk);
        if (takes(text)) done();
      },
    });
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    return { response, connect: () => response.assignSocket(client as Socket), text: () => text };
  };

  it('asks for no more than the client takes', async () => {
    const source = new Source();
    const { response, connect, text } = responseTo(() => true);
    sendFrames(response, framed(source), sent);
    const big = { done: false, value: { data: 'x'.repeat(70_000) } } as const;
    for (let i = 0; i < 5; i++) {
      source.emit(big);
      await new Promise(setImmediate);
    }
    expect(source.pulled).toBe(1);
    connect();
    await new Promise(setImmediate);
    expect(source.pulled).toBe(2);
    source.emit({ done: true, value: undefined });
    await new Promise(setImmediate);
    expect([text().includes('begin\n'), text().includes(big.value.data), text().includes('end\n')]).toEqual(
      Array(3).fill(true),
    );
    response.destroy();
    await source.ended;
  });

  it('pings an idle client every 15 seconds, but not one that does not read', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { response, connect, text } = responseTo((all) => !all.includes('ping'));
      const onClose = vi.fn();
      connect();
      sendFrames(response, framed(new Source()), { ...sent, onClose });
      await new Promise(setImmediate);
      vi.advanceTimersByTime(14_999);
      await new Promise(setImmediate);
      expect(text()).not.toContain('ping');
      for (let seconds = 0; seconds < 60; seconds++) {
        vi.advanceTimersByTime(1_000);
        await new Promise(setImmediate);
      }
      expect(text().match(/ping/g)).toHaveLength(1);
      expect(response.writableLength).toBeLessThan(20);
      response.emit('close');
      expect([vi.getTimerCount(), onClose.mock.calls.length]).toEqual([0, 1]);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ['HTTP/1.1', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
    ['behind another request', 'GET /plain HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('has the bytes that Node would write, and is the last of its connection: %s', async (_what, request) => {
    const texts = ['first', 'größer', 'x'.repeat(70_000)];
    const server = createServer({ keepAliveTimeout: 0 }, ({ url }, response) => {
      response.sendDate = false;
      // while the next one waits
      if (url === '/plain') return void setImmediate(() => response.end('plain'));
      const frames = texts.map((data) => new Frame({ data: data as never }, undefined));
      sendFrames(response, { take: async () => frames.shift() ?? null, return: async () => undefined }, sent);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('utf8');
    socket.write(request);
    let got = '';
    for await (const text of socket) got += String(text);
    server.close();
    const isChunked = request.includes('HTTP/1.1');
    const parts = ['begin\n', ...texts.map((data) => JSON.stringify({ data })), 'end\n'];
    const body = isChunked
      ? [...parts, ''].map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`).join('')
      : parts.join('');
    expect(got.includes('\r\n\r\nplain')).toBe(request.includes('/plain'));
    expect(got.split('Connection: close\r\n')).toHaveLength(2);
    expect(got.split(body)).toHaveLength(2);
    expect(got.endsWith(body)).toBe(true);
  });

  it('closes the source of a client that has left already', async () => {
    const source = new Source();
    const server = createServer((_request, response) => {
      response.once('close', () => sendFrames(response, framed(source), sent));
      response.destroy();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await expect(fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).rejects.toThrow();
    await source.ended;
    expect(source.pulled).toBe(0);
    server.close();
  });
});

describe('a frame', () => {
  it('writes one frame per event, and no value can break out of its line', () => {
    expect(frameOf({ at: 'a\nevent: x', type: 'b\r\n', id: 1 }, 'at')).toBe(
      'id: a event: x\nevent: b  \ndata: {"type":"b\\r\\n","id":1}\n\n',
    );
    expect(frameOf({ id: 1 }, null)).toBe('data: {"id":1}\n\n');
    expect(frameOf('text', null)).toBe('data: "text"\n\n');
    expect(frameOf(null, 'id')).toBe('data: null\n\n');
  });
});
