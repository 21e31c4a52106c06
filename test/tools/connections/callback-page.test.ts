import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { describeInBrowser, launchBrowser } from '../../support/browser.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitFor } from '../../support/wait.ts';
import { initiate, rowOf, startConnectingApp, withInstance } from './connecting.ts';

let front: TargetServer;
let stranger: TargetServer;
let app: TestApp;
let server: OAuthServer;
beforeAll(async () => {
  const blank = (
    _request: unknown,
    response: { setHeader(name: string, value: string): void; end(text: string): void },
  ) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>front end</title>');
  };
  [front, stranger, server] = await Promise.all([startTarget(blank), startTarget(blank), startOAuthServer()]);
  app = await startConnectingApp({ CORS_ORIGINS: `http://127.0.0.1:${front.port}` });
  await app.listen();
});
afterAll(async () => {
  await app.close();
  await Promise.all([front.close(), stranger.close(), server.close()]);
});

test('the address of the client by the own document has the same page', async () => {
  const [page, own] = await Promise.all(
    ['callback', 'own-callback'].map((name) => app.server.inject({ url: `/connections/${name}?code=a&state=b` })),
  );
  expect([own!.statusCode, own!.body]).toEqual([200, page!.body]);
  expect(own!.headers['content-security-policy']).toBe(page!.headers['content-security-policy']);
});

test('the page is the same for every code, runs only its own script, and is framed and cached nowhere', async () => {
  const pages = await Promise.all(
    ['?code=a&state=b', '?code=c&state=d', ''].map((query) =>
      app.server.inject({ url: `/connections/callback${query}` }),
    ),
  );
  expect(new Set(pages.map(({ body }) => body)).size).toBe(1);
  expect(pages[0]!.body).toContain(`content="http://127.0.0.1:${front.port}"`);
  expect(pages[0]!.headers).toMatchObject({
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; " +
      "base-uri 'none'; frame-ancestors 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
  });
});

describeInBrowser('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  /** Opens an authorization from a front end that answers with a token, and collects what it is told. */
  async function openFrom(page: Page, origin: string, url: string, accessToken: string) {
    await page.goto(origin);
    const popup = page.waitForEvent('popup');
    await page.evaluate(
      ({ url: address, token, service }) => {
        const told: unknown[] = [];
        Object.assign(globalThis, { told });
        addEventListener('message', (event) => {
          if (event.origin !== service) return;
          const message = event.data as { type: string; state: string };
          told.push(message);
          const answer = { type: 'connections.callback.token', state: message.state, access_token: token };
          if (message.type.endsWith('.ready')) event.source!.postMessage(answer, { targetOrigin: service });
        });
        const opened = open(address);
        // whoever does not wait for the page's own word is not heard either
        setInterval(() => {
          const state = new URL(address).searchParams.get('state')!;
          const pushed = { type: 'connections.callback.token', state, access_token: token };
          opened?.postMessage(pushed, '*');
        }, 50);
      },
      { url, token: accessToken, service: new URL(app.url).origin },
    );
    return popup;
  }

  const told = (page: Page) =>
    page.evaluate(() => (globalThis as unknown as { told: { type: string; ok?: boolean }[] }).told);

  test('exchanges the code with the token of the front end that opened it, and tells it', async () => {
    const { ann, instanceId } = await withInstance(app, server);
    const begun = await initiate(ann, `${ann.home}/connections`, instanceId);
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on('console', (message) => problems.push(message.text()));
    const popup = await openFrom(page, `http://127.0.0.1:${front.port}`, begun.authorization_url, ann.accessToken);
    const requested: string[] = [];
    popup.on('request', (request) => requested.push(request.url()));
    await waitFor(async () =>
      expect(await told(page)).toMatchObject([
        { type: 'connections.callback.ready', state: begun.state },
        {
          type: 'connections.callback.done',
          state: begun.state,
          ok: true,
          connection: { status: 'connected', connection_id: begun.connection_id },
        },
      ]),
    );
    expect((await rowOf(app, begun.connection_id)).status).toBe('connected');
    await waitFor(() => expect(popup.isClosed()).toBe(true));
    expect(requested.join(' ')).not.toContain(ann.accessToken);
    expect(problems).toEqual([]);
    await page.close();
  });

  test('does nothing for an opener of another origin, whose token it does not take', async () => {
    const { ann, instanceId } = await withInstance(app, server);
    const begun = await initiate(ann, `${ann.home}/connections`, instanceId);
    const page = await browser.newPage();
    const popup = await openFrom(page, `http://127.0.0.1:${stranger.port}`, begun.authorization_url, ann.accessToken);
    await popup.waitForURL(`${app.url}/connections/callback`);
    await popup.waitForLoadState('networkidle');
    const exchanges = await popup.evaluate(
      () => performance.getEntriesByType('resource').filter(({ name }) => name.includes('exchange')).length,
    );
    expect([exchanges, await told(page)]).toEqual([0, []]);
    expect((await rowOf(app, begun.connection_id)).status).toBe('pending');
    await page.close();
  });

  test('says so when nobody opened it, or when the provider granted nothing', async () => {
    const page = await browser.newPage();
    await page.clock.install();
    await page.goto(`${app.url}/connections/callback?code=a`);
    await page.getByText('not opened by an application').waitFor();
    // the page waits for whoever began it, which may be a tab that was closed
    await page.goto(`${app.url}/connections/callback?code=a&state=b`);
    await page.waitForURL(`${app.url}/connections/callback`);
    await page.clock.fastForward(20_000);
    await page.getByText('The page that began this is gone').waitFor();
    const { ann } = await withInstance(app, server);
    const denied = `${app.url}/connections/callback?error=access_denied&state=s`;
    const popup = await openFrom(page, `http://127.0.0.1:${front.port}`, denied, ann.accessToken);
    await waitFor(async () => expect(await popup.textContent('#status')).toContain('did not grant access'));
    const done = { type: 'connections.callback.done', state: 's', ok: false, error: 'access_denied' };
    await waitFor(async () => expect(await told(page)).toEqual([done]));
    await page.close();
  });

  test.each([
    ['own-callback', 'state=b&iss=https://honest.example.com'],
    ['own-callback', 'state=own_b'],
    ['own-callback', 'state=own_b&iss='],
    ['own-callback', 'state=own_b&iss=https://a.example.com&iss=https://b.example.com'],
    ['callback', 'state=own_b&iss=https://honest.example.com'],
  ])('takes no code at %s with %s, which may be of a server that was not asked', async (name, query) => {
    const { ann } = await withInstance(app, server);
    const page = await browser.newPage();
    const at = `${app.url}/connections/${name}?code=a&${query}`;
    const popup = await openFrom(page, `http://127.0.0.1:${front.port}`, at, ann.accessToken);
    await waitFor(async () => expect(await popup.textContent('#status')).toContain('Nothing is connected'));
    const exchanges = await popup.evaluate(
      () => performance.getEntriesByType('resource').filter(({ name: url }) => url.includes('exchange')).length,
    );
    expect(exchanges).toBe(0);
    expect(await told(page)).toMatchObject([{ type: 'connections.callback.done', ok: false }]);
    await page.close();
  });
});
