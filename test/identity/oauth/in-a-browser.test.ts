import { existsSync } from 'node:fs';
import * as client from 'openid-client';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { ask, callWith, newApplication, peerOf } from './oauth-browser.ts';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

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

// Debian's package `chromium`, or what CHROMIUM names; without either, only CI insists
describe.skipIf(!process.env.CI && !existsSync(executablePath))('in a browser', () => {
  let browser: Browser;
  const problems: string[] = [];
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  }, 60_000);
  afterAll(() => browser.close());

  const newPage = async (options: { javaScriptEnabled?: boolean } = {}): Promise<Page> => {
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
});
