// Takes pictures of all views of the console, in both colours and two widths, for eyes to judge:
// `node --import tsx scripts/picture-console.ts http://127.0.0.1:4000 FOLDER`. The service must be one to throw away:
// the script registers an account and tells a story in it.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { tellStory } from '../test/http/console-story.ts';

const [url = 'http://127.0.0.1:4000', folder = 'pictures'] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
mkdirSync(folder, { recursive: true });

const name = `painter-${Date.now()}`;
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
  analytics: `${home}/analytics?compare=yes`,
  notifications: '/console/notifications',
};

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const context = await browser.newContext();
  const first = await context.newPage();
  await first.goto(`${url}/console/`);
  await first.fill('#email', email);
  await first.click('#ask button');
  await first.fill('#password', password);
  await first.click('#password-form button');
  await first.waitForURL(/\/console\//);
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360]) {
      const page = await context.newPage();
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 860 });
      page.on('console', (message) => message.type() === 'error' && console.error(message.text()));
      page.on('pageerror', (error) => console.error(error.message));
      for (const [view, at] of Object.entries(views)) {
        await page.goto(`${url}${at}`);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.locator('.loading').first().waitFor({ state: 'detached' });
        await page.screenshot({ path: path.join(folder, `${view}-${colorScheme}-${width}.png`) });
      }
      await page.close();
    }
} finally {
  await browser.close();
}
console.log(`Wrote the pictures of ${Object.keys(views).length} views to ${folder}.`);
