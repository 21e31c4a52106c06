import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startTestApp, type TestApp } from '../support/app.ts';
import { registerProven } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { cookieOf } from './console-browser.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
});
afterAll(() => app.close());

describe('the files of the console', () => {
  const page = async (url: string) => (await app.server.inject(url)).body;
  const assetIn = (html: string) => /src="[^"]*?(assets\/[^"]+\.js)"/.exec(html)![1]!;

  it('are one page for every address below /console, which finds its files from there', async () => {
    expect((await app.server.inject('/console?x=1')).headers.location).toBe('console/?x=1');
    const asset = assetIn(await page('/console/'));
    for (const [url, way] of [
      ['/console/', './'],
      ['/console/notifications', './'],
      ['/console/o/org_1/w/ws_1/secrets', '../../../../'],
      ['/console/o/org_1/', '../../'],
    ] as const)
      expect(await page(url)).toContain(`src="${way}${asset}"`);
  });

  it('load nothing from elsewhere, and run nothing that is written into the page', async () => {
    const { headers, body } = await app.server.inject('/console/');
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers['cache-control']).toBe('no-store');
    expect(body).not.toMatch(/<style|style="|\son\w+="|<script>|(?:href|src)="(?:https?:)?\/\//);
  });

  it('are compressed already, and never have to be asked for again', async () => {
    const url = `/console/${assetIn(await page('/console/'))}`;
    const plain = await app.server.inject(url);
    expect(plain.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      'content-type': 'text/javascript; charset=utf-8',
    });
    const packed = async (accepted: string) => app.server.inject({ url, headers: { 'accept-encoding': accepted } });
    expect(brotliDecompressSync((await packed('gzip, br')).rawPayload).toString()).toBe(plain.body);
    expect(gunzipSync((await packed('gzip')).rawPayload).toString()).toBe(plain.body);
    for (const [accepted, encoding] of [
      ['br;q=0, gzip', 'gzip'],
      ['br; q=0.0, gzip;q=0', undefined],
      ['x-br, gzip;q=0.5', 'gzip'],
      ['gzip;q=0.1, BR;q=0.001', 'br'],
    ] as const)
      expect([accepted, (await packed(accepted)).headers['content-encoding']]).toEqual([accepted, encoding]);
  });

  it.each([
    '/console/assets/gone.js',
    '/console/assets/',
    '/console/assets/..%2findex.html',
    '/console/o/x.js',
    '/consoles',
  ])('that are not there are not the page: %s', async (url) => {
    expect((await app.server.inject(url)).statusCode).toBe(404);
  });
});

describe('a socket with the cookie of a browser', () => {
  /** How a socket ends that only says who it is by its handshake: `acknowledged`, or the code of its end. */
  const greeting = (headers: Record<string, string>): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`${app.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { headers });
      socket.on('open', () => socket.send('{"type":"connection_init"}'));
      socket.on('message', (data: Buffer) => {
        const text = data.toString();
        resolve(text.includes('connection_ack') ? 'acknowledged' : text);
        socket.close();
      });
      socket.on('close', (code) => resolve(String(code)));
      socket.on('error', reject);
    });

  it('is of its user, if a page of this origin has opened it, and of nobody otherwise', async () => {
    const sam = await registerProven(app, { name: 'sam' });
    const cookie = `session=${await cookieOf(app, sam)}`;
    const own = { cookie, origin: app.url };
    expect(await greeting(own)).toBe('acknowledged');
    const hostile: Record<string, string>[] = [
      { cookie, origin: 'https://evil.example' },
      { cookie, origin: app.url.replace('127.0.0.1', 'localhost') },
      { cookie, origin: 'null' },
      { cookie },
      { cookie, 'sec-fetch-site': 'same-origin' },
      { cookie: `${cookie}; session=${'A'.repeat(43)}`, origin: app.url },
      { origin: app.url },
      // a program says who it is by its header, and is nobody else by accident
      { ...own, authorization: 'Bearer wrong' },
    ];
    for (const headers of hostile) expect([headers, await greeting(headers)]).toEqual([headers, '4403']);
    const headers = { cookie, 'x-csrf': '1', origin: app.url, 'content-type': 'application/json' };
    const body = JSON.stringify({ query: 'mutation { logout { sessionId } }' });
    expect((await fetch(`${app.url}/graphql`, { method: 'POST', headers, body })).status).toBe(200);
    await waitFor(async () => expect(await greeting(own)).toBe('4403'));
  });
});
