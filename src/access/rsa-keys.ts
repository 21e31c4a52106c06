import { checkPrime, createPrivateKey, hkdfSync, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

const isPrime = promisify(checkPrime) as (candidate: bigint) => Promise<boolean>;

/** What every client can verify with (RFC 8017 recommends it). */
const EXPONENT = 65_537n;
const PRIME_BYTES = 128;
/** Odd numbers that are looked through; about one of 355 is a prime. */
const WINDOW = 16_384;

/** Odd primes that most numbers can be divided by: those need no costly test. */
const SMALL_PRIMES = Array.from({ length: 2_048 }, (_, index) => 2 * index + 3).filter((number) =>
  Array.from({ length: Math.floor(Math.sqrt(number)) - 1 }, (_, index) => index + 2).every((part) => number % part > 0),
);

/**
 * The RSA key of 2,048 bits that belongs to a secret. The same secret gives the same key, on every node and in every
 * version: what is done here must never change.
 */
export async function rsaKeyOf(secret: Buffer): Promise<KeyObject> {
  const p = await primeOf(secret, 'p');
  const q = await primeOf(secret, 'q');
  const d = inverse(EXPONENT, (p - 1n) * (q - 1n));
  const parts = { n: p * q, e: EXPONENT, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverse(q, p) };
  const texts = Object.fromEntries(Object.entries(parts).map(([name, number]) => [name, base64url(number)]));
  return createPrivateKey({ key: { kty: 'RSA', ...texts }, format: 'jwk' });
}

/** The first prime after a number that follows from the secret. Its two highest bits are set, so that `n` is long. */
async function primeOf(secret: Buffer, name: 'p' | 'q'): Promise<bigint> {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', `authorization server RS256 ${name}`, PRIME_BYTES));
  bytes[0]! |= 0xc0;
  bytes[PRIME_BYTES - 1]! |= 1;
  const start = BigInt(`0x${bytes.toString('hex')}`);
  const rests = SMALL_PRIMES.map((prime) => Number(start % BigInt(prime)));
  for (let step = 0; step < WINDOW; step++) {
    if (SMALL_PRIMES.some((prime, index) => (rests[index]! + 2 * step) % prime === 0)) continue;
    const candidate = start + BigInt(2 * step);
    if ((candidate - 1n) % EXPONENT !== 0n && (await isPrime(candidate))) return candidate;
  }
  throw new Error('The secret of the service leads to no key. Set another APP_SECRET.');
}

/** The number whose product with `number` is 1 (the extended algorithm of Euclid). */
function inverse(number: bigint, modulus: bigint): bigint {
  let [rest, next] = [modulus, number % modulus];
  let [factor, nextFactor] = [0n, 1n];
  while (next !== 0n) {
    const times = rest / next;
    [rest, next] = [next, rest - times * next];
    [factor, nextFactor] = [nextFactor, factor - times * nextFactor];
  }
  return ((factor % modulus) + modulus) % modulus;
}

function base64url(number: bigint): string {
  const hex = number.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').toString('base64url');
}
