import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdapterPayload, Provider } from 'oidc-provider';
import type { OAuthKey } from '../../access/oauth-keys.ts';
import { issuerOf, type OAuthTokens, pathPrefixOf, resourcesOf } from '../../access/oauth-tokens.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import { loadedOnce } from '../../kernel/loaded-once.ts';
import type { UserPrincipal } from '../../kernel/principal.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { ApplicationGrants, ForeignClient } from './application-grants.ts';
import { clientHostOf, DEVICE_GRANT, type idTokenAlgorithms, shownName } from './client-document.ts';
import { ClientDocuments, isOfMachine } from './client-documents.ts';
import { COMMAND_LINE, commandLineClient, isShared } from './command-line.ts';
import { grantableScopes, identityScopes, isAlwaysAsked } from './granted-scopes.ts';
import { type ChoiceFacts, type ConsentFacts, type OrganizationChoice, oauthPagesOf } from './oauth-pages.ts';
import { COOKIES, newOAuthProvider, oauthLibrary } from './oauth-provider.ts';
import { SealedRecords } from './oauth-records.ts';

/** A user who is signed in to the pages of this origin. */
export interface SessionCaller extends Caller {
  principal: UserPrincipal;
}

interface AuthorizationServerDeps extends Pick<ServiceDeps, 'sql' | 'access' | 'budgets'> {
  config: Pick<
    Config,
    'accessTokenTtlSeconds' | 'refreshTokenIdleDays' | 'refreshTokenAbsoluteDays' | 'oauthClientHosts'
  >;
  outbound: Outbound;
  keys: readonly OAuthKey[];
  /** Those of RSA: it takes a moment to find them. */
  rsaKeys: () => Promise<OAuthKey[]>;
  tokens: OAuthTokens;
  grants: ApplicationGrants;
  secret: Buffer;
  seal: Seal;
  publicUrl: () => string;
  onFault: (error: unknown, what: string) => void;
}

interface ApplicationRow {
  id: string;
  orgId: string;
  organization: string;
  name: string;
  applicationType: string;
  redirectUris: string[];
  isFirstParty: boolean;
  secretHash: string | null;
  idTokenSignedResponseAlg: (typeof idTokenAlgorithms)[number];
}

/** Who asks: an application of an organization, or a shared program for an organization of the user. */
interface AskingClient {
  clientId: string;
  /** What the grant is for. */
  application: string | ForeignClient;
  name: string;
  /** The host of the document of somebody else's program; `null` for any other. */
  clientHost: string | null;
  orgId: string;
  organization: string;
  hasOthers: boolean;
  isFirstParty: boolean;
}

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>;

/** What is to be done with a request of an application that waits for its user. */
export type NextStep =
  | { go: string }
  | { signIn: true }
  | { choice: ChoiceFacts }
  | {
      consent: Omit<ConsentFacts, 'formToken'>;
      formTargets: string[];
      interaction: Interaction;
      client: AskingClient;
    };

/** What a user has decided. */
export interface Decision {
  allow: boolean;
  scopes: readonly string[];
  workspaceIds: readonly string[];
  /** Of the user, for a shared program. */
  organizationId: string | null;
}

const WRONG_CODES = 5;
const WRONG_CODES_SECONDS = 900;
/** Requests of one address per minute that are kept: an office behind one address signs in less often. */
const KEPT_REQUESTS = 300;
const MOST_WORKSPACES = 100;
const MOST_ORGANIZATIONS = 100;
/** Programs of others that a user brings into organizations on one day: each is a row that stays. */
const NEW_CLIENTS = 20;
const DAY = 86_400;
/** MCP clients ask for all that is named here: nobody could read a question about each permission. */
const MCP_SCOPES = ['read', 'write'];

const APPLICATION = `select a.id, a.org_id as "orgId", o.name as organization, a.name,
    a.application_type as "applicationType", a.redirect_uris as "redirectUris",
    a.is_first_party as "isFirstParty", a.secret_hash as "secretHash",
    a.id_token_signed_response_alg as "idTokenSignedResponseAlg"
  from applications a join organizations o on o.id = a.org_id and o.deleted_at is null
  where a.id = $1 and a.metadata_url is null`;
const ACCOUNT = `select email, email_key is not null and is_verified as proven, username, full_name as "fullName",
    avatar_url as "avatarUrl" from users where id = $1 and is_active`;
const SESSION_STARTED = 'select created_at as "createdAt" from sessions where id = $1';
const WORKSPACES = `select id, name from workspaces where org_id = $1 and deleted_at is null
  order by id limit ${MOST_WORKSPACES}`;

// an invitation that was accepted before the present membership was made says nothing about it
const IS_BY_OWN_ACT = `(u.home_org_id = m.org_id or m.added_by = m.user_id or exists (
    select from invitations i where i.org_id = m.org_id and i.accepted_by = m.user_id
      and i.accepted_at >= m.created_at - interval '1 minute'))`;
const JOINED_BY_OWN_ACT = `select 1 from organization_members m join users u on u.id = m.user_id
  where m.org_id = $1 and m.user_id = $2 and ${IS_BY_OWN_ACT}`;
// anybody may make others members of an organization that is called like theirs
const ORGANIZATIONS = `select o.id, o.name from organization_members m join users u on u.id = m.user_id
  join organizations o on o.id = m.org_id and o.deleted_at is null
  where m.user_id = $1 and (m.used_at is not null or ${IS_BY_OWN_ACT})
  order by o.name, o.id limit ${MOST_ORGANIZATIONS}`;

/** The authorization server (OAuth 2.1, OpenID Connect) at `/oauth`. */
export class AuthorizationServer {
  readonly #deps: AuthorizationServerDeps;
  readonly #wrongCodes: Budget;
  readonly #keptRequests: Budget;
  readonly #newClients: Budget;
  readonly #documents: ClientDocuments;
  /** The requests with a code that stands for nothing. */
  readonly #withWrongCode = new WeakSet<IncomingMessage>();
  /** Who is signed in to the pages of this origin, by request. */
  readonly #signedIn = new WeakMap<IncomingMessage, SessionCaller>();
  #made: { publicUrl: string; provider: () => Promise<Provider> } | null = null;

  constructor(deps: AuthorizationServerDeps) {
    this.#deps = deps;
    this.#wrongCodes = deps.budgets.of('wrong_device_codes', WRONG_CODES, WRONG_CODES_SECONDS);
    this.#keptRequests = deps.budgets.of('oauth_requests', KEPT_REQUESTS, 60);
    this.#newClients = deps.budgets.of('new_oauth_clients', NEW_CLIENTS, DAY);
    // older nodes know no keys: they must not read a document that has keys as one without
    const keyOf = (clientId: string) => deps.seal.fingerprint(`client document with keys ${clientId}`);
    const isKept = (clientId: string) => deps.grants.isKept(clientId);
    this.#documents = new ClientDocuments({
      ...deps,
      records: new SealedRecords('ClientDocument', deps),
      keyOf,
      isKept,
    });
  }

  /** The address of the service without a slash at its end. */
  get publicUrl(): string {
    return this.#deps.publicUrl();
  }

  /** Made when it is first needed: only then is the address of the service known. */
  get #provider(): Promise<Provider> {
    const { publicUrl } = this;
    if (this.#made?.publicUrl !== publicUrl)
      this.#made = { publicUrl, provider: loadedOnce(() => this.#newProvider(publicUrl)) };
    return this.#made.provider();
  }

  async #newProvider(publicUrl: string): Promise<Provider> {
    const { config, keys, rsaKeys, secret, seal, grants, sql } = this.#deps;
    return newOAuthProvider({
      publicUrl,
      config,
      keys: [...keys, ...(await rsaKeys())],
      secret,
      cookieKey: seal.fingerprint('cookies'),
      records: {
        sql,
        seal,
        onRevoked: (grantId) => grants.revoke(grantId),
        client: (id) => this.#client(id),
      },
      documents: this.#documents,
      pages: oauthPagesOf(`${pathPrefixOf(publicUrl)}/account/`),
      account: (userId) => this.#account(userId),
      onFault: (error) => this.#deps.onFault(error, 'the authorization server could not answer'),
      onWrongCode: ({ req }) => void this.#withWrongCode.add(req),
      isSignedIn: ({ req }) => this.#signedIn.has(req),
    });
  }

  /** Protected resource metadata (RFC 9728) of the API or of the MCP endpoint. */
  resourceMetadata(kind: 'api' | 'mcp'): object {
    const { publicUrl } = this;
    return {
      resource: resourcesOf(publicUrl)[kind],
      authorization_servers: [issuerOf(publicUrl)],
      bearer_methods_supported: ['header'],
      scopes_supported: kind === 'mcp' ? MCP_SCOPES : grantableScopes,
    };
  }

  /** Whether applications may ask for a scope. */
  isGrantable(scope: string): boolean {
    return grantableScopes.includes(scope);
  }

  /**
   * Prepares the answer to a request at an address of the authorization server.
   * @param from its path and query below `/oauth`, who is signed in to the pages of this origin, and its address
   * @returns what answers it, and never fails
   */
  async answerTo(
    request: IncomingMessage,
    response: ServerResponse,
    { at, caller, address }: { at: string; caller: SessionCaller | null; address: string },
  ): Promise<() => Promise<void>> {
    const { publicUrl } = this;
    const { host, protocol } = new URL(publicUrl);
    // it derives its own addresses from those of the request, which a proxy may have changed
    request.headers.host = host;
    request.headers['x-forwarded-proto'] = protocol.replace(':', '');
    // the first of these addresses is what anybody may have written
    request.headers['x-forwarded-for'] = address;
    delete request.headers['x-forwarded-host'];
    Object.assign(request, { url: at, originalUrl: `${pathPrefixOf(publicUrl)}/oauth${at}` });
    if (caller) this.#signedIn.set(request, caller);
    await this.#dropForeignSession(request, response, caller);
    const provider = await this.#provider;
    return () => provider.callback()(request, response);
  }

  /** The session of the authorization server is that of whoever is signed in: another user's is not used. */
  async #dropForeignSession(
    request: IncomingMessage,
    response: ServerResponse,
    caller: SessionCaller | null,
  ): Promise<void> {
    const session = await this.#sessionOf(request, response);
    if (!session?.accountId || session.accountId === caller?.principal.userId) return;
    const cookies = (request.headers.cookie ?? '')
      .split(';')
      .filter((text) => !text.trim().startsWith(COOKIES.session));
    request.headers.cookie = cookies.join(';');
  }

  async #sessionOf(request: IncomingMessage, response: ServerResponse) {
    const provider = await this.#provider;
    const id = provider.createContext(request, response).cookies.get(COOKIES.session, { signed: true });
    return id ? provider.Session.find(id) : undefined;
  }

  /** Whether a request has a session of the authorization server that is nobody else's. */
  async hasSession(request: IncomingMessage, response: ServerResponse, { principal }: SessionCaller): Promise<boolean> {
    const session = await this.#sessionOf(request, response);
    return session !== undefined && (!session.accountId || session.accountId === principal.userId);
  }

  /** @throws RATE_LIMIT_EXCEEDED for an address that has sent many requests that are kept */
  demandRequest({ request }: AnyCaller): Promise<void> {
    return this.#keptRequests.demand(request.ip);
  }

  /** @throws RATE_LIMIT_EXCEEDED after five wrong codes of devices */
  demandCodes({ principal }: SessionCaller): Promise<void> {
    return this.#wrongCodes.check(principal.userId);
  }

  /**
   * Counts a code as wrong before it is looked up: many at once are no more than five.
   * @returns what takes that back, unless it was wrong
   * @throws RATE_LIMIT_EXCEEDED after five wrong codes of devices
   */
  async takeCode(request: IncomingMessage, { principal }: SessionCaller): Promise<() => Promise<void>> {
    await this.#wrongCodes.demand(principal.userId);
    return async () => {
      if (!this.#withWrongCode.has(request)) await this.#wrongCodes.giveBack(principal.userId);
    };
  }

  /** The identifier under which a signed access token is kept; any other text as it is. */
  async storedToken(token: string): Promise<string> {
    return (await this.#deps.tokens.idOf(token)) ?? token;
  }

  /**
   * What comes next for a request that waits for its user: to sign in, to be asked, or to go on.
   * @param chosen the organization that a shared program is let in for
   * @throws `SessionNotFound` of oidc-provider for a request of another browser, or an old one
   */
  async next(
    request: IncomingMessage,
    response: ServerResponse,
    caller: SessionCaller | null,
    chosen: string | null,
  ): Promise<NextStep> {
    const interaction = await (await this.#provider).interactionDetails(request, response);
    if (!caller) return { signIn: true };
    if (interaction.prompt.name === 'login') return this.#signIn(request, response, caller, interaction);
    const { userId } = caller.principal;
    if (interaction.session?.accountId !== userId) return this.#loggedIn(request, response, caller);
    const client = await this.#asking(caller, interaction, chosen);
    if (!client) return this.#refused(request, response, 'The user is no member of the organization.');
    if ('choice' in client) return client;
    if (client.isFirstParty && goesToWeb(interaction) && (await this.#isUnasked(caller, interaction, client))) {
      const asked = askedBy(interaction);
      return {
        go: await this.#allow(
          request,
          response,
          caller,
          { interaction, client },
          { scopes: asked.scopes, workspaceIds: [] },
        ),
      };
    }
    return {
      consent: await this.#facts(caller, interaction, client),
      formTargets: targetsOf(interaction),
      interaction,
      client,
    };
  }

  /**
   * Whether a first-party application need not ask: for little, in an organization that the user has joined by an act
   * of their own. Anybody may make others members of an organization, and register first-party applications in it.
   */
  async #isUnasked({ principal }: SessionCaller, interaction: Interaction, { orgId }: AskingClient): Promise<boolean> {
    const { identity, scopes } = askedBy(interaction);
    if (wordsOf(interaction.params.prompt).includes('consent')) return false;
    if (identity.some((scope) => scope !== 'openid') || scopes.some(isAlwaysAsked)) return false;
    return (await this.#deps.sql.read(JOINED_BY_OWN_ACT, [orgId, principal.userId])).length > 0;
  }

  /** Who asks, as far as the user may let them in; `null` for nobody that they may let in. */
  async #asking(
    caller: SessionCaller,
    interaction: Interaction,
    chosen: string | null,
  ): Promise<AskingClient | { choice: ChoiceFacts } | null> {
    const clientId = String(interaction.params.client_id);
    if (isShared(clientId)) return this.#foreign(caller, interaction, clientId, chosen);
    const row = await this.#application(clientId);
    if (!row || !(await this.#deps.access.organizationRole(caller, row.orgId))) return null;
    return { ...row, clientId, application: row.id, clientHost: null, hasOthers: false };
  }

  /** The same of a program that belongs to no organization: the user says for which one it may act. */
  async #foreign(
    caller: SessionCaller,
    interaction: Interaction,
    clientId: string,
    chosen: string | null,
  ): Promise<AskingClient | { choice: ChoiceFacts } | null> {
    const found = await (await this.#provider).Client.find(clientId);
    const clientHost = clientHostOf(clientId);
    const organizations = await this.#organizationsOf(caller);
    if (!found || (!clientHost && clientId !== COMMAND_LINE) || organizations.length === 0) return null;
    const [first, ...others] = organizations;
    const organization = others.length === 0 ? first : organizations.find(({ id }) => id === chosen);
    const name = found.clientName || String(clientHost);
    if (!organization) return { choice: { application: name, clientHost, host: hostOf(interaction), organizations } };
    return {
      clientId,
      application: {
        metadataUrl: clientId,
        name: clientHost === null ? name : shownName(found.clientName ?? '', clientHost),
        redirectUris: [...(found.redirectUris ?? [])],
      },
      name,
      clientHost,
      orgId: organization.id,
      organization: organization.name,
      hasOthers: others.length > 0,
      isFirstParty: false,
    };
  }

  /**
   * The organizations that a user may act in, in this session: those that they have joined or used by an act of their
   * own. Where several have one name, the names end with the identifier.
   */
  async #organizationsOf(caller: SessionCaller): Promise<OrganizationChoice[]> {
    const all = await this.#deps.sql.read<OrganizationChoice>(ORGANIZATIONS, [caller.principal.userId]);
    const roles = await Promise.all(all.map(({ id }) => this.#deps.access.organizationRole(caller, id)));
    const found = all.filter((_organization, index) => roles[index] !== null);
    const isRepeated = (name: string) => found.filter((other) => other.name === name).length > 1;
    return found.map(({ id, name }) => ({ id, name: isRepeated(name) ? `${name} (${id})` : name }));
  }

  /** Whether the user has signed in late enough for what the application asks. */
  async #signIn(
    request: IncomingMessage,
    response: ServerResponse,
    caller: SessionCaller,
    { params, prompt, iat }: Interaction,
  ): Promise<NextStep> {
    const started = await this.#startOf(caller);
    const isAsked = wordsOf(params.prompt).includes('login') || prompt.reasons.includes('max_age');
    // the clock of a token has no fractions
    if (isAsked && started < iat) return { signIn: true };
    return this.#loggedIn(request, response, caller);
  }

  async #loggedIn(request: IncomingMessage, response: ServerResponse, caller: SessionCaller): Promise<NextStep> {
    const login = { accountId: caller.principal.userId, ts: await this.#startOf(caller), remember: true };
    return { go: await (await this.#provider).interactionResult(request, response, { login }) };
  }

  async #startOf({ principal }: SessionCaller): Promise<number> {
    const [session] = await this.#deps.sql.read<{ createdAt: Date }>(SESSION_STARTED, [principal.sessionId]);
    return Math.floor((session?.createdAt.getTime() ?? 0) / 1_000);
  }

  async #refused(request: IncomingMessage, response: ServerResponse, why: string): Promise<NextStep> {
    const result = { error: 'access_denied', error_description: why };
    const provider = await this.#provider;
    return { go: await provider.interactionResult(request, response, result, { mergeWithLastSubmission: false }) };
  }

  /** Goes on as the user has decided. @returns where to */
  async decide(
    request: IncomingMessage,
    response: ServerResponse,
    caller: SessionCaller,
    { allow, scopes, workspaceIds, organizationId }: Decision,
  ): Promise<string> {
    const step = await this.next(request, response, caller, organizationId);
    if ('go' in step) return step.go;
    if ('choice' in step) throw forbidden('organization:access', 'Choose one of your organizations.');
    if (!('consent' in step)) throw forbidden('organization:access', 'Sign in first.');
    if (!allow) {
      const refused = await this.#refused(request, response, 'The user has refused it.');
      return 'go' in refused ? refused.go : '';
    }
    const offered = new Set(step.consent.workspaces.map(({ id }) => id));
    if (workspaceIds.some((id) => !offered.has(id))) throw forbidden('workspace:read');
    return this.#allow(request, response, caller, step, { scopes, workspaceIds });
  }

  async #allow(
    request: IncomingMessage,
    response: ServerResponse,
    caller: SessionCaller,
    { interaction, client }: { interaction: Interaction; client: AskingClient },
    chosen: { scopes: readonly string[]; workspaceIds: readonly string[] },
  ): Promise<string> {
    const { userId, sessionId } = caller.principal;
    const { application, orgId } = client;
    if (typeof application !== 'string' && !(await this.#deps.grants.knows(orgId, application.metadataUrl)))
      await this.#newClients.demand(userId);
    const asked = askedBy(interaction);
    const scopes = asked.scopes.filter((scope) => chosen.scopes.includes(scope));
    const isOffline = asked.identity.includes('offline_access');
    const grantId = await this.#deps.grants.create(caller, {
      orgId,
      application,
      userId,
      sessionId: isOffline ? null : sessionId,
      scopes,
      workspaceIds: [...chosen.workspaceIds],
    });
    const provider = await this.#provider;
    const grant = new provider.Grant({ accountId: userId, clientId: client.clientId });
    grant.jti = grantId;
    if (asked.identity.length > 0) grant.addOIDCScope(asked.identity.join(' '));
    for (const resource of asked.resources) {
      const refused = asked.scopes.filter((scope) => !scopes.includes(scope));
      if (scopes.length > 0) grant.addResourceScope(resource, scopes.join(' '));
      if (refused.length > 0) grant.rejectResourceScope(resource, refused.join(' '));
    }
    await grant.save();
    return provider.interactionResult(request, response, { consent: { grantId } });
  }

  async #facts(
    caller: SessionCaller,
    interaction: Interaction,
    client: AskingClient,
  ): Promise<Omit<ConsentFacts, 'formToken'>> {
    const { sql, access } = this.#deps;
    const { identity, scopes } = askedBy(interaction);
    const all = await sql.read<{ id: string; name: string }>(WORKSPACES, [client.orgId]);
    const roles = await Promise.all(all.map(({ id }) => access.workspaceRole(caller, client.orgId, id)));
    return {
      application: client.name,
      clientHost: client.clientHost,
      clientId: client.clientId,
      organizationId: client.orgId,
      organization: client.organization,
      hasOthers: client.hasOthers,
      host: hostOf(interaction),
      user: caller.principal.username,
      identity,
      scopes,
      workspaces: all.filter((_workspace, index) => roles[index] !== null),
      endsWithSession: !identity.includes('offline_access'),
    };
  }

  async #application(id: string): Promise<ApplicationRow | null> {
    if (!/^apl_\w{1,60}$/.test(id)) return null;
    const [row] = await this.#deps.sql.read<ApplicationRow>(APPLICATION, [id]);
    return row ?? null;
  }

  async #client(id: string): Promise<AdapterPayload | undefined> {
    if (id === COMMAND_LINE) return commandLineClient;
    const row = await this.#application(id);
    if (!row) return undefined;
    const isConfidential = row.applicationType === 'confidential' && row.secretHash !== null;
    return {
      client_id: row.id,
      client_name: row.name,
      ...(isConfidential ? { client_secret: row.secretHash! } : {}),
      token_endpoint_auth_method: isConfidential ? 'client_secret_basic' : 'none',
      // programs of the user's own machine listen at any port (RFC 8252)
      application_type: row.redirectUris.some(isOfMachine) ? 'native' : 'web',
      redirect_uris: row.redirectUris,
      grant_types: ['authorization_code', 'refresh_token', DEVICE_GRANT],
      response_types: row.redirectUris.length > 0 ? ['code'] : [],
      id_token_signed_response_alg: row.idTokenSignedResponseAlg,
      org_id: row.orgId,
      is_first_party: row.isFirstParty,
    };
  }

  async #account(id: string) {
    const [user] = await this.#deps.sql.read<{
      email: string;
      proven: boolean;
      username: string;
      fullName: string | null;
      avatarUrl: string | null;
    }>(ACCOUNT, [id]);
    if (!user) return null;
    return {
      sub: id,
      name: user.fullName ?? user.username,
      preferred_username: user.username,
      picture: user.avatarUrl ?? undefined,
      email: user.email,
      email_verified: user.proven,
    };
  }
}

/** What an error of oidc-provider says, which is for the person in front of the browser; `null` for any other one. */
export async function oauthProblem(error: unknown): Promise<{ error: string; description: string | undefined } | null> {
  const { errors } = await oauthLibrary();
  return error instanceof errors.OIDCProviderError
    ? { error: error.error, description: error.error_description }
    : null;
}

const wordsOf = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ') : []);

/** What an application asks for, as far as it may. */
function askedBy({ params }: Interaction): { identity: string[]; scopes: string[]; resources: string[] } {
  const asked = [...new Set(wordsOf(params.scope))];
  const resource = params.resource as string | string[] | undefined;
  return {
    identity: asked.filter((scope) => Object.hasOwn(identityScopes, scope)),
    scopes: asked.filter((scope) => grantableScopes.includes(scope)),
    resources: resource === undefined ? [] : [resource].flat(),
  };
}

/** Where the answer goes. What follows the scheme of a program is its own affair, whatever it looks like. */
function hostOf({ params }: Interaction): string {
  const uri = params.redirect_uri;
  if (typeof uri !== 'string' || !URL.canParse(uri)) return 'your device';
  const { host, protocol } = new URL(uri);
  return protocol === 'https:' || protocol === 'http:' ? host : `the app ${protocol}`;
}

/**
 * Whether the answer goes to a page that only its owner has. A program of the own machine may be another one than it
 * says (RFC 8252, 8.6), and a device may be somebody else's: then the user is always asked.
 */
const goesToWeb = ({ params }: Interaction): boolean => String(params.redirect_uri).startsWith('https://');

function targetsOf({ params }: Interaction): string[] {
  const uri = params.redirect_uri;
  if (typeof uri !== 'string' || !URL.canParse(uri)) return [];
  const { origin, protocol } = new URL(uri);
  return [origin === 'null' ? protocol : origin];
}
