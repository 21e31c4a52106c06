import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { describeInBrowser, launchBrowser } from '../../support/browser.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { codeOf, forgetCodes, withPasskey, withTotp } from '../../support/factors.ts';
import { type Person, register } from '../../support/person.ts';
import { formIn, onwardIn, signedInBrowser, signIn, submit } from '../oauth/oauth-browser.ts';

let app: TestApp;
let origin: string;
beforeAll(async () => {
  // browsers know no passkeys of an address in numbers
  app = await startTestApp({ env: { HOST: '0.0.0.0' } });
  await app.listen();
  origin = app.url.replace('127.0.0.1', 'localhost');
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());

const url = () => `${app.url}/account/factors`;
const tokenIn = (text: string) => formIn(text).get('form_token')!;
const cookieOf = (answer: Response) => answer.headers.getSetCookie().find((line) => /session=/.test(line)) ?? '';

async function act(browser: BrowserWithCookies, fields: Record<string, string>, headers = {}) {
  const token = tokenIn(await (await browser.send(url())).text());
  return submit(app, browser, url(), new URLSearchParams({ form_token: token, ...fields }), headers);
}

describe('without a script', () => {
  test('an app is added by its picture and a code, and asked for at the next sign-in', async () => {
    const ann = await register(app, { name: 'ann' });
    const browser = await signedInBrowser(app, ann);
    const shown = await (await act(browser, { do: 'enrol', current_password: ann.password })).text();
    expect(shown).toMatch(/<svg role="img" aria-label="The key as a QR code" /);
    const secret = /<code id="secret">([A-Z2-7]{32})</.exec(shown)?.[1] ?? '';
    const wrong = await act(browser, { do: 'confirm', code: '000000' });
    const again = await wrong.text();
    expect([wrong.status, again.includes('This code is wrong'), again.includes(secret)]).toEqual([422, true, false]);
    const codes = await (await act(browser, { do: 'confirm', code: codeOf(secret) })).text();
    expect(codes.match(/<code>[a-z0-9-]{19}<\/code>/g)).toHaveLength(10);
    expect(await (await browser.send(url())).text()).not.toMatch(/<code>/);
    await forgetCodes(app, ann);

    const other = newBrowserWithCookies();
    const first = await signIn(app, other, ann);
    const text = await first.text();
    expect([first.status, cookieOf(first), text.includes('One more step')]).toEqual([200, '', true]);
    const form = formIn(text);
    form.set('code', '123');
    const refused = await submit(app, other, `${app.url}/account/sign-in`, form);
    expect([refused.status, cookieOf(refused)]).toEqual([401, '']);
    const retry = formIn(await refused.text());
    retry.set('code', codeOf(secret));
    const done = await submit(app, other, `${app.url}/account/sign-in`, retry);
    expect([done.status, onwardIn(await done.text())]).toEqual([200, '/account']);
    expect(cookieOf(done)).toMatch(/^session=/);
    // the form of a sign-in that is done opens no second one
    expect((await submit(app, newBrowserWithCookies(), `${app.url}/account/sign-in`, retry)).status).toBe(403);
  });

  test('it is proven again and removed', async () => {
    const ann = await register(app, { name: 'ann' });
    const { secret } = await withTotp(app, ann);
    const browser = newBrowserWithCookies();
    const form = formIn(await (await signIn(app, browser, ann)).text());
    form.set('code', codeOf(secret));
    await submit(app, browser, `${app.url}/account/sign-in`, form);
    await app.database.pool.query(`update sessions set factor_at = null where user_id = $1`, [ann.userId]);
    expect((await act(browser, { do: 'remove_totp' })).status).toBe(403);
    expect((await act(browser, { do: 'prove', code: codeOf(secret, 1) })).status).toBe(303);
    expect((await act(browser, { do: 'remove_totp' })).status).toBe(303);
    expect(await (await browser.send(url())).text()).toContain('Add an app');
  });

  test('the page of the account lists them, and removes each, once a factor was proven', async () => {
    const ann = await register(app, { name: 'ann' });
    const { secret } = await withTotp(app, ann);
    await withPasskey(app, ann);
    const browser = newBrowserWithCookies();
    const form = formIn(await (await signIn(app, browser, ann)).text());
    form.set('code', codeOf(secret));
    await submit(app, browser, `${app.url}/account/sign-in`, form);
    const account = async () => (await browser.send(`${app.url}/account`)).text();
    const text = await account();
    expect(text).toContain('<strong>App for one-time codes</strong>');
    expect(text).toContain('<strong>Passkey Key</strong>');
    const [, removal = ''] = /value="(remove_passkey \w+)"/.exec(text) ?? [];
    const [, form_token = ''] = /action="account\/factors"[\s\S]*?name="form_token" value="(\w+)"/.exec(text) ?? [];
    const remove = (action: string) => submit(app, browser, url(), new URLSearchParams({ form_token, do: action }));
    await app.database.pool.query('update sessions set factor_at = null where user_id = $1', [ann.userId]);
    expect((await remove(removal)).status).toBe(403);
    await app.database.pool.query('update sessions set factor_at = now() where user_id = $1', [ann.userId]);
    expect((await remove(removal)).status).toBe(303);
    expect((await remove('remove_totp')).status).toBe(303);
    expect(await account()).toContain('You have none: your password is enough to sign in.');
  });

  test.each([{ origin: 'https://evil.example' }, { origin: 'null' }])('a form of %j changes nothing', async (from) => {
    const ann = await register(app, { name: 'ann' });
    await withTotp(app, ann);
    await app.database.pool.query('update totp_factors set confirmed_at = null where user_id = $1', [ann.userId]);
    const browser = await signedInBrowser(app, ann);
    await app.database.pool.query('update totp_factors set confirmed_at = now() where user_id = $1', [ann.userId]);
    await app.database.pool.query('update sessions set factor_at = now() where user_id = $1', [ann.userId]);
    expect((await act(browser, { do: 'remove_totp' }, from)).status).toBe(403);
    expect((await ann.call('GET', '/v1/auth/factors')).body).toMatchObject({ totp: {} });
  });

  test('a form without its token, of another page or another browser changes nothing', async () => {
    const ann = await register(app, { name: 'ann' });
    const browser = await signedInBrowser(app, ann);
    const ofAccount = tokenIn(await (await browser.send(`${app.url}/account`)).text());
    const foreign = tokenIn(await (await (await signedInBrowser(app, ann)).send(url())).text());
    for (const form_token of ['', 'a'.repeat(64), ofAccount, foreign]) {
      const form = new URLSearchParams({ form_token, do: 'enrol', current_password: ann.password });
      expect((await submit(app, browser, url(), form)).status).toBe(403);
    }
    expect((await act(browser, { do: 'format_disk' })).status).toBe(400);
  });

  test('nobody who is not signed in sees it', async () => {
    const answer = await newBrowserWithCookies().send(url());
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      '/account/sign-in?return_to=/account/factors',
    ]);
  });

  test('what was granted to a device or an application asks for the second factor too', async () => {
    const ann = await register(app, { name: 'ann' });
    await withTotp(app, ann);
    const browser = newBrowserWithCookies();
    await signIn(app, browser, ann);
    const device = await browser.send(`${app.url}/oauth/device`);
    expect([device.status, device.headers.get('location')]).toEqual([
      303,
      '/account/sign-in?return_to=%2Foauth%2Fdevice',
    ]);
  });
});

describeInBrowser('in a browser', () => {
  let browser: Browser;
  const problems: string[] = [];
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  /** A page with an authenticator of its own, which knows its user. */
  const newPage = async (): Promise<Page> => {
    const page = await (await browser.newContext()).newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
    } as const;
    const knows = { isUserVerified: true, automaticPresenceSimulation: true };
    await devtools.send('WebAuthn.addVirtualAuthenticator', { options: { ...options, ...knows } });
    return page;
  };
  const withPassword = async (page: Page, ann: Person) => {
    await page.goto(`${origin}/account/sign-in?return_to=/account/factors`);
    await page.fill('#email', ann.email);
    await page.click('#ask button[type="submit"]');
    await page.fill('#password', ann.password);
    await page.click('#password-form button');
  };

  test('a passkey is added, signs in by itself, and is the second factor of a password', async () => {
    const ann = await register(app, { name: 'ann' });
    const page = await newPage();
    await withPassword(page, ann);
    await page.fill('#passkey-name', 'Laptop');
    await page.fill('#passkey-password', ann.password);
    await page.click('#add-passkey button');
    await page.waitForSelector('text=Your recovery codes');
    expect(await page.locator('code').count()).toBe(10);
    await page.click('text=Go on');
    await page.waitForSelector('strong:has-text("Laptop")');

    await page.context().clearCookies();
    await page.goto(`${origin}/account/sign-in?return_to=/account/factors`);
    await page.click('#passkey');
    await page.waitForSelector('text=last used');

    await page.context().clearCookies();
    await withPassword(page, ann);
    await page.waitForSelector('#factor-form:not([hidden])');
    await page.click('#factor-passkey');
    await page.waitForSelector('strong:has-text("Laptop")');
    await page.waitForLoadState('load');
    // the sign-in was a proof, too: only the page that is loaded then says that this one is done
    const loaded = page.waitForEvent('load');
    await page.click('#prove-passkey');
    await loaded;
    await page.waitForSelector('text=Last done in this session');
    await page.click('button[aria-label="Remove the passkey Laptop"]');
    await page.waitForSelector('text=With one, you sign in by your device');
    expect(problems).toEqual([]);
  });

  test('a code of an app is asked for by the page with a script', async () => {
    const ann = await register(app, { name: 'ann' });
    const { secret } = await withTotp(app, ann);
    const page = await newPage();
    await withPassword(page, ann);
    await page.fill('#code', '000000');
    await page.click('#factor-form button[type="submit"]');
    await page.waitForSelector('text=This does not prove your second factor');
    await page.fill('#code', codeOf(secret));
    await page.click('#factor-form button[type="submit"]');
    await page.waitForSelector('text=Remove the app');
    expect(problems).toEqual([]);
  });
});
