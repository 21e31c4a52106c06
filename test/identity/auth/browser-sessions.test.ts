import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Person, register } from '../../support/person.ts';
import { formIn, onwardIn, signedInBrowser, signIn, submit } from '../oauth/oauth-browser.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const origin = () => new URL(app.url).origin;
const cookieOf = (answer: Response) => answer.headers.getSetCookie().find((line) => /session=/.test(line)) ?? '';
const heldBy = (answer: Response) => /session=([\w-]{43});/.exec(cookieOf(answer))?.[1] ?? '';

describe('signing in without a script', () => {
  test('gives a cookie that no script reads, and goes on to the page that was asked for', async () => {
    const browser = newBrowserWithCookies();
    const page = await (await browser.send(`${app.url}/account/sign-in?return_to=/oauth/device`)).text();
    const form = formIn(page);
    expect(form.get('return_to')).toBe('/oauth/device');
    form.set('username', ann.username);
    form.set('password', ann.password);
    const answer = await submit(app, browser, `${app.url}/account/sign-in`, form);
    expect(cookieOf(answer)).toMatch(/^session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    expect(onwardIn(await answer.text())).toBe('/oauth/device');
    expect(await (await browser.send(`${app.url}/account`)).text()).toContain(ann.email);
  });

  test('keeps where it leads in its links, and no other address', async () => {
    const linksIn = async (query: string) => {
      const text = await (await newBrowserWithCookies().send(`${app.url}/account/sign-in${query}`)).text();
      return [...text.matchAll(/href="((?:register|forgot-password)[^"]*)"/g)].map(([, href]) => href);
    };
    expect(await linksIn('')).toEqual(['forgot-password', 'register']);
    expect(await linksIn('?return_to=/oauth/device')).toEqual([
      'forgot-password?return_to=%2Foauth%2Fdevice',
      'register?return_to=%2Foauth%2Fdevice',
    ]);
    const hostile = '?return_to=//evil.example&redirect_uri=https://evil.example/%22%3E&return_to=x';
    for (const link of await linksIn(hostile)) expect(link).not.toContain('evil');
  });

  test('over https the cookie is of this host alone', async () => {
    const secure = await startTestApp({ env: { PUBLIC_URL: 'https://api.example.test' } });
    const bob = await register(secure, { name: 'bob' });
    const answer = await secure.server.inject({
      method: 'POST',
      url: '/account/session',
      headers: { ...bob.headers, 'x-csrf': '1', origin: 'https://api.example.test' },
    });
    expect([answer.statusCode, answer.headers['set-cookie']]).toEqual([
      204,
      expect.stringMatching(/^__Host-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/),
    ]);
    await secure.close();
  });

  test('says that the password is wrong, and gives no cookie', async () => {
    const browser = newBrowserWithCookies();
    const answer = await signIn(app, browser, { username: ann.username, password: 'wrong password' });
    expect([answer.status, cookieOf(answer)]).toEqual([401, '']);
    expect(await answer.text()).toContain('E-mail or password is wrong.');
  });

  test.each([
    '//evil.example',
    'https://evil.example/',
    '/\\evil.example',
    '/%5cevil\\x',
    'javascript:alert(1)',
    '/\tevil',
    '',
    '/ok\r\nset-cookie: a=b',
  ])('goes to no other host: %j', async (to) => {
    const url = `${app.url}/account/sign-in?return_to=${encodeURIComponent(to)}`;
    expect(formIn(await (await newBrowserWithCookies().send(url)).text()).get('return_to')).toBe('/account');
    const browser = newBrowserWithCookies();
    const form = formIn(await (await browser.send(`${app.url}/account/sign-in`)).text());
    for (const [name, value] of Object.entries({ username: ann.username, password: ann.password, return_to: to }))
      form.set(name, value);
    expect(onwardIn(await (await submit(app, browser, `${app.url}/account/sign-in`, form)).text())).toBe('/account');
  });

  test('a new sign-in ends the session that the browser had: nobody can be given one in advance', async () => {
    const browser = newBrowserWithCookies();
    const first = heldBy(await signIn(app, browser, ann));
    const second = heldBy(await signIn(app, browser, ann));
    expect([first.length, second.length, first === second]).toEqual([43, 43, false]);
    const statusOf = async (value: string) =>
      (await fetch(`${app.url}/account`, { headers: { cookie: `session=${value}` }, redirect: 'manual' })).status;
    expect([await statusOf(first), await statusOf(second)]).toEqual([303, 200]);
  });

  test('a cookie that somebody made up becomes no session by a sign-in', async () => {
    const planted = 'A'.repeat(43);
    const browser = newBrowserWithCookies();
    const page = await browser.send(`${app.url}/account/sign-in`);
    const form = formIn(await page.text());
    form.set('username', ann.username);
    form.set('password', ann.password);
    const [mark = ''] = page.headers.getSetCookie().map((line) => line.split(';')[0]!);
    const answer = await fetch(`${app.url}/account/sign-in`, {
      method: 'POST',
      body: form,
      headers: { origin: origin(), cookie: `${mark}; session=${planted}` },
    });
    expect(heldBy(answer)).not.toBe(planted);
    const planting = await fetch(`${app.url}/account`, {
      headers: { cookie: `session=${planted}` },
      redirect: 'manual',
    });
    expect(planting.status).toBe(303);
  });
});

describe('a form of another page', () => {
  const filled = async (browser: BrowserWithCookies) => {
    const form = formIn(await (await browser.send(`${app.url}/account/sign-in`)).text());
    form.set('username', ann.username);
    form.set('password', ann.password);
    return form;
  };

  test.each(['https://evil.example', 'null', 'http://127.0.0.1:1'])('of %s signs nobody in', async (from) => {
    const browser = newBrowserWithCookies();
    const form = await filled(browser);
    const answer = await submit(app, browser, `${app.url}/account/sign-in`, form, { origin: from });
    expect([answer.status, cookieOf(answer)]).toEqual([403, '']);
  });

  test('with the token of another browser signs nobody in', async () => {
    const form = await filled(newBrowserWithCookies());
    const browser = newBrowserWithCookies();
    await browser.send(`${app.url}/account/sign-in`);
    expect((await submit(app, browser, `${app.url}/account/sign-in`, form)).status).toBe(403);
  });

  test.each([{ origin: 'https://evil.example' }, { origin: 'null' }])('ends nothing: %j', async (headers) => {
    const browser = await signedInBrowser(app, ann);
    const text = await (await browser.send(`${app.url}/account`)).text();
    const form = new URLSearchParams({ form_token: formIn(text).get('form_token')!, end: 'sign_out' });
    expect((await submit(app, browser, `${app.url}/account`, form, headers)).status).toBe(403);
    expect((await browser.send(`${app.url}/account`)).status).toBe(200);
  });

  test('without its token ends nothing', async () => {
    const browser = await signedInBrowser(app, ann);
    for (const token of ['', 'a'.repeat(64)]) {
      const form = new URLSearchParams({ form_token: token, end: 'sign_out' });
      expect((await submit(app, browser, `${app.url}/account`, form)).status).toBe(403);
    }
    expect((await browser.send(`${app.url}/account`)).status).toBe(200);
  });
});

describe('a call of the API with the cookie', () => {
  let cookie: string;
  beforeAll(async () => {
    cookie = `session=${heldBy(await signIn(app, newBrowserWithCookies(), ann))}`;
  });
  const call = async (headers: Record<string, string>, url = ann.home) =>
    (await app.server.inject({ url, headers: { host: new URL(app.url).host, cookie, ...headers } })).statusCode;

  test('of a page of this origin is answered', async () => {
    expect(await call({ 'x-csrf': '1', 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await call({ 'x-csrf': '1', origin: origin() })).toBe(200);
    const asked = await app.server.inject({
      method: 'POST',
      url: '/graphql',
      headers: { host: new URL(app.url).host, cookie, 'x-csrf': '1', origin: origin() },
      payload: { query: '{ me { id } }' },
    });
    expect(asked.json()).toEqual({ data: { me: { id: ann.userId } } });
  });

  test.each([
    ['without the header', { 'sec-fetch-site': 'same-origin' }],
    ['with another value of the header', { 'x-csrf': 'true', 'sec-fetch-site': 'same-origin' }],
    ['of another origin', { 'x-csrf': '1', origin: 'https://evil.example' }],
    ['of another port', { 'x-csrf': '1', origin: 'http://127.0.0.1:1' }],
    ['of no origin', { 'x-csrf': '1', origin: 'null' }],
    ['of a page of the same site', { 'x-csrf': '1', 'sec-fetch-site': 'same-site' }],
    ['of another site', { 'x-csrf': '1', 'sec-fetch-site': 'cross-site' }],
    ['that the user typed', { 'x-csrf': '1', 'sec-fetch-site': 'none' }],
    ['of what is no browser', { 'x-csrf': '1' }],
    [
      'as another origin, with the word of this one',
      { 'x-csrf': '1', origin: 'https://a.test', 'sec-fetch-site': 'same-origin' },
    ],
  ] as [string, Record<string, string>][])('%s is one of a stranger', async (_title, headers) => {
    expect(await call(headers)).toBe(401);
  });

  test('with two cookies of the name is one of a stranger', async () => {
    expect(await call({ 'x-csrf': '1', origin: origin(), cookie: `${cookie}; session=${'B'.repeat(43)}` })).toBe(401);
  });

  test('a bearer token wins over it, right or wrong', async () => {
    const bob = await register(app, { name: 'bob' });
    const own = { 'x-csrf': '1', origin: origin() };
    expect(await call({ ...own, ...bob.headers })).toBe(403);
    expect(await call({ ...own, authorization: 'Bearer wrong' })).toBe(401);
    expect(await call({ ...own, authorization: '' })).toBe(401);
  });

  test('the cookie is no bearer token', async () => {
    expect(await call({ authorization: `Bearer ${cookie.slice('session='.length)}`, cookie: '' })).toBe(401);
  });

  test('no origin may read an answer that was sent with cookies', async () => {
    const cors = await startTestApp({ env: { CORS_ORIGINS: '*' } });
    const answer = await cors.server.inject({
      method: 'OPTIONS',
      url: '/v1/users/me',
      headers: {
        origin: 'https://evil.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'x-csrf',
      },
    });
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
    await cors.close();
  });

  test('ends with its session', async () => {
    const browser = newBrowserWithCookies();
    const value = heldBy(await signIn(app, browser, ann));
    const headers = { 'x-csrf': '1', origin: origin(), cookie: `session=${value}` };
    expect(await call(headers)).toBe(200);
    const text = await (await browser.send(`${app.url}/account`)).text();
    const form = new URLSearchParams({ form_token: formIn(text).get('form_token')!, end: 'sign_out' });
    const answer = await submit(app, browser, `${app.url}/account`, form);
    expect(cookieOf(answer)).toBe('session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax');
    expect(await call(headers)).toBe(401);
  });
});

describe('the page of the account', () => {
  test('lists sessions and tokens, and ends them', async () => {
    const browser = await signedInBrowser(app, ann);
    const made = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, {
      name: 'Mine',
    });
    const other = await signedInBrowser(app, ann);
    const text = await (await browser.send(`${app.url}/account`)).text();
    expect(text).toContain('this browser');
    const token = formIn(text).get('form_token')!;
    const end = async (what: string) =>
      (await submit(app, browser, `${app.url}/account`, new URLSearchParams({ form_token: token, end: what }))).status;
    expect(await end(/value="(token tok_\w+)"/.exec(text)![1]!)).toBe(303);
    const headers = { authorization: `Bearer ${made.body.plaintext_token}` };
    expect((await app.server.inject({ url: ann.home, headers })).statusCode).toBe(401);
    const [newest] = [...text.matchAll(/value="(session ses_\w+)"/g)].map((match) => match[1]!);
    expect(await end(newest!)).toBe(303);
    expect((await other.send(`${app.url}/account`)).status).toBe(303);
  });

  test('of a stranger leads to the page to sign in', async () => {
    const answer = await newBrowserWithCookies().send(`${app.url}/account`);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/account/sign-in?return_to=/account']);
  });

  test.each(['session ses_1', 'token tok_1', 'application gnt_1', 'nothing', '', 'toString x'])(
    'ends nothing of others, and nothing that is none: %j',
    async (end) => {
      const browser = await signedInBrowser(app, ann);
      const text = await (await browser.send(`${app.url}/account`)).text();
      const form = new URLSearchParams({ form_token: formIn(text).get('form_token')!, end });
      expect([400, 404]).toContain((await submit(app, browser, `${app.url}/account`, form)).status);
    },
  );

  test('runs no script, and is framed by nobody', async () => {
    const browser = await signedInBrowser(app, ann);
    const answer = await browser.send(`${app.url}/account`);
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(await answer.text()).not.toMatch(/<script|\bon\w+=|style=/);
  });
});

describe('the session of a browser', () => {
  test('is opened by a page of this origin only, and once', async () => {
    const bob = await register(app, { name: 'bob' });
    const open = async (headers: Record<string, string>) =>
      (
        await app.server.inject({
          method: 'POST',
          url: '/account/session',
          headers: { host: new URL(app.url).host, ...bob.headers, ...headers },
        })
      ).statusCode;
    expect(await open({ origin: origin() })).toBe(403);
    expect(await open({ 'x-csrf': '1', origin: 'https://evil.example' })).toBe(403);
    expect(await open({ 'x-csrf': '1', origin: origin() })).toBe(204);
    expect(await open({ 'x-csrf': '1', origin: origin() })).toBe(401);
  });

  test('has no refresh token', async () => {
    const bob = await register(app, { name: 'bob' });
    const headers = { ...bob.headers, 'x-csrf': '1', origin: origin(), host: new URL(app.url).host };
    expect((await app.server.inject({ method: 'POST', url: '/account/session', headers })).statusCode).toBe(204);
    expect((await bob.call('POST', '/v1/auth/refresh', { refresh_token: bob.refreshToken })).status).toBe(401);
  });

  test('is of no API token', async () => {
    const made = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, {
      name: 'Mine',
    });
    const headers = {
      authorization: `Bearer ${made.body.plaintext_token}`,
      'x-csrf': '1',
      origin: origin(),
      host: new URL(app.url).host,
    };
    expect((await app.server.inject({ method: 'POST', url: '/account/session', headers })).statusCode).toBe(403);
  });
});
