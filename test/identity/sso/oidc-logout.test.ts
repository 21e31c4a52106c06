import { createHmac, randomBytes } from 'node:crypto';
import { decodeJwt, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, type Person, register } from '../../support/person.ts';
import { samlCompany } from './companies.ts';
import { atProvider, type EnforcingCompany, newCompany } from './enforced.ts';
import { newKey, type OpenIdServer, type ProviderKey, startOpenIdServer } from './openid-server.ts';
import { newIdpKey } from './saml-idp.ts';

/*
 * Sign-outs at OpenID providers: the service names the page of the provider, and ends the sessions that a provider says
 * are over. Whoever can forge or repeat such a message could sign anybody out.
 */

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

let app: TestApp;
let server: OpenIdServer;
let company: EnforcingCompany;
let clients = 0;
beforeAll(async () => {
  server = await startOpenIdServer();
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', TRUSTED_PROXIES: '127.0.0.1' } });
  await app.listen();
  await register(app, { name: 'operator' });
  company = await newCompany(app, server);
});
afterAll(async () => {
  await app.close();
  await server.close();
});

const signIn = (sub: string, sid?: string) => atProvider(app, server, company, { sub, ...(sid ? { sid } : {}) });
const status = async (who: Person): Promise<number> => (await who.call('GET', '/v1/auth/me')).status;
const issuer = () => new URL(server.discoveryUrl).origin;

type Claims = Record<string, unknown>;
const honest = (more: Claims = {}): Claims => {
  const now = Math.floor(Date.now() / 1_000);
  const jti = randomBytes(8).toString('hex');
  return { iss: issuer(), aud: server.clientId, iat: now, exp: now + 120, jti, events: { [EVENT]: {} }, ...more };
};
const signed = (claims: Claims, header: Claims = {}, key: ProviderKey = server.keys[0]!): Promise<string> =>
  new SignJWT(JSON.parse(JSON.stringify(claims)) as Claims)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'logout+jwt', ...header })
    .sign(key.privateKey);
const bring = async (body: string, { id = company.idpId, type = 'application/x-www-form-urlencoded' } = {}) => {
  clients += 1;
  const answer = await app.server.inject({
    method: 'POST',
    url: `/v1/auth/sso/backchannel-logout/${id}`,
    headers: { 'x-forwarded-for': `198.51.100.${clients}`, 'content-type': type },
    payload: body,
  });
  return answer;
};
const form = (token: string): string => new URLSearchParams({ logout_token: token }).toString();

describe('a sign-out here', () => {
  test('names the page at which the provider ends its own session, with the ID token', async () => {
    server.metadata = { end_session_endpoint: `${issuer()}/end?tenant=a` };
    const there = await newCompany(app, server);
    const ann = await atProvider(app, server, there, { sid: 'session-1' });
    const { status: code, body } = await ann.call<{ redirect_url: string }>('POST', '/v1/auth/sso/logout');
    expect(code).toBe(200);
    const { origin, pathname, searchParams } = new URL(body.redirect_url);
    expect(`${origin}${pathname}`).toBe(`${issuer()}/end`);
    expect([searchParams.get('tenant'), searchParams.get('client_id')]).toEqual(['a', server.clientId]);
    expect(decodeJwt(searchParams.get('id_token_hint')!)).toMatchObject({ sub: 'ann', sid: 'session-1' });
    expect(await status(ann)).toBe(401);
    const [row] = await app.database.prisma.session.findMany({ where: { userId: ann.userId } });
    expect(Buffer.from(row!.idToken!).toString('latin1')).not.toContain('eyJ');
  });

  test('ends the session although the provider has no such page, or is gone', async () => {
    server.metadata = {};
    const there = await newCompany(app, server);
    const ann = await atProvider(app, server, there);
    expect(await ann.call('POST', '/v1/auth/sso/logout')).toEqual({ status: 200, body: { redirect_url: null } });
    expect(await status(ann)).toBe(401);
    const eva = await atProvider(app, server, there, { sub: 'eva' });
    // whoever reads the database and keeps the secret of another service learns nothing, and breaks nothing
    await app.database.pool.query(`update sessions set id_token = '\\x00' where user_id = $1`, [eva.userId]);
    expect(await eva.call('POST', '/v1/auth/sso/logout')).toEqual({ status: 200, body: { redirect_url: null } });
    expect(await status(eva)).toBe(401);
  });
});

describe('a sign-out at the provider', () => {
  test('ends all sessions of a user, and nobody else', async () => {
    const [one, two, eva] = [await signIn('gone'), await signIn('gone'), await signIn('eva')];
    const answer = await bring(form(await signed(honest({ sub: 'gone' }))));
    expect([answer.statusCode, answer.body, answer.headers['cache-control']]).toEqual([200, '', 'no-store']);
    expect(await Promise.all([one, two, eva].map(status))).toEqual([401, 401, 200]);
    expect((await changesOf(app, one.userId)).at(-1)).toMatchObject({
      action: 'logout',
      orgId: company.orgId,
      metadata: { identity_provider_id: company.idpId },
    });
  });

  test.each([
    ['by its name', { sid: 'phone' }],
    ['by its name and the user', { sid: 'phone', sub: 'mary' }],
  ])('ends one session %s', async (_what, named) => {
    const [phone, desk] = [await signIn('mary', 'phone'), await signIn('mary', 'desk')];
    expect((await bring(form(await signed(honest(named))))).statusCode).toBe(200);
    expect(await Promise.all([phone, desk].map(status))).toEqual([401, 200]);
  });

  test('takes a token without a type, and without an expiry, as former drafts had it', async () => {
    const ann = await signIn('old');
    const { exp: _exp, ...claims } = honest({ sub: 'old' });
    expect((await bring(form(await signed(claims, { typ: undefined })))).statusCode).toBe(200);
    expect(await status(ann)).toBe(401);
  });

  test('counts once', async () => {
    const token = await signed(honest({ sub: 'again' }));
    await signIn('again');
    expect((await bring(form(token))).statusCode).toBe(200);
    const back = await signIn('again');
    expect((await bring(form(token))).statusCode).toBe(400);
    expect(await status(back)).toBe(200);
  });
});

describe('what is refused', () => {
  let victim: Person;
  let idToken: string;
  beforeAll(async () => {
    server.misconduct = {
      idToken: (_claims, token) => {
        idToken = token;
        return token;
      },
    };
    victim = await signIn('victim', 'session-of-victim');
    server.misconduct = {};
  });
  const named = { sub: 'victim' };
  const now = () => Math.floor(Date.now() / 1_000);
  const unsigned = (header: Claims, claims: Claims, signature = ''): string =>
    `${[header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.${signature}`;

  test.each<[string, () => Promise<string> | string]>([
    ['no token', () => ''],
    ['no JWT', () => 'made-up'],
    ['a token of another key', async () => signed(honest(named), {}, await newKey('first'))],
    ['a token of an unknown key', async () => signed(honest(named), {}, await newKey('unknown', 'ES256'))],
    ['a token without a signature', () => unsigned({ alg: 'none', typ: 'logout+jwt' }, honest(named))],
    [
      'a token that is signed with the secret of the client',
      () => {
        const [head, body] = unsigned({ alg: 'HS256', typ: 'logout+jwt' }, honest(named)).split('.');
        const signature = createHmac('sha256', server.clientSecret).update(`${head}.${body}`).digest('base64url');
        return `${head}.${body}.${signature}`;
      },
    ],
    ['the ID token of the user', () => idToken],
    ['a token of another type', () => signed(honest(named), { typ: 'at+jwt' })],
    ['another issuer', () => signed(honest({ ...named, iss: 'https://evil.example.test' }))],
    ['another audience', () => signed(honest({ ...named, aud: 'another-client' }))],
    ['no audience', () => signed(honest({ ...named, aud: undefined }))],
    ['no event', () => signed(honest({ ...named, events: undefined }))],
    ['another event', () => signed(honest({ ...named, events: { 'http://schemas.example.test/other': {} } }))],
    ['an event that is no object', () => signed(honest({ ...named, events: { [EVENT]: true } }))],
    ['a list of events', () => signed(honest({ ...named, events: [EVENT] }))],
    ['a nonce', () => signed(honest({ ...named, nonce: 'n' }))],
    ['an empty nonce', () => signed(honest({ ...named, nonce: null }))],
    ['neither a user nor a session', () => signed(honest())],
    ['an empty user', () => signed(honest({ sub: '' }))],
    ['an empty session', () => signed(honest({ sid: '' }))],
    ['no identifier', () => signed(honest({ ...named, jti: undefined }))],
    ['an identifier that is too long', () => signed(honest({ ...named, jti: 'j'.repeat(256) }))],
    ['a token that has expired', () => signed(honest({ ...named, iat: now() - 900, exp: now() - 300 }))],
    ['an old token without an expiry', () => signed(honest({ ...named, iat: now() - 3_600, exp: undefined }))],
    ['a token from the future', () => signed(honest({ ...named, iat: now() + 600, exp: now() + 700 }))],
    ['a token for ever', () => signed(honest({ ...named, exp: now() + 10 * 86_400 }))],
    ['no time', () => signed(honest({ ...named, iat: undefined }))],
    ['a user of another provider', () => signed(honest({ sub: 'nobody-here', iss: `${issuer()}/` }))],
  ])('%s', async (_what, token) => {
    const answer = await bring(form(await token()));
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      { error: 'invalid_request', error_description: 'The logout token was not accepted.' },
    ]);
    expect(await status(victim)).toBe(200);
  });

  test('a token that is brought to another provider, as JSON, or twice in a form', async () => {
    const other = await newCompany(app, server);
    await app.database.pool.query(`update identity_providers set oidc_client_id = 'its-own-client' where id = $1`, [
      other.idpId,
    ]);
    const saml = await samlCompany(app, newIdpKey());
    const token = await signed(honest(named));
    const json = JSON.stringify({ logout_token: token });
    const answers = [
      await bring(form(token), { id: other.idpId }),
      await bring(form(token), { id: saml.idpId }),
      await bring(form(token), { id: 'idp_unknown' }),
      await bring(json, { type: 'application/json' }),
      await bring(`${form(token)}&${form(token)}`),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([400, 400, 400, 400, 400]);
    expect(await status(victim)).toBe(200);
    // none of them used it up
    expect((await bring(form(token))).statusCode).toBe(200);
    expect(await status(victim)).toBe(401);
  });

  test('a provider that is switched off ends nothing more', async () => {
    const there = await newCompany(app, server);
    expect((await there.owner.call('PUT', there.url, { is_active: false })).status).toBe(200);
    expect((await bring(form(await signed(honest(named))), { id: there.idpId })).statusCode).toBe(400);
  });
});
