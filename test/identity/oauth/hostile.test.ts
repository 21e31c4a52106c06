import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Person, register } from '../../support/person.ts';
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
  submit,
  tokensOf,
} from './oauth-browser.ts';

let app: TestApp;
let ann: Person;
let eve: Person;
let browser: BrowserWithCookies;
let made: RegisteredApplication;
let native: RegisteredApplication;
let peer: client.Configuration;
let evil: client.Configuration;
let evilMade: RegisteredApplication;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  eve = await register(app, { name: 'eve' });
  browser = await signedInBrowser(app, ann);
  made = await newApplication(ann);
  native = await newApplication(ann, { redirect_uris: ['http://127.0.0.1/done', 'com.example.notes:/done'] });
  peer = await peerOf(app, made);
  evilMade = await newApplication(eve);
  evil = await peerOf(app, evilMade);
});
afterAll(() => app.close());

const statusWith = async (token: string, url = ann.home) => (await callWith(app, token, 'GET', url)).status;

/** Opens an authorization request as it stands. */
async function open(url: URL): Promise<{ status: number; to: string; text: string }> {
  const answer = await browser.send(url.href);
  return { status: answer.status, to: answer.headers.get('location') ?? '', text: await answer.text() };
}

const withParams = async (change: Record<string, string | null>, of = peer): Promise<URL> => {
  const { url } = await ask(of);
  for (const [name, value] of Object.entries(change)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return url;
};

describe('PKCE', () => {
  test.each([
    ['is missing', { code_challenge: null, code_challenge_method: null }],
    ['is plain', { code_challenge_method: 'plain' }],
    ['is plain by default', { code_challenge_method: null }],
    ['is of another method', { code_challenge_method: 'S512' }],
    ['is too short', { code_challenge: 'abc' }],
    ['has signs that no challenge has', { code_challenge: `${'a'.repeat(42)}!` }],
    ['is too long', { code_challenge: 'a'.repeat(129) }],
  ] as [string, Record<string, string | null>][])('that %s is refused at once', async (_title, change) => {
    const { to } = await open(await withParams(change));
    expect(to).toMatch(/^https:\/\/app\.example\.test\/callback\?/);
    expect(new URL(to).searchParams.get('error')).toBe('invalid_request');
    expect(new URL(to).searchParams.get('iss')).toBe(`${app.url}/oauth`);
  });

  test.each([
    ['another verifier', 'b'.repeat(43)],
    ['no verifier', ''],
    ['the challenge itself', 'challenge'],
  ])('with %s gives nothing', async (_title, verifier) => {
    const { url, state } = await ask(peer);
    const back = await allow(app, browser, url);
    const given = verifier === 'challenge' ? url.searchParams.get('code_challenge')! : verifier;
    const answer = await fetch(`${app.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: made.id,
        code: back.searchParams.get('code')!,
        redirect_uri: CALLBACK,
        ...(given && { code_verifier: given }),
      }),
    });
    expect([answer.status, state.length > 0]).toEqual([400, true]);
    expect(await answer.json()).toMatchObject({ error: expect.stringMatching(/invalid_(?:grant|request)/) as string });
  });
});

describe('where an answer goes', () => {
  test.each([
    'https://evil.example/callback',
    'https://app.example.test/callback/',
    'https://app.example.test/callback?x=1',
    'https://app.example.test/callback#x',
    'https://app.example.test/CALLBACK',
    'https://app.example.test:8443/callback',
    'http://app.example.test/callback',
    'https://app.example.test.evil.example/callback',
    'https://app.example.test@evil.example/callback',
    'https://evil.example\\@app.example.test/callback',
    'https://app.example.test/callback/../../evil',
    'https://app.example.test/%2e%2e/callback',
    '//app.example.test/callback',
    'javascript:alert(1)//app.example.test/callback',
    'data:text/html,x',
    'http://127.0.0.1:1/callback',
    '',
  ])('is no other address: %s', async (uri) => {
    const { status, to, text } = await open(await withParams({ redirect_uri: uri }));
    expect([status, to]).toEqual([400, '']);
    expect(text).toContain('Go back to the application');
    expect(text).not.toContain('evil.example"');
  });

  test.each(['http://127.0.0.1:49152/done', 'com.example.notes:/done'])(
    'may be the own machine at any port, and a scheme of its own: %s',
    async (uri) => {
      const { to } = await open(await withParams({ redirect_uri: uri }, await peerOf(app, native)));
      expect(to).toContain('/oauth/interaction/');
    },
  );

  test.each([
    'http://127.0.0.1:49152/other',
    'http://127.0.0.2:49152/done',
    'http://localhost:49152/done',
    'http://127.0.0.1.evil.example/done',
    'https://127.0.0.1:49152/done',
    'com.example.notes:/other',
    'com.example.notes://evil/done',
  ])('of a native application is nothing else: %s', async (uri) => {
    const { status } = await open(await withParams({ redirect_uri: uri }, await peerOf(app, native)));
    expect(status).toBe(400);
  });

  test('of a code is that of its request', async () => {
    const both = await newApplication(ann, { redirect_uris: [CALLBACK, 'https://app.example.test/other'] });
    const { url, verifier } = await ask(await peerOf(app, both));
    const back = await allow(app, browser, url);
    const answer = await fetch(`${app.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: both.id,
        code: back.searchParams.get('code')!,
        code_verifier: verifier,
        redirect_uri: 'https://app.example.test/other',
      }),
    });
    expect(await answer.json()).toMatchObject({ error: 'invalid_grant' });
  });

  test('names who answered, so that answers of two servers are not mixed up (RFC 9207)', async () => {
    const { url, verifier, state } = await ask(peer);
    const back = await allow(app, browser, url);
    expect(back.searchParams.get('iss')).toBe(`${app.url}/oauth`);
    back.searchParams.set('iss', 'https://other.example/oauth');
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    await expect(client.authorizationCodeGrant(peer, back, checks)).rejects.toThrow();
  });
});

describe('what is not offered', () => {
  test.each([
    ['the implicit grant', { response_type: 'token' }],
    ['an ID token in the address', { response_type: 'id_token' }],
    ['both', { response_type: 'code id_token' }],
    ['nothing at all', { response_type: 'none' }],
    ['an unknown audience', { resource: 'https://evil.example' }],
    ['an audience that is nearly ours', { resource: 'http://127.0.0.1:1' }],
    ['a request by reference of others', { request_uri: 'https://evil.example/request' }],
    ['a request object', { request: 'e30.e30.' }],
  ] as [string, Record<string, string>][])('%s', async (_title, change) => {
    const { status, to } = await open(await withParams(change));
    const answer = to ? new URL(to) : null;
    const given = new URLSearchParams(answer?.hash.slice(1) || answer?.search);
    const error = given.get('error') ?? String(status);
    expect(error).toMatch(/^(?:400|unsupported_response_type|unauthorized_client|invalid_target)$|^invalid_|^request_/);
  });

  test.each(['password', 'client_credentials', 'implicit', 'urn:ietf:params:oauth:grant-type:token-exchange', ''])(
    'the grant %j',
    async (grant) => {
      const answer = await fetch(`${app.url}/oauth/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: grant,
          client_id: made.id,
          username: ann.username,
          password: ann.password,
        }),
      });
      expect([answer.status, (await answer.json()) as object]).toEqual([
        400,
        expect.objectContaining({
          error: expect.stringMatching(/unsupported_grant_type|invalid_request|unauthorized/) as string,
        }),
      ]);
    },
  );

  test('registration by anybody', async () => {
    const answer = await fetch(`${app.url}/oauth/reg`, { method: 'POST', body: '{}' });
    expect(answer.status).toBe(404);
  });

  test('scopes that create tokens', async () => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'workspace:read api_token:create app_token:create' });
    expect(tokens.scope).toBe('workspace:read');
    const created = await callWith(app, tokens.access_token, 'POST', `/v1/orgs/${ann.orgId}/api-tokens`, { name: 'x' });
    expect(created.status).toBe(403);
  });

  test('scopes that create what sends on', async () => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'workspace:read webhook:create audit_stream:create' });
    expect(tokens.scope).toBe('workspace:read');
  });
});

describe('a code', () => {
  test('of one application is none of another', async () => {
    const { url, verifier } = await ask(peer);
    const back = await allow(app, browser, url);
    const answer = await fetch(`${app.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: evilMade.id,
        code: back.searchParams.get('code')!,
        code_verifier: verifier,
        redirect_uri: CALLBACK,
      }),
    });
    expect(await answer.json()).toMatchObject({ error: 'invalid_grant' });
  });

  test('that is exchanged by many at once gives nothing that lasts to more than one', async () => {
    const { url, verifier, state } = await ask(peer);
    const back = await allow(app, browser, url);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const all = await Promise.allSettled(
      Array.from({ length: 5 }, () => client.authorizationCodeGrant(peer, back, checks)),
    );
    const given = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(given.length).toBeLessThanOrEqual(1);
    for (const { access_token: token } of given) expect(await statusWith(token)).toBe(401);
  });

  test('that has expired gives nothing', async () => {
    const { url, verifier, state } = await ask(peer);
    const back = await allow(app, browser, url);
    await app.database.pool.query(
      `update oauth_records set expires_at = now() - interval '1 s' where kind = 'AuthorizationCode'`,
    );
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    await expect(client.authorizationCodeGrant(peer, back, checks)).rejects.toMatchObject({ error: 'invalid_grant' });
  });
});

describe('a token', () => {
  test('for one resource is none for another', async () => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'read', resource: `${app.url}/mcp` });
    expect(await statusWith(tokens.access_token)).toBe(401);
    const graphql = await callWith(app, tokens.access_token, 'POST', '/graphql', { query: '{ me { id } }' });
    expect(JSON.stringify(graphql.body)).toContain('AUTHENTICATION_FAILED');
  });

  test('that only tells who the user is opens no resource', async () => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'openid email' });
    expect(await statusWith(tokens.access_token)).toBe(401);
    const info = await client.fetchUserInfo(peer, tokens.access_token, ann.userId);
    expect(info).toMatchObject({ email: ann.email });
  });

  test.each(['id_token', 'refresh_token'] as const)('of another kind is no access token: %s', async (kind) => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'openid read' });
    expect(await statusWith(tokens[kind]!)).toBe(401);
  });

  test('that somebody changed, or signed, is none', async () => {
    const { access_token: token } = await tokensOf(app, browser, peer, { scope: 'workspace:read' });
    const [head = '', body = '', signature = ''] = token.split('.');
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
    const changed = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const none = changed({ alg: 'none', typ: 'at+jwt' });
    for (const made of [
      `${head}.${changed({ ...claims, scope: 'admin' })}.${signature}`,
      `${none}.${body}.`,
      `${none}.${body}.${signature}`,
      `${head}.${body}.${'A'.repeat(86)}`,
      `${head}.${body}`,
      `${token}.`,
      `${token}A`,
    ])
      expect(await statusWith(made)).toBe(401);
  });

  test('has no more than its user: what they lose, it loses', async () => {
    const { access_token: token } = await tokensOf(app, browser, peer, { scope: 'admin' });
    expect(await statusWith(token, `/v1/orgs/${eve.orgId}/workspaces`)).toBe(403);
    expect(await statusWith(token, '/v1/users')).not.toBe(200);
  });

  test('opens no session of a browser', async () => {
    const { access_token: token } = await tokensOf(app, browser, peer, { scope: 'admin' });
    const answer = await fetch(`${app.url}/account/session`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, origin: new URL(app.url).origin, 'x-csrf': '1' },
    });
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([403, null]);
  });

  test('does not decide where records go: that would go on when its grant has ended', async () => {
    const { access_token: token, scope } = await tokensOf(app, browser, peer, { scope: 'admin' });
    expect(scope).toBe('admin');
    const org = `/v1/orgs/${ann.orgId}`;
    const url = 'https://logs.example.test/in';
    const stream = { name: 'Stream', target_type: 'http', url, is_enabled: false };
    const hook = { name: 'Hook', url, event_types: ['webhook.*'], is_enabled: false };
    const made = await ann.call<{ audit_stream_id: string }>('POST', `${org}/audit-streams`, stream);
    const hooked = await ann.call<{ webhook: { webhook_id: string } }>('POST', `${org}/webhooks`, hook);
    const streamAt = `${org}/audit-streams/${made.body.audit_stream_id}`;
    const hookAt = `${org}/webhooks/${hooked.body.webhook.webhook_id}`;
    const refused: ['POST' | 'PATCH', string, object, string][] = [
      ['POST', `${org}/audit-streams`, stream, 'audit_stream:create'],
      ['PATCH', streamAt, { url: 'https://evil.example.test/in' }, 'audit_stream:update'],
      ['PATCH', streamAt, { credentials_ref: null }, 'audit_stream:update'],
      ['PATCH', streamAt, { actions: ['create'] }, 'audit_stream:update'],
      ['PATCH', streamAt, { is_enabled: true }, 'audit_stream:update'],
      ['POST', `${org}/webhooks`, hook, 'webhook:create'],
      ['PATCH', hookAt, { url: 'https://evil.example.test/in' }, 'webhook:update'],
      ['PATCH', hookAt, { event_types: ['secret.*'] }, 'webhook:update'],
      ['PATCH', hookAt, { headers_ref: null }, 'webhook:update'],
      ['PATCH', hookAt, { is_enabled: true }, 'webhook:update'],
      ['POST', `${hookAt}/rotate-secret`, {}, 'webhook:update'],
    ];
    for (const [method, at, body, permission] of refused) {
      const answer = await callWith(app, token, method, at, body);
      const details = { required_permission: permission, reason: 'granted_application' };
      expect([at, body, answer.status, answer.body]).toMatchObject([at, body, 403, { details }]);
    }
    for (const at of [streamAt, hookAt])
      for (const change of [{ name: 'Renamed' }, { is_enabled: false }])
        expect((await callWith(app, token, 'PATCH', at, change)).status).toBe(200);
    for (const [at, name] of [
      [streamAt, 'Renamed'],
      [hookAt, 'Renamed'],
    ] as const)
      expect((await ann.call('GET', at)).body).toMatchObject({ name, url, is_enabled: false, acts_for: ann.userId });
  });

  test('of a restricted grant reaches only its workspaces', async () => {
    const second = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
      organization_id: ann.orgId,
      name: 'Second',
    });
    const { url, verifier, state } = await ask(peer, { scope: 'read' });
    const back = await allow(app, browser, url, (form) => form.append('workspace', ann.workspaceId));
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const { access_token: token } = await client.authorizationCodeGrant(peer, back, checks);
    expect(await statusWith(token)).toBe(200);
    expect(await statusWith(token, `/v1/orgs/${ann.orgId}/workspaces/${second.body.workspace_id}`)).toBe(403);
  });
});

describe('a refresh token', () => {
  const refresh = (id: string, token: string) =>
    fetch(`${app.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', client_id: id, refresh_token: token }),
    });

  test('of one application is none of another', async () => {
    const tokens = await tokensOf(app, browser, peer);
    expect(await (await refresh(evilMade.id, tokens.refresh_token!)).json()).toMatchObject({ error: 'invalid_grant' });
  });

  test('gives no more than was granted', async () => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'workspace:read' });
    await expect(client.refreshTokenGrant(peer, tokens.refresh_token!, { scope: 'admin' })).rejects.toMatchObject({
      error: 'invalid_scope',
    });
    await expect(
      client.refreshTokenGrant(peer, tokens.refresh_token!, { resource: `${app.url}/mcp` }),
    ).rejects.toMatchObject({ error: 'invalid_target' });
  });

  test('many at once give one successor', async () => {
    const tokens = await tokensOf(app, browser, peer);
    const all = await Promise.all(
      Array.from({ length: 5 }, () => client.refreshTokenGrant(peer, tokens.refresh_token!)),
    );
    expect(new Set(all.map(({ refresh_token: next }) => next)).size).toBe(1);
  });

  test('is kept as a hash, and so is every code', async () => {
    const tokens = await tokensOf(app, browser, peer);
    const { rows } = await app.database.pool.query<{ text: string }>('select r::text as text from oauth_records r');
    const all = rows.map(({ text }) => text).join('\n');
    expect(all).not.toContain(tokens.refresh_token);
    expect(all).not.toContain(Buffer.from(tokens.refresh_token!).toString('hex'));
    expect(all).not.toContain(tokens.access_token);
  });
});

describe('the page of the consent', () => {
  const askAnew = () => ask(peer, { prompt: 'consent' });

  test.each([
    ['of another origin', { origin: 'https://evil.example' }],
    ['of no origin', { origin: 'null' }],
    ['of another port', { origin: 'http://127.0.0.1:1' }],
  ])('takes no form %s', async (_title, headers) => {
    const { at, text } = await openConsent(app, browser, (await askAnew()).url);
    const form = formIn(text);
    form.set('decision', 'allow');
    expect((await submit(app, browser, at, form, headers)).status).toBe(403);
  });

  test('takes no form without its token, and none of another request', async () => {
    const first = await openConsent(app, browser, (await askAnew()).url);
    const second = await openConsent(app, browser, (await askAnew()).url);
    for (const token of ['', 'a'.repeat(64), formIn(first.text).get('form_token')!]) {
      const form = formIn(second.text);
      form.set('form_token', token);
      form.set('decision', 'allow');
      expect((await submit(app, browser, second.at, form)).status).toBe(403);
    }
  });

  test('is of the browser that began: another one, signed in as somebody else, is told to begin again', async () => {
    const { at, text } = await openConsent(app, browser, (await askAnew()).url);
    const other = await signedInBrowser(app, eve);
    expect((await other.send(at)).status).toBe(400);
    const form = formIn(text);
    form.set('decision', 'allow');
    expect((await submit(app, other, at, form)).status).toBe(403);
  });

  test('grants nothing that was not asked for', async () => {
    const { url, verifier, state } = await ask(peer, { scope: 'workspace:read' });
    const back = await allow(app, browser, url, (form) => {
      form.append('scope', 'admin');
      form.append('scope', 'secret:reveal');
    });
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    expect((await client.authorizationCodeGrant(peer, back, checks)).scope).toBe('workspace:read');
  });

  test('grants no workspace of others', async () => {
    const { at, text } = await openConsent(app, browser, (await askAnew()).url);
    const form = formIn(text);
    form.set('decision', 'allow');
    form.append('workspace', eve.workspaceId);
    expect((await submit(app, browser, at, form)).status).toBe(403);
  });

  test('is framed by nobody, and runs no script', async () => {
    const { at } = await openConsent(app, browser, (await askAnew()).url);
    const answer = await browser.send(at);
    expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await answer.text()).not.toMatch(/<script|\bon\w+=/);
  });

  test('shows what an application calls itself as text', async () => {
    const named = await newApplication(ann, { name: '<img src=x onerror=alert(1)>"\'&' });
    const { text } = await openConsent(app, browser, (await ask(await peerOf(app, named))).url);
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;');
    expect(text).not.toContain('<img');
  });

  test('is no way out of the organization: who is no member grants nothing', async () => {
    const { url } = await ask(evil);
    const answer = await openConsent(app, browser, url);
    expect(new URL(answer.at).searchParams.get('error')).toBe('access_denied');
  });

  test.each(['http://127.0.0.1:49152/done', 'com.example.notes:/done'])(
    'is shown for a first-party program of the own machine too, which another one could pretend to be: %s',
    async (uri) => {
      const own = { is_first_party: true, redirect_uris: ['http://127.0.0.1/done', 'com.example.notes:/done'] };
      const { url } = await ask(await peerOf(app, await newApplication(ann, own)), { redirect_uri: uri });
      expect((await openConsent(app, browser, url)).text).toContain('Allow Notes?');
    },
  );

  test('is shown to nobody who is not signed in, and a request without a page is refused', async () => {
    const stranger = newBrowserWithCookies();
    const { url } = await ask(peer);
    const answer = await openConsent(app, stranger, url);
    expect(answer.at).toContain('/account/sign-in?return_to=%2Foauth%2Finteraction%2F');
    const silent = await open(await withParams({ prompt: 'none', scope: 'openid secret:reveal' }));
    expect(new URL(silent.to).searchParams.get('error')).toMatch(
      /consent_required|interaction_required|login_required/,
    );
  });
});

test('who has signed in as somebody else meanwhile grants as that one, and as nobody else', async () => {
  const shared = await signedInBrowser(app, ann);
  await tokensOf(app, shared, peer);
  const { signIn } = await import('./oauth-browser.ts');
  await signIn(app, shared, eve);
  const answer = await openConsent(app, shared, (await ask(peer)).url);
  expect(new URL(answer.at).searchParams.get('error')).toBe('access_denied');
});

test('who takes an account back ends what was granted before, as its API tokens', async () => {
  const squatted = await register(app, { name: 'squatted' });
  const hers = await signedInBrowser(app, squatted);
  const ofSquatter = await peerOf(app, await newApplication(squatted));
  const tokens = await tokensOf(app, hers, ofSquatter, { scope: 'read offline_access', prompt: 'consent' });
  expect(await statusWith(tokens.access_token, squatted.home)).toBe(200);
  await app.server.inject({ method: 'POST', url: '/v1/auth/forgot-password', payload: { email: squatted.email } });
  await app.jobsDone();
  const mail = app.mails.findLast(({ to, link }) => to === squatted.email && link?.includes('reset'));
  const token = new URL(mail!.link!).searchParams.get('token');
  const payload = { token, new_password: 'another battery staple' };
  expect((await app.server.inject({ method: 'POST', url: '/v1/auth/reset-password', payload })).statusCode).toBe(200);
  expect(await statusWith(tokens.access_token, squatted.home)).toBe(401);
  await expect(client.refreshTokenGrant(ofSquatter, tokens.refresh_token!)).rejects.toMatchObject({
    error: 'invalid_grant',
  });
});

describe('a first-party application', () => {
  const isAsked = async (of: RegisteredApplication, more: Record<string, string> = {}) => {
    const { url } = await ask(await peerOf(app, of), { scope: 'workspace:read', ...more });
    return (await openConsent(app, browser, url)).text.includes('Allow Notes?');
  };

  test('asks whoever somebody else made a member: with one link it would be them', async () => {
    const mal = await register(app, { name: 'mal' });
    const joined = { user_id: ann.userId, role: 'viewer' };
    expect((await mal.call('POST', `/v1/orgs/${mal.orgId}/members`, joined)).status).toBe(201);
    expect(await isAsked(await newApplication(mal, { is_first_party: true }))).toBe(true);
  });

  test('asks whoever was invited once, has left, and was made a member again', async () => {
    const mal = await register(app, { name: 'mallory' });
    await mal.call('POST', `/v1/orgs/${mal.orgId}/members`, { user_id: ann.userId, role: 'viewer' });
    const accepted = (when: string) =>
      app.database.pool.query(
        `insert into invitations
            (id, org_id, email, email_key, token_hash, status, expires_at, accepted_at, accepted_by)
          values ('inv_' || $1, $2, 'a@b.test', 'a@b.test', $1, 'accepted', now(), now() + $3::interval, $4)`,
        [`${mal.orgId}${when}`, mal.orgId, when, ann.userId],
      );
    const own = await newApplication(mal, { is_first_party: true });
    await accepted('-1 day');
    expect(await isAsked(own)).toBe(true);
    await accepted('0 s');
    expect(await isAsked(own)).toBe(false);
  });

  test.each([
    ['prompt=consent', { prompt: 'consent' }],
    ['what outlives the session', { scope: 'workspace:read offline_access', prompt: 'consent' }],
    ['the address', { scope: 'openid email workspace:read' }],
    ['the name', { scope: 'openid profile' }],
    ['everything', { scope: 'admin' }],
    ['the words, which reach the account', { scope: 'read' }],
    ['the account', { scope: 'workspace:read user:update' }],
    ['what is sensitive', { scope: 'secret:reveal' }],
  ] as [string, Record<string, string>][])('asks at home too for %s', async (_title, more) => {
    expect(await isAsked(await newApplication(ann, { is_first_party: true }), more)).toBe(true);
  });

  test('asks nothing at home for little, and the page says what reaches the whole account', async () => {
    expect(await isAsked(await newApplication(ann, { is_first_party: true }), { scope: 'openid workspace:read' })).toBe(
      false,
    );
    const { text } = await openConsent(
      app,
      browser,
      (await ask(peer, { scope: 'user:update', prompt: 'consent' })).url,
    );
    expect(text).toContain('(about your whole account)');
  });
});

describe('the page of a device', () => {
  const begin = async (headers: Record<string, string> = {}) => {
    const body = new URLSearchParams({ client_id: native.id, scope: 'workspace:read' });
    const answer = await fetch(`${app.url}/oauth/device/auth`, { method: 'POST', headers, body });
    return (await answer.json()) as { user_code: string };
  };
  const formOfDevice = async (of: BrowserWithCookies, code: string) => {
    const form = formIn(await (await of.send(`${app.url}/oauth/device`)).text());
    form.set('user_code', code);
    return form;
  };

  test.each([
    '/oauth/DEVICE',
    '/oauth/device/',
    '/oauth/Device/',
    '/oauth/%64evice',
    '/oauth//device',
    '/OAUTH/device',
    '/oauth/TOKEN/introspection',
    '/oauth/token/REVOCATION',
    '/oauth/token/',
    '/oauth/AUTH',
    '/oauth/session/end',
    '/oauth/session/end/confirm',
  ])('and all else is nowhere but at its own address: %s', async (at) => {
    const answers = await Promise.all([
      fetch(`${app.url}${at}`, { redirect: 'manual' }),
      fetch(`${app.url}${at}`, { method: 'POST', body: new URLSearchParams({ user_code: 'BBBB-BBBB' }) }),
      browser.send(`${app.url}${at}`),
    ]);
    // the router knows `/oauth/token/`, with the other method only
    for (const { status } of answers) expect(at === '/oauth/token/' ? [404, 405] : [404]).toContain(status);
  });

  test.each(['user_code=', 'a=1&user_code=', 'user%5Fcode=', 'a=1&%75ser_code=', 'a=b?user_code='])(
    'is filled in by no link: ?%s',
    async (query) => {
      const begun = await begin();
      expect(begun).not.toHaveProperty('verification_uri_complete');
      const text = await (await browser.send(`${app.url}/oauth/device?${query}${begun.user_code}`)).text();
      expect(text).toContain('Connect a device');
      expect(text).not.toContain(begun.user_code);
    },
  );

  test('names the address that the device really has', async () => {
    const { user_code: code } = await begin({ 'x-forwarded-for': '203.0.113.9', 'x-forwarded-host': 'evil.example' });
    const form = await formOfDevice(browser, code);
    const text = await (await submit(app, browser, `${app.url}/oauth/device`, form)).text();
    expect(text).toContain('127.0.0.1');
    expect(text).not.toContain('203.0.113.9');
  });

  test('leads to itself whoever sends a code without its form', async () => {
    const hers = await signedInBrowser(app, ann);
    const form = new URLSearchParams({ user_code: 'BBBB-BBBB' });
    for (const at of ['/oauth/device', '/oauth/device?a=1']) {
      const answer = await submit(app, hers, `${app.url}${at}`, form);
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/oauth/device']);
    }
    const stranger = await fetch(`${app.url}/oauth/device`, { method: 'POST', body: form, redirect: 'manual' });
    expect(stranger.headers.get('location')).toContain('/account/sign-in');
  });

  test('says to people in words what went wrong, and to programs in JSON', async () => {
    const bob = await register(app, { name: 'bob' });
    const other = await signedInBrowser(app, bob);
    const code = await (await other.send(`${app.url}/oauth/device`)).text();
    const form = formIn(code);
    for (let tries = 0; tries < 5; tries += 1) {
      form.set('user_code', `ZZZZ-ZZZ${tries}`);
      const next = formIn(await (await submit(app, other, `${app.url}/oauth/device`, form)).text());
      form.set('xsrf', next.get('xsrf') ?? '');
    }
    const locked = await other.send(`${app.url}/oauth/device`, { headers: { accept: 'text/html' } });
    const text = await locked.text();
    expect([locked.status, locked.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8']);
    expect(text).toMatch(/Too many tries\. Try again in \d+ minutes\./);
    expect(text).toContain('href="/account/assets/account.css"');
    const asJson = await other.send(`${app.url}/oauth/device`);
    expect(await asJson.json()).toMatchObject({ error: 'RATE_LIMIT_EXCEEDED' });
    const form2 = new URLSearchParams({ end: 'sign_out' });
    const stranger = await submit(app, other, `${app.url}/account`, form2, { accept: 'text/html' });
    expect([stranger.status, (await stranger.text()).includes('Open the page again, and send its own form.')]).toEqual([
      403,
      true,
    ]);
  });

  test('looks up five wrong codes, also of many that are sent at once, and right ones are not counted', async () => {
    const guesser = await register(app, { name: 'guesser' });
    const theirs = await signedInBrowser(app, guesser);
    for (let tries = 0; tries < 7; tries++) {
      const form = await formOfDevice(theirs, (await begin()).user_code);
      expect(await (await submit(app, theirs, `${app.url}/oauth/device`, form)).text()).toContain('It is my device');
    }
    const form = await formOfDevice(theirs, 'BBBB-CCCC');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => submit(app, theirs, `${app.url}/oauth/device`, form)),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
  });
});

describe('what strangers can have kept', () => {
  const long = 'x'.repeat(4_097);

  test('is short', async () => {
    const body = () => new URLSearchParams({ client_id: native.id, scope: 'workspace:read', nonce: long });
    for (const at of ['/oauth/device/auth', '/oauth/request', '/oauth/auth'])
      expect((await fetch(`${app.url}${at}`, { method: 'POST', body: body() })).status).toBe(413);
    const { status, text } = await open(await withParams({ nonce: long }));
    expect([status, text.includes('4096')]).toEqual([400, true]);
  });

  test('goes with what comes after it, once it has expired', async () => {
    await app.database.pool.query(
      `insert into oauth_records (kind, id_hash, payload, expires_at) values ('Interaction', 'old', '', now())`,
    );
    await open(await withParams({}));
    const { rows } = await app.database.pool.query(`select 1 from oauth_records where id_hash = 'old'`);
    expect(rows).toEqual([]);
  });

  test('is so much in a minute, for an address', async () => {
    const narrow = await startTestApp();
    try {
      await narrow.listen();
      const statuses = new Set<number>();
      for (let sent = 0; sent < 301; sent++)
        statuses.add((await narrow.server.inject({ method: 'POST', url: '/oauth/request' })).statusCode);
      expect(statuses).toContain(429);
    } finally {
      await narrow.close();
    }
  });
});

test.each(['/oauth/auth', '/oauth/auth/x', '/oauth/interaction/x'])(
  'what is wrong at %s is said by a page that has its style',
  async (path) => {
    const at = `${app.url}${path}`;
    const text = await (await fetch(at, { headers: { accept: 'text/html' } })).text();
    const [, style = ''] = /rel="stylesheet" href="([^"]+)"/.exec(text) ?? [];
    const answer = await fetch(new URL(style, at));
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8']);
  },
);

test('the way back from a consent for a device that nobody has asked for leads to the page for the code', async () => {
  const at = `${app.url}/oauth/device/x`;
  const stranger = await fetch(at, { redirect: 'manual' });
  expect([stranger.status, stranger.headers.get('location')]).toEqual([
    303,
    '/account/sign-in?return_to=%2Foauth%2Fdevice',
  ]);
  const other = await signedInBrowser(app, ann);
  const first = await other.send(at);
  expect([first.status, first.headers.get('location')]).toEqual([303, '/oauth/device']);
  await other.send(`${app.url}/oauth/device`);
  const answer = await other.send(at);
  const text = await answer.text();
  expect([answer.status, /Connect a device/.test(text), /href="\/account\/assets\/account.css"/.test(text)]).toEqual([
    400,
    true,
    true,
  ]);
});

describe('applications of an organization', () => {
  test.each([
    'http://app.example.test/callback',
    'https://app.example.test/callback#x',
    'https://user:pw@app.example.test/',
    'https://*.example.test/',
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'app:/done',
    '/callback',
    'not an address',
    '',
  ])('have no answers at %j', async (uri) => {
    const answer = await ann.call<{ detail: { loc: unknown[] }[] }>('POST', `/v1/orgs/${ann.orgId}/applications`, {
      name: 'x',
      application_type: 'public',
      redirect_uris: [CALLBACK, uri],
    });
    expect([answer.status, answer.body.detail[0]?.loc]).toEqual([422, ['body', 'redirect_uris', 1]]);
  });

  test.each(['apl_1', "apl_' or 1=1 --", 'apl_\0', '', 'x'.repeat(5_000)])(
    'are those that are known: %j',
    async (id) => {
      const { status } = await open(await withParams({ client_id: id }));
      expect(status).toBe(400);
    },
  );
});

describe('documents for programs', () => {
  const get = async (at: string) => {
    const answer = await fetch(`${app.url}${at}`);
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };

  test('of the issuer are where RFC 8414 and OpenID Connect want them', async () => {
    const all = await Promise.all(
      [
        '/.well-known/oauth-authorization-server/oauth',
        '/.well-known/openid-configuration/oauth',
        '/oauth/.well-known/openid-configuration',
        '/oauth/.well-known/oauth-authorization-server',
      ].map(get),
    );
    for (const { status, body } of all) {
      expect(status).toBe(200);
      expect(body).toEqual(all[0]!.body);
    }
    expect(all[0]!.body).toMatchObject({
      issuer: `${app.url}/oauth`,
      authorization_endpoint: `${app.url}/oauth/auth`,
      token_endpoint: `${app.url}/oauth/token`,
      code_challenge_methods_supported: ['S256'],
      response_types_supported: ['code'],
      authorization_response_iss_parameter_supported: true,
      grant_types_supported: expect.not.arrayContaining(['implicit', 'password', 'client_credentials']) as string[],
    });
    expect(all[0]!.body).not.toHaveProperty('registration_endpoint');
  });

  test('of the keys show no private part', async () => {
    const { body } = await get('/oauth/jwks');
    const keys = body.keys as Record<string, unknown>[];
    expect(new Set(keys.map(({ alg }) => alg))).toEqual(new Set(['ES256', 'EdDSA', 'RS256']));
    expect(keys.length).toBe(3);
    for (const key of keys) expect(key).not.toHaveProperty('d');
  });

  test('of the resource lead to the issuer, also from a refusal (RFC 9728)', async () => {
    const { body } = await get('/.well-known/oauth-protected-resource');
    expect(body).toMatchObject({ resource: app.url, authorization_servers: [`${app.url}/oauth`] });
    expect((await get('/.well-known/oauth-protected-resource/mcp')).body).toMatchObject({ resource: `${app.url}/mcp` });
    const refused = await app.server.inject({ url: ann.home });
    expect([refused.statusCode, refused.headers['www-authenticate']]).toEqual([
      401,
      `Bearer resource_metadata="${app.url}/.well-known/oauth-protected-resource"`,
    ]);
  });

  test.each(['/oauth', '/oauth/', '/oauth/nothing', '/oauth/interaction/x', '/oauth/auth', '/oauth/me'])(
    '%s says what is wrong, and no more',
    async (at) => {
      const answer = await fetch(`${app.url}${at}`, { redirect: 'manual' });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      expect(await answer.text()).not.toMatch(/node_modules| at \w+ \(/);
    },
  );
});
