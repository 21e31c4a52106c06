import { createHmac, hash, randomBytes } from 'node:crypto';

/** A new random token of 256 bits, base64url. */
export const randomToken = (): string => randomBytes(32).toString('base64url');

/** The stored form of a token: its SHA-256. Tokens are random, so a plain hash is enough and can be looked up. */
export const tokenHash = (token: string): string => hash('sha256', token, 'hex');

/**
 * The successor of a refresh token, derived from it: repeating a refresh within the grace time returns the very same
 * successor, although only hashes are stored.
 */
export const successorOf = (refreshToken: string, secret: Buffer): string =>
  createHmac('sha256', secret).update('refresh ').update(refreshToken).digest('base64url');
