import { OPEN_WORD } from '../../kernel/constraints.ts';
import { shapeCheck, type ToolJsonSchema } from '../../tools/tools/json-shape.ts';
import { customActionTypes, SLUG as TOOL_SLUG, statuses as toolStatuses } from '../../tools/tools/tool.words.ts';
import { definition, flag, form, free, key, list, name, recipeSchema, text } from '../recipes/recipe-schema.ts';
import { FORMAT, limits } from './workspace-document.ts';

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
const description = text('Free text.');
const slug = (of: string) =>
  ({ type: 'string', pattern: '^[a-z0-9]+(?:-[a-z0-9]+)*$', maxLength: 64, description: of }) as const;
const word = (of: string) => ({ type: 'string', pattern: `^(?:${OPEN_WORD})$`, description: of }) as const;
const short = (of: string, maxLength = 255) => ({ type: 'string', minLength: 1, maxLength, description: of }) as const;
const address = (of: string) => ({ type: 'string', maxLength: 2_048, description: of }) as const;
const count = (of: string, maximum = MAX_INTEGER) =>
  ({ type: 'integer', minimum: 1, maximum, description: of }) as const;
const texts = (of: string, maxItems: number, maxLength: number) =>
  ({ type: 'array', maxItems, items: { type: 'string', minLength: 1, maxLength }, description: of }) as const;
const objects = (of: string) => ({ type: 'array', maxItems: 100, items: { type: 'object' }, description: of }) as const;
const byName = (of: string, maxProperties: number) =>
  ({
    type: 'object',
    maxProperties,
    additionalProperties: { type: 'string', minLength: 1, maxLength: 4_000 },
    description: of,
  }) as const;
const tags = { ...texts('Labels.', 50, 64) };
const toolSlug = (of: string) =>
  ({ type: 'string', pattern: `^(?:${TOOL_SLUG})$`, maxLength: 64, description: of }) as const;

const namespace = form(
  ['slug', 'name'],
  { slug: slug('Unique in the workspace.'), name: name('A label.'), description },
  'A namespace besides `default`, which every workspace has.',
  'Workspace document namespace',
);

const environment = form(
  ['slug', 'name'],
  {
    slug: slug('Unique in the workspace.'),
    name: name('A label.'),
    description,
    is_default: flag('Whether it is the default, unless the workspace has one already. Default false.'),
    status: {
      type: 'string',
      enum: ['active', 'locked', 'archived'],
      default: 'active',
      description: 'What it can be used for.',
    },
  },
  'An environment, without what is deployed in it and without its secrets.',
  'Workspace document environment',
);

const limitNames = {
  max_tokens_per_month: count('Input and output tokens per month.'),
  max_requests_per_day: count('Requests per day.'),
  requests_per_minute: count('Requests per minute.'),
  tokens_per_minute: count('Input and output tokens per minute.'),
};

const entitlement = form(
  ['model'],
  {
    model: short('The model, as the organization calls it.', 128),
    limits: {
      type: 'object',
      properties: limitNames,
      additionalProperties: true,
      description: 'How much the workspace may use it.',
    },
    allowed_step_types: texts('Allowed step types. Empty allows all.', 100, 255),
    allowed_endpoints: texts('Allowed endpoints. Empty allows all.', 100, 255),
    allowed_purposes: texts('Allowed purposes. Empty allows all.', 100, 255),
    enabled: flag('Whether it is in force. Default true.'),
  },
  'A model that the workspace may use.',
  'Workspace document entitlement',
);

const tool = form(
  ['slug', 'name', 'description'],
  {
    slug: toolSlug('Unique in the organization and among the built-in tools.'),
    name: name('Display name.'),
    description: short('What the tool does.', 4_000),
    short_description: short('One sentence.'),
    category: word('A word. Default `custom`.'),
    version: short('Free text.'),
    status: { type: 'string', enum: toolStatuses, default: 'active', description: 'Whether it may be used.' },
    icon_url: address('Address of an image.'),
    documentation_url: address('Address of the documentation.'),
    connection_service_name: short('The service that a connection signs in to.'),
    author: short('Who made the tool.'),
    tags,
    supported_actions: texts('Names of what the tool can do.', 100, 128),
    supported_step_types: texts('Steps of an app that may use the tool.', 100, 128),
    config_schema: objects('The fields of the configuration.'),
    credential_schema: objects('The credentials.'),
    action_schemas: objects('The actions.'),
    mcp_functions: objects('Functions for MCP clients.'),
    custom_action_type: {
      type: 'string',
      enum: customActionTypes,
      default: 'none',
      description: 'Which custom actions instances may have.',
    },
    is_mcp_compatible: flag('Whether MCP clients may use the tool. Default false.'),
    current_schema_version: count('Version of the schemas. Default 1.', 1_000_000),
    min_schema_version: count('Instances of a lower version are deprecated. Default 1.', 1_000_000),
    schema_changelog: byName('What each schema version changed, by its number.', 1_000),
    supports_connection: flag('Whether instances may be connected. Default false.'),
  },
  'A tool of the organization itself. A tool that exists already is used as it is.',
  'Workspace document tool',
);

const client = form(
  [],
  {
    client_id: short('Identifier of the client at the provider.', 512),
    client_secret: short('`{{secret.NAME}}`, or a reference to another vault: never the secret.', 512),
    callback_url: address('Where the provider sends the user back to, if not to this service.'),
    scopes_override: texts("Scopes to ask for instead of the tool's scopes.", 100, 255),
  },
  'The client that connections sign in with.',
);

const instance = form(
  ['key', 'tool', 'name'],
  {
    key: key('Its local name: what steps call it by in `tool_instance`.'),
    tool: toolSlug('The slug of its tool.'),
    namespace: slug('The slug of its namespace. Without one, it is for the whole workspace.'),
    name: name('A label.'),
    description,
    configuration: free('Values of the fields of the tool, without those that it keeps secret.'),
    credentials: texts('Names of the values that it keeps secret: they must be given to the copy.', 200, 255),
    auth_mode: word('How it signs in.'),
    auth_config: free('Free-form settings of the authentication, without secrets.'),
    connection_credentials: client,
    custom_actions: objects('Actions of the instance itself.'),
    custom_action_parameters: free('Further parameters, by action.'),
    action_defaults: free('Values of parameters, by action.'),
    is_active: flag('Whether it may be used. Default true.'),
    mcp_description_override: text('Description for models.'),
    mcp_action_filter: texts('Names of the only actions of the instance; empty for all.', 200, 128),
    mcp_action_descriptions: byName('Descriptions of actions for models, by action.', 200),
    mcp_max_calls_per_turn: count('The most calls in one turn of a model.', 1_000),
    mcp_requires_confirmation: flag('Whether every action needs confirmation. Default false.'),
    mcp_parameter_overrides: free('Properties that replace properties of parameters, by action.'),
    schema_version: count(
      'The version of the tool that the configuration is for. Default: the current one.',
      1_000_000,
    ),
  },
  'A tool instance. It holds no credentials and no connection.',
  'Workspace document tool instance',
);

const { namespace: _made, ...parts } = definition.properties!;
const appDefinition = form(
  definition.required!.filter((part) => part !== 'namespace'),
  parts,
  'What the app is made of, as in a recipe. In `tool_instance`, steps name instances of the document by their keys.',
);
const app = form(
  ['key', 'definition'],
  {
    key: key('Its local name.'),
    needs_embedding: flag('Whether it needs an embedding model. Default false.'),
    definition: appDefinition,
  },
  'An app.',
  'Workspace document app',
);

const { parameter: _parameter, ...recipeParts } = recipeSchema.$defs!;

/** The form of a whole workspace. Published at `/schemas/workspace.json`. */
export const workspaceSchema: ToolJsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Workspace document',
  ...form(
    ['format', 'version', 'workspace'],
    {
      $schema: address('Where this schema is, for editors.'),
      format: { type: 'string', enum: [FORMAT], description: 'What the document is of.' },
      version: { type: 'integer', minimum: 1, maximum: 1, description: 'The version of the form: 1.' },
      workspace: form(
        ['name'],
        {
          name: name('What it is called.'),
          description,
          tags,
          language: short('The language of its artifacts, as ISO 639-1.', 16),
        },
        'Settings of the workspace. An import does not change the settings of its target workspace.',
      ),
      requirements: recipeSchema.properties!.requirements!,
      namespaces: list(limits.namespaces, 'namespace', 'Namespaces.'),
      tools: list(limits.tools, 'tool', 'The tools of the organization itself that the workspace uses.'),
      tool_instances: list(limits.tool_instances, 'instance', 'Tool instances.'),
      environments: list(limits.environments, 'environment', 'Environments.'),
      entitlements: list(limits.entitlements, 'entitlement', 'The models that the workspace may use.'),
      apps: list(limits.apps, 'app', 'Apps.'),
    },
    'A whole workspace, without members, tokens, contents, connections, and without any value that is kept secret. ' +
      'Texts refer to what is in the document by {{workspace}} and {{workspace.KIND.KEY}}, such as ' +
      '{{workspace.namespace.SLUG}}; texts of an app also to its own parts, as in a recipe.',
  ),
  $defs: { ...recipeParts, namespace, environment, entitlement, tool, instance, app },
};

/** Checks the form of a document. What its parts say about each other is checked by `planOfDocument`. */
export const checkWorkspaceForm = shapeCheck(workspaceSchema);
