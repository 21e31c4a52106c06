import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Person, register } from '../../support/person.ts';
import { newApplication, peerOf, signedInBrowser, tokensOf } from './oauth-browser.ts';

let app: TestApp;
let ann: Person;
let browser: BrowserWithCookies;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  browser = await signedInBrowser(app, ann);
});
afterAll(() => app.close());

const json = async <T>(path: string): Promise<T> => (await (await fetch(`${app.url}${path}`)).json()) as T;

describe('ID tokens', () => {
  test.each(['ES256', 'RS256'] as const)('in %s, as the application wants them', async (algorithm) => {
    const made = await newApplication(ann, { id_token_signed_response_alg: algorithm });
    const peer = await client.discovery(
      new URL(`${app.url}/oauth`),
      made.id,
      { id_token_signed_response_alg: algorithm },
      client.None(),
      { execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks] },
    );
    const nonce = client.randomNonce();
    const tokens = await tokensOf(
      app,
      browser,
      peer,
      { scope: 'openid workspace:read', nonce },
      { expectedNonce: nonce },
    );
    expect(tokens.claims()).toMatchObject({ iss: `${app.url}/oauth`, aud: made.id, sub: ann.userId, nonce });
    const keys = createLocalJWKSet(await json<JSONWebKeySet>('/oauth/jwks'));
    const { protectedHeader } = await jwtVerify(tokens.id_token!, keys, { audience: made.id });
    expect(protectedHeader.alg).toBe(algorithm);
    // access tokens are for this service alone, which signs with Ed25519 whatever the application wants
    expect(decodeProtectedHeader(tokens.access_token).alg).toBe('EdDSA');
    const refreshed = await client.refreshTokenGrant(peer, tokens.refresh_token!);
    expect(decodeProtectedHeader(refreshed.id_token!).alg).toBe(algorithm);
  });

  test('are ES256 unless an administrator says otherwise, at once', async () => {
    const made = await newApplication(ann);
    const url = `/v1/orgs/${ann.orgId}/applications/${made.id}`;
    const algorithm = async () =>
      decodeProtectedHeader((await tokensOf(app, browser, await peerOf(app, made), { scope: 'openid' })).id_token ?? '')
        .alg;
    expect(await algorithm()).toBe('ES256');
    const { body } = await ann.call('PATCH', url, { id_token_signed_response_alg: 'RS256' });
    expect(body).toMatchObject({ id_token_signed_response_alg: 'RS256' });
    expect(await algorithm()).toBe('RS256');
    for (const wrong of ['none', 'HS256', 'EdDSA', 'rs256', null]) {
      const refused = await ann.call('PATCH', url, { id_token_signed_response_alg: wrong });
      expect([wrong, refused.status]).toEqual([wrong, 422]);
    }
  });

  test('verify with keys that are told, none of which has a private part', async () => {
    const { keys } = await json<{ keys: Record<string, unknown>[] }>('/oauth/jwks');
    expect(new Set(keys.map(({ kty, alg, use }) => [kty, alg, use].join(' ')))).toEqual(
      new Set(['EC ES256 sig', 'OKP EdDSA sig', 'RSA RS256 sig']),
    );
    for (const part of ['d', 'p', 'q', 'dp', 'dq', 'qi']) for (const key of keys) expect(key).not.toHaveProperty(part);
    for (const name of ['openid-configuration', 'oauth-authorization-server'])
      expect(await json(`/.well-known/${name}/oauth`)).toMatchObject({
        id_token_signing_alg_values_supported: expect.arrayContaining(['ES256', 'RS256']) as string[],
      });
  });
});
