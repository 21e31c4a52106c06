import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { decodeProtectedHeader, errors, jwtVerify } from 'jose';
import { lruOf } from '../kernel/lru.ts';
import type { OAuthKey } from './oauth-keys.ts';
import { tokenHash } from './random-token.ts';

/** What an access token of the authorization server says. Whether its grant still lives is looked up. */
export interface OAuthClaims {
  grantId: string;
  /** Names of permissions and words, in a fixed order. */
  scopes: readonly string[];
  audience: string;
  expiresAtMs: number;
}

const MAX_TOKEN_LENGTH = 8_192;
/** Far above the lifetime of any token that the authorization server issues. */
const MAX_LIFETIME_SECONDS = 3_600;

/** The resources of the service: what access tokens are for (RFC 8707). */
export const resourcesOf = (publicUrl: string): { api: string; mcp: string } => ({
  api: publicUrl,
  mcp: `${publicUrl}/mcp`,
});

/** The issuer of the authorization server. */
export const issuerOf = (publicUrl: string): string => `${publicUrl}/oauth`;

/** The path below which a proxy serves the service, without a slash at its end: mostly empty. */
export const pathPrefixOf = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, '');

/** Access tokens of the authorization server: JWT, signed with Ed25519, for one resource of the service. */
export class OAuthTokens {
  readonly #keys: ReadonlyMap<string, KeyObject>;
  readonly #publicUrl: () => string;
  // as for the tokens of sessions: a signature costs more than all the rest of a small request
  readonly #verified = lruOf<OAuthClaims>(20_000);

  constructor(keys: readonly OAuthKey[], publicUrl: () => string) {
    this.#publicUrl = publicUrl;
    this.#keys = new Map(
      keys
        .filter(({ alg }) => alg === 'EdDSA')
        .map(({ kid, kty, crv, x }) => [kid, createPublicKey({ key: { kty, crv, x } as JsonWebKey, format: 'jwk' })]),
    );
  }

  /**
   * The claims of a token that is genuine, has not expired and is for what the request asks; `null` otherwise. At once
   * for a token that was seen before, and for what is no token of the authorization server.
   * @param path of the request: `/mcp` is a resource of its own, all else is the other one
   */
  verify(token: string, path: string, hash = tokenHash(token)): OAuthClaims | null | Promise<OAuthClaims | null> {
    const known = this.#verified.get(hash);
    if (known) return this.#usable(known, path);
    if (token.length > MAX_TOKEN_LENGTH || !this.#keyOf(token)) return null;
    return this.#verifyAnew(token, path, hash);
  }

  async #verifyAnew(token: string, path: string, hash: string): Promise<OAuthClaims | null> {
    const claims = await this.#claimsOf(token);
    if (claims) this.#verified.set(hash, claims);
    return claims && this.#usable(claims, path);
  }

  #usable(claims: OAuthClaims, path: string): OAuthClaims | null {
    const { api, mcp } = resourcesOf(this.#publicUrl());
    const audience = path === '/mcp' || path.startsWith('/mcp/') ? mcp : api;
    return claims.audience === audience && claims.expiresAtMs > Date.now() ? claims : null;
  }

  #keyOf(token: string): KeyObject | null {
    try {
      const { alg, kid, typ } = decodeProtectedHeader(token);
      return alg === 'EdDSA' && typ === 'at+jwt' && kid !== undefined ? (this.#keys.get(kid) ?? null) : null;
    } catch {
      return null; // not a JWT
    }
  }

  async #claimsOf(token: string): Promise<OAuthClaims | null> {
    const key = this.#keyOf(token);
    if (!key) return null;
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: ['EdDSA'],
        issuer: issuerOf(this.#publicUrl()),
        typ: 'at+jwt',
        requiredClaims: ['sub', 'aud', 'jti', 'iat', 'exp', 'client_id', 'grant'],
      });
      const { grant, aud, scope = '', iat = 0, exp = 0 } = payload;
      if (typeof grant !== 'string' || typeof aud !== 'string' || typeof scope !== 'string') return null;
      if (exp - iat > MAX_LIFETIME_SECONDS) return null;
      const scopes = [...new Set(scope.split(' ').filter(Boolean))].sort();
      return { grantId: grant, scopes, audience: aud, expiresAtMs: exp * 1000 };
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
      throw error;
    }
  }

  /** The identifier of a genuine token, for what the authorization server stores of it; `null` for any other text. */
  async idOf(token: string): Promise<string | null> {
    const key = token.length <= MAX_TOKEN_LENGTH ? this.#keyOf(token) : null;
    if (!key) return null;
    try {
      // an expired one is looked up like any other, and is then said to be inactive
      const { payload } = await jwtVerify(token, key, { algorithms: ['EdDSA'], currentDate: new Date(0) });
      return payload.jti ?? null;
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
      throw error;
    }
  }
}
