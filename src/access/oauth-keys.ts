import { createECDH, createHash, createPrivateKey, hkdfSync, type KeyObject } from 'node:crypto';
import type { Config } from '../config.ts';
import { rsaKeyOf } from './rsa-keys.ts';

/** A private key as the authorization server takes it. */
export interface OAuthKey extends Record<string, unknown> {
  kid: string;
  alg: 'EdDSA' | 'ES256' | 'RS256';
}

/** The order of the group of P-256: a private key is a number below it. */
const ORDER = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');
/** What PKCS #8 has before the 32 bytes of an Ed25519 key (RFC 8410). */
const ED25519_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * The keys of the authorization server: EdDSA signs access tokens, ES256 signs ID tokens. They are derived from
 * `APP_SECRET`, so all nodes have the same ones and no file can be lost. Those of former secrets still verify. The
 * first two sign.
 */
export function oauthKeys(appSecret: Buffer, config: Pick<Config, 'formerAppSecrets'>): OAuthKey[] {
  return secretsOf(appSecret, config).flatMap((secret) => [
    published(ed25519(derived(secret, 'EdDSA', 32)), 'EdDSA'),
    published(p256(derived(secret, 'ES256', 48)), 'ES256'),
  ]);
}

/**
 * The same for RS256, which signs ID tokens of clients that know no ES256. Finding the primes takes a moment, so they
 * are found when the authorization server is first needed. The first one signs.
 */
export async function oauthRsaKeys(appSecret: Buffer, config: Pick<Config, 'formerAppSecrets'>): Promise<OAuthKey[]> {
  const keys: OAuthKey[] = [];
  for (const secret of secretsOf(appSecret, config)) keys.push(published(await rsaKeyOf(secret), 'RS256'));
  return keys;
}

const secretsOf = (appSecret: Buffer, { formerAppSecrets }: Pick<Config, 'formerAppSecrets'>): Buffer[] => [
  appSecret,
  ...formerAppSecrets.map((text) => Buffer.from(text)),
];

const derived = (secret: Buffer, alg: string, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', `authorization server ${alg}`, length));

const ed25519 = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([ED25519_HEAD, seed]), format: 'der', type: 'pkcs8' });

/** 384 bits, reduced: every key is as likely as another one (FIPS 186-5, A.2.1). */
function p256(bits: Buffer): KeyObject {
  const number = (BigInt(`0x${bits.toString('hex')}`) % (ORDER - 1n)) + 1n;
  const d = Buffer.from(number.toString(16).padStart(64, '0'), 'hex');
  const curve = createECDH('prime256v1');
  curve.setPrivateKey(d);
  const point = curve.getPublicKey();
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  return createPrivateKey({ key: { kty: 'EC', crv: 'P-256', d: d.toString('base64url'), x, y }, format: 'jwk' });
}

function published(key: KeyObject, alg: OAuthKey['alg']): OAuthKey {
  const jwk = key.export({ format: 'jwk' });
  const kid = createHash('sha256')
    .update(`${jwk.crv ?? jwk.kty} ${jwk.x ?? jwk.n}`)
    .digest('base64url');
  return { ...jwk, kid, alg, use: 'sig' };
}
