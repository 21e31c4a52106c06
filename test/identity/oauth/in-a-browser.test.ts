import * as client from 'openid-client';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { barriersOf } from '../../support/barriers.ts';
import { describeInBrowser, launchBrowser } from '../../support/browser.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { ask, callWith, newApplication, peerOf } from './oauth-browser.ts';

let app: TestApp;
let front: TargetServer;
let ann: Person;
beforeAll(async () => {
  front = await startTarget((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Front</title>'),
  );
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await front.close();
});

describeInBrowser('in a browser', () => {
  let browser: Browser;
  const problems: string[] = [];
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  const newPage = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on('console', (message) => problems.push(message.text()));
    return page;
  };
  /** An application whose answers go to another origin, as in the field. */
  const begin = async () => {
    const callback = `http://localhost:${front.port}/callback`;
    const peer = await peerOf(app, await newApplication(ann, { redirect_uris: [callback] }));
    const { url, verifier, state } = await ask(peer, { redirect_uri: callback, scope: 'workspace:read' });
    const finish = async (page: Page) => {
      await page.waitForURL(/\/callback\?code=/);
      const checks = { pkceCodeVerifier: verifier, expectedState: state };
      return client.authorizationCodeGrant(peer, new URL(page.url()), checks);
    };
    return { url, finish };
  };

  test('signs in with the script, allows, and goes back to the application', async () => {
    const { url, finish } = await begin();
    const page = await newPage();
    await page.goto(url.href);
    await page.fill('#email', ann.email);
    await page.click('#ask button');
    await page.fill('#password', ann.password);
    await page.click('#password-form button');
    await page.waitForSelector('text=Allow Notes?');
    await page.click('button[value="allow"]');
    const tokens = await finish(page);
    expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
    expect(await page.evaluate('document.cookie')).toBe('');
    expect(problems.filter((text) => !text.includes('favicon'))).toEqual([]);
  });

  test('does the same without a script', async () => {
    const { url, finish } = await begin();
    const page = await newPage({ javaScriptEnabled: false });
    await page.goto(url.href);
    await page.fill('#plain-username', ann.username);
    await page.fill('#plain-password', ann.password);
    await page.click('form:has(#plain-username) button');
    await page.waitForSelector('text=Allow Notes?');
    await page.click('button[value="allow"]');
    expect((await finish(page)).scope).toBe('workspace:read');
    await page.goto(`${app.url}/account`);
    await page.click('text=Sign out');
    await page.waitForSelector('text=You are signed out');
    expect(await page.context().cookies()).not.toContainEqual(expect.objectContaining({ name: 'session' }));
  });

  /** Goes to an element as somebody without a mouse does. */
  const tabTo = async (page: Page, selector: string): Promise<void> => {
    const isThere = () => page.locator(selector).evaluate((element) => element === element.ownerDocument.activeElement);
    for (let steps = 0; steps < 12 && !(await isThere()); steps += 1) await page.keyboard.press('Tab');
    expect(await isThere(), `${selector} is reached by the keyboard`).toBe(true);
  };
  const signIn = async (page: Page, to: string): Promise<void> => {
    await page.goto(`${app.url}/account/sign-in?return_to=${encodeURIComponent(to)}`);
    await page.fill('#email', ann.email);
    await page.keyboard.press('Enter');
    await page.fill('#password', ann.password);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${app.url}${to}`);
  };

  test('leads on to the console: who has signed in, joined by an invitation, or confirmed an address', async () => {
    await app.jobsDone();
    const linkOf = (email: string) => app.mails.findLast(({ to }) => to === email)!.link!;
    const toConsole = async (page: Page, where = /\/console\//) => {
      await page.click('text=Go to the console');
      await page.waitForURL(where);
    };
    const page = await newPage();
    await page.goto(linkOf(ann.email));
    await page.click('#verify button');
    // the console leads whoever has not signed in to where they do
    await toConsole(page, /return_to=%2Fconsole%2F/);
    await page.goto(`${app.url}/account/sign-in`);
    await page.fill('#email', ann.email);
    await page.keyboard.press('Enter');
    await page.fill('#password', ann.password);
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=You are signed in as');
    await toConsole(page);
    await page.goto(`${app.url}/account`);
    await toConsole(page);
    const email = `joins-${ann.userId.slice(-6)}@example.test`.toLowerCase();
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/invitations`, { email, role: 'member' })).status).toBe(201);
    await app.jobsDone();
    const colleague = await newPage();
    await colleague.goto(linkOf(email));
    // a name with a blank is refused with what a name may have
    await colleague.fill('#username', 'Jo Ann');
    expect(await colleague.locator('#username').getAttribute('title')).toContain('without blanks');
    await colleague.fill('#username', email.split('@')[0]!);
    await colleague.fill('#password', 'correct horse battery');
    await colleague.click('#register button');
    await colleague.waitForSelector('text=you have joined');
    await toConsole(colleague);
  });

  test('leads who makes an account on the way, or forgot a password, back to where they were going', async () => {
    const page = await newPage();
    const username = `newcomer-${ann.userId.slice(-6)}`.toLowerCase();
    await page.goto(`${app.url}/account/sign-in?return_to=%2Foauth%2Fdevice`);
    await page.click('text=Forgot your password?');
    // the page's own script keeps where they were going
    await page.waitForLoadState('load');
    await page.click('text=Go to the page to sign in');
    await page.waitForLoadState('load');
    await page.click('text=Create an account');
    await page.waitForLoadState('load');
    await page.fill('#email', `${username}@example.test`);
    await page.fill('#username', username);
    await page.fill('#password', 'correct horse battery');
    await page.click('button[type="submit"]');
    await page.waitForSelector('text=Your account is ready');
    await page.click('text=Go to the page to sign in');
    await page.fill('#email', `${username}@example.test`);
    await page.keyboard.press('Enter');
    await page.fill('#password', 'correct horse battery');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${app.url}/oauth/device`);
  });

  test('connects a device by the keyboard alone', async () => {
    const device = await peerOf(app, await newApplication(ann, { name: 'Shell', redirect_uris: [] }));
    const begun = await client.initiateDeviceAuthorization(device, { scope: 'workspace:read' });
    const page = await newPage();
    await signIn(page, '/oauth/device');
    expect(await barriersOf(page)).toEqual([]);
    await tabTo(page, '#user_code');
    await page.keyboard.type(begun.user_code);
    await page.keyboard.press('Enter');
    await page.waitForSelector('button[name="confirm"]');
    expect(await barriersOf(page)).toEqual([]);
    await tabTo(page, 'button[name="confirm"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('button[value="allow"]');
    expect(await barriersOf(page)).toEqual([]);
    await tabTo(page, 'button[value="allow"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=The device is connected');
    expect(await barriersOf(page)).toEqual([]);
    expect(await page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth")).not.toBe('none');
    const tokens = await client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
      device_code: begun.device_code,
    });
    expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
  });

  test.each(['light', 'dark'] as const)(
    'its pages have no barriers for people who hear them, %s',
    async (colorScheme) => {
      const page = await newPage({ colorScheme });
      const barriers: Record<string, string[]> = {};
      const visit = async (path: string) => {
        await page.goto(`${app.url}${path}`);
        barriers[path] = await barriersOf(page);
      };
      const strangers = [
        'sign-in',
        'register',
        'forgot-password',
        'reset-password',
        'verify-email',
        'accept-invitation',
      ];
      for (const name of strangers) await visit(`/account/${name}`);
      await visit('/');
      await signIn(page, '/account');
      for (const path of ['/account', '/account/factors', '/oauth/device']) await visit(path);
      expect(Object.fromEntries(Object.entries(barriers).filter(([, found]) => found.length > 0))).toEqual({});
      expect(Object.keys(barriers)).toHaveLength(10);
    },
  );
});
