import { once } from 'node:events';
import net from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { EventStreams } from '../../rest/events.ts';
import { Frame, type Frames } from '../../src/engine/live/frames.ts';
import { cutOffSlowReaders } from '../../src/http/connections.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

let app: TestApp;
let user: Person;
let port: number;
beforeAll(async () => {
  app = await startTestApp({ env: { WRITE_TIMEOUT_SECONDS: '1' } });
  user = await register(app);
  port = Number(new URL(await app.listen()).port);
});
afterAll(() => app.close());

const connections = () =>
  new Promise<number>((resolve) => app.server.server.getConnections((_, count) => resolve(count)));
const allGone = () => waitUntil(async () => (await connections()) === 0);

/** A client that asks, and then reads nothing. */
async function silent(request: string, at = port): Promise<net.Socket> {
  const socket = net.connect(at, '127.0.0.1').pause();
  socket.on('error', () => undefined); // it is cut off: that is what it is here for
  await once(socket, 'connect');
  socket.write(request);
  return socket;
}

const get = (path: string, headers: Record<string, string>) =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;

describe('a client that does not read', () => {
  it('is cut off, and forty of them leave nothing behind', async () => {
    let accepted = 0;
    app.server.server.on('connection', () => {
      accepted += 1;
    });
    const clients = await Promise.all(
      Array.from({ length: 40 }, () => silent(get('/graphql', { accept: 'text/html' }))),
    );
    await waitUntil(() => accepted === 40);
    await allGone();
    for (const client of clients) client.destroy();
    expect((await app.server.inject('/healthz')).statusCode).toBe(200);
  });

  it('is cut off on a WebSocket, and nothing more is read of it meanwhile', async () => {
    const socket = new WebSocket(`${app.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    await once(socket, 'open');
    socket.on('error', () => undefined);
    socket.send(JSON.stringify({ type: 'connection_init', payload: user.headers }));
    await once(socket, 'message');
    socket.pause();
    const payload = { query: '{ __schema { types { name description fields { name } } } }' };
    let sent = 0;
    // one after the other: a socket may hold twenty operations
    const ask = () => socket.send(JSON.stringify({ id: String(++sent), type: 'subscribe', payload }));
    const waiting = () =>
      Math.max(0, ...[...app.server.websocketServer.clients].map((client) => client.bufferedAmount));
    // no time passes until so much waits, and none is cut off
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    await waitUntil(() => {
      ask();
      return waiting() > 1_000_000;
    });
    vi.useRealTimers();
    let most = 0;
    await waitUntil(() => {
      most = Math.max(most, waiting());
      return app.server.websocketServer.clients.size === 0;
    });
    expect(most).toBeLessThan(2_000_000);
    socket.terminate();
  });
});

/** The connection of a client, as the server has it. */
type Sending = net.Socket & { _handle?: { writeQueueSize: number } | null };
const portOf = (server: FastifyInstance) => (server.server.address() as net.AddressInfo).port;

describe('a client that reads slowly', () => {
  it('gets all of its answer, although that takes many times the limit', async () => {
    const [limit, size] = [1_000, 20 * 1024 * 1024];
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const server = Fastify();
    cutOffSlowReaders(server, { timeoutMs: limit });
    server.get('/', (_request, reply) => reply.send(Buffer.alloc(size)));
    const accepted = once(server.server, 'connection') as Promise<[Sending]>;
    await server.listen({ host: '127.0.0.1', port: 0 });
    const socket = await silent(get('/', { connection: 'close' }), portOf(server));
    const [sending] = await accepted;
    const unsent = () => sending.writableLength + (sending._handle?.writeQueueSize ?? 0);
    const [begun, ended] = [Date.now(), once(socket, 'end')];
    let [length, before] = [0, unsent()];
    // it reads until some more could be sent to it, and pauses for as long as it may
    socket.on('data', (chunk) => {
      length += chunk.length;
      socket.pause();
      setImmediate(() => {
        if (unsent() !== before) vi.advanceTimersByTime(limit - 1);
        before = unsent();
        socket.resume();
      });
    });
    socket.resume();
    await ended;
    expect(length).toBeGreaterThan(size);
    expect(Date.now() - begun).toBeGreaterThan(3 * limit);
    await server.close();
  });
});

describe('an event stream', () => {
  it('lets go of its source when its client does not read', async () => {
    let isOver = false;
    const endless: Frames = {
      take: async () => new Frame({ data: { text: 'x'.repeat(60_000) } }, undefined),
      return: async () => {
        isOver = true;
      },
    };
    const server = Fastify();
    cutOffSlowReaders(server, { timeoutMs: 400 });
    const streams = new EventStreams();
    server.get('/', (_request, reply) =>
      streams.send(reply, endless, {
        status: 200,
        bytesOf: ({ text }) => Buffer.from(text),
        farewell: () => Buffer.alloc(0),
        onFault: () => undefined,
      }),
    );
    await server.listen({ host: '127.0.0.1', port: 0 });
    const client = await silent(get('/', {}), portOf(server));
    await waitUntil(() => isOver);
    client.destroy();
    await server.close();
  });
});

describe('a connection that asks on without an answer', () => {
  it('is cut off, and others are heard', async () => {
    const socket = await silent(get('/graphql', { accept: 'text/html' }).repeat(40));
    const closed = once(socket, 'close');
    socket.resume();
    await closed;
    expect((await fetch(`${app.url}/healthz`)).status).toBe(200);
  });

  it('may send a few requests ahead, and reads their answers in order', async () => {
    const socket = await silent(get('/healthz', {}).repeat(8) + get('/healthz', { connection: 'close' }));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += String(chunk);
    });
    const ended = once(socket, 'end');
    socket.resume();
    await ended;
    expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(9);
  });
});

describe('when too much waits in all', () => {
  it('whoever leaves the most goes first, and as few as possible', async () => {
    const server = Fastify();
    const MIB = 1024 * 1024;
    cutOffSlowReaders(server, { timeoutMs: 60_000, maxUnreadBytes: 40 * MIB });
    server.get('/:size', (request, reply) =>
      reply.send(Buffer.alloc(Number((request.params as { size: string }).size) * MIB)),
    );
    await server.listen({ host: '127.0.0.1', port: 0 });
    const at = portOf(server);
    let accepted = 0;
    server.server.on('connection', () => {
      accepted += 1;
    });
    const small = await Promise.all([1, 2].map(() => silent(get('/16', {}), at)));
    const large = await silent(get('/64', {}), at);
    const cut = new Promise<void>((resolve) => large.once('close', () => resolve()));
    const open = () => new Promise<number>((resolve) => server.server.getConnections((_, count) => resolve(count)));
    await waitUntil(async () => accepted === 3 && (await open()) === 2);
    large.resume();
    await cut;
    for (const client of small) expect(client.destroyed).toBe(false);
    for (const client of small) client.destroy();
    await server.close();
  });
});
