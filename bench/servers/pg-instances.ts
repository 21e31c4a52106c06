import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { pageOf } from './common.ts';

const PAGE = `select id as instance_id, tool_id, workspace_id, namespace_id, name, description, created_by, created_at,
    updated_at, last_used_at, usage_count, is_active, configuration, credential_refs, custom_action_parameters,
    action_defaults, auth_config, custom_actions, auth_mode, connection_status, client_id, client_secret_vault_id,
    callback_url, scopes_override, mcp_description_override, mcp_action_filter, mcp_action_descriptions,
    mcp_max_calls_per_turn, mcp_requires_confirmation, mcp_parameter_overrides, schema_version
  from tool_instances where org_id = $1 and workspace_id = $2 order by id desc limit $3`;
const TOTAL = 'select count(*)::int as n from tool_instances where org_id = $1 and workspace_id = $2';
/** Each tool once, however many instances of the page it has. */
const TOOLS = `select id, name, slug, category, icon_url, supported_step_types, action_schemas, config_schema,
    current_schema_version, min_schema_version
  from tools where id in (
    select tool_id from (select tool_id from tool_instances where org_id = $1 and workspace_id = $2
      order by id desc limit $3) page)`;

interface Named {
  name: string;
  [property: string]: unknown;
}

interface ToolRow {
  id: string;
  name: string;
  slug: string;
  category: string;
  icon_url: string | null;
  supported_step_types: string[];
  action_schemas: Named[];
  config_schema: Named[];
  current_schema_version: number;
  min_schema_version: number;
}

interface InstanceRow {
  instance_id: string;
  tool_id: string;
  workspace_id: string;
  namespace_id: string | null;
  name: string;
  description: string | null;
  created_by: string | null;
  created_at: Date;
  updated_at: Date;
  last_used_at: Date | null;
  usage_count: number;
  is_active: boolean;
  configuration: object;
  credential_refs: object;
  custom_action_parameters: Record<string, Named[]>;
  action_defaults: Record<string, Record<string, unknown>>;
  auth_config: object;
  custom_actions: Named[];
  auth_mode: string;
  connection_status: string;
  client_id: string | null;
  client_secret_vault_id: string | null;
  callback_url: string | null;
  scopes_override: string[];
  mcp_description_override: string | null;
  mcp_action_filter: string[];
  mcp_action_descriptions: Record<string, string>;
  mcp_max_calls_per_turn: number | null;
  mcp_requires_confirmation: boolean;
  mcp_parameter_overrides: Record<string, Record<string, object>>;
  schema_version: number;
}

function fieldOf(field: Named): object {
  const isSecret = field.type === 'secret' || field.widget === 'password' || field.sensitive === true;
  return {
    name: field.name,
    display_name: field.display_name ?? null,
    type: field.type ?? 'string',
    description: field.description ?? null,
    placeholder: field.placeholder ?? null,
    widget: field.widget ?? (isSecret ? 'password' : null),
    required: field.required ?? false,
    default: isSecret ? null : (field.default ?? null),
    options: field.options ?? [],
    validation: field.validation ?? {},
    widget_options: field.widget_options ?? {},
  };
}

function parametersOf(row: InstanceRow, { name, parameters }: Named): Named[] | null {
  const more = row.custom_action_parameters[name] ?? [];
  const defaults = row.action_defaults[name];
  const overrides = row.mcp_parameter_overrides[name];
  if (more.length === 0 && !defaults && !overrides) return null;
  const kept = ((parameters ?? []) as Named[]).filter((one) => !more.some((other) => other.name === one.name));
  return [...kept, ...more].map((parameter) => {
    const shown: Named = { ...parameter, ...overrides?.[parameter.name], name: parameter.name };
    const value = defaults?.[parameter.name];
    return value === undefined ? shown : { ...shown, default: value, required: false };
  });
}

function actionOf(row: InstanceRow, given: Named): Named {
  const shown = { ...given };
  const description = row.mcp_action_descriptions[given.name];
  if (description !== undefined) shown.description = description;
  const parameters = parametersOf(row, given);
  if (parameters) shown.parameters = parameters;
  if (row.mcp_requires_confirmation || given.is_destructive === true) shown.requires_confirmation = true;
  return shown;
}

function actionsOf(row: InstanceRow, tool: ToolRow): Named[] {
  const { custom_actions: own, mcp_action_filter: wanted } = row;
  const all = [...tool.action_schemas.filter(({ name }) => !own.some((other) => other.name === name)), ...own];
  return all.filter(({ name }) => wanted.length === 0 || wanted.includes(name)).map((one) => actionOf(row, one));
}

/** The instance as REST shows it, and what follows from its tool. */
function shown(row: InstanceRow, tool: ToolRow, configSchema: object[]): object {
  const credentialFields = Object.keys(row.credential_refs).sort();
  return {
    instance_id: row.instance_id,
    tool_id: row.tool_id,
    workspace_id: row.workspace_id,
    namespace_id: row.namespace_id,
    name: row.name,
    description: row.description,
    created_by: row.created_by,
    created_at: row.created_at,
    updated_at: row.updated_at,
    last_used_at: row.last_used_at,
    usage_count: row.usage_count,
    is_active: row.is_active,
    configuration: row.configuration,
    has_credentials: credentialFields.length > 0 || row.connection_status === 'connected',
    credential_refs: row.credential_refs,
    credential_fields: credentialFields,
    custom_action_parameters: row.custom_action_parameters,
    action_defaults: row.action_defaults,
    auth_config: row.auth_config,
    custom_actions: row.custom_actions,
    auth_mode: row.auth_mode,
    connection_status: row.connection_status,
    connection_credentials: {
      client_id: row.client_id,
      client_secret_vault_id: row.client_secret_vault_id,
      callback_url: row.callback_url,
      scopes_override: row.scopes_override,
    },
    mcp_description_override: row.mcp_description_override,
    mcp_action_filter: row.mcp_action_filter,
    mcp_action_descriptions: row.mcp_action_descriptions,
    mcp_max_calls_per_turn: row.mcp_max_calls_per_turn,
    mcp_requires_confirmation: row.mcp_requires_confirmation,
    mcp_parameter_overrides: row.mcp_parameter_overrides,
    schema_version: row.schema_version,
    upgrade_available: row.schema_version < tool.current_schema_version,
    latest_schema_version: tool.current_schema_version,
    schema_deprecated: row.schema_version < tool.min_schema_version,
    tool_name: tool.name,
    tool_slug: tool.slug,
    tool_category: tool.category,
    tool_icon_url: tool.icon_url,
    supported_step_types: tool.supported_step_types,
    effective_action_schemas: actionsOf(row, tool),
    tool_config_schema: configSchema,
  };
}

/** The hand-written list of tool instances: three statements at once, and what follows from the tools in JavaScript. */
export function addInstances(server: FastifyInstance, pool: Pool): void {
  server.get<{ Params: { org: string; workspace: string }; Querystring: { limit?: string } }>(
    '/v1/orgs/:org/workspaces/:workspace/tool-instances',
    async (request) => {
      const { org, workspace } = request.params;
      const limit = Number(request.query.limit ?? 50);
      const values = [org, workspace, limit + 1];
      const [page, tools, total] = await Promise.all([
        pool.query<InstanceRow>({ name: 'instances', text: PAGE, values }),
        pool.query<ToolRow>({ name: 'tools of instances', text: TOOLS, values }),
        pool.query<{ n: number }>({ name: 'instances total', text: TOTAL, values: [org, workspace] }),
      ]);
      const known = new Map(tools.rows.map((tool) => [tool.id, { tool, fields: tool.config_schema.map(fieldOf) }]));
      const rows = page.rows.map((row) => {
        const { tool, fields } = known.get(row.tool_id)!;
        return shown(row, tool, fields);
      });
      const cursor = rows.length > limit ? Buffer.from(page.rows[limit - 1]!.instance_id).toString('base64url') : null;
      return pageOf('instances', rows, limit, total.rows[0]!.n, cursor);
    },
  );
}
