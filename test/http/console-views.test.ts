import { beforeAll, expect, it } from 'vitest';
import { foldActivity } from '../../src/insight/activity/activity.service.ts';
import type { TestApp } from '../support/app.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import { colleague, type Person, platformAdmin, registerProven } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { ConsoleInBrowser, open, part } from './console-browser.ts';
import { pagesAskedBy } from './console-many.ts';
import type { Story } from './console-story.ts';

describeInBrowser('the console in a browser', () => {
  const shown = new ConsoleInBrowser();
  const pageOf = (...given: Parameters<ConsoleInBrowser['pageOf']>) => shown.pageOf(...given);
  const homeOf = (place: Pick<Person, 'orgId' | 'workspaceId'>) => shown.homeOf(place);
  let app: TestApp;
  let ann: Person;
  let bob: Person;
  let vic: Person;
  let story: Story;
  beforeAll(() => {
    ({ app, ann, bob, vic, story } = shown.cast);
  });

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

  it('leads to the page to sign in, comes back, and keeps no token', async () => {
    const context = await shown.cast.browser.newContext();
    const page = await context.newPage();
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
      ['/graph', 'There is nothing to draw yet'],
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
    const buttons = {
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
    };
    for (const [view, some] of Object.entries(buttons)) {
      await open(page, `${homeOf(ann)}${view}`);
      const seen = () => page.locator('main button, main input[type=file]').allTextContents();
      // what stands below a heading may be read after it
      await waitFor(async () => expect([view, await seen()]).toEqual([view, some]));
    }
    for (const name of ['Secrets', 'Webhooks', 'Sign-in'])
      expect(await page.getByRole('link', { name, exact: true }).count()).toBe(0);
  });

  it('shows administrators of the platform how the service is, again and again', async () => {
    const admin = await platformAdmin(app);
    const page = await pageOf(admin);
    await page.clock.install();
    await open(page, `${app.url}/console/`);
    await page.locator('summary', { hasText: admin.username }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Operators' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Operators' }).waitFor();
    const nodes = part(page, 'Nodes');
    await nodes.getByRole('cell', { name: '1 of 1' }).waitFor();
    await part(page, 'Root keys').getByText('in use').waitFor();
    await part(page, 'Signing keys').getByText('in use').waitFor();
    await part(page, 'Live events').getByRole('columnheader', { name: 'Held back' }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await app.database.pool.query(`with t as (insert into jobs._private_tasks (identifier) values ('retention')
        on conflict (identifier) do update set identifier = excluded.identifier returning id)
      insert into jobs._private_jobs (task_id, run_at) select id, now() + interval '1 day' from t`);
    await page.clock.fastForward(10_000);
    await page.getByRole('rowheader', { name: 'retention' }).waitFor();
    await page.setViewportSize({ width: 360, height: 800 });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await barriersOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  it('has no page for operators for anybody else', async () => {
    const page = await pageOf(vic);
    const asked = pagesAskedBy(page);
    for (const view of ['operators', 'nowhere']) {
      await page.goto(`${app.url}/console/${view}`);
      await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    }
    await page.locator('summary', { hasText: vic.username }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    expect(await page.getByRole('link', { name: 'Operators' }).count()).toBe(0);
    expect(asked.Operators).toBeUndefined();
  });

  it('shows numbers over time beside those of another span, with their tables and files', async () => {
    await app.services.activity.flush();
    await foldActivity(app.services.sql);
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/analytics?compare=week`);
    const latency = part(page, 'Latency (ms)');
    const lines = ['p50', 'p95', 'p99', 'p95 before'];
    await latency.getByText('p95 before').first().waitFor();
    await waitFor(async () => expect(await latency.locator('.legend li').allTextContents()).toEqual(lines));
    await latency.getByText('Numbers as a table').click();
    await latency.getByRole('columnheader', { name: 'p99' }).waitFor();
    // numbers may be read anew between two looks
    await waitFor(async () => {
      const times = await latency.locator('tbody tr').count();
      const href = await latency.getByRole('link', { name: 'Latency (ms) as CSV' }).getAttribute('href');
      const [head, ...rows] = decodeURIComponent(href!.split(',').slice(1).join(',')).split('\r\n');
      expect([head, rows.length]).toEqual([`time,${lines.join(',')}`, times]);
    });
    await part(page, 'Storage').locator('canvas').waitFor();
    const top = part(page, 'Used most');
    await top.getByRole('combobox', { name: 'By' }).selectOption('Runs');
    await top.getByRole('rowheader', { name: 'Support desk' }).waitFor();
    await page.getByRole('combobox', { name: 'Span', exact: true }).selectOption('12 months');
    await page.getByRole('combobox', { name: 'Of', exact: true }).selectOption('The organization');
    await top.waitFor({ state: 'detached' });
    await part(page, 'Requests').locator('canvas').waitFor();
    await open(page, homeOf(ann));
    await page.getByText('Requests, 24 hours', { exact: true }).waitFor();
    await page.locator('.spark').first().waitFor();
  });

  it('is walked by keyboard alone', async () => {
    const page = await pageOf(ann);
    await open(page, homeOf(ann));
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent');
    await page.keyboard.press('Tab');
    await waitFor(async () => expect(await focused()).toBe('Skip to the content'));
    await page.keyboard.press('Enter');
    await waitFor(async () => expect(await focused()).toBe('main'));
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

  it('compares secrets, reveals one with a reason, and forgets its value', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/secrets`);
    await page.getByRole('button', { name: 'Add DATABASE_URL to Staging' }).waitFor();
    await page.getByRole('button', { name: 'Open STRIPE_KEY of Production' }).click();
    await page.getByLabel('Reason (optional)').fill('Ticket 7');
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Reveal value' }).click();
    await page.getByText('STRIPE_KEY-1').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Open STRIPE_KEY of Production' }).click();
    await page.getByRole('button', { name: 'Reveal value' }).waitFor();
    expect(await page.content()).not.toContain('STRIPE_KEY-1');
    await open(page, `${homeOf(ann)}/activity?action=reveal`);
    await page.getByRole('button', { name: 'revealed secret STRIPE_KEY' }).click();
    await page.getByRole('definition').getByText('Ticket 7').waitFor();
  });

  it('finds things by their names and does what somebody may do, by keyboard alone', async () => {
    const folder = `${ann.home}/apps/${story.appId}/namespaces/default/entities`;
    expect((await ann.call('POST', folder, { name: 'Ada Lovelace', entity_type: 'person' })).status).toBe(201);
    const page = await pageOf(ann);
    const choose = async (text: string, choice: string) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Name of a view, of an action, or of a thing' }).fill(text);
      const option = page.getByRole('option', { name: choice });
      await option.waitFor();
      await waitFor(async () => {
        if ((await option.getAttribute('aria-selected')) !== 'true') await page.keyboard.press('ArrowDown');
        expect(await option.getAttribute('aria-selected')).toBe('true');
      });
      await page
        .getByRole('status')
        .getByText(/^\d+ choices?$/)
        .waitFor();
    };
    await open(page, homeOf(ann));
    await choose('stripe', 'STRIPE_KEY Secret · Production');
    expect(await barriersOf(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: 'STRIPE_KEY' }).waitFor();
    await page.keyboard.press('Escape');
    await choose('milk tea plan', 'Plan Artifact');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: 'Plan' }).waitFor();
    await page.keyboard.press('Escape');
    await choose('lovelace', 'Ada Lovelace Entity');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor();
    await choose(bob.username, `${bob.username} person`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'People' }).waitFor();
    for (const [text, title] of [
      ['new secret', 'New secret'],
      ['invite', 'Invite'],
      ['slack', 'Add tool'],
    ] as const) {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: /Name of a view/ }).fill(text);
      await page.getByRole('option', { name: text === 'slack' ? 'Add Slack' : title }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 2, name: title }).waitFor();
      // a first one clears a field for searches
      await waitFor(async () => {
        await page.keyboard.press('Escape');
        expect(await page.getByRole('dialog').count()).toBe(0);
      });
    }
    await choose('dark', 'Colours: dark action');
    await page.keyboard.press('Enter');
    await waitFor(async () => expect(await page.locator('html').getAttribute('data-theme')).toBe('dark'));
    await choose('colours', 'Colours: as the system action');
    await page.keyboard.press('Enter');
    await waitFor(async () => expect(await page.locator('html').getAttribute('data-theme')).toBe('system'));
  });

  it('finds for a viewer nothing that the service would refuse, and signs out by keyboard', async () => {
    const guest = await colleague(app, ann, 'viewer');
    const page = await pageOf(guest);
    await open(page, homeOf(ann));
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: /Name of a view/ });
    const found = async (text: string) => {
      await field.fill(text);
      await page
        .getByRole('status')
        .getByText(/^(Nothing found|\d+ choices?)$/)
        .waitFor();
      return page.getByRole('option').allTextContents();
    };
    expect(await found('stripe')).toEqual([]);
    expect(await found('secret')).toEqual([]);
    expect(await found('invite')).toEqual([]);
    expect(await found('new a')).toEqual(['New API token action']);
    await field.fill('sign out');
    await page.getByRole('option', { name: 'Sign out' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/account\/sign-in\?return_to=/);
  });

  it('leads to the page to sign in as soon as the session is over', async () => {
    const kim = await colleague(app, ann, 'editor');
    const page = await pageOf(kim);
    await open(page, homeOf(ann));
    const left: string[] = [];
    page.on('request', (request) => request.isNavigationRequest() && left.push(new URL(request.url()).pathname));
    const headers = { 'x-csrf': '1', origin: app.url, 'content-type': 'application/json' };
    const data = JSON.stringify({ query: 'mutation { logout { sessionId } }' });
    expect((await shown.contexts.get(kim)!.request.post(`${app.url}/graphql`, { headers, data })).status()).toBe(200);
    await page.waitForURL(/\/account\/sign-in\?return_to=/);
    // the streams of the workspace and of its organization each tell of the end: one navigation must not abort another
    expect(left).toEqual(['/account/sign-in']);
  });
});
