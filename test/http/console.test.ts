import { existsSync } from 'node:fs';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startTestApp, type TestApp } from '../support/app.ts';
import { colleague, type Person, registerProven } from '../support/person.ts';
import { PATIENCE_MS } from '../support/slowness.ts';
import { waitFor } from '../support/wait.ts';
import { type Story, tellStory } from './console-story.ts';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  ann = await registerProven(app, { name: 'ann' });
});
afterAll(() => app.close());

/** What the cookie of a browser holds, in which somebody has signed in. */
async function cookieOf(person: Person): Promise<string> {
  const headers = { ...person.headers, 'x-csrf': '1', origin: app.url };
  const answer = await fetch(`${app.url}/account/session`, { method: 'POST', headers });
  expect(answer.status).toBe(204);
  return /session=([\w-]{43});/.exec(answer.headers.getSetCookie().join())![1]!;
}

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
    const cookie = `session=${await cookieOf(sam)}`;
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

// Debian's package `chromium`, or what CHROMIUM names; without either, only CI insists
describe.skipIf(!process.env.CI && !existsSync(executablePath))('the console in a browser', () => {
  let browser: Browser;
  let story: Story;
  let bob: Person;
  let vic: Person;
  const contexts = new Map<Person, BrowserContext>();
  /** What browsers complained of, breaches of the policy included. */
  const faults: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    bob = await colleague(app, ann, 'admin');
    vic = await colleague(app, ann, 'viewer');
    const call = async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) => {
      const { status, body } = await ann.call(method, url, payload);
      if (status >= 400) throw new Error(`${method} ${url}: ${status} ${JSON.stringify(body)}`);
      return body;
    };
    story = await tellStory(call, ann);
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    for (const context of contexts.values()) for (const page of context.pages()) await page.close();
    expect(faults.splice(0)).toEqual([]);
  });

  /** A page of somebody who is signed in. */
  async function pageOf(person: Person, options: Parameters<Page['setViewportSize']>[0] | null = null): Promise<Page> {
    let context = contexts.get(person);
    if (!context) {
      context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
      await context.addCookies([{ name: 'session', value: await cookieOf(person), url: app.url, httpOnly: true }]);
      contexts.set(person, context);
    }
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    if (options) await page.setViewportSize(options);
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(error.message));
    return page;
  }

  const homeOf = ({ orgId, workspaceId }: Pick<Person, 'orgId' | 'workspaceId'>) =>
    `${app.url}/console/o/${orgId}/w/${workspaceId}`;
  const viewsOf = (home: string, appId?: string) => [
    ...['', '/activity', '/analytics', '/secrets', '/environments', '/apps', '/tools', '/artifacts', '/people'].map(
      (view) => `${home}${view}`,
    ),
    ...(appId ? [`${home}/apps/${appId}`] : []),
    `${app.url}/console/`,
    `${app.url}/console/notifications`,
  ];

  /** Opens a view, and waits until it shows what there is. */
  async function open(page: Page, url: string): Promise<void> {
    await page.goto(url);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await waitFor(async () => expect(await page.locator('.loading').count()).toBe(0));
  }

  /** What axe finds serious in a page. */
  async function barriersOf(page: Page): Promise<string[]> {
    await page.evaluate(axe.source);
    const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as axe.AxeResults;
    return found.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
  }

  it('leads to the page to sign in, comes back, and keeps no token', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const url = `${homeOf(ann)}/environments`;
    await page.goto(url);
    await page.fill('#email', ann.email);
    await page.click('#ask button');
    await page.fill('#password', ann.password);
    await page.click('#password-form button');
    await page.waitForURL(url);
    await page.getByRole('heading', { name: 'Environments' }).waitFor();
    expect(await page.evaluate('JSON.stringify([{...localStorage}, {...sessionStorage}])')).not.toMatch(/eyJ|Bearer/);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.locator('summary', { hasText: ann.username }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(/\/account\/sign-in\?return_to=/);
    await page.goto(url);
    await page.waitForURL(/\/account\/sign-in\?return_to=/);
    await context.close();
  });

  it('has views without a barrier, wide and light', async () => {
    const page = await pageOf(ann);
    for (const url of viewsOf(homeOf(ann), story.appId)) {
      await open(page, url);
      expect([url, await barriersOf(page)]).toEqual([url, []]);
    }
  });

  it('has views without a barrier, narrow and dark, and none is wider than the screen', async () => {
    const page = await pageOf(ann, { width: 360, height: 800 });
    await page.emulateMedia({ colorScheme: 'dark' });
    for (const url of viewsOf(homeOf(ann), story.appId)) {
      await open(page, url);
      expect([url, await barriersOf(page)]).toEqual([url, []]);
      expect([url, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([url, 360]);
    }
  });

  it('says what to do where there is nothing yet', async () => {
    const eve = await registerProven(app, { name: 'eve' });
    const page = await pageOf(eve);
    for (const [view, text] of [
      ['/secrets', 'No secrets yet'],
      ['/environments', 'No environments yet'],
      ['/apps', 'No apps yet'],
      ['/tools', 'No tools are in use yet'],
    ]) {
      await open(page, `${homeOf(eve)}${view}`);
      await page.getByRole('heading', { name: text! }).waitFor();
      expect([view, await barriersOf(page)]).toEqual([view, []]);
    }
  });

  it('shows a viewer nothing that the service would refuse', async () => {
    const page = await pageOf(vic);
    const seen: Record<string, string[]> = {};
    for (const view of ['', '/environments', '/people', '/tools', '/apps', `/apps/${story.appId}`, '/artifacts']) {
      await open(page, `${homeOf(ann)}${view}`);
      seen[view] = await page.locator('main button, main input[type=file]').allTextContents();
    }
    expect(seen).toEqual({
      '': [],
      '/environments': [],
      '/people': [],
      '/tools': [],
      '/apps': [],
      [`/apps/${story.appId}`]: [],
      '/artifacts': ['Search'],
    });
    expect(await page.getByRole('link', { name: 'Secrets' }).count()).toBe(0);
  });

  it('is walked by keyboard alone', async () => {
    const page = await pageOf(ann);
    await open(page, homeOf(ann));
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('main');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').waitFor();
    await page.keyboard.type('secre');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Secrets' }).waitFor();
    await waitFor(async () => expect(await focused()).toBe('main'));
    const create = page.getByRole('button', { name: 'New secret' });
    await create.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await waitFor(async () => expect(await focused()).toBe('New secret'));
  });

  it('compares secrets, reveals one, and forgets its value', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/secrets`);
    await page.getByRole('button', { name: 'Add DATABASE_URL to Staging' }).waitFor();
    await page.getByRole('button', { name: 'Open STRIPE_KEY of Production' }).click();
    await page.getByRole('button', { name: 'Reveal value' }).click();
    await page.getByText('STRIPE_KEY-1').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Open STRIPE_KEY of Production' }).click();
    await page.getByRole('button', { name: 'Reveal value' }).waitFor();
    expect(await page.content()).not.toContain('STRIPE_KEY-1');
  });

  it('takes a whole .env, after it has shown what becomes of it', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/secrets`);
    await page.getByRole('button', { name: 'New secret' }).click();
    const value = page.getByRole('dialog').getByLabel('Value');
    expect([await value.getAttribute('spellcheck'), await value.getAttribute('autocomplete')]).toEqual([
      'false',
      'off',
    ]);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Paste .env' }).click();
    const pasted = page.getByLabel(/Content of the \.env/);
    expect([await pasted.getAttribute('spellcheck'), await pasted.getAttribute('autocomplete')]).toEqual([
      'false',
      'off',
    ]);
    await page
      .getByLabel(/Content of the \.env/)
      .fill('# keys\nexport SENTRY_DSN="https://two"\nMAIL_KEY=abc # of staging\n\nnonsense');
    await waitFor(async () =>
      expect(await page.getByRole('dialog').locator('tbody tr').allTextContents()).toEqual([
        'SENTRY_DSNgets a new version',
        'MAIL_KEYnew',
      ]),
    );
    await page.getByRole('button', { name: 'Save 2 secrets' }).click();
    await waitFor(async () => expect(await page.getByRole('dialog').getByText('Done').count()).toBe(2));
    const { body } = await ann.call<{ value: { value: string } }>(
      'GET',
      `/v1/orgs/${ann.orgId}/secrets/by-name/MAIL_KEY?include_value=true&workspace_id=${ann.workspaceId}`,
    );
    expect(body.value).toEqual({ value: 'abc' });
  });

  it('says at the field what the service refuses, and makes nothing', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/environments`);
    await page.getByRole('button', { name: 'New environment' }).click();
    await page.getByLabel('Name').fill('Mine');
    await page.getByLabel('Slug').fill('Not a slug!');
    await page.getByRole('button', { name: 'Create' }).click();
    const slug = page.getByLabel('Slug');
    await waitFor(async () => expect(await slug.getAttribute('aria-invalid')).toBe('true'));
    await slug.fill('mine');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('columnheader', { name: /Mine/ }).waitFor();
    await page.getByRole('button', { name: 'Delete Mine' }).click();
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true });
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel('Type “Mine” to confirm').fill('Mine');
    await confirm.click();
    await page.getByRole('columnheader', { name: /Mine/ }).waitFor({ state: 'detached' });
  });

  it('rolls a deployment back, and shows it to somebody else at once', async () => {
    const [mine, theirs] = [await pageOf(ann), await pageOf(bob)];
    await open(mine, `${homeOf(ann)}/environments`);
    await open(theirs, `${homeOf(ann)}/environments`);
    await theirs.getByRole('button', { name: 'Change Support desk in Staging: 1.1.0' }).waitFor();
    await mine.getByRole('button', { name: 'Change Support desk in Staging: 1.1.0' }).click();
    await mine.getByRole('button', { name: 'Roll back to 1.0.0' }).click();
    await mine.getByRole('button', { name: 'Change Support desk in Staging: 1.0.0' }).waitFor();
    await theirs.getByRole('button', { name: 'Change Support desk in Staging: 1.0.0' }).waitFor();
  });

  it('shows who is there and what others change, and refuses a stale save with both versions', async () => {
    const [mine, theirs] = [await pageOf(ann), await pageOf(bob)];
    await open(mine, homeOf(ann));
    await open(theirs, homeOf(ann));
    await mine.getByRole('region', { name: 'Here now' }).getByText(bob.username).waitFor();
    await mine.getByRole('button', { name: 'Edit workspace' }).click();
    await mine.getByLabel('Name').fill('By Ann');
    await theirs.getByRole('button', { name: 'Edit workspace' }).click();
    await theirs.getByLabel('Name').fill('By Bob');
    await theirs.getByRole('button', { name: 'Save', exact: true }).click();
    await mine.locator('h1', { hasText: 'By Bob' }).waitFor();
    await mine.getByRole('button', { name: 'Save', exact: true }).click();
    const row = mine.locator('table.conflict tbody tr');
    await row.waitFor();
    expect(await row.locator('td').allTextContents()).toEqual(['By Ann', 'By Bob']);
    expect((await ann.call<{ name: string }>('GET', ann.home)).body.name).toBe('By Bob');
    await mine.getByRole('button', { name: 'Save mine over theirs' }).click();
    await theirs.locator('h1', { hasText: 'By Ann' }).waitFor();
  });

  it('says when the stream is away, and misses nothing of that time', async () => {
    const page = await pageOf(bob);
    await open(page, homeOf(ann));
    await page.getByRole('region', { name: 'Here now' }).getByText(`${bob.username} (you)`).waitFor();
    for (const socket of app.server.websocketServer.clients) socket.terminate();
    await page.getByText('The live connection is interrupted.').waitFor();
    expect((await ann.call('PUT', ann.home, { name: 'Meanwhile' })).status).toBe(200);
    await page.locator('h1', { hasText: 'Meanwhile' }).waitFor();
    await page.getByText('The live connection is interrupted.').waitFor({ state: 'detached' });
  });

  it('leads to the page to sign in as soon as the session is over', async () => {
    const kim = await colleague(app, ann, 'editor');
    const page = await pageOf(kim);
    await open(page, homeOf(ann));
    const headers = { 'x-csrf': '1', origin: app.url, 'content-type': 'application/json' };
    const data = JSON.stringify({ query: 'mutation { logout { sessionId } }' });
    expect((await contexts.get(kim)!.request.post(`${app.url}/graphql`, { headers, data })).status()).toBe(200);
    await page.waitForURL(/\/account\/sign-in\?return_to=/);
  });

  it('works below any path of a proxy', async () => {
    const proxy = createServer((request, response) => {
      const { method, url = '', headers } = request;
      const target = {
        host: '127.0.0.1',
        port: new URL(app.url).port,
        path: url.replace(/^\/base/, ''),
        method,
        headers,
      };
      const sent = ask(target, (answer) => answer.pipe(response.writeHead(answer.statusCode!, answer.headers)));
      request.pipe(sent.on('error', () => response.destroy()));
    });
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/base`;
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${base}/console/o/org_1/w/ws_1/activity?action=create`);
    await page.waitForURL(/\/base\/account\/sign-in/);
    const to = new URL(page.url()).searchParams.get('return_to');
    expect(to).toBe('/console/o/org_1/w/ws_1/activity?action=create');
    await page.close();
    proxy.closeAllConnections();
    await new Promise((closed) => proxy.close(closed));
  });
});
