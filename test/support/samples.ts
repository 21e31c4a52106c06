import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql';
import type { Constraints } from '../../src/kernel/constraints.ts';
import { snakeCase } from './names.ts';

/** What samples are made from. */
export interface SampleSource {
  /** Stands in every free text, so that a byte of it in a foreign answer shows. Lower-case letters and digits. */
  marker: string;
  /** Ids by the name of their path variable. */
  ids: Readonly<Record<string, string>>;
  /** The credentials of the caller. */
  username: string;
  password: string;
  /** Counts up: makes values unique. */
  next: () => number;
}

/** Leave the field out. */
const absent = Symbol('absent');

/**
 * Values that types and constraints do not tell, by `InputType.field` or `*.field`. THE place to add one when a suite
 * says that it cannot make up a value.
 */
const special: Record<string, (source: SampleSource) => unknown> = {
  '*.password': ({ password }) => password,
  '*.newPassword': ({ password }) => password,
  '*.currentPassword': ({ password }) => password,
  '*.inviteToken': () => absent,
  // room for what is made after it, and less than the settings allow
  'UpdateStorageInput.limitBytes': () => 100_000_000,
  // who asks would be shut out
  'UpdateSignInPolicyInput.ssoRequired': () => false,
  'UpdateSignInPolicyInput.ssoRequiredDomains': () => [],
  'UpdateSignInPolicyInput.requireFactor': () => false,
  'UpdateSignInPolicyInput.stepUp': () => [],
  // GraphQL: a file that was received; REST: any content
  'UploadArtifactInput.file': ({ ids }) => ids.received_upload ?? 'the content of a file',
  'ConfirmTotpInput.code': () => '000000',
  'LoginInput.username': ({ username }) => username,
  'TokenInput.token': () => 'nobody-was-mailed-this-token',
  'RefreshInput.refreshToken': () => 'nobody-was-given-this-token',
  'RefreshApiTokenInput.refreshToken': () => 'nobody-was-given-this-token',
  'CreateApplicationInput.redirectUris': ({ marker, next }) => [`https://app.example.test/${marker}/${next()}`],
  'UpdateApplicationInput.redirectUris': ({ marker, next }) => [`https://app.example.test/${marker}/${next()}`],
  // nobody is there, and nothing is sent
  '*.url': ({ marker, next }) => `https://hooks.example.test/${marker}/${next()}`,
  '*.eventTypes': () => ['secret.expiring'],
  // to a collector, of what does not happen: a stream that sends would change by itself
  'CreateAuditStreamInput.targetType': () => 'http',
  '*.bucket': () => absent,
  'CreateAuditStreamInput.region': () => absent,
  'UpdateAuditStreamInput.region': () => absent,
  'CreateAuditStreamInput.prefix': () => absent,
  'UpdateAuditStreamInput.prefix': () => absent,
  'CreateAuditStreamInput.credentialsRef': () => absent,
  'UpdateAuditStreamInput.credentialsRef': () => absent,
  'CreateAuditStreamInput.actions': () => ['upgrade'],
  'UpdateAuditStreamInput.actions': () => ['upgrade'],
  'CreateAuditStreamInput.resourceTypes': () => ['audit_stream'],
  'UpdateAuditStreamInput.resourceTypes': () => ['audit_stream'],
  'CreateAuditStreamInput.isEnabled': () => true,
  'UpdateAuditStreamInput.isEnabled': () => true,
  'CreateWebhookInput.headersRef': () => absent,
  'UpdateWebhookInput.headersRef': () => absent,
  'CreateWebhookInput.isEnabled': () => true,
  'UpdateWebhookInput.isEnabled': () => true,
  'CreateApiTokenInput.scopes': () => ['read'],
  'CreateApiTokenInput.permissions': () => ['workspace:read'],
  'CreateApiTokenInput.workspaceIds': ({ ids }) => [ids.workspace_id],
  'CreateApiTokenInput.namespaceIds': () => absent,
  'CreateApiTokenInput.environmentIds': () => absent,
  'CreateApiTokenInput.endpointPaths': () => ['/v1/orgs/*/workspaces/**'],
  'CreateApiTokenInput.expiresAt': () => absent,
  'AddWorkspaceMemberInput.userId': ({ ids }) => ids.guest_user_id,
  'AddOrganizationMemberInput.userId': ({ ids }) => ids.stranger_user_id,
  'UpdateUserInput.isActive': () => absent,
  'CreateUserInput.role': () => 'viewer',
  // a model of the organization, without a chain: others would have to be made first
  'CreateModelEntitlementInput.logicalModelId': ({ ids }) => ids.logical_model_id,
  // one of another type: it would have to be made first
  'UpdateWorkspaceInput.embeddingModelId': () => absent,
  'CreateLogicalModelInput.fallbackChain': () => absent,
  'UpdateLogicalModelInput.fallbackChain': () => absent,
  'UpdateLogicalModelInput.status': () => 'active',
  'ModelConstraintsInput.maxCostPer1kTokens': () => '0.0025',
  // within the workspace: roles in it count
  'CreateSecretInput.namespaceId': () => absent,
  'CreateSecretInput.environmentId': () => absent,
  // what is in the entries of a tool has a shape that the schema does not say
  // the names of artifacts have it
  '*.query': ({ marker }) => marker,
  // a media type, which no pattern is made up for
  '*.mimeTypes': () => ['text/*'],
  '*.configSchema': ({ marker }) => [{ name: 'address', display_name: marker, type: 'string' }],
  '*.credentialSchema': ({ marker }) => [{ name: 'api_key', description: marker, type: 'secret' }],
  '*.actionSchemas': ({ marker }) => [{ name: 'get', description: marker, parameters: [{ name: 'id' }] }],
  '*.mcpFunctions': ({ marker }) => [{ name: 'get', description: marker, input_schema: {} }],
  '*.schemaChangelog': ({ marker }) => ({ 1: marker }),
  'CreateToolInput.status': () => 'active',
  'UpdateToolInput.status': () => 'active',
  'UpdateToolInput.minSchemaVersion': () => 1,
  // by the fields and the actions of that tool
  '*.configuration': ({ marker }) => ({ address: marker }),
  '*.customActions': () => absent,
  '*.customActionParameters': ({ marker }) => ({ get: [{ name: 'more', description: marker }] }),
  '*.actionDefaults': ({ marker }) => ({ get: { id: marker } }),
  '*.mcpParameterOverrides': ({ marker }) => ({ get: { id: { description: marker } } }),
  'TestToolInstanceInput.action': () => 'get',
  'ExecuteToolActionInput.action': () => 'get',
  'ExecuteToolActionInput.parameters': ({ marker }) => ({ id: marker }),
  'ExecuteToolActionInput.dryRun': () => absent,
  'ExecuteToolActionInput.confirmation': () => absent,
  'ExecuteToolActionInput.maxPages': () => absent,
  'StreamToolActionInput.action': () => 'list',
  'StreamToolActionInput.parameters': () => absent,
  'StreamToolActionInput.confirmation': () => absent,
  'StreamToolActionInput.endUserId': () => absent,
  'ExecuteToolActionInput.endUserId': () => absent,
  // the instance of the world allows none
  'CreateConnectLinkInput.returnTo': () => absent,
  'ReturnAddressesInput.addresses': ({ marker, next }) => [`https://app.example.test/${marker}/${next()}`],
  'TestToolInstanceInput.parameters': ({ marker }) => ({ id: marker }),
  '*.clientSecretVaultId': () => 'external:client',
  // a provider has the configuration of its protocol alone; a domain is claimed once
  'CreateIdentityProviderInput.protocol': () => 'oidc',
  'UpdateIdentityProviderInput.protocol': () => 'oidc',
  '*.samlConfig': () => absent,
  '*.samlMetadata': () => absent,
  '*.clientSecretRef': () => 'external:client',
  'OidcConfigInput.scopes': ({ marker }) => ['openid', marker],
  '*.verifiedDomains': ({ marker, next }) => [`${marker}-${next()}.example.test`],
  '*.defaultRoleId': () => 'viewer',
  'IdentityGroupMappingInput.roleId': () => 'editor',
  // tokens that are restricted to a workspace see no provider
  'IdentityGroupMappingInput.workspaceId': () => absent,
  // stages and steps of their own, and what only one kind of action has
  'AugmentationStageInput.stageId': () => absent,
  'AugmentationStepInput.stepId': () => absent,
  // it is that of the instance
  'AugmentationStepInput.toolSlug': () => absent,
  'ApplyRecipeInput.recipeId': () => sharedIds.recipe_id,
  'ApplyRecipeInput.parameters': ({ marker }) => ({ title: marker, tone: 'brief' }),
  'ApplyRecipeInput.dryRun': () => false,
  'ApplyRecipeInput.recipe': () => absent,
  'CreateOrganizationRecipeInput.recipe': recipeSample,
  'UpdateOrganizationRecipeInput.recipe': recipeSample,
  // what the recipe names, and what the app lacks
  'ApplyRecipeInput.tools': () => absent,
  'ApplyRecipeInput.models': () => absent,
  'ApplyRecipeInput.secrets': () => absent,
  'MapMissingPartsInput.tools': () => absent,
  'MapMissingPartsInput.models': () => absent,
  'MapMissingPartsInput.secrets': () => absent,
  'PreviewToolImportInput.document': openApiSample,
  'ImportToolInput.document': openApiSample,
  'PreviewToolReimportInput.document': openApiSample,
  'ReimportToolInput.document': openApiSample,
  // in place of the document
  'PreviewToolImportInput.url': () => absent,
  'ImportToolInput.url': () => absent,
  'PreviewToolReimportInput.url': () => absent,
  'ReimportToolInput.url': () => absent,
  'PreviewToolImportInput.kind': () => 'openapi',
  'ImportToolInput.kind': () => 'openapi',
  'PreviewToolReimportInput.kind': () => 'openapi',
  'ReimportToolInput.kind': () => 'openapi',
  // of an MCP server
  'PreviewToolImportInput.credential': () => absent,
  'PreviewToolImportInput.credentialHeader': () => absent,
  'ImportToolInput.credential': () => absent,
  'ImportToolInput.credentialHeader': () => absent,
  'PreviewToolReimportInput.credential': () => absent,
  'PreviewToolReimportInput.credentialHeader': () => absent,
  'ReimportToolInput.credential': () => absent,
  'ReimportToolInput.credentialHeader': () => absent,
  'PreviewToolReimportInput.toolInstanceId': () => absent,
  'ReimportToolInput.toolInstanceId': () => absent,
  // of a document that was looked at before
  '*.documentDigest': () => absent,
  // where this service may call
  'PreviewToolImportInput.baseUrl': () => 'https://api.example.com/v2',
  'ImportToolInput.baseUrl': () => 'https://api.example.com/v2',
  'PreviewToolReimportInput.baseUrl': () => 'https://api.example.com/v2',
  'ReimportToolInput.baseUrl': () => 'https://api.example.com/v2',
  'ImportToolInput.operations': () => ['GET /things'],
  'ReimportToolInput.operations': () => ['GET /things'],
  'ReimportToolInput.overwrite': () => ['GET /things'],
  'ImportWorkspaceInput.document': workspaceSample,
  'ImportWorkspaceInput.tools': () => absent,
  'ImportWorkspaceInput.models': () => absent,
  'ImportWorkspaceInput.secrets': () => absent,
  'ImportWorkspaceInput.dryRun': () => false,
  '*.kind': () => 'scheduled',
  '*.triggerEvent': () => absent,
  '*.cron': () => '30 8 1 1 *',
  'CreateActionInput.timezone': () => 'Europe/Berlin',
  'UpdateActionInput.timezone': () => 'Europe/Rome',
  'UpdateUserInput.timezone': () => 'Europe/Rome',
  // a run that goes on, of what the augmentation of the world has
  'ReportExecutionInput.status': () => 'running',
  'ReportExecutionInput.stagesCompleted': () => 0,
  'ReportExecutionInput.error': () => absent,
  'ReportExecutionInput.startedAt': () => absent,
  'ReportExecutionInput.endedAt': () => absent,
  // the first entity of a world is there before its memory
  '*.sourceMemoryIds': ({ ids }) => (ids.memory_id ? [ids.memory_id] : absent),
  'MergeEntitiesInput.mergedEntityIds': ({ ids }) => [ids.merged_entity_id ?? 'ent_none'],
  // entities are told apart by their keys; the relation is between those of the world
  'ImportedEntityInput.id': () => absent,
  'EntityReferenceInput.id': ({ ids }) => ids.entity_id,
  'EntityReferenceInput.key': () => absent,
  'EntityReferenceInput.name': () => absent,
  'EntityReferenceInput.entityType': () => absent,
  'ImportedRelationInput.source': ({ ids }) => ({ id: ids.entity_id }),
  'ImportedRelationInput.target': ({ ids }) => ({ id: ids.target_entity_id }),
  // later than the day on which it begins
  '*.validTo': () => new Date(Date.now() + 2 * 86_400_000).toISOString(),
  // an artifact of its own, which outlives the suites
  'CreateArtifactInput.rootArtifactId': () => absent,
  '*.mimeType': () => 'text/plain',
  '*.ttlSeconds': () => 86_400,
  '*.isPinned': () => false,
  // the default environment could not be deleted, an archived one not be deployed to
  'CreateEnvironmentInput.isDefault': () => absent,
  'UpdateEnvironmentInput.isDefault': () => absent,
  'UpdateEnvironmentInput.status': () => 'active',
};

/** A document of one app, which may be imported any number of times. */
function workspaceSample({ marker }: SampleSource): object {
  const definition = {
    app: { name: marker, description: marker, metadata: { note: marker } },
    augmentations: [{ key: 'answer', name: marker }],
    stages: [{ key: 'only', augmentation: 'answer', name: marker }],
    steps: [{ key: 'ask', stage: 'only', name: marker, step_type: 'llm' }],
  };
  return {
    format: 'workspace',
    version: 1,
    workspace: { name: marker, description: marker },
    apps: [{ key: marker, definition }],
  };
}

/** A document of one operation. */
export function openApiSample({ marker }: SampleSource): string {
  return JSON.stringify({
    openapi: '3.1.0',
    info: { title: marker, version: '1', description: marker },
    servers: [{ url: 'https://api.example.com' }],
    paths: {
      '/things': { get: { operationId: 'listThings', summary: marker, responses: { 200: { description: 'All.' } } } },
    },
  });
}

/** A recipe of one step, in the form of its schema, which the type does not say. */
function recipeSample({ marker, next }: SampleSource): object {
  const id = `${marker}-${next()}`;
  return {
    id,
    name: marker,
    description: marker,
    category: 'starter',
    icon: marker,
    tags: [marker],
    needs_embedding: false,
    version: marker,
    parameters: [{ name: 'tone', type: 'string', default: marker }],
    definition: {
      app: { name: marker, metadata: { note: marker } },
      namespace: { name: marker },
      augmentations: [{ key: 'answer', name: marker }],
      stages: [{ key: 'only', augmentation: 'answer', name: marker }],
      steps: [{ key: 'ask', stage: 'only', name: marker, step_type: 'llm', config: { tone: '{{parameters.tone}}' } }],
    },
  };
}

/** Texts that fit most patterns. Add one where a new pattern needs it. */
const texts = (marker: string, n: number) => [
  `${marker}${n}`,
  `${marker}-${n}`,
  'default',
  'en-US',
  'UTC',
  '1.0.0',
  '0.25',
  'A'.repeat(64),
  `/${marker}-${n}`,
];

/** Ids of what is the same in every organization, by the name of their path variable. */
export const sharedIds: Readonly<Record<string, string>> = { recipe_id: 'starter-chat' };

/** Path and query variables that are no id of the world, by name. */
const variables: Record<string, (source: SampleSource) => unknown> = {
  token: () => 'nobody-was-mailed-this-token',
  name: ({ ids }) => ids.name,
  slug: ({ ids }) => ids.slug,
  recipe_id: () => sharedIds.recipe_id,
  resource_type: () => 'workspace',
  resource_id: ({ ids }) => ids.workspace_id,
  // the names of entities have it
  query: ({ marker }) => marker,
  cursor: () => absent,
  // where the connection of somebody else would do
  end_user_id: () => absent,
  after: () => absent,
};

/** Optional fields too, or only what must be there. */
export interface SampleOptions {
  requiredOnly?: boolean;
  overrides?: Record<string, unknown>;
}

/** A valid value of an input type, in GraphQL names. `overrides` replace fields of the outermost object. */
export function sampleInput(
  type: GraphQLInputObjectType,
  source: SampleSource,
  options: SampleOptions = {},
): Record<string, unknown> {
  const sample: Record<string, unknown> = {};
  for (const field of Object.values(type.getFields())) {
    if (options.requiredOnly && !isNonNullType(field.type)) continue;
    const value = fieldSample(
      type.name,
      field.name,
      field.type,
      constraintsOf(field),
      source,
      options.requiredOnly ?? false,
    );
    if (value !== absent) sample[field.name] = value;
  }
  return { ...sample, ...options.overrides };
}

/** A valid value of a variable or argument; `undefined` where it is better left out. */
export function sampleArgument(
  name: string,
  type: GraphQLInputType,
  constraints: Constraints,
  source: SampleSource,
): unknown {
  const rest = snakeCase(name);
  const known = variables[rest];
  const value = known ? known(source) : sampleOf(rest, type, constraints, source, `the variable '${rest}'`, false);
  return value === absent ? undefined : value;
}

/** The id of the world that a name means: `default_workspace_id` is a `workspace_id`. */
export function idNamed(name: string, ids: Readonly<Record<string, string>>): string | undefined {
  const singular = name.replace(/_ids$/, '_id').replace(/^organization_id$/, 'org_id');
  const words = singular.split('_');
  for (let i = 0; i < words.length - 1; i++) {
    const id = ids[words.slice(i).join('_')];
    if (id !== undefined) return id;
  }
  return undefined;
}

/** Constraints of an argument or input field. */
export const constraintsOf = (of: { extensions: Readonly<Record<string, unknown>> }): Constraints =>
  (of.extensions.constraints as Constraints | undefined) ?? {};

function fieldSample(
  owner: string,
  name: string,
  type: GraphQLInputType,
  constraints: Constraints,
  source: SampleSource,
  requiredOnly: boolean,
): unknown {
  const made = special[`${owner}.${name}`] ?? special[`*.${name}`];
  if (made) return made(source);
  return sampleOf(snakeCase(name), type, constraints, source, `${owner}.${name}`, requiredOnly);
}

function sampleOf(
  name: string,
  type: GraphQLInputType,
  constraints: Constraints,
  source: SampleSource,
  what: string,
  requiredOnly: boolean,
): unknown {
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    const count = Math.max(1, constraints.minItems ?? 1);
    return Array.from({ length: count }, () =>
      sampleOf(name, nullable.ofType, constraints.item ?? {}, source, what, requiredOnly),
    );
  }
  if (isInputObjectType(nullable)) return sampleInput(nullable, source, { requiredOnly });
  if (isEnumType(nullable)) return constraints.oneOf?.at(-1) ?? nullable.getValues().at(-1)!.name;
  switch (nullable.name) {
    case 'ID':
      return (
        idNamed(name, source.ids) ??
        missing(what, 'ids of the world (test/support/world.ts) or `special` in test/support/samples.ts')
      );
    case 'Int':
    case 'Int53':
    case 'Float':
      return Math.min(Math.max(1, constraints.min ?? 1), constraints.max ?? Number.MAX_SAFE_INTEGER);
    case 'Boolean':
      return true;
    case 'String':
      return textOf(name, constraints, source, what);
    case 'DateTime':
      return new Date(Date.now() + 86_400_000).toISOString();
    case 'JSON':
    case 'JSONObject':
      return { [source.marker]: { note: source.marker } };
    case 'StringMap':
      return { [source.marker]: source.marker };
    case 'BooleanMap':
      return { [source.marker]: true };
    default:
      return missing(what, `the scalars of \`sampleOf\` in test/support/samples.ts (it is a ${nullable.name})`);
  }
}

function textOf(name: string, c: Constraints, { marker, next }: SampleSource, what: string): string {
  const n = next();
  if (c.oneOf) return c.oneOf.at(-1)!;
  if (c.format === 'email') return `${marker}.${n}@example.test`;
  if (c.format === 'uri') return `https://example.test/${marker}/${n}`;
  const fits = (text: string) =>
    text.length >= (c.minLength ?? 0) &&
    text.length <= (c.maxLength ?? Infinity) &&
    (c.pattern === undefined || new RegExp(`^(?:${c.pattern})$`, 'u').test(text));
  const candidates =
    c.pattern === undefined
      ? [`${marker} ${name} ${n}`.padEnd(c.minLength ?? 0, 'x').slice(0, c.maxLength)]
      : texts(marker, n);
  return candidates.find(fits) ?? missing(what, `\`texts\` in test/support/samples.ts: none fits ${JSON.stringify(c)}`);
}

function missing(what: string, where: string): never {
  throw new Error(`The suites cannot make up a value for ${what}: add one to ${where}.`);
}
