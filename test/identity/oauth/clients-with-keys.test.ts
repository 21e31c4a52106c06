// Programs of others that sign with a key of their own (`private_key_jwt`), and who would be one.
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Person, register } from '../../support/person.ts';
import { answering, type DocumentHost, documentOf, startDocumentHost } from './document-host.ts';
import {
  allow,
  ask,
  CALLBACK,
  callWith,
  formIn,
  onwardIn,
  openConsent,
  signedInBrowser,
  submit,
} from './oauth-browser.ts';

interface Pair {
  privateKey: CryptoKey;
  publicKey: CryptoKey;
  jwk: JWK;
}

let host: DocumentHost;
let app: TestApp;
let ann: Person;
let browser: BrowserWithCookies;
let own: Pair;
let foreign: Pair;
beforeAll(async () => {
  host = await startDocumentHost();
  ({ app } = host);
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  browser = await signedInBrowser(app, ann);
  [own, foreign] = await Promise.all([newPair('one'), newPair('one')]);
});
afterAll(() => host.close());

async function newPair(kid: string, algorithm = 'ES256'): Promise<Pair> {
  const pair = await generateKeyPair(algorithm, { extractable: true });
  return { ...pair, jwk: { ...(await exportJWK(pair.publicKey)), kid } };
}

const SIGNING = { token_endpoint_auth_method: 'private_key_jwt' };
const signingWith = (...keys: object[]) => host.publish({ ...SIGNING, jwks: { keys } });
const issuer = () => `${app.url}/oauth`;
const seconds = () => Math.floor(Date.now() / 1_000);

/** A program whose keys are at an address of their own. */
function withKeysAt(path: string, ...keys: object[]): { clientId: string; at: string } {
  const clientId = host.serve(() => undefined);
  const at = clientId.replace('/client.json', path);
  host.change(clientId, answering(documentOf(clientId, { ...SIGNING, jwks_uri: at })));
  host.change(at, answering(JSON.stringify({ keys })));
  return { clientId, at };
}

const peerAt = (clientId: string, { privateKey, jwk }: Pair) =>
  client.discovery(
    new URL(issuer()),
    clientId,
    undefined,
    client.PrivateKeyJwt({ key: privateKey, kid: String(jwk.kid) }),
    { execute: [client.allowInsecureRequests] },
  );

/** What a token request gets. */
async function send(fields: Record<string, string>): Promise<{ status: number; error: string | undefined }> {
  const body = new URLSearchParams(fields);
  const answer = await fetch(`${app.url}/oauth/token`, { method: 'POST', body, headers: host.from() });
  return { status: answer.status, error: ((await answer.json()) as { error?: string }).error };
}

const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** An assertion as the client would make it, but for what the test changes. */
function assertionOf(
  clientId: string,
  change: Record<string, unknown> = {},
  { key = own.privateKey as CryptoKey | Uint8Array, alg = 'ES256', kid = 'one' } = {},
): Promise<string> {
  const claims = {
    iss: clientId,
    sub: clientId,
    aud: issuer(),
    jti: crypto.randomUUID(),
    exp: seconds() + 60,
    ...change,
  };
  return new SignJWT(Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined)))
    .setProtectedHeader({ alg, kid })
    .sign(key);
}

/** Whether an assertion is that of the client: its refresh token is none, but it is asked for that. */
const tryWith = (assertion: string, more: Record<string, string> = {}) =>
  send({
    grant_type: 'refresh_token',
    refresh_token: 'none',
    client_assertion_type: ASSERTION,
    client_assertion: assertion,
    ...more,
  });
const isItself = { status: 400, error: 'invalid_grant' };
const isNobody = { status: 401, error: 'invalid_client' };
/** No document describes it. */
const isUnknown = { status: 400, error: 'invalid_client' };

describe('a program with a key', () => {
  test.each(['in its document', 'at an address of its host'])('%s proves at each step who it is', async (where) => {
    const clientId = where === 'in its document' ? signingWith(own.jwk) : withKeysAt('/keys', own.jwk).clientId;
    const peer = await peerAt(clientId, own);
    const { url, verifier, state } = await ask(peer, { scope: 'workspace:read' });
    const back = await allow(app, browser, url);
    const code = String(back.searchParams.get('code'));
    const bare = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK };
    // without the key, the code is worth nothing, and stays
    expect(await send({ ...bare, client_id: clientId })).toEqual(isNobody);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const tokens = await client.authorizationCodeGrant(peer, back, checks);
    expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
    const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token! };
    expect(await send({ ...refresh, client_id: clientId })).toEqual(isNobody);
    const refreshed = await client.refreshTokenGrant(peer, tokens.refresh_token!);
    await client.tokenRevocation(peer, refreshed.refresh_token!);
    expect((await callWith(app, refreshed.access_token, 'GET', ann.home)).status).toBe(401);
  });

  test('is let in by a code of a device, which only the program itself can ask for', async () => {
    const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
    const fields = { client_name: 'Television', redirect_uris: undefined, grant_types: [DEVICE] };
    const clientId = host.publish({ ...SIGNING, jwks: { keys: [own.jwk] }, ...fields });
    const peer = await peerAt(clientId, own);
    const bare = await fetch(`${app.url}/oauth/device/auth`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: clientId, scope: 'workspace:read' }),
    });
    expect([bare.status, await bare.json()]).toMatchObject([401, { error: 'invalid_client' }]);
    const begun = await client.initiateDeviceAuthorization(peer, { scope: 'workspace:read' });
    const page = `${app.url}/oauth/device`;
    const code = formIn(await (await browser.send(page)).text());
    code.set('user_code', begun.user_code);
    const asked = await (await submit(app, browser, page, code)).text();
    expect(asked).toContain(`A program of <strong>${new URL(clientId).host}</strong>, which does not belong`);
    expect(asked).toContain('<strong>Television</strong> asks from');
    const confirm = formIn(asked);
    confirm.set('confirm', 'yes');
    const confirmed = await submit(app, browser, page, confirm);
    const consent = await openConsent(app, browser, new URL(confirmed.headers.get('location')!, app.url));
    expect(consent.text).toContain(`<h1>Allow ${new URL(clientId).host}?</h1>`);
    const form = formIn(consent.text);
    form.set('decision', 'allow');
    const done = await (await submit(app, browser, consent.at, form)).text();
    expect(await (await browser.send(onwardIn(done))).text()).toContain('The device is connected');
    const tokens = await client.genericGrantRequest(peer, DEVICE, { device_code: begun.device_code });
    expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
    // it has no page that a browser could go back to
    const url = new URL(`${app.url}/oauth/auth`);
    url.search = new URLSearchParams({ client_id: clientId, response_type: 'code', redirect_uri: CALLBACK }).toString();
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(400);
  });

  test('may change it: the former one is none from when the keys are read again', async () => {
    const { clientId, at } = withKeysAt('/keys', own.jwk);
    const next = await newPair('two');
    expect(await tryWith(await assertionOf(clientId))).toEqual(isItself);
    host.change(at, answering(JSON.stringify({ keys: [next.jwk] })));
    await app.database.pool.query(`delete from oauth_records where kind = 'ClientDocument'`);
    const other = await app.another({ ...host.env, PUBLIC_URL: app.url });
    await other.listen();
    const atOther = async (assertion: string) => {
      const form = { grant_type: 'refresh_token', refresh_token: 'x', client_assertion_type: ASSERTION };
      const body = new URLSearchParams({ ...form, client_assertion: assertion });
      return (await fetch(`${other.url}/oauth/token`, { method: 'POST', body })).status;
    };
    expect(await atOther(await assertionOf(clientId))).toBe(401);
    expect(await atOther(await assertionOf(clientId, {}, { key: next.privateKey, kid: 'two' }))).toBe(400);
  });

  test('is told how in the metadata', async () => {
    const metadata = (await (await fetch(`${app.url}/.well-known/oauth-authorization-server/oauth`)).json()) as object;
    expect(metadata).toMatchObject({
      token_endpoint_auth_methods_supported: expect.arrayContaining(['none', 'private_key_jwt']),
      token_endpoint_auth_signing_alg_values_supported: expect.arrayContaining(['ES256', 'RS256', 'EdDSA']),
    });
    expect(JSON.stringify(metadata)).not.toContain('HS256');
  });
});

describe('an assertion', () => {
  let clientId: string;
  let neighbour: string;
  beforeAll(() => {
    clientId = signingWith(own.jwk);
    neighbour = signingWith(foreign.jwk);
  });

  test('of the program itself is one', async () => {
    expect(await tryWith(await assertionOf(clientId))).toEqual(isItself);
  });

  test.each<[string, () => Promise<string>]>([
    ['signed by somebody else', () => assertionOf(clientId, {}, { key: foreign.privateKey })],
    [
      'with the key as a secret',
      () => assertionOf(clientId, {}, { key: Buffer.from(JSON.stringify(own.jwk)), alg: 'HS256' }),
    ],
    ['of another program', () => assertionOf(neighbour)],
    ['about another program', () => assertionOf(clientId, { sub: neighbour })],
    ['from another program', () => assertionOf(clientId, { iss: neighbour })],
    ['for the token endpoint', () => assertionOf(clientId, { aud: `${issuer()}/token` })],
    ['for another server', () => assertionOf(clientId, { aud: 'https://other.example' })],
    ['for two servers', () => assertionOf(clientId, { aud: [issuer(), 'https://other.example'] })],
    ['for this server in a list', () => assertionOf(clientId, { aud: [issuer()] })],
    ['for nobody', () => assertionOf(clientId, { aud: undefined })],
    ['that has expired', () => assertionOf(clientId, { exp: seconds() - 60 })],
    ['that lasts for a year', () => assertionOf(clientId, { exp: seconds() + 31_536_000 })],
    ['that never ends', () => assertionOf(clientId, { exp: undefined })],
    ['that is not valid yet', () => assertionOf(clientId, { nbf: seconds() + 300 })],
    ['without an identifier', () => assertionOf(clientId, { jti: undefined })],
  ])('%s is none', async (_title, make) => {
    expect(await tryWith(await make())).toEqual(isNobody);
  });

  test('that is not signed is none', async () => {
    const [, payload] = (await assertionOf(clientId)).split('.');
    const header = Buffer.from('{"alg":"none"}').toString('base64url');
    expect(await tryWith(`${header}.${payload}.`)).toEqual(isNobody);
  });

  test('that was changed is none', async () => {
    const [header, , signature] = (await assertionOf(clientId)).split('.');
    const [, payload] = (await assertionOf(clientId)).split('.');
    expect(await tryWith(`${header}.${payload}.${signature}`)).toEqual(isNobody);
  });

  test('beside the name of another program is refused', async () => {
    expect(await tryWith(await assertionOf(clientId), { client_id: neighbour })).toMatchObject({ status: 400 });
  });

  test('of another type is refused', async () => {
    const saml = 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer';
    const answer = await tryWith(await assertionOf(clientId), { client_assertion_type: saml });
    expect(answer).toEqual({ status: 400, error: 'invalid_request' });
  });

  test('works once, also of many that are sent at once', async () => {
    const assertion = await assertionOf(clientId);
    const answers = await Promise.all(Array.from({ length: 6 }, () => tryWith(assertion)));
    expect(answers.filter(({ error }) => error === 'invalid_grant')).toHaveLength(1);
    expect(answers.filter(({ error }) => error === 'invalid_client')).toHaveLength(5);
    expect(await tryWith(assertion)).toEqual(isNobody);
  });

  test('of a program without a key is none', async () => {
    const bare = host.publish({ jwks: { keys: [own.jwk] } });
    expect(await tryWith(await assertionOf(bare))).toEqual(isNobody);
  });

  test('is in no algorithm but the one that the document names', async () => {
    const rsa = await newPair('one', 'RS256');
    const strict = host.publish({ ...SIGNING, token_endpoint_auth_signing_alg: 'PS256', jwks: { keys: [rsa.jwk] } });
    expect(await tryWith(await assertionOf(strict, {}, { key: rsa.privateKey, alg: 'RS256' }))).toEqual(isNobody);
    const { privateKey } = await generateKeyPair('PS256', { extractable: true });
    expect(await tryWith(await assertionOf(strict, {}, { key: privateKey, alg: 'PS256' }))).toEqual(isNobody);
  });
});

describe('a document whose keys are none', () => {
  const weak = { kty: 'RSA', e: 'AQAB', n: Buffer.alloc(128, 0xab).toString('base64url') };
  const huge = { kty: 'RSA', e: 'AQAB', n: Buffer.alloc(1_024, 0xab).toString('base64url') };
  const slow = {
    kty: 'RSA',
    e: Buffer.alloc(256, 0xab).toString('base64url'),
    n: Buffer.alloc(256, 0xab).toString('base64url'),
  };
  test.each<[string, () => Record<string, unknown>]>([
    ['neither here nor there', () => ({})],
    ['here and there', () => ({ jwks: { keys: [own.jwk] }, jwks_uri: 'https://client.example/keys' })],
    ['an empty set', () => ({ jwks: { keys: [] } })],
    ['no set', () => ({ jwks: [own.jwk] })],
    ['null', () => ({ jwks: null })],
    ['texts', () => ({ jwks: { keys: ['key'] } })],
    ['a secret', () => ({ jwks: { keys: [own.jwk, { kty: 'oct', k: 'c2VjcmV0' }] } })],
    ['with its private part', () => ({ jwks: { keys: [{ ...own.jwk, d: own.jwk.x }] } })],
    ['for encryption', () => ({ jwks: { keys: [{ ...own.jwk, use: 'enc' }] } })],
    ['for an algorithm that is not offered', () => ({ jwks: { keys: [{ ...own.jwk, alg: 'ES512' }] } })],
    ['no point of the curve', () => ({ jwks: { keys: [{ ...own.jwk, y: own.jwk.x }] } })],
    ['of a kind that nobody knows', () => ({ jwks: { keys: [{ kty: 'constructor', x: 'x' }] } })],
    ['weak', () => ({ jwks: { keys: [weak] } })],
    ['huge', () => ({ jwks: { keys: [huge] } })],
    ['slow', () => ({ jwks: { keys: [slow] } })],
    ['many', () => ({ jwks: { keys: Array.from({ length: 11 }, () => own.jwk) } })],
    [
      'for another algorithm of secrets',
      () => ({ jwks: { keys: [own.jwk] }, token_endpoint_auth_signing_alg: 'HS256' }),
    ],
    ['at the address of another host', () => ({ jwks_uri: `https://h0.good.test:${host.target.port}/keys` })],
    ['inside', () => ({ jwks_uri: 'https://169.254.169.254/latest' })],
    ['at http', () => ({ jwks_uri: 'http://client.example/keys' })],
    ['at no address', () => ({ jwks_uri: 1 })],
  ])('%s: it describes no client, and nobody else is called', async (_title, change) => {
    const clientId = host.publish({ ...SIGNING, ...change() });
    const before = host.target.requests.length;
    const assertion = await assertionOf(clientId);
    expect(await tryWith(assertion)).toEqual(isUnknown);
    expect([host.asked(clientId), host.target.requests.length - before]).toEqual([1, 1]);
  });

  test.each<[string, (at: string) => void]>([
    ['not there', (at) => host.change(at, answering('{}', {}, 404))],
    ['elsewhere', (at) => host.change(at, (response) => response.writeHead(302, { location: `${at}2` }).end())],
    ['a page', (at) => host.change(at, (response) => response.setHeader('content-type', 'text/html').end('<p>'))],
    ['endless', (at) => host.change(at, answering(JSON.stringify({ keys: [], padding: 'x'.repeat(40_000) })))],
    ['broken', (at) => host.change(at, answering('{"keys":'))],
    ['null', (at) => host.change(at, answering('null'))],
  ])('at an address that is %s: neither', async (_title, spoil) => {
    const { clientId, at } = withKeysAt('/keys', own.jwk);
    spoil(at);
    expect(await tryWith(await assertionOf(clientId))).toEqual(isUnknown);
    expect([host.asked(clientId), host.asked(at)]).toEqual([1, 1]);
    // and neither is asked again at once
    expect(await tryWith(await assertionOf(clientId))).toEqual(isUnknown);
    expect([host.asked(clientId), host.asked(at)]).toEqual([1, 1]);
  });
});
