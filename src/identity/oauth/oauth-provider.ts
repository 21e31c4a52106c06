import type { EventEmitter } from 'node:events';
import type { AdapterPayload, Configuration, KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { OAuthKey } from '../../access/oauth-keys.ts';
import { issuerOf, pathPrefixOf, resourcesOf } from '../../access/oauth-tokens.ts';
import { isSameSecret, successorOf, tokenHash } from '../../access/random-token.ts';
import type { Config } from '../../config.ts';
import { clientHostOf, idTokenAlgorithms } from './client-document.ts';
import { type ClientDocuments, MAX_SECONDS } from './client-documents.ts';
import { assertionAlgorithms } from './client-keys.ts';
import { isShared } from './command-line.ts';
import { grantableScopes } from './granted-scopes.ts';
import { OAuthRecords, type RecordDeps } from './oauth-records.ts';

const DAY = 86_400;
/** A code is exchanged at once: longer only helps who stole it. */
const CODE_SECONDS = 60;
const DEVICE_SECONDS = 600;
const INTERACTION_SECONDS = 900;
const MAX_TOKEN_SECONDS = 3_600;
/** An assertion is made for one request: as long as it could be sent again, it is kept in mind. */
const MAX_ASSERTION_SECONDS = 600;
const MAX_CLIENT_BYTES = 65_536;

/** What the provider shows to people. */
export interface OAuthPages {
  error(details: { error: string; description: string | undefined }): string;
  deviceCode(facts: { action: string; xsrf: string; problem: string | null }): string;
  deviceConfirm(facts: DeviceFacts): string;
  deviceDone(): string;
  headers: Readonly<Record<string, string>>;
}

/** What the page shows that asks whether a device is the user's. */
export interface DeviceFacts {
  action: string;
  xsrf: string;
  code: string;
  client: string;
  /** The host of the document of somebody else's program; `null` for any other. */
  clientHost: string | null;
  from: Device;
}

/** Where a device asked from. */
export interface Device {
  ip: string;
  userAgent: string;
}

export interface OAuthProviderDeps {
  publicUrl: string;
  config: Pick<Config, 'accessTokenTtlSeconds' | 'refreshTokenIdleDays' | 'refreshTokenAbsoluteDays'>;
  keys: readonly OAuthKey[];
  secret: Buffer;
  cookieKey: string;
  records: Omit<RecordDeps, 'usedUp' | 'replayed'>;
  documents: ClientDocuments;
  pages: OAuthPages;
  /** The claims of an active user; `null` for anybody else. */
  account: (userId: string) => Promise<{ sub: string; [claim: string]: string | boolean | null | undefined } | null>;
  /** Something is wrong with the service, and not with the request. */
  onFault: (error: unknown) => void;
  /** A user code that somebody typed stands for nothing. */
  onWrongCode: (context: KoaContextWithOIDC) => void;
  /** Whether it is known who sent a request. */
  isSignedIn: (context: KoaContextWithOIDC) => boolean;
}

/** The names of the cookies of oidc-provider. */
export const COOKIES = { session: 'oauth_session', interaction: 'oauth_interaction', resume: 'oauth_resume' } as const;

type Library = typeof import('oidc-provider');

/** The library is loaded when it is first needed: most starts need it late, or never. */
export const oauthLibrary = (): Promise<Library> => import('oidc-provider');

/** The authorization server, for one address of the service. */
export async function newOAuthProvider(deps: OAuthProviderDeps): Promise<Provider> {
  const library = await oauthLibrary();
  const provider = new library.Provider(issuerOf(deps.publicUrl), configurationOf(deps, library));
  provider.proxy = true;
  provider.on('server_error', (_context, error) => deps.onFault(error));
  // what Koa itself cannot answer; without a listener it would write to standard error
  (provider as unknown as EventEmitter).on('error', deps.onFault);
  provider.use(withoutFilledInCode);
  compareHashedSecrets(provider);
  deriveSuccessors(provider, library, deps.secret);
  storeSignedTokens(provider);
  return provider;
}

function configurationOf(deps: OAuthProviderDeps, library: Library): Configuration {
  const { errors } = library;
  const { publicUrl, config, keys, cookieKey, records, documents, pages, account } = deps;
  const path = `${pathPrefixOf(publicUrl)}/oauth`;
  const lifetime = Math.min(config.accessTokenTtlSeconds, MAX_TOKEN_SECONDS);
  return {
    adapter: (kind: string) =>
      new OAuthRecords(kind, {
        ...records,
        usedUp: () => new errors.InvalidGrant('used by two requests at once'),
        replayed: () => new errors.InvalidClientAuth('an assertion works once'),
      }),
    findAccount: async (_context, sub) => {
      const claims = await account(sub);
      return claims ? { accountId: sub, claims: () => claims } : undefined;
    },
    scopes: ['openid', 'offline_access'],
    claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'picture'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    allowOmittingSingleRegisteredRedirectUri: false,
    responseTypes: ['code'],
    subjectTypes: ['public'],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    enabledJWA: {
      idTokenSigningAlgValues: [...idTokenAlgorithms, 'EdDSA'],
      clientAuthSigningAlgValues: [...assertionAlgorithms],
    },
    assertJwtClientAuthClaimsAndHeader: ({ oidc }, claims) => {
      // one for the address of an endpoint may be one that another server has asked for (RFC 7523bis)
      if (claims.aud !== oidc.issuer) throw new errors.InvalidClientAuth('aud must be the issuer, and nothing else');
      if (Number(claims.exp) > Date.now() / 1_000 + MAX_ASSERTION_SECONDS)
        throw new errors.InvalidClientAuth('exp must be within ten minutes');
    },
    // a client is what `documents` has made of its document, with its keys
    fetchResponseBodyLimits: { 'client_id metadata document': MAX_CLIENT_BYTES },
    extraClientMetadata: { properties: ['org_id', 'is_first_party'] },
    pkce: { required: () => true },
    jwks: { keys: [...keys] as NonNullable<Configuration['jwks']>['keys'] },
    cookies: {
      keys: [cookieKey],
      names: { ...COOKIES },
      long: { httpOnly: true, sameSite: 'lax', path, signed: true },
      short: { httpOnly: true, sameSite: 'lax', signed: true },
    },
    ttl: {
      AccessToken: lifetime,
      AuthorizationCode: CODE_SECONDS,
      DeviceCode: DEVICE_SECONDS,
      Grant: config.refreshTokenAbsoluteDays * DAY,
      IdToken: lifetime,
      Interaction: INTERACTION_SECONDS,
      RefreshToken: config.refreshTokenIdleDays * DAY,
      Session: config.refreshTokenIdleDays * DAY,
    },
    // without `offline_access`, the grant ends with the session of the browser (oauth_grants.session_id)
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    rotateRefreshToken: true,
    // whoever gives a token back, gives all back that was granted with it
    revokeGrantPolicy: () => true,
    extraTokenClaims: (_context, token) => ('grantId' in token ? { grant: String(token.grantId) } : undefined),
    clientBasedCORS: () => false,
    renderError: (context, out) => {
      show(context, pages, pages.error({ error: out.error, description: out.error_description }));
    },
    interactions: {
      url: (_context, { uid }) => `${publicUrl}/oauth/interaction/${uid}`,
      policy: policyOf(library),
    },
    loadExistingGrant: async ({ oidc }) => {
      const given = oidc.result?.consent?.grantId;
      const isKnown = oidc.client && !isShared(oidc.client.clientId);
      const grantId = given ?? (isKnown ? oidc.session?.grantIdFor(oidc.client!.clientId) : undefined);
      return grantId ? oidc.provider.Grant.find(grantId) : undefined;
    },
    discovery: { scopes_supported: [...grantableScopes, 'openid', 'profile', 'email', 'offline_access'] },
    // nothing but documents of clients: no other address ever gets into a client
    fetch: (url) => documents.fetch(addressOf(url), library.Provider.ctx?.ip ?? null),
    features: featuresOf(deps, lifetime, errors),
  };
}

const addressOf = (target: string | URL | Request): string =>
  target instanceof Request ? target.url : new URL(target).href;

/**
 * Who is described by a document can change where answers go, without the user, and anybody can begin in the name of
 * the command line: each of their requests is shown to the user, whatever was granted before.
 */
function policyOf({ interactionPolicy: { base, Check } }: Library) {
  const policy = base();
  policy
    .get('consent')
    ?.checks.add(
      new Check('shared_client', 'the user decides about each request of this client', ({ oidc }) =>
        oidc.client && isShared(oidc.client.clientId) && !oidc.result?.consent
          ? Check.REQUEST_PROMPT
          : Check.NO_NEED_TO_PROMPT,
      ),
    );
  return policy;
}

function featuresOf(
  { publicUrl, pages, onWrongCode, isSignedIn, documents }: OAuthProviderDeps,
  lifetime: number,
  errors: Library['errors'],
): NonNullable<Configuration['features']> {
  const resources = resourcesOf(publicUrl);
  return {
    devInteractions: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    claimsParameter: { enabled: false },
    userinfo: { enabled: true },
    pushedAuthorizationRequests: { enabled: true },
    clientIdMetadataDocument: {
      enabled: documents.isOn,
      ack: 'draft-02',
      allowFetch: (_context, clientId) => documents.allows(clientId),
      // of the bounds, `documents` sees to the lower one
      cacheDuration: { min: 1, max: MAX_SECONDS },
    },
    revocation: {
      enabled: true,
      allowedPolicy: (_context, client, token) => token.clientId === client.clientId,
    },
    introspection: {
      enabled: true,
      // a resource server is a confidential application of the same organization
      allowedPolicy: async (context, client, token) => {
        if (client.clientAuthMethod === 'none' || !token.clientId) return false;
        const other = await context.oidc.provider.Client.find(token.clientId);
        return typeof client.org_id === 'string' && other?.org_id === client.org_id;
      },
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_context, _client, oneOf) =>
        oneOf?.includes(resources.api) ? resources.api : (oneOf?.[0] ?? resources.api),
      // who asked only for an identity gets a token for the address that tells it
      useGrantedResource: (_context, model) => [...model.scopes].some((scope) => grantableScopes.includes(scope)),
      getResourceServerInfo: (_context, resource) => {
        if (resource !== resources.api && resource !== resources.mcp) throw new errors.InvalidTarget();
        return {
          scope: grantableScopes.join(' '),
          audience: resource,
          accessTokenTTL: lifetime,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'EdDSA' } },
        };
      },
    },
    deviceFlow: {
      enabled: true,
      mask: '****-****',
      deviceInfo: (context) => ({ ip: context.ip, userAgent: context.get('user-agent').slice(0, 200) }),
      userCodeInputSource: (context, _form, _out, error) => {
        // nobody comes here without a sign-in: if a way is forgotten, it ends here
        if (!isSignedIn(context)) throw new errors.AccessDenied('Sign in first.');
        const problem = problemOf(error);
        if (error?.name === 'NotFoundError') onWrongCode(context);
        show(context, pages, pages.deviceCode({ ...formOf(context), problem }));
      },
      userCodeConfirmSource: (context, _form, client, info, code) => {
        if (!isSignedIn(context)) throw new errors.AccessDenied('Sign in first.');
        const from = info as unknown as Device;
        const clientHost = clientHostOf(client.clientId);
        const name = client.clientName || (clientHost ?? client.clientId);
        show(context, pages, pages.deviceConfirm({ ...formOf(context), code, client: name, clientHost, from }));
      },
      successSource: (context) => show(context, pages, pages.deviceDone()),
    },
  };
}

/** No link has a code in it (RFC 8628, 5.4): it would be sent to somebody who has no device in front of them. */
async function withoutFilledInCode(context: { body?: unknown }, next: () => Promise<void>): Promise<void> {
  await next();
  const { body } = context;
  if (typeof body === 'object' && body && 'verification_uri_complete' in body) delete body.verification_uri_complete;
}

function show(context: KoaContextWithOIDC, { headers }: OAuthPages, body: string): void {
  context.set(headers);
  context.type = 'html';
  context.body = body;
}

function formOf({ oidc }: KoaContextWithOIDC): { action: string; xsrf: string } {
  const { secret = '' } = (oidc.session?.state ?? {}) as { secret?: string };
  return { action: oidc.urlFor('code_verification'), xsrf: secret };
}

function problemOf(error: Error | undefined): string | null {
  if (!error) return null;
  if (error.name === 'NoCodeError') return 'Enter the code that the device shows.';
  if (error.name === 'AbortedError') return 'You have refused it. Nothing was granted.';
  return 'This code is wrong, was used, or has expired.';
}

/** Secrets are kept as hashes. */
function compareHashedSecrets({ Client }: Provider): void {
  const prototype = Client.prototype as unknown as {
    clientSecret: string;
    compareClientSecret(given: string): boolean;
  };
  prototype.compareClientSecret = function compareClientSecret(given) {
    return isSameSecret(tokenHash(given), this.clientSecret);
  };
}

/** A refresh token that is sent twice within the grace gives the very same successor (docs/decisions/0007). */
function deriveSuccessors(provider: Provider, library: Library, secret: Buffer): void {
  const prototype = provider.RefreshToken.prototype as unknown as { generateTokenId(): string };
  const { generateTokenId: random } = prototype as { generateTokenId: (this: object) => string };
  prototype.generateTokenId = function generateTokenId() {
    const entities = (library.Provider.ctx?.oidc.entities ?? {}) as { RotatedRefreshToken?: { jti: string } };
    const rotated = entities.RotatedRefreshToken;
    return rotated ? successorOf(rotated.jti, secret) : random.call(this);
  };
}

type Issued = { value: string; payload?: AdapterPayload };

/** Signed tokens are kept too: what is not stored can neither be told about nor given back. */
function storeSignedTokens(provider: Provider): void {
  const prototype = provider.AccessToken.prototype as unknown as {
    format?: string;
    getValueAndPayload(): Promise<Issued>;
  };
  const { getValueAndPayload: issue } = prototype as { getValueAndPayload: (this: object) => Promise<Issued> };
  prototype.getValueAndPayload = async function getValueAndPayload() {
    const issued = await issue.call(this);
    if (this.format !== 'jwt') return issued;
    this.format = 'opaque';
    const { payload } = await issue.call(this);
    return { value: issued.value, ...(payload && { payload: { ...payload, format: 'opaque' } }) };
  };
}
