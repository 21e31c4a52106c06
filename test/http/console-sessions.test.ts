import { beforeAll, expect, it } from 'vitest';
import type { TestApp } from '../support/app.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import { createUser, type Person, signIn } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { ConsoleInBrowser, open, part } from './console-browser.ts';

describeInBrowser('sessions and reveals in the console', () => {
  const shown = new ConsoleInBrowser();
  const pageOf = (...given: Parameters<ConsoleInBrowser['pageOf']>) => shown.pageOf(...given);
  const homeOf = (place: Pick<Person, 'orgId' | 'workspaceId'>) => shown.homeOf(place);
  let app: TestApp;
  let ann: Person;
  let bob: Person;
  let vic: Person;
  beforeAll(() => {
    ({ app, ann, bob, vic } = shown.cast);
  });
  const isSignedIn = async (person: Person) => (await person.call('GET', '/v1/auth/me')).status === 200;

  it('shows administrators the sessions of the members, and ends one or all of somebody', async () => {
    const mia = await createUser(app, ann, { name: 'mia' });
    const page = await pageOf(ann);
    await page.clock.install();
    await open(page, `${homeOf(ann)}/people`);
    const list = part(page, 'Open sessions');
    const rowsOf = (name: string) => list.getByRole('row', { name: new RegExp(`^${name}`) });
    await rowsOf(mia.username).getByText('a program').waitFor();
    await rowsOf(mia.username).getByText('password').waitFor();
    await rowsOf(mia.username).getByText('127.0.0.1').waitFor();
    // the browser that looks is there by its name, and not ended by mistake
    const own = list.getByRole('row', { name: /this session/ });
    await own.getByText('Chrome on Linux').waitFor();
    expect(await own.getByRole('button').allTextContents()).toEqual(['End all']);
    expect(await barriersOf(page)).toEqual([]);

    // nobody has to load the page again to see a sign-in
    const second = await signIn(app, mia);
    await page.clock.fastForward(10_000);
    await waitFor(async () => expect(await rowsOf(mia.username).count()).toBe(2));
    // the newest first
    await rowsOf(mia.username)
      .first()
      .getByRole('button', { name: `End the session of ${mia.username}: a program` })
      .click();
    await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click();
    await waitFor(async () => expect(await rowsOf(mia.username).count()).toBe(1));
    expect([await isSignedIn(mia), await isSignedIn(second)]).toEqual([true, false]);

    await list.getByRole('button', { name: `End all sessions of ${mia.username}` }).click();
    await page.getByRole('dialog').getByText('API tokens, and applications').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('dialog').getByRole('button', { name: 'End all', exact: true }).click();
    await rowsOf(mia.username).waitFor({ state: 'detached' });
    expect([await isSignedIn(mia), await isSignedIn(ann)]).toEqual([false, true]);

    await page.setViewportSize({ width: 360, height: 800 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await own.waitFor();
    expect(await barriersOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  it('has no button for a session of a higher role, and no list for those who may not end any', async () => {
    const theirs = await pageOf(bob);
    await open(theirs, `${homeOf(ann)}/people`);
    const ofOwner = part(theirs, 'Open sessions').getByRole('row', { name: new RegExp(`^${ann.username}`) });
    await ofOwner.first().waitFor();
    expect(await ofOwner.getByRole('button').count()).toBe(0);
    const page = await pageOf(vic);
    await open(page, `${homeOf(ann)}/people`);
    await part(page, 'Members').getByText(vic.username).first().waitFor();
    expect(await page.getByRole('heading', { name: 'Open sessions' }).count()).toBe(0);
  });

  it('is in German too', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/people`);
    await page.locator('summary', { hasText: ann.username }).click();
    await page.getByRole('button', { name: 'Deutsch' }).click();
    await page.getByRole('heading', { name: 'Offene Sitzungen' }).waitFor();
    await page.getByText('Chrome auf Linux').first().waitFor();
    await page.locator('summary', { hasText: ann.username }).click();
    await page.getByRole('button', { name: 'English' }).click();
    await page.getByRole('heading', { name: 'Open sessions' }).waitFor();
  });

  it('demands a reason for a reveal, where the organization wants one', async () => {
    const secret = { name: 'asked-for', secret_type: 'token', value: { token: 'only-for-a-reason' } };
    const { status } = await ann.call('POST', `/v1/orgs/${ann.orgId}/secrets`, {
      ...secret,
      workspace_id: ann.workspaceId,
    });
    expect(status).toBe(201);
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/sign-in`);
    await page.getByRole('button', { name: 'Change the rule for revealing secrets' }).click();
    await page.getByLabel('A reason is needed to reveal a secret').check();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await part(page, 'Revealing secrets').getByText('yes', { exact: true }).waitFor();

    await page.getByRole('link', { name: 'Secrets', exact: true }).click();
    await page.getByRole('button', { name: /^Open asked-for of/ }).click();
    // the rule has reached the page: without it, a reason is optional
    const reason = page.getByLabel('Reason', { exact: true });
    await reason.waitFor();
    await page.getByRole('button', { name: 'Reveal value' }).click();
    // the browser says what is missing, and the service what blanks are worth
    await waitFor(async () => expect(await page.evaluate('document.activeElement.validity.valueMissing')).toBe(true));
    await reason.fill('   ');
    await page.getByRole('button', { name: 'Reveal value' }).click();
    await page.getByRole('alert').getByText('the organization wants to know why').waitFor();
    await reason.fill('Ticket 12');
    await page.getByRole('button', { name: 'Reveal value' }).click();
    await page.getByText('only-for-a-reason').waitFor();
  });
});
