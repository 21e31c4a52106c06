/** How long what was deleted can be restored. */
export const RESTORABLE_DAYS = 30;

/** The condition on a deleted row `t` that it can still be restored. */
export const RESTORABLE = `t.deleted_at > now() - interval '${RESTORABLE_DAYS} days'`;

/** Until when what was deleted then can be restored. */
export const restorableUntil = (deletedAt: Date): Date => new Date(deletedAt.getTime() + RESTORABLE_DAYS * 86_400_000);

/**
 * `from` and `where` of the workspaces `w` that end for good: they or their organization were deleted 30 days ago. Half
 * a minute later: a restore that began in time has committed by then.
 */
export const LONG_DELETED = `from workspaces w join organizations o on o.id = w.org_id
  where least(w.deleted_at, o.deleted_at) < now() - interval '${RESTORABLE_DAYS} days 30 seconds'`;

/**
 * The rows of these go half a day later, by themselves: what ended while a run of retention was under way would
 * otherwise go before its folder, its connections and its parts.
 */
export const ROWS_AFTER = `interval '30 days 12 hours'`;
