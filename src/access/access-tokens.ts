import { randomUUID } from 'node:crypto';
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose';
import { lruOf } from '../kernel/lru.ts';
import { tokenHash } from './random-token.ts';
import type { SigningKeys } from './signing-keys.ts';

/**
 * The claims of an access token. Roles are not among them: they are looked up live, so that a change takes effect at
 * once.
 */
export interface AccessClaims {
  userId: string;
  orgId: string | null;
  sessionId: string;
  expiresAtMs: number;
}

interface Verified extends AccessClaims {
  /** The key that signed it. */
  kid: string;
}

const ISSUER = 'platform-management-api';
const AUDIENCE = 'platform-management-api';
const TYPE = 'at+jwt';
const MAX_TOKEN_LENGTH = 8_192;
/** At least the largest `ACCESS_TOKEN_TTL_SECONDS`: this service issues no token with a longer life. */
const MAX_LIFETIME_SECONDS = 86_400;
/** The header of a token has exactly these names: `jwk`, `jku` and `crit` are never used. */
const HEADER_NAMES = 'alg kid typ';
const COMPACT = /^[\w-]+\.[\w-]+\.([\w-]{86})$/;

/** Access tokens: JWT signed with Ed25519 (defaults §1). */
export class AccessTokens {
  readonly #keys: SigningKeys;
  readonly #ttlSeconds: number;
  // by the SHA-256 of the token: verifying a signature on each request would triple the cost of a small one
  readonly #verified = lruOf<Verified>(20_000);

  constructor(keys: SigningKeys, ttlSeconds: number) {
    this.#keys = keys;
    this.#ttlSeconds = ttlSeconds;
  }

  get ttlSeconds(): number {
    return this.#ttlSeconds;
  }

  async issue(session: { userId: string; orgId: string | null; sessionId: string }): Promise<string> {
    const { kid, privateKey } = await this.#keys.current();
    return new SignJWT({ org_id: session.orgId, sid: session.sessionId, typ: 'access' })
      .setProtectedHeader({ alg: 'EdDSA', kid, typ: TYPE })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(session.userId)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime(`${this.#ttlSeconds} s`)
      .sign(privateKey);
  }

  /** Whether a token with this hash was found genuine before. */
  hasVerified(hash: string): boolean {
    return this.#verified.has(hash);
  }

  /**
   * The claims of a token that is genuine and has not expired; `null` otherwise. Does not check whether the session is
   * still live. At once for a token that was seen before.
   */
  verify(token: string, hash = tokenHash(token)): AccessClaims | null | Promise<AccessClaims | null> {
    if (token.length > MAX_TOKEN_LENGTH) return null;
    const known = this.#verified.get(hash);
    if (!known) return this.#verifyAnew(token, hash);
    if (known.expiresAtMs <= Date.now()) return null;
    // a removed key invalidates its tokens
    const key = this.#keys.verifying(known.kid);
    return key instanceof Promise ? key.then((found) => found && known) : key && known;
  }

  async #verifyAnew(token: string, hash: string): Promise<AccessClaims | null> {
    const claims = await this.#claimsOf(token);
    if (claims) this.#verified.set(hash, claims);
    return claims;
  }

  async #claimsOf(token: string): Promise<Verified | null> {
    if (!isCanonical(token)) return null;
    try {
      const header = decodeProtectedHeader(token);
      const { kid } = header;
      if (typeof kid !== 'string' || Object.keys(header).sort().join(' ') !== HEADER_NAMES) return null;
      const publicKey = await this.#keys.verifying(kid);
      if (!publicKey) return null;
      const { payload } = await jwtVerify(token, publicKey, {
        algorithms: ['EdDSA'],
        issuer: ISSUER,
        audience: AUDIENCE,
        typ: TYPE,
        requiredClaims: ['sub', 'sid', 'jti', 'iat', 'exp'],
      });
      const { iat, exp } = payload;
      if (payload.typ !== 'access' || typeof payload.sid !== 'string' || typeof payload.sub !== 'string') return null;
      if (!isSecond(iat) || !isSecond(exp) || exp - iat > MAX_LIFETIME_SECONDS) return null;
      return {
        kid,
        userId: payload.sub,
        orgId: typeof payload.org_id === 'string' ? payload.org_id : null,
        sessionId: payload.sid,
        expiresAtMs: exp * 1000,
      };
    } catch (error) {
      // any fault of the token has the same answer; any other error is a bug
      if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
      throw error;
    }
  }
}

const isSecond = (value: unknown): value is number => Number.isSafeInteger(value);

/**
 * Whether a token has its only valid spelling: base64url has several for the same signature (padding, unused bits), and
 * a token is identified by its text.
 */
function isCanonical(token: string): boolean {
  const signature = COMPACT.exec(token)?.[1];
  return signature !== undefined && Buffer.from(signature, 'base64url').toString('base64url') === signature;
}
