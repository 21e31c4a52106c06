import { builder } from '../../graphql/builder.ts';
import { inWorkspace, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import { ConnectionStatusEnum } from '../connections/connection.enums.ts';
import { Tool } from '../tools/tool.graph.ts';
import type { ConfigFieldDescriptor } from './config-field.ts';
import { CreateToolInstanceInput, UpdateToolInstanceInput } from './tool-instance.inputs.ts';
import type { ToolInstance as ToolInstanceRow } from './tool-instance.reads.ts';
import type { UpgradeResult } from './tool-instance.service.ts';
import type { ToolTestResult } from './tool-instance.test-call.ts';

const ConfigField = builder.objectRef<ConfigFieldDescriptor>('ConfigField').implement({
  description: 'A field of the configuration of a tool, with everything that a form needs.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'The key of its value.' }),
    displayName: t.exposeString('displayName', { nullable: true, description: 'The label in a form.' }),
    type: t.exposeString('type', { description: '`string`, `integer`, `boolean`, `secret`, … or another word.' }),
    description: t.exposeString('description', { nullable: true, description: 'What it is for.' }),
    placeholder: t.exposeString('placeholder', { nullable: true, description: 'Shown in an empty field.' }),
    widget: t.exposeString('widget', {
      nullable: true,
      description: 'The widget in a form: `text`, `select`, … or another word. Values of the vault have `password`.',
    }),
    required: t.exposeBoolean('required', { description: 'Whether it must have a value.' }),
    default: t.expose('default', { type: 'JSON', nullable: true, description: 'Its value if none is given.' }),
    options: t.expose('options', { type: ['StringMap'], description: 'Values to choose from, each with a label.' }),
    validation: t.expose('validation', { type: 'JSONObject', description: 'Bounds of its value.' }),
    widgetOptions: t.expose('widgetOptions', { type: 'JSONObject', description: 'Settings of the widget.' }),
  }),
});

const ConnectionCredentials = builder.objectRef<ToolInstanceRow>('ConnectionCredentials').implement({
  description: 'The client that the connections of an instance sign in with.',
  fields: (t) => ({
    clientId: t.exposeString('clientId', { nullable: true, description: 'Identifier of the client at the provider.' }),
    clientSecretVaultId: t.exposeString('clientSecretVaultId', {
      nullable: true,
      description: "A reference to the client's secret.",
    }),
    callbackUrl: t.exposeString('callbackUrl', {
      nullable: true,
      description: 'Where the provider sends the user back to, if not to this service.',
    }),
    scopesOverride: t.exposeStringList('scopesOverride', {
      description: "Scopes to ask for instead of the tool's scopes.",
    }),
  }),
});

export const ToolInstance = builder.objectRef<ToolInstanceRow>('ToolInstance').implement({
  description: 'The configured use of a tool in a workspace. It shows no credentials.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    toolId: t.exposeID('toolId', { description: 'The tool.' }),
    namespaceId: t.exposeID('namespaceId', {
      nullable: true,
      description: 'The namespace that it belongs to; `null` for the whole workspace.',
    }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    configuration: t.expose('configuration', {
      type: 'JSONObject',
      description: 'Values by the names of the fields of the tool, without sensitive values.',
    }),
    hasCredentials: t.exposeBoolean('hasCredentials', {
      description: 'Whether the vault has credentials, or the instance is connected.',
    }),
    credentialRefs: t.expose('credentialRefs', {
      type: 'StringMap',
      description: 'References to what is in the vault, by the name of the field.',
    }),
    credentialFields: t.exposeStringList('credentialFields', {
      description: 'The names of the fields whose values are in the vault.',
    }),
    customActionParameters: t.expose('customActionParameters', {
      type: 'JSONObject',
      description: 'By the name of an action: a list of additional parameters.',
    }),
    actionDefaults: t.expose('actionDefaults', {
      type: 'JSONObject',
      description: 'By the name of an action: values of its parameters.',
    }),
    authConfig: t.expose('authConfig', { type: 'JSONObject', description: 'Settings of the authentication.' }),
    customActions: t.expose('customActions', { type: ['JSONObject'], description: 'Actions of the instance itself.' }),
    authMode: t.exposeString('authMode', { description: '`vault`, `oauth2`, `api_key`, `none` or another word.' }),
    connectionStatus: t.expose('connectionStatus', {
      type: ConnectionStatusEnum,
      description: 'The status of the connection for the whole workspace.',
    }),
    connectionCredentials: t.field({
      type: ConnectionCredentials,
      authorize: 'inherited',
      description: 'The client that connections sign in with.',
      resolve: (instance) => instance,
    }),
    isActive: t.exposeBoolean('isActive', { description: 'Whether it may be used.' }),
    usageCount: t.exposeInt('usageCount', { description: 'How many calls were made with it.' }),
    actionCounts: t.expose('actionCounts', {
      type: 'JSONObject',
      description: 'By the name of an action: how often it was `executed`, and how often it `failed`.',
    }),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When the last call was made with it.')),
    mcpDescriptionOverride: t.exposeString('mcpDescriptionOverride', {
      nullable: true,
      description: 'Description for models.',
    }),
    mcpActionFilter: t.exposeStringList('mcpActionFilter', {
      description: 'Names of the only actions of the instance; empty for all.',
    }),
    mcpActionDescriptions: t.expose('mcpActionDescriptions', {
      type: 'StringMap',
      description: 'Descriptions of actions for models, by the name of the action.',
    }),
    mcpMaxCallsPerTurn: t.exposeInt('mcpMaxCallsPerTurn', {
      nullable: true,
      description: 'The most calls in one turn of a model. `null` is no limit.',
    }),
    mcpRequiresConfirmation: t.exposeBoolean('mcpRequiresConfirmation', {
      description: 'Whether every action needs confirmation. Destructive actions always do.',
    }),
    mcpParameterOverrides: t.expose('mcpParameterOverrides', {
      type: 'JSONObject',
      description:
        'By the name of an action, then by the name of a parameter: properties that replace properties of the ' +
        'parameter.',
    }),
    schemaVersion: t.exposeInt('schemaVersion', {
      description: 'The schema version of the tool that it was made for.',
    }),
    upgradeAvailable: t.exposeBoolean('upgradeAvailable', { description: 'Whether the tool has a later schema.' }),
    latestSchemaVersion: t.exposeInt('latestSchemaVersion', { description: 'The latest schema version of the tool.' }),
    schemaDeprecated: t.exposeBoolean('schemaDeprecated', {
      description: 'Whether the schema version is below the lowest that the tool supports.',
    }),
    metadata: t.expose('metadata', {
      type: 'JSONObject',
      description:
        'Free-form data of the service. `removed` has the values that upgrades removed from the configuration.',
    }),
    toolName: t.exposeString('toolName', { description: 'The name of the tool.' }),
    toolSlug: t.exposeString('toolSlug', { description: 'The slug of the tool.' }),
    toolCategory: t.exposeString('toolCategory', { description: 'The category of the tool.' }),
    toolIconUrl: t.exposeString('toolIconUrl', { nullable: true, description: 'The image of the tool.' }),
    supportedStepTypes: t.exposeStringList('supportedStepTypes', {
      description: 'Steps of an app that may use the tool.',
    }),
    effectiveActionSchemas: t.expose('effectiveActionSchemas', {
      type: ['JSONObject'],
      description:
        'The actions of the tool and its own, filtered, with its parameters, defaults, descriptions and overrides.',
    }),
    toolConfigSchema: t.expose('toolConfigSchema', {
      type: [ConfigField],
      authorize: 'inherited',
      description: 'The fields of the configuration.',
    }),
  }),
});

inWorkspace(ToolInstance, 'tool_instance');
tracked(ToolInstance);
refersTo(ToolInstance, {
  workspaceId: 'workspace',
  namespaceId: 'namespace',
  toolId: { kind: 'tool', required: true },
});

const filters = () =>
  builder.args((t) => ({
    toolId: t.id({ constraints: bounds.id, description: 'Only instances of this tool.' }),
    activeOnly: t.boolean({ required: true, defaultValue: false, description: 'Only active instances.' }),
  }));

const ToolInstanceConnection = readable(ToolInstance, {
  kind: 'tool_instance',
  below: Workspace,
  reads: ({ toolInstances }) => toolInstances.reads,
  filters,
});

builder.objectField(Tool, 'instances', (t) =>
  t.field({
    type: ToolInstanceConnection,
    description: 'The instances of the tool that the caller may see, in all workspaces, newest first.',
    authorize: { organization: 'organization:access', service: 'tool_instance:read' },
    args: {
      ...builder.args((of) => ({
        activeOnly: of.boolean({ required: true, defaultValue: false, description: 'Only active instances.' }),
      })),
      ...pageArgs(),
    },
    resolve: (row, args, context) => context.services.toolInstances.listOfTool(context, inside.tool(row), args),
  }),
);

const target = () => ({ ...workspaceArgs(), ...idArg('The instance.') });

const UpgradeToolInstanceInput = builder.inputType('UpgradeToolInstanceInput', {
  description: 'What an upgrade needs to know.',
  fields: (t) => ({
    configuration: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: 256 * 1024, sensitive: true },
      description: 'Values for fields of the latest schema, in addition to the existing values.',
    }),
  }),
});

const TestToolInstanceInput = builder.inputType('TestToolInstanceInput', {
  description: 'The action to call, and its parameters.',
  fields: (t) => ({
    action: t.string({
      constraints: { minLength: 1, maxLength: 128 },
      description: 'The name of an action. Default: the first action that only reads.',
    }),
    parameters: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: 64 * 1024, sensitive: true },
      description: 'Values of its parameters.',
    }),
    dryRun: t.boolean({ description: 'Prepares the request and sends nothing. Default false.' }),
  }),
});

const ToolInstanceTestResult = builder.objectRef<ToolTestResult>('ToolInstanceTestResult').implement({
  description: 'How a test of an instance ended.',
  fields: (t) => ({
    success: t.exposeBoolean('success', { description: 'Whether the provider answered with a success.' }),
    message: t.exposeString('message', { description: 'A sentence for people.' }),
    details: t.expose('details', {
      type: 'JSONObject',
      description:
        '`code`, for programs: `ok`, `dry_run`, `nothing_to_call`, `no_credentials`, `schema_mismatch`, ' +
        '`http_401` and other statuses, `timeout`, `network`, `blocked_address`, …; and `action`, `method`, ' +
        '`host` and `status`.',
    }),
    latencyMs: t.exposeInt('latencyMs', { description: 'Time of the call in milliseconds; 0 if none was made.' }),
  }),
});

const UpgradeToolInstanceResult = builder.objectRef<UpgradeResult>('UpgradeToolInstanceResult').implement({
  description: 'What an upgrade did.',
  fields: (t) => ({
    instanceId: t.exposeID('instanceId', { description: 'The instance.' }),
    previousVersion: t.exposeInt('previousVersion', { description: 'Its schema version before.' }),
    newVersion: t.exposeInt('newVersion', {
      description: 'Its schema version now; the same as before if nothing changed.',
    }),
    migrationApplied: t.exposeBoolean('migrationApplied', { description: 'Whether the instance was changed.' }),
    changelog: t.exposeString('changelog', { description: 'The changes of the versions in between, one line each.' }),
    instance: t.expose('instance', { type: ToolInstance, authorize: 'inherited', description: 'The instance.' }),
  }),
});

const DeleteToolInstancePayload = deletePayload('DeleteToolInstance', {
  noun: 'instance',
  in: ['orgId', 'workspaceId'],
  maybeIn: ['namespaceId'],
});

builder.mutationFields((t) => ({
  createToolInstance: t.field({
    type: ToolInstance,
    description: 'Configures a tool for a workspace. Fails for a disabled tool.',
    authorize: { workspace: 'tool_instance:create' },
    emits: ['tool_instance.created'],
    args: { ...workspaceArgs(), ...inputArg(CreateToolInstanceInput, 'The instance.') },
    resolve: ({ workspace }, { input }, { caller, services }) =>
      services.toolInstances.create(caller, workspace, input),
  }),
  updateToolInstance: t.field({
    type: ToolInstance,
    description: 'Changes an instance. Members may change only the instances that they created.',
    authorize: { workspace: 'tool_instance:update' },
    emits: ['tool_instance.updated'],
    args: { ...target(), ...inputArg(UpdateToolInstanceInput), ...versionArg() },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.toolInstances.update(caller, workspace, id, input),
  }),
  deleteToolInstance: t.field({
    type: DeleteToolInstancePayload,
    description:
      'Deletes an instance, its connections and its credentials. Members may delete only instances that they ' +
      'created. While steps use the instance, it fails with `RESOURCE_CONFLICT`, `in_use`.',
    authorize: { workspace: 'tool_instance:delete' },
    emits: ['tool_instance.deleted'],
    mayEmit: ['connection.deleted', 'augmentation.updated'],
    args: {
      ...target(),
      force: t.arg.boolean({
        required: true,
        defaultValue: false,
        description:
          'Deletes the instance even while steps use it, which needs `augmentation:update`. The steps then have ' +
          'no instance, and keep the slug of its tool.',
      }),
      ...versionArg(),
    },
    resolve: ({ workspace }, { id, force }, { caller, services }) =>
      services.toolInstances.delete(caller, workspace, id, { force }),
  }),
  testToolInstance: t.field({
    type: ToolInstanceTestResult,
    description:
      'Calls the provider of an instance, for at most 10 seconds. A failure of the provider is a result, not an ' +
      'error. An inactive instance only gets a dry run. At most 30 tests a minute for each user.',
    authorize: { workspace: 'tool_instance:execute' },
    activity: { action: 'execute', resourceType: 'tool_instance', byResolver: true },
    args: {
      ...target(),
      input: t.arg({ type: TestToolInstanceInput, description: 'The action to call, and its parameters.' }),
    },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.toolInstanceTests.run(caller, workspace, id, input ?? {}),
  }),
  toggleToolInstance: t.field({
    type: ToolInstance,
    description: 'Switches an instance on or off. Members may switch only the instances that they created.',
    authorize: { workspace: 'tool_instance:update' },
    activity: { action: 'toggle', resourceType: 'tool_instance' },
    emits: ['tool_instance.toggled'],
    args: {
      ...target(),
      isActive: t.arg.boolean({ required: true, description: 'Whether it may be used from now on.' }),
      ...versionArg(),
    },
    resolve: ({ workspace }, { id, isActive }, { caller, services }) =>
      services.toolInstances.toggle(caller, workspace, id, isActive),
  }),
  upgradeToolInstance: t.field({
    type: UpgradeToolInstanceResult,
    description:
      'Upgrades an instance to the latest schema of its tool. Defaults are filled in, and removed keys are kept ' +
      'in `metadata.removed`. Fails with `manual_migration_required` if a required field has no value.',
    authorize: { workspace: 'tool_instance:update' },
    activity: { action: 'upgrade', resourceType: 'tool_instance' },
    emits: ['tool_instance.upgraded'],
    args: {
      ...target(),
      input: t.arg({ type: UpgradeToolInstanceInput, description: 'Values for new fields.' }),
      ...versionArg(),
    },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.toolInstances.upgrade(caller, workspace, id, input?.configuration ?? null),
  }),
}));
