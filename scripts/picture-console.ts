// Takes pictures of all views of the console, in both colours and two widths, for eyes to judge:
// `node --import tsx scripts/picture-console.ts http://127.0.0.1:4000 FOLDER`. The service must be one to throw away:
// the script registers an account and tells a story in it. With `guide` as a third argument, it makes the small
// pictures of the guide instead: FOLDER is then `docs/guides/console`.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { tellStory } from '../test/http/console-story.ts';

const [url = 'http://127.0.0.1:4000', folder = 'pictures', kind] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
mkdirSync(folder, { recursive: true });

const name = kind === 'guide' ? 'ann' : `painter-${Date.now()}`;
const password = 'correct horse battery staple';
let token = '';
async function call(method: string, at: string, payload?: object): Promise<unknown> {
  const answer = await fetch(`${url}${at}`, {
    method,
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    ...(payload && { body: JSON.stringify(payload) }),
  });
  const body: unknown = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${JSON.stringify(body)}`);
  return body;
}

interface Registered {
  access_token: string;
  user: { default_workspace_id: string; settings: { current_org_id: string } };
}
const email = `${name}@example.test`;
const registered = (await call('POST', '/v1/auth/register', { username: name, email, password })) as Registered;
token = registered.access_token;
const orgId = registered.user.settings.current_org_id;
const workspaceId = registered.user.default_workspace_id;
const story = await tellStory(call, { orgId, workspaceId });

const home = `/console/o/${orgId}/w/${workspaceId}`;
const views: Record<string, string> = {
  chooser: '/console/',
  home,
  secrets: `${home}/secrets`,
  environments: `${home}/environments`,
  activity: `${home}/activity`,
  people: `${home}/people`,
  models: `${home}/models`,
  tokens: `${home}/tokens`,
  'sign-in': `${home}/sign-in`,
  webhooks: `${home}/webhooks`,
  tools: `${home}/tools`,
  artifacts: `${home}/artifacts`,
  graph: `${home}/graph`,
  apps: `${home}/apps`,
  app: `${home}/apps/${story.appId}`,
  run: `${home}/apps/${story.appId}?run=run-2`,
  runs: `${home}/runs`,
  analytics: `${home}/analytics?compare=yes`,
  notifications: '/console/notifications',
};

/** Shows a view, as soon as it has what it shows. */
async function show(page: Page, at: string): Promise<void> {
  await page.goto(`${url}${at}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}

/** Each view at two widths and in both colours. */
async function pictureAll(context: BrowserContext): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360]) {
      const page = await context.newPage();
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 860 });
      page.on('console', (message) => message.type() === 'error' && console.error(message.text()));
      page.on('pageerror', (error) => console.error(error.message));
      for (const [view, at] of Object.entries(views)) {
        await show(page, at);
        await page.screenshot({ path: path.join(folder, `${view}-${colorScheme}-${width}.png`) });
      }
      await page.close();
    }
}

/** The views of the guide, and the most that a picture of one may have. */
const GUIDE = 'home activity analytics secrets environments app run artifacts models people sign-in'.split(' ');
const MOST_BYTES = 60_000;

/** The views of the guide, once and small. */
async function pictureGuide(context: BrowserContext): Promise<void> {
  const page = await context.newPage();
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 1_100, height: 700 });
  const session = await context.newCDPSession(page);
  for (const view of GUIDE) {
    await show(page, views[view]!);
    await page.evaluate('document.fonts.ready');
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
    const bytes = Buffer.from(data, 'base64');
    if (bytes.length > MOST_BYTES) throw new Error(`The picture of ${view} has ${bytes.length} bytes.`);
    writeFileSync(path.join(folder, `${view}.webp`), bytes);
  }
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC' });
  const first = await context.newPage();
  await first.goto(`${url}/console/`);
  await first.fill('#email', email);
  await first.click('#ask button');
  await first.fill('#password', password);
  await first.click('#password-form button');
  await first.waitForURL(/\/console\//);
  await (kind === 'guide' ? pictureGuide : pictureAll)(context);
} finally {
  await browser.close();
}
console.log(`Wrote pictures to ${folder}.`);
