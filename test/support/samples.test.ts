import fc from 'fast-check';
import {
  coerceInputValue,
  GraphQLInputObjectType,
  type GraphQLInputType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLScalarType,
  GraphQLString,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { type Constraints, checkConstraints } from '../../src/kernel/constraints.ts';
import { schema } from '../../src/wiring/schema.ts';
import { operations, pathVariables } from './operations.ts';
import { constraintsOf, idNamed, type SampleSource, sampleArgument, sampleInput } from './samples.ts';

const MARKER = 'mk0123456789';
const variables = operations.flatMap(({ path }) => pathVariables(path));
const others = ['guest_user_id', 'stranger_user_id', 'connection_id', 'from_environment_id', 'target_entity_id'];
let count = 0;
const source: SampleSource = {
  marker: MARKER,
  ids: Object.fromEntries([...variables, ...others].map((name) => [name, `id-of-${name}`])),
  username: 'somebody',
  password: 'correct horse battery staple',
  next: () => ++count,
};

const inputTypes = Object.values(schema.getTypeMap()).filter(isInputObjectType);

/** What is wrong with a value, by GraphQL itself and by the bounds that the schema declares. */
function faultsOf(value: unknown, type: GraphQLInputObjectType): string[] {
  const faults: string[] = [];
  const coerced = coerceInputValue(value, type, (path, _value, error) => {
    faults.push(`${path.join('.')}: ${error.message}`);
  });
  return faults.length > 0 ? faults : boundFaults(coerced, type, type.name);
}

function boundFaults(value: unknown, type: GraphQLInputType, at: string): string[] {
  const nullable = getNullableType(type);
  if (isListType(nullable) && Array.isArray(value))
    return value.flatMap((item) => boundFaults(item, nullable.ofType, at));
  if (!isInputObjectType(nullable) || typeof value !== 'object' || value === null) return [];
  return Object.values(nullable.getFields()).flatMap((field) => {
    const inner = (value as Record<string, unknown>)[field.name];
    const own = checkConstraints(inner, constraintsOf(field)).map(({ msg }) => `${at}.${field.name}: ${msg}`);
    return [...own, ...boundFaults(inner, field.type, `${at}.${field.name}`)];
  });
}

/** An input type with one field. */
const oneField = (type: GraphQLInputType, constraints: Constraints = {}): GraphQLInputObjectType =>
  new GraphQLInputObjectType({ name: 'MadeUpInput', fields: { field: { type, extensions: { constraints } } } });

/** Fields that no sample has, because a value would contradict another one or the world; everything else is filled. */
const LEFT_OUT: readonly string[] = [
  'ApplyRecipeInput.models',
  'ApplyRecipeInput.recipe',
  'ApplyRecipeInput.secrets',
  'ApplyRecipeInput.tools',
  'AugmentationStageInput.stageId',
  'AugmentationStepInput.stepId',
  'AugmentationStepInput.toolSlug',
  'CreateActionInput.triggerEvent',
  'CreateApiTokenInput.environmentIds',
  'CreateApiTokenInput.expiresAt',
  'CreateApiTokenInput.namespaceIds',
  'CreateArtifactInput.rootArtifactId',
  'CreateAuditStreamInput.bucket',
  'CreateAuditStreamInput.credentialsRef',
  'CreateAuditStreamInput.prefix',
  'CreateAuditStreamInput.region',
  'CreateConnectLinkInput.returnTo',
  'CreateEnvironmentInput.isDefault',
  'CreateIdentityProviderInput.samlConfig',
  'CreateIdentityProviderInput.samlMetadata',
  'CreateLogicalModelInput.fallbackChain',
  'CreateSecretInput.environmentId',
  'CreateSecretInput.namespaceId',
  'CreateToolInstanceInput.customActions',
  'CreateWebhookInput.headersRef',
  'EntityReferenceInput.entityType',
  'EntityReferenceInput.key',
  'EntityReferenceInput.name',
  'ExecuteToolActionInput.confirmation',
  'ExecuteToolActionInput.dryRun',
  'ExecuteToolActionInput.endUserId',
  'ExecuteToolActionInput.maxPages',
  'IdentityGroupMappingInput.workspaceId',
  'ImportToolInput.credential',
  'ImportToolInput.credentialHeader',
  'ImportToolInput.documentDigest',
  'ImportToolInput.url',
  'ImportWorkspaceInput.models',
  'ImportWorkspaceInput.secrets',
  'ImportWorkspaceInput.tools',
  'ImportedEntityInput.id',
  'MapMissingPartsInput.models',
  'MapMissingPartsInput.secrets',
  'MapMissingPartsInput.tools',
  'PreviewToolImportInput.credential',
  'PreviewToolImportInput.credentialHeader',
  'PreviewToolImportInput.url',
  'PreviewToolReimportInput.credential',
  'PreviewToolReimportInput.credentialHeader',
  'PreviewToolReimportInput.toolInstanceId',
  'PreviewToolReimportInput.url',
  'RegisterInput.inviteToken',
  'ReimportToolInput.credential',
  'ReimportToolInput.credentialHeader',
  'ReimportToolInput.documentDigest',
  'ReimportToolInput.toolInstanceId',
  'ReimportToolInput.url',
  'ReportExecutionInput.endedAt',
  'ReportExecutionInput.error',
  'ReportExecutionInput.startedAt',
  'StreamToolActionInput.confirmation',
  'StreamToolActionInput.endUserId',
  'StreamToolActionInput.parameters',
  'UpdateActionInput.triggerEvent',
  'UpdateAuditStreamInput.bucket',
  'UpdateAuditStreamInput.credentialsRef',
  'UpdateAuditStreamInput.prefix',
  'UpdateAuditStreamInput.region',
  'UpdateEnvironmentInput.isDefault',
  'UpdateIdentityProviderInput.samlConfig',
  'UpdateIdentityProviderInput.samlMetadata',
  'UpdateLogicalModelInput.fallbackChain',
  'UpdateToolInstanceInput.customActions',
  'UpdateUserInput.isActive',
  'UpdateWebhookInput.headersRef',
  'UpdateWorkspaceInput.embeddingModelId',
];

/** Texts without the marker: credentials, and words and names that mean something to the service. */
const UNMARKED: readonly string[] = [
  'BeginPasskeyInput.currentPassword',
  'BreakGlassInput.password',
  'ChangePasswordInput.currentPassword',
  'ChangePasswordInput.newPassword',
  'ConnectionCredentialsInput.clientSecretVaultId',
  'CreateActionInput.timezone',
  'CreateApiTokenInput.endpointPaths',
  'CreateApiTokenInput.permissions',
  'CreateApiTokenInput.scopes',
  'CreateApiTokenInput.workspaceIds',
  'CreateAuditStreamInput.actions',
  'CreateAuditStreamInput.resourceTypes',
  'CreateUserInput.password',
  'CreateWebhookInput.eventTypes',
  'EnrolTotpInput.currentPassword',
  'ExecuteToolActionInput.action',
  'ImportToolInput.baseUrl',
  'ImportToolInput.operations',
  'LoginInput.password',
  'LoginInput.username',
  'OidcConfigInput.clientSecretRef',
  'PreviewToolImportInput.baseUrl',
  'PreviewToolReimportInput.baseUrl',
  'RefreshApiTokenInput.refreshToken',
  'RefreshInput.refreshToken',
  'RegisterInput.password',
  'ReimportToolInput.baseUrl',
  'ReimportToolInput.operations',
  'ReimportToolInput.overwrite',
  'ResetPasswordInput.newPassword',
  'StreamToolActionInput.action',
  'TestToolInstanceInput.action',
  'TokenInput.token',
  'UpdateActionInput.timezone',
  'UpdateAuditStreamInput.actions',
  'UpdateAuditStreamInput.resourceTypes',
  'UpdateSignInPolicyInput.ssoRequiredDomains',
  'UpdateUserInput.currentPassword',
  'UpdateWebhookInput.eventTypes',
];

describe.each([
  ['with all fields', false],
  ['with required fields only', true],
])('a sample %s', (_, requiredOnly) => {
  it.each(inputTypes.map((type) => [type.name, type] as const))('of %s is what the service accepts', (_name, type) => {
    expect(faultsOf(sampleInput(type, source, { requiredOnly }), type)).toEqual([]);
  });
});

describe('a sample', () => {
  it('with all fields lacks none but those that are listed here', () => {
    const missing = inputTypes.flatMap((type) => {
      const sample = sampleInput(type, source);
      return Object.keys(type.getFields())
        .filter((name) => !(name in sample))
        .map((name) => `${type.name}.${name}`);
    });
    expect(missing.toSorted()).toEqual(LEFT_OUT);
  });

  it('with required fields only has no other', () => {
    const optional = inputTypes.flatMap((type) => {
      const fields = type.getFields();
      return Object.keys(sampleInput(type, source, { requiredOnly: true })).filter(
        (name) => !isNonNullType(fields[name]!.type),
      );
    });
    expect(optional).toEqual([]);
  });

  it('has the marker in every text that may be anything', () => {
    const unmarked = inputTypes.flatMap((type) => {
      const sample = sampleInput(type, source);
      return Object.values(type.getFields())
        .filter((field) => {
          const { pattern, oneOf } = { ...constraintsOf(field), ...constraintsOf(field).item };
          return getNamedType(field.type).name === 'String' && pattern === undefined && oneOf === undefined;
        })
        .filter(({ name }) => name in sample && !JSON.stringify(sample[name]).includes(MARKER))
        .map(({ name }) => `${type.name}.${name}`);
    });
    expect(unmarked.toSorted()).toEqual(UNMARKED);
  });

  it('keeps every bound of its field, whatever the bounds are', () => {
    const range = (max: number) =>
      fc.tuple(fc.nat(max), fc.nat(max)).map(([a, b]) => ({ low: Math.min(a, b), high: Math.max(a, b) }));
    const texts = range(300).map(({ low, high }) => ({ minLength: low, maxLength: high }));
    const numbers = range(1_000).map(({ low, high }): Constraints => ({ min: low - 500, max: high - 500 }));
    const lists = range(20).map(({ low, high }): Constraints => ({ minItems: low, maxItems: Math.max(high, 1) }));
    const sets = fc.array(fc.string({ minLength: 1 }), { minLength: 1 }).map((oneOf): Constraints => ({ oneOf }));
    const formats = fc.constantFrom<Constraints>({ format: 'email' }, { format: 'uri' });
    const keeps = (type: GraphQLInputType) => (constraints: Constraints) => {
      const made = oneField(type, constraints);
      expect(faultsOf(sampleInput(made, source), made)).toEqual([]);
    };
    for (const arbitrary of [texts, sets, formats]) fc.assert(fc.property(arbitrary, keeps(GraphQLString)));
    fc.assert(fc.property(numbers, keeps(GraphQLInt)));
    fc.assert(fc.property(lists, keeps(new GraphQLList(new GraphQLNonNull(GraphQLString)))));
  });

  it('differs from the next one, where a text may be anything', () => {
    const made = oneField(GraphQLString);
    expect(sampleInput(made, source)).not.toEqual(sampleInput(made, source));
  });

  it('that nobody can make up fails with the place to add it', () => {
    const odd = oneField(new GraphQLScalarType({ name: 'Odd' }));
    expect(() => sampleInput(odd, source)).toThrow('MadeUpInput.field: add one to the scalars of `sampleOf`');
    const pattern = oneField(GraphQLString, { pattern: 'no text is like this' });
    expect(() => sampleInput(pattern, source)).toThrow('add one to `texts` in test/support/samples.ts');
    const id = schema.getType('ID') as GraphQLScalarType;
    expect(() => sampleArgument('strangeThingId', id, {}, source)).toThrow('add one to ids of the world');
  });
});

it('a name means the id of the world that it ends with, and no other', () => {
  const ids = { workspace_id: 'w', org_id: 'o', user_id: 'u', guest_user_id: 'g' };
  const names = ['workspace_id', 'default_workspace_id', 'workspace_ids', 'organization_id', 'guest_user_id', 'id'];
  expect(names.map((name) => idNamed(name, ids))).toEqual(['w', 'w', 'w', 'o', 'g', undefined]);
});
