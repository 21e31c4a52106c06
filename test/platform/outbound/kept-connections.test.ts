import type http from 'node:http';
import https from 'node:https';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HttpConnection } from '../../../src/platform/outbound/http-connection.ts';
import type { Outbound, OutboundRequest } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { certificate } from '../../support/certificate.ts';
import { client, rawTarget, target } from '../../support/outbound-client.ts';
import { hurryTimers, stopAges } from '../../support/passing-time.ts';
import type { Answering, TargetServer } from '../../support/target-server.ts';
import { waitUntil } from '../../support/wait.ts';

const ok: Answering = (_request, response) => response.end('{"ok":true}');
const at = ({ port }: TargetServer, path = '/') => `http://127.0.0.1:${port}${path}`;

/** What came of a call: its status, or the code of its error. */
async function callOf(outbound: Outbound, url: string, more: Partial<OutboundRequest> = {}): Promise<number | string> {
  try {
    return (await outbound.request({ url, owner: 'org_1', keepsConnections: true, ...more })).status;
  } catch (error) {
    return error instanceof OutboundError ? error.code : String(error);
  }
}

const LIMITS = { headMs: 10_000, idleMs: 10_000, wholeMs: 10_000, maxBytes: 1_000_000 };
/** The same for a call whose bodies pass through. */
const opened = (outbound: Outbound, url: string, method = 'GET') =>
  outbound.open({
    method,
    url: new URL(url),
    headers: {},
    body: null,
    contentLength: null,
    signal: new AbortController().signal,
    limits: LIMITS,
    owner: 'org_1',
    keepsConnections: true,
  });
async function passedOf(outbound: Outbound, url: string, method = 'GET'): Promise<number | string> {
  try {
    const answer = await opened(outbound, url, method);
    answer.body.resume();
    const error = await answer.ended;
    return error instanceof OutboundError ? error.code : error ? String(error) : answer.status;
  } catch (error) {
    return error instanceof OutboundError ? error.code : String(error);
  }
}
const WAYS = [
  ['that is read whole', callOf],
  ['that passes through', passedOf],
] as const;

describe.each(WAYS)('an answer %s', (_way, call) => {
  it('leaves its connection to the next call', async () => {
    const server = await target(ok);
    const outbound = client('127.0.0.1');
    for (let i = 0; i < 3; i++) expect(await call(outbound, at(server))).toBe(200);
    expect([server.connections, server.requests.length, outbound.idle]).toEqual([1, 3, 1]);
    expect(server.requests.map(({ headers }) => headers.connection)).toEqual(Array(3).fill('keep-alive'));
  });

  it('leaves none to the next call if its target ends it, or will soon', async () => {
    const endings: Record<string, http.OutgoingHttpHeaders> = {
      '/close': { connection: 'close' },
      '/soon': { 'keep-alive': 'timeout=1' },
    };
    const server = await target((request, response) => response.writeHead(200, endings[request.url!]).end('x'));
    const outbound = client('127.0.0.1');
    for (const path of Object.keys(endings)) {
      const before = server.connections;
      for (let i = 0; i < 2; i++) expect(await call(outbound, at(server, path))).toBe(200);
      expect([path, server.connections - before]).toEqual([path, 2]);
    }
    expect(outbound.idle).toBe(0);
  });

  it.each(['HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)(
    'to a %s has a connection of its own',
    async (method) => {
      const server = await target(ok);
      const outbound = client('127.0.0.1');
      const ask = (verb: string) =>
        call === passedOf ? passedOf(outbound, at(server), verb) : callOf(outbound, at(server), { method: verb });
      expect([await ask('GET'), await ask(method), await ask(method)]).toEqual([200, 200, 200]);
      expect(server.connections).toBe(3);
      expect(server.requests.map(({ headers }) => headers.connection)).toEqual(['keep-alive', 'close', 'close']);
    },
  );

  it('comes over a new connection if the target has closed the kept one: each request arrives once', async () => {
    const server = await target(ok);
    const outbound = client('127.0.0.1');
    expect(await call(outbound, at(server, '/1'))).toBe(200);
    server.cut();
    expect(await call(outbound, at(server, '/2'))).toBe(200);
    server.cut();
    await waitUntil(() => outbound.idle === 0);
    expect(await call(outbound, at(server, '/3'))).toBe(200);
    expect(server.requests.map(({ path }) => path)).toEqual(['/1', '/2', '/3']);
  });

  it('comes over a new connection if the target closes the kept one instead of answering', async () => {
    for (const last of ['', 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n']) {
      const sockets: number[] = [];
      let opened = 0;
      const server = await rawTarget((socket) => {
        let times = 0;
        opened += 1;
        const number = opened;
        socket.on('data', () => {
          sockets.push(number);
          times += 1;
          if (times === 1) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
          else socket.end(last);
        });
      });
      const outbound = client('127.0.0.1');
      expect([await call(outbound, at(server)), await call(outbound, at(server))]).toEqual([200, 200]);
      expect(sockets).toEqual([1, 1, 2]);
    }
  });

  it('is not asked for again if the request ran for a while: it may have been carried out', async () => {
    for (const last of ['', 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n']) {
      const time = stopAges();
      let requests = 0;
      const server = await rawTarget((socket) =>
        socket.on('data', () => {
          requests += 1;
          if (requests === 1) return void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
          time.pass(5_001);
          socket.end(last);
        }),
      );
      const outbound = client('127.0.0.1');
      expect(await call(outbound, at(server))).toBe(200);
      expect(await call(outbound, at(server))).toBe(last === '' ? 'network' : 408);
      expect([requests, server.connections]).toEqual([2, 1]);
    }
  });

  it('is not asked for again once a byte of it has come, or over a connection that was new', async () => {
    for (const [answersBefore, bytes, code] of [
      [1, 'HTTP/1.1 200 OK\r\n', 'network'],
      [0, '', 'network'],
    ] as const) {
      let requests = 0;
      const server = await rawTarget((socket) =>
        socket.on('data', () => {
          requests += 1;
          if (requests <= answersBefore) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
          else socket.end(bytes);
        }),
      );
      const outbound = client('127.0.0.1');
      for (let i = 0; i < answersBefore; i++) expect(await call(outbound, at(server))).toBe(200);
      expect(await call(outbound, at(server))).toBe(code);
      expect([requests, server.connections]).toEqual([answersBefore + 1, 1]);
    }
  });

  it('that comes before it was asked for is nobody’s', async () => {
    let requests = 0;
    const answer = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
    const server = await rawTarget((socket) =>
      socket.on('data', () => {
        requests += 1;
        socket.write(requests === 1 ? answer('one') + answer('planted') : answer('two'));
      }),
    );
    const outbound = client('127.0.0.1');
    expect(await call(outbound, at(server))).toBe(200);
    const second = await outbound.request({ url: at(server), owner: 'org_1', keepsConnections: true });
    expect([second.text(), server.connections]).toEqual(['two', 2]);
  });

  it.each([204, 304])('%i leaves no connection: some targets send a body all the same', async (status) => {
    const server = await target((_request, response) => response.writeHead(status).end());
    const outbound = client('127.0.0.1');
    for (let i = 0; i < 2; i++) expect(await call(outbound, at(server))).toBe(status);
    await waitUntil(() => server.open() === 0);
    expect([server.connections, outbound.idle]).toEqual([2, 0]);
  });
});

describe('a kept connection', () => {
  it('is for callers that ask for one, and have a name', async () => {
    const server = await target(ok);
    const outbound = client('127.0.0.1');
    for (const more of [{}, { keepsConnections: false }, { owner: undefined }])
      expect(await callOf(outbound, at(server), more as object)).toBe(200);
    expect([server.connections, outbound.idle]).toEqual([3, 1]);
  });

  it('is for its own organization, and its own origin', async () => {
    const server = await target(ok);
    const secure = await target(ok, { isSecure: true });
    const names = { addresses: async () => ['127.0.0.1'] };
    const outbound = client('127.0.0.1, one.good.test, two.good.test', { names, ca: certificate.cert });
    const ask = (url: string, owner = 'org_1') => callOf(outbound, url, { owner });
    for (const owner of ['org_1', 'org_2', 'org_1', 'org_2']) expect(await ask(at(server), owner)).toBe(200);
    expect(server.connections).toBe(2);
    for (const host of ['one', 'two', 'one', 'two'])
      expect(await ask(`https://${host}.good.test:${secure.port}`)).toBe(200);
    expect(secure.connections).toBe(2);
    expect(secure.requests.map(({ headers }) => headers.host?.slice(0, 3))).toEqual(['one', 'two', 'one', 'two']);
  });

  it('is not used once its name leads elsewhere', async () => {
    const first = await target(ok);
    const second = await target(ok, { host: '127.0.0.2', port: first.port });
    let addresses = ['127.0.0.1'];
    const outbound = client('127.0.0.0/8', { names: { addresses: async () => addresses } });
    const ask = () => callOf(outbound, `http://moving.test:${first.port}`);
    expect(await ask()).toBe(200);
    addresses = ['127.0.0.2'];
    expect(await ask()).toBe(200);
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
    addresses = ['127.0.0.2', '127.0.0.1'];
    expect(await ask()).toBe(200);
    expect([first.connections, second.connections]).toEqual([1, 1]);
    // closed by its target a moment before: what is connected to again is what was checked now
    first.cut();
    second.cut();
    addresses = ['127.0.0.1'];
    expect(await ask()).toBe(200);
    first.cut();
    addresses = ['127.0.0.2', '127.0.0.1'];
    expect(await ask()).toBe(200);
    expect([first.requests.length, second.requests.length]).toEqual([2, 3]);
    for (const forbidden of [['169.254.169.254'], ['127.0.0.1', '10.0.0.1'], ['10.0.0.1']]) {
      addresses = forbidden;
      expect([forbidden, await ask()]).toEqual([forbidden, 'blocked_address']);
    }
    expect(first.requests.length + second.requests.length).toBe(5);
  });

  it('connects once: what its first call has checked is not what a later one has', async () => {
    const server = await target(ok);
    const callTo = (addresses: string[]) => ({
      url: new URL(at(server)),
      addresses,
      signal: new AbortController().signal,
      connecting: { begin: () => undefined, end: () => undefined },
    });
    const connection = await HttpConnection.opened(callTo(['127.0.0.1']));
    onTestFinished(() => connection.close());
    const ask = async () => (await connection.client.request({ path: '/', method: 'GET' })).body.dump();
    await ask();
    const closed = new Promise<void>((resolve) => {
      connection.whenClosed(resolve);
    });
    server.cut();
    await closed;
    connection.use(callTo(['127.0.0.1']));
    const error = await ask().catch((reason: unknown) => reason);
    expect(error).toEqual(new Error('The connection was closed before the request.'));
    expect([connection.isUnanswered(error), server.connections, server.requests.length]).toEqual([true, 1, 1]);
  });

  it('is none after an answer that was not read to its end', async () => {
    const server = await target((request, response) => {
      response.writeHead(200, { 'content-length': 100_000 });
      if (request.url === '/slow') response.write(Buffer.alloc(10));
      else response.end(Buffer.alloc(100_000));
    });
    const outbound = client('127.0.0.1');
    // at once: later, they would be closed because nobody uses them
    expect([await callOf(outbound, at(server), { maxBytes: 1_000 }), outbound.idle]).toEqual(['too_large', 0]);
    expect([await callOf(outbound, at(server), { reader: () => () => true }), outbound.idle]).toEqual([200, 0]);
    const left = new AbortController();
    const slow = callOf(outbound, at(server, '/slow'), { signal: left.signal });
    await waitUntil(() => server.requests.length === 3);
    left.abort();
    expect([await slow, outbound.idle]).toEqual(['aborted', 0]);
    const passed = await opened(outbound, at(server));
    passed.body.destroy();
    expect([await passed.ended, outbound.idle]).toEqual([expect.objectContaining({ code: 'aborted' }), 0]);
    await waitUntil(() => server.open() === 0);
    expect(server.connections).toBe(4);
  });

  it('is none after credentials that are of the connection', async () => {
    const server = await target(ok);
    const outbound = client('127.0.0.1');
    for (const authorization of ['NTLM TlRMTVNTUAAB', 'negotiate YII', 'Bearer abc'])
      expect(await callOf(outbound, at(server), { headers: { Authorization: authorization } })).toBe(200);
    expect(server.requests.map(({ headers }) => headers.connection)).toEqual(['close', 'close', 'keep-alive']);
  });

  it.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'])(
    'is not for a GET that is something else by %s',
    async (name) => {
      const server = await target(ok);
      const outbound = client('127.0.0.1');
      for (let i = 0; i < 2; i++)
        expect(await callOf(outbound, at(server), { headers: { [name]: 'DELETE' } })).toBe(200);
      expect([server.connections, outbound.idle]).toEqual([2, 0]);
    },
  );

  it('ends when its target says something that nobody asked for', async () => {
    let say: ((text: string) => void) | undefined;
    const answer = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
    const server = await rawTarget((socket) => {
      say ??= (text) => void socket.write(text);
      socket.on('data', () => socket.write(answer('asked')));
    });
    const outbound = client('127.0.0.1');
    expect(await callOf(outbound, at(server))).toBe(200);
    expect(outbound.idle).toBe(1);
    say!(answer('planted'));
    await waitUntil(() => outbound.idle === 0);
    const next = await outbound.request({ url: at(server), owner: 'org_1', keepsConnections: true });
    expect([next.text(), server.connections]).toEqual(['asked', 2]);
  });

  it('is closed after five minutes, however often it is used', async () => {
    const server = await target(ok);
    const outbound = client('127.0.0.1');
    const time = stopAges();
    for (const [passed, connections] of [
      [0, 1],
      [299_000, 1],
      [1_001, 1],
      [0, 2],
    ] as const) {
      time.pass(passed);
      expect(await callOf(outbound, at(server))).toBe(200);
      expect(server.connections).toBe(connections);
    }
  });

  it('is closed when nobody has used it for four seconds, and with the client', async () => {
    const server = await rawTarget((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nkeep-alive: timeout=60\r\ncontent-length: 0\r\n\r\n'));
    });
    const time = hurryTimers();
    const outbound = client('127.0.0.1');
    expect(await callOf(outbound, at(server))).toBe(200);
    await turn(); // its time begins then
    time.pass(3_900);
    expect(await callOf(outbound, at(server))).toBe(200);
    expect([server.connections, server.open()]).toEqual([1, 1]);
    await turn();
    time.pass(4_000);
    await waitUntil(() => server.open() === 0 && outbound.idle === 0);
    expect(await callOf(outbound, at(server))).toBe(200);
    expect(outbound.idle).toBe(1);
    await outbound.close();
    expect(outbound.idle).toBe(0);
    await waitUntil(() => server.open() === 0);
  });

  it('is one of few: those that were not used for the longest time are closed', async () => {
    const held: (() => void)[] = [];
    const answer: Answering = (_request, response) => held.push(() => response.end('ok'));
    const [one, two] = [await target(answer), await target(answer)];
    const outbound = client('127.0.0.1', { kept: { total: 5, perOwner: 4, perOrigin: 3 } });
    const together = async (calls: readonly [TargetServer, string][]) => {
      const asked = calls.map(([server, owner]) => callOf(outbound, at(server), { owner }));
      await waitUntil(() => held.length === calls.length);
      for (const end of held.splice(0)) end();
      expect(await Promise.all(asked)).toEqual(calls.map(() => 200));
    };
    await together(Array.from({ length: 6 }, () => [one, 'org_1']));
    await waitUntil(() => one.open() === 3);
    await together(Array.from({ length: 3 }, () => [two, 'org_1']));
    await waitUntil(() => one.open() === 1 && two.open() === 3);
    await together(Array.from({ length: 3 }, () => [two, 'org_2']));
    await waitUntil(() => one.open() === 0 && two.open() === 5);
    expect(outbound.idle).toBe(5);
  });

  it('that its target closes at the wrong moment leaves the usual time to connect', async () => {
    const secure = https.createServer(certificate, (request, response) => {
      if (request.url === '/1') response.end('ok');
      else request.socket.destroy();
    });
    let isFirst = true;
    const server = await rawTarget((socket) => {
      // whoever comes later is not answered at all
      if (isFirst) secure.emit('connection', socket);
      isFirst = false;
    });
    const names = { addresses: async () => ['127.0.0.1'] };
    const outbound = client('api.good.test', { names, ca: certificate.cert });
    const url = `https://api.good.test:${server.port}`;
    expect(await callOf(outbound, `${url}/1`)).toBe(200);
    const time = hurryTimers();
    const second = callOf(outbound, `${url}/2`, { timeoutMs: 600_000 });
    await waitUntil(() => server.connections === 2);
    time.pass(3_000);
    expect(await second).toBe('timeout');
  });
});
