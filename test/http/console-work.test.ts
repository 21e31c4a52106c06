import type { Locator, Page, Route } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import type { TestApp } from '../support/app.ts';
import { describeInBrowser } from '../support/browser.ts';
import { gate } from '../support/gate.ts';
import { type Person, registerProven } from '../support/person.ts';
import { waitFor, waitUntil } from '../support/wait.ts';
import { BUSY, ConsoleInBrowser, open, part } from './console-browser.ts';
import { addMany, pagesAskedBy } from './console-many.ts';

describeInBrowser('people at work in the console', () => {
  const shown = new ConsoleInBrowser();
  const pageOf = (...given: Parameters<ConsoleInBrowser['pageOf']>) => shown.pageOf(...given);
  const homeOf = (place: Pick<Person, 'orgId' | 'workspaceId'>) => shown.homeOf(place);
  /** Somebody new, with a page whose clock the test moves on. */
  async function newcomer(name: string): Promise<[Person, Page]> {
    const person = await registerProven(app, { name });
    const page = await pageOf(person);
    await page.clock.install();
    return [person, page];
  }
  let app: TestApp;
  let ann: Person;
  let bob: Person;
  beforeAll(() => {
    ({ app, ann, bob } = shown.cast);
  });

  it('takes a whole .env, after it has shown what becomes of it', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/secrets`);
    await page.getByRole('button', { name: 'New secret' }).click();
    const value = page.getByRole('dialog').getByLabel('Value');
    expect([await value.getAttribute('spellcheck'), await value.getAttribute('autocomplete')]).toEqual([
      'false',
      'off',
    ]);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Paste .env' }).click();
    const pasted = page.getByLabel(/Content of the \.env/);
    expect([await pasted.getAttribute('spellcheck'), await pasted.getAttribute('autocomplete')]).toEqual([
      'false',
      'off',
    ]);
    await page
      .getByLabel(/Content of the \.env/)
      .fill('# keys\nexport SENTRY_DSN="https://two"\nMAIL_KEY=abc # of staging\n\nnonsense');
    await waitFor(async () =>
      expect(await page.getByRole('dialog').locator('tbody tr').allTextContents()).toEqual([
        'SENTRY_DSNgets a new version',
        'MAIL_KEYnew',
      ]),
    );
    await page.getByRole('button', { name: 'Save 2 secrets' }).click();
    await waitFor(async () => expect(await page.getByRole('dialog').getByText('Done').count()).toBe(2));
    const { body } = await ann.call<{ value: { value: string } }>(
      'GET',
      `/v1/orgs/${ann.orgId}/secrets/by-name/MAIL_KEY?include_value=true&workspace_id=${ann.workspaceId}`,
    );
    expect(body.value).toEqual({ value: 'abc' });
  });

  it('says at the field what the service refuses, and makes nothing', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/environments`);
    await page.getByRole('button', { name: 'New environment' }).click();
    await page.getByLabel('Name').fill('Mine');
    await page.getByLabel('Slug').fill('Not a slug!');
    await page.getByRole('button', { name: 'Create' }).click();
    const slug = page.getByLabel('Slug');
    await waitFor(async () => expect(await slug.getAttribute('aria-invalid')).toBe('true'));
    await slug.fill('mine');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('columnheader', { name: /Mine/ }).waitFor();
    await page.getByRole('button', { name: 'Delete Mine' }).click();
    const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true });
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel('Type “Mine” to confirm').fill('Mine');
    await confirm.click();
    await page.getByRole('columnheader', { name: /Mine/ }).waitFor({ state: 'detached' });
  });

  it('rolls a deployment back, and shows it to somebody else at once', async () => {
    const [mine, theirs] = [await pageOf(ann), await pageOf(bob)];
    await open(mine, `${homeOf(ann)}/environments`);
    await open(theirs, `${homeOf(ann)}/environments`);
    await theirs.getByRole('button', { name: 'Deploy or roll back: Support desk in Staging, 1.1.0' }).waitFor();
    await mine.getByRole('button', { name: 'Deploy or roll back: Support desk in Staging, 1.1.0' }).click();
    await mine.getByRole('button', { name: 'Roll back to 1.0.0' }).click();
    await mine.getByRole('button', { name: 'Deploy or roll back: Support desk in Staging, 1.0.0' }).waitFor();
    await theirs.getByRole('button', { name: 'Deploy or roll back: Support desk in Staging, 1.0.0' }).waitFor();
  });

  it('shows who is there and what others change, and refuses a stale save with both versions', async () => {
    const [mine, theirs] = [await pageOf(ann), await pageOf(bob)];
    await open(mine, homeOf(ann));
    await open(theirs, homeOf(ann));
    await mine.getByRole('region', { name: 'Here now' }).getByText(bob.username).waitFor();
    await mine.getByRole('button', { name: 'Edit workspace' }).click();
    await mine.getByLabel('Name').fill('By Ann');
    await theirs.getByRole('button', { name: 'Edit workspace' }).click();
    await theirs.getByLabel('Name').fill('By Bob');
    await theirs.getByRole('button', { name: 'Save', exact: true }).click();
    await mine.locator('h1', { hasText: 'By Bob' }).waitFor();
    await mine.getByRole('button', { name: 'Save', exact: true }).click();
    const row = mine.locator('table.conflict tbody tr');
    await row.waitFor();
    expect(await row.locator('td').allTextContents()).toEqual(['By Ann', 'By Bob']);
    expect((await ann.call<{ name: string }>('GET', ann.home)).body.name).toBe('By Bob');
    await mine.getByRole('button', { name: 'Save mine over theirs' }).click();
    await theirs.locator('h1', { hasText: 'By Ann' }).waitFor();
  });

  it('misses nothing between its first reading and the beginning of its streams', async () => {
    const page = await pageOf(bob);
    const { opened: isToBegin, open: begin } = gate();
    await page.routeWebSocket(/\/graphql$/, async (socket) => {
      await isToBegin;
      socket.connectToServer();
    });
    await open(page, `${homeOf(ann)}/people`);
    const invited = part(page, 'Invitations');
    await invited.getByText('Nobody is invited').waitFor();
    expect((await ann.call('PUT', ann.home, { name: 'Between' })).status).toBe(200);
    const invitation = { email: 'between@example.test', role: 'member' };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/invitations`, invitation)).status).toBe(201);
    begin();
    await page.locator('.where', { hasText: 'Between' }).waitFor();
    await invited.getByText(invitation.email).waitFor();

    // nor while another workspace is shown, which begins with where events are by then
    const beside = { name: 'Beside', organization_id: ann.orgId };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/workspaces`, beside)).status).toBe(201);
    await page.locator('.brand').click();
    const toBeside = page.getByRole('link', { name: 'Beside', exact: true });
    await toBeside.waitFor();
    expect((await ann.call('PUT', ann.home, { description: 'Written meanwhile.' })).status).toBe(200);
    await toBeside.click();
    await page.locator('h1', { hasText: 'Beside' }).waitFor();
    await page.locator('.brand').click();
    await page.getByRole('link', { name: 'Between', exact: true }).click();
    await page.getByText('Written meanwhile.').waitFor();
  });

  it('keeps what it shows while it reads something again that changes meanwhile', async () => {
    const eve = await registerProven(app, { name: 'eve' });
    const page = await pageOf(eve);
    let frames = '';
    page.on('websocket', (socket) => {
      socket.on('framereceived', ({ payload }) => {
        frames += payload;
      });
    });
    await open(page, `${homeOf(eve)}/people`);
    const drawnBefore = await mark(page);
    let answer: (() => Promise<void>) | undefined;
    await page.route('**/graphql', async (route) => {
      if (answer || !route.request().postData()?.includes('query Shell')) return route.continue();
      const response = await route.fetch();
      answer = () => route.fulfill({ response });
    });
    expect((await eve.call('PUT', `/v1/orgs/${eve.orgId}`, { name: 'Another house' })).status).toBe(200);
    const late = await waitUntil(() => answer, { what: 'the page to read again' });
    expect((await eve.call('PUT', eve.home, { name: 'Another room' })).status).toBe(200);
    await waitUntil(() => frames.includes('workspace.updated'), { what: 'the second event' });
    await late();
    await page.locator('.where', { hasText: 'Another house / Another room' }).waitFor();
    expect(await drawnBefore.count()).toBe(1);
  });

  it('keeps what it shows while the service is away or busy, and reads again by itself', async () => {
    const [kim, page] = await newcomer('kim');
    await open(page, `${homeOf(kim)}/people`);
    const drawnBefore = await mark(page);
    const service = await takeAway(page, 'query Shell', (time) => [badGateway, BUSY, closing][time % 3]!);
    expect((await kim.call('PUT', `/v1/orgs/${kim.orgId}`, { name: 'A house meanwhile' })).status).toBe(200);
    const line = page.getByText('It may be old.');
    await line.waitFor();
    await timePasses(page, () => service.refusals > 4, 'the page to read again');
    expect(await line.count()).toBe(1);
    service.isBack = true;
    const name = page.locator('.where', { hasText: 'A house meanwhile' });
    await timePasses(page, () => name.isVisible(), 'the new name');
    await line.waitFor({ state: 'detached' });
    expect(await drawnBefore.count()).toBe(1);
    shown.forgetAnswers();
  });

  it('says once that the service is busy, and opens by itself when it is not', async () => {
    const [lou, page] = await newcomer('lou');
    const service = await takeAway(page, 'query Shell', (time) => ({ ...BUSY, headers: { 'x-trace-id': `t${time}` } }));
    await page.goto(homeOf(lou));
    const first = page.getByRole('alert').getByRole('button', { name: 'Copy trace id t1' });
    await first.waitFor();
    await timePasses(page, () => service.refusals > 3, 'other tries');
    // what is said anew is read aloud anew
    expect(await first.count()).toBe(1);
    service.isBack = true;
    const heading = page.getByRole('heading', { level: 1 });
    await timePasses(page, () => heading.isVisible(), 'the page');
    expect(await first.count()).toBe(0);
    shown.forgetAnswers();
  });

  it('keeps what it shows when reading again takes too long, and does not try by itself', async () => {
    const [lea, page] = await newcomer('lea');
    await open(page, `${homeOf(lea)}/people`);
    const drawnBefore = await mark(page);
    const service = await takeAway(page, 'query Shell', () => tooLong);
    expect((await lea.call('PUT', `/v1/orgs/${lea.orgId}`, { name: 'A slow house' })).status).toBe(200);
    await page.getByText('It may be old.').waitFor();
    await ask(page);
    const { refusals } = service;
    for (let turn = 0; turn < 5; turn++) {
      await page.clock.runFor(10_000);
      await ask(page);
    }
    // a late event may have it asked for once more
    expect(service.refusals - refusals).toBeLessThan(2);
    expect(await drawnBefore.count()).toBe(1);
    service.isBack = true;
    await page.reload();
    await page.locator('.where', { hasText: 'A slow house' }).waitFor();
    expect(await page.getByText('It may be old.').count()).toBe(0);
    shown.forgetAnswers();
  });

  it('asks no more for what could not be read when its view is left', async () => {
    const [mia, page] = await newcomer('mia');
    await open(page, homeOf(mia));
    const service = await takeAway(page, 'query Environments', () => badGateway);
    await page.getByRole('link', { name: 'Environments', exact: true }).click();
    await page.getByRole('alert').getByText('The service cannot be reached.').waitFor();
    await timePasses(page, () => service.refusals > 1, 'another try');
    await page.getByRole('link', { name: 'People', exact: true }).click();
    await page.getByText('It may be old.').waitFor({ state: 'detached' });
    await ask(page);
    const { refusals } = service;
    await page.clock.runFor(30_000);
    await ask(page);
    expect(service.refusals).toBe(refusals);
    shown.forgetAnswers();
  });

  it('says when the stream is away, and misses nothing of that time', async () => {
    const page = await pageOf(bob);
    await open(page, homeOf(ann));
    await page.getByRole('region', { name: 'Here now' }).getByText(`${bob.username} (you)`).waitFor();
    for (const socket of app.server.websocketServer.clients) socket.terminate();
    await page.getByText('The live connection is interrupted.').waitFor();
    expect((await ann.call('PUT', ann.home, { name: 'Meanwhile' })).status).toBe(200);
    await page.locator('h1', { hasText: 'Meanwhile' }).waitFor();
    await page.getByText('The live connection is interrupted.').waitFor({ state: 'detached' });
  });

  it('scrolls through 10,000 secrets and 100,000 records: few rows are drawn, and pages asked for', async () => {
    const max = await registerProven(app, { name: 'max' });
    const send = async <Body>(method: 'POST', url: string, body: object) =>
      (await max.call<Body>(method, url, body)).body;
    await addMany(app.database, { ...max, send }, { secrets: 10_000, records: 100_000 });
    const page = await pageOf(max);
    const asked = pagesAskedBy(page);
    const drawn = () => page.getByRole('row').count();
    const toTheEnd = () => page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    await open(page, `${homeOf(max)}/secrets`);
    const rest = page.getByText('The newest 2000 secrets are shown.');
    await rest.waitFor();
    // the event of the first secret may have the first page read again
    expect(new Set(asked.Secrets).size).toBe(10);
    expect(await drawn()).toBeLessThan(100);
    await toTheEnd();
    await page.getByRole('rowheader', { name: 'KEY_09999' }).waitFor();
    expect(await drawn()).toBeLessThan(100);
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('The newest 2200 secrets are shown.').waitFor();
    expect(new Set(asked.Secrets).size).toBe(11);

    await open(page, `${homeOf(max)}/activity`);
    await page.locator('[data-index="5"]').waitFor();
    const lastDrawn = () =>
      page.evaluate<number>(
        'Math.max(...[...document.querySelectorAll("[data-index]")].map(({ dataset }) => +dataset.index))',
      );
    for (const row of [99, 199, 299, 399]) {
      // the end moves on when the next page comes
      await waitFor(async () => {
        await toTheEnd();
        expect(await lastDrawn()).toBeGreaterThanOrEqual(row);
      });
      expect(await drawn()).toBeLessThan(100);
    }
    const cursors = new Set(asked.WorkspaceActivity);
    expect(cursors.size).toBeGreaterThanOrEqual(4);
    expect(cursors.size).toBeLessThan(10);
  });
});

const badGateway = { status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' };

/** As a server answers that ends, on connections that it still has. */
const closing = {
  status: 503,
  json: { error: 'Service Unavailable', message: 'Service Unavailable', statusCode: 503 },
};

const tooLong = {
  status: 503,
  json: {
    data: null,
    errors: [
      {
        message: 'It took too long.',
        extensions: { code: 'SERVICE_UNAVAILABLE', details: { retry_after: 1, reason: 'database_timeout' } },
      },
    ],
  },
};

/**
 * Has a page's requests with some text answered without the service, until it is back.
 * @param answer what is answered for the first time, the second …
 */
async function takeAway(page: Page, text: string, answer: (time: number) => Parameters<Route['fulfill']>[0]) {
  const service = { isBack: false, refusals: 0 };
  await page.route('**/graphql', (route) => {
    if (service.isBack || !route.request().postData()?.includes(text)) return route.continue();
    service.refusals += 1;
    return route.fulfill(answer(service.refusals));
  });
  return service;
}

/** Marks what is drawn. @returns it, for as long as nothing takes its place */
async function mark(page: Page): Promise<Locator> {
  await page.evaluate("document.querySelector('main').dataset.drawn = 'before'");
  return page.locator('main[data-drawn="before"]');
}

/** A request behind what the page has sent: all that is counted of requests is counted after it. */
const ask = (page: Page) => page.evaluate("fetch('/graphql', { method: 'POST', body: '{}' })");

/** Lets seconds pass for a page whose clock is installed, until something is so. */
const timePasses = (page: Page, isSo: () => boolean | Promise<boolean>, what: string) =>
  waitUntil(
    async () => {
      await page.clock.runFor(1000);
      return isSo();
    },
    { what },
  );
