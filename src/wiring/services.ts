import { Access } from '../access/access.ts';
import { AccessTokens } from '../access/access-tokens.ts';
import { Authentication } from '../access/authentication.ts';
import { Passwords } from '../access/passwords.ts';
import type { SigningKeys } from '../access/signing-keys.ts';
import { TokenUses } from '../access/token-uses.ts';
import type { Config } from '../config.ts';
import { ActivityRecorder } from '../data/activity.ts';
import { Changes } from '../data/changes.ts';
import { Cursors } from '../data/cursors.ts';
import { JobQueue } from '../data/job-queue.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { SlowReads } from '../data/slow-reads.ts';
import { Sql } from '../data/sql.ts';
import { DeploymentService } from '../delivery/environments/deployment.service.ts';
import { EnvironmentService } from '../delivery/environments/environment.service.ts';
import { ReleaseService } from '../delivery/releases/release.service.ts';
import { apiTokenNotices } from '../identity/api-tokens/api-token.notices.ts';
import { ApiTokenRefresh } from '../identity/api-tokens/api-token.refresh.ts';
import { ApiTokenService } from '../identity/api-tokens/api-token.service.ts';
import { AccountMail } from '../identity/auth/account-mail.ts';
import { AuthService } from '../identity/auth/auth.service.ts';
import { CurrentPassword } from '../identity/auth/current-password.ts';
import { EmailChange } from '../identity/auth/email-change.ts';
import { EmailProofs } from '../identity/auth/email-proofs.ts';
import { MailBudgets } from '../identity/auth/mail-budgets.ts';
import { PasswordChanges } from '../identity/auth/password-changes.ts';
import { RegistrationService } from '../identity/auth/registration.service.ts';
import { RequestedMails } from '../identity/auth/requested-mails.ts';
import { Sessions } from '../identity/auth/sessions.ts';
import { DomainProofs } from '../identity/identity-providers/domain-proofs.ts';
import { FederatedSignIn } from '../identity/identity-providers/federated-sign-in.ts';
import { IdentityLinks } from '../identity/identity-providers/identity-links.ts';
import { identityProviderNotices } from '../identity/identity-providers/identity-provider.notices.ts';
import { IdentityProviderService } from '../identity/identity-providers/identity-provider.service.ts';
import { IdentityProviderTests } from '../identity/identity-providers/identity-provider-tests.ts';
import { IdentityProviders } from '../identity/identity-providers/identity-providers.ts';
import { Refusals } from '../identity/sso/refusals.ts';
import { LogoutProfile } from '../identity/sso/saml/logout-profile.ts';
import { MessageChecks } from '../identity/sso/saml/message-checks.ts';
import { ServiceKey } from '../identity/sso/saml/service-key.ts';
import { ServiceProvider } from '../identity/sso/saml/service-provider.ts';
import { SingleLogout } from '../identity/sso/single-logout.ts';
import { SsoService } from '../identity/sso/sso.service.ts';
import { UserService } from '../identity/users/user.service.ts';
import { ActivityService } from '../insight/activity/activity.service.ts';
import { AnalyticsService } from '../insight/analytics/analytics.service.ts';
import { HistoryRetention } from '../insight/analytics/history-retention.ts';
import { SeriesService } from '../insight/analytics/series.service.ts';
import { NotificationService } from '../insight/notifications/notification.service.ts';
import { Notifier } from '../insight/notifications/notifier.ts';
import { ArtifactService } from '../knowledge/artifacts/artifact.service.ts';
import { ArtifactRemoval } from '../knowledge/artifacts/artifact-removal.ts';
import { EntityService } from '../knowledge/entities/entity.service.ts';
import { GraphRemoval } from '../knowledge/entities/graph-removal.ts';
import { DownloadService } from '../knowledge/files/download.service.ts';
import { DownloadLinks } from '../knowledge/files/download-links.ts';
import { FileService } from '../knowledge/files/file.service.ts';
import { LinkCaller } from '../knowledge/files/link-caller.ts';
import { LinkKeys } from '../knowledge/files/link-keys.ts';
import { UploadService } from '../knowledge/files/upload.service.ts';
import { UploadPieces } from '../knowledge/files/upload-pieces.ts';
import { UploadTickets } from '../knowledge/files/upload-tickets.ts';
import { ArtifactIndexer } from '../knowledge/indexing/artifact-indexer.ts';
import { ArtifactSearch } from '../knowledge/indexing/artifact-search.ts';
import { TextExtraction } from '../knowledge/indexing/text/text-extraction.ts';
import { TextRanking } from '../knowledge/indexing/text-ranking.ts';
import { MemoryService } from '../knowledge/memories/memory.service.ts';
import { SourceService } from '../knowledge/sources/source.service.ts';
import { ThreadService } from '../knowledge/threads/thread.service.ts';
import { EventService } from '../live/events/event.service.ts';
import { EventTail } from '../live/events/event-tail.ts';
import { MissedEvents } from '../live/events/missed-events.ts';
import { PresenceService } from '../live/presence/presence.service.ts';
import { PresentStreams } from '../live/presence/present-streams.ts';
import { ModelEntitlementService } from '../models/model-entitlements/model-entitlement.service.ts';
import { LogicalModelService } from '../models/models/logical-model.service.ts';
import { ModelRoutingService } from '../models/models/model-routing.service.ts';
import { ModelUsageService } from '../models/models/model-usage.service.ts';
import { ProviderAccountService } from '../models/provider-accounts/provider-account.service.ts';
import { ActionService } from '../pipelines/actions/action.service.ts';
import { AugmentationService } from '../pipelines/augmentations/augmentation.service.ts';
import { EndpointService } from '../pipelines/endpoints/endpoint.service.ts';
import { ExecutionService } from '../pipelines/executions/execution.service.ts';
import { RecipeService } from '../pipelines/recipes/recipe.service.ts';
import type { RootKeys } from '../platform/keys/root-keys.ts';
import { Seal } from '../platform/keys/seal.ts';
import type { Logger } from '../platform/logger.ts';
import type { Mailer } from '../platform/mail/mail.ts';
import type { Outbound } from '../platform/outbound/outbound.ts';
import type { Database } from '../platform/postgres/database.ts';
import { Storage } from '../platform/storage/storage.ts';
import { AppService } from '../tenancy/apps/app.service.ts';
import { NamespaceService } from '../tenancy/namespaces/namespace.service.ts';
import { InvitationService } from '../tenancy/organizations/invitation.service.ts';
import { OrganizationService } from '../tenancy/organizations/organization.service.ts';
import { OrganizationMemberService } from '../tenancy/organizations/organization-member.service.ts';
import { StorageLimitService } from '../tenancy/storage-limits/storage-limit.service.ts';
import { StorageLimits } from '../tenancy/storage-limits/storage-limits.ts';
import { Buckets } from '../tenancy/workspaces/buckets.ts';
import { WorkspaceService } from '../tenancy/workspaces/workspace.service.ts';
import { WorkspaceMemberService } from '../tenancy/workspaces/workspace-member.service.ts';
import { ConnectionService } from '../tools/connections/connection.service.ts';
import { ConnectionCredentials } from '../tools/connections/connection-credentials.ts';
import { ConnectionRefresh } from '../tools/connections/connection-refresh.ts';
import { ConnectionRemoval } from '../tools/connections/connection-removal.ts';
import { ConnectionRequirementsReader } from '../tools/connections/connection-requirements.ts';
import { OAuthProvider } from '../tools/connections/oauth-provider.ts';
import { OAuthStates } from '../tools/connections/oauth-states.ts';
import { Revocations } from '../tools/connections/revocations.ts';
import { ToolInstanceService } from '../tools/tool-instances/tool-instance.service.ts';
import { ToolInstanceTest } from '../tools/tool-instances/tool-instance.test-call.ts';
import { ToolService } from '../tools/tools/tool.service.ts';
import { Credentials } from '../vault/secrets/credentials.ts';
import { RevealService } from '../vault/secrets/reveal.service.ts';
import { SecretReads } from '../vault/secrets/secret.reads.ts';
import { SecretService } from '../vault/secrets/secret.service.ts';
import { secretNotices } from '../vault/secrets/secret-notices.ts';
import { Vault } from '../vault/secrets/vault.ts';

/** What the process provides. */
export interface ProcessDeps {
  config: Config;
  database: Database;
  mailer: Mailer;
  logger: Logger;
  outbound: Outbound;
  keys: SigningKeys;
  rootKeys: RootKeys;
  appSecret: Buffer;
  /** Address under which clients reach the service; known once it listens. */
  publicUrl: () => string;
  onFault: (error: unknown, what: string) => void;
  passwords?: Passwords;
}

/** Everything that is created once per process: what it runs and stops, and the services of each resource. */
export type Runtime = ReturnType<typeof createServices>;

/** Infrastructure of the database and the process, which resolvers must not reach. */
type Machinery =
  | 'sql'
  | 'tail'
  | 'jobQueue'
  | 'outbound'
  | 'storage'
  | 'linkCaller'
  | 'uploadPieces'
  | 'uploadTickets'
  | 'textExtraction'
  | 'artifactIndexer'
  | 'buckets'
  | 'tokenUses'
  | 'passwords'
  | 'sessions'
  | 'mail'
  | 'vault'
  | 'credentials'
  | 'oauthStates'
  | 'signInProviders'
  | 'federatedSignIn'
  | 'samlChecks'
  | 'saml'
  | 'connectionCredentials'
  | 'connectionRefresh'
  | 'connectionRemoval'
  | 'artifactRemoval'
  | 'graphRemoval'
  | 'historyRetention'
  | 'revocations';

/** What resolvers see: the services of each resource, and what authorization and activity records of fields need. */
export type Services = Omit<Runtime, Machinery>;

/** The services of each resource, created once per process. */
export function createServices(process: ProcessDeps) {
  const { config, mailer, outbound, publicUrl, onFault } = process;
  const { pool, prisma } = process.database;
  const sql = new Sql(pool);
  const access = new Access(sql, config);
  const storage = new Storage(config);
  const tail = new EventTail(sql, config.eventPollMs, onFault);
  const jobQueue = new JobQueue();
  const mail = new AccountMail({ mailer, seal: new Seal(process.appSecret, 'mail'), publicUrl });
  const changes = new Changes({
    database: process.database,
    sql,
    jobs: jobQueue,
    notify: new Notifier(mail).notify,
    // in the field a wrong order is a deadlock at worst, which is retried: no reason to refuse a change
    assertsLockOrder: config.environment === 'test',
    onCommit: () => tail.nudge(),
  });
  const slowReads = new SlowReads({ sql, database: process.database, poolSize: config.databasePoolSize });
  const deps: ServiceDeps = { sql, slowReads, changes, access, cursors: new Cursors(process.appSecret) };
  const presence = new PresenceService(deps);
  const textExtraction = new TextExtraction();
  const artifactIndexer = new ArtifactIndexer({ sql, changes, storage, extraction: textExtraction });
  const storageLimits = new StorageLimits(config);
  const artifacts = new ArtifactService({ ...deps, indexing: artifactIndexer, storageLimits });
  const threads = new ThreadService(deps);
  const activity = new ActivityRecorder(sql, (error, lost) =>
    onFault(error, `activity records could not be written (${lost} lost)`),
  );
  const tokens = new AccessTokens(process.keys, config.accessTokenTtlSeconds);
  const tokenUses = new TokenUses(sql, onFault);
  const authentication = new Authentication(tokens, tokenUses, sql);
  const sessions = new Sessions({ prisma, changes, tokens, authentication, secret: process.appSecret, config });
  const passwords = process.passwords ?? new Passwords();
  const currentPassword = new CurrentPassword({ prisma, passwords });
  const mailBudgets = new MailBudgets(config);
  const auth = {
    config,
    prisma,
    sql,
    changes,
    access,
    authentication,
    tokens,
    passwords,
    currentPassword,
    sessions,
    mail,
    mailBudgets,
    activity,
  };
  const { maxUploadBytes } = config;
  const files = new FileService({ sql, storage, storageLimits, maxUploadBytes });
  const pieces = new UploadPieces({ sql, files, maxUploadBytes });
  const linkCaller = new LinkCaller({ sql, access });
  const tickets = new UploadTickets({ seal: new Seal(process.appSecret, 'upload ticket'), publicUrl });
  const linkKeys = new LinkKeys(process.appSecret, config.formerAppSecrets, 'download link');
  const links = new DownloadLinks({ keys: linkKeys, publicUrl });
  const registration = new RegistrationService(auth);
  const graphs = new GraphRemoval(deps.sql);
  const artifactRemoval = new ArtifactRemoval(deps.sql);
  const apps = new AppService({ ...deps, authentication, graphs });
  const { rootKeys } = process;
  const vault = new Vault({ sql, changes, rootKeys });
  const credentials = new Credentials({ rootKeys });
  const provider = new OAuthProvider(outbound);
  const oauthStates = new OAuthStates(new Seal(process.appSecret, 'oauth state'));
  const revocations = new Revocations({
    credentials,
    vault,
    provider,
    seal: new Seal(process.appSecret, 'revocation'),
  });
  const connectionRemoval = new ConnectionRemoval({ changes, revocations });
  const connectionRefresh = new ConnectionRefresh({
    sql,
    changes,
    credentials,
    vault,
    provider,
    onFault,
  });
  const connectionCredentials = new ConnectionCredentials({ sql, credentials, refresh: connectionRefresh });
  const secretReads = new SecretReads(deps);
  const toolInstances = new ToolInstanceService({
    ...deps,
    vault,
    credentials,
    secretReads,
    connections: connectionRemoval,
  });
  const federatedSignIn = new FederatedSignIn({ ...auth });
  const signInProviders = new IdentityProviders({ sql, vault });
  const samlChecks = new MessageChecks();
  const samlKey = new ServiceKey(config);
  const saml = new ServiceProvider({ publicUrl, key: samlKey, checks: samlChecks });
  const refusals = new Refusals({ config, logger: process.logger });
  const secrets = new SecretService({ ...deps, reads: secretReads, rootKeys, vault, onFault });
  const authService = new AuthService(auth);
  return {
    sql,
    access,
    cursors: deps.cursors,
    authentication,
    tokenUses,
    activity,
    activityLog: new ActivityService(deps),
    analytics: new AnalyticsService(deps),
    series: new SeriesService(deps),
    historyRetention: new HistoryRetention(sql),
    passwords,
    onFault,
    tail,
    jobQueue,
    outbound,
    storage,
    files,
    uploads: new UploadService({ files, pieces, artifacts, tickets, maxUploadBytes }),
    uploadPieces: pieces,
    uploadTickets: tickets,
    downloads: new DownloadService({ sql, storage, links, linkCaller }),
    linkCaller,
    buckets: new Buckets({ sql, changes, storage }),
    presence,
    storageLimits: new StorageLimitService({ ...deps, config }),
    events: new EventService({
      config,
      tail,
      missed: new MissedEvents(sql),
      sql,
      access,
      authentication,
      presence: new PresentStreams({ sql, presence, onFault }),
      onFault,
    }),
    auth: authService,
    sessions,
    mail,
    requestedMails: new RequestedMails({ prisma, changes, mail, mailBudgets }),
    emailProofs: new EmailProofs(auth),
    passwordChanges: new PasswordChanges(auth),
    registration,
    organizations: new OrganizationService({ ...deps, config }),
    organizationMembers: new OrganizationMemberService({ ...deps, authentication }),
    invitations: new InvitationService({ ...deps, mail, mailBudgets }),
    users: new UserService({
      ...deps,
      registration,
      sessions,
      authentication,
      emailChange: new EmailChange({ prisma, mail, mailBudgets, currentPassword }),
    }),
    workspaces: new WorkspaceService(deps),
    workspaceMembers: new WorkspaceMemberService(deps),
    models: new LogicalModelService(deps),
    modelEntitlements: new ModelEntitlementService(deps),
    modelRouting: new ModelRoutingService({ ...deps, activity }),
    modelUsage: new ModelUsageService(deps),
    providerAccounts: new ProviderAccountService({ ...deps, vault }),
    vault,
    credentials,
    oauthStates,
    identityProviders: new IdentityProviderService({ ...deps, vault, sessions, authentication }),
    domainProofs: new DomainProofs(auth),
    identityLinks: new IdentityLinks(auth),
    identityProviderTests: new IdentityProviderTests(auth),
    identityProviderNotices: identityProviderNotices({ changes }),
    federatedSignIn,
    signInProviders,
    sso: new SsoService({
      config,
      sql,
      changes,
      outbound,
      seal: new Seal(process.appSecret, 'sso state'),
      saml,
      refusals,
      publicUrl,
      identityProviders: signInProviders,
      federatedSignIn,
    }),
    samlChecks,
    saml,
    singleLogout: new SingleLogout({
      sql,
      changes,
      seal: new Seal(process.appSecret, 'single logout'),
      profile: new LogoutProfile({ service: saml, key: samlKey, checks: samlChecks }),
      refusals,
      publicUrl,
      identityProviders: signInProviders,
      sessions,
      authentication,
      auth: authService,
    }),
    connections: new ConnectionService({
      ...deps,
      credentials,
      vault,
      provider,
      removal: connectionRemoval,
      publicUrl,
      states: oauthStates,
    }),
    connectionCredentials,
    connectionRefresh,
    connectionRemoval,
    artifactRemoval,
    graphRemoval: graphs,
    connectionRequirements: new ConnectionRequirementsReader(sql),
    revocations,
    secretReads,
    secrets,
    reveals: new RevealService({ ...deps, prisma, rootKeys, reads: secretReads, onFault }),
    secretNotices: secretNotices({ changes }),
    namespaces: new NamespaceService({
      ...deps,
      secrets,
      connections: connectionRemoval,
      artifacts: artifactRemoval,
      graphs,
    }),
    threads,
    artifacts,
    textExtraction,
    artifactIndexer,
    artifactSearch: new ArtifactSearch({ artifacts, threads, rankings: [new TextRanking(slowReads)] }),
    sources: new SourceService(deps),
    tools: new ToolService(deps),
    toolInstances,
    toolInstanceTests: new ToolInstanceTest({
      ...deps,
      toolInstances,
      credentials,
      outbound,
      connections: connectionCredentials,
      activity,
    }),
    apps,
    apiTokens: new ApiTokenService({ ...deps, authentication, apps, config }),
    apiTokenRefresh: new ApiTokenRefresh({ prisma, changes, authentication, activity, secret: process.appSecret }),
    apiTokenNotices: apiTokenNotices({ changes }),
    releases: new ReleaseService(deps),
    augmentations: new AugmentationService(deps),
    endpoints: new EndpointService(deps),
    actions: new ActionService(deps),
    executions: new ExecutionService({ ...deps, config }),
    recipes: new RecipeService(deps),
    environments: new EnvironmentService({ ...deps, secrets }),
    deployments: new DeploymentService(deps),
    entities: new EntityService(deps),
    memories: new MemoryService(deps),
    notifications: new NotificationService(deps),
  };
}
