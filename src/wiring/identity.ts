import { apiTokenNotices } from '../identity/api-tokens/api-token.notices.ts';
import { ApiTokenRefresh } from '../identity/api-tokens/api-token.refresh.ts';
import { ApiTokenService } from '../identity/api-tokens/api-token.service.ts';
import { OwnTokens } from '../identity/api-tokens/own-tokens.ts';
import { ApplicationService } from '../identity/applications/application.service.ts';
import { AuthService } from '../identity/auth/auth.service.ts';
import { BrowserSessions } from '../identity/auth/browser-sessions.ts';
import { CurrentPassword } from '../identity/auth/current-password.ts';
import { EmailChange } from '../identity/auth/email-change.ts';
import { EmailProofs } from '../identity/auth/email-proofs.ts';
import { MemberSessions } from '../identity/auth/member-sessions.ts';
import { PasswordChanges } from '../identity/auth/password-changes.ts';
import { RegistrationService } from '../identity/auth/registration.service.ts';
import { RequestedMails } from '../identity/auth/requested-mails.ts';
import { SessionCodes } from '../identity/auth/session-codes.ts';
import { Sessions } from '../identity/auth/sessions.ts';
import { Challenges } from '../identity/factors/challenges.ts';
import { FactorService } from '../identity/factors/factor.service.ts';
import { FactorEnds } from '../identity/factors/factor-ends.ts';
import { FactorProofs } from '../identity/factors/factor-proofs.ts';
import { FactorSignIn, SecondFactor } from '../identity/factors/factor-sign-in.ts';
import { MemberFactors } from '../identity/factors/member-factors.ts';
import { PasskeyService } from '../identity/factors/passkey.service.ts';
import { PasskeyCeremonies } from '../identity/factors/passkey-ceremonies.ts';
import { Totp } from '../identity/factors/totp.ts';
import { DomainProofs } from '../identity/identity-providers/domain-proofs.ts';
import { FederatedSignIn } from '../identity/identity-providers/federated-sign-in.ts';
import { IdentityLinks } from '../identity/identity-providers/identity-links.ts';
import { identityProviderNotices } from '../identity/identity-providers/identity-provider.notices.ts';
import { IdentityProviderService } from '../identity/identity-providers/identity-provider.service.ts';
import { IdentityProviderTests } from '../identity/identity-providers/identity-provider-tests.ts';
import { IdentityProviders } from '../identity/identity-providers/identity-providers.ts';
import { MetadataRefresh } from '../identity/identity-providers/metadata-refresh.ts';
import { TokenResumption } from '../identity/identity-providers/token-resumption.ts';
import { ApplicationGrants } from '../identity/oauth/application-grants.ts';
import { AuthorizationServer } from '../identity/oauth/authorization-server.ts';
import { ScimGroups } from '../identity/scim/scim-groups.ts';
import { ScimTokens } from '../identity/scim/scim-token.service.ts';
import { ScimUsers } from '../identity/scim/scim-users.ts';
import { BreakGlass } from '../identity/sign-in-policy/break-glass.ts';
import { SignInPolicies } from '../identity/sign-in-policy/sign-in-policy.service.ts';
import { BackchannelLogout } from '../identity/sso/backchannel-logout.ts';
import { OidcLogout } from '../identity/sso/oidc/oidc-logout.ts';
import { Refusals } from '../identity/sso/refusals.ts';
import { LogoutProfile } from '../identity/sso/saml/logout-profile.ts';
import { MessageChecks } from '../identity/sso/saml/message-checks.ts';
import { MetadataSource } from '../identity/sso/saml/metadata-source.ts';
import { ServiceKey } from '../identity/sso/saml/service-key.ts';
import { ServiceProvider } from '../identity/sso/saml/service-provider.ts';
import { SingleLogout } from '../identity/sso/single-logout.ts';
import { SsoService } from '../identity/sso/sso.service.ts';
import { UserService } from '../identity/users/user.service.ts';
import type { Ground } from './ground.ts';
import type { Tenancy } from './tenancy.ts';
import type { VaultGroup } from './vault.ts';

/** What sign-in by password and by providers have in common. */
type SignInParts = ReturnType<typeof signInOf>;

/** What second factors and passkeys are made of. */
function factorPartsOf({ prisma, serviceUrl, sealFor }: Ground, { closed: { userCredentials } }: VaultGroup) {
  const totp = new Totp({ credentials: userCredentials, issuer: () => new URL(serviceUrl()).host });
  const ceremonies = new PasskeyCeremonies(serviceUrl);
  return {
    totp,
    ceremonies,
    challenges: new Challenges({ seal: sealFor('challenges') }),
    proofs: new FactorProofs({ prisma, totp, ceremonies }),
    factorEnds: new FactorEnds({ credentials: userCredentials }),
  };
}

function signInOf(
  { config, deps, prisma, appSecret, tokens, mailBudgets, open, closed }: Ground,
  factors: ReturnType<typeof factorPartsOf>,
) {
  const { authentication, activity } = open;
  const { passwords, mail } = closed;
  const sessions = new Sessions({ prisma, changes: deps.changes, tokens, authentication, secret: appSecret, config });
  const currentPassword = new CurrentPassword({ prisma, passwords });
  const { sql, changes, access, budgets } = deps;
  const { factorEnds } = factors;
  const demandFactors = new SecondFactor(factors).demandIfAny;
  const own = { passwords, currentPassword, sessions, mail, mailBudgets, activity, factorEnds, demandFactors };
  return { config, prisma, sql, changes, access, budgets, authentication, tokens, ...own };
}

/** Users, sign-in, API tokens and identity providers. */
export function createIdentity(ground: Ground, tenancy: Tenancy, vaultGroup: VaultGroup) {
  const { vault } = vaultGroup.closed;
  const { secretReads } = vaultGroup.open;
  const { config, prisma, deps, appSecret, open } = ground;
  const { authentication, activity } = open;
  const { apps, organizationMembers, userReads } = tenancy.open;
  const { changes, budgets } = deps;
  const factors = factorPartsOf(ground, vaultGroup);
  const { factorEnds } = factors;
  const signIn = signInOf(ground, factors);
  const { sessions, mail, mailBudgets, currentPassword } = signIn;
  const registration = new RegistrationService(signIn);
  const auth = new AuthService(signIn);
  const emailChange = new EmailChange({ sql: deps.sql, prisma, mail, mailBudgets, budgets, currentPassword });
  const sessionCodes = new SessionCodes({ ...signIn, publicUrl: ground.serviceUrl });
  const single = createSingleSignOn(ground, signIn, { vault, auth, sessionCodes });
  const applicationGrants = new ApplicationGrants({ ...deps, authentication });
  return {
    open: {
      auth,
      requestedMails: new RequestedMails({ prisma, changes, mail, mailBudgets, budgets }),
      emailProofs: new EmailProofs(signIn),
      passwordChanges: new PasswordChanges(signIn),
      registration,
      users: new UserService({
        ...deps,
        reads: userReads,
        registration,
        sessions,
        authentication,
        emailChange,
        factorEnds,
      }),
      identityProviders: new IdentityProviderService({
        ...deps,
        vault,
        secretReads,
        sessions,
        authentication,
        metadata: single.metadata,
      }),
      domainProofs: new DomainProofs(signIn),
      identityLinks: new IdentityLinks(signIn),
      identityProviderTests: new IdentityProviderTests(signIn),
      factorSignIn: new FactorSignIn({ ...signIn, ...factors, auth }),
      factors: new FactorService({ ...signIn, ...factors }),
      passkeys: new PasskeyService({ ...signIn, ...factors }),
      apiTokens: new ApiTokenService({ ...deps, authentication, apps, config }),
      apiTokenRefresh: new ApiTokenRefresh({ prisma, changes, authentication, activity, secret: appSecret }),
      ...single.open,
      ownTokens: new OwnTokens({ ...deps, authentication }),
      memberFactors: new MemberFactors({ ...deps, ...factors, sessions, authentication }),
      memberSessions: new MemberSessions({ ...deps, authentication }),
      signInPolicies: new SignInPolicies({ ...deps, ...factors, authentication }),
      tokenResumption: new TokenResumption(deps),
      breakGlass: new BreakGlass({ ...deps, authentication, currentPassword }),
      browserSessions: new BrowserSessions({ ...deps, authentication, sessions, config }),
      sessionCodes,
      applications: new ApplicationService({ ...deps, authentication }),
      applicationGrants,
      scimTokens: new ScimTokens({ ...deps, config, serviceUrl: ground.serviceUrl }),
      scimUsers: new ScimUsers({ ...signIn, organizationMembers }),
      scimGroups: new ScimGroups(deps),
    },
    closed: {
      sessions,
      challenges: factors.challenges,
      authorizationServer: new AuthorizationServer({
        ...deps,
        config,
        outbound: ground.closed.outbound,
        keys: ground.keysOfGrants,
        rsaKeys: ground.rsaKeys,
        tokens: ground.oauthTokens,
        grants: applicationGrants,
        secret: appSecret,
        seal: ground.sealFor('authorization server'),
        publicUrl: ground.serviceUrl,
        onFault: open.onFault,
      }),
      apiTokenNotices: apiTokenNotices({ changes }),
      identityProviderNotices: identityProviderNotices({ changes }),
      ...single.closed,
    },
  };
}

function createSingleSignOn(
  { config, deps: { sql, changes, budgets }, logger, publicUrl, sealFor, open, closed: { outbound } }: Ground,
  signIn: SignInParts,
  {
    vault,
    auth,
    sessionCodes,
  }: { vault: VaultGroup['closed']['vault']; auth: AuthService; sessionCodes: SessionCodes },
) {
  const { sessions, authentication } = signIn;
  const idTokens = sealFor('id tokens');
  const federatedSignIn = new FederatedSignIn({ ...signIn, idTokens });
  const signInProviders = new IdentityProviders({ sql, vault });
  const samlChecks = new MessageChecks();
  const key = new ServiceKey(config);
  const saml = new ServiceProvider({ publicUrl, key, checks: samlChecks });
  const refusals = new Refusals({ config, logger, budgets, activity: open.activity });
  const oidcLogout = new OidcLogout(outbound);
  const metadata = new MetadataSource({ outbound, checks: samlChecks });
  const common = { sql, changes, refusals, publicUrl, identityProviders: signInProviders };
  return {
    open: {
      sso: new SsoService({
        ...common,
        config,
        budgets,
        outbound,
        seal: sealFor('sso state'),
        saml,
        federatedSignIn,
        sessionCodes,
      }),
      singleLogout: new SingleLogout({
        ...common,
        seal: sealFor('single logout'),
        profile: new LogoutProfile({ service: saml, key, checks: samlChecks }),
        sessions,
        authentication,
        auth,
        oidc: oidcLogout,
        idTokens,
      }),
      backchannelLogout: new BackchannelLogout({ ...common, sessions, authentication, oidc: oidcLogout }),
    },
    closed: {
      federatedSignIn,
      signInProviders,
      samlChecks,
      saml,
      ssoRefusals: refusals,
      metadataRefresh: new MetadataRefresh({ sql, changes, source: metadata }),
    },
    metadata,
  };
}
