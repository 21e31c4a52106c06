import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Sql } from '../../data/sql.ts';
import { projectRoot } from '../../paths.ts';
import { shapeCheck, type ToolJsonSchema } from './json-shape.ts';
import { strayPlaceholders } from './placeholders.ts';
import { customActionTypes, SLUG, statuses, toolCategories } from './tool.words.ts';
import { entryShapes, misplacedIn, toolNames } from './tool-shapes.ts';

const dir = path.join(projectRoot, 'src', 'tools', 'tools', 'built-in');

const text = { type: 'string', minLength: 1, maxLength: 4_000 } as const;
const url = { type: 'string', pattern: '^https://' } as const;
const list = { type: 'array', items: { type: 'object' } } as const;
const texts = { type: 'array', items: text } as const;

/** The form of a data file: a tool as REST shows it, without what the service keeps itself. */
export const builtInToolSchema: ToolJsonSchema = {
  type: 'object',
  required: ['id', 'name', 'slug', 'description', 'short_description', 'category', 'version', 'documentation_url'],
  additionalProperties: false,
  properties: {
    // lower than the identifier of any tool that is made: built-in tools come last
    id: { type: 'string', pattern: '^tool_0{22}[0-9A-HJKMNP-TV-Z]{4}$' },
    name: text,
    slug: { type: 'string', pattern: `^${SLUG}$`, maxLength: 64 },
    description: text,
    short_description: text,
    category: { type: 'string', enum: toolCategories },
    version: text,
    status: { type: 'string', enum: statuses, default: 'active' },
    icon_url: url,
    documentation_url: url,
    connection_service_name: text,
    author: text,
    tags: texts,
    supported_actions: texts,
    supported_step_types: texts,
    config_schema: list,
    credential_schema: list,
    action_schemas: list,
    mcp_functions: list,
    custom_action_type: { type: 'string', enum: customActionTypes },
    is_mcp_compatible: { type: 'boolean' },
    current_schema_version: { type: 'integer', minimum: 1 },
    min_schema_version: { type: 'integer', minimum: 1 },
    schema_changelog: { type: 'object', additionalProperties: text },
    supports_connection: { type: 'boolean' },
  },
};

/** A data file. */
export type BuiltInTool = Readonly<Record<string, unknown>> & { id: string; slug: string };

const initial = {
  status: 'active',
  icon_url: null,
  connection_service_name: null,
  author: null,
  tags: [],
  supported_actions: [],
  supported_step_types: [],
  config_schema: [],
  credential_schema: [],
  action_schemas: [],
  mcp_functions: [],
  custom_action_type: 'none',
  is_mcp_compatible: false,
  current_schema_version: 1,
  min_schema_version: 1,
  schema_changelog: {},
  supports_connection: false,
};

/** What is wrong with a data file, one line each. */
export function faultsOf(tool: Readonly<Record<string, unknown>>): string[] {
  const lists = { config_schema: 'configSchema', credential_schema: 'credentialSchema' } as const;
  const more = { action_schemas: 'actionSchemas', mcp_functions: 'mcpFunctions' } as const;
  const issues = [
    ...checkFile(tool),
    ...Object.entries({ ...lists, ...more }).flatMap(([column, name]) =>
      ((tool[column] ?? []) as object[]).flatMap((entry, index) =>
        entryShapes[name].check(entry).map((issue) => ({ ...issue, path: [column, index, ...issue.path] })),
      ),
    ),
    ...misplacedIn((tool.credential_schema ?? []) as object[]).map(({ path, ...issue }) => ({
      ...issue,
      path: ['credential_schema', ...path],
    })),
    ...strayPlaceholders(
      (tool.action_schemas ?? []) as object[],
      () => toolNames({ configSchema: tool.config_schema ?? [], credentialSchema: tool.credential_schema ?? [] }),
      ['action_schemas'],
    ),
  ];
  return issues.map((issue) => `${issue.path.join('.')}: ${issue.msg}`);
}

const checkFile = shapeCheck(builtInToolSchema);

/** The tools that come with the service, by the order of their identifiers. A test checks the files. */
export function readBuiltInTools(): BuiltInTool[] {
  const files = readdirSync(dir).filter((file) => file.endsWith('.json'));
  const read = files.map((file) => {
    const tool = JSON.parse(readFileSync(path.join(dir, file), 'utf8')) as BuiltInTool;
    return { ...initial, ...tool };
  });
  return read.sort((a, b) => (a.id < b.id ? -1 : 1));
}

const COLUMNS = [
  'id',
  'name',
  'slug',
  'description',
  'short_description',
  'category',
  'version',
  'documentation_url',
  ...Object.keys(initial),
];
const columnsOf = (alias: string) => COLUMNS.map((column) => `${alias}.${column}`).join(', ');

/**
 * Writes the built-in tools of this version to the database, where every organization's catalogue shows them. What is
 * as it should be is left alone; one that this version does not have is disabled, because instances may use it. Nodes
 * that start at once take turns: `on conflict (id)` alone refuses the second of two by the unique slug.
 */
export async function writeBuiltInTools(sql: Sql): Promise<void> {
  await sql.changeInTurn(
    'built-in tools',
    `with given as (select * from jsonb_populate_recordset(null::tools, $1)),
    gone as (
      update tools set status = 'disabled', updated_at = now()
      where org_id is null and status <> 'disabled' and id not in (select id from given)
    )
    insert into tools as t (${COLUMNS.join(', ')}) select ${columnsOf('g')} from given g order by g.id
    on conflict (id) do update set (${COLUMNS.join(', ')}, updated_at) = (select ${columnsOf('excluded')}, now())
    where (${columnsOf('t')}) is distinct from (${columnsOf('excluded')})`,
    [JSON.stringify(readBuiltInTools())],
  );
}
