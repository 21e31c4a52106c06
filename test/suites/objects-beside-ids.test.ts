import { type GraphQLObjectType, getNamedType, isCompositeType, isObjectType, isScalarType } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kindOfId } from '../../src/kernel/ids.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expectOk, graphqlRequest } from '../support/requests.ts';
import { argumentsOf, documentOf, rootFields } from '../support/root-fields.ts';
import { createWorld, type World } from '../support/world.ts';

/** Ids that have no object beside them, with the reason. THE place to add one. */
const alone: Record<string, string> = {
  'LogicalModel.logicalModelId': 'It is what the model itself is known by.',
  'Workspace.subscriptionPlanId': 'Plans are words, no resources.',
  'Workspace.embeddingModelId': 'It names a model, which may be gone or made later.',
  'ProviderAccount.bridgeId': 'Bridges are no resources.',
  'RouteTarget.bridgeId': 'Bridges are no resources.',
  'ProviderAccount.credentialsRef': 'A reference may be any text; to read an account is not to read its secret.',
  'IdentityProvider.defaultRoleId': 'Roles are words, no resources.',
  'IdentityGroupMapping.roleId': 'Roles are words, no resources.',
  'ToolImportOperation.operationId': 'It is what the document calls it.',
  'SamlConfig.entityId': 'It is what the provider calls itself.',
  'IdentityProviderTest.userId': 'What would happen to an account is no way to it.',
  'IdentityRoleChange.workspaceId': 'What would happen in a workspace is no way to it.',
  'OidcConfig.clientId': 'It is known to the provider alone.',
  'OidcConfig.clientSecretRef': 'A reference may be any text; to read it is not to read its secret.',
  'Environment.activeDeployments': 'A map for REST; `deployed` gives the records with their apps and releases.',
  'Webhook.headersRef': 'A reference may be any text; to read it is not to read its secret.',
  'AuditStream.credentialsRef': 'A reference may be any text; to read it is not to read its secret.',
  'WebhookDelivery.eventId': 'Events are no resources.',
  'ToolInstance.credentialRefs': "What they refer to is nobody's to read.",
  'ConnectionCredentials.clientSecretVaultId': 'A reference may be any text; to read it is not to read its secret.',
  'ConnectionCredentials.clientId': 'It is known to the provider alone.',
  'ToolImportAuthorization.clientId': 'It is the address of a document about this service.',
  'UpgradeToolInstanceResult.instanceId': 'Whoever upgraded the instance gets it in `instance`.',
  'LinkedMemory.entityIds': 'They are in the traversal itself.',
  'MissingPart.usedBy': 'Parts of a recipe have local names; after a dry run there are no others.',
  'AppliedRecipe.recipeId': 'What it was made from may be a recipe that the caller gave.',
  'AppliedRecipe.stageIds': 'A stage is what its augmentation shows of it.',
  'AppliedRecipe.stepIds': 'A step is what its augmentation shows of it.',
  'AugmentationStage.stageId': 'A stage is what its augmentation shows of it.',
  'AugmentationStep.stepId': 'A step is what its augmentation shows of it.',
  'Execution.executionId': 'It names the execution itself.',
  'FoundEntity.matchedBy': 'A word for how it was found.',
  'ResolvedEntity.matchedBy': 'A word for how it was found.',
  'Entity.mergedIds': 'They lead to the entity itself.',
  'EntityRelation.relationId': 'A relation is what its entities show of it.',
  'MemberSession.sessionId': 'It names the session itself.',
  'DownloadLink.artifactId': 'Whoever asks for a link has named the artifact.',
  'DownloadLink.downloadUrl': 'An address.',
  'Upload.file': 'It becomes an artifact, and is no resource before.',
  'Artifact.sourceExecutionId': 'Executions are no resources.',
  'Artifact.sourceStepId': 'Steps are no resources.',
  'Artifact.embeddingModelId': 'A word of the index.',
  'Activity.traceId': 'A trace is no resource.',
  'Activity.principalId': 'It is the token or else the user, and each of them is beside its own id.',
  'Activity.path': 'An address.',
  'Activity.metadata': 'An object for REST; what it names depends on the action.',
  'Activity.executionId': 'What ran is named by whoever ran it.',
  'Notification.scopeId': 'It is the user, the workspace or the organization, and each of them is beside its own id.',
  'Notification.actionUrl': 'An address.',
  'Notification.resourcePath': 'An address.',
  'Notification.metadata': 'An object for REST; what it names depends on what happened.',
  'BrokenGlass.orgId': 'It is open from the next request on.',
  'LogoutPayload.sessionId': 'Sessions are no resources.',
  'VerifyEmailPayload.userId': 'Whoever has the link need not be signed in.',
  'ResetPasswordPayload.userId': 'The same.',
  'ToolAuthorization.endUserId': 'What an app calls a user of its own, who has no account here.',
  'ConnectLink.endUserId': 'The same.',
  'User.settings': 'An object for REST; `organizations` gives them.',
};

/** An event is one text for all who receive it. It carries identifiers, and each reads what they may see. */
const events = ['WorkspaceEvent', 'OrganizationEvent', 'EventActor'];

const objects = Object.values(schema.getTypeMap()).filter(
  (type): type is GraphQLObjectType => isObjectType(type) && !type.name.startsWith('__') && !events.includes(type.name),
);

/** What says by its type that it holds an id, or by its name where it is a plain text. */
const saysSo = (name: string, type: string) => name !== 'id' && (type === 'ID' || /(?:Ids?|By|Ref)$/.test(name));

const fieldBeside = (type: GraphQLObjectType, name: string) =>
  Object.values(type.getFields()).find(({ extensions }) => extensions.beside === name);

test('each id has its object beside it, or a reason why not', () => {
  const found = objects.flatMap((type) =>
    Object.values(type.getFields())
      .filter((field) => isScalarType(getNamedType(field.type)) && saysSo(field.name, getNamedType(field.type).name))
      .map((field) => ({ title: `${type.name}.${field.name}`, object: fieldBeside(type, field.name) })),
  );
  expect(found.length).toBeGreaterThan(70);
  const bare = found.filter(({ title, object }) => !object && !(title in alone)).map(({ title }) => title);
  expect(bare).toEqual([]);
});

test('each object beside an id asks for a permission of its own, or what its node asks', () => {
  const beside = objects.flatMap((type) => Object.values(type.getFields()).filter((field) => field.extensions.beside));
  expect(beside.length).toBeGreaterThan(60);
  for (const { name, type, extensions } of beside) {
    const asked = { service: expect.stringMatching(/:(?:read|access)$/) as string };
    expect(extensions.access, name).toEqual(getNamedType(type).name === 'Node' ? 'signedIn' : asked);
  }
});

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  world = await createWorld(app);
});
afterAll(() => app.close());

test('every field with an id in an answer is one of those', async () => {
  const bare = new Set<string>();
  const seen = new Set<string>();
  const walk = (type: GraphQLObjectType, value: Record<string, unknown>) => {
    for (const [name, held] of Object.entries(value)) {
      const field = type.getFields()[name]!;
      const inner = getNamedType(field.type);
      for (const item of Array.isArray(held) ? (held as unknown[]) : [held]) {
        if (isObjectType(inner) && item) walk(inner, item as Record<string, unknown>);
        const ids = isCompositeType(inner) ? [] : (JSON.stringify(item ?? null).match(/[a-z]+_[0-9A-Z]{26}/g) ?? []);
        if (name === 'id' || !ids.some((id) => kindOfId(id))) continue;
        seen.add(`${type.name}.${name}`);
        if (!fieldBeside(type, name) && !(`${type.name}.${name}` in alone)) bare.add(`${type.name}.${name}`);
      }
    }
  };
  // the state of the service is for administrators of the platform, and names nothing of anybody
  for (const root of rootFields.filter(({ kind, name }) => kind === 'query' && name !== 'serviceStatus')) {
    const given = argumentsOf(root, world);
    const { data } = await expectOk<{ data: Record<string, unknown> }>(
      app,
      graphqlRequest(documentOf(root, given, 3), given, world.as('owner').authorization),
    );
    walk(schema.getQueryType()!, data);
  }
  expect(seen.size).toBeGreaterThan(50);
  expect([...bare]).toEqual([]);
});
