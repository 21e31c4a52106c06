import { gunzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { describeInBrowser, launchBrowser } from '../support/browser.ts';
import { waitFor } from '../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
});
afterAll(() => app.close());

const linksOf = (html: string) => [...html.matchAll(/(?:href|src)="([^"#]+)(?:#[^"]*)?"/g)].map(([, url = '']) => url);

describe('the documentation', () => {
  it('leads from its first page to all others, and every link of a page to something', async () => {
    const seen = new Map<string, number>();
    const waiting = [new URL('/docs/', app.url).href];
    for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
      if (seen.has(url) || !url.startsWith(app.url)) continue;
      const answer = await fetch(url);
      seen.set(url, answer.status);
      const isPage =
        answer.headers.get('content-type')?.startsWith('text/html') && !answer.url.includes('/docs/api/static');
      const html = isPage ? await answer.text() : '';
      if (url.includes('/docs/') && !/\/docs\/api\/?$/.test(url))
        waiting.push(...linksOf(html).map((link) => new URL(link, url).href));
    }
    expect([...seen].filter(([, status]) => status !== 200)).toEqual([]);
    for (const page of ['start', 'guides/secrets', 'api/errors', 'operate/backup', 'decisions/0013-one-way-out'])
      expect([...seen.keys()]).toContain(`${app.url}/docs/${page}`);
  });

  it.each([
    ['/docs', 'docs/'],
    ['/docs/decisions', 'decisions/'],
    ['/docs/guides/secrets/', '../secrets'],
  ])('leads from %s to where its links are right', async (url, location) => {
    const answer = await app.server.inject(url);
    expect([answer.statusCode, answer.headers.location]).toEqual([308, location]);
    expect((await fetch(`${app.url}${url}`)).status).toBe(200);
  });

  it.each([
    ['/docs/guides/se%63rets', 200],
    ['/docs/guides%2Fsecrets', 404], // its links would lead nowhere
    ['/docs/guides/secrets.html', 404],
    ['/docs/guides/secrets.md.gz', 404],
    ['/docs/guides/../../../package.json', 404],
    ['/docs/guides/..%2f..%2f..%2fREADME.md', 404],
    ['/docs/guides/%ff', 400],
  ])('answers %s with %i', async (url, status) => {
    expect((await app.server.inject(url)).statusCode).toBe(status);
  });

  it('runs only its own scripts and loads nothing from outside', async () => {
    const { headers, body } = await app.server.inject('/docs/guides/secrets');
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'",
    );
    expect(body).not.toMatch(/<style|style="|\son\w+="|<script>/);
    expect(linksOf(body).filter((link) => /^(?:https?:)?\/\//.test(link))).toEqual([]);
  });

  it('is sent again only if it changed, and compressed to whoever takes that', async () => {
    const first = await app.server.inject('/docs/start');
    const known = { 'if-none-match': String(first.headers.etag) };
    expect((await app.server.inject({ url: '/docs/start', headers: known })).statusCode).toBe(304);
    const packed = await app.server.inject({ url: '/docs/start', headers: { 'accept-encoding': 'br, gzip' } });
    expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
    expect(gunzipSync(packed.rawPayload).toString()).toBe(first.body);
  });

  it('has pictures that say what they show, and that a browser takes for nothing else', async () => {
    const { body } = await app.server.inject('/docs/guides/console');
    const pictures = [...body.matchAll(/<img src="([^"]+\.webp)" alt="([^"]{20,})"/g)].map(([, src]) => src!);
    expect(pictures.length).toBeGreaterThan(9);
    for (const src of pictures) {
      const { statusCode, headers, rawPayload } = await app.server.inject(`/docs/guides/${src}`);
      expect([src, statusCode, headers['content-type']]).toEqual([src, 200, 'image/webp']);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect([rawPayload.toString('latin1', 8, 12), rawPayload.length < 60_000]).toEqual(['WEBP', true]);
    }
  });

  it('is Markdown for language models, from /llms.txt on', async () => {
    const contents = (await app.server.inject('/llms.txt')).body;
    expect(contents).toMatch(/^# Platform management API\n\n> /);
    const links = [...contents.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link!);
    expect(links).toContain('docs/guides/secrets.md');
    for (const link of links) {
      const answer = await app.server.inject(`/${link}`);
      expect([link, answer.statusCode, answer.headers['content-type']]).toEqual([
        link,
        200,
        'text/markdown; charset=utf-8',
      ]);
    }
  });

  it('escapes what a page shows', async () => {
    expect((await app.server.inject('/docs/guides/live-events')).body).toContain('&lt;!doctype html&gt;');
  });

  it('answers an unknown page in the shape of every error', async () => {
    const answer = await app.server.inject('/docs/guides/nothing');
    expect([answer.statusCode, answer.json()]).toMatchObject([404, { error: 'RESOURCE_NOT_FOUND' }]);
  });
});

describeInBrowser('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  it('is searched by keyboard without a service behind it, and breaks no rule of its policy', async () => {
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(`${app.url}/docs/guides/secrets`);
    await page.keyboard.press('/');
    await page.keyboard.type('behnd a proxi'); // as typed in a hurry
    await page
      .getByRole('option', { name: /Behind a proxy/ })
      .first()
      .waitFor();
    // the results of the last letters may come after those of the first ones, and unmark what was marked
    await waitFor(async () => {
      const marked = page.locator('[aria-selected="true"]');
      if ((await marked.count()) === 0) await page.keyboard.press('ArrowDown');
      expect(await marked.allTextContents()).toEqual([expect.stringContaining('Behind a proxy')]);
    });
    await page.keyboard.press('Enter');
    await page.waitForURL(`${app.url}/docs/operate/install#behind-a-proxy`);
    await page.getByRole('searchbox').or(page.getByRole('combobox')).fill('zzzzqqqq');
    await waitFor(async () => expect(await page.getByRole('status').textContent()).toBe('0 results'));
    expect(faults).toEqual([]);
    await page.close();
  });

  it('fits a phone, and is dark where the reader wants it', async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' });
    for (const at of ['', 'operate/configuration', 'api/events', 'guides/live-events', 'guides/console']) {
      await page.goto(`${app.url}/docs/${at}`);
      expect([at, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([at, 360]);
    }
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(20, 25, 31)');
    expect(await page.locator('nav details').getAttribute('open')).toBeNull();
    await page.close();
  });
});
