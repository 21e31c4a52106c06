import type { Sql } from '../../data/sql.ts';

/**
 * What is kept for how long (defaults §1, §9, §10, §0.5). Deleted workspaces, organizations and secrets are gone after 30 days, and so is what is
 * personal of a deleted account; its id stays, because content refers to it.
 */
const RULES = [
  `delete from workspaces where deleted_at < now() - interval '30 days'`,
  `delete from organizations where deleted_at < now() - interval '30 days'`,
  `delete from secrets where status = 'deleted' and deleted_at < now() - interval '30 days'`,
  `update users set email = 'deleted-' || id || '@invalid', email_key = lower('deleted-' || id || '@invalid'), username = id, username_key = lower(id),
     full_name = null, avatar_url = null, bio = null, timezone = null, locale = null, preferences = '{}', password_hash = null,
     purged_at = now()
   where deactivated_at < now() - interval '30 days' and purged_at is null`,
  `delete from sessions where expires_at < now() - interval '1 day' or revoked_at < now() - interval '30 days'`,
  `delete from refresh_tokens where expires_at < now() - interval '1 day'`,
  `delete from email_tokens where expires_at < now() - interval '1 day'`,
  // revoked ones stay in lists for 90 days; expired ones can be refreshed for 30 days
  `delete from api_tokens where revoked_at < now() - interval '90 days' or refresh_expires_at < now() - interval '90 days'`,
  `delete from login_failures where window_start < now() - interval '1 day' and coalesce(locked_until, now()) <= now()`,
  // streams may resume for 24 hours; the audit trail is kept for 90 days
  `delete from events where timestamp < now() - interval '7 days'`,
  `delete from activity where timestamp < now() - interval '90 days'`,
  `delete from resource_counts c where not exists (select 1 from organizations o where o.id = c.org_id)`,
  `delete from idempotency_keys where created_at < now() - interval '24 hours'`,
];

/** Removes what is past its time. @returns rows that were removed or emptied */
export async function enforceRetention(sql: Sql): Promise<number> {
  let rows = 0;
  for (const rule of RULES) rows += await sql.write(rule, []);
  return rows;
}
