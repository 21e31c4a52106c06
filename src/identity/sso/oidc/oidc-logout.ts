import { decodeJwt, errors } from 'jose';
import { z } from 'zod';
import { isJsonObject } from '../../../kernel/json-object.ts';
import type { Outbound } from '../../../platform/outbound/outbound.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { Discovery } from './discovery.ts';
import type { OidcProvider } from './oidc-provider.ts';

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** By how many seconds the clock of a provider may be wrong. */
const SKEW_SECONDS = 60;
/** A logout token without an expiry, as former drafts had it, is taken for so long. */
const LIFETIME_SECONDS = 600;
/** So long is one remembered at most: with a later expiry it is not taken. */
const MAX_LIFETIME_SECONDS = 86_400;
/** Longer addresses are cut or refused on their way. The sign-out goes without the hint then. */
const MAX_HINT = 6_000;

const word = z.string().min(1).max(255);
const seconds = z.number().finite();

/** The claims of OpenID Connect Back-Channel Logout 1.0, section 2.4. */
const logoutClaims = z.object({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  iat: seconds,
  exp: seconds.optional(),
  jti: word,
  sub: word.optional(),
  sid: word.optional(),
  events: z.record(z.string(), z.unknown()),
  // an ID token has one: it must not be taken for a logout token
  nonce: z.never().optional(),
});

/** Whose sessions an OpenID provider has ended. */
export interface OidcLogoutToken {
  id: string;
  expiresAt: Date;
  /** `null`: whoever has the session. */
  subject: string | null;
  /** The session at the provider; `null`: all of the subject. */
  sessionId: string | null;
}

/** Sign-outs at OpenID providers, in both directions. */
export class OidcLogout {
  readonly #discovery: Discovery;
  readonly #now: () => number;

  constructor(outbound: Outbound, now: () => number = Date.now) {
    this.#discovery = new Discovery(outbound, now);
    this.#now = now;
  }

  /**
   * Where a browser goes to end the session at the provider (RP-Initiated Logout 1.0); `null` if it has no such page.
   * @param idToken of the session, if it was kept
   * @throws SsoRefusal, OutboundError
   */
  async endSessionUrl(provider: OidcProvider, idToken: string | null): Promise<string | null> {
    const { metadata } = await this.#discovery.of(provider);
    if (metadata.end_session_endpoint === undefined) return null;
    const url = new URL(metadata.end_session_endpoint);
    url.searchParams.set('client_id', provider.clientId);
    if (idToken !== null && idToken.length <= MAX_HINT) url.searchParams.set('id_token_hint', idToken);
    return url.href;
  }

  /**
   * Verifies a logout token. What costs nothing comes first: strangers make nobody read keys.
   * @throws SsoRefusal for everything that is not as it must be; OutboundError if the provider does not answer
   */
  async verify(provider: OidcProvider, token: string): Promise<OidcLogoutToken> {
    const claims = claimsOf(token);
    const expiresAt = this.#checkTimes(claims);
    const { aud, events, sub = null, sid = null } = claims;
    if (![aud].flat().includes(provider.clientId)) throw new SsoRefusal('the logout token is for another audience');
    if (!isJsonObject(events[EVENT])) throw new SsoRefusal('the token is not a logout token');
    if (sub === null && sid === null) throw new SsoRefusal('the logout token names neither a user nor a session');
    const { metadata, keys } = await this.#discovery.of(provider);
    if (claims.iss !== metadata.issuer) throw new SsoRefusal('the logout token is from another issuer');
    await keys.verifyLogout(token);
    return { id: claims.jti, expiresAt, subject: sub, sessionId: sid };
  }

  /** @returns until when the token could be brought again */
  #checkTimes({ iat, exp = iat + LIFETIME_SECONDS }: z.infer<typeof logoutClaims>): Date {
    const now = this.#now() / 1_000;
    if (iat > now + SKEW_SECONDS) throw new SsoRefusal('the logout token was issued in the future');
    if (exp <= now - SKEW_SECONDS) throw new SsoRefusal('the logout token has expired');
    if (exp > now + MAX_LIFETIME_SECONDS) throw new SsoRefusal('the logout token expires too late');
    return new Date((exp + 2 * SKEW_SECONDS) * 1_000);
  }
}

function claimsOf(token: string): z.infer<typeof logoutClaims> {
  try {
    const read = logoutClaims.safeParse(decodeJwt(token));
    if (read.success) return read.data;
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
  }
  throw new SsoRefusal('the logout token is not valid');
}
