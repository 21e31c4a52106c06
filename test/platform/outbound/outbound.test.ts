import { setTimeout as delay } from 'node:timers/promises';
import zlib from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import type { Names } from '../../../src/platform/outbound/names.ts';
import { Outbound, type OutboundOptions } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { certificate } from '../../support/certificate.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { type Answering, startRawTarget, startTarget, type TargetServer } from '../../support/target-server.ts';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function target(answer: Answering, options?: { isSecure?: boolean }): Promise<TargetServer> {
  const server = await startTarget(answer, options);
  closers.push(() => server.close());
  return server;
}

async function rawTarget(...given: Parameters<typeof startRawTarget>): Promise<TargetServer> {
  const server = await startRawTarget(...given);
  closers.push(() => server.close());
  return server;
}

function client(allow: string, options: Partial<OutboundOptions> = {}): Outbound {
  const outbound = new Outbound({ config: loadConfig({ OUTBOUND_ALLOW: allow }), logger: quietLogger, ...options });
  closers.push(() => outbound.close());
  return outbound;
}

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
      '/bomb': zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024)),
      '/exact': Buffer.alloc(1_000),
    };
    const server = await target((request, response) => {
      if (request.url === '/bomb') response.setHeader('content-encoding', 'gzip');
      response.end(bodies[request.url!]);
    });
    const outbound = client('127.0.0.1');
    const call = (path: string, maxBytes?: number) =>
      codeOf(outbound.request({ url: `http://127.0.0.1:${server.port}${path}`, ...(maxBytes ? { maxBytes } : {}) }));
    expect([await call('/plain', 1_000), await call('/bomb'), await call('/exact', 1_000)]).toEqual([
      'too_large',
      'too_large',
      'answered',
    ]);
  });

  it('cuts off a target that is slow to answer, and one that drips', async () => {
    const server = await target(async (request, response) => {
      if (request.url === '/silent') return;
      while (!response.destroyed) {
        response.write('.');
        await delay(5);
      }
    });
    const outbound = client('127.0.0.1');
    for (const path of ['/silent', '/drip'])
      expect(await codeOf(outbound.request({ url: `http://127.0.0.1:${server.port}${path}`, timeoutMs: 100 }))).toBe(
        'timeout',
      );
  });
});

describe('redirects', () => {
  it('follows one within the host', async () => {
    const server = await target((request, response) => {
      if (request.url === '/a') response.writeHead(302, { location: '/b' });
      response.end(request.url);
    });
    const outbound = client('127.0.0.1');
    const url = `http://127.0.0.1:${server.port}/a`;
    expect((await outbound.request({ url })).text()).toBe('/b');
    expect((await outbound.request({ url, redirect: 'manual' })).status).toBe(302);
    expect(await codeOf(outbound.request({ url, redirect: 'error' }))).toBe('redirect');
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

describe('failures', () => {
  it('tell what was wrong by a code', async () => {
    const secure = await target(ok, { isSecure: true });
    const reset = await rawTarget((socket) => socket.resetAndDestroy());
    const noise = await rawTarget((socket) => socket.end('hello\r\n\r\n'));
    const nobody: Names = { addresses: () => Promise.reject(new OutboundError('network')) };
    const inside = client('127.0.0.1');
    const codes = {
      'https://127.0.0.1': await codeOf(client('').request({ url: 'https://127.0.0.1' })),
      'https://nobody.test': await codeOf(client('', { names: nobody }).request({ url: 'https://nobody.test' })),
      tls: await codeOf(inside.request({ url: `https://127.0.0.1:${secure.port}` })),
      reset: await codeOf(inside.request({ url: `http://127.0.0.1:${reset.port}` })),
      noise: await codeOf(inside.request({ url: `http://127.0.0.1:${noise.port}` })),
      'ftp:': await codeOf(inside.request({ url: 'ftp://127.0.0.1' })),
      trace: await codeOf(inside.request({ url: 'https://127.0.0.1', method: 'TRACE' })),
      host: await codeOf(inside.request({ url: 'https://127.0.0.1', headers: { Host: 'inside' } })),
    };
    expect(codes).toEqual({
      'https://127.0.0.1': 'blocked_address',
      'https://nobody.test': 'network',
      tls: 'tls',
      reset: 'network',
      noise: 'bad_response',
      'ftp:': 'invalid_url',
      trace: 'invalid_request',
      host: 'invalid_request',
    });
  });
});
