// own process: starts proxies
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { freePort } from '../support/free-port.ts';
import { type Person, register } from '../support/person.ts';
import { caddy, nginx } from '../support/proxies.ts';
import { openAcknowledged, openEvents } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';

// Debian's packages `nginx-light` and `caddy`; without them, only CI insists
describe.each([
  ['nginx', nginx],
  ['Caddy', caddy],
])('behind %s, as its file is shipped', (_, proxy) => {
  if (!process.env.CI && !existsSync(proxy.program)) {
    test.skip('it is not installed', () => undefined);
    return;
  }
  let app: TestApp;
  let ann: Person;
  let folder: string;
  let child: ChildProcess;
  let url: string;

  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    app = await startTestApp({ env: { PUBLIC_URL: url, TRUSTED_PROXIES: '127.0.0.1', SSO_STARTS_PER_MINUTE: '20' } });
    ann = await register(app, { name: 'ann' });
    const upstream = new URL(await app.listen()).host;
    folder = mkdtempSync(path.join(tmpdir(), 'proxy-'));
    const { args, env } = proxy.command(folder, port, [upstream]);
    child = spawn(proxy.program, args, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await waitFor(async () => {
      expect([child.exitCode, child.exitCode === null ? '' : output]).toEqual([null, '']);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    });
  });
  afterAll(async () => {
    const ended = once(child, 'close');
    child.kill();
    await ended;
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const send = (method: string, at: string, body?: BodyInit, headers: Record<string, string> = {}) =>
    fetch(`${url}${at}`, { method, headers: { ...ann.headers, ...headers }, ...(body !== undefined && { body }) });
  /** Of a path as it is written: `fetch` would tidy it. */
  const statusOf = async (at: string, of = url): Promise<number | undefined> => {
    const { hostname, port } = new URL(of);
    const request = http.get({ hostname, port, path: at });
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };
  const namespace = (name: string) =>
    send('POST', `${ann.home}/namespaces`, JSON.stringify({ name }), { 'content-type': 'application/json' });

  test('requests and pages come through, and the numbers of the service do not', async () => {
    expect((await namespace('through')).status).toBe(201);
    expect((await send('GET', '/docs/')).status).toBe(200);
    expect((await fetch(`${app.url}/metrics`)).status).toBe(200);
    for (const at of [
      '/metrics',
      '/metrics/',
      '/metrics/x',
      '/metrics?x',
      '/%6detrics',
      '//metrics',
      '/docs/../metrics',
    ])
      expect([at, await statusOf(at)]).toEqual([at, 404]);
    // nor does the service, where a proxy blocks no more than the name
    for (const at of ['/metrics/', '/%6detrics', '//metrics', '/metrics/?x'])
      expect([at, await statusOf(at, app.url)]).toEqual([at, 404]);
    expect(await statusOf('/metrics?x', app.url)).toBe(200);
  });

  test('events leave at once, over SSE and over a WebSocket', async () => {
    const stream = await openEvents(`${url}${ann.home}/sync/stream`, { headers: ann.headers });
    const socket = await openAcknowledged(url, ann.headers.authorization);
    const query = `subscription ($org: ID!, $ws: ID!) {
      workspaceEvents(orgId: $org, workspaceId: $ws, join: true) { type }
    }`;
    const variables = { org: ann.orgId, ws: ann.workspaceId };
    socket.send({ type: 'subscribe', id: '1', payload: { query, variables } });
    await socket.next(({ payload }) => JSON.stringify(payload ?? '').includes('"connected"'));
    await stream.next(({ event }) => event === 'connected');
    expect((await namespace('told')).status).toBe(201);
    await stream.next(({ event }) => event === 'namespace.created');
    await socket.next(({ payload }) => JSON.stringify(payload ?? '').includes('"namespace.created"'));
    stream.close();
    socket.close();
  });

  test('a file of 20 MiB comes through whole', async () => {
    const bytes = Buffer.alloc(20 * 2 ** 20, 'platypus ');
    const form = new FormData();
    form.set('name', 'large');
    form.set('file', new Blob([bytes], { type: 'text/plain' }), 'large.txt');
    const answer = await send('POST', `${ann.home}/namespaces/default/artifacts/upload`, form);
    expect([answer.status, await answer.json()]).toMatchObject([201, { size_bytes: bytes.length }]);
  });

  test('the address of a client is what the proxy saw, not what the client claims', async () => {
    const status = async (claimed: string) => {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': claimed };
      const request = http.request(`${url}/v1/auth/sso/discover`, {
        method: 'POST',
        localAddress: '127.0.0.2',
        headers,
      });
      request.end(JSON.stringify({ email: 'somebody@example.test' }));
      const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
      answer.resume();
      return answer.statusCode;
    };
    // 20 a minute from one address, however many it claims to be
    let claimed = 0;
    while (claimed < 60 && (await status(`198.51.100.${claimed}`)) === 200) claimed += 1;
    expect(claimed).toBeGreaterThanOrEqual(20);
    expect(claimed).toBeLessThan(60);
  });
});
