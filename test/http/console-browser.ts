import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { launchBrowser } from '../support/browser.ts';
import { colleague, type Person, registerProven } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { type Story, tellStory } from './console-story.ts';

/** Whom tests of the console are about: an owner with a workspace that a story fills, an administrator, a viewer. */
export interface ConsoleCast {
  app: TestApp;
  browser: Browser;
  ann: Person;
  bob: Person;
  vic: Person;
  story: Story;
}

const AGENT = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

/** As the service refuses what it does not even read. */
export const BUSY = {
  status: 429,
  json: { error: 'RATE_LIMIT_EXCEEDED', message: 'Too many requests.', details: { retry_after: 1 } },
};

/** What the cookie of a browser holds, in which somebody has signed in. */
export async function cookieOf(app: TestApp, person: Person): Promise<string> {
  const headers = { ...person.headers, 'x-csrf': '1', origin: app.url, 'user-agent': AGENT };
  const answer = await fetch(`${app.url}/account/session`, { method: 'POST', headers });
  expect(answer.status).toBe(204);
  return /session=([\w-]{43});/.exec(answer.headers.getSetCookie().join())![1]!;
}

/** An app that sends to this machine, where the receivers and identity providers of tests are. */
export async function startConsoleApp(): Promise<TestApp> {
  const app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
  await app.listen();
  return app;
}

/**
 * The console in a browser, for the tests of the `describe` that calls it. After each test its pages are closed, and
 * nothing may be left in `faults`.
 */
export class ConsoleInBrowser {
  /** Contexts of the browser, by who is signed in there. */
  readonly contexts = new Map<Person, BrowserContext>();
  /** What browsers complained of, breaches of the policy included. */
  readonly faults: string[] = [];
  #cast: ConsoleCast | undefined;

  constructor() {
    beforeAll(async () => {
      this.#cast = await castOf(await startConsoleApp());
    });
    afterAll(async () => {
      await this.#cast?.browser.close();
      await this.#cast?.app.close();
    });
    afterEach(async () => {
      for (const context of this.contexts.values()) for (const page of context.pages()) await page.close();
      expect(this.faults.splice(0)).toEqual([]);
    });
  }

  /** For a test that has requests refused: a browser complains of each. */
  forgetAnswers(): void {
    const others = this.faults.filter((fault) => !fault.startsWith('Failed to load resource'));
    this.faults.splice(0, this.faults.length, ...others);
  }

  /** Call it in a test, or in a `beforeAll` of its own. */
  get cast(): ConsoleCast {
    if (!this.#cast) throw new Error('The cast is there when the tests begin.');
    return this.#cast;
  }

  /** A page of somebody who is signed in. */
  async pageOf(person: Person, size: Parameters<Page['setViewportSize']>[0] | null = null): Promise<Page> {
    const { app, browser } = this.cast;
    let context = this.contexts.get(person);
    if (!context) {
      context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
      const value = await cookieOf(app, person);
      await context.addCookies([{ name: 'session', value, url: app.url, httpOnly: true }]);
      this.contexts.set(person, context);
    }
    const page = await context.newPage();
    if (size) await page.setViewportSize(size);
    page.on('console', (message) => message.type() === 'error' && this.faults.push(message.text()));
    page.on('pageerror', (error) => this.faults.push(error.message));
    return page;
  }

  /** The address of the first view of somebody's workspace. */
  homeOf({ orgId, workspaceId }: Pick<Person, 'orgId' | 'workspaceId'>): string {
    return `${this.cast.app.url}/console/o/${orgId}/w/${workspaceId}`;
  }
}

async function castOf(app: TestApp): Promise<ConsoleCast> {
  const ann = await registerProven(app, { name: 'ann' });
  const [bob, vic] = [await colleague(app, ann, 'admin'), await colleague(app, ann, 'viewer')];
  const call = async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) => {
    const { status, body } = await ann.call(method, url, payload);
    if (status >= 400) throw new Error(`${method} ${url}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  const story = await tellStory(call, ann);
  const browser = await launchBrowser();
  return { app, browser, ann, bob, vic, story };
}

/** Opens a view, and waits until it shows what there is. */
export async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await waitFor(async () => expect(await page.locator('.loading').count()).toBe(0));
}

/** A part of a page that has a heading of its own. */
export const part = (page: Page, name: string) => page.getByRole('region', { name, exact: true });
