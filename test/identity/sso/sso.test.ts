import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { samlView } from '../../../src/identity/sso/provider-views.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { keptLog } from '../../support/log-lines.ts';
import { changesOf, createUser, type Person, register } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { badOpenIdAnswers } from './bad-openid.ts';
import { badAnswers } from './bad-saml.ts';
import {
  type Company,
  newBrowser,
  openIdCompany,
  SAML_ENTITY,
  samlAnswer,
  samlCompany,
  type TestBrowser,
} from './companies.ts';
import { type OpenIdServer, startOpenIdServer } from './openid-server.ts';
import { base64, encryptXml, inflated, newIdpKey, type ResponseFacts, responseXml, signXml } from './saml-idp.ts';

const FRONT = 'https://app.example.test';
const { logger, lines } = keptLog();

let app: TestApp;
let server: OpenIdServer;
let openId: Company;
let saml: Company;
const key = newIdpKey();
beforeAll(async () => {
  server = await startOpenIdServer();
  const env = { OUTBOUND_ALLOW: '127.0.0.1', SSO_REDIRECT_URIS: `${FRONT}, https://other.test/signed-in` };
  app = await startTestApp({ env, logger });
  await app.listen();
  await register(app, { name: 'operator' });
  [openId, saml] = [await openIdCompany(app, server), await samlCompany(app, key)];
});
afterAll(async () => {
  await app.close();
  await server.close();
});
afterEach(() => {
  Object.assign(server, { misconduct: {}, metadata: {} });
  lines.length = 0;
});

const accountAt = ({ domain }: Company, name = `ann${Math.random().toString(36).slice(2)}`) => ({
  sub: `${name}-at-the-provider`,
  email: `${name}@${domain}`,
  email_verified: true,
});
const reasons = (): unknown[] =>
  lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .flatMap(({ msg, reason }) => (msg === 'a sign-in was not accepted' ? [reason] : []));
const callbackPath = (url: URL) => `${url.pathname}${url.search}`;
const post = (fields: Record<string, string>) => new URLSearchParams(fields).toString();

const NOT_ACCEPTED = {
  error: 'AUTHENTICATION_FAILED',
  message: expect.stringMatching(/^The sign-in at the identity provider was not accepted\./) as string,
  details: {},
  timestamp: expect.any(String) as string,
  status_code: 401,
};

/** A sign-in that changes nothing. @returns the id of the test, and where it goes on */
async function beginTest({ owner, idpId }: Company): Promise<[id: string, redirectUrl: string]> {
  const { data } = await owner.ask<{ testIdentityProvider: { redirectUrl: string; test: { id: string } } }>(
    'mutation ($orgId: ID!, $id: ID!) { testIdentityProvider(orgId: $orgId, id: $id) { redirectUrl test { id } } }',
    { orgId: owner.orgId, id: idpId },
  );
  return [data.testIdentityProvider.test.id, data.testIdentityProvider.redirectUrl];
}

/** What a test has shown. */
async function testOf(owner: Company['owner'], id: string, testId: string): Promise<object> {
  const { data } = await owner.ask<{ identityProviderTest: object }>(
    `query ($orgId: ID!, $id: ID!, $testId: ID!) {
      identityProviderTest(orgId: $orgId, id: $id, testId: $testId) { status failure groups outcome }
    }`,
    { orgId: owner.orgId, id, testId },
  );
  return data.identityProviderTest;
}

/** What a SAML provider would say to the request behind an address. */
async function answerTo(
  redirectUrl: string,
  of: Company,
  email: string,
): Promise<ResponseFacts & { relayState: string }> {
  const [, requestId = ''] = / ID="([^"]+)"/.exec(await inflated(redirectUrl)) ?? [];
  return {
    issuer: SAML_ENTITY,
    acsUrl: `${app.url}/v1/auth/sso/callback/saml`,
    audience: `${app.url}/v1/auth/sso/metadata/${of.idpId}`,
    requestId,
    nameId: email,
    relayState: new URL(redirectUrl).searchParams.get('RelayState') ?? '',
  };
}
const signed = (facts: ResponseFacts) => base64(signXml(responseXml(facts), 'assertion', key));

test('a certificate without its PEM frame, as metadata has it, verifies answers like one with it', async () => {
  const certificate = key.certificate.replaceAll(/-----[A-Z ]+-----|\s/g, '');
  const bare = await samlCompany(app, key, { certificate });
  const { message, relayState } = await samlAnswer(app, bare, key);
  const payload = { saml_response: message, relay_state: relayState };
  const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/callback/saml', payload });
  expect([answer.statusCode, answer.json()]).toMatchObject([200, { token_type: 'bearer' }]);
});

describe('discovery and initiation', () => {
  const discover = async (email: string) => {
    const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/discover', payload: { email } });
    return [answer.statusCode, answer.json<unknown>()];
  };

  test('tell of the domain of an address, and nothing of accounts', async () => {
    const known = [200, { sso_available: true, provider_name: 'Company', protocol: 'oidc' }];
    expect(await discover(`nobody@${openId.domain}`)).toEqual(known);
    const member = await createUser(app, openId.owner, { email: `somebody@${openId.domain}` });
    expect(await discover(member.email.toUpperCase())).toEqual(known);
    expect(await discover(openId.owner.email)).toEqual([
      200,
      { sso_available: false, provider_name: null, protocol: null },
    ]);
  });

  test('a domain without provider is 404, and so is one whose provider is switched off', async () => {
    const other = await samlCompany(app, key);
    await other.owner.call('PUT', other.url, { is_active: false });
    for (const domain of ['nowhere.test', other.domain]) {
      const payload = { email: `ann@${domain}` };
      const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/initiate', payload });
      expect([answer.statusCode, answer.json()]).toMatchObject([
        404,
        { error: 'RESOURCE_NOT_FOUND', details: { resource_type: 'identity_provider', resource_id: domain } },
      ]);
    }
  });

  test('answer the address and the protocol; a program gets no cookie, a browser one for 15 minutes', async () => {
    const payload = { email: `ann@${saml.domain}` };
    const program = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/initiate', payload });
    expect(program.json()).toEqual({
      redirect_url: expect.stringMatching(/^https:\/\/idp\.test\/sso\?/),
      protocol: 'saml',
    });
    expect(program.headers['set-cookie']).toBeUndefined();
    const browser = await newBrowser(app).send('POST', '/v1/auth/sso/initiate', payload);
    expect(browser.headers['set-cookie']).toMatch(/^sso=[\w-]{43}; Path=\/; HttpOnly; Max-Age=900$/);
  });

  test('over https the cookie is for the answer of another site, and for this host only', async () => {
    const node = await app.another({ PUBLIC_URL: 'https://service.test' });
    const answer = await newBrowser(node).send('POST', '/v1/auth/sso/initiate', { email: `ann@${saml.domain}` });
    expect(answer.headers['set-cookie']).toMatch(
      /^__Host-sso=[\w-]{43}; Path=\/; HttpOnly; Max-Age=900; Secure; SameSite=None$/,
    );
    await node.close();
  });

  test('at most 20 a minute from one address', async () => {
    const node = await app.another({ SSO_STARTS_PER_MINUTE: '20' });
    const ask = async (path: string) => {
      const payload = { email: `ann@${saml.domain}` };
      return (await node.server.inject({ method: 'POST', url: `/v1/auth/sso/${path}`, payload })).statusCode;
    };
    for (const path of ['discover', 'initiate']) {
      const statuses = await Promise.all(Array.from({ length: 22 }, () => ask(path)));
      expect(statuses.filter((status) => status === 429)).toHaveLength(2);
    }
    await node.close();
  });

  test.each([
    ['of no listed origin', 'https://evil.test/'],
    ['with the listed origin in another place', 'https://evil.test/https://app.example.test'],
    ['with a user name', 'https://app.example.test@evil.test/'],
    ['of another scheme', 'javascript:alert(1)'],
    ['with a fragment', 'https://app.example.test/#x'],
    ['of a listed origin with another port', 'https://app.example.test:8443/'],
    ['of another page than the listed one', 'https://other.test/another'],
    ['that is relative', '/account/sign-in'],
  ])('refuse a redirect_uri %s', async (_name, redirect_uri) => {
    const payload = { email: `ann@${saml.domain}`, redirect_uri };
    const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/initiate', payload });
    expect([answer.statusCode, answer.json()]).toMatchObject([422, { detail: [{ loc: ['body', 'redirect_uri'] }] }]);
  });

  test('a provider that cannot be asked is an error of the provider', async () => {
    server.metadata = { issuer: 'https://evil.test' };
    const other = await openIdCompany(app, server);
    const payload = { email: `ann@${other.domain}` };
    const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/initiate', payload });
    expect([answer.statusCode, answer.json()]).toMatchObject([
      502,
      { error: 'UPSTREAM_ERROR', details: { upstream: 'Company' } },
    ]);
    expect(reasons()).toEqual(['the configuration document of the provider names another issuer']);
  });
});

describe('OpenID Connect', () => {
  /** The way back from the provider. */
  const wayBack = async (browser: TestBrowser, company = openId, more: object = {}) =>
    server.authorize(await browser.begin(`ann@${company.domain}`, more));

  test('a sign-in makes the account and answers with a token pair; the record names the provider', async () => {
    server.account = accountAt(openId, 'first');
    const browser = newBrowser(app);
    const answer = await browser.send('GET', callbackPath(await wayBack(browser)));
    expect(answer.statusCode, answer.body).toBe(200);
    const body = answer.json<{ access_token: string; user: { user_id: string } }>();
    expect(body).toMatchObject({
      access_token: expect.any(String) as string,
      refresh_token: expect.any(String) as string,
      token_type: 'bearer',
      expires_in: 1800,
      user: { email: `first@${openId.domain}`, auth_provider: 'oidc' },
    });
    expect(Object.keys(body)).toEqual(['access_token', 'refresh_token', 'token_type', 'expires_in', 'user']);
    const headers = { authorization: `Bearer ${body.access_token}` };
    expect((await app.server.inject({ url: '/v1/auth/me', headers })).statusCode).toBe(200);
    expect((await changesOf(app, body.user.user_id)).at(-1)).toMatchObject({
      action: 'login',
      orgId: openId.owner.orgId,
      metadata: { identity_provider_id: openId.idpId, protocol: 'oidc' },
    });
  });

  test('a state has one try, in the browser that began it, on whatever node', async () => {
    server.account = accountAt(openId);
    const browser = newBrowser(app);
    const path = callbackPath(await wayBack(browser));
    const stranger = await newBrowser(app).send('GET', path);
    expect([stranger.statusCode, stranger.json()]).toEqual([401, NOT_ACCEPTED]);
    const node = await app.another({ PUBLIC_URL: app.url, OUTBOUND_ALLOW: '127.0.0.1' });
    const there = newBrowser(node);
    for (const [name, value] of browser.cookies) there.cookies.set(name, value);
    expect((await there.send('GET', path)).statusCode).toBe(200);
    for (const again of [there, browser]) expect((await again.send('GET', path)).statusCode).toBe(401);
    expect(new Set(reasons())).toEqual(
      new Set(['the state is unknown, was used, has expired or belongs to another browser']),
    );
    await node.close();
  });

  test('a state ends after ten minutes', async () => {
    const browser = newBrowser(app);
    const path = callbackPath(await wayBack(browser));
    await app.database.pool.query(`update sso_states set expires_at = now() where used_at is null`);
    expect((await browser.send('GET', path)).statusCode).toBe(401);
  });

  test('with a redirect_uri: 303 with a code, which is exchanged once, and no token in the address', async () => {
    server.account = accountAt(openId);
    const browser = newBrowser(app);
    const redirect_uri = `${FRONT}/welcome?state=mine`;
    const answer = await browser.send('GET', callbackPath(await wayBack(browser, openId, { redirect_uri })));
    expect([answer.statusCode, answer.body]).toEqual([303, '']);
    const to = new URL(answer.headers.location!);
    expect(`${to.origin}${to.pathname}`).toBe(`${FRONT}/welcome`);
    expect([...to.searchParams.keys()]).toEqual(['state', 'code']);
    const payload = { code: to.searchParams.get('code') };
    const exchange = () => app.server.inject({ method: 'POST', url: '/v1/auth/sso/exchange', payload });
    const done = await exchange();
    expect([done.statusCode, done.json<{ user: object }>().user]).toMatchObject([200, { email: server.account.email }]);
    expect((await exchange()).statusCode).toBe(401);
  });

  test('a code for the own page signs in the browser that began it, and nobody who is sent there with it', async () => {
    server.account = accountAt(openId);
    const browser = newBrowser(app);
    const redirect_uri = `${app.url}/account/sign-in`;
    const answer = await browser.send('GET', callbackPath(await wayBack(browser, openId, { redirect_uri })));
    const payload = { code: new URL(answer.headers.location!).searchParams.get('code')! };
    const url = '/v1/auth/sso/exchange';
    const lured = newBrowser(app);
    await wayBack(lured); // has a cookie of its own
    expect((await lured.send('POST', url, payload)).statusCode).toBe(401);
    expect((await app.server.inject({ method: 'POST', url, payload })).statusCode).toBe(401);
    expect((await browser.send('POST', url, payload)).statusCode).toBe(200);
  });

  test('a misbehaving provider: one answer, and the reason in the log', async () => {
    const bodies = new Set<string>();
    for (const [name, misconduct, reason] of await badOpenIdAnswers(() => server)) {
      if (misconduct.back?.state !== undefined) continue; // no sign-in has begun with it
      const browser = newBrowser(app);
      server.account = accountAt(openId);
      server.misconduct = misconduct;
      lines.length = 0;
      const answer = await browser.send('GET', callbackPath(await wayBack(browser)));
      expect([name, answer.statusCode]).toEqual([name, 401]);
      bodies.add(JSON.stringify({ ...answer.json<object>(), timestamp: '' }));
      expect([name, reasons()]).toEqual([name, [expect.stringMatching(reason)]]);
      expect(lines.join('')).not.toContain(server.clientSecret);
    }
    expect(bodies.size).toBe(1);
  });

  test('a client secret that is gone refuses the sign-in, and the log says so', async () => {
    const other = await openIdCompany(app, server);
    const browser = newBrowser(app);
    const path = callbackPath(await wayBack(browser, other));
    const secrets = await app.database.prisma.secret.findMany({ where: { orgId: other.owner.orgId } });
    await app.database.prisma.secret.update({ where: { id: secrets[0]!.id }, data: { status: 'disabled' } });
    expect((await browser.send('GET', path)).statusCode).toBe(401);
    expect(reasons()).toEqual([`The client secret of the identity provider '${other.idpId}' cannot be used.`]);
  });

  test('GraphQL gives the same', async () => {
    server.account = accountAt(openId);
    const ask = async <T>(query: string, input: object) =>
      (await app.server.inject(graphqlRequest(query, { input }))).json<{ data: T }>().data;
    const { initiateSso } = await ask<{ initiateSso: { redirectUrl: string; protocol: string } }>(
      'mutation ($input: InitiateSsoInput!) { initiateSso(input: $input) { redirectUrl protocol } }',
      { email: `ann@${openId.domain}` },
    );
    const { searchParams } = server.authorize(initiateSso.redirectUrl);
    const { finishOidcSignIn } = await ask<{ finishOidcSignIn: object }>(
      `mutation ($input: OidcCallbackInput!) {
        finishOidcSignIn(input: $input) { tokenType redirectTo user { email } }
      }`,
      { code: searchParams.get('code'), state: searchParams.get('state'), iss: searchParams.get('iss') },
    );
    expect(finishOidcSignIn).toEqual({ tokenType: 'bearer', redirectTo: null, user: { email: server.account.email } });
  });
});

describe('SAML', () => {
  const email = () => accountAt(saml).email;

  test('a sign-in with the form of a browser, and with JSON', async () => {
    const browser = newBrowser(app);
    const address = email();
    const facts = await answerTo(await browser.begin(address), saml, address);
    const form = post({ SAMLResponse: signed(facts), RelayState: facts.relayState });
    // from a page of the identity provider
    const answer = await browser.send('POST', '/v1/auth/sso/callback/saml', form, { origin: 'https://idp.test' });
    expect(answer.statusCode, answer.body).toBe(200);
    expect(answer.json()).toMatchObject({ token_type: 'bearer', user: { email: address, auth_provider: 'saml' } });
    const next = await answerTo(await browser.begin(address), saml, address);
    const json = { saml_response: signed(next), relay_state: next.relayState };
    expect((await browser.send('POST', '/v1/auth/sso/callback/saml', json)).statusCode).toBe(200);
  });

  test('an assertion is used once, whatever the state; a state once, whatever the assertion', async () => {
    const browser = newBrowser(app);
    const node = await app.another({ PUBLIC_URL: app.url });
    const address = email();
    const facts = await answerTo(await browser.begin(address), saml, address);
    const form = post({ SAMLResponse: signed({ ...facts, assertionId: '_once' }), RelayState: facts.relayState });
    expect((await browser.send('POST', '/v1/auth/sso/callback/saml', form)).statusCode).toBe(200);
    const there = newBrowser(node);
    for (const [name, value] of browser.cookies) there.cookies.set(name, value);
    expect((await there.send('POST', '/v1/auth/sso/callback/saml', form)).statusCode).toBe(401);
    const next = await answerTo(await browser.begin(address), saml, address);
    const again = post({ SAMLResponse: signed({ ...next, assertionId: '_once' }), RelayState: next.relayState });
    expect((await browser.send('POST', '/v1/auth/sso/callback/saml', again)).statusCode).toBe(401);
    expect(reasons()).toEqual(['the assertion was used before']);
    await node.close();
  });

  test.each([
    ['plain', false],
    ['encrypted', true],
  ])('an answer that nobody asked for is refused, unless the provider may send one: %s', async (_name, isHidden) => {
    const browser = newBrowser(app);
    const unasked = async (of: Company) => {
      const facts = {
        issuer: SAML_ENTITY,
        acsUrl: `${app.url}/v1/auth/sso/callback/saml`,
        audience: `${app.url}/v1/auth/sso/metadata/${of.idpId}`,
        requestId: null,
        nameId: `ann@${of.domain}`,
      };
      const xml = signXml(responseXml(facts), 'assertion', key);
      const metadata = await app.services.sso.metadata(of.idpId);
      const message = base64(isHidden ? await encryptXml(xml, key, metadata) : xml);
      return post({ SAMLResponse: message, RelayState: 'https://evil.test' });
    };
    const send = async (form: string) => (await browser.send('POST', '/v1/auth/sso/callback/saml', form)).statusCode;
    expect(await send(await unasked(saml))).toBe(401);
    const open = await samlCompany(app, key, { allow_unsolicited: true });
    const form = await unasked(open);
    const node = await app.another({ PUBLIC_URL: app.url });
    const there = await newBrowser(node).send('POST', '/v1/auth/sso/callback/saml', form);
    expect([there.statusCode, await send(form)]).toEqual([200, 401]);
    expect(reasons()).toEqual([expect.stringMatching(/^the state is unknown/), 'the assertion was used before']);
    await node.close();
    // it goes on only where the operator allows it, and the session is no part of the address
    const wanted = new URLSearchParams(await unasked(open));
    wanted.set('RelayState', `${FRONT}/in?tab=1`);
    const path = '/v1/auth/sso/callback/saml';
    const answer = await browser.send('POST', path, wanted.toString(), { accept: 'text/html' });
    expect(answer.statusCode, answer.body).toBe(303);
    const to = new URL(answer.headers.location as string);
    expect([to.origin, to.pathname, [...to.searchParams.keys()]]).toEqual([FRONT, '/in', ['tab', 'code']]);
    const code = { code: to.searchParams.get('code') };
    expect((await browser.send('POST', '/v1/auth/sso/exchange', code)).statusCode).toBe(200);
    // the own page would sign in whoever is sent there, as whoever the answer is about
    for (const own of [`${app.url}/account/sign-in`, `${app.url}/account/sign-in?return_to=%2Faccount`]) {
      const lured = new URLSearchParams(await unasked(open));
      lured.set('RelayState', own);
      const stays = await browser.send('POST', path, lured.toString(), { accept: 'text/html' });
      expect(stays.headers.location).toBeUndefined();
    }
  });

  test('while too many answers wait for their check, one is not read, and can be brought again', async () => {
    const { samlChecks, saml: service } = app.services;
    const row = await app.database.prisma.identityProvider.findUniqueOrThrow({ where: { id: saml.idpId } });
    const browser = newBrowser(app);
    const address = email();
    /** One whose check takes long, and as many as may wait behind it. */
    const fill = (facts: ResponseFacts) => {
      const groups = Array.from({ length: 1_100 }, (_, n) => `${n}`.repeat(150));
      const messages = [signed({ ...facts, attributes: { groups } }), ...Array<string>(31).fill('no base64')];
      return Promise.allSettled(messages.map((message) => service.finish(samlView(row), message, facts.requestId)));
    };
    for (let tries = 1; ; tries += 1) {
      const facts = await answerTo(await browser.begin(address), saml, address);
      const form = post({ SAMLResponse: signed(facts), RelayState: facts.relayState });
      const send = () => browser.send('POST', '/v1/auth/sso/callback/saml', form);
      const filled = fill(facts);
      const answer = await send();
      await filled;
      expect(samlChecks.pending).toBe(0);
      // the first check may have ended before this answer came
      if (answer.statusCode === 200 && tries < 10) continue;
      expect([answer.statusCode, answer.json()]).toMatchObject([
        503,
        { error: 'SERVICE_UNAVAILABLE', details: { retry_after: 1 } },
      ]);
      expect((await send()).statusCode).toBe(200);
      break;
    }
  });

  test('what cannot be stored is left out of what a provider says, and is no error', async () => {
    const browser = newBrowser(app);
    const address = email();
    const facts = await answerTo(await browser.begin(address), saml, address);
    const odd = {
      ...facts,
      nameIdFormat: 'a\0b',
      sessionIndex: '_s\0',
      attributes: { groups: ['sta\0ff', 'staff'], displayName: ['Ann\0Other'], mail: [address], 'na\0me': ['val\0ue'] },
    };
    const form = post({ SAMLResponse: signed(odd), RelayState: facts.relayState });
    const answer = await browser.send('POST', '/v1/auth/sso/callback/saml', form);
    expect([answer.statusCode, answer.json()]).toMatchObject([200, { user: { full_name: 'Ann Other' } }]);
    const { owner, idpId } = saml;
    const [test, redirectUrl] = await beginTest(saml);
    const shown = { ...odd, ...(await answerTo(redirectUrl, saml, address)) };
    const tested = post({ SAMLResponse: signed(shown), RelayState: shown.relayState });
    const ended = await browser.send('POST', '/v1/auth/sso/callback/saml', tested);
    expect([ended.statusCode, ended.headers.location]).toEqual([303, `${app.url}/account/sign-in?tested=${test}`]);
    expect(await testOf(owner, idpId, test)).toMatchObject({ status: 'succeeded', groups: ['staff'] });
  });

  test('every bad answer gets the same refusal, whose reason is only in the log', async () => {
    const bodies = new Set<string>();
    const stranger = newIdpKey();
    const metadata = await app.services.sso.metadata(saml.idpId);
    const browser = newBrowser(app);
    for (const [name, make, reason] of badAnswers) {
      if (name === 'nothing') continue; // is said to be missing
      const facts = await answerTo(await browser.begin(`ann@${saml.domain}`), saml, 'ann@example.test');
      const message = await make({ facts, key, stranger, metadata });
      lines.length = 0;
      const form = post({ SAMLResponse: message, RelayState: facts.relayState });
      const answer = await browser.send('POST', '/v1/auth/sso/callback/saml', form);
      expect([name, answer.statusCode]).toEqual([name, 401]);
      bodies.add(JSON.stringify({ ...answer.json<object>(), timestamp: '' }));
      expect([name, reasons()]).toEqual([name, [expect.stringMatching(reason)]]);
      expect(lines.join('')).not.toMatch(/ann@|mallory|PHNhbWw/);
    }
    expect(bodies.size).toBe(1);
  });

  test('a form without a response is told what is missing, one with too many fields is not read', async () => {
    for (const payload of [{}, 'RelayState=x', 'SAMLResponse=']) {
      const answer = await newBrowser(app).send('POST', '/v1/auth/sso/callback/saml', payload);
      expect([answer.statusCode, answer.json()]).toMatchObject([422, { detail: [{ loc: ['body', 'saml_response'] }] }]);
    }
    const many = await newBrowser(app).send('POST', '/v1/auth/sso/callback/saml', 'a=b&'.repeat(100_000));
    expect([many.statusCode, many.json()]).toMatchObject([400, { details: { reason: 'form_fields' } }]);
  });

  test('metadata: of active SAML providers, as XML for anybody', async () => {
    const answer = await app.server.inject({ url: `/v1/auth/sso/metadata/${saml.idpId}` });
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([
      200,
      'application/samlmetadata+xml; charset=utf-8',
    ]);
    expect(answer.body).toContain(`entityID="${app.url}/v1/auth/sso/metadata/${saml.idpId}"`);
    expect(answer.body).toContain(`Location="${app.url}/v1/auth/sso/callback/saml"`);
    expect(answer.body).not.toContain('PRIVATE');
    for (const id of [openId.idpId, 'idp_unknown'])
      expect((await app.server.inject({ url: `/v1/auth/sso/metadata/${id}` })).statusCode).toBe(404);
  });
});

describe('a browser whose sign-in is refused', () => {
  const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const page = () => `${app.url}/account/sign-in?error=access_denied`;
  const denied = (redirectUrl: string) =>
    `/v1/auth/sso/callback/oidc?error=access_denied&state=${new URL(redirectUrl).searchParams.get('state')}`;
  /** @returns status and place */
  const come = async (browser: TestBrowser, url: string, accept = HTML) => {
    const { statusCode, headers, body } = await browser.send('GET', url, undefined, { accept });
    return [statusCode, headers.location, body];
  };

  test('by the provider: goes to where it began, if that was here; and once', async () => {
    const browser = newBrowser(app);
    const begun = { redirect_uri: `${FRONT}/in?tab=1` };
    const url = denied(await browser.begin(`ann@${openId.domain}`, begun));
    expect(await come(newBrowser(app), url)).toEqual([303, page(), '']);
    expect(await come(browser, url)).toEqual([303, `${FRONT}/in?tab=1&error=access_denied`, '']);
    expect(await come(browser, url)).toEqual([303, page(), '']);
    expect(await come(browser, denied(await browser.begin(`ann@${openId.domain}`)))).toEqual([303, page(), '']);
    const unknown = 'the state is unknown, was used, has expired or belongs to another browser';
    const refused = 'the provider refused to sign the user in';
    expect(reasons()).toEqual([unknown, refused, unknown, refused]);
  });

  test('by the provider, in a test: the administrator sees it', async () => {
    const [test, url] = await beginTest(openId);
    const shown = [303, `${app.url}/account/sign-in?tested=${test}`, ''];
    expect(await come(newBrowser(app), denied(url))).toEqual(shown);
    expect(await testOf(openId.owner, openId.idpId, test)).toEqual({
      status: 'failed',
      failure: 'the provider refused to sign the user in',
      groups: [],
      outcome: null,
    });
  });

  test('a program gets the error as JSON, whatever it began with', async () => {
    const browser = newBrowser(app);
    const began = await browser.begin(`ann@${openId.domain}`, { redirect_uri: FRONT });
    const missing = await browser.send('GET', denied(began));
    expect([missing.statusCode, missing.json()]).toMatchObject([422, { detail: [{ loc: ['query', 'code'] }] }]);
    const state = new URL(began).searchParams.get('state');
    const answer = await browser.send('GET', `/v1/auth/sso/callback/oidc?code=made-up&state=${state}`);
    expect([answer.statusCode, answer.json()]).toEqual([401, NOT_ACCEPTED]);
  });

  test('by the service: the same word for every reason', async () => {
    const browser = newBrowser(app);
    server.account = { ...accountAt(openId), email: 'ann@elsewhere.test' };
    const forbidden = server.authorize(await browser.begin(`ann@${openId.domain}`));
    expect(await come(browser, callbackPath(forbidden))).toEqual([303, page(), '']);
    expect(await come(browser, '/v1/auth/sso/callback/oidc?code=a&state=b')).toEqual([303, page(), '']);
    const facts = await answerTo(await browser.begin(`a@${saml.domain}`, { redirect_uri: FRONT }), saml, 'a@b.test');
    const form = post({ SAMLResponse: base64(responseXml(facts)), RelayState: facts.relayState });
    const answer = await browser.send('POST', '/v1/auth/sso/callback/saml', form, { accept: HTML });
    expect([answer.statusCode, answer.headers.location]).toEqual([303, `${FRONT}/?error=access_denied`]);
  });
});

test('administrators alone read which sign-ins were not accepted, with reason, address and provider', async () => {
  const company = await samlCompany(app, key);
  const { owner, idpId } = company;
  const member = await createUser(app, owner, { role: 'member' });
  const stranger = newIdpKey();
  const forged = async () => {
    const { message, relayState } = await samlAnswer(app, company, stranger);
    const payload = { saml_response: message, relay_state: relayState };
    const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/sso/callback/saml', payload });
    expect([answer.statusCode, answer.json()]).toEqual([401, NOT_ACCEPTED]);
  };
  const failure = 'the signature is not from the identity provider';
  const failures = async (who: Person, place = `/v1/orgs/${owner.orgId}`) => {
    await app.services.activity.flush();
    const url = `${place}/activity?action=login&success=false`;
    const { status, body } = await who.call<{ activities: { metadata: { failure?: string } }[] }>('GET', url);
    expect(status).toBe(200);
    return body.activities.filter(({ metadata }) => metadata.failure === failure);
  };
  await forged();
  await forged();
  await forged();
  const record = (attempts: number) => ({
    user_id: null,
    resource_id: null,
    principal_type: 'anonymous',
    status_code: 401,
    error_code: 'AUTHENTICATION_FAILED',
    metadata: { identity_provider_id: idpId, reason: 'not_accepted', failure, attempts, client_address: '127.0.0.1' },
  });
  // a flood is one record a minute
  app.services.ssoRefusals.recordCounted();
  expect(await failures(owner)).toMatchObject([record(2), record(1)]);
  expect(await failures(member)).toEqual([]);
  const other = await register(app);
  expect(await failures(other, `/v1/orgs/${other.orgId}`)).toEqual([]);
  const { data } = await owner.ask<{ organizationActivity: { nodes: { metadata: object }[] } }>(
    `query ($o: ID!) { organizationActivity(orgId: $o, action: "login", success: false) { nodes { metadata } } }`,
    { o: owner.orgId },
  );
  expect(data!.organizationActivity.nodes.map(({ metadata }) => metadata)).toContainEqual(record(2).metadata);
});

test('failures are limited per address', async () => {
  const node = await app.another({ LOGIN_FAILURES_PER_MINUTE: '3' });
  const statuses: number[] = [];
  for (let tries = 0; tries < 5; tries++) {
    const answer = await node.server.inject({ url: '/v1/auth/sso/callback/oidc?code=a&state=b' });
    statuses.push(answer.statusCode);
  }
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
  await node.close();
});
