/**
 * `id`, `name` and `status` of the secrets that apps of a workspace may name: those of the organization and of the
 * workspace itself, as far as the caller may read them. SQL for statements of the groups above; all arguments are
 * expressions, `mayShared` and `mayOwn` whether the caller may read secrets of the organization and of the workspace.
 */
export const nameableSecrets = (orgId: string, workspaceId: string, mayShared: string, mayOwn: string): string =>
  `select s.id, s.name, s.status, s.workspace_id from secrets s where s.org_id = ${orgId}
    and (s.workspace_id is null and ${mayShared} or s.workspace_id = ${workspaceId} and ${mayOwn})
    and s.namespace_id is null and s.environment_id is null`;

/** Whether a secret is still there and expires at this moment. */
export const secretExpires = (id: string, at: string): string =>
  `exists (select from secrets s where s.id = ${id} and s.status <> 'deleted' and s.expires_at = ${at})`;

/** Whether a secret was not rotated for as long as its reminder allows. */
export const awaitsRotation = (id: string): string =>
  `exists (select from secrets s where s.id = ${id} and s.status = 'active'
    and coalesce(s.last_rotated_at, s.created_at) + s.rotation_reminder_days * interval '1 day' <= now())`;
