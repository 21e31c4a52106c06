// Cases of the OpenID conformance suite that can run without it, under the names that they have there, and the attacks
// of RFC 9700. docs/contribute/authorization-server.md lists them.
import { createHash } from 'node:crypto';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify, SignJWT } from 'jose';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import {
  allow,
  ask,
  CALLBACK,
  callWith,
  formIn,
  newApplication,
  openConsent,
  peerOf,
  type RegisteredApplication,
  signedInBrowser,
  signIn,
  submit,
  tokensOf,
} from './oauth-browser.ts';

const IDENTITY = 'openid profile email';

let app: TestApp;
let ann: Person;
let eve: Person;
let browser: BrowserWithCookies;
let made: RegisteredApplication;
let confidential: RegisteredApplication;
let peer: client.Configuration;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  eve = await register(app, { name: 'eve' });
  browser = await signedInBrowser(app, ann);
  made = await newApplication(ann);
  confidential = await newApplication(ann, { application_type: 'confidential', name: 'Server' });
  peer = await peerOf(app, made);
  await tokensOf(app, browser, peer, { scope: `${IDENTITY} workspace:read` });
});
afterAll(() => app.close());

type Answer = { status: number; body: Record<string, unknown>; headers: Headers };

const verifier = 'v'.repeat(43);
const challenge = createHash('sha256').update(verifier).digest('base64url');
const basic = ({ id, secret }: RegisteredApplication) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
});
const statusWith = async (token: string) => (await callWith(app, token, 'GET', ann.home)).status;

/** A form that a program sends. */
async function send(at: string, fields: Record<string, string> | string[][], headers = {}): Promise<Answer> {
  const body = new URLSearchParams(fields as Record<string, string>);
  const answer = await fetch(`${app.url}${at}`, { method: 'POST', body, headers, redirect: 'manual' });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json');
  return { status: answer.status, body: isJson ? (JSON.parse(text) as never) : { text }, headers: answer.headers };
}

const request = (change: Record<string, string | null> = {}): [string, string][] =>
  Object.entries({
    client_id: made.id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: IDENTITY,
    state: 'st-ate',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...change,
  }).filter((entry): entry is [string, string] => entry[1] !== null);

/** Where an authorization request leads, in the browser of ann, who has allowed it before. */
async function authorize(
  change: Record<string, string | null> = {},
  { more = [], by = browser }: { more?: [string, string][]; by?: BrowserWithCookies } = {},
): Promise<{ at: string; answer: URLSearchParams; text: string }> {
  const url = new URL(`${app.url}/oauth/auth`);
  url.search = new URLSearchParams([...request(change), ...more]).toString();
  const { at, text } = await openConsent(app, by, url);
  const { search, hash } = new URL(at);
  return { at, text, answer: new URLSearchParams(hash.slice(1) || search) };
}

const redeem = (code: string | null, change: Record<string, string | null> = {}, headers = {}): Promise<Answer> =>
  send(
    '/oauth/token',
    Object.fromEntries(
      Object.entries({
        grant_type: 'authorization_code',
        client_id: made.id,
        code: code ?? '',
        code_verifier: verifier,
        redirect_uri: CALLBACK,
        ...change,
      }).filter((entry): entry is [string, string] => entry[1] !== null),
    ),
    headers,
  );

const codeOf = async (change: Record<string, string | null> = {}): Promise<string> =>
  (await authorize(change)).answer.get('code') ?? '';

const claimsOf = async (token: unknown) => {
  const keys = (await (await fetch(`${app.url}/oauth/jwks`)).json()) as JSONWebKeySet;
  return (await jwtVerify(String(token), createLocalJWKSet(keys), { issuer: `${app.url}/oauth`, audience: made.id }))
    .payload;
};

/** An authorization request that a form of another site sends: no cookie comes with it. */
const post = (fields: [string, string][] | string, { at = '/oauth/auth', headers = {} } = {}) =>
  fetch(`${app.url}${at}`, {
    method: 'POST',
    body: typeof fields === 'string' ? fields : new URLSearchParams(fields),
    headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', ...headers },
    redirect: 'manual',
  });

const userinfo = (token: string, init: RequestInit = {}) =>
  fetch(`${app.url}/oauth/me`, { headers: { authorization: `Bearer ${token}` }, ...init });

describe('the basic profile of OpenID Connect', () => {
  test('oidcc-server, oidcc-idtoken-signature: an ID token says who, for whom, from whom and until when', async () => {
    const { body } = await redeem(await codeOf({ nonce: 'n-once' }));
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: expect.any(Number) });
    const claims = await claimsOf(body.id_token);
    expect(claims).toMatchObject({
      sub: ann.userId,
      nonce: 'n-once',
      exp: expect.any(Number),
      iat: expect.any(Number),
    });
    const hash = createHash('sha256').update(String(body.access_token)).digest().subarray(0, 16).toString('base64url');
    expect([undefined, hash]).toContain(claims.at_hash);
  });

  test('oidcc-response-type-missing: is an error', async () => {
    expect((await authorize({ response_type: null })).answer.get('error')).toBe('invalid_request');
  });

  test.each<[string, (token: string) => Promise<Response>]>([
    ['oidcc-userinfo-get', (token) => userinfo(token)],
    ['oidcc-userinfo-post-header', (token) => userinfo(token, { method: 'POST' })],
    [
      'oidcc-userinfo-post-body',
      (token) => userinfo(token, { method: 'POST', headers: {}, body: new URLSearchParams({ access_token: token }) }),
    ],
  ])('%s: tells who the user is', async (_name, get) => {
    const { body } = await redeem(await codeOf());
    const answer = await get(String(body.access_token));
    expect([answer.status, await answer.json()]).toMatchObject([200, { sub: ann.userId, email: ann.email }]);
  });

  test('oidcc-ensure-request-without-nonce-succeeds-for-code-flow: and no nonce is made up', async () => {
    const { status, body } = await redeem(await codeOf());
    expect([status, (await claimsOf(body.id_token)).nonce]).toEqual([200, undefined]);
  });

  test.each<[string, string, string[]]>([
    ['oidcc-scope-profile', 'openid profile', ['sub', 'name', 'preferred_username']],
    ['oidcc-scope-email', 'openid email', ['sub', 'email', 'email_verified']],
    ['oidcc-scope-address, which is not offered', 'openid address', ['sub']],
    ['oidcc-scope-phone, which is not offered', 'openid phone', ['sub']],
    ['oidcc-scope-all', IDENTITY, ['sub', 'name', 'preferred_username', 'email', 'email_verified']],
    ['oidcc-ensure-other-scope-order-succeeds', 'email openid', ['sub', 'email', 'email_verified']],
  ])('%s: gives these claims, and no other', async (_name, scope, names) => {
    const { body } = await redeem(await codeOf({ scope }));
    const claims = (await (await userinfo(String(body.access_token))).json()) as object;
    expect(Object.keys(claims).sort()).toEqual([...names].sort());
  });

  test.each<[string, Record<string, string>]>([
    ['oidcc-display-page', { display: 'page' }],
    ['oidcc-display-popup', { display: 'popup' }],
    ['oidcc-login-hint', { login_hint: 'ann@example.test' }],
    ['oidcc-ui-locales', { ui_locales: 'se' }],
    ['oidcc-claims-locales', { claims_locales: 'se' }],
    ['oidcc-ensure-request-with-acr-values-succeeds', { acr_values: '1 2' }],
    ['oidcc-ensure-request-with-unknown-parameter-succeeds', { extra: 'foobar' }],
    ['oidcc-claims-essential, which is not offered', { claims: '{"userinfo":{"name":{"essential":true}}}' }],
    ['oidcc-max-age-10000', { max_age: '10000' }],
    ['oidcc-prompt-none-logged-in', { prompt: 'none' }],
    ['oidcc-ensure-request-with-valid-pkce-succeeds', {}],
  ])('%s: goes on', async (_name, change) => {
    expect((await redeem(await codeOf(change))).status).toBe(200);
  });

  test.each<[string, Record<string, string>]>([
    ['oidcc-prompt-login', { prompt: 'login' }],
    ['oidcc-max-age-1', { max_age: '1' }],
  ])('%s: asks to sign in again whoever has done so an hour ago', async (_name, change) => {
    const own = await signedInBrowser(app, ann);
    await app.database.pool.query(
      `update sessions set created_at = created_at - interval '1 hour' where user_id = $1`,
      [ann.userId],
    );
    const { at } = await authorize(change, { by: own });
    expect(new URL(at).pathname).toBe('/account/sign-in');
  });

  test('oidcc-max-age-10000: the ID token says when the user has signed in', async () => {
    const { body } = await redeem(await codeOf({ max_age: '10000' }));
    expect((await claimsOf(body.id_token)).auth_time).toEqual(expect.any(Number));
  });

  test('oidcc-prompt-none-not-logged-in: is an error', async () => {
    const { answer } = await authorize({ prompt: 'none' }, { by: newBrowserWithCookies() });
    expect([answer.get('error'), answer.get('code')]).toEqual(['login_required', null]);
  });

  test('oidcc-id-token-hint: of the same user goes on', async () => {
    const { body } = await redeem(await codeOf());
    const { answer } = await authorize({ prompt: 'none', id_token_hint: String(body.id_token) });
    expect(answer.get('code')).toEqual(expect.any(String));
  });

  test('oidcc-ensure-registered-redirect-uri, oidcc-redirect-uri-query-mismatch: nothing goes elsewhere', async () => {
    for (const uri of ['https://app.example.test/other', `${CALLBACK}?foo=bar`, `${CALLBACK}/..`]) {
      const { at, text } = await authorize({ redirect_uri: uri });
      expect([uri, at.startsWith(app.url), text.includes('invalid_redirect_uri')]).toEqual([uri, true, true]);
    }
  });

  test('oidcc-redirect-uri-query-OK: a query of a registered address stays', async () => {
    const own = await newApplication(ann, { redirect_uris: [`${CALLBACK}?foo=bar`] });
    const { url } = await ask(await peerOf(app, own), { redirect_uri: `${CALLBACK}?foo=bar`, scope: 'openid' });
    const back = await allow(app, browser, url);
    expect([back.searchParams.get('foo'), back.searchParams.get('code')]).toEqual(['bar', expect.any(String)]);
  });

  test('oidcc-redirect-uri-missing: is an error, although only one is registered', async () => {
    const { at, text } = await authorize({ redirect_uri: null });
    expect([at.startsWith(app.url), text]).toEqual([true, expect.stringContaining('invalid_request')]);
  });

  test('oidcc-ensure-post-request-succeeds: a form begins what a link would', async () => {
    const answer = await post(request());
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([303, 'no-store']);
    const to = new URL(String(answer.headers.get('location')), app.url);
    expect([to.origin, to.pathname, [...to.searchParams]]).toEqual([app.url, '/oauth/auth', request()]);
    const { at } = await openConsent(app, browser, to);
    expect((await redeem(new URL(at).searchParams.get('code'))).status).toBe(200);
  });

  test('oidcc-server-client-secret-basic, oidcc-server-client-secret-post: both work', async () => {
    const server = await peerOf(app, confidential);
    const tokens = await tokensOf(app, browser, server, { scope: 'openid' });
    expect(tokens.claims()?.aud).toBe(confidential.id);
    const { url } = await ask(server, { scope: 'openid', code_challenge: challenge });
    const code = (await allow(app, browser, url)).searchParams.get('code');
    const { status } = await redeem(code, { client_id: confidential.id, client_secret: confidential.secret });
    expect(status).toBe(200);
  });

  test('oidcc-codereuse, oidcc-codereuse-30seconds: a code works once, and what it gave ends', async () => {
    const { url, verifier: own } = await ask(peer, { scope: 'workspace:read', prompt: 'consent' });
    const code = (await allow(app, browser, url)).searchParams.get('code');
    const first = await redeem(code, { code_verifier: own });
    expect(await statusWith(String(first.body.access_token))).toBe(200);
    const second = await redeem(code, { code_verifier: own });
    expect([second.status, second.body]).toMatchObject([400, { error: 'invalid_grant' }]);
    expect(await statusWith(String(first.body.access_token))).toBe(401);
    const refreshed = await send('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: made.id,
      refresh_token: String(first.body.refresh_token),
    });
    expect(refreshed.body).toMatchObject({ error: 'invalid_grant' });
    await tokensOf(app, browser, peer, { scope: `${IDENTITY} workspace:read`, prompt: 'consent' });
  });

  test.each<[string, Record<string, string>]>([
    ['oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported', { request: 'e30.e30.' }],
    ['oidcc-ensure-request-object-with-redirect-uri', { request: 'eyJhbGciOiJub25lIn0.eyJyZWRpcmVjdF91cmkiOiJ4In0.' }],
    ['oidcc-request-uri-unsigned', { request_uri: 'https://app.example.test/request.jwt' }],
  ])('%s: is refused', async (_name, change) => {
    const { answer, text } = await authorize(change);
    expect(answer.get('code')).toBeNull();
    expect(`${answer.get('error')} ${text}`).toMatch(/request_not_supported|request_uri_not_supported|invalid_request/);
  });

  test('oidcc-refresh-token: a new ID token is of the same user, and of the same sign-in', async () => {
    const first = await redeem(await codeOf({ nonce: 'n' }));
    const { body } = await send('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: made.id,
      refresh_token: String(first.body.refresh_token),
    });
    const [before, after] = [await claimsOf(first.body.id_token), await claimsOf(body.id_token)];
    expect([after.sub, after.aud, after.auth_time]).toEqual([before.sub, before.aud, before.auth_time]);
  });

  test('oidcc-discovery-endpoint-verification, oidcc-discovery-jwks: what is told is so', async () => {
    const url = `${app.url}/oauth/.well-known/openid-configuration`;
    const told = (await (await fetch(url)).json()) as Record<string, string & string[]>;
    expect(told.issuer).toBe(`${app.url}/oauth`);
    for (const name of ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'])
      expect(told[name]).toMatch(new RegExp(`^${app.url}/oauth/`));
    expect(told.scopes_supported).toContain('openid');
    expect(told.subject_types_supported).toEqual(['public']);
    expect(told.id_token_signing_alg_values_supported).toContain('RS256');
    const { keys } = (await (await fetch(told.jwks_uri!)).json()) as JSONWebKeySet;
    expect(new Set(keys.map(({ kid }) => kid)).size).toBe(keys.length);
  });

  test.each([
    ['oidcc-state', { state: 'a b+c%2F"<&' }],
    ['oidcc-state-missing', { state: null }],
  ])('%s: comes back as it was sent', async (_name, change) => {
    expect((await authorize(change)).answer.get('state')).toBe(change.state);
  });
});

describe('errors of an authorization request (RFC 6749, RFC 9207)', () => {
  test.each<[string, Record<string, string | null>, RegExp]>([
    ['of an unknown response type', { response_type: 'foo' }, /^unsupported_response_type$/],
    ['of tokens in the address', { response_type: 'code token' }, /^unsupported_response_type$/],
    ['of a prompt that contradicts itself', { prompt: 'none login' }, /^invalid_request$/],
    ['of an unknown prompt', { prompt: 'maybe' }, /^invalid_request$/],
    ['of an age that is no number', { max_age: 'abc' }, /^invalid_request$/],
    ['of an unknown way of answers', { response_mode: 'smoke' }, /^(?:invalid_request|unsupported_response_mode)$/],
    ['of a challenge without S256', { code_challenge_method: null }, /^invalid_request$/],
    ['of a hint that is no token', { id_token_hint: 'x.y.z', prompt: 'none' }, /^(?:invalid_request|login_required)$/],
    ['of an unknown resource', { resource: 'https://other.example/' }, /^invalid_target$/],
  ])('%s name the issuer and the state, and have no code', async (_title, change, error) => {
    const { answer, at } = await authorize(change);
    expect(at.startsWith(CALLBACK)).toBe(true);
    expect(answer.get('error')).toMatch(error);
    expect([answer.get('iss'), answer.get('state'), answer.get('code')]).toEqual([`${app.url}/oauth`, 'st-ate', null]);
  });

  test.each([
    'client_id',
    'redirect_uri',
    'response_type',
    'scope',
    'state',
    'code_challenge',
    'code_challenge_method',
  ])('a request with two values of %s gets no code', async (name) => {
    const [, value = ''] = request().find(([key]) => key === name) ?? [];
    const { answer, at, text } = await authorize({}, { more: [[name, `${value}x`]] });
    expect(answer.get('code')).toBeNull();
    expect(`${answer.get('error')} ${text}`).toContain('invalid_request');
    // where it is not known where answers go, none goes anywhere
    if (name === 'redirect_uri' || name === 'client_id') expect(at.startsWith(app.url)).toBe(true);
  });
});

describe('pushed requests (RFC 9126)', () => {
  const push = (change: Record<string, string | null> = {}, headers = {}) =>
    send('/oauth/request', request(change) as string[][], headers);

  test('par-happy-flow, par-attempt-reuse-request_uri: a reference works once', async () => {
    const { status, body } = await push();
    expect([status, body.expires_in]).toEqual([201, expect.any(Number)]);
    const by = { client_id: made.id, request_uri: String(body.request_uri) };
    const go = () => browser.send(`${app.url}/oauth/auth?${new URLSearchParams(by).toString()}`);
    expect(new URL((await go()).headers.get('location')!, app.url).searchParams.get('code')).toBeTruthy();
    const again = await go();
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining('invalid_request_uri')]);
  });

  test('par-attempt-to-use-request_uri-for-different-client: is refused', async () => {
    const { body } = await push();
    const { answer, text } = await authorize({ client_id: confidential.id, request_uri: String(body.request_uri) });
    expect(answer.get('code')).toBeNull();
    expect(`${answer.get('error')} ${text}`).toMatch(/invalid_request/);
  });

  test('par-attempt-invalid-http-method: a reference is pushed, never fetched', async () => {
    expect((await fetch(`${app.url}/oauth/request?${new URLSearchParams(request()).toString()}`)).status).toBe(405);
  });

  test.each<[string, Record<string, string | null>, number, string]>([
    ['par-authorization-request-containing-request_uri', { request_uri: 'urn:x' }, 400, 'request_uri_not_supported'],
    ['par-ensure-pkce-required', { code_challenge: null, code_challenge_method: null }, 400, 'invalid_request'],
    ['par-plain-pkce-rejected', { code_challenge_method: 'plain' }, 400, 'invalid_request'],
    ['par-invalid-redirect-uri', { redirect_uri: 'https://evil.example/' }, 400, 'invalid_request'],
    ['par-unknown-client', { client_id: 'apl_unknown' }, 401, 'invalid_client'],
  ])('%s: is refused', async (_name, change, status, error) => {
    const answer = await push(change);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  test('par-without-client-authentication: a confidential client proves that it asks', async () => {
    const change = { client_id: confidential.id };
    expect((await push(change)).status).toBe(401);
    expect((await push(change, basic({ ...confidential, secret: 'aps_wrong' }))).status).toBe(401);
    expect((await push(change, basic(confidential))).status).toBe(201);
  });
});

describe('how a client proves who it is (RFC 6749, 2.3)', () => {
  const refused = async (change: Record<string, string | null>, headers = {}) => {
    const { status, body } = await redeem('x', change, headers);
    expect([status, body.access_token]).toEqual([
      expect.toSatisfy((code: number) => [400, 401].includes(code)),
      undefined,
    ]);
    return body.error;
  };

  test('no secret, a wrong one, that of another and an empty one are refused', async () => {
    const own = { client_id: confidential.id };
    const other = await newApplication(eve, { application_type: 'confidential' });
    for (const secret of ['', 'aps_wrong', other.secret, 'null', 'undefined'])
      expect(await refused({ client_id: null }, basic({ ...confidential, secret }))).toMatch(
        /invalid_(?:client|request)/,
      );
    expect(await refused(own)).toBe('invalid_client');
  });

  test('the hash of a secret, as it is kept, is no secret', async () => {
    const { rows } = await app.database.pool.query<{ hash: string }>(
      'select secret_hash as hash from applications where id = $1',
      [confidential.id],
    );
    expect(await refused({ client_id: null }, basic({ ...confidential, secret: rows[0]!.hash }))).toBe(
      'invalid_client',
    );
  });

  test('two ways at once are refused, and so is another name in the form', async () => {
    const both = { client_id: confidential.id, client_secret: confidential.secret };
    expect(await refused(both, basic(confidential))).toMatch(/invalid_(?:request|client)/);
    expect(await refused({ client_id: made.id }, basic(confidential))).toMatch(/invalid_(?:request|client)/);
  });

  test('a signed assertion is not offered', async () => {
    const assertion = await new SignJWT({}).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from('s'.repeat(32)));
    const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
    const change = { client_id: confidential.id, client_assertion: assertion, client_assertion_type: type };
    expect(await refused(change)).toMatch(/invalid_(?:request|client)/);
  });

  test('an address is no place for a secret or a code', async () => {
    const query = new URLSearchParams({ grant_type: 'authorization_code', code: await codeOf(), client_id: made.id });
    const answer = await send(`/oauth/token?${query.toString()}`, {});
    expect([answer.status, answer.body.access_token]).toEqual([400, undefined]);
    expect((await fetch(`${app.url}/oauth/token?${query.toString()}`)).status).toBe(405);
  });

  test('JSON is no form', async () => {
    const answer = await fetch(`${app.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ grant_type: 'authorization_code', client_id: made.id, code: await codeOf() }),
    });
    expect([answer.status >= 400 && answer.status < 500, await answer.text()]).toEqual([
      true,
      expect.not.stringContaining('access_token'),
    ]);
  });

  test('answers with tokens are kept by nobody on the way', async () => {
    const { status, headers } = await redeem(await codeOf());
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  });
});

/** What a client says that has sent nothing. */
const INVALID = { code: 'OAUTH_INVALID_RESPONSE' };

describe('a code that somebody else brings (RFC 9700, 4.5)', () => {
  test.each<[string, Record<string, string | null>]>([
    ['with a verifier of their own', { code_verifier: 'e'.repeat(43) }],
    ['without a verifier', { code_verifier: null }],
    ['with an empty one', { code_verifier: '' }],
    ['with the challenge', { code_verifier: challenge }],
    ['with a short one', { code_verifier: 'v'.repeat(42) }],
    ['with a long one', { code_verifier: 'v'.repeat(129) }],
    ['without its address', { redirect_uri: null }],
    ['with another address', { redirect_uri: 'https://evil.example/' }],
    ['with the address in other letters', { redirect_uri: CALLBACK.toUpperCase() }],
    ['as a refresh token', { grant_type: 'refresh_token', refresh_token: 'CODE' }],
    ['as the code of a device', { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'CODE' }],
  ])('%s is worth nothing', async (_title, change) => {
    const code = await codeOf();
    expect(code).not.toBe('');
    const filled = Object.fromEntries(
      Object.entries(change).map(([name, text]) => [name, text === 'CODE' ? code : text]),
    );
    const { status, body } = await redeem(code, filled);
    expect([status, body.access_token, body.id_token]).toEqual([400, undefined, undefined]);
  });

  test('is worth nothing to another client, even one with a secret of the same organization', async () => {
    const { status, body } = await redeem(await codeOf(), { client_id: null }, basic(confidential));
    expect([status, body]).toMatchObject([400, { error: 'invalid_grant' }]);
  });

  test('that was cut, or lengthened, is none', async () => {
    const code = await codeOf();
    for (const other of [code.slice(0, -1), `${code}x`, ` ${code}`, `${code}\0`])
      expect((await redeem(other)).status).toBe(400);
    expect((await redeem(code)).status).toBe(200);
  });

  test('mix-up: an answer that names another issuer is not taken by a client, and no code leaves it', async () => {
    const { url, verifier: own, state } = await ask(peer, { scope: 'openid' });
    const back = await browser.follow(url.href, CALLBACK);
    for (const iss of ['https://honest.example/oauth', `${app.url}`, `${app.url}/oauth/`]) {
      const mixed = new URL(back);
      mixed.searchParams.set('iss', iss);
      const checks = { pkceCodeVerifier: own, expectedState: state };
      await expect(client.authorizationCodeGrant(peer, mixed, checks)).rejects.toMatchObject(INVALID);
    }
    const without = new URL(back);
    without.searchParams.delete('iss');
    const checks = { pkceCodeVerifier: own, expectedState: state };
    await expect(client.authorizationCodeGrant(peer, without, checks)).rejects.toMatchObject(INVALID);
  });

  test('login CSRF: an answer to a request of somebody else is not taken by a client', async () => {
    const { url, verifier: own } = await ask(peer, { scope: 'openid' });
    const back = await browser.follow(url.href, CALLBACK);
    await expect(
      client.authorizationCodeGrant(peer, back, { pkceCodeVerifier: own, expectedState: client.randomState() }),
    ).rejects.toMatchObject(INVALID);
  });
});

describe('a token that is used where it is not for (RFC 9700, 4.9)', () => {
  const tokenFor = async (change: Record<string, string>) =>
    String((await redeem((await allowed(change)) ?? '')).body.access_token);
  const allowed = async (change: Record<string, string>) => {
    const url = new URL(`${app.url}/oauth/auth`);
    url.search = new URLSearchParams(request({ ...change, prompt: 'consent' })).toString();
    return (await allow(app, browser, url)).searchParams.get('code');
  };

  test('of the API tells nobody who the user is, and one of identity opens no API', async () => {
    const ofApi = await tokenFor({ scope: 'workspace:read' });
    const ofIdentity = await tokenFor({ scope: 'openid' });
    expect([await statusWith(ofApi), (await userinfo(ofApi)).status]).toEqual([200, 401]);
    expect([await statusWith(ofIdentity), (await userinfo(ofIdentity)).status]).toEqual([401, 200]);
  });

  test('of the MCP endpoint opens neither REST nor GraphQL nor the identity', async () => {
    const token = await tokenFor({ scope: 'workspace:read', resource: `${app.url}/mcp` });
    expect(await statusWith(token)).toBe(401);
    expect((await userinfo(token)).status).toBe(401);
    const { body } = await callWith(app, token, 'POST', '/graphql', { query: '{ me { id } }' });
    expect(JSON.stringify(body)).toContain('AUTHENTICATION_FAILED');
  });

  test('of the API opens no MCP endpoint', async () => {
    const token = await tokenFor({ scope: 'workspace:read' });
    const payload = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect((await callWith(app, token, 'POST', '/mcp', payload)).status).toBe(401);
  });

  test('of a session, an API token and an ID token tell the address of identity nothing', async () => {
    const { body } = await redeem(await codeOf());
    const token = (await issueToken(app, ann)).headers.authorization.slice('Bearer '.length);
    for (const other of [ann.accessToken, token, String(body.id_token), String(body.refresh_token), 'x', ''])
      expect((await userinfo(other)).status).toBeGreaterThanOrEqual(400);
  });

  test('in an address is none', async () => {
    const { body } = await redeem(await codeOf());
    const token = encodeURIComponent(String(body.access_token));
    expect((await fetch(`${app.url}/oauth/me?access_token=${token}`)).status).toBe(400);
    expect((await app.server.inject({ url: `${ann.home}?access_token=${token}` })).statusCode).toBe(401);
  });

  test('an ID token of another user, or one that nobody has signed, hints at nobody', async () => {
    const hers = await signedInBrowser(app, eve);
    const ofEve = await tokensOf(app, hers, await peerOf(app, await newApplication(eve)), { scope: 'openid' });
    const forged = await new SignJWT({ sub: ann.userId, aud: made.id, iss: `${app.url}/oauth` })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from('s'.repeat(32)));
    for (const hint of [ofEve.id_token!, forged]) {
      const { answer } = await authorize({ prompt: 'none', id_token_hint: hint });
      expect([answer.get('code'), answer.get('error')]).toEqual([
        null,
        expect.stringMatching(/^(?:invalid_request|login_required)$/),
      ]);
    }
  });

  test('is given back by its own client alone; with any other text nothing happens', async () => {
    const token = await tokenFor({ scope: 'workspace:read' });
    const evil = await newApplication(eve);
    const back = (id: string, text: string) => send('/oauth/token/revocation', { client_id: id, token: text });
    await back(evil.id, token);
    expect(await statusWith(token)).toBe(200);
    expect((await back(made.id, 'nothing')).status).toBe(200);
    expect((await back(made.id, `${token}x`)).body).toMatchObject({ error: 'unsupported_token_type' });
    expect(await statusWith(token)).toBe(200);
    expect((await back(made.id, token)).status).toBe(200);
    expect(await statusWith(token)).toBe(401);
  });

  test('is told about to no public client, no stranger and no other organization', async () => {
    const token = await tokenFor({ scope: 'workspace:read' });
    const evil = await newApplication(eve, { application_type: 'confidential' });
    const about = (headers: object, more: Record<string, string> = {}) =>
      send('/oauth/token/introspection', { token, ...more }, headers);
    expect((await about(basic(confidential))).body).toMatchObject({ active: true, client_id: made.id });
    expect((await about(basic(evil))).body).toEqual({ active: false });
    expect((await about({}, { client_id: made.id })).body).not.toHaveProperty('scope');
    expect((await about({})).status).toBe(400);
    expect((await about(basic({ ...confidential, secret: 'aps_no' }))).status).toBe(401);
  });
});

describe('a refresh token that comes back (RFC 9700, 4.14)', () => {
  const renew = (token: unknown, more: Record<string, string> = {}, headers = {}) =>
    send(
      '/oauth/token',
      { grant_type: 'refresh_token', client_id: made.id, refresh_token: String(token), ...more },
      headers,
    );
  const offline = async () => {
    const url = new URL(`${app.url}/oauth/auth`);
    const scope = 'workspace:read offline_access';
    url.search = new URLSearchParams(request({ scope, prompt: 'consent' })).toString();
    return (await redeem((await allow(app, browser, url)).searchParams.get('code'))).body;
  };

  test('late, from the third generation on, ends all of them', async () => {
    const first = await offline();
    const second = (await renew(first.refresh_token)).body;
    const third = (await renew(second.refresh_token)).body;
    await app.database.pool.query(
      `update oauth_records set consumed_at = now() - interval '61 s' where consumed_at is not null`,
    );
    expect((await renew(first.refresh_token)).body).toMatchObject({ error: 'invalid_grant' });
    expect((await renew(third.refresh_token)).body).toMatchObject({ error: 'invalid_grant' });
    expect(await statusWith(String(third.access_token))).toBe(401);
  });

  test('with more scopes, or for another resource, gives nothing, and what it had stays', async () => {
    const { refresh_token: token } = await offline();
    expect((await renew(token, { scope: 'admin' })).body).toMatchObject({ error: 'invalid_scope' });
    expect((await renew(token, { scope: 'workspace:read secret:reveal' })).body.error).toBe('invalid_scope');
    expect((await renew(token, { resource: 'https://evil.example/' })).body).toMatchObject({ error: 'invalid_target' });
    expect((await renew(token)).status).toBe(200);
  });

  test('by another client, as an access token or cut, gives nothing', async () => {
    const { refresh_token: token, access_token: access } = await offline();
    expect((await renew(token, { client_id: (await newApplication(eve)).id })).body.error).toBe('invalid_grant');
    for (const other of [String(token).slice(1), `${String(token)}x`, access, '', 'undefined'])
      expect([other === '', (await renew(other)).status]).toEqual([other === '', 400]);
  });

  test('after it was given back, disconnected or its application was deleted gives nothing', async () => {
    const given = await offline();
    await send('/oauth/token/revocation', { client_id: made.id, token: String(given.refresh_token) });
    expect((await renew(given.refresh_token)).body).toMatchObject({ error: 'invalid_grant' });
    expect(await statusWith(String(given.access_token))).toBe(401);
  });
});

describe('sessions that an attacker has chosen (session fixation)', () => {
  test('a cookie from before the sign-in is not the one after it', async () => {
    const own = newBrowserWithCookies();
    await signIn(app, own, eve);
    const before = await cookieOf(own);
    await signIn(app, own, ann);
    const after = await cookieOf(own);
    expect(after).not.toBe(before);
    const answer = await fetch(`${app.url}/account`, { headers: { cookie: `session=${before}` }, redirect: 'manual' });
    expect(answer.headers.get('location')).toContain('/account/sign-in');
  });

  test('a session of the authorization server that nobody has signed is none', async () => {
    for (const cookie of ['oauth_session=x', 'oauth_session=x; oauth_session.sig=y', 'oauth_session.legacy=x']) {
      const url = `${app.url}/oauth/auth?${new URLSearchParams(request({ prompt: 'none' })).toString()}`;
      const answer = await fetch(url, { headers: { cookie }, redirect: 'manual' });
      expect(new URL(answer.headers.get('location')!).searchParams.get('error')).toBe('login_required');
    }
  });

  test('a request that somebody else has begun is not finished in the browser of the user', async () => {
    const attackers = newBrowserWithCookies();
    const url = new URL(`${app.url}/oauth/auth`);
    url.search = new URLSearchParams(request({ prompt: 'consent' })).toString();
    const begun = (await attackers.send(url.href)).headers.get('location')!;
    expect(begun).toContain('/oauth/interaction/');
    expect((await browser.send(begun)).status).toBe(400);
    const form = new URLSearchParams({ decision: 'allow', scope: 'openid' });
    expect((await submit(app, browser, begun, form)).status).toBe(403);
  });

  /** The session of a browser, as its next request sends it. */
  async function cookieOf(of: BrowserWithCookies): Promise<string> {
    let sent = '';
    const known = globalThis.fetch;
    globalThis.fetch = async (input, init) => {
      sent = new Headers(init?.headers).get('cookie') ?? '';
      return known(input, init);
    };
    try {
      await of.send(`${app.url}/account`);
    } finally {
      globalThis.fetch = known;
    }
    return /(?:^|; )session=([^;]+)/.exec(sent)?.[1] ?? '';
  }
});

describe('forms that no page has given (CSRF)', () => {
  const origin = () => new URL(app.url).origin;

  test('a consent is given by no address, by no other kind of body and by no form of elsewhere', async () => {
    const { at } = await openConsent(app, browser, (await ask(peer, { prompt: 'consent' })).url);
    const count = async () => (await app.database.pool.query('select from oauth_grants')).rowCount;
    const before = await count();
    const query = new URLSearchParams({ decision: 'allow', scope: 'read' }).toString();
    await browser.send(`${at}?${query}`);
    for (const [body, headers] of [
      [query, { 'content-type': 'text/plain' }],
      [JSON.stringify({ decision: 'allow' }), { 'content-type': 'application/json' }],
      [query, { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' }],
      [query, { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' }],
      [query, { 'content-type': 'application/x-www-form-urlencoded', origin: origin() }],
    ] as const) {
      const { status } = await browser.send(at, { method: 'POST', body, headers });
      expect(status).toBeGreaterThanOrEqual(400);
    }
    expect(await count()).toBe(before);
  });

  test('a request by a form needs what one by a link needs: nobody is signed in by it', async () => {
    const to = new URL(String((await post(request({ prompt: 'consent' }))).headers.get('location')), app.url);
    const stranger = await openConsent(app, newBrowserWithCookies(), to);
    expect(new URL(stranger.at).pathname).toBe('/account/sign-in');
    // who is signed in is asked, as always
    expect((await openConsent(app, browser, to)).text).toContain('name="decision"');
  });

  test.each<[string, () => ReturnType<typeof post>]>([
    [
      'with its parameters in the address',
      () => post(request(), { at: `/oauth/auth?${new URLSearchParams(request())}` }),
    ],
    ['with some of them there', () => post(request(), { at: '/oauth/auth?prompt=none' })],
    ['without any', () => post([])],
    ['with a secret', () => post([...request(), ['client_secret', 'aps_secret']])],
    ['with an assertion', () => post([...request(), ['client_assertion', 'a.b.c']])],
    ['with what proves the code', () => post([...request(), ['code_verifier', verifier]])],
    [
      'as JSON',
      () => post(JSON.stringify(Object.fromEntries(request())), { headers: { 'content-type': 'application/json' } }),
    ],
    [
      'that is longer as an address',
      () =>
        post(`${new URLSearchParams(request())}&x=${'\u3042'.repeat(600)}`, {
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        }),
    ],
  ])('a request by a form %s is refused, and tells the browser no address', async (_title, send_) => {
    const answer = await send_();
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
    expect(await answer.text()).not.toContain('aps_secret');
  });

  test.each<[string, [string, string][], { at?: string; headers?: Record<string, string> }, number]>([
    ['as text', [['client_id', 'any']], { headers: { 'content-type': 'text/plain' } }, 415],
    ['that is too long', [['x', 'x'.repeat(5_000)]], {}, 413],
    ['at another spelling', [['client_id', 'any']], { at: '/oauth/%61uth' }, 404],
    ['at an address that is none', [['client_id', 'any']], { at: '/oauth/auth/' }, 404],
  ])('and so is one %s', async (_title, fields, how, status) => {
    const answer = await post(new URLSearchParams(fields).toString(), {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      ...how,
    });
    expect([answer.status, answer.headers.get('location')]).toEqual([status, null]);
  });

  test('a field that is there twice stays so, and is refused', async () => {
    const to = new URL(String((await post([...request(), ['state', 'other']])).headers.get('location')), app.url);
    expect(to.searchParams.getAll('state')).toEqual(['st-ate', 'other']);
    const { at } = await openConsent(app, browser, to);
    expect(new URL(at).searchParams.get('error')).toBe('invalid_request');
  });

  test('a form leads nowhere but to the own page, whatever it names', async () => {
    const answer = await post([...request({ redirect_uri: 'https://evil.example/' }), ['return_to', '//evil.example']]);
    const to = new URL(String(answer.headers.get('location')), app.url);
    expect([to.origin, to.pathname]).toEqual([app.url, '/oauth/auth']);
    expect((await openConsent(app, browser, to)).text).toContain('invalid_redirect_uri');
  });

  test('an application is disconnected by the page of the account alone', async () => {
    const { rows } = await app.database.pool.query<{ id: string }>(
      'select id from oauth_grants where user_id = $1 and revoked_at is null limit 1',
      [ann.userId],
    );
    const end = `application ${rows[0]!.id}`;
    const form_token = formIn(await (await browser.send(`${app.url}/account`)).text()).get('form_token')!;
    for (const [fields, headers] of [
      [{ end }, {}],
      [{ end, form_token: 'x' }, {}],
      [{ end, form_token }, { origin: 'https://evil.example' }],
    ] as const) {
      const answer = await submit(app, browser, `${app.url}/account`, new URLSearchParams(fields), headers);
      expect(answer.status).toBe(403);
    }
    const { rows: living } = await app.database.pool.query(
      'select from oauth_grants where id = $1 and revoked_at is null',
      [rows[0]!.id],
    );
    expect(living).toHaveLength(1);
  });
});

describe('devices, and who would have others confirm theirs (RFC 8628, 5.4)', () => {
  const GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
  const begin = async () =>
    (await send('/oauth/device/auth', { client_id: made.id, scope: 'workspace:read' })).body as Record<string, string>;
  const poll = (code: string, id = made.id) =>
    send('/oauth/token', { grant_type: GRANT, client_id: id, device_code: code });
  const page = `/oauth/device`;

  test('a code that nobody has confirmed gives nothing, and asking often is slowed down', async () => {
    const { device_code: code } = await begin();
    const first = await poll(code!);
    expect([first.status, first.body.error]).toEqual([400, 'authorization_pending']);
    expect((await poll(code!)).body.error).toMatch(/^(?:authorization_pending|slow_down)$/);
  });

  test('of another client, of another device or by its short code gives nothing', async () => {
    const { device_code: code, user_code: short } = await begin();
    expect((await poll(code!, (await newApplication(eve)).id)).body.error).toBe('invalid_grant');
    for (const other of [short!, `${code}x`, code!.slice(1), '']) expect((await poll(other)).status).toBe(400);
  });

  test('that has expired gives nothing', async () => {
    const { device_code: code, user_code: short } = await begin();
    await app.database.pool.query(
      `update oauth_records set expires_at = now() - interval '1 s' where kind = 'DeviceCode'`,
    );
    expect((await poll(code!)).body.error).toMatch(/^(?:expired_token|invalid_grant)$/);
    const form = formIn(await (await browser.send(`${app.url}${page}`)).text());
    form.set('user_code', short!);
    expect(await (await submit(app, browser, `${app.url}${page}`, form)).text()).toContain('has expired');
  });

  test('is confirmed by no link, no form of elsewhere and nobody who is not signed in', async () => {
    const { device_code: code, user_code: short } = await begin();
    const form = formIn(await (await browser.send(`${app.url}${page}`)).text());
    form.set('user_code', short!);
    form.set('confirm', 'yes');
    await browser.send(`${app.url}${page}?${form.toString()}`);
    const elsewhere = await submit(app, browser, `${app.url}${page}`, form, { origin: 'https://evil.example' });
    expect(elsewhere.status).toBe(403);
    const bare = new URLSearchParams({ user_code: short!, confirm: 'yes' });
    await submit(app, browser, `${app.url}${page}`, bare);
    const stranger = await fetch(`${app.url}${page}`, { method: 'POST', body: form, redirect: 'manual' });
    expect(stranger.headers.get('location')).toContain('/account/sign-in');
    expect((await poll(code!)).body.error).toMatch(/^(?:authorization_pending|slow_down)$/);
  });

  test('the form of one user is worth nothing in the browser of another', async () => {
    const { device_code: code, user_code: short } = await begin();
    const hers = await signedInBrowser(app, eve);
    const form = formIn(await (await hers.send(`${app.url}${page}`)).text());
    form.set('user_code', short!);
    form.set('confirm', 'yes');
    await submit(app, browser, `${app.url}${page}`, form);
    expect((await poll(code!)).body.error).toMatch(/^(?:authorization_pending|slow_down)$/);
  });
});
