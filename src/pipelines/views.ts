/**
 * What each step of an app uses: its tool instance, the slug of its tool, and its config. SQL for statements of groups
 * below, which have it from the wiring. Arguments are expressions.
 */
export const stepsOfApp = (orgId: string, workspaceId: string, appId: string): string =>
  `select p.tool_instance_id, p.tool_slug, p.config
    from augmentations a join augmentation_stages g on g.augmentation_id = a.id
    join augmentation_steps p on p.stage_id = g.id
    where a.org_id = ${orgId} and a.workspace_id = ${workspaceId} and a.app_id = ${appId}`;
