import { type Cache, cacheExchange } from '@urql/exchange-graphcache';
import type { Exchange } from 'urql';
import type {
  NotificationChangesSubscription,
  OrganizationEventsSubscription,
  WorkspaceEventsSubscription,
} from '../generated/documents';

/** Values: they have no `id`, and belong to the field that gives them. */
const asValue = () => null;
const values = `
  ActivitySummary ArtifactQueryResult AugmentationStage AugmentationStep ConfigField ConnectionRequirements
  DeploymentResult DownloadLink EnvironmentResult EventActor ExecutionMetrics FoundArtifact
  InitiatedToolAuthorization LogoutPayload MarkAllNotificationsReadPayload NotificationChange
  OrganizationEvent PresentUser ResourceCounts SecretHistory SecretVersion Series SeriesPoint TokenUsage
  ToolInstanceTestResult UnreadNotifications Upload WorkspaceAnalytics WorkspaceEvent
  IssuedWebhook WebhookAttempt IssuedApiToken IssuedApplication IssuedScimToken IdentityProviderDomain DomainProof
  SignInPolicy StartedIdentityProviderTest ModelTarget ModelRoute RouteExclusion RouteLimit RouteRefusal RouteTarget
  WorkspaceLimits RecipeCatalogue RecipeContent AppliedRecipe MissingPart ArtifactVersions NotificationPreferences
  NotificationMute MemberWithoutFactor EntityRelation EntitySearchResult FoundEntity
  ToolActionResult ToolActionRequest UsedResource ConnectLink
  MemberSession EndMemberSessionsPayload
  ModelUsageSeries ModelUsagePoint
  ResendVerificationPayload
  ServiceStatus DatabaseClient JobStatus EventLagStatus
`
  .trim()
  .split(/\s+/);

/** What is read again when something of a kind has changed: the type of its objects, and the lists with them. */
const kinds: Readonly<Record<string, { type: string; lists: readonly string[] }>> = {
  workspace: { type: 'Workspace', lists: ['workspaces'] },
  organization: { type: 'Organization', lists: ['me', 'signInPolicy', 'membersWithoutFactor'] },
  organization_member: {
    type: 'OrganizationMember',
    lists: ['organizationMembers', 'membersWithoutFactor', 'memberSessions'],
  },
  workspace_member: { type: 'WorkspaceMember', lists: ['workspaceMembers'] },
  invitation: { type: 'Invitation', lists: ['invitations'] },
  secret: { type: 'Secret', lists: ['secrets'] },
  environment: { type: 'Environment', lists: ['environments'] },
  deployment: { type: 'Deployment', lists: ['deployments', 'environments'] },
  release: { type: 'Release', lists: ['releases'] },
  app: { type: 'App', lists: ['apps'] },
  augmentation: { type: 'Augmentation', lists: ['augmentations'] },
  execution: { type: 'Execution', lists: ['executions', 'execution', 'executionMetrics'] },
  tool: { type: 'Tool', lists: ['tools'] },
  tool_instance: { type: 'ToolInstance', lists: ['toolInstances'] },
  connection: { type: 'ToolAuthorization', lists: ['connections', 'endUserConnections', 'toolInstances'] },
  artifact: { type: 'Artifact', lists: ['artifacts', 'artifactVersions'] },
  namespace: { type: 'Namespace', lists: ['namespaces'] },
  entity: { type: 'Entity', lists: ['entities', 'entity'] },
  webhook: { type: 'Webhook', lists: ['webhooks'] },
  api_token: { type: 'ApiToken', lists: ['apiTokens', 'allApiTokens'] },
  app_token: { type: 'ApiToken', lists: ['allApiTokens'] },
  application: { type: 'Application', lists: ['applications', 'applicationGrants'] },
  identity_provider: { type: 'IdentityProvider', lists: ['identityProviders', 'signInPolicy'] },
  model: { type: 'LogicalModel', lists: ['logicalModels', 'modelEntitlements', 'routeModel'] },
  model_entitlement: { type: 'ModelEntitlement', lists: ['modelEntitlements', 'routeModel'] },
  provider_account: { type: 'ProviderAccount', lists: ['providerAccounts', 'logicalModels', 'routeModel'] },
  organization_recipe: { type: 'OrganizationRecipe', lists: ['organizationRecipes'] },
  scim_token: { type: 'ScimToken', lists: ['scimTokens'] },
};

type CachedEvent = { type: string; resourceType: string; resourceId: string };

/** Rows are kept once, by type and id: what an event or a mutation brings is seen wherever the row is shown. */
export const cache = (): Exchange =>
  cacheExchange({
    keys: Object.fromEntries(values.map((type) => [type, asValue])),
    updates: {
      Mutation: changesOfLists,
      Subscription: {
        workspaceEvents: ({ workspaceEvents: event }: WorkspaceEventsSubscription, _, store) =>
          applyEvent(store, event),
        organizationEvents: ({ organizationEvents: event }: OrganizationEventsSubscription, _, store) =>
          applyEvent(store, event),
        notificationChanged: (_: NotificationChangesSubscription, __, store) =>
          readAgain(store, ['notifications', 'unreadNotifications']),
      },
    },
  });

function applyEvent(store: Cache, { type, resourceType, resourceId }: CachedEvent): void {
  // the stream cannot go on where it was: anything that was read may be old
  if (type === 'resync') readAgain(store, null);
  // what streams say of themselves is about nothing that was read
  if (type === 'connected' || type === 'heartbeat' || type.startsWith('stream.')) return;
  const kind = kinds[resourceType];
  if (!kind) return;
  if (store.resolve({ __typename: kind.type, id: resourceId }, 'id'))
    store.invalidate({ __typename: kind.type, id: resourceId });
  readAgain(store, kind.lists);
}

/** @param lists names of fields of the query; `null` is all of them */
function readAgain(store: Cache, lists: readonly string[] | null): void {
  for (const { fieldName, fieldKey } of store.inspectFields('Query'))
    if (!lists || lists.includes(fieldName)) store.invalidate('Query', fieldKey);
}

/** What somebody has made or removed here is in the lists at once, also when no stream tells of it. */
const listsOfMutations: Readonly<Record<string, readonly string[]>> = {
  createSecret: ['secrets'],
  deleteSecret: ['secrets'],
  createWorkspace: ['workspaces', 'me'],
  createEnvironment: ['environments'],
  deleteEnvironment: ['environments', 'secrets'],
  deployRelease: ['environments', 'deployments'],
  promoteRelease: ['environments', 'deployments'],
  undeployApp: ['environments', 'deployments'],
  createInvitation: ['invitations'],
  removeOrganizationMember: ['organizationMembers'],
  endMemberSessions: ['memberSessions'],
  createToolInstance: ['toolInstances'],
  deleteToolInstance: ['toolInstances', 'connections'],
  deleteEndUserConnection: ['endUserConnections'],
  deleteWorkspaceConnection: ['connections', 'toolInstances'],
  exchangeConnection: ['connections', 'toolInstances'],
  finishUpload: ['artifacts'],
  createEntity: ['entities'],
  deleteEntity: ['entities'],
  relateEntities: ['entities', 'entity'],
  updateEntityRelation: ['entities', 'entity'],
  unrelateEntities: ['entities', 'entity'],
  createRelease: ['releases'],
  createApp: ['apps'],
  applyRecipe: ['apps', 'namespaces'],
  restoreArtifactVersion: ['artifact', 'artifacts', 'artifactVersions'],
  createProviderAccount: ['providerAccounts'],
  updateProviderAccount: ['logicalModels', 'routeModel'],
  deleteProviderAccount: ['providerAccounts'],
  createLogicalModel: ['logicalModels'],
  updateLogicalModel: ['logicalModels', 'routeModel'],
  deleteLogicalModel: ['logicalModels', 'modelEntitlements', 'routeModel'],
  createModelEntitlement: ['modelEntitlements', 'routeModel'],
  updateModelEntitlement: ['routeModel'],
  deleteModelEntitlement: ['modelEntitlements', 'routeModel'],
  updateNotificationPreferences: ['notificationPreferences'],
  updateNotificationMutes: ['notificationPreferences'],
  createApiToken: ['apiTokens', 'allApiTokens'],
  revokeApiToken: ['apiTokens', 'allApiTokens'],
  adminRevokeApiToken: ['apiTokens', 'allApiTokens'],
  createApplication: ['applications'],
  deleteApplication: ['applications', 'applicationGrants'],
  revokeApplicationGrant: ['applicationGrants'],
  createIdentityProvider: ['identityProviders', 'signInPolicy'],
  createScimToken: ['scimTokens'],
  deleteScimToken: ['scimTokens'],
  startDomainProof: ['identityProviders'],
  checkDomainProof: ['identityProviders'],
  updateSignInPolicy: ['signInPolicy', 'membersWithoutFactor'],
  createWebhook: ['webhooks'],
  deleteWebhook: ['webhooks'],
  testWebhook: ['webhookDeliveries'],
  redeliverWebhookDelivery: ['webhookDeliveries'],
  markNotificationRead: ['unreadNotifications'],
  archiveNotification: ['notifications', 'unreadNotifications'],
  markAllNotificationsRead: ['notifications', 'unreadNotifications'],
};

const changesOfLists = Object.fromEntries(
  Object.entries(listsOfMutations).map(([name, lists]) => [
    name,
    (_data: unknown, _args: unknown, store: Cache) => readAgain(store, lists),
  ]),
);
