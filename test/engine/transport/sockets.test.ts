import { connect } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { stopAges } from '../../support/passing-time.ts';
import { type Person, register } from '../../support/person.ts';
import { openAcknowledged, openSocket, type RawSocket } from '../../support/sockets.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let user: Person;
let url: string;
const lines: string[] = [];
beforeAll(async () => {
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  app = await startTestApp({ env: { MAX_SOCKETS_PER_USER: '3' }, logger });
  user = await register(app);
  url = await app.listen();
});
afterAll(() => app.close());

describe('a socket that is used wrongly', () => {
  let printed: string[];
  beforeEach(() => {
    printed = [];
    lines.length = 0;
    const spies = [
      vi.spyOn(console, 'error').mockImplementation((...words) => void printed.push(words.join(' '))),
      vi.spyOn(console, 'warn').mockImplementation((...words) => void printed.push(words.join(' '))),
    ];
    return () => {
      for (const spy of spies) spy.mockRestore();
    };
  });

  it.each<[string, number, (socket: RawSocket) => void]>([
    [
      'a message that is too big',
      1009,
      (socket) => socket.send(`{"type":"ping","payload":{"a":"${'x'.repeat(70_000)}"}}`),
    ],
    ['a message of nothing but brackets', 4400, (socket) => socket.send('['.repeat(60_000))],
    ['a message that is none', 4400, (socket) => socket.send('no json')],
    ['a message that only a server sends', 4400, (socket) => socket.send({ id: '1', type: 'next', payload: {} })],
    ['an acknowledgement', 4400, (socket) => socket.send({ type: 'connection_ack' })],
    [
      'an operation with a long id that is in use',
      4409,
      (socket) => {
        const operation = {
          id: `é${'x'.repeat(300)}`,
          type: 'subscribe',
          payload: { query: `subscription { unreadNotifications { total } }` },
        };
        socket.send(operation);
        socket.send(operation);
      },
    ],
    [
      'messages without number',
      4429,
      (socket) => {
        for (let n = 0; n < 2_000; n++) socket.send({ type: 'ping' });
      },
    ],
    ['an operation without a query', 4400, (socket) => socket.send({ id: '1', type: 'subscribe', payload: {} })],
  ])('is closed with its reason, and nothing is printed: %s', async (_what, code, misuse) => {
    const socket = await openAcknowledged(url, user.headers.authorization);
    misuse(socket);
    expect(await socket.closed()).toBe(code);
    expect(printed).toEqual([]);
    expect(lines.filter((line) => line.includes('"stack"'))).toEqual([]);
  });

  it('has no budget of messages anew when it is opened again', async () => {
    stopAges();
    const { headers } = await register(app);
    const flood = async () => {
      const socket = await openAcknowledged(url, headers.authorization);
      for (let n = 0; n < 498; n++) socket.send({ type: 'ping' });
      socket.send({ type: 'subscribe', id: 'last', payload: { query: '{ __typename }' } });
      const last = await Promise.race([
        socket.next(({ id }) => id === 'last').then(({ type }) => type),
        socket.closed(),
      ]);
      socket.close();
      return last;
    };
    const outcomes: (string | number)[] = [];
    for (let n = 0; n < 5; n++) outcomes.push(await flood());
    expect(outcomes).toEqual(['next', 'next', 'next', 'next', 4429]);
  });

  it('answers a ping without what came along', async () => {
    const socket = await openAcknowledged(url, user.headers.authorization);
    socket.send({ type: 'ping', payload: { large: 'x'.repeat(1_000) } });
    expect(await socket.next(({ type }) => type === 'pong')).toEqual({ type: 'pong' });
    socket.close();
    await socket.closed();
  });

  it('is closed when its bytes are no frames', async () => {
    const { port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.write(
      'GET /graphql HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
        'sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n',
    );
    socket.once('data', () => socket.write(Buffer.alloc(64, 0xff)));
    socket.on('data', () => undefined);
    await ended;
    expect(printed).toEqual([]);
    expect(lines.filter((line) => line.includes('"stack"'))).toEqual([]);
  });
});

describe('the sockets of a user', () => {
  it('are so many at a time, and no more', async () => {
    const open: RawSocket[] = [];
    for (let i = 0; i < 3; i++) open.push(await openAcknowledged(url, user.headers.authorization));
    const fourth = await openSocket(url);
    fourth.send({ type: 'connection_init', payload: user.headers });
    expect(await fourth.closed()).toBe(1013);
    expect(fourth.messages).toEqual([]);
    const other = await openAcknowledged(url, (await register(app)).headers.authorization);
    open[0]!.close();
    await open[0]!.closed();
    const next = await waitFor(() => openAcknowledged(url, user.headers.authorization));
    for (const socket of [...open, other, next]) socket.close();
  });
});
