import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The prefix of a token: API token, app token, refresh token. */
export type TokenKind = 'pat' | 'app' | 'rft';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = /^(pat|app|rft)_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/;
const CHECK_LENGTH = 6;
const SECRET_BYTES = 32;
const ID_BYTES = 5;

function base62(value: bigint, length: number): string {
  let rest = value;
  let text = '';
  for (let i = 0; i < length; i++) {
    text = ALPHABET[Number(rest % 62n)]! + text;
    rest /= 62n;
  }
  return text;
}

const checksum = (text: string): string => base62(BigInt(crc32(text)), CHECK_LENGTH);

/**
 * Formats a token from 37 random bytes (defaults §3): `pat_<8 characters that identify it>_<43 of 256 bits>_<6 of a
 * CRC-32>`. The checksum finds typos, and lets scanners of leaked credentials recognize real tokens without a database
 * query.
 */
export function formatToken(kind: TokenKind, bytes: Buffer = randomBytes(ID_BYTES + SECRET_BYTES)): string {
  const number = (part: Buffer) => BigInt(`0x${part.toString('hex')}`);
  const id = base62(number(bytes.subarray(0, ID_BYTES)), 8);
  const secret = base62(number(bytes.subarray(ID_BYTES)), 43);
  const text = `${kind}_${id}_${secret}`;
  return `${text}_${checksum(text)}`;
}

/** The kind of a well-formed token with the right checksum; `null` for any other text. */
export function kindOfToken(token: string): TokenKind | null {
  const kind = FORM.exec(token)?.[1];
  return kind && checksum(token.slice(0, -CHECK_LENGTH - 1)) === token.slice(-CHECK_LENGTH)
    ? (kind as TokenKind)
    : null;
}

/** `pat_<8>`: what lists show of a token. */
export const prefixOf = (token: string): string => token.slice(0, 12);

/**
 * The token pair that a refresh token is exchanged for. It is derived from the refresh token, so repeating a refresh
 * returns the very same pair, although only hashes are stored.
 */
export function successorPair(
  kind: 'pat' | 'app',
  refreshToken: string,
  secret: Buffer,
): { token: string; refreshToken: string } {
  const derived = (purpose: string) =>
    createHmac('sha512', secret)
      .update(`${purpose} `)
      .update(refreshToken)
      .digest()
      .subarray(0, ID_BYTES + SECRET_BYTES);
  return {
    token: formatToken(kind, derived('api token')),
    refreshToken: formatToken('rft', derived('api refresh token')),
  };
}
