import { forbidden } from './errors.ts';
import type { Permission } from './resources.ts';
import type { TokenGrant } from './token-grant.ts';

interface Known {
  /** `usr_…`: the user whose rights apply. For an API token its owner, for an app token the user who made it. */
  userId: string;
  username: string;
  isPlatformAdmin: boolean;
  isVerified: boolean;
  /**
   * The organization whose identity provider vouches for it: it made the session, or knows the user of the token.
   * Without one, organizations that demand single sign-on are closed to it.
   */
  vouchedBy?: string | null;
  /**
   * Whether it was made with a second factor, or lasts as long as its user has one. Without it, organizations that
   * demand a factor are closed to it.
   */
  provesFactor?: boolean;
}

/** A user who has signed in. */
export interface UserPrincipal extends Known {
  type: 'user';
  /** `ses_…`: the sign-in that the access token belongs to. */
  sessionId: string;
  /** The organization that the session works in: the default context of `/v1/users` and `/v1/notifications`. */
  orgId: string | null;
  token: null;
  /** The organization that its owner has opened with the password, and until when, in milliseconds. */
  brokenGlass?: { orgId: string; until: number } | null;
  /** When a second factor was last proven in the session, in milliseconds. */
  factorAt?: number | null;
  /** Organizations of the user that demand single sign-on or a factor and did not get it, as they were a moment ago. */
  shutOutOf?: readonly string[];
}

/**
 * A program with an API token or an app token. It has no session, works in one organization, and never administers the
 * platform.
 */
export interface TokenPrincipal extends Known {
  type: 'api_token' | 'app_token';
  orgId: string;
  token: TokenGrant;
}

/**
 * The authenticated caller. Found once per request, from the `authorization` header, for REST, GraphQL, WebSocket and
 * SSE alike.
 */
export type Principal = UserPrincipal | TokenPrincipal;

/** The id of the principal itself: of the token, or of the user. */
export const principalId = ({ token, userId }: Principal): string => token?.id ?? userId;

/** The session of the principal; `null` for programs, and for who acts by an address. */
export const sessionIdOf = (principal: Principal): string | null =>
  principal.token === null ? principal.sessionId || null : null;

/**
 * The caller as a signed-in user.
 * @throws FORBIDDEN with `permission` for tokens: none of them has it
 */
export function sessionOf({ principal }: { principal: Principal }, permission: Permission): UserPrincipal {
  if (principal.token) throw forbidden(permission, 'An API token cannot do this: sign in instead.');
  return principal;
}
