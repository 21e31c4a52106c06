// own process: sets proxies in the environment
import zlib from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { createLogger } from '../../../src/platform/logger.ts';
import { DnsNames, type Names } from '../../../src/platform/outbound/names.ts';
import { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { certificate } from '../../support/certificate.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { freePort } from '../../support/free-port.ts';
import { gate } from '../../support/gate.ts';
import { client, rawTarget, target } from '../../support/outbound-client.ts';
import { hurryTimers } from '../../support/passing-time.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { type Answering, startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitUntil } from '../../support/wait.ts';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closers.splice(0).reverse()) await close();
});

const ok: Answering = (_request, response) => response.end('{"ok":true}');

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => 'answered',
    (reason: unknown) => reason,
  );
  return error instanceof OutboundError ? error.code : String(error);
}

describe('a call', () => {
  it('sends method, headers and body, and gives status, headers and body', async () => {
    const server = await target((_request, response) => {
      response.writeHead(418, { 'x-kind': 'pot', 'set-cookie': ['a=1', 'b=2'] }).end('{"tea":1}');
    });
    const answer = await client('127.0.0.1').request({
      method: 'POST',
      url: `http://127.0.0.1:${server.port}/pots?size=2#here`,
      headers: { Authorization: 'Bearer abc', 'content-type': 'application/json' },
      body: '{"a":"ä"}',
    });
    expect({ status: answer.status, isOk: answer.isOk, json: answer.json() }).toEqual({
      status: 418,
      isOk: false,
      json: { tea: 1 },
    });
    expect(answer.headers.get('x-kind')).toBe('pot');
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(server.requests).toEqual([
      {
        method: 'POST',
        path: '/pots?size=2',
        body: '{"a":"ä"}',
        headers: {
          host: `127.0.0.1:${server.port}`,
          connection: 'close',
          accept: '*/*',
          'accept-encoding': 'gzip, deflate, br',
          'user-agent': 'platform-management-api',
          authorization: 'Bearer abc',
          'content-type': 'application/json',
          'content-length': '10',
        },
      },
    ]);
  });

  it('uses a connection of its own', async () => {
    const server = await target(ok);
    const outbound = client('127.0.0.1');
    for (let i = 0; i < 3; i++) await outbound.request({ url: `http://127.0.0.1:${server.port}` });
    expect(server.connections).toBe(3);
  });

  it('goes to the address that was checked, with the name in its request and its certificate', async () => {
    const server = await target(ok, { isSecure: true });
    const outbound = client('api.good.test', { ca: certificate.cert, names: { addresses: async () => ['127.0.0.1'] } });
    const answer = await outbound.request({ url: `https://API.good.test.:${server.port}/x` });
    expect(answer.json()).toEqual({ ok: true });
    expect(server.requests[0]?.headers.host).toBe(`api.good.test:${server.port}`);
  });

  it('finds a host that the operator lists as the system does, and asks DNS servers only for others', async () => {
    const server = await target(ok);
    const dns = await startDnsServer(() => []);
    closers.push(() => dns.close());
    const url = `http://localhost:${server.port}`;
    expect(await codeOf(client('localhost').request({ url }))).toBe('answered');
    const asking = new DnsNames([dns.address]);
    const signal = new AbortController().signal;
    await expect(asking.addresses('api.test', { isListed: true, signal })).rejects.toThrow(
      new OutboundError('network'),
    );
    expect(dns.questions.map(({ name, type }) => `${name} ${type}`).sort()).toEqual(['api.test A', 'api.test AAAA']);
  });

  it('tries the next address when one does not answer', async () => {
    const server = await target(ok);
    const outbound = client('two.test', { names: { addresses: async () => ['127.0.0.2', '127.0.0.1'] } });
    expect(await codeOf(outbound.request({ url: `http://two.test:${server.port}` }))).toBe('answered');
  });

  it.each(['gzip', 'x-gzip', 'deflate', 'br', 'identity'])('reads a body with the encoding %s', async (encoding) => {
    const encode: Record<string, (text: string) => Buffer | string> = {
      gzip: zlib.gzipSync,
      'x-gzip': zlib.gzipSync,
      deflate: zlib.deflateSync,
      br: zlib.brotliCompressSync,
    };
    const server = await target((_request, response) =>
      response.setHeader('content-encoding', encoding).end(encode[encoding]?.('tea') ?? 'tea'),
    );
    const answer = await client('127.0.0.1').request({ url: `http://127.0.0.1:${server.port}` });
    expect(answer.text()).toBe('tea');
  });
});

describe('limits', () => {
  it('cuts off a body that is too large, as sent and after decompression', async () => {
    const bodies: Record<string, Buffer> = {
      '/plain': Buffer.alloc(2_000),
      '/bomb': zlib.gzipSync(Buffer.alloc(8 * 1024 * 1024)),
      '/brotli': zlib.brotliCompressSync(Buffer.alloc(8 * 1024 * 1024)),
      '/exact': Buffer.alloc(1_000),
    };
    const encodings: Record<string, string> = { '/bomb': 'gzip', '/brotli': 'br' };
    const server = await target((request, response) => {
      const encoding = encodings[request.url!];
      if (encoding) response.setHeader('content-encoding', encoding);
      response.end(bodies[request.url!]);
    });
    const outbound = client('127.0.0.1');
    const call = (path: string, limit = {}) =>
      codeOf(outbound.request({ url: `http://127.0.0.1:${server.port}${path}`, ...limit }));
    expect(await call('/plain', { maxBytes: 1_000 })).toBe('too_large');
    expect(await call('/exact', { maxBytes: 1_000 })).toBe('answered');
    expect(await call('/bomb')).toBe('too_large');
    expect(await call('/brotli')).toBe('too_large');
  });

  it('stops reading a body that never ends', async () => {
    let sent = 0;
    const server = await rawTarget((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const more = (): void => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) sent += 65_536;
      };
      socket.on('drain', more);
      more();
    });
    const outbound = client('127.0.0.1');
    expect(await codeOf(outbound.request({ url: `http://127.0.0.1:${server.port}` }))).toBe('too_large');
    expect(sent).toBeLessThan(32 * 1024 * 1024); // what lay in the buffers between
  });

  it.each([
    ['a header that is too large', `HTTP/1.1 200 OK\r\na: ${'a'.repeat(20_000)}\r\n\r\n`, 'too_large'],
    ['too many headers', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}\r\n`, 'too_large'],
    [
      'trailers that are too large',
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${'a: b\r\n'.repeat(20_000)}\r\n`,
      'too_large',
    ],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2p1\r\n', 'bad_response'],
    ['another version', 'HTTP/9.9 200 OK\r\n\r\n', 'bad_response'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na', 'bad_response'],
    [
      'a length beside chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'bad_response',
    ],
    ['a broken chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 'bad_response'],
    ['half a body', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', 'network'],
    ['nothing', '', 'network'],
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'network'],
    ['two encodings', 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip, gzip\r\n\r\nabc', 'bad_response'],
    ['an unknown encoding', 'HTTP/1.1 200 OK\r\ncontent-encoding: constructor\r\n\r\nabc', 'bad_response'],
    ['an encoding that it has not', 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nabc', 'bad_response'],
    ['an empty body with an encoding', 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n', 'answered'],
    ['bytes in a header', 'HTTP/1.1 200 OK\r\na: \xe4\u{1f600}\r\n\r\n', 'answered'],
  ])('takes %s for what it is', async (_what, bytes, code) => {
    const server = await rawTarget((socket) => socket.end(bytes));
    const outbound = client('127.0.0.1');
    expect(await codeOf(outbound.request({ url: `http://127.0.0.1:${server.port}` }))).toBe(code);
  });

  it('cuts off a target that is slow: at every step, and however often it moves', async () => {
    const drip = (start: string, bytes: string) =>
      rawTarget((socket) => {
        socket.write(start);
        const timer = setInterval(() => socket.write(bytes), 5);
        socket.on('close', () => clearInterval(timer));
      });
    const servers = {
      silent: await drip('', ''),
      status: await drip('HTTP/1.1 ', '1'),
      header: await drip('HTTP/1.1 200 OK\r\na: ', 'a'),
      interim: await drip('', 'HTTP/1.1 102 Processing\r\n\r\n'),
      body: await drip('HTTP/1.1 200 OK\r\n\r\n', '.'),
      chunks: await drip('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', '1\r\na\r\n'),
    };
    const outbound = client('127.0.0.1');
    for (const [what, { port }] of Object.entries(servers)) {
      const call = codeOf(outbound.request({ url: `http://127.0.0.1:${port}`, timeoutMs: 100 }));
      expect([what, await call]).toEqual([what, expect.stringMatching(/^(timeout|bad_response)$/)]);
    }
    expect(outbound.outcomes.get('timeout')).toBeGreaterThanOrEqual(5);
  });

  it('gives a connection less time than the whole call: for the name, the address and the encryption', async () => {
    const dns = await startDnsServer(() => null);
    closers.push(() => dns.close());
    const mute = await rawTarget(() => undefined);
    const connectTimeoutMs = 100;
    const byName = new Outbound({
      config: loadConfig({ OUTBOUND_DNS: dns.address }),
      logger: quietLogger,
      connectTimeoutMs,
    });
    expect(await codeOf(byName.request({ url: 'https://silent.test' }))).toBe('timeout');
    const byAddress = client('127.0.0.1', { connectTimeoutMs });
    expect(await codeOf(byAddress.request({ url: `https://127.0.0.1:${mute.port}` }))).toBe('timeout');
  });

  it.each([
    [9_999, 'answered'],
    [10_000, 'timeout'],
  ])('are 10 s for a call, not only to connect: after %i ms it is %s', async (ms, code) => {
    const { opened, open } = gate();
    const server = await target((_request, response) => void opened.then(() => response.end()));
    const time = hurryTimers();
    const call = codeOf(client('127.0.0.1').request({ url: `http://127.0.0.1:${server.port}` }));
    await waitUntil(() => server.requests.length === 1);
    time.pass(ms);
    open();
    expect(await call).toBe(code);
  });

  it.each([
    [2_999, 'answered'],
    [3_000, 'timeout'],
  ])('are 3 s to connect: after %i ms without an address it is %s', async (ms, code) => {
    const { opened, open } = gate();
    const server = await target(ok);
    const time = hurryTimers();
    let isAsked = false;
    const names: Names = {
      addresses: async () => {
        isAsked = true;
        await opened;
        return ['127.0.0.1'];
      },
    };
    const call = codeOf(client('slow.test', { names }).request({ url: `http://slow.test:${server.port}` }));
    await waitUntil(() => isAsked);
    time.pass(ms);
    open();
    expect(await call).toBe(code);
  });
});

describe('parallel calls', () => {
  it('are limited per owner and in all; others wait in order, and too many are refused', async () => {
    const held: (() => void)[] = [];
    const server = await target((_request, response) => held.push(() => response.end()));
    const outbound = client('127.0.0.1', { slots: { total: 3, perOwner: 2, waitingPerOwner: 2 } });
    const ended: string[] = [];
    const call = async (owner: string, path: string, signal?: AbortSignal) => {
      const code = await codeOf(outbound.request({ owner, url: `http://127.0.0.1:${server.port}/${path}`, signal }));
      ended.push(`${path} ${code}`);
    };
    const impatient = new AbortController();
    const calls = [
      call('a', 'a1'),
      call('a', 'a2'),
      call('a', 'a3'),
      call('a', 'a4', impatient.signal),
      call('b', 'b1'),
    ];
    await waitUntil(() => held.length === 3);
    expect(server.requests.map(({ path }) => path).sort()).toEqual(['/a1', '/a2', '/b1']);
    calls.push(call('b', 'b2'));
    expect([outbound.running, outbound.waiting]).toEqual([3, 3]);
    await call('a', 'a5');
    impatient.abort();
    await waitUntil(() => ended.length === 2);
    expect(ended).toEqual(['a5 busy', 'a4 aborted']);
    for (let i = 0; i < 5; i++) {
      await waitUntil(() => held.length > i);
      held[i]!();
    }
    await Promise.all(calls);
    expect(
      server.requests
        .map(({ path }) => path)
        .slice(3)
        .sort(),
    ).toEqual(['/a3', '/b2']);
    expect([outbound.running, outbound.waiting]).toEqual([0, 0]);
    expect(Object.fromEntries(outbound.outcomes)).toEqual({ answered: 5, busy: 1, aborted: 1 });
  });

  it('end when the client closes, with their connections', async () => {
    let closed = 0;
    const server = await rawTarget((socket) => {
      socket.resume().on('close', () => {
        closed += 1;
      });
    });
    const outbound = client('127.0.0.1', { slots: { total: 2, perOwner: 2, waitingPerOwner: 5 } });
    const url = `http://127.0.0.1:${server.port}`;
    const calls = [1, 2, 3].map(() => codeOf(outbound.request({ url })));
    await waitUntil(() => server.connections === 2);
    await outbound.close();
    expect(await Promise.all(calls)).toEqual(['aborted', 'aborted', 'aborted']);
    expect(await codeOf(outbound.request({ url }))).toBe('aborted');
    await waitUntil(() => closed === 2);
    expect(server.connections).toBe(2);
  });
});

describe('redirects', () => {
  /** `/a/b` redirects to what the list says for `a`; everything else answers with its path. */
  async function redirecting(locations: Record<string, [number, string]>, isSecure = false): Promise<TargetServer> {
    return target(
      (request, response) => {
        const [status, location] = locations[request.url!] ?? [200, undefined];
        response.writeHead(status, location === undefined ? {} : { location }).end(request.url);
      },
      { isSecure },
    );
  }

  it('are followed within the host, or not at all', async () => {
    const server = await redirecting({ '/a': [302, '/b'] });
    const outbound = client('127.0.0.1');
    const url = `http://127.0.0.1:${server.port}/a`;
    const followed = await outbound.request({ url });
    expect([followed.text(), followed.url]).toEqual(['/b', `http://127.0.0.1:${server.port}/b`]);
    expect((await outbound.request({ url, redirect: 'manual' })).status).toBe(302);
    expect(await codeOf(outbound.request({ url, redirect: 'error' }))).toBe('redirect');
  });

  it('are three at most', async () => {
    const server = await redirecting({
      '/1': [301, '/2'],
      '/2': [302, '/3'],
      '/3': [307, '/4'],
      '/0': [308, '/1'],
      '/loop': [303, '/loop'],
    });
    const outbound = client('127.0.0.1');
    const url = `http://127.0.0.1:${server.port}`;
    expect((await outbound.request({ url: `${url}/1` })).text()).toBe('/4');
    expect(await codeOf(outbound.request({ url: `${url}/0` }))).toBe('redirect');
    expect(await codeOf(outbound.request({ url: `${url}/loop` }))).toBe('redirect');
    expect(server.requests).toHaveLength(4 + 4 + 4);
  });

  it.each([
    [301, 'POST', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [303, 'PUT', 'GET', ''],
    [301, 'PUT', 'PUT', 'text'],
    [307, 'POST', 'POST', 'text'],
    [308, 'PATCH', 'PATCH', 'text'],
  ])('%s turns %s into %s', async (status, method, followed, body) => {
    const server = await redirecting({ '/a': [status, '/b'] });
    const headers = { 'content-type': 'text/plain', authorization: 'Bearer abc' };
    const url = `http://127.0.0.1:${server.port}/a`;
    await client('127.0.0.1').request({ url, method, headers, body: 'text' });
    const { headers: received, ...request } = server.requests[1]!;
    expect(request).toEqual({ method: followed, path: '/b', body });
    expect(received['content-type']).toBe(body === '' ? undefined : 'text/plain');
    expect(received.authorization).toBe('Bearer abc');
  });

  it('to another port get none of the headers that could be credentials', async () => {
    const other = await target(ok);
    const server = await redirecting({ '/a': [307, `http://127.0.0.1:${other.port}/`] });
    await client('127.0.0.1').request({
      url: `http://127.0.0.1:${server.port}/a`,
      method: 'POST',
      headers: { authorization: 'Bearer abc', cookie: 'a=b', 'X-Api-Key': 'abc', 'content-type': 'text/plain' },
      body: 'text',
    });
    expect(other.requests[0]).toEqual({
      method: 'POST',
      path: '/',
      body: 'text',
      headers: {
        host: `127.0.0.1:${other.port}`,
        connection: 'close',
        accept: '*/*',
        'accept-encoding': 'gzip, deflate, br',
        'user-agent': 'platform-management-api',
        'content-type': 'text/plain',
        'content-length': '4',
      },
    });
  });

  it.each([
    ['another host', 'http://localhost:{port}/'],
    ['another address of the same machine', 'http://127.0.0.2:{port}/'],
    ['another host by its scheme', '//localhost:{port}/'],
    ['credentials', 'http://user:password@127.0.0.1:{port}/'],
    ['a file', 'file:///etc/passwd'],
    ['no URL', 'http://[::1'],
    ['data', 'data:text/plain,inside'],
  ])('to %s are refused', async (_what, location) => {
    const next = await target(ok);
    const server = await redirecting({ '/a': [302, location.replace('{port}', String(next.port))] });
    const call = client('127.0.0.0/8, localhost').request({ url: `http://127.0.0.1:${server.port}/a` });
    expect(await codeOf(call)).toBe('redirect');
    expect(next.connections).toBe(0);
  });

  it('from https to http are refused, and from http to https are followed', async () => {
    const plain = await target(ok);
    const secure = await redirecting({ '/a': [302, `http://127.0.0.1:${plain.port}/`] }, true);
    const outbound = client('127.0.0.1', { ca: certificate.cert });
    expect(await codeOf(outbound.request({ url: `https://127.0.0.1:${secure.port}/a` }))).toBe('redirect');
    expect(plain.connections).toBe(0);
    const upgrading = await redirecting({ '/a': [302, `https://127.0.0.1:${secure.port}/b`] });
    expect((await outbound.request({ url: `http://127.0.0.1:${upgrading.port}/a` })).text()).toBe('/b');
  });
});

describe('a request', () => {
  it.each(['GET', 'PUT', 'POST'])('is sent once, even if the connection breaks: %s', async (method) => {
    const received: string[] = [];
    const server = await rawTarget((socket) => {
      socket.once('data', (bytes) => {
        received.push(bytes.toString().split(' ')[0]!);
        socket.resetAndDestroy();
      });
    });
    const call = client('127.0.0.1').request({ url: `http://127.0.0.1:${server.port}`, method });
    expect(await codeOf(call)).toBe('network');
    expect([received, server.connections]).toEqual([[method], 1]);
  });
});

describe('fetch for client libraries', () => {
  it('is a standard fetch', async () => {
    const server = await target((_request, response, body) => response.writeHead(201, { 'x-a': '1' }).end(body));
    const fetch = client('127.0.0.1').fetchFor({ owner: 'org_1' });
    const response = await fetch(new URL(`http://127.0.0.1:${server.port}/token`), {
      method: 'POST',
      headers: new Headers({ accept: 'application/json' }),
      body: new URLSearchParams({ grant_type: 'refresh_token' }),
      redirect: 'manual',
    });
    expect(response).toBeInstanceOf(Response);
    expect([response.status, response.headers.get('x-a'), await response.text()]).toEqual([
      201,
      '1',
      'grant_type=refresh_token',
    ]);
    expect(server.requests[0]?.headers['content-type']).toBe('application/x-www-form-urlencoded;charset=UTF-8');
  });

  it('rejects with the reason of its signal', async () => {
    const server = await target(() => undefined);
    const signal = AbortSignal.timeout(50);
    const call = client('127.0.0.1').fetchFor()(`http://127.0.0.1:${server.port}`, { signal });
    await expect(call).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

describe('encryption', () => {
  it.each([
    ['a certificate that nobody vouches for', 'api.good.test', undefined],
    ['a certificate for another name', 'good.bad.test', certificate.cert],
    ['a certificate for the name without its prefix', 'a.b.good.test', certificate.cert],
  ])('with %s is refused', async (_what, host, ca) => {
    const server = await target(ok, { isSecure: true });
    const names: Names = { addresses: async () => ['127.0.0.1'] };
    const outbound = client('127.0.0.1', { names, ...(ca ? { ca } : {}) });
    expect(await codeOf(outbound.request({ url: `https://${host}:${server.port}` }))).toBe('tls');
    expect(server.requests).toEqual([]);
  });

  it('is not done without: a plain server under https, an old version', async () => {
    const plain = await target(ok);
    const old = await rawTarget((socket) =>
      socket.once('data', () => socket.end(Buffer.from('1503010002022a', 'hex'))),
    );
    const outbound = client('127.0.0.1');
    for (const { port } of [plain, old])
      expect(await codeOf(outbound.request({ url: `https://127.0.0.1:${port}` }))).toBe('tls');
    expect(plain.requests).toEqual([]);
  });
});

describe('the environment', () => {
  it('gives no proxy', async () => {
    const proxy = await target(ok);
    const server = await target(ok);
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'])
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    vi.stubEnv('NO_PROXY', '');
    await client('127.0.0.1').request({ url: `http://127.0.0.1:${server.port}` });
    expect([server.connections, proxy.connections]).toEqual([1, 0]);
  });
});

describe('failures', () => {
  it('of the network are alike: a closed port, a reset, a name without address', async () => {
    const reset = await rawTarget((socket) => socket.resetAndDestroy());
    const closed = await freePort();
    const dns = await startDnsServer(() => []);
    closers.push(() => dns.close());
    const outbound = new Outbound({
      config: loadConfig({ OUTBOUND_ALLOW: '127.0.0.1', OUTBOUND_DNS: dns.address }),
      logger: quietLogger,
    });
    const errors = [];
    for (const url of [`http://127.0.0.1:${reset.port}`, `http://127.0.0.1:${closed}`, 'https://nobody.test'])
      errors.push(await outbound.request({ url }).catch((error: unknown) => error));
    const { message } = new OutboundError('network');
    for (const error of errors) {
      expect(error).toBeInstanceOf(OutboundError);
      expect(error).toMatchObject({ code: 'network', message, limitBytes: null });
      expect(Object.keys(error as object).sort()).toEqual(['code', 'limitBytes', 'name']);
    }
  });

  it('that are bugs of ours stay what they are', async () => {
    const bug = new TypeError('a bug');
    const outbound = client('', { names: { addresses: () => Promise.reject(bug) } });
    await expect(outbound.request({ url: 'https://api.test' })).rejects.toBe(bug);
    expect(Object.fromEntries(outbound.outcomes)).toEqual({ fault: 1 });
  });

  it('never tell what a target answered', async () => {
    const server = await target((_request, response) => response.end('the secret of the inside'));
    const answer = await client('127.0.0.1').request({ url: `http://127.0.0.1:${server.port}` });
    expect(() => answer.json()).toThrow(new OutboundError('bad_response'));
  });

  it.each([
    ['TRACE', {}],
    ['CONNECT', {}],
    ['GET\r\nx: y', {}],
    ['GET', { Host: 'inside' }],
    ['GET', { 'Content-Length': '0' }],
    ['GET', { 'transfer-encoding': 'chunked' }],
    ['GET', { content_length: '3' }],
    ['GET', { Transfer_Encoding: 'chunked' }],
    ['GET', { Connection: 'upgrade' }],
    ['GET', { 'Proxy-Authorization': 'abc' }],
    ['GET', { 'x\r\ny': 'abc' }],
    ['GET', { '': 'abc' }],
    ['GET', { x: 'abc\r\nhost: inside' }],
    ['GET', { x: 'abc\0' }],
    ['GET', { x: '\u{1f600}' }],
  ])('%j with the headers %j is not sent', async (method, headers) => {
    const server = await target(ok);
    const call = client('127.0.0.1').request({ url: `http://127.0.0.1:${server.port}`, method, headers });
    expect(await codeOf(call)).toBe('invalid_request');
    expect(server.connections).toBe(0);
  });

  it('are found behind what a library made of them', () => {
    const error = new OutboundError('timeout');
    expect(OutboundError.in(new Error('a', { cause: new TypeError('b', { cause: error }) }))).toBe(error);
    expect(OutboundError.in(new Error('a'))).toBeNull();
  });
});

describe('the log', () => {
  it('has origin, outcome and trace, and neither path nor query, headers, bodies or addresses', async () => {
    const lines: string[] = [];
    const logger = createLogger({ logLevel: 'debug' }, { write: (line) => void lines.push(line) });
    const server = await startTarget((_request, response) => response.end('secret-answer'));
    const outbound = client('127.0.0.1', { logger });
    const headers = { 'x-key': 'secret-header' };
    const url = `http://127.0.0.1:${server.port}/secret-path?key=secret-query#secret-hash`;
    await outbound.request({ url, headers, method: 'POST', body: 'secret-body', traceId: 'trace-1', owner: 'org_1' });
    await codeOf(outbound.request({ url: 'https://secret-user:secret-word@api.test/secret-path', traceId: 'trace-2' }));
    await codeOf(outbound.request({ url: 'secret-text' }));
    await codeOf(outbound.request({ url: 'https://a@secret-host.test/secret-path', shownHost: '{{host}}.test' }));
    await server.close();
    await codeOf(outbound.request({ url }));
    expect(lines.map((line) => ({ ...(JSON.parse(line) as object), time: '', duration_ms: 0 }))).toEqual([
      {
        level: 'debug',
        time: '',
        trace_id: 'trace-1',
        org_id: 'org_1',
        method: 'POST',
        origin: `http://127.0.0.1:${server.port}`,
        outcome: 'answered',
        status: 200,
        duration_ms: 0,
        msg: 'an outbound call was answered',
      },
      {
        level: 'warn',
        time: '',
        trace_id: 'trace-2',
        method: 'GET',
        origin: 'https://api.test',
        outcome: 'invalid_url',
        duration_ms: 0,
        msg: 'an outbound call failed',
      },
      {
        level: 'warn',
        time: '',
        method: 'GET',
        outcome: 'invalid_url',
        duration_ms: 0,
        msg: 'an outbound call failed',
      },
      {
        level: 'warn',
        time: '',
        method: 'GET',
        origin: 'https://{{host}}.test',
        outcome: 'invalid_url',
        duration_ms: 0,
        msg: 'an outbound call failed',
      },
      {
        level: 'warn',
        time: '',
        method: 'GET',
        origin: `http://127.0.0.1:${server.port}`,
        outcome: 'network',
        reason: 'ECONNREFUSED',
        duration_ms: 0,
        msg: 'an outbound call failed',
      },
    ]);
    expect(lines.join()).not.toContain('secret-');
  });
});
