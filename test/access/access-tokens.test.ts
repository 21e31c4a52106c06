import { createHmac, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  CompactEncrypt,
  exportJWK,
  FlattenedSign,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expectUnauthenticated } from '../support/error-shapes.ts';
import { type Person, register } from '../support/person.ts';
import { stopClock } from '../support/stopped-clock.ts';

let app: TestApp;
let user: Person;
let jwk: JWK;
let claims: JWTPayload;
let header: { alg: string; kid: string; typ: string };

const part = (token: string, index: number) =>
  JSON.parse(Buffer.from(token.split('.')[index]!, 'base64url').toString());
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = () => Math.floor(Date.now() / 1_000);

beforeAll(async () => {
  app = await startTestApp();
  user = await register(app);
  [{ jwk }] = JSON.parse(readFileSync(path.join(app.keysDir, 'jwt.json'), 'utf8'));
  header = part(user.accessToken, 0);
  claims = part(user.accessToken, 1);
});
afterAll(() => app.close());

/** A token with these claims, signed by the service's own key: what only a fault of the service itself could make. */
async function signed(changes: Record<string, unknown>, headerChanges: Record<string, unknown> = {}): Promise<string> {
  const payload = Object.fromEntries(
    Object.entries({ ...claims, ...changes }).filter(([, value]) => value !== undefined),
  );
  const text = `${encode({ ...header, ...headerChanges })}.${encode(payload)}`;
  const key = await crypto.subtle.importKey(
    'jwk',
    { kty: jwk.kty!, crv: jwk.crv!, x: jwk.x!, d: jwk.d! },
    { name: 'Ed25519' },
    false,
    ['sign'],
  );
  return `${text}.${Buffer.from(await crypto.subtle.sign('Ed25519', key, Buffer.from(text))).toString('base64url')}`;
}

const me = (authorization: string) => app.server.inject({ url: '/v1/auth/me', headers: { authorization } });

describe('an authorization header', () => {
  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('may write the scheme as %s', async (scheme) => {
    expect((await me(`${scheme} ${user.accessToken}`)).statusCode).toBe(200);
  });

  it('may be the bare token', async () => {
    expect((await me(user.accessToken)).statusCode).toBe(200);
  });

  it.each([
    '',
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'Bearer a b',
    'Bearer null',
    'Bearer é',
    `Token ${'x'.repeat(40)}`,
    'a.b.c',
    '..',
    'Bearer {}',
  ])('that is %j is no credential', async (value) => {
    expectUnauthenticated(await me(value));
  });

  it('with two tokens is no credential', async () => {
    expectUnauthenticated(await me(`Bearer ${user.accessToken} ${user.accessToken}`));
    expectUnauthenticated(await me(`Bearer ${user.accessToken}, Bearer ${user.accessToken}`));
  });

  it('is the only place for a token: neither query nor body nor cookie', async () => {
    expectUnauthenticated(
      await app.server.inject({
        url: `/v1/auth/me?access_token=${user.accessToken}&authorization=${user.accessToken}`,
      }),
    );
    expectUnauthenticated(
      await app.server.inject({ url: '/v1/auth/me', headers: { cookie: `access_token=${user.accessToken}` } }),
    );
  });
});

describe('a token made as the service makes them', () => {
  it('passes: the forgeries below differ from it in one thing each', async () => {
    expect((await me(await signed({}))).statusCode).toBe(200);
  });
});

describe('a forged token is refused with the one 401 body', () => {
  const unsigned = (alg: string) => `${encode({ ...header, alg })}.${encode(claims)}.`;
  const publicKey = () => createPublicKey({ key: { kty: jwk.kty!, crv: jwk.crv!, x: jwk.x! } as never, format: 'jwk' });
  const hmac = (secret: string | Buffer) => {
    const text = `${encode({ ...header, alg: 'HS256' })}.${encode(claims)}`;
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
  };
  const byStranger = async (headerChanges: (own: JWK) => Record<string, unknown>) => {
    const { privateKey, publicKey: own } = await generateKeyPair('EdDSA', { extractable: true });
    return new SignJWT(claims)
      .setProtectedHeader({ ...header, ...headerChanges(await exportJWK(own)) })
      .sign(privateKey);
  };
  const flattened = async () => {
    const jws = await new FlattenedSign(Buffer.from(JSON.stringify(claims)))
      .setProtectedHeader(header)
      .sign(await importJWK(jwk, 'EdDSA'));
    return JSON.stringify(jws);
  };

  const forgeries: [string, () => string | Promise<string>][] = [
    ['alg none', () => unsigned('none')],
    ['alg None', () => unsigned('None')],
    ['alg none with the signature of a real token', () => `${unsigned('none')}${user.accessToken.split('.')[2]}`],
    ['HS256 with the public key as PEM', () => hmac(publicKey().export({ type: 'spki', format: 'pem' }))],
    ['HS256 with the public key as DER', () => hmac(publicKey().export({ type: 'spki', format: 'der' }))],
    ['HS256 with the public key as it stands in the JWKS', () => hmac(jwk.x!)],
    ['another case of the algorithm', () => signed({}, { alg: 'eddsa' })],
    ['another algorithm', () => signed({}, { alg: 'ES256' })],
    ['no algorithm', () => signed({}, { alg: undefined })],
    ['an unknown kid', () => signed({}, { kid: 'unknown' })],
    ['a kid that is a path', () => signed({}, { kid: '../../../../dev/null' })],
    ['a kid that is SQL', () => signed({}, { kid: "' or 1=1 --" })],
    ['a kid of another type', () => signed({}, { kid: 1 })],
    ['no kid', () => signed({}, { kid: undefined })],
    ['the key of a stranger under our kid', () => byStranger(() => ({}))],
    ['an embedded jwk', () => byStranger((own) => ({ jwk: own }))],
    [
      'an embedded jwk beside our own signature',
      async () => signed({}, { jwk: { kty: 'OKP', crv: 'Ed25519', x: jwk.x } }),
    ],
    ['a jku', () => byStranger(() => ({ jku: 'http://127.0.0.1:1/jwks.json' }))],
    ['an x5u', () => byStranger(() => ({ x5u: 'http://127.0.0.1:1/cert.pem' }))],
    ['an x5c', () => byStranger(() => ({ x5c: ['MIIB'] }))],
    ['crit', () => signed({}, { crit: ['exp'] })],
    ['crit b64', () => signed({}, { crit: ['b64'], b64: true })],
    ['another typ in the header', () => signed({}, { typ: 'JWT' })],
    ['no typ in the header', () => signed({}, { typ: undefined })],
    ['another issuer', () => signed({ iss: 'somebody' })],
    ['no issuer', () => signed({ iss: undefined })],
    ['another audience', () => signed({ aud: 'somebody' })],
    ['no audience', () => signed({ aud: undefined })],
    ['another typ among the claims', () => signed({ typ: 'refresh' })],
    ['no typ among the claims', () => signed({ typ: undefined })],
    ['no sub', () => signed({ sub: undefined })],
    ['the sub of somebody else', () => signed({ sub: 'usr_00000000000000000000000000' })],
    ['no sid', () => signed({ sid: undefined })],
    ['a sid that is no session', () => signed({ sid: 'ses_00000000000000000000000000' })],
    ['a sid that is a list', () => signed({ sid: [claims.sid] })],
    ['no jti', () => signed({ jti: undefined })],
    ['no iat', () => signed({ iat: undefined })],
    ['a string as iat', () => signed({ iat: String(claims.iat) })],
    ['no exp', () => signed({ exp: undefined })],
    ['an exp that was a second ago', () => signed({ exp: now() - 1 })],
    ['an exp that is this very second', () => signed({ exp: now() })],
    ['a fraction as exp', () => signed({ exp: now() + 60.5 })],
    ['a string as exp', () => signed({ exp: String(now() + 60) })],
    ['an exp of 1e300', () => signed({ exp: 1e300 })],
    ['an exp beyond any lifetime of ours', () => signed({ exp: now() + 10 * 86_400 })],
    ['an nbf in the future', () => signed({ nbf: now() + 60 })],
    ['padding behind the signature', () => `${user.accessToken}==`],
    ['padding behind the payload', () => user.accessToken.replace(/\.([^.]*)$/, '=.$1')],
    ['bytes behind the signature', () => `${user.accessToken}AAAA`],
    ['a fourth part', () => `${user.accessToken}.AAAA`],
    ['a line break within', () => user.accessToken.replace('.', '.\n')],
    ['the plain base64 alphabet', () => user.accessToken.replaceAll('-', '+').replaceAll('_', '/').replace(/$/, '=')],
    ['a token of more than 8 KiB', () => signed({ filling: 'x'.repeat(8_192) })],
    ['a changed payload', () => user.accessToken.replace(/\.[^.]*\./, `.${encode({ ...claims, org_id: 'org_x' })}.`)],
    ['the JSON serialisation', flattened],
    [
      'an encrypted token',
      async () => {
        const { publicKey: own } = await generateKeyPair('RSA-OAEP-256');
        return new CompactEncrypt(Buffer.from(JSON.stringify(claims)))
          .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: header.kid })
          .encrypt(own);
      },
    ],
    [
      'a payload that is no JSON',
      () => `${encode(header)}.${Buffer.from('no json').toString('base64url')}.${user.accessToken.split('.')[2]}`,
    ],
    ['a header that is a list', () => `${encode([])}.${encode(claims)}.${user.accessToken.split('.')[2]}`],
    ['a header that is null', () => `${encode(null)}.${encode(claims)}.${user.accessToken.split('.')[2]}`],
  ];

  it.each(forgeries)('%s', async (_what, forge) => {
    expectUnauthenticated(await me(await forge()));
  });

  it('another spelling of the same signature', async () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = user.accessToken.at(-1)!;
    // the last character carries two bits that count and four that nobody reads
    const twin = user.accessToken.slice(0, -1) + alphabet[alphabet.indexOf(last) + 1];
    expect(Buffer.from(twin.split('.')[2]!, 'base64url')).toEqual(
      Buffer.from(user.accessToken.split('.')[2]!, 'base64url'),
    );
    expectUnauthenticated(await me(twin));
  });
});

describe('a token that expires', () => {
  it('is refused from then on, although it was verified before', async () => {
    const token = await signed({ exp: now() + 60 });
    stopClock();
    expect((await me(token)).statusCode).toBe(200);
    vi.setSystemTime(Date.now() + 60_000);
    expect((await me(token)).statusCode).toBe(401);
  });
});

describe('a token of one organization', () => {
  it('opens no other, whatever it claims', async () => {
    const other = await register(app);
    const token = await signed({ org_id: other.orgId });
    const answer = await app.server.inject({
      url: `/v1/orgs/${other.orgId}/workspaces`,
      headers: { authorization: token },
    });
    expect(answer.statusCode).toBe(403);
    expect(answer.json().details).toEqual({ required_permission: 'organization:access' });
  });
});
