/** What apps use: the rules of this group as SQL, which groups below have from the wiring. Arguments are expressions. */

/** What each step of an app uses: its tool instance and its config. */
export const stepsOfApp = (orgId: string, workspaceId: string, appId: string): string =>
  `select p.tool_instance_id, p.config from augmentations a join augmentation_stages g on g.augmentation_id = a.id
    join augmentation_steps p on p.stage_id = g.id
    where a.org_id = ${orgId} and a.workspace_id = ${workspaceId} and a.app_id = ${appId}`;
