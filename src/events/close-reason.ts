/** Why a stream ends, as its last event says it (defaults §10; the last two are ours). */
export type CloseReason =
  | 'timeout'
  /** The session is over, or the token revoked or expired, or the account deactivated. */
  | 'token_revoked'
  | 'membership_revoked'
  | 'shutdown'
  | 'slow_consumer'
  | 'workspace_deleted'
  | 'organization_deleted'
  /** The service could not read on, e.g. because its database is away. */
  | 'unavailable';
