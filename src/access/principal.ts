import { forbidden } from '../core/errors.ts';
import type { Permission } from '../core/resources.ts';
import type { TokenGrant } from './token-grant.ts';

interface Known {
  /** `usr_…`: whose rights count. Of an API token its owner, of an app's token the user who made it. */
  userId: string;
  username: string;
  isPlatformAdmin: boolean;
  isVerified: boolean;
}

/** Somebody who has signed in. */
export interface UserPrincipal extends Known {
  type: 'user';
  /** `ses_…`: the sign-in that the access token belongs to. */
  sessionId: string;
  /** The organization that the session works in: the default context of `/v1/users` and `/v1/notifications`. */
  orgId: string | null;
  token: null;
}

/**
 * A program with an API token or an app's token: it has no session, one organization, and never administers the
 * platform.
 */
export interface TokenPrincipal extends Known {
  type: 'api_token' | 'app_token';
  orgId: string;
  token: TokenGrant;
}

/**
 * Who is calling. Found once per request, from the `authorization` header, for REST, GraphQL, WebSocket and SSE alike.
 */
export type Principal = UserPrincipal | TokenPrincipal;

/** What identifies the principal itself: the token, or the user. */
export const principalId = ({ token, userId }: Principal): string => token?.id ?? userId;

/**
 * The caller as somebody who has signed in. @throws FORBIDDEN with the permission of what is asked for, for tokens:
 * none of them has it
 */
export function sessionOf({ principal }: { principal: Principal }, permission: Permission): UserPrincipal {
  if (principal.token) throw forbidden(permission, 'An API token cannot do this: sign in instead.');
  return principal;
}
