import { MAX_JSON_DEPTH } from '../../kernel/constraints.ts';
import { type JsonBounds, MAX_JSON_VALUES } from '../../kernel/json-shape.ts';
import type { RecipeDefinition, RecipeRequirements } from '../recipes/recipe-document.ts';

type FreeForm = Record<string, unknown>;

/** What a workspace document begins with. */
export const FORMAT = 'workspace';
export const VERSION = 1;

/**
 * The most of each part that a document has, and the most bytes of its JSON: with what is around it, one request to
 * `/graphql` takes it.
 */
export const limits = {
  bytes: 960 * 1024,
  namespaces: 200,
  tools: 100,
  tool_instances: 500,
  environments: 100,
  entitlements: 500,
  apps: 200,
} as const;

/**
 * The most values of a document, with its keys, and its depth: what the body of an import may have, without room for
 * a mapping of some three hundred names.
 */
export const bounds: JsonBounds = { maxDepth: MAX_JSON_DEPTH, maxValues: MAX_JSON_VALUES - 1_000 };

/** The lists of a document. */
export type PartName = Exclude<keyof typeof limits, 'bytes'>;

interface NamedPart {
  name: string;
  description?: string | null;
}

export interface NamespacePart extends NamedPart {
  slug: string;
}

export interface EnvironmentPart extends NamedPart {
  slug: string;
  is_default?: boolean | null;
  status?: string | null;
}

export interface EntitlementPart {
  model: string;
  limits?: FreeForm | null;
  allowed_step_types?: string[] | null;
  allowed_endpoints?: string[] | null;
  allowed_purposes?: string[] | null;
  enabled?: boolean | null;
}

/** A tool of the organization itself. The names are those of REST. */
export interface ToolPart extends NamedPart {
  slug: string;
  description: string;
  short_description?: string | null;
  category?: string | null;
  version?: string | null;
  status?: string | null;
  icon_url?: string | null;
  documentation_url?: string | null;
  connection_service_name?: string | null;
  author?: string | null;
  tags?: string[] | null;
  supported_actions?: string[] | null;
  supported_step_types?: string[] | null;
  config_schema?: FreeForm[] | null;
  credential_schema?: FreeForm[] | null;
  action_schemas?: FreeForm[] | null;
  mcp_functions?: FreeForm[] | null;
  custom_action_type?: string | null;
  is_mcp_compatible?: boolean | null;
  current_schema_version?: number | null;
  min_schema_version?: number | null;
  schema_changelog?: Record<string, string> | null;
  supports_connection?: boolean | null;
}

/** A tool instance, known in the document by its key. It holds nothing that is kept secret. */
export interface InstancePart extends NamedPart {
  key: string;
  /** The slug of its tool. */
  tool: string;
  /** The slug of its namespace; absent for an instance of the whole workspace. */
  namespace?: string | null;
  configuration?: FreeForm | null;
  /** Names of the values that it keeps secret. */
  credentials?: string[] | null;
  auth_mode?: string | null;
  auth_config?: FreeForm | null;
  connection_credentials?: ClientPart | null;
  custom_actions?: FreeForm[] | null;
  custom_action_parameters?: FreeForm | null;
  action_defaults?: FreeForm | null;
  is_active?: boolean | null;
  mcp_description_override?: string | null;
  mcp_action_filter?: string[] | null;
  mcp_action_descriptions?: Record<string, string> | null;
  mcp_max_calls_per_turn?: number | null;
  mcp_requires_confirmation?: boolean | null;
  mcp_parameter_overrides?: FreeForm | null;
  schema_version?: number | null;
}

/** The client that connections of an instance sign in with. */
export interface ClientPart {
  client_id?: string | null;
  /** `{{secret.NAME}}`, or a reference to another vault. */
  client_secret?: string | null;
  callback_url?: string | null;
  scopes_override?: string[] | null;
}

/** What an app is made of: the definition of a recipe, without the namespace. */
export type AppDefinition = Omit<RecipeDefinition, 'namespace'>;

export interface AppPart {
  key: string;
  needs_embedding?: boolean | null;
  definition: AppDefinition;
}

/** What people set of a workspace. */
export interface WorkspaceSettings extends NamedPart {
  tags?: string[] | null;
  language?: string | null;
}

/** A whole workspace: the form that `/schemas/workspace.json` describes. */
export interface WorkspaceDocument {
  format: typeof FORMAT;
  version: typeof VERSION;
  workspace: WorkspaceSettings;
  requirements?: RecipeRequirements | null;
  namespaces: NamespacePart[];
  tools: ToolPart[];
  tool_instances: InstancePart[];
  environments: EnvironmentPart[];
  entitlements: EntitlementPart[];
  apps: AppPart[];
}

/** Local names of what is around the apps of a document, by which texts refer to it. */
export const localName = (kind: 'namespace' | 'environment' | 'tool_instance' | 'app', key: string): string =>
  `workspace.${kind}.${key}`;

/** The local name of the workspace. */
export const WORKSPACE = 'workspace';
