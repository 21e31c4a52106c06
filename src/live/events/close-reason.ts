/** Why a stream ends: the reason in its last event (defaults §10; the last two are our own). */
export type CloseReason =
  | 'timeout'
  /** The session is over, or the token revoked or expired, or the account deactivated. */
  | 'token_revoked'
  | 'membership_revoked'
  | 'shutdown'
  | 'slow_consumer'
  | 'workspace_deleted'
  | 'organization_deleted'
  /** The service cannot continue, for example because its database is unreachable. */
  | 'unavailable';
