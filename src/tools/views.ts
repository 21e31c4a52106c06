/**
 * What a workspace has of tools: the rules of this group as SQL, for statements of the groups above. Arguments are
 * expressions: a column of the statement, or a parameter.
 */

/** The tools that an organization can see: its own and the built-in ones. */
export const visibleTools = (orgId: string): string =>
  `select t.id, t.slug from tools t where t.org_id is null or t.org_id = ${orgId}`;

/** The tool instances of a workspace. */
export const instancesOf = (orgId: string, workspaceId: string): string =>
  `select i.id, i.tool_id, i.name, i.namespace_id, i.is_active from tool_instances i
    where i.org_id = ${orgId} and i.workspace_id = ${workspaceId}`;

/** The same with the `slug` of their tools, of those that the organization can see. */
export const instancesByTool = (orgId: string, workspaceId: string): string =>
  `select i.*, t.slug from (${instancesOf(orgId, workspaceId)}) i
    join (${visibleTools(orgId)}) t on t.id = i.tool_id`;

/**
 * The `id` of the instance that serves what names a tool by its slug: the one with that name, else one of the whole
 * workspace, else an active one, else the oldest.
 */
export const servingInstance = (orgId: string, workspaceId: string, slug: string, name: string): string =>
  `select i.id from (${instancesByTool(orgId, workspaceId)}) i where i.slug = ${slug}
    order by (${name} is not null and i.name = ${name}) desc, i.namespace_id is null desc, i.is_active desc, i.id
    limit 1`;

/** Whether a connection must be authorized again: an authorization that was begun changes nothing until it succeeds. */
export const awaitsAuthorization = (id: string): string =>
  `exists (select from connections c where c.id = ${id} and c.status in ('needs_reauth', 'pending'))`;
