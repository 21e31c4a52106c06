/** `from` and `where` of the workspaces `w` that end for good: they or their organization were deleted 30 days ago. */
export const LONG_DELETED = `from workspaces w join organizations o on o.id = w.org_id
  where least(w.deleted_at, o.deleted_at) < now() - interval '30 days'`;

/**
 * The rows of these go half a day later, by themselves: what ended while a run of retention was under way would
 * otherwise go before its folder, its connections and its parts.
 */
export const ROWS_AFTER = `interval '30 days 12 hours'`;
