import { createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';

const [INTEGER, BIT_STRING, OID, UTF8, SEQUENCE, SET, TIME, VERSION] = [2, 3, 6, 12, 0x30, 0x31, 24, 0xa0] as const;

/** One value of DER (X.690). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content]);
  const digits = Buffer.from(length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 128 + digits.length]), digits, content]);
}

/** `sha256WithRSAEncryption`, without parameters. */
const SHA256_WITH_RSA = der(SEQUENCE, der(OID, Buffer.from('2a864886f70d01010b', 'hex')), Buffer.from([5, 0]));
const COMMON_NAME = Buffer.from('550403', 'hex');

const nameOf = (name: string) =>
  der(SEQUENCE, der(SET, der(SEQUENCE, der(OID, COMMON_NAME), der(UTF8, Buffer.from(name)))));

const timeOf = (time: Date) => der(TIME, Buffer.from(`${time.toISOString().replaceAll(/[-:T]|\.\d+Z$/g, '')}Z`));

/**
 * A certificate (X.509, PEM) that only carries a public key: SAML metadata has keys in no other form that every
 * identity provider reads. Nobody checks its signature or its name.
 * @param key an RSA private key
 */
export function selfSigned(key: KeyObject, name: string, { from, until }: { from: Date; until: Date }): string {
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40; // positive, of full length
  const content = der(
    SEQUENCE,
    der(VERSION, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    SHA256_WITH_RSA,
    nameOf(name),
    der(SEQUENCE, timeOf(from), timeOf(until)),
    nameOf(name),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
  );
  const signature = der(BIT_STRING, Buffer.from([0]), sign('sha256', content, key));
  const lines = der(SEQUENCE, content, SHA256_WITH_RSA, signature)
    .toString('base64')
    .replaceAll(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}
