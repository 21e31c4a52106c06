/**
 * What a workspace has of tools: the rules of this group as SQL, for statements of the groups above. Arguments are
 * expressions: a column of the statement, or a parameter.
 */

/** The tools that an organization can see: its own and the built-in ones. */
export const visibleTools = (orgId: string): string =>
  `select t.id, t.slug, t.status, t.org_id is null as is_built_in from tools t
    where t.org_id is null or t.org_id = ${orgId}`;

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

const TOOL_COLUMNS =
  't.slug, t.name, t.description, t.short_description, t.category, t.version, t.status, t.icon_url, ' +
  't.documentation_url, t.connection_service_name, t.author, t.tags, t.supported_actions, t.supported_step_types, ' +
  't.config_schema, t.credential_schema, t.action_schemas, t.mcp_functions, t.custom_action_type, ' +
  't.is_mcp_compatible, t.current_schema_version, t.min_schema_version, t.schema_changelog, t.supports_connection';
const INSTANCE_COLUMNS =
  'i.id, i.name, i.description, i.namespace_id, t.slug as tool, i.configuration, i.credential_refs, i.auth_mode, ' +
  'i.auth_config, i.client_id, i.client_secret_vault_id, i.callback_url, i.scopes_override, i.custom_actions, ' +
  'i.custom_action_parameters, i.action_defaults, i.is_active, i.mcp_description_override, i.mcp_action_filter, ' +
  'i.mcp_action_descriptions, i.mcp_max_calls_per_turn, i.mcp_requires_confirmation, i.mcp_parameter_overrides, ' +
  'i.schema_version';

/** Whole tools of an organization itself, by columns of the table. @param slugs a statement that gives them */
export const wholeTools = (orgId: string, slugs: string): string =>
  `select ${TOOL_COLUMNS} from tools t where t.org_id = ${orgId} and t.slug in (${slugs})`;

/** Whole tool instances of a workspace with the slugs of their tools, without any value that is kept secret. */
export const wholeInstances = (orgId: string, workspaceId: string): string =>
  `select ${INSTANCE_COLUMNS} from tool_instances i join tools t on t.id = i.tool_id
    where i.org_id = ${orgId} and i.workspace_id = ${workspaceId}`;

/** What tells the sensitive fields of the tools that have instances in a workspace, by their slugs. */
export const schemasOfInstances = (orgId: string, workspaceId: string): string =>
  `select t.slug, t.config_schema as "configSchema", t.credential_schema as "credentialSchema" from tools t
    where t.id in (select i.tool_id from (${instancesOf(orgId, workspaceId)}) i)`;
