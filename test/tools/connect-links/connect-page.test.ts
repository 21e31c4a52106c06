import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { barriersOf } from '../../support/barriers.ts';
import { describeInBrowser, launchBrowser } from '../../support/browser.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { type Person, register } from '../../support/person.ts';
import { startConnectingApp } from '../connections/connecting.ts';
import { linkFor, makeKeyInstance, makeOAuthInstance, newEndUser } from './connecting-end-users.ts';

describeInBrowser('in a browser', () => {
  let app: TestApp;
  let server: OAuthServer;
  let browser: Browser;
  let ann: Person;
  const problems: string[] = [];
  beforeAll(async () => {
    [app, server, browser] = await Promise.all([startConnectingApp(), startOAuthServer(), launchBrowser()]);
    await app.listen();
    ann = await register(app, { name: 'ann' });
  });
  afterAll(async () => {
    await browser.close();
    await app.close();
    await server.close();
  });

  async function open(link: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (line) => {
      if (line.type() === 'error') problems.push(line.text());
    });
    await page.goto(link);
    return page;
  }

  /** Presses Tab until an element has the focus. */
  async function tabTo(page: Page, selector: string): Promise<void> {
    for (let presses = 0; presses < 10; presses++) {
      await page.keyboard.press('Tab');
      if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
    }
    throw new Error(`Tab does not reach ${selector}.`);
  }

  test('an account is connected by the keyboard alone, at the provider and back', async () => {
    const link = await linkFor(ann, await makeOAuthInstance(ann, server), newEndUser(), { return_to: null });
    const page = await open(link);
    expect(await barriersOf(page)).toEqual([]);
    await tabTo(page, 'button');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=is connected');
    expect(await barriersOf(page)).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('so is a key, and a wrong one is said', async () => {
    const link = await linkFor(ann, await makeKeyInstance(ann, server), newEndUser(), { return_to: null });
    const page = await open(link);
    expect(await barriersOf(page)).toEqual([]);
    await tabTo(page, '#api-key');
    await page.keyboard.type('schlüssel');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[role="alert"]');
    expect(await barriersOf(page)).toEqual([]);
    await tabTo(page, '#api-key');
    await page.keyboard.type('a-key');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=is connected');
    await page.goto(link);
    await page.waitForSelector('text=cannot be used');
    expect(await barriersOf(page)).toEqual([]);
  });
});
