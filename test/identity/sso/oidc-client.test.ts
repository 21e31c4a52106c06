import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { OidcClient } from '../../../src/identity/sso/oidc/oidc-client.ts';
import type { OidcProvider } from '../../../src/identity/sso/oidc/oidc-provider.ts';
import { SsoRefusal } from '../../../src/identity/sso/sso-refusal.ts';
import type { VerifiedIdentity } from '../../../src/identity/sso/verified-identity.ts';
import { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { badOpenIdAnswers } from './bad-openid.ts';
import { newKey, type OpenIdServer, startOpenIdServer } from './openid-server.ts';

const REDIRECT = 'http://127.0.0.1:4000/v1/auth/sso/callback/oidc';

let server: OpenIdServer;
let other: OpenIdServer;
let outbound: Outbound;
let clock = 0;
const now = () => Date.now() + clock;
let client: OidcClient;
beforeAll(async () => {
  [server, other] = await Promise.all([startOpenIdServer(), startOpenIdServer()]);
  outbound = new Outbound({ config: loadConfig({ OUTBOUND_ALLOW: '127.0.0.1' }), logger: quietLogger });
  client = new OidcClient(outbound, now);
});
afterAll(async () => {
  await Promise.all([server.close(), other.close(), outbound.close()]);
});
afterEach(() => {
  Object.assign(server, { misconduct: {}, metadata: {} });
});

let providers = 0;
const providerAt = (at: OpenIdServer, more: Partial<OidcProvider> = {}): OidcProvider => ({
  id: `idp_${++providers}`,
  orgId: 'org_1',
  clientId: at.clientId,
  clientSecret: at.clientSecret,
  discoveryUrl: at.discoveryUrl,
  scopes: [],
  groupAttribute: 'groups',
  ...more,
});

const newRequest = () => ({
  redirectUri: REDIRECT,
  state: 'the-state',
  nonce: 'the-nonce',
  verifier: client.newVerifier(),
});

/** A whole sign-in. @param begin another provider that the browser is sent to */
async function signIn(provider: OidcProvider, { begin = server } = {}): Promise<VerifiedIdentity> {
  const request = newRequest();
  const url = await client.authorizationUrl(provider, request, null);
  const back = begin.authorize(url).searchParams;
  const callback = { code: back.get('code') ?? '', state: back.get('state') ?? '', iss: back.get('iss') };
  return client.finish(provider, request, callback);
}

const reasonOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => {
      if (!(error instanceof SsoRefusal)) throw error;
      return error.message;
    },
  );

test('asks for a code with PKCE, state and nonce, and for the address and the profile', async () => {
  const url = new URL(await client.authorizationUrl(providerAt(server), newRequest(), 'ann@example.test'));
  expect(`${url.origin}${url.pathname}`).toBe(`${server.url}/authorize`);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: 'the-client',
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid email profile',
    state: 'the-state',
    nonce: 'the-nonce',
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
    login_hint: 'ann@example.test',
  });
  const scopes = ['openid', 'groups'];
  const own = new URL(await client.authorizationUrl(providerAt(server, { scopes }), newRequest(), null));
  expect([own.searchParams.get('scope'), own.searchParams.has('login_hint')]).toEqual(['openid groups', false]);
});

test('tells who signed in: the claims of the token win over those of the user info', async () => {
  server.misconduct = {
    claims: { name: 'Ann', groups: ['a', 'b', 'a', 7] },
    userInfo: {
      body: {
        sub: server.account.sub,
        name: 'Another',
        preferred_username: 'ann',
        picture: 'https://pictures.test/ann',
        locale: 'de-AT',
        zoneinfo: 'Europe/Vienna',
      },
    },
  };
  const identity = await signIn(providerAt(server));
  expect(identity).toMatchObject({
    subject: 'ann-at-the-provider',
    email: 'ann@example.test',
    emailVerified: true,
    username: 'ann',
    fullName: 'Ann',
    avatarUrl: 'https://pictures.test/ann',
    locale: 'de-AT',
    groups: ['a', 'b'],
  });
  expect(identity.claims).toMatchObject({ zoneinfo: 'Europe/Vienna', name: 'Ann' });
});

test.each([
  ['false', { email_verified: false }, false],
  ['missing', { email_verified: undefined }, false],
  ['a number', { email_verified: 1 }, false],
  ['the text true', { email_verified: 'true' }, true],
  ['of the user info, while the token has another address', { email: 'x@y.test', email_verified: undefined }, false],
])('an address counts as verified only by the word of its source: %s', async (_name, claims, isVerified) => {
  server.misconduct = { claims };
  expect((await signIn(providerAt(server))).emailVerified).toBe(isVerified);
});

test.each(['ES256', 'PS256', 'EdDSA'])('accepts tokens that are signed with %s', async (alg) => {
  const key = await newKey(`key-${alg}`, alg);
  server.metadata = { id_token_signing_alg_values_supported: [alg] };
  const before = server.keys;
  server.keys = [key];
  server.misconduct = { claims: { at_hash: undefined } };
  expect((await signIn(providerAt(server))).subject).toBe('ann-at-the-provider');
  server.keys = before;
});

const stranger = await newKey('first');
const bad = await badOpenIdAnswers(() => server);

describe('refuses', () => {
  test.each(bad)('%s', async (_name, misconduct, reason) => {
    const provider = providerAt(server);
    server.misconduct = misconduct;
    const refused = await reasonOf(signIn(provider));
    expect(refused).not.toBe('accepted');
    expect(refused).toMatch(reason);
    // the same provider, honest again: it was the misconduct that was refused
    server.misconduct = {};
    expect((await signIn(provider)).subject).toBe('ann-at-the-provider');
  });

  test('an answer without iss, where the provider says that it sends one', async () => {
    server.metadata = { authorization_response_iss_parameter_supported: true };
    server.misconduct = { back: { iss: undefined } };
    expect(await reasonOf(signIn(providerAt(server)))).toMatch(/another issuer than the provider, or none/);
    server.misconduct = {};
    expect((await signIn(providerAt(server))).subject).toBe('ann-at-the-provider');
  });

  test('a code of another provider: its tokens are of another issuer, and its iss says so before', async () => {
    const mixed = { ...providerAt(server) };
    expect(await reasonOf(signIn(mixed, { begin: other }))).toMatch(/another issuer than the provider/);
    other.misconduct = { back: { iss: undefined } };
    expect(await reasonOf(signIn(mixed, { begin: other }))).toMatch(/does not accept the code/);
  });

  test.each([
    ['of another issuer', { issuer: 'https://evil.test' }, /names another issuer/],
    ['without endpoints', { token_endpoint: undefined }, /not valid/],
    ['with an endpoint that is no web address', { authorization_endpoint: 'javascript:alert(1)' }, /not valid/],
    [
      'with no algorithm that is accepted',
      { id_token_signing_alg_values_supported: ['HS256', 'none'] },
      /no signing algorithm/,
    ],
    ['with keys elsewhere that are none', { jwks_uri: `http://127.0.0.1:1/keys` }, null],
  ])('a configuration %s', async (_name, metadata, reason) => {
    server.metadata = metadata;
    if (reason) expect(await reasonOf(signIn(providerAt(server)))).toMatch(reason);
    else await expect(signIn(providerAt(server))).rejects.toThrow(OutboundError);
  });
});

describe('keys', () => {
  test('a rotation is noticed at once; a flood of unknown keys reads the keys once in 30 seconds', async () => {
    const provider = providerAt(server);
    await signIn(provider);
    const second = await newKey('second');
    server.keys = [second, ...server.keys];
    const before = server.keyReads;
    expect((await signIn(provider)).subject).toBe('ann-at-the-provider');
    expect(server.keyReads - before).toBe(1);
    for (const kid of ['x', 'y', 'z', 'z2', 'z3']) {
      server.misconduct = { key: { ...stranger, kid } };
      expect(await reasonOf(signIn(provider))).toMatch(/does not publish/);
    }
    server.misconduct = {};
    expect(server.keyReads - before).toBe(1);
    clock += 31_000;
    server.misconduct = { key: { ...stranger, kid: 'later' } };
    expect(await reasonOf(signIn(provider))).toMatch(/does not publish/);
    expect(server.keyReads - before).toBe(2);
    clock = 0;
  });

  test('a key that is withdrawn is not accepted ten minutes later', async () => {
    const provider = providerAt(server);
    await signIn(provider);
    const [withdrawn] = server.keys;
    const kept = server.keys;
    server.keys = [await newKey('third')];
    server.misconduct = { key: withdrawn! };
    expect(await reasonOf(signIn(provider))).toBe('accepted');
    clock += 601_000;
    server.misconduct = { key: withdrawn!, claims: { iat: Math.floor(now() / 1_000) } };
    expect(await reasonOf(signIn(provider))).toMatch(/does not publish/);
    server.keys = kept;
    clock = 0;
  });

  test('a token without key id is accepted only where there is one key', async () => {
    const [only] = server.keys;
    server.keys = [only!];
    server.misconduct = { header: { kid: undefined } };
    expect(await reasonOf(signIn(providerAt(server)))).toBe('accepted');
    server.keys = [only!, await newKey('fourth')];
    expect(await reasonOf(signIn(providerAt(server)))).toMatch(/publishes several keys/);
    server.keys = [only!];
  });

  test.each([
    ['JWT', 'accepted'],
    ['jwt', 'accepted'],
    ['at+jwt', 'the token is not an ID token'],
    ['application/logout+JWT', 'the token is not an ID token'],
  ])('a token of the type %s: %s', async (typ, reason) => {
    server.misconduct = { header: { typ } };
    expect(await reasonOf(signIn(providerAt(server)))).toBe(reason);
  });

  test('the configuration of a provider is read once for many sign-ins', async () => {
    const provider = providerAt(server);
    const reads = () => server.requests.filter(({ path }) => path.startsWith('/.well-known')).length;
    const before = reads();
    await Promise.all([1, 2, 3].map(() => client.authorizationUrl(provider, newRequest(), null)));
    await signIn(provider);
    expect(reads() - before).toBe(1);
  });
});
