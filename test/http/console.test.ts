import { existsSync } from 'node:fs';
import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startOpenIdServer } from '../identity/sso/openid-server.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { makeGrant } from '../support/application-grant.ts';
import { letFactorsAge, withTotp } from '../support/factors.ts';
import { colleague, type Person, registerProven } from '../support/person.ts';
import { receive } from '../support/receivers.ts';
import { PATIENCE_MS } from '../support/slowness.ts';
import { waitFor } from '../support/wait.ts';
import { type Story, tellStory } from './console-story.ts';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  // receivers of webhooks and identity providers are on this machine
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
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
  const views = [
    '',
    '/activity',
    '/analytics',
    '/secrets',
    '/environments',
    '/apps',
    '/tools',
    '/artifacts',
    '/people',
  ];
  const viewsOf = (home: string, appId?: string) => [
    ...[...views, '/models', '/tokens', '/sign-in', '/webhooks'].map((view) => `${home}${view}`),
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
      ['/models', 'No models yet'],
      ['/tokens', 'No API tokens yet'],
      ['/sign-in', 'No identity providers yet'],
      ['/webhooks', 'No webhooks yet'],
    ]) {
      await open(page, `${homeOf(eve)}${view}`);
      await page.getByRole('heading', { name: text! }).waitFor();
      expect([view, await barriersOf(page)]).toEqual([view, []]);
    }
  });

  it('shows a viewer nothing that the service would refuse', async () => {
    const page = await pageOf(vic);
    const seen: Record<string, string[]> = {};
    const places = ['', '/environments', '/people', '/tools', '/apps', `/apps/${story.appId}`, '/artifacts'];
    for (const view of [...places, '/models', '/tokens', '/sign-in', '/webhooks']) {
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
      '/artifacts': ['Search', 'Plan'],
      '/models': ['Large'],
      // tokens of one's own
      '/tokens': ['New API token'],
      '/sign-in': [],
      '/webhooks': [],
    });
    for (const name of ['Secrets', 'Webhooks', 'Sign-in'])
      expect(await page.getByRole('link', { name, exact: true }).count()).toBe(0);
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

  /** A part of a page that has a heading of its own. */
  const part = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

  it('creates a webhook, shows its secret once, and what was sent and answered', async () => {
    const receiver = await receive((_request, response) => response.end('thanks a lot'));
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/webhooks`);
    await page.getByRole('button', { name: 'New webhook' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('To our chat');
    await page.getByRole('textbox', { name: 'Address' }).fill('http://10.0.0.1/');
    await page.getByLabel('thread.*', { exact: true }).check();
    await page.getByRole('button', { name: 'Create' }).click();
    // what the service refuses is said at its field
    await waitFor(async () =>
      expect(await page.getByRole('textbox', { name: 'Address' }).getAttribute('aria-invalid')).toBe('true'),
    );
    await page.getByRole('textbox', { name: 'Address' }).fill(receiver.url);
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'Secret of To our chat' });
    const secret = (await once.locator('code').textContent())!;
    expect(secret).toMatch(/^whsec_/);
    await once.getByRole('button', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(secret);
    await page.getByRole('button', { name: 'To our chat', exact: true }).click();
    const log = page.getByRole('dialog', { name: 'Deliveries of To our chat' });
    await log.getByText('Nothing was sent in the last seven days.').waitFor();
    await log.getByRole('button', { name: 'Send a test' }).click();
    await log.getByText('delivered').waitFor();
    await log.getByText('webhook.test').first().click();
    await log.getByText('thanks a lot').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    const [first] = await receiver.has(1);
    new Verifier(secret).verify(first!.body, first!.headers);
    await log.getByRole('button', { name: 'Send again' }).click();
    expect((await receiver.has(2))[1]!.body).toBe(first!.body);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'New secret for To our chat' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'New secret' }).click();
    expect(await once.locator('code').textContent()).not.toBe(secret);
    await once.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Turn off To our chat' }).click();
    await page.getByRole('button', { name: 'Turn on To our chat' }).waitFor();
    await receiver.close();
  });

  it('makes an API token with few rights, shows it once, and revokes it', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/tokens`);
    await page.getByRole('button', { name: 'New API token' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('ci');
    await page.getByLabel('Find in Scopes').fill('read');
    await page.getByRole('group', { name: 'Scopes' }).getByLabel('read', { exact: true }).check();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'Token ci' });
    const token = (await once.locator('code').first().textContent())!;
    await once.getByRole('button', { name: 'Done' }).click();
    const asked = async (method: string) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const body = method === 'GET' ? {} : { body: '{"description":"x"}' };
      return (await fetch(`${app.url}${ann.home}`, { method, headers, ...body })).status;
    };
    expect([await asked('GET'), await asked('PUT')]).toEqual([200, 403]);
    await part(page, 'My API tokens').getByRole('button', { name: 'Revoke ci' }).click();
    await page.getByLabel('Type “ci” to confirm').fill('ci');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await part(page, 'All API tokens').getByText('revoked').waitFor();
    expect(await asked('GET')).toBe(401);
  });

  it('registers an application, and takes back what somebody has granted to one', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/tokens`);
    await page.getByRole('button', { name: 'New application' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Planner');
    await page.getByLabel('Addresses for answers').fill('https://planner.example.test/done');
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'Credentials of Planner' });
    const id = (await once.locator('code').first().textContent())!;
    await once.getByRole('button', { name: 'Done' }).click();
    const { rows } = await app.database.pool.query<{ id: string }>('select id from applications');
    expect(rows).toEqual([{ id }]);
    await makeGrant(app, { orgId: ann.orgId, applicationId: id, userId: vic.userId });
    await page.reload();
    await page.getByRole('button', { name: `Disconnect Planner from ${vic.username}` }).click();
    await page.getByLabel(`Type “${vic.username}” to confirm`).fill(vic.username);
    await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
    await page.getByText('No member has connected an application.').waitFor();
  });

  it('tests an identity provider, proves its domain, and turns it off', async () => {
    const openId = await startOpenIdServer();
    const secret = { name: 'sso-client', secret_type: 'oauth2', value: { client_secret: openId.clientSecret } };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/secrets`, secret)).status).toBe(201);
    const provider = {
      client_id: openId.clientId,
      client_secret_ref: 'secret://sso-client',
      discovery_url: openId.discoveryUrl,
    };
    const idps = `/v1/orgs/${ann.orgId}/identity-providers`;
    const fields = { name: 'Company', protocol: 'oidc', verified_domains: ['company.example'], oidc_config: provider };
    expect((await ann.call('POST', idps, fields)).status).toBe(201);
    openId.account = { sub: 'ann', email: 'ann@company.example', email_verified: true };
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/sign-in`);
    await page.getByRole('button', { name: 'Test sign-in at Company' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Test sign-in' }).click();
    await page.getByRole('dialog').getByText('A real sign-in would create an account.').waitFor();
    await page.getByRole('dialog').getByText('ann@company.example').first().waitFor();
    expect(await barriersOf(page)).toEqual([]);
    for (const other of page.context().pages()) if (other !== page) await other.close();
    await page.bringToFront();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Prove company.example' }).click();
    await page.getByRole('button', { name: 'Ask for a record' }).click();
    await page.getByRole('dialog').getByText('company.example').first().waitFor();
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Turn off Company' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click();
    await page.getByRole('button', { name: 'Turn on Company' }).waitFor();
    await part(page, 'Single sign-on').getByRole('button', { name: 'Change' }).click();
    await page.getByLabel('Owners may break the glass').uncheck();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await part(page, 'Single sign-on')
      .locator('div', { hasText: 'Owners may break the glass' })
      .getByText('no', { exact: true })
      .waitFor();
    await openId.close();
  });

  it('demands a second factor, says who lacks one, and what takes a fresh one', async () => {
    const eve = await registerProven(app, { name: 'eve' });
    const dan = await colleague(app, eve, 'viewer');
    const page = await pageOf(eve);
    await open(page, `${homeOf(eve)}/sign-in`);
    const rules = part(page, 'Second factors');
    const lacking = rules.getByRole('table', { name: 'Members without a second factor' });
    await lacking.getByText(dan.username).waitFor();
    await lacking.getByText('not demanded').first().waitFor();
    const change = async () => {
      await rules.getByRole('button', { name: 'Change the rules for second factors' }).click();
      const dialog = page.getByRole('dialog', { name: 'Second factors' });
      await dialog.getByLabel('All members need a second factor').check();
      await dialog.getByLabel('Days without one').fill('3');
      await dialog.getByLabel('Members and their roles').check();
      await dialog.getByRole('button', { name: 'Save', exact: true }).click();
      return dialog;
    };
    const refused = await change();
    await refused.getByRole('alert').getByText('Add a second factor to your own account first.').waitFor();
    await refused.getByRole('link', { name: 'Add one in another window' }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await withTotp(app, eve);
    await letFactorsAge(app, eve);
    app.services.authentication.sessionsChanged();
    const stale = await change();
    const link = stale.getByRole('alert').getByRole('link', { name: 'Prove it in another window' });
    expect(await link.getAttribute('href')).toBe(`${app.url}/account/factors`);
    await app.database.pool.query('update sessions set factor_at = now() where user_id = $1', [eve.userId]);
    app.services.authentication.sessionsChanged();
    await stale.getByRole('button', { name: 'Save', exact: true }).click();
    await stale.waitFor({ state: 'detached' });
    await rules.locator('dd', { hasText: 'Members and their roles' }).waitFor();
    await lacking.getByText('not demanded').first().waitFor({ state: 'detached' });
    const { body } = await eve.call('GET', `/v1/orgs/${eve.orgId}/sign-in-policy`);
    expect(body).toMatchObject({ require_factor: true, factor_grace_days: 3, step_up: ['member_changes'] });
    // the own account has one now
    await lacking.getByText(eve.username).waitFor({ state: 'detached' });
    expect(await barriersOf(page)).toEqual([]);
  });

  it('gives a directory a token, and takes it back', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/sign-in`);
    await page.getByRole('button', { name: 'New SCIM token' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Okta');
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'SCIM token Okta' });
    const [url, token] = [
      (await once.locator('code').nth(0).textContent())!,
      (await once.locator('code').nth(1).textContent())!,
    ];
    expect([new URL(url).pathname, token.length > 20]).toEqual([`/scim/v2/${ann.orgId}`, true]);
    await once.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Revoke Okta' }).click();
    await page.getByLabel('Type “Okta” to confirm').fill('Okta');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('No directory keeps the members of this organization.').waitFor();
  });

  it('grants a model to a workspace, and says where a request would go', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/models`);
    await page.getByRole('button', { name: 'Large', exact: true }).click();
    await page.getByRole('cell', { name: 'Models EU' }).waitFor();
    const ask = page.getByRole('button', { name: 'Where would a request go now?' });
    await ask.click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Grant a model' }).click();
    await page.getByLabel('Most requests a day').fill('1000');
    await page.getByRole('dialog').getByRole('button', { name: 'Grant a model' }).click();
    await part(page, 'What this workspace may use').getByText('1,000 requests a day').waitFor();
    await page.getByRole('button', { name: 'Large', exact: true }).click();
    await ask.click();
    await page.getByRole('dialog').getByRole('listitem').getByText('large-1').waitFor();
    expect(await barriersOf(page)).toEqual([]);
  });

  it('makes an app from a recipe, with what takes the place of what is missing', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/apps`);
    await page.getByRole('button', { name: 'New app from a recipe' }).click();
    await page.getByRole('button', { name: /An assistant that answers one message/ }).click();
    await page.getByLabel('Name', { exact: true }).fill('Our assistant');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByLabel('Instead of default-chat').selectOption({ label: 'Large' });
    expect(await barriersOf(page)).toEqual([]);
    expect((await ann.call<{ apps: unknown[] }>('GET', `${ann.home}/apps`)).body.apps).toHaveLength(1);
    await page.getByRole('button', { name: 'Create the app' }).click();
    await page.getByRole('link', { name: 'Open the app' }).click();
    await page.getByRole('heading', { level: 1, name: 'Our assistant' }).waitFor();
    const { rows } = await app.database.pool.query<{ model: string }>(
      'select distinct logical_model_id as model from augmentation_steps where logical_model_id is not null',
    );
    expect(rows).toEqual([{ model: 'large' }]);
  });

  it('shows what differs between versions of a text, and goes back to one', async () => {
    const { body } = await ann.call<{ namespace_id: string }>('GET', `${ann.home}/namespaces/default`);
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/artifacts?namespace=${body.namespace_id}`);
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByRole('button', { name: 'Compare' }).click();
    const lines = page.getByRole('list', { name: 'Differences from version 1 to version 2' }).locator('li');
    await lines.first().waitFor();
    expect(await lines.allTextContents()).toEqual([
      ' # Plan',
      ' ',
      '−RemovedBuy milk.',
      '+AddedBuy tea.',
      ' Call Ann.',
    ]);
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Restore version 1' }).click();
    await page.getByRole('button', { name: 'Restore version 2' }).waitFor();
    await page.getByText('Version 3').first().waitFor();
  });

  it('mutes a category everywhere, and another one in one workspace', async () => {
    const page = await pageOf(ann);
    await open(page, `${app.url}/console/notifications`);
    await page.getByRole('button', { name: 'Settings' }).click();
    const muted = page.getByRole('checkbox', { name: 'Deployments' });
    await muted.click();
    await waitFor(async () => expect(await muted.isChecked()).toBe(true));
    await page.getByRole('combobox', { name: 'Category' }).selectOption('secret');
    await page.getByRole('combobox', { name: 'For', exact: true }).selectOption(`${ann.orgId} ${ann.workspaceId}`);
    await page.getByRole('button', { name: 'Mute', exact: true }).click();
    await page.getByRole('button', { name: /^Unmute Secrets by mail/ }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.reload();
    await page.getByRole('button', { name: 'Settings' }).click();
    await waitFor(async () => expect(await muted.isChecked()).toBe(true));
    await page.getByRole('button', { name: /^Unmute Secrets by mail/ }).click();
    await page.getByText('Nothing is muted in one place alone.').waitFor();
  });

  it('works, and lives, where browsers may send registered documents only', async () => {
    const only = await app.another({ PERSISTED_ONLY: 'true' });
    await only.listen();
    const page = await pageOf(ann);
    const asked: unknown[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/graphql')) asked.push(request.postDataJSON());
    });
    await page.goto(`${only.url}/console/o/${ann.orgId}/w/${ann.workspaceId}/environments`);
    await page.getByRole('button', { name: 'Change Support desk in Production: 1.0.0' }).waitFor();
    expect((await ann.call('PUT', ann.home, { name: 'Persisted' })).status).toBe(200);
    await page.locator('.where', { hasText: 'Persisted' }).waitFor();
    // the first request tells how the service wants to be asked
    expect(faults.splice(0)).toEqual([expect.stringContaining('403')]);
    expect(asked.filter((body) => 'query' in (body as object))).toHaveLength(1);
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
