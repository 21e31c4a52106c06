import { Access } from './access/access.ts';
import { AccessTokens } from './access/access-tokens.ts';
import { Authentication } from './access/authentication.ts';
import { Passwords } from './access/passwords.ts';
import type { SigningKeys } from './access/signing-keys.ts';
import { TokenUses } from './access/token-uses.ts';
import { AppService } from './apps/app.service.ts';
import { AccountMail } from './auth/account-mail.ts';
import { AuthService } from './auth/auth.service.ts';
import { CurrentPassword } from './auth/current-password.ts';
import { EmailChange } from './auth/email-change.ts';
import { EmailProofs } from './auth/email-proofs.ts';
import { PasswordChanges } from './auth/password-changes.ts';
import { RegistrationService } from './auth/registration.service.ts';
import { Sessions } from './auth/sessions.ts';
import type { Config } from './config.ts';
import { DeploymentService } from './environments/deployment.service.ts';
import { EnvironmentService } from './environments/environment.service.ts';
import { EventService } from './events/event.service.ts';
import { EventTail } from './events/event-tail.ts';
import { MissedEvents } from './events/missed-events.ts';
import { Cursors } from './graphql/cursor.ts';
import { ActivityRecorder, type Outcome } from './infra/activity.ts';
import { Background } from './infra/background.ts';
import { Changes } from './infra/change.ts';
import type { Database } from './infra/database.ts';
import type { Mailer } from './infra/mail.ts';
import type { RootKeys } from './infra/root-keys.ts';
import { Sql } from './infra/sql.ts';
import { LogicalModelService } from './models/logical-model.service.ts';
import { ModelEntitlementService } from './models/model-entitlement.service.ts';
import { ModelRoutingService } from './models/model-routing.service.ts';
import { ModelUsageService } from './models/model-usage.service.ts';
import { ProviderAccountService } from './models/provider-account.service.ts';
import { NamespaceService } from './namespaces/namespace.service.ts';
import { InvitationService } from './organizations/invitation.service.ts';
import { OrganizationService } from './organizations/organization.service.ts';
import { OrganizationMemberService } from './organizations/organization-member.service.ts';
import { ReleaseService } from './releases/release.service.ts';
import { RevealService } from './secrets/reveal.service.ts';
import { SecretService } from './secrets/secret.service.ts';
import { SecretNotices } from './secrets/secret-notices.ts';
import { Vault } from './secrets/vault.ts';
import { ThreadService } from './threads/thread.service.ts';
import { ApiTokenNotices } from './tokens/api-token.notices.ts';
import { ApiTokenRefresh } from './tokens/api-token.refresh.ts';
import { ApiTokenService } from './tokens/api-token.service.ts';
import { UserService } from './users/user.service.ts';
import { Buckets } from './workspaces/buckets.ts';
import { WorkspaceService } from './workspaces/workspace.service.ts';
import { WorkspaceMemberService } from './workspaces/workspace-member.service.ts';

/** What every resource builds on. */
export interface ServiceDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  cursors: Cursors;
}

/** What the process brings along. */
export interface ProcessDeps {
  config: Config;
  database: Database;
  mailer: Mailer;
  keys: SigningKeys;
  rootKeys: RootKeys;
  appSecret: Buffer;
  /** Address under which clients reach the service; known when it listens. */
  publicUrl: () => string;
  onFault: (error: unknown, what: string) => void;
  /** Outcome of a failed operation, as its activity record shows it. */
  outcomeOf: (error: unknown) => Outcome;
}

export type Services = ReturnType<typeof createServices>;

/** The rules of each resource, made once per process. */
export function createServices(process: ProcessDeps) {
  const { config, mailer, publicUrl, onFault } = process;
  const { pool, prisma } = process.database;
  const sql = new Sql(pool);
  const access = new Access(sql, config);
  const tail = new EventTail(sql, config.eventPollMs, onFault);
  const changes = new Changes(prisma, sql, () => tail.nudge());
  const deps: ServiceDeps = { sql, changes, access, cursors: new Cursors(process.appSecret) };
  const background = new Background(onFault);
  const activity = new ActivityRecorder(sql, (error, lost) =>
    onFault(error, `activity records could not be written (${lost} lost)`),
  );
  const tokens = new AccessTokens(process.keys, config.accessTokenTtlSeconds);
  const tokenUses = new TokenUses(sql, onFault);
  const authentication = new Authentication(tokens, tokenUses, sql);
  const sessions = new Sessions({ prisma, tokens, authentication, secret: process.appSecret, config });
  const mail = new AccountMail({ mailer, background, publicUrl });
  const passwords = new Passwords();
  const currentPassword = new CurrentPassword({ prisma, passwords });
  const auth = {
    config,
    prisma,
    changes,
    access,
    authentication,
    tokens,
    passwords,
    currentPassword,
    sessions,
    mail,
    background,
    activity,
  };
  const registration = new RegistrationService(auth);
  const apps = new AppService({ ...deps, authentication });
  const { rootKeys } = process;
  const vault = new Vault({ prisma, changes, rootKeys });
  const secrets = new SecretService({ ...deps, rootKeys, vault, onFault });
  const environments = new EnvironmentService({ ...deps, secrets });
  return {
    prisma,
    sql,
    access,
    cursors: deps.cursors,
    authentication,
    tokenUses,
    activity,
    background,
    passwords,
    outcomeOf: process.outcomeOf,
    onFault,
    tail,
    buckets: new Buckets({ prisma, changes, dataDir: config.dataDir }),
    events: new EventService({ tail, missed: new MissedEvents(sql), access, authentication, onFault }),
    auth: new AuthService(auth),
    emailProofs: new EmailProofs(auth),
    passwordChanges: new PasswordChanges(auth),
    registration,
    organizations: new OrganizationService({ ...deps, config }),
    organizationMembers: new OrganizationMemberService({ ...deps, authentication }),
    invitations: new InvitationService({ ...deps, prisma, mail }),
    users: new UserService({
      ...deps,
      registration,
      sessions,
      authentication,
      emailChange: new EmailChange({ prisma, mail, currentPassword }),
    }),
    workspaces: new WorkspaceService(deps),
    workspaceMembers: new WorkspaceMemberService(deps),
    models: new LogicalModelService(deps),
    modelEntitlements: new ModelEntitlementService(deps),
    modelRouting: new ModelRoutingService({ ...deps, activity }),
    modelUsage: new ModelUsageService(deps),
    providerAccounts: new ProviderAccountService({ ...deps, vault }),
    vault,
    secrets,
    reveals: new RevealService({ ...deps, prisma, rootKeys, reads: secrets.reads, onFault }),
    secretNotices: new SecretNotices({ changes, mail }),
    namespaces: new NamespaceService({ ...deps, secrets }),
    threads: new ThreadService(deps),
    apps,
    apiTokens: new ApiTokenService({ ...deps, prisma, authentication, apps, config }),
    apiTokenRefresh: new ApiTokenRefresh({ prisma, changes, authentication, activity, secret: process.appSecret }),
    apiTokenNotices: new ApiTokenNotices({ changes, mail }),
    releases: new ReleaseService({ ...deps, apps }),
    environments,
    deployments: new DeploymentService({ ...deps, environments: environments.reads, apps: apps.reads }),
  };
}
