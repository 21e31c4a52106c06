import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { codeOf, withTotp } from '../../support/factors.ts';
import { changesOf, type Person, register } from '../../support/person.ts';
import { formIn, onwardIn, submit } from '../oauth/oauth-browser.ts';

const FRONT = 'https://app.example.test';
const EXACT = 'https://other.test/signed-in';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ env: { SSO_REDIRECT_URIS: `${FRONT}, ${EXACT}` } });
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());

interface SignedIn {
  access_token: string;
  refresh_token: string;
  user: { user_id: string };
}

const origin = () => new URL(app.url).origin;
const exchange = (code: string) =>
  app.server.inject({ method: 'POST', url: '/v1/auth/sso/exchange', payload: { code } });
/** What the script of the page sends once somebody has signed in. */
const handOver = (token: string, redirect_uri: string, headers: Record<string, string> = {}) =>
  app.server.inject({
    method: 'POST',
    url: '/account/session/code',
    headers: {
      host: new URL(app.url).host,
      origin: origin(),
      'x-csrf': '1',
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Bearer ${token}`,
      ...headers,
    },
    payload: new URLSearchParams({ redirect_uri }).toString(),
  });
const tokenOf = async ({ username, password }: Person) =>
  (
    await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload: { username, password } })
  ).json<SignedIn>();
const codeIn = (address: string): string => new URL(address).searchParams.get('code') ?? '';
const codeFor = async (person: Person): Promise<string> => {
  const { access_token } = await tokenOf(person);
  return codeIn((await handOver(access_token, `${FRONT}/in`)).json<{ redirect_to: string }>().redirect_to);
};
const statusWith = async (token: string) =>
  (await app.server.inject({ url: '/v1/auth/me', headers: { authorization: `Bearer ${token}` } })).statusCode;
/** Sends the form of the page without a script. */
async function signInAt(query: string, fields: Record<string, string>) {
  const browser = newBrowserWithCookies();
  const url = `${app.url}/account/sign-in`;
  const form = formIn(await (await browser.send(`${url}${query}`)).text());
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return { browser, url, form, answer: await submit(app, browser, url, form) };
}
const cookiesOf = (answer: Response) => answer.headers.getSetCookie().filter((line) => line.startsWith('session='));

describe('a sign-in with a password ends at a front end', () => {
  test('with a code, which is exchanged once for the tokens of that session', async () => {
    const ann = await register(app, { name: 'ann' });
    const begun = await tokenOf(ann);
    const answer = await handOver(begun.access_token, `${FRONT}/in?state=mine`);
    expect([answer.statusCode, answer.headers['cache-control']]).toEqual([200, 'no-store']);
    const { redirect_to: to } = answer.json<{ redirect_to: string }>();
    expect(to).toMatch(/^https:\/\/app\.example\.test\/in\?state=mine&code=[\w-]{43}$/);
    const done = await exchange(codeIn(to));
    expect(done.statusCode).toBe(200);
    const tokens = done.json<SignedIn>();
    expect(tokens.user).toMatchObject({ user_id: ann.userId });
    expect(await statusWith(tokens.access_token)).toBe(200);
    const refreshed = await ann.call('POST', '/v1/auth/refresh', { refresh_token: tokens.refresh_token });
    expect(refreshed.status).toBe(200);
    expect((await ann.call('POST', '/v1/auth/refresh', { refresh_token: begun.refresh_token })).status).toBe(401);
    expect((await exchange(codeIn(to))).statusCode).toBe(401);
    expect((await changesOf(app, ann.userId)).at(-1)).toMatchObject({ action: 'refresh' });
    const { expiresAt, createdAt } = await app.database.prisma.session.findFirstOrThrow({
      where: { userId: ann.userId, codeUsedAt: { not: null } },
    });
    expect(expiresAt.getTime() - createdAt.getTime()).toBe(30 * 86_400_000);
  });

  test('without a script, and through the second factor; the browser keeps no session here', async () => {
    const ann = await register(app, { name: 'ann' });
    const { secret } = await withTotp(app, ann);
    const query = `?redirect_uri=${encodeURIComponent(EXACT)}`;
    const { browser, url, answer } = await signInAt(query, { username: ann.username, password: ann.password });
    const second = formIn(await answer.text());
    expect(second.get('redirect_uri')).toBe(EXACT);
    second.set('code', codeOf(secret));
    const done = await submit(app, browser, url, second);
    expect(cookiesOf(done)).toEqual([]);
    const to = onwardIn(await done.text());
    expect(to).toMatch(/^https:\/\/other\.test\/signed-in\?code=[\w-]{43}$/);
    const tokens = (await exchange(codeIn(to))).json<SignedIn>();
    // the session is the one that has proven the factor
    const factors = await app.server.inject({
      url: '/v1/auth/factors',
      headers: { authorization: `Bearer ${tokens.access_token}` },
    });
    expect(factors.json()).toMatchObject({ proven_at: expect.any(String) as string });
  });
});

describe('nobody else gets it', () => {
  test.each([
    'https://evil.example/in',
    'https://app.example.test.evil.example/',
    'https://app.example.test@evil.example/',
    'https://user:pw@app.example.test/in',
    'http://app.example.test/in',
    'https://app.example.test:8443/in',
    'https://other.test/signed-in/more',
    'https://app.example.test/in#here',
    'javascript:alert(1)//app.example.test',
    '//app.example.test/in',
    '/account',
    '',
  ])('an address that the operator has not listed: %j', async (to) => {
    const ann = await register(app, { name: 'ann' });
    const { access_token } = await tokenOf(ann);
    const answer = await handOver(access_token, to);
    expect([answer.statusCode, answer.body.includes('code=')]).toEqual([400, false]);
    // the form forgets it, and signs in to the own pages, as without it
    const fields = { username: ann.username, password: ann.password, redirect_uri: to };
    const { form, answer: signedIn } = await signInAt(`?redirect_uri=${encodeURIComponent(to)}`, fields);
    expect(form.get('redirect_uri')).toBe(to);
    expect(onwardIn(await signedIn.text())).toBe('/account');
    const page = await (
      await newBrowserWithCookies().send(`${app.url}/account/sign-in?redirect_uri=${encodeURIComponent(to)}`)
    ).text();
    expect(formIn(page).get('redirect_uri')).toBeNull();
  });

  test('by the own pages, although their origin is listed: a code would sign in whoever is sent there', async () => {
    const listed = await app.another({ PUBLIC_URL: app.url, SSO_REDIRECT_URIS: origin() });
    const ann = await register(app, { name: 'ann' });
    for (const path of ['/account/sign-in', '/account/%73ign-in', '/account/']) {
      const { access_token } = await tokenOf(ann);
      const answer = await listed.server.inject({
        method: 'POST',
        url: '/account/session/code',
        headers: { origin: origin(), 'x-csrf': '1', authorization: `Bearer ${access_token}` },
        payload: new URLSearchParams({ redirect_uri: `${app.url}${path}` }).toString(),
      });
      expect([path, answer.body.includes('code=')]).toEqual([path, false]);
      expect(answer.statusCode).toBeGreaterThanOrEqual(400);
    }
    await listed.close();
  });

  test.each<[string, Record<string, string>]>([
    ['of another origin', { origin: 'https://evil.example' }],
    ['of a front end', { origin: FRONT }],
    ['of no origin', { origin: 'null' }],
    ['without the header that no form can send', { 'x-csrf': '' }],
  ])('by a request %s', async (_title, headers) => {
    const { access_token } = await tokenOf(await register(app, { name: 'ann' }));
    expect((await handOver(access_token, `${FRONT}/in`, headers)).statusCode).toBe(403);
  });

  test('by an API token, the cookie of a browser, or nothing', async () => {
    const ann = await register(app, { name: 'ann' });
    const made = await ann.call<{ plaintext_token: string }>('POST', `/v1/orgs/${ann.orgId}/api-tokens`, {
      name: 'Mine',
    });
    expect((await handOver(made.body.plaintext_token, `${FRONT}/in`)).statusCode).toBe(403);
    const { answer } = await signInAt('', { username: ann.username, password: ann.password });
    const cookie = cookiesOf(answer)[0]!.split(';')[0]!;
    const byCookie = await app.server.inject({
      method: 'POST',
      url: '/account/session/code',
      headers: { host: new URL(app.url).host, origin: origin(), 'x-csrf': '1', cookie },
      payload: new URLSearchParams({ redirect_uri: `${FRONT}/in` }).toString(),
    });
    expect([401, 415]).toContain(byCookie.statusCode);
    expect((await handOver('', `${FRONT}/in`)).statusCode).toBe(401);
  });

  test('twice: a session is handed over once, and a code of many at once gives one pair of tokens', async () => {
    const ann = await register(app, { name: 'ann' });
    const { access_token } = await tokenOf(ann);
    const first = await handOver(access_token, `${FRONT}/in`);
    expect((await handOver(access_token, `${FRONT}/in`)).statusCode).toBe(401);
    const code = codeIn(first.json<{ redirect_to: string }>().redirect_to);
    const statuses = (await Promise.all([1, 2, 3, 4].map(() => exchange(code)))).map(({ statusCode }) => statusCode);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
    expect((await handOver(access_token, `${FRONT}/in`)).statusCode).toBe(401);
  });

  const adopt = async (token: string) => {
    const headers = { host: new URL(app.url).host, origin: origin(), 'x-csrf': '1', authorization: `Bearer ${token}` };
    return (await app.server.inject({ method: 'POST', url: '/account/session', headers })).statusCode;
  };

  test('of a session that was opened long ago, or is that of a browser already', async () => {
    const ann = await register(app, { name: 'ann' });
    const old = await tokenOf(ann);
    await app.database.pool.query(
      `update sessions set created_at = created_at - interval '11 minutes' where user_id = $1`,
      [ann.userId],
    );
    expect((await handOver(old.access_token, `${FRONT}/in`)).statusCode).toBe(401);
    // nor does it become that of a browser: a token that was stolen ends with the session it was stolen from
    expect(await adopt(old.access_token)).toBe(401);
    const { access_token } = await tokenOf(ann);
    expect(await adopt(access_token)).toBe(204);
    expect((await handOver(access_token, `${FRONT}/in`)).statusCode).toBe(401);
    const given = await tokenOf(ann);
    expect((await handOver(given.access_token, `${FRONT}/in`)).statusCode).toBe(200);
    expect(await adopt(given.access_token)).toBe(401);
  });

  test.each<[string, (ann: Person) => Promise<unknown>]>([
    [
      'a minute',
      (ann) =>
        app.database.pool.query(
          `update sessions set expires_at = expires_at - interval '61 seconds' where user_id = $1`,
          [ann.userId],
        ),
    ],
    [
      'a new password',
      (ann) =>
        ann.ask('mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }', {
          input: { currentPassword: ann.password, newPassword: 'another horse, battery' },
        }),
    ],
    [
      'the end of the account',
      (ann) => app.database.pool.query('update users set is_active = false where id = $1', [ann.userId]),
    ],
  ])('with a code after %s', async (_title, happen) => {
    const ann = await register(app, { name: 'ann' });
    const code = await codeFor(ann);
    await happen(ann);
    expect((await exchange(code)).statusCode).toBe(401);
  });

  test('as a cookie, a token or a refresh token, and the database has its hash alone', async () => {
    const ann = await register(app, { name: 'ann' });
    const code = await codeFor(ann);
    expect(await statusWith(code)).toBe(401);
    expect((await ann.call('POST', '/v1/auth/refresh', { refresh_token: code })).status).toBe(401);
    const asCookie = await fetch(`${app.url}/account`, { headers: { cookie: `session=${code}` }, redirect: 'manual' });
    expect(asCookie.status).toBe(303);
    const { rows } = await app.database.pool.query('select 1 from sessions where code_hash = $1', [code]);
    expect(rows).toEqual([]);
  });
});
