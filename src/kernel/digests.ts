import { createHash, type Hash } from 'node:crypto';
import { ApiError } from './errors.ts';

/** A digest that a client says bytes have. */
export interface ClaimedDigest {
  /** As the client calls the algorithm: `sha-256`. */
  algorithm: Algorithm;
  value: Buffer;
  /** Where it is said: a header, or a field of an input. */
  field: string;
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The names of node:crypto. */
const algorithms = { 'sha-256': 'sha256', 'sha-512': 'sha512', sha: 'sha1', md5: 'md5' } as const;
type Algorithm = keyof typeof algorithms;
const BYTES: Readonly<Record<Algorithm, number>> = { 'sha-256': 32, 'sha-512': 64, sha: 20, md5: 16 };

const isKnown = (name: string): name is Algorithm => Object.hasOwn(algorithms, name);

/**
 * The digests that headers claim: those of RFC 9530, and their forerunners. Unknown algorithms are ignored. Bytes are
 * stored as they arrive, so they are the content and the representation.
 * @throws INVALID_REQUEST `digest` for a header that cannot be read
 */
export function claimedDigests(headers: Headers): ClaimedDigest[] {
  const claims: ClaimedDigest[] = [];
  for (const [field, read] of readers) {
    const given = headers[field.toLowerCase()];
    if (given === undefined) continue;
    const text = typeof given === 'string' ? given : given.join(', ');
    for (const [algorithm, base64] of read(text, field))
      claims.push({ algorithm, value: bytesOf(base64, algorithm, field), field });
  }
  return claims;
}

/** What a claim is about: a SHA-256 in hexadecimal. */
export const sha256Claim = (hex: string, field: string): ClaimedDigest => ({
  algorithm: 'sha-256',
  value: Buffer.from(hex, 'hex'),
  field,
});

/** As a header of RFC 9530 has it. */
export const digestField = (sha256: string): string => `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`;

/** Holds bytes against what is claimed of them. */
export class DigestCheck {
  readonly #claims: readonly ClaimedDigest[];
  readonly #hashes: ReadonlyMap<Algorithm, Hash>;

  /** `null` if nothing is claimed. */
  static of(claims: readonly ClaimedDigest[]): DigestCheck | null {
    return claims.length > 0 ? new DigestCheck(claims) : null;
  }

  private constructor(claims: readonly ClaimedDigest[]) {
    this.#claims = claims;
    this.#hashes = new Map(claims.map(({ algorithm }) => [algorithm, createHash(algorithms[algorithm])]));
  }

  update(bytes: Buffer): void {
    for (const hash of this.#hashes.values()) hash.update(bytes);
  }

  /** Call it once, after the last byte. @throws INVALID_REQUEST `digest_mismatch` */
  verify(): void {
    const actual = new Map([...this.#hashes].map(([algorithm, hash]) => [algorithm, hash.digest()]));
    for (const { algorithm, value, field } of this.#claims)
      if (!value.equals(actual.get(algorithm)!))
        throw new ApiError(
          'INVALID_REQUEST',
          { reason: 'digest_mismatch', field, algorithm },
          `The ${algorithm} of the received bytes differs from the header '${field}'. Send the bytes again.`,
        );
  }
}

type Pair = readonly [Algorithm, string];

const readers: readonly (readonly [field: string, read: (text: string, field: string) => Iterable<Pair>])[] = [
  ['Content-Digest', dictionary],
  ['Repr-Digest', dictionary],
  ['Digest', instances],
  ['Content-MD5', (text) => [['md5', text.trim()]]],
];

// the items of structured fields (RFC 8941): only byte sequences matter, and others must not be taken for them
const TEXT = String.raw`"(?:[^"\\]|\\["\\])*"`;
const TOKEN = String.raw`[A-Za-z*][\w.:/!#$%&'*+^\x60|~-]*`;
const ITEM = String.raw`(?::[A-Za-z0-9+/=]*:|${TEXT}|\?[01]|-?\d[\d.]*|${TOKEN})`;
const KEY = '[a-z*][a-z0-9_.*-]*';
const PARAMETERS = `(?:; *${KEY}(?:=${ITEM})?)*`;
const MEMBER = new RegExp(String.raw`[ \t]*(${KEY})(?:=(${ITEM}|\([^()]*\)))?${PARAMETERS}[ \t]*(,|$)`, 'y');

/** A dictionary of structured fields; of equal keys the last one counts. */
function dictionary(text: string, field: string): Iterable<Pair> {
  const found = new Map<Algorithm, string>();
  for (let at = 0; at < text.length; ) {
    MEMBER.lastIndex = at;
    const [whole = '', key, item = '', end] = MEMBER.exec(text) ?? [];
    at += whole.length;
    // a comma is followed by a member
    if (key === undefined || (end === ',' && at === text.length)) throw unreadable(field);
    if (!isKnown(key)) continue;
    if (!item.startsWith(':')) throw unreadable(field);
    found.set(key, item.slice(1, -1));
  }
  return found;
}

/** `SHA-256=…,MD5=…` (RFC 3230). */
function* instances(text: string, field: string): Generator<Pair> {
  for (const item of text.split(',')) {
    const [, name, value] = /^([\w.-]{1,40})=(.*)$/.exec(item.trim()) ?? [];
    if (name === undefined) throw unreadable(field);
    const algorithm = name.toLowerCase();
    if (isKnown(algorithm)) yield [algorithm, value!];
  }
}

function bytesOf(base64: string, algorithm: Algorithm, field: string): Buffer {
  const value = Buffer.from(base64, 'base64');
  const isBase64 = value.toString('base64').replaceAll('=', '') === base64.replace(/={0,2}$/, '');
  if (!isBase64 || value.length !== BYTES[algorithm]) throw unreadable(field);
  return value;
}

const unreadable = (field: string): ApiError =>
  new ApiError('INVALID_REQUEST', { reason: 'digest', field }, `The header ${field} cannot be read.`);
