import type { Request } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import type { TestApp } from '../support/app.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import { gate } from '../support/gate.ts';
import { type Person, register, registerProven } from '../support/person.ts';
import { makeInstance, makeTool } from '../support/tool-instance.ts';
import { waitFor, waitUntil } from '../support/wait.ts';
import { ConsoleInBrowser, open, part } from './console-browser.ts';

describeInBrowser('finding one’s way in the console', () => {
  const shown = new ConsoleInBrowser();
  let app: TestApp;
  let ann: Person;
  beforeAll(() => {
    ({ app, ann } = shown.cast);
  });

  it('leads from the numbers of the home to their lists, and from the failed runs to the one that failed', async () => {
    const page = await shown.pageOf(ann);
    await open(page, shown.homeOf(ann));
    // the link is all of the tile
    const tile = (name: string) =>
      page.locator('.number').filter({ has: page.getByRole('link', { name, exact: true }) });
    await tile('Failed runs').click();
    await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
    expect(new URL(page.url()).search).toBe('?status=failed');
    const rows = page.getByRole('table', { name: 'Runs' });
    await rows.getByText('The model did not answer in time.').waitFor();
    expect(await rows.getByRole('link', { name: /^.*Run run-/ }).count()).toBe(1);
    expect(await barriersOf(page)).toEqual([]);
    // what was yesterday is found by its time
    await page.getByLabel('To', { exact: true }).fill('2020-01-01T00:00');
    await page.getByRole('heading', { name: 'No runs match.' }).waitFor();
    await page.getByLabel('To', { exact: true }).fill('');
    await rows.getByRole('link', { name: /Run run-2/ }).click();
    const run = page.getByRole('dialog', { name: 'Run run-2' });
    await run.getByText('The model did not answer in time.').waitFor();
    expect(new URL(page.url()).search).toBe('?status=failed&run=run-2');
    await page.keyboard.press('Escape');
    await run.waitFor({ state: 'detached' });
    await rows.getByRole('link', { name: 'Support desk' }).click();
    await page.getByRole('heading', { level: 1, name: 'Support desk' }).waitFor();
    for (const name of ['Apps', 'Secrets', 'Artifacts', 'Runs']) {
      await open(page, shown.homeOf(ann));
      await tile(name).click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
    }
    await page
      .getByRole('table', { name: 'Runs' })
      .getByRole('link', { name: /Run run-3/ })
      .waitFor();
  });

  it('says of a run in the activity that it failed, by a word and on every screen', async () => {
    await app.services.activity.flush();
    const page = await shown.pageOf(ann, { width: 360, height: 800 });
    await open(page, `${shown.homeOf(ann)}/activity?resource=execution`);
    const row = (said: string) => page.getByRole('row').filter({ hasText: said });
    await row('reported run run-2 as failed').getByText('failed', { exact: true }).waitFor();
    await row('reported run run-1 as completed').getByText('completed', { exact: true }).waitFor();
    await row('reported run run-3 as running').getByText('done', { exact: true }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    // of the line of views, the one that is shown is in sight
    await open(page, `${shown.homeOf(ann)}/webhooks`);
    await waitFor(async () => {
      const box = await page.getByRole('link', { name: 'Webhooks', exact: true }).boundingBox();
      expect([box!.x >= 0, box!.x + box!.width <= 360]).toEqual([true, true]);
    });
    await open(page, `${shown.homeOf(ann)}/activity?resource=execution`);
    // requests that failed are something else: the way leads on
    await page.getByLabel('Result').selectOption('failed');
    await page.locator('main').getByRole('link', { name: 'Failed runs' }).waitFor();
    await page.getByLabel('Result').selectOption('All');
    await page.getByRole('button', { name: 'reported run run-2 as failed' }).click();
    await page.getByRole('dialog').getByRole('link', { name: 'Open the run' }).click();
    await page.getByRole('dialog', { name: 'Run run-2' }).getByText('The model did not answer in time.').waitFor();
    await open(page, shown.homeOf(ann));
    const told = part(page, 'What happened').getByRole('listitem').filter({ hasText: 'run run-2 as failed' });
    await told.locator('.tag').getByText('failed', { exact: true }).waitFor();
  });

  it('sorts the catalogue of tools once it has all of it: those in use first, then by name', async () => {
    const max = await registerProven(app, { name: 'max' });
    const service = { name: 'key', type: 'secret', display_name: 'Key' };
    // more than a page
    for (const name of ['Zebra', 'aardvark', ...Array.from({ length: 200 }, (_, at) => `Many${at}`)])
      await makeTool(max, service, name);
    const toolId = await makeTool(max, service, 'Used');
    await makeInstance(max, { toolId, name: 'Mine' });
    const page = await shown.pageOf(max);
    const { opened: isHeld, open: release } = gate();
    let asked = 0;
    const isSecondPage = (request: Request) => {
      const { query, variables } = request.postDataJSON() as { query?: string; variables?: { after?: string | null } };
      return Boolean(query?.includes('query Tools(') && variables?.after);
    };
    await page.route('**/graphql', async (route) => {
      if (isSecondPage(route.request())) {
        asked += 1;
        await isHeld;
      }
      await route.continue();
    });
    await open(page, `${shown.homeOf(max)}/tools`);
    await page.getByRole('button', { name: 'Add tool' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add tool' });
    await waitFor(() => expect(asked).toBe(1));
    await dialog.getByText('Loading …').waitFor();
    expect(await dialog.locator('.choice').count()).toBe(0);
    release();
    const names = () => dialog.locator('.choice strong').allTextContents();
    await waitFor(async () => expect((await names()).length).toBeGreaterThan(203));
    const [first, ...others] = await names();
    expect(first).toBe('Used');
    await dialog.getByRole('button', { name: /^Used.*in use/ }).waitFor();
    expect(others[0]).toBe('aardvark');
    expect(others.at(-1)).toBe('Zebra');
    expect(others.indexOf('Many9') + 1).toBe(others.indexOf('Many10'));
    expect(others).toEqual(
      [...others].sort((a, b) => a.localeCompare(b, 'en', { sensitivity: 'base', numeric: true })),
    );
    await page.unroute('**/graphql');
    // what has arrived is there if the rest does not come
    const other = await shown.pageOf(max);
    await other.route('**/graphql', async (route) => {
      const errors = [{ message: 'Not now.', extensions: { code: 'SERVICE_UNAVAILABLE' } }];
      if (isSecondPage(route.request())) await route.fulfill({ json: { errors } });
      else await route.continue();
    });
    await open(other, `${shown.homeOf(max)}/tools?do=create`);
    const half = other.getByRole('dialog', { name: 'Add tool' });
    await half.getByRole('alert').getByText('Not now.', { exact: false }).waitFor();
    await waitFor(async () => expect(await half.locator('.choice').count()).toBe(200));
    expect(await half.getByText('Loading …').count()).toBe(0);
  });

  it('sends the mail that confirms an address again, and says so, and why it does not', async () => {
    const uma = await register(app, { name: 'uma' });
    const page = await shown.pageOf(uma);
    await open(page, `${shown.homeOf(uma)}/people`);
    await page.getByRole('button', { name: 'Invite' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite' });
    await dialog.getByText('Your e-mail address is not confirmed.').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    const toHer = () => app.mails.filter(({ to, text }) => to === uma.email && text.includes('verify-email'));
    await waitFor(() => expect(toHer()).toHaveLength(1));
    const send = dialog.getByRole('button', { name: 'Send the mail again' });
    await send.focus();
    await page.keyboard.press('Enter');
    await dialog.getByText(`A mail with a link goes to ${uma.email}`).waitFor();
    expect(await send.evaluate('document.activeElement.textContent')).toBe('Send the mail again');
    const mail = await waitUntil(() => toHer()[1]);
    // what was not sent is not said to be
    for (let times = 0; times < 10; times += 1)
      await uma.call('POST', '/v1/auth/resend-verification', { email: `nobody-${times}@example.test` });
    await send.click();
    await dialog.getByRole('alert').getByText('Too many', { exact: false }).waitFor();
    expect(await dialog.getByText('A mail with a link goes to').count()).toBe(0);
    shown.faults.splice(0);
    // confirmed in another window, it is so here when this one is seen again
    const token = /token=([\w-]+)/.exec(mail.text)![1]!;
    expect((await uma.call('POST', '/v1/auth/verify-email', { token })).status).toBeLessThan(300);
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await dialog.getByText('Your e-mail address is not confirmed.').waitFor({ state: 'detached' });
    await page.locator('summary', { hasText: uma.username }).waitFor();
    await dialog.getByLabel('E-mail address').fill('pia@example.test');
    await dialog.getByRole('button', { name: 'Send invitation' }).click();
    const invited = part(page, 'Invitations');
    await invited.getByText('pia@example.test').waitFor();
    await invited.getByRole('button', { name: 'Send again to pia@example.test' }).click();
    await invited.getByText('The invitation was sent to pia@example.test again.').waitFor();
  });

  it('leaves the focus in the page when a dialog has deleted the row that it came from', async () => {
    const page = await shown.pageOf(ann);
    await ann.call('POST', `${ann.home}/environments`, { name: 'Short', slug: 'short' });
    await open(page, `${shown.homeOf(ann)}/environments`);
    await page.getByRole('button', { name: 'Delete Short' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Delete Short' });
    await dialog.getByLabel('Type “Short” to confirm').fill('Short');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Delete Short' }).waitFor({ state: 'detached' });
    await waitFor(async () => expect(await page.evaluate('document.activeElement.id')).toBe('main'));
  });

  it('leads on from a workspace that is not there', async () => {
    const page = await shown.pageOf(ann);
    await page.goto(shown.homeOf({ orgId: ann.orgId, workspaceId: 'ws_01ARZ3NDEKTSV4RRFFQ69G5FAV' }));
    await page.getByRole('alert').waitFor();
    await page.getByRole('link', { name: 'Choose another workspace' }).click();
    await page.getByRole('heading', { level: 1, name: 'Workspaces' }).waitFor();
    shown.faults.splice(0);
  });
});
