import { createHmac, createPublicKey } from 'node:crypto';
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

const part = (token: string, index: number) =>
  JSON.parse(Buffer.from(token.split('.')[index]!, 'base64url').toString());
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = () => Math.floor(Date.now() / 1_000);

/** An access token of the service, and others made with its own key: what only a fault of the service could make. */
export class RealToken {
  readonly token: string;
  readonly jwk: JWK;
  readonly header: { alg: string; kid: string; typ: string };
  readonly claims: JWTPayload;

  /** @param jwk the private key that signed it */
  constructor(token: string, jwk: JWK) {
    this.token = token;
    this.jwk = jwk;
    this.header = part(token, 0);
    this.claims = part(token, 1);
  }

  /** A token that differs from it in these claims, signed by the same key. `undefined` removes one. */
  async signed(changes: Record<string, unknown>, headerChanges: Record<string, unknown> = {}): Promise<string> {
    const text = `${encode({ ...this.header, ...headerChanges })}.${encode({ ...this.claims, ...changes })}`;
    const { kty, crv, x, d } = this.jwk as Required<JWK>;
    const key = await crypto.subtle.importKey('jwk', { kty, crv, x, d }, { name: 'Ed25519' }, false, ['sign']);
    return `${text}.${Buffer.from(await crypto.subtle.sign('Ed25519', key, Buffer.from(text))).toString('base64url')}`;
  }

  /** The same token with another spelling of the same signature. */
  get twin(): string {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    // the last character carries two bits that count and four that nobody reads
    return this.token.slice(0, -1) + alphabet[alphabet.indexOf(this.token.at(-1)!) + 1];
  }
}

const unsigned = ({ header, claims }: RealToken, alg: string) => `${encode({ ...header, alg })}.${encode(claims)}.`;

const publicKeyOf = ({ jwk }: RealToken) =>
  createPublicKey({ key: { kty: jwk.kty!, crv: jwk.crv!, x: jwk.x! } as never, format: 'jwk' });

function hmac({ header, claims }: RealToken, secret: string | Buffer): string {
  const text = `${encode({ ...header, alg: 'HS256' })}.${encode(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

async function byStranger({ header, claims }: RealToken, headerChanges: (own: JWK) => Record<string, unknown>) {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true });
  return new SignJWT(claims)
    .setProtectedHeader({ ...header, ...headerChanges(await exportJWK(publicKey)) })
    .sign(privateKey);
}

async function flattened({ header, claims, jwk }: RealToken) {
  const jws = await new FlattenedSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader(header)
    .sign(await importJWK(jwk, 'EdDSA'));
  return JSON.stringify(jws);
}

/** Tokens that the service must not take, each made of one that it takes. */
export const forgeries: [string, (real: RealToken) => string | Promise<string>][] = [
  ['alg none', (real) => unsigned(real, 'none')],
  ['alg None', (real) => unsigned(real, 'None')],
  ['alg none with the signature of a real token', (real) => `${unsigned(real, 'none')}${real.token.split('.')[2]}`],
  ['HS256 with the public key as PEM', (real) => hmac(real, publicKeyOf(real).export({ type: 'spki', format: 'pem' }))],
  ['HS256 with the public key as DER', (real) => hmac(real, publicKeyOf(real).export({ type: 'spki', format: 'der' }))],
  ['HS256 with the public key as it stands in the JWKS', (real) => hmac(real, real.jwk.x!)],
  ['another case of the algorithm', (real) => real.signed({}, { alg: 'eddsa' })],
  ['another algorithm', (real) => real.signed({}, { alg: 'ES256' })],
  ['no algorithm', (real) => real.signed({}, { alg: undefined })],
  ['an unknown kid', (real) => real.signed({}, { kid: 'unknown' })],
  ['a kid that is a path', (real) => real.signed({}, { kid: '../../../../dev/null' })],
  ['a kid that is SQL', (real) => real.signed({}, { kid: "' or 1=1 --" })],
  ['a kid of another type', (real) => real.signed({}, { kid: 1 })],
  ['no kid', (real) => real.signed({}, { kid: undefined })],
  ['the key of a stranger under our kid', (real) => byStranger(real, () => ({}))],
  ['an embedded jwk', (real) => byStranger(real, (own) => ({ jwk: own }))],
  [
    'an embedded jwk beside our own signature',
    async (real) => real.signed({}, { jwk: { kty: 'OKP', crv: 'Ed25519', x: real.jwk.x } }),
  ],
  ['a jku', (real) => byStranger(real, () => ({ jku: 'http://127.0.0.1:1/jwks.json' }))],
  ['an x5u', (real) => byStranger(real, () => ({ x5u: 'http://127.0.0.1:1/cert.pem' }))],
  ['an x5c', (real) => byStranger(real, () => ({ x5c: ['MIIB'] }))],
  ['crit', (real) => real.signed({}, { crit: ['exp'] })],
  ['crit b64', (real) => real.signed({}, { crit: ['b64'], b64: true })],
  ['another typ in the header', (real) => real.signed({}, { typ: 'JWT' })],
  ['no typ in the header', (real) => real.signed({}, { typ: undefined })],
  ['another issuer', (real) => real.signed({ iss: 'somebody' })],
  ['no issuer', (real) => real.signed({ iss: undefined })],
  ['another audience', (real) => real.signed({ aud: 'somebody' })],
  ['no audience', (real) => real.signed({ aud: undefined })],
  ['another typ among the claims', (real) => real.signed({ typ: 'refresh' })],
  ['no typ among the claims', (real) => real.signed({ typ: undefined })],
  ['no sub', (real) => real.signed({ sub: undefined })],
  ['no sid', (real) => real.signed({ sid: undefined })],
  ['a sid that is a list', (real) => real.signed({ sid: [real.claims.sid] })],
  ['no jti', (real) => real.signed({ jti: undefined })],
  ['no iat', (real) => real.signed({ iat: undefined })],
  ['a string as iat', (real) => real.signed({ iat: String(real.claims.iat) })],
  ['no exp', (real) => real.signed({ exp: undefined })],
  ['an exp that was a second ago', (real) => real.signed({ exp: now() - 1 })],
  ['an exp that is this very second', (real) => real.signed({ exp: now() })],
  ['a fraction as exp', (real) => real.signed({ exp: now() + 60.5 })],
  ['a string as exp', (real) => real.signed({ exp: String(now() + 60) })],
  ['an exp of 1e300', (real) => real.signed({ exp: 1e300 })],
  ['an exp beyond any lifetime of ours', (real) => real.signed({ exp: now() + 10 * 86_400 })],
  ['an nbf in the future', (real) => real.signed({ nbf: now() + 60 })],
  ['padding behind the signature', (real) => `${real.token}==`],
  ['padding behind the payload', (real) => real.token.replace(/\.([^.]*)$/, '=.$1')],
  ['bytes behind the signature', (real) => `${real.token}AAAA`],
  ['a fourth part', (real) => `${real.token}.AAAA`],
  ['a line break within', (real) => real.token.replace('.', '.\n')],
  ['the plain base64 alphabet', (real) => real.token.replaceAll('-', '+').replaceAll('_', '/').replace(/$/, '=')],
  ['a token of more than 8 KiB', (real) => real.signed({ filling: 'x'.repeat(8_192) })],
  ['a changed payload', (real) => real.token.replace(/\.[^.]*\./, `.${encode({ ...real.claims, org_id: 'org_x' })}.`)],
  ['the JSON serialisation', flattened],
  [
    'an encrypted token',
    async (real) => {
      const { publicKey: own } = await generateKeyPair('ECDH-ES');
      return new CompactEncrypt(Buffer.from(JSON.stringify(real.claims)))
        .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: real.header.kid })
        .encrypt(own);
    },
  ],
  [
    'a payload that is no JSON',
    (real) => `${encode(real.header)}.${Buffer.from('no json').toString('base64url')}.${real.token.split('.')[2]}`,
  ],
  ['a header that is a list', (real) => `${encode([])}.${encode(real.claims)}.${real.token.split('.')[2]}`],
  ['a header that is null', (real) => `${encode(null)}.${encode(real.claims)}.${real.token.split('.')[2]}`],
];
