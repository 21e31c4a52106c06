import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { CustomActionType, ToolStatus } from './tool.enums.ts';
import { SLUG, toolCategories } from './tool.words.ts';
import { entriesOf, entryShapes } from './tool-shapes.ts';

const text = { minLength: 1, maxLength: 255 } as const satisfies Constraints;
const longText = { minLength: 1, maxLength: 4_000 } as const satisfies Constraints;
const address = { maxLength: 2_048, format: 'uri' } as const satisfies Constraints;
const slug = { pattern: SLUG, maxLength: 64 } as const satisfies Constraints;
const words = { maxItems: 100, item: { minLength: 1, maxLength: 128 } } as const satisfies Constraints;
const changelog = { maxItems: 1_000, item: { minLength: 1, maxLength: 4_000 } } as const satisfies Constraints;

const said = (values: readonly string[]) => values.map((value) => `\`${value}\``).join(', ');
const CATEGORIES = `${said(toolCategories)} or another word.`;
const OTHERS = 'Other properties are refused, except those that begin with `x-`.';
const CONFIG =
  'The fields of the configuration: `name`, `display_name`, `type`, `description`, `placeholder`, `widget`, ' +
  '`required`, `default`, `options`, `validation`, `widget_options`, and `sensitive` for what belongs in the vault. ' +
  OTHERS;
const CREDENTIALS =
  'The credentials: fields as in the configuration; with `placement` (`in`, `name`, `prefix`) the value goes ' +
  'into each request. An entry of the type `oauth2` describes a service: `authorization_url`, `token_url`, ' +
  '`revocation_url`, `scopes`, `scope_separator`, `pkce`, `token_endpoint_auth_method`, `authorization_parameters`, ' +
  '`userinfo_url` with `account_label_path` (`$.email`) for the name of the account, `resource` that tokens are for, ' +
  'and `issuer` with `authorization_response_iss_parameter_supported`. ' +
  OTHERS;
const ACTIONS =
  'The actions: `name`, `description`, `parameters`, and the request like that of a custom REST action ' +
  '(`method`, `url_template`, …). A placeholder names a parameter of the action, a field of the configuration or a ' +
  `credential. ${OTHERS}`;
const CHANGELOG = 'What each schema version changed, by its number.';

/** The fields that a new tool and a change have in common. */
const common = () =>
  ({
    shortDescription: { constraints: text, description: 'One sentence.' },
    iconUrl: { constraints: address, description: 'Address of an image.' },
    documentationUrl: { constraints: address, description: 'Address of the documentation.' },
    connectionServiceName: { constraints: text, description: 'The service that a connection signs in to: `github`.' },
    author: { constraints: text, description: 'Who made the tool.' },
  }) as const;

export const CreateToolInput = builder.inputType('CreateToolInput', {
  description: 'A new tool of the organization.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name.' }),
    slug: t.string({
      required: true,
      constraints: slug,
      description: 'Unique in the organization and among the built-in tools.',
    }),
    description: t.string({ required: true, constraints: longText, description: 'What the tool does.' }),
    shortDescription: t.string(common().shortDescription),
    category: t.string({ constraints: bounds.open, description: `${CATEGORIES} Default \`custom\`.` }),
    version: t.string({ constraints: text, description: 'Free text. Default `1.0.0`.' }),
    status: t.field({ type: ToolStatus, description: 'Its status. Default `active`.' }),
    iconUrl: t.string(common().iconUrl),
    documentationUrl: t.string(common().documentationUrl),
    connectionServiceName: t.string(common().connectionServiceName),
    author: t.string(common().author),
    tags: t.stringList({ constraints: { ...bounds.tags, notNull: false }, description: 'Labels.' }),
    supportedActions: t.stringList({ constraints: words, description: 'Names of what the tool can do.' }),
    supportedStepTypes: t.stringList({ constraints: words, description: 'Steps of an app that may use the tool.' }),
    configSchema: t.field({
      type: ['JSONObject'],
      constraints: entriesOf(entryShapes.configSchema),
      description: CONFIG,
    }),
    credentialSchema: t.field({
      type: ['JSONObject'],
      constraints: entriesOf(entryShapes.credentialSchema),
      description: CREDENTIALS,
    }),
    actionSchemas: t.field({
      type: ['JSONObject'],
      constraints: entriesOf(entryShapes.actionSchemas),
      description: ACTIONS,
    }),
    mcpFunctions: t.field({
      type: ['JSONObject'],
      constraints: entriesOf(entryShapes.mcpFunctions),
      description: 'Functions for MCP clients: `name`, `description`, `input_schema`.',
    }),
    customActionType: t.field({
      type: CustomActionType,
      description: 'Which custom actions instances may have. Default `none`.',
    }),
    isMcpCompatible: t.boolean({ description: 'Whether MCP clients may use the tool. Default false.' }),
    schemaChangelog: t.field({ type: 'StringMap', constraints: changelog, description: CHANGELOG }),
    supportsConnection: t.boolean({ description: 'Whether instances may be connected. Default false.' }),
  }),
});

const kept = <Bounds extends Constraints>(constraints: Bounds) => ({ ...constraints, notNull: true }) as const;

export const UpdateToolInput = builder.inputType('UpdateToolInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name.' }),
    slug: t.string({
      constraints: kept(slug),
      description: 'Unique in the organization and among the built-in tools.',
    }),
    description: t.string({ constraints: kept(longText), description: 'What the tool does.' }),
    shortDescription: t.string(common().shortDescription),
    category: t.string({ constraints: kept(bounds.open), description: CATEGORIES }),
    version: t.string({ constraints: kept(text), description: 'Free text.' }),
    status: t.field({
      type: ToolStatus,
      constraints: { notNull: true },
      description:
        'The status can change between `active` and `beta`, then to `deprecated`. Any status can change to ' +
        '`disabled` and back. A disabled tool gets no new instances, and its instances do not run.',
    }),
    iconUrl: t.string(common().iconUrl),
    documentationUrl: t.string(common().documentationUrl),
    connectionServiceName: t.string(common().connectionServiceName),
    author: t.string(common().author),
    tags: t.stringList({ constraints: bounds.tags, description: 'Labels.' }),
    supportedActions: t.stringList({ constraints: kept(words), description: 'Names of what the tool can do.' }),
    supportedStepTypes: t.stringList({
      constraints: kept(words),
      description: 'Steps of an app that may use the tool.',
    }),
    configSchema: t.field({
      type: ['JSONObject'],
      constraints: kept(entriesOf(entryShapes.configSchema)),
      description: `${CONFIG} A change raises the schema version.`,
    }),
    credentialSchema: t.field({
      type: ['JSONObject'],
      constraints: kept(entriesOf(entryShapes.credentialSchema)),
      description: CREDENTIALS,
    }),
    actionSchemas: t.field({
      type: ['JSONObject'],
      constraints: kept(entriesOf(entryShapes.actionSchemas)),
      description: `${ACTIONS} A change raises the schema version.`,
    }),
    mcpFunctions: t.field({
      type: ['JSONObject'],
      constraints: kept(entriesOf(entryShapes.mcpFunctions)),
      description: 'Functions for MCP clients: `name`, `description`, `input_schema`.',
    }),
    customActionType: t.field({
      type: CustomActionType,
      constraints: { notNull: true },
      description: 'Which custom actions instances may have.',
    }),
    isMcpCompatible: t.boolean({
      constraints: { notNull: true },
      description: 'Whether MCP clients may use the tool.',
    }),
    minSchemaVersion: t.int({
      constraints: { min: 1, notNull: true },
      description: 'Instances of a lower schema version are deprecated. At most the current version.',
    }),
    schemaChangelog: t.field({
      type: 'StringMap',
      constraints: kept(changelog),
      description:
        `${CHANGELOG} New entries are added, and a given entry replaces an existing entry. If this change creates a ` +
        'version without an entry, the service adds one.',
    }),
    supportsConnection: t.boolean({
      constraints: { notNull: true },
      description: 'Whether instances may be connected.',
    }),
  }),
});
