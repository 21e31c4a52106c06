import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import type { Constraints } from '../../kernel/constraints.ts';

const MAX_SMALL_BYTES = 64 * 1024;
/** Objects by action or parameter. */
const byAction = { maxBytes: MAX_SMALL_BYTES } as const satisfies Constraints;
const clientText = { minLength: 1, maxLength: 512 } as const satisfies Constraints;
const scopes = { maxItems: 100, item: { minLength: 1, maxLength: 255 } } as const satisfies Constraints;
const actionNames = { maxItems: 200, item: { minLength: 1, maxLength: 128 } } as const satisfies Constraints;
const descriptions = { maxItems: 200, item: { minLength: 1, maxLength: 4_000 } } as const satisfies Constraints;
const actions = { maxItems: 100, item: { maxBytes: MAX_SMALL_BYTES } } as const satisfies Constraints;
/** Its errors show no value, because some of them are credentials. */
const configuration = { maxBytes: 256 * 1024, sensitive: true } as const satisfies Constraints;
const kept = <Bounds extends Constraints>(constraints: Bounds) => ({ ...constraints, notNull: true }) as const;

const ConnectionCredentialsInput = builder.inputType('ConnectionCredentialsInput', {
  description: 'The client that connections sign in with. Omitted fields are cleared.',
  fields: (t) => ({
    clientId: t.string({ constraints: clientText, description: 'Identifier of the client at the provider.' }),
    clientSecretVaultId: t.string({
      constraints: { ...clientText, sensitive: true },
      description:
        "A reference to the client's secret, never the secret: `secret://name` for a secret of the organization " +
        'itself, or `sec_…` for any secret in the organization.',
    }),
    callbackUrl: t.string({
      constraints: { maxLength: 2_048, format: 'uri' },
      description: 'Where the provider sends the user back to, if not to this service.',
    }),
    scopesOverride: t.stringList({
      constraints: scopes,
      description: "Scopes to ask for instead of the tool's scopes.",
    }),
  }),
});

const CONFIGURATION =
  'Values by the names of the fields in the config and credential schemas of the tool. Sensitive values go to the ' +
  'vault and are never shown again; an omitted value stays there, and `null` removes it. Defaults are filled in. ' +
  'A key that the tool does not know is refused, unless it has no config schema.';
const AUTH_MODE = '`vault`, `oauth2`, `api_key`, `none` or another word.';
const CUSTOM_ACTIONS =
  'Actions of the instance itself, as the custom-action schemas describe them. An action replaces an action of ' +
  'the tool with the same name.';
const PARAMETERS =
  'By the name of an action: a list of additional parameters. A parameter replaces one of the same name.';
const DEFAULTS = 'By the name of an action: values of its parameters, which then need not be given.';
const OVERRIDES =
  'By the name of an action, then by the name of a parameter: properties that replace properties of the parameter.';
const FILTER = 'Names of the only actions of the instance; empty for all.';
const DESCRIPTIONS = 'Descriptions of actions for models, by the name of the action.';

export const CreateToolInstanceInput = builder.inputType('CreateToolInstanceInput', {
  description: 'A new instance of a tool.',
  fields: (t) => ({
    toolId: t.id({ required: true, constraints: bounds.id, description: 'The tool.' }),
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    namespaceId: t.id({
      constraints: bounds.id,
      description: 'The namespace that it belongs to, or `default`. Without one, it is for the whole workspace.',
    }),
    configuration: t.field({ type: 'JSONObject', constraints: configuration, description: CONFIGURATION }),
    authMode: t.string({ constraints: bounds.open, description: `${AUTH_MODE} Default \`vault\`.` }),
    authConfig: t.field({
      type: 'JSONObject',
      constraints: byAction,
      description: 'Free-form settings of the authentication, without secrets.',
    }),
    connectionCredentials: t.field({
      type: ConnectionCredentialsInput,
      description: 'The client that connections sign in with.',
    }),
    customActions: t.field({ type: ['JSONObject'], constraints: actions, description: CUSTOM_ACTIONS }),
    customActionParameters: t.field({ type: 'JSONObject', constraints: byAction, description: PARAMETERS }),
    actionDefaults: t.field({ type: 'JSONObject', constraints: byAction, description: DEFAULTS }),
    isActive: t.boolean({ description: 'Whether it may be used. Default true.' }),
    mcpDescriptionOverride: t.string({ constraints: bounds.description, description: 'Description for models.' }),
    mcpActionFilter: t.stringList({ constraints: actionNames, description: FILTER }),
    mcpActionDescriptions: t.field({ type: 'StringMap', constraints: descriptions, description: DESCRIPTIONS }),
    mcpMaxCallsPerTurn: t.int({
      constraints: { min: 1, max: 1_000 },
      description: 'The most calls in one turn of a model. No limit if omitted.',
    }),
    mcpRequiresConfirmation: t.boolean({
      description: 'Whether every action needs confirmation. Default false. Destructive actions always do.',
    }),
    mcpParameterOverrides: t.field({ type: 'JSONObject', constraints: byAction, description: OVERRIDES }),
  }),
});

export const UpdateToolInstanceInput = builder.inputType('UpdateToolInstanceInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    configuration: t.field({
      type: 'JSONObject',
      constraints: kept(configuration),
      description: `Replaces the configuration. ${CONFIGURATION}`,
    }),
    authMode: t.string({ constraints: kept(bounds.open), description: AUTH_MODE }),
    authConfig: t.field({
      type: 'JSONObject',
      constraints: kept(byAction),
      description: 'Free-form settings of the authentication, without secrets.',
    }),
    connectionCredentials: t.field({
      type: ConnectionCredentialsInput,
      description: 'Replaces the client that connections sign in with. `null` removes it.',
    }),
    customActions: t.field({ type: ['JSONObject'], constraints: kept(actions), description: CUSTOM_ACTIONS }),
    customActionParameters: t.field({ type: 'JSONObject', constraints: kept(byAction), description: PARAMETERS }),
    actionDefaults: t.field({ type: 'JSONObject', constraints: kept(byAction), description: DEFAULTS }),
    isActive: t.boolean({ constraints: { notNull: true }, description: 'Whether it may be used.' }),
    mcpDescriptionOverride: t.string({ constraints: bounds.description, description: 'Description for models.' }),
    mcpActionFilter: t.stringList({ constraints: kept(actionNames), description: FILTER }),
    mcpActionDescriptions: t.field({ type: 'StringMap', constraints: kept(descriptions), description: DESCRIPTIONS }),
    mcpMaxCallsPerTurn: t.int({
      constraints: { min: 1, max: 1_000 },
      description: 'The most calls in one turn of a model. `null` is no limit.',
    }),
    mcpRequiresConfirmation: t.boolean({
      constraints: { notNull: true },
      description: 'Whether every action needs confirmation. Destructive actions always do.',
    }),
    mcpParameterOverrides: t.field({ type: 'JSONObject', constraints: kept(byAction), description: OVERRIDES }),
  }),
});
