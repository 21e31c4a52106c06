// own process: the page's service is named in the environment
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page, Route } from 'playwright-core';
import { type PreviewServer, preview } from 'vite';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { describeInBrowser, launchBrowser } from '../support/browser.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';

const root = path.join(projectRoot, 'examples', 'front-end');
const vite = path.join(projectRoot, 'node_modules', 'vite', 'bin', 'vite.js');

describeInBrowser('the sample front end', () => {
  let app: TestApp;
  let outDir: string;
  let front: PreviewServer;
  let browser: Browser;
  let ann: Person;
  let bob: Person;
  let url: string;
  /** What the browser complained of, breaches of the page's policy included. */
  const faults: string[] = [];

  beforeAll(async () => {
    app = await startTestApp();
    process.env.SERVICE_URL = await app.listen();
    outDir = mkdtempSync(path.join(tmpdir(), 'front-end-'));
    const env = { ...process.env, NODE_ENV: 'production' };
    await promisify(execFile)(process.execPath, [vite, 'build', '--outDir', outDir, '--emptyOutDir'], {
      cwd: root,
      env,
    });
    front = await preview({ root, build: { outDir }, preview: { port: 0, host: '127.0.0.1' } });
    url = front.resolvedUrls!.local[0]!;
    browser = await launchBrowser();
    ann = await register(app, { name: 'ann' });
    bob = await colleague(app, ann, 'admin');
  });
  afterAll(async () => {
    delete process.env.SERVICE_URL;
    await browser?.close();
    await front?.close();
    await app.close();
    rmSync(outDir, { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
    expect(faults.splice(0)).toEqual([]);
  });

  /** The page in a browser of its own. */
  async function opened(): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(url);
    return page;
  }

  async function signIn(page: Page, person: Person, password = person.password): Promise<void> {
    await page.getByLabel('User name').fill(person.username);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  /** The list of ann's workspaces, as somebody who has signed in sees it. */
  async function listOf(person: Person): Promise<Page> {
    const page = await opened();
    await signIn(page, person);
    await page.getByLabel('Organization').selectOption(ann.orgId);
    await page.getByRole('link', { name: 'Default workspace' }).waitFor();
    return page;
  }

  /** The page of ann's workspace. */
  async function workspaceOf(person: Person): Promise<Page> {
    const page = await listOf(person);
    await page.getByRole('link', { name: 'Default workspace' }).click();
    await page.getByRole('button', { name: 'Rename' }).waitFor();
    return page;
  }

  const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent();
  const rename = async (page: Page, name: string) => {
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByRole('button', { name: 'Rename' }).click();
  };

  test('a wrong password is said in the words of the service, and the right one opens the list', async () => {
    const page = await opened();
    await signIn(page, ann, 'not the password');
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').textContent()).toBe('E-mail or password is wrong.');
    await signIn(page, ann);
    await page.getByRole('heading', { name: 'Workspaces' }).waitFor();
    await page.getByRole('link', { name: 'Default workspace' }).waitFor();
    expect(await page.evaluate('localStorage.length + sessionStorage.length')).toBe(0);
  });

  test('the list comes page by page, and a new workspace appears without a reload', async () => {
    const owner = await register(app);
    const names = Array.from({ length: 24 }, (_, at) => `Workspace ${at + 1}`);
    const create = async (name: string) => {
      const payload = { name, organization_id: owner.orgId };
      expect((await owner.call('POST', `/v1/orgs/${owner.orgId}/workspaces`, payload)).status).toBe(201);
    };
    for (const name of names) await create(name);
    const all = [...names.reverse(), 'Default workspace'];

    const page = await opened();
    await signIn(page, owner);
    const shown = async () => page.locator('main li a').allTextContents();
    await waitFor(async () => expect(await shown()).toEqual(all.slice(0, 10)));
    await page.locator('.total', { hasText: /^25 in all$/ }).waitFor();
    for (const count of [20, 25]) {
      await page.getByRole('button', { name: 'More' }).click();
      await waitFor(async () => expect(await shown()).toEqual(all.slice(0, count)));
    }
    await page.getByRole('button', { name: 'More' }).waitFor({ state: 'detached' });

    await create('The newest');
    await waitFor(async () => expect(await shown()).toEqual(['The newest', ...all]));
    await page.locator('.total', { hasText: /^26 in all$/ }).waitFor();
  });

  test('a new name is shown before the service has answered, and taken back when it refuses', async () => {
    const page = await workspaceOf(ann);
    let held: Route | undefined;
    await page.route('**/graphql', (route) => {
      if (route.request().postData()?.includes('mutation RenameWorkspace')) held = route;
      else return route.continue();
    });
    await rename(page, 'Renamed');
    await waitFor(() => expect(held).toBeDefined());
    await waitFor(async () => expect(await heading(page)).toBe('Renamed'));
    expect((await ann.call('GET', ann.home)).body).toMatchObject({ name: 'Default workspace' });
    await held!.continue();
    await waitFor(async () => expect((await ann.call('GET', ann.home)).body).toMatchObject({ name: 'Renamed' }));

    // somebody changes it while the next change is on its way
    held = undefined;
    await rename(page, 'Too late');
    await waitFor(() => expect(held).toBeDefined());
    expect((await bob.call('PUT', ann.home, { name: 'Default workspace' })).status).toBe(200);
    await held!.continue();
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').textContent()).toMatch(/^The resource is at version 3, /);
    await waitFor(async () => expect(await heading(page)).toBe('Default workspace'));
  });

  test('who is there is seen, and what others change', async () => {
    const page = await workspaceOf(ann);
    const present = async () =>
      (await page.getByRole('region', { name: 'Present' }).locator('li').allTextContents()).sort();
    await waitFor(async () => expect(await present()).toEqual([ann.username]));
    const other = await workspaceOf(bob);
    await waitFor(async () => expect(await present()).toEqual([ann.username, bob.username].sort()));
    await rename(other, 'By Bob');
    await waitFor(async () => expect(await heading(page)).toBe('By Bob'));
    await rename(page, 'Default workspace');
    await waitFor(async () => expect(await heading(other)).toBe('Default workspace'));
  });

  test('the badge counts what is unread', async () => {
    const carol = await register(app, { name: 'carol' });
    const page = await opened();
    await signIn(page, carol);
    const badge = page.getByLabel('Unread notifications');
    await waitFor(async () => expect(await badge.textContent()).toBe('0'));
    const payload = { user_id: carol.userId, role: 'editor' };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/members`, payload)).status).toBe(201);
    await waitFor(async () => expect(await badge.textContent()).toBe('1'));
  });

  test('when the access token has ended, one exchange serves all that waits for it', async () => {
    const page = await opened();
    await page.clock.install();
    await signIn(page, ann);
    await page.getByLabel('Organization').selectOption(ann.orgId);
    await page.getByRole('link', { name: 'Default workspace' }).waitFor();
    const tokens = new Set<string | undefined>();
    let exchanges = 0;
    page.on('request', (request) => {
      const text = request.postData() ?? '';
      if (text.includes('mutation Refresh')) exchanges += 1;
      if (text.includes('query Workspace(')) tokens.add(request.headers().authorization);
    });
    await page.clock.setSystemTime(Date.now() + 2 * 60 * 60 * 1_000);
    await page.getByRole('link', { name: 'Default workspace' }).click();
    await page.getByRole('button', { name: 'Rename' }).waitFor();
    expect(exchanges).toBe(1);
    expect([...tokens]).toEqual([expect.stringMatching(/^Bearer ./)]);
    expect([...tokens]).not.toContain(`Bearer ${ann.accessToken}`);
  });
});
