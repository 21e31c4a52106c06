import { randomBytes } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT, type ExampleProvider, startExampleProvider } from '../../../scripts/example-provider.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { changesOf, type Person, register } from '../../support/person.ts';

const FRONT = 'https://app.example.test';

let app: TestApp;
let example: ExampleProvider;
let owner: Person;
/** The provider as the service has it. */
let idp: { url: string; id: string };
const domain = `d${randomBytes(6).toString('hex')}.example.test`;
beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', SSO_REDIRECT_URIS: FRONT } });
  await app.listen();
  example = await startExampleProvider({ port: 0, callbackUrl: `${app.url}/connections/callback` });
  await register(app, { name: 'operator' });
  owner = await register(app, { name: 'owner' });
  const secret = { name: 'sso', secret_type: 'oauth2', value: { client_secret: CLIENT.secret } };
  expect((await owner.call('POST', `/v1/orgs/${owner.orgId}/secrets`, secret)).status).toBe(201);
  const providers = `/v1/orgs/${owner.orgId}/identity-providers`;
  const { status, body } = await owner.call<{ idp_id: string }>('POST', providers, {
    name: 'Certified',
    protocol: 'oidc',
    oidc_config: { client_id: CLIENT.id, client_secret_ref: 'secret://sso', discovery_url: example.url },
    verified_domains: [domain],
  });
  expect(status, JSON.stringify(body)).toBe(201);
  idp = { url: `${providers}/${body.idp_id}`, id: body.idp_id };
});
afterAll(async () => {
  await app.close();
  await example.close();
});

interface SignedIn {
  access_token: string;
  refresh_token: string;
  user: { user_id: string };
}

const asJson = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
const post = async <T>(path: string, body: object): Promise<[number, T]> => {
  const answer = await fetch(`${app.url}/v1/auth/${path}`, asJson(body));
  return [answer.status, (await answer.json()) as T];
};
const statusOf = async ({ access_token: token }: SignedIn): Promise<number> =>
  (await fetch(`${app.url}/v1/auth/me`, { headers: { authorization: `Bearer ${token}` } })).status;

/** A browser in which a sign-in has begun, and the way back that the provider gives it. */
async function begin(name: string, more: object = {}) {
  const browser = newBrowserWithCookies();
  const answer = await browser.send(
    `${app.url}/v1/auth/sso/initiate`,
    asJson({ email: `${name}@${domain}`, redirect_uri: `${FRONT}/in`, ...more }),
  );
  const begun = (await answer.json()) as { redirect_url: string; protocol: string };
  expect([answer.status, begun.protocol], JSON.stringify(begun)).toEqual([200, 'oidc']);
  const back = await browser.follow(begun.redirect_url, `${app.url}/v1/auth/sso/callback/oidc`);
  return { browser, redirectUrl: new URL(begun.redirect_url), back };
}

/** A whole sign-in, with the code that the front end gets. */
async function signIn(name: string): Promise<SignedIn> {
  const { browser, back } = await begin(name);
  const to = await browser.follow(back.href, FRONT);
  const [status, body] = await post<SignedIn>('sso/exchange', { code: to.searchParams.get('code') });
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

/** The key that signed the next ID token, and its claims. */
function nextIdToken(): Promise<{ kid: unknown; claims: Record<string, unknown> }> {
  return new Promise((resolve) => {
    example.provider.once('grant.success', ({ body }) => {
      const { id_token: token } = body as { id_token: string };
      resolve({ kid: decodeProtectedHeader(token).kid, claims: decodeJwt(token) });
    });
  });
}

describe('over a certified OpenID provider that demands PKCE', () => {
  test('discover, initiate, sign in, exchange: an account as the user info says, and a session', async () => {
    const email = `cleo@${domain}`;
    expect(await post('sso/discover', { email })).toEqual([
      200,
      { sso_available: true, provider_name: 'Certified', protocol: 'oidc' },
    ]);
    const { browser, redirectUrl, back } = await begin('cleo');
    expect(`${redirectUrl.origin}${redirectUrl.pathname}`).toBe(`${example.url}/auth`);
    expect(Object.fromEntries(redirectUrl.searchParams)).toMatchObject({
      client_id: CLIENT.id,
      response_type: 'code',
      code_challenge_method: 'S256',
      login_hint: email,
      redirect_uri: `${app.url}/v1/auth/sso/callback/oidc`,
    });
    expect([...back.searchParams.keys()].sort()).toEqual(['code', 'iss', 'state']);
    const idToken = nextIdToken();
    const to = await browser.follow(back.href, FRONT);
    expect([to.pathname, [...to.searchParams.keys()]]).toEqual(['/in', ['code']]);
    // the address is in the user info only
    expect(Object.keys((await idToken).claims)).not.toContain('email');
    const code = { code: to.searchParams.get('code') };
    const [status, body] = await post<SignedIn>('sso/exchange', code);
    expect([status, body]).toMatchObject([200, { token_type: 'bearer', user: { email, auth_provider: 'oidc' } }]);
    expect((await post('sso/exchange', code))[0]).toBe(401);
    expect(await statusOf(body)).toBe(200);
    const { user_id: id } = body.user;
    expect(await app.database.prisma.user.findUniqueOrThrow({ where: { id } })).toMatchObject({
      fullName: 'cleo',
      isVerified: false, // nobody has proven the domain
    });
    expect((await changesOf(app, id)).at(-1)).toMatchObject({
      action: 'login',
      metadata: { identity_provider_id: idp.id, protocol: 'oidc' },
    });
    // once more: the same account
    expect((await signIn('cleo')).user.user_id).toBe(id);
  });

  test('a new signing key is accepted as soon as it signs, with the old one gone', async () => {
    const [first] = await Promise.all([nextIdToken(), signIn('dora')]);
    await example.rotateKey();
    const { keys } = (await (await fetch(`${example.url}/jwks`)).json()) as { keys: { kid: string }[] };
    const [second] = await Promise.all([nextIdToken(), signIn('dora')]);
    expect(second.kid).not.toBe(first.kid);
    expect(keys.map(({ kid }) => kid)).toEqual([second.kid]);
  });

  test('switched off: its sessions end at once, and what has begun does not end in one', async () => {
    const [one, two] = [await signIn('eva'), await signIn('finn')];
    const { browser, back } = await begin('gil');
    expect(await Promise.all([one, two].map(statusOf))).toEqual([200, 200]);
    expect((await owner.call('PUT', idp.url, { is_active: false })).status).toBe(200);
    expect(await Promise.all([one, two].map(statusOf))).toEqual([401, 401]);
    expect((await post('refresh', { refresh_token: one.refresh_token }))[0]).toBe(401);
    expect((await browser.send(back.href)).status).toBe(401);
    const email = `eva@${domain}`;
    expect((await post('sso/initiate', { email }))[0]).toBe(404);
    expect(await post('sso/discover', { email })).toEqual([
      200,
      { sso_available: false, provider_name: null, protocol: null },
    ]);
  });
});
