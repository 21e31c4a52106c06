/**
 * `id`, `name` and `status` of the secrets that apps of a workspace may name: those of the organization and of the
 * workspace itself, as far as the caller may read them. SQL for statements of the groups above; all arguments are
 * expressions, `mayShared` and `mayOwn` whether the caller may read secrets of the organization and of the workspace.
 */
export const nameableSecrets = (orgId: string, workspaceId: string, mayShared: string, mayOwn: string): string =>
  `select s.id, s.name, s.status from secrets s where s.org_id = ${orgId}
    and (s.workspace_id is null and ${mayShared} or s.workspace_id = ${workspaceId} and ${mayOwn})
    and s.namespace_id is null and s.environment_id is null`;
