import {
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';

const names = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/**
 * The queries that models may ask. What is not named here does not exist for them: a new operation stays out of reach
 * until somebody has looked at what it answers. Left out: values of former versions of secrets, factors, pages of
 * sign-ins, the state of the service, and the position of events, which the tool that reads them gives itself.
 */
export const OPEN_QUERIES = names(`
  node me user users workspace workspaces deletedWorkspaces workspaceMembers workspaceStorage
  app apps action actions namespace namespaces organization organizations organizationMembers organizationStorage
  organizationActivity organizationActivitySummary workspaceActivity workspaceActivitySummary appActivity
  endpointActivity userActivity userActivitySummary
  organizationAnalytics workspaceAnalytics resourceCounts executionMetrics hourlyExecutions dailyExecutions
  appAnalytics namespaceAnalytics actionAnalytics secretAnalytics sourceAnalytics series topResources modelUsage
  thread threads artifact artifacts artifactVersions deletedArtifacts workspaceDeletedArtifacts queryArtifacts
  queryWorkspaceArtifacts queryOrganizationArtifacts source sources
  augmentation augmentations missingParts endpoint endpoints environment environments deployment deployments
  execution executions release releases
  entity entities searchEntities entityTraversal entityPath memory memories
  tool tools toolBySlug customActionSchemas toolInstance toolInstances
  connection connections namespaceConnections connectionRequirements endUserConnection endUserConnections
  logicalModel logicalModels modelEntitlement modelEntitlements routeModel providerAccount providerAccounts
  presence notification notifications unreadNotifications notificationPreferences
  invitation invitations identityProvider identityProviders identityLink identityProviderTest signInPolicy
  recipes recipe recipeCategories exportRecipe organizationRecipe organizationRecipes organizationRecipeVersions
  organizationRecipeVersion exportWorkspace
  secret secretByName secrets apiTokens allApiTokens appTokens
  applicationGrant applicationGrants application applications scimToken scimTokens
  webhook webhooks webhookDeliveries auditStream auditStreams auditStreamDeliveries auditStreamLag
`);

/**
 * Mutations that a model may call without a question: they only make or change content, most of it such that the change
 * can be undone. Nothing that grants a right, says where something is sent to, runs something or changes a setting
 * belongs here, whatever its verb.
 */
export const CALM_MUTATIONS = names(`
  createApp updateApp createRelease reportExecution createNamespace updateNamespace createThread updateThread
  createArtifact updateArtifact restoreArtifactVersion restoreArtifact createSource updateSource
  createMemory updateMemory createEntity updateEntity relateEntities updateEntityRelation resolveEntity importEntities
  markNotificationRead markNotificationUnread markAllNotificationsRead archiveNotification unarchiveNotification
`);

/**
 * Mutations that somebody must agree to, each time: they delete, grant, redirect, run or set something. A mutation that
 * is on neither list does not exist for models: new ones are looked at first. Left out: what answers a token, a secret
 * or a link that works like one, what is about a sign-in or the account itself, uploads, what gives tokens back their
 * life, and the actions of tools, which have a face of their own.
 */
export const ASKING_MUTATIONS = names(`
  createUser updateUser updatePreferences deleteUser
  createWorkspace updateWorkspace deleteWorkspace restoreWorkspace updateWorkspaceStorage
  addWorkspaceMember updateWorkspaceMember removeWorkspaceMember
  updateOrganization deleteOrganization addOrganizationMember updateOrganizationMember removeOrganizationMember
  createInvitation resendInvitation revokeInvitation
  deleteApp createAction updateAction deleteAction deleteNamespace deleteThread
  deleteArtifact promoteArtifact deleteSource deleteMemory deleteEntity mergeEntities unrelateEntities
  createAugmentation updateAugmentation deleteAugmentation mapMissingParts
  createEndpoint updateEndpoint deleteEndpoint createEnvironment updateEnvironment deleteEnvironment
  deleteRelease deployRelease promoteRelease undeployApp
  applyRecipe createOrganizationRecipe createRecipeOfApp updateOrganizationRecipe deleteOrganizationRecipe
  importWorkspace
  createTool updateTool deleteTool previewToolImport importTool previewToolReimport reimportTool
  createToolInstance updateToolInstance deleteToolInstance testToolInstance
  toggleToolInstance upgradeToolInstance
  createNamespaceConnection createWorkspaceConnection deleteNamespaceConnection deleteWorkspaceConnection
  setReturnAddresses deleteEndUserConnection
  createIdentityProvider updateIdentityProvider deleteIdentityProvider linkIdentity unlinkIdentity
  startDomainProof updateSignInPolicy
  createLogicalModel updateLogicalModel deleteLogicalModel createModelEntitlement updateModelEntitlement
  deleteModelEntitlement reportModelUsage createProviderAccount updateProviderAccount deleteProviderAccount
  createSecret updateSecret rotateSecret deleteSecret restoreSecret
  revokeApiToken adminRevokeApiToken revokeAppToken revokeApplicationGrant deleteApplication
  deleteScimToken updateWebhook deleteWebhook testWebhook redeliverWebhookDelivery redeliverWebhookDeliveries
  createAuditStream updateAuditStream deleteAuditStream testAuditStream
`);

/** Names of values that work like a key. */
const SECRET_NAME = /token|secret|password|passwd|recovery|challenge|credential|nonce|verifier|^state$|^value$|^uri$/i;
/** And of links that need no sign-in. */
const LINK_NAME = /^(?:download|upload|authorization|redirect|signed)url$/i;

/**
 * Fields that are named like secrets, and are none: counts, dates, words, references. A new field with such a name
 * stays out of reach until it stands here.
 */
export const HARMLESS_FIELDS = names(`
  User.hasPassword Activity.tokenId Activity.tokenType Activity.tokenUsage ActivitySummary.totalTokensUsed
  ResourceCounts.secrets SeriesPoint.value SecretAnalytics.totalSecrets SecretAnalytics.activeSecrets
  SecretAnalytics.secretsByType SourceAnalytics.totalTokens Factors.recoveryCodesLeft Execution.tokenId
  Tool.credentialSchema ToolImportPreview.credentialSchema ToolReimportPreview.otherCredentials
  ConnectionCredentials.clientSecretVaultId ToolInstance.hasCredentials
  ToolInstance.credentialRefs ToolInstance.credentialFields OidcConfig.clientSecretRef DomainProof.recordValue
  IdentityProvider.suspendsTokens IdentityProviderDomain.state ModelTarget.maxTokensOverride
  ModelConstraints.maxCostPer1kTokens LogicalModel.defaultMaxTokens WorkspaceLimits.maxTokensPerMonth
  WorkspaceLimits.tokensPerMinute ModelEntitlement.totalTokens RouteTarget.maxTokens ModelUsageSummary.totalTokens
  ModelUsageSummary.tokensThisMonth ModelUsageSummary.tokensThisMinute QuotaPolicy.maxTokensPerMonth
  QuotaPolicy.currentMonthTokens RateLimitPolicy.inputTokensPerMinute RateLimitPolicy.outputTokensPerMinute
  ProviderAccount.credentialsRef RecipeRequirements.secrets Secret.secretType SecretVersion.state
  SecretHistory.secretId Source.tokenCount ApiToken.tokenType Application.secretChangedAt Webhook.secretRotatedAt
  AuditStream.credentialsRef ModelTarget.costPer1kTokens ModelUsagePoint.inputTokens ModelUsagePoint.outputTokens
`);

const ROOTS = new Set(['Query', 'Mutation', 'Subscription']);
const NOTHING: ReadonlySet<string> = new Set();

/** Whether a field of an object may hold a secret, as far as its name says. */
export const looksSecret = (type: string, field: string): boolean =>
  (SECRET_NAME.test(field) || LINK_NAME.test(field)) && !HARMLESS_FIELDS.has(`${type}.${field}`);

/** Whether a root field can be asked for here. */
export const isOpen = (root: string, field: string): boolean =>
  root === 'Query'
    ? OPEN_QUERIES.has(field)
    : root === 'Mutation' && (CALM_MUTATIONS.has(field) || ASKING_MUTATIONS.has(field));

/**
 * The first field of a valid document that no model gets; `null` if there is none.
 * @param shown fields that are shown in this document although their names are those of secrets
 */
export function withheldIn(
  schema: GraphQLSchema,
  document: DocumentNode,
  shown: ReadonlySet<string> = NOTHING,
): string | null {
  let found: string | null = null;
  const types = new TypeInfo(schema);
  const enter = ({ name: { value: name } }: FieldNode) => {
    const parent = types.getParentType()?.name ?? '';
    if (found !== null || name.startsWith('__') || parent.startsWith('__')) return;
    const place = `${parent}.${name}`;
    if (shown.has(place)) return;
    if (ROOTS.has(parent) ? !isOpen(parent, name) : isSecretLeaf(types, parent, name)) found = place;
  };
  visit(document, visitWithTypeInfo(types, { Field: enter }));
  return found;
}

/** Whether a field is a value that no model gets. What cannot be told is a secret. */
export function isSecretLeaf(types: TypeInfo, parent: string, name: string): boolean {
  const type = types.getType();
  if (type && !isLeafType(getNamedType(type))) return false;
  return looksSecret(parent, name);
}

/** Whether somebody must agree before a mutation is carried out. */
export const asksFirst = (mutation: string): boolean => !CALM_MUTATIONS.has(mutation);

/** The operations of a document. */
export const operationsOf = ({ definitions }: DocumentNode): OperationDefinitionNode[] =>
  definitions.filter((node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION);

/** The one operation of a document; `null` if there are several, or none. */
export function onlyOperation(document: DocumentNode): OperationDefinitionNode | null {
  const operations = operationsOf(document);
  return operations.length === 1 ? operations[0]! : null;
}

/** The one field of an operation, written out; `null` for anything else. */
export function onlyField({ selectionSet: { selections } }: OperationDefinitionNode): FieldNode | null {
  const [field] = selections;
  const isPlain = selections.length === 1 && field?.kind === Kind.FIELD && (field.directives ?? []).length === 0;
  return isPlain ? field : null;
}
