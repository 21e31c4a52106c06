/** Who is calling. Found once per request, from the `authorization` header, for REST, GraphQL, WebSocket and SSE alike. */
export interface Principal {
  type: 'user';
  /** `usr_…` */
  userId: string;
  username: string;
  /** `ses_…`: the sign-in that the access token belongs to. */
  sessionId: string;
  /** The organization that the session works in: the default context of `/v1/users` and `/v1/notifications`. */
  orgId: string | null;
  isPlatformAdmin: boolean;
  isVerified: boolean;
}
