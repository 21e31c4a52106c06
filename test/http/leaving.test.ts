import { once } from 'node:events';
import net from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import Fastify from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { endUnusedConnections } from '../../src/http/connections.ts';
import { addLeaving } from '../../src/http/leaving.ts';
import { startOwnApp, type TestApp } from '../support/app.ts';
import { isRefused } from '../support/refused.ts';
import { waitUntil } from '../support/wait.ts';

const REQUEST = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n';

let app: TestApp;
let url: string;
beforeEach(async () => {
  app = await startOwnApp();
  url = await app.listen();
});
afterEach(async () => {
  vi.useRealTimers();
  await app.close();
});

/** Keeps the turns of the event loop long until the work is done, as those of a service that has much to do. */
async function whileBusy<T>(work: () => Promise<T>): Promise<T> {
  let isOver = false;
  const keepBusy = () => {
    for (const until = performance.now() + 1; performance.now() < until; );
    if (!isOver) setImmediate(keepBusy);
  };
  keepBusy();
  try {
    return await work();
  } finally {
    isOver = true;
  }
}

test('requests that arrive while the server has not closed yet are answered as any other', async () => {
  const paths = ['/v1/auth/config', '/v1/auth/me', `/graphql?query=${encodeURIComponent('{ __typename }')}`];
  let closed: Promise<unknown> | undefined;
  const answers = await whileBusy(async () => {
    closed = app.server.close();
    // once an answer says that its connection ends, the server is closing
    while ((await fetch(`${url}/healthz`)).headers.get('connection') !== 'close');
    return Promise.all(paths.map((path) => fetch(url + path)));
  });
  expect(answers.map(({ status, headers }) => [status, headers.get('connection')])).toEqual([
    [200, 'close'],
    [401, 'close'],
    [200, 'close'],
  ]);
  expect(await answers[1]!.json()).toMatchObject({ error: 'AUTHENTICATION_FAILED' });
  expect(await answers[2]!.json()).toEqual({ data: { __typename: 'Query' } });
  await closed;
  await expect(fetch(`${url}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});

test('connections that wait to be taken while the server closes are all answered', async () => {
  // none is ended for its late request
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const sockets = Array.from({ length: 100 }, () => net.connect(Number(new URL(url).port), '127.0.0.1'));
  // the system connects them in the next tick, and the process takes in one in each turn of its event loop
  let closed: Promise<unknown> | undefined;
  process.nextTick(() => {
    closed = app.server.close();
  });
  await waitUntil(() => isRefused(url));
  const answers = sockets.map((socket) => {
    socket.write(REQUEST);
    return text(socket);
  });
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  await closed;
});

/** A connection that the server has taken and that has sent nothing. */
async function opened(): Promise<net.Socket> {
  const taken = once(app.server.server, 'connection');
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  await taken;
  return socket;
}

test('a connection that was opened before has time for its first request, and is ended when none comes', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  const [late, unused] = [await opened(), await opened()];
  const closed = app.server.close();
  await waitUntil(() => isRefused(url));
  vi.advanceTimersByTime(1_500);
  late.write(REQUEST);
  expect(await text(late)).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*connection: close\r\n/);
  expect(unused.closed).toBe(false);
  vi.advanceTimersByTime(1_000);
  await closed;
  expect(await text(unused)).toBe('');
});

test('a connection whose answer began before has time for one more request, as a proxy may have sent it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  const server = Fastify({ return503OnClosing: false });
  addLeaving(server);
  endUnusedConnections(server);
  const file = new PassThrough();
  server.get('/file', (_request, reply) => void reply.send(file));
  server.get('/next', async () => 'next');
  const place = new URL(await server.listen({ host: '127.0.0.1', port: 0 }));
  const socket = net.connect(Number(place.port), place.hostname).setEncoding('utf8');
  const ended = once(socket, 'close');
  const ask = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  let answer = '';
  socket.on('data', (chunk: string) => (answer += chunk));
  ask('/file');
  file.write('begun');
  await waitUntil(() => answer.includes('begun'));
  const closed = server.close();
  await waitUntil(() => isRefused(place.href));
  file.end();
  await waitUntil(() => answer.endsWith('0\r\n\r\n'));
  expect(answer).toContain('\r\nConnection: keep-alive\r\n');
  vi.advanceTimersByTime(1_500);
  for (let turns = 0; turns < 3; turns++) await turn(); // it would be ended in one of them
  answer = '';
  ask('/next');
  await ended;
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*connection: close\r\n(?:.+\r\n)*\r\nnext$/);
  await closed;
});
