/** The environments of a workspace: SQL for statements of groups above. Arguments are expressions. */
export const environmentsOf = (orgId: string, workspaceId: string): string =>
  `select e.id, e.name, e.slug, e.description, e.is_default, e.status from environments e
    where e.org_id = ${orgId} and e.workspace_id = ${workspaceId}`;
