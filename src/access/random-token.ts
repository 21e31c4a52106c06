import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A new random token of 256 bits, base64url. */
export const randomToken = (): string => randomBytes(32).toString('base64url');

/** The stored form of a token: its SHA-256. Tokens are random, so a plain hash is enough and can be looked up. */
export const tokenHash = (token: string): string => hash('sha256', token, 'hex');

/** Whether two texts are the same. How long that takes says nothing of where they differ. */
export function isSameSecret(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/**
 * The successor of a refresh token, derived from it: repeating a refresh within the grace time returns the very same
 * successor, although only hashes are stored.
 */
export const successorOf = (refreshToken: string, secret: Buffer): string =>
  createHmac('sha256', secret).update('refresh ').update(refreshToken).digest('base64url');
