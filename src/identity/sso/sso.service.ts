import { randomBytes } from 'node:crypto';
import type { Budgets } from '../../access/budgets.ts';
import { randomToken } from '../../access/random-token.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { ApiError, invalidInput, notFound } from '../../kernel/errors.ts';
import { isOwnPage, mayFollowUnasked, mayRedirectTo, withParameter } from '../../kernel/redirect-targets.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { SignIn } from '../auth/auth.service.ts';
import type { SessionCodes } from '../auth/session-codes.ts';
import { domainOfEmail } from '../identity-providers/domain-name.ts';
import type { FederatedSignIn } from '../identity-providers/federated-sign-in.ts';
import { ClientSecretUnusable, type IdentityProviders } from '../identity-providers/identity-providers.ts';
import { OidcClient } from './oidc/oidc-client.ts';
import { oidcView, samlView } from './provider-views.ts';
import type { Refusals, TriedProvider } from './refusals.ts';
import type { ServiceProvider } from './saml/service-provider.ts';
import { SsoRefusal } from './sso-refusal.ts';
import { type BegunSignIn, type OpenState, SsoStates } from './sso-states.ts';
import type { VerifiedIdentity } from './verified-identity.ts';

interface SsoDeps {
  config: Pick<Config, 'ssoRedirectUris' | 'ssoStartsPerMinute'>;
  sql: Sql;
  changes: Changes;
  outbound: Outbound;
  seal: Seal;
  saml: ServiceProvider;
  refusals: Refusals;
  publicUrl: () => string;
  identityProviders: IdentityProviders;
  federatedSignIn: FederatedSignIn;
  sessionCodes: SessionCodes;
  budgets: Budgets;
}

/** Whether users of a mail domain sign in at a provider. */
export interface DiscoveredDomain {
  ssoAvailable: boolean;
  providerName: string | null;
  protocol: string | null;
}

/** Where a sign-in goes on. */
export interface Initiated {
  redirectUrl: string;
  protocol: string;
}

/** The end of a sign-in: a session, or an address to which the browser brings a code for it. */
export type Finished = { [Name in keyof SignIn]: SignIn[Name] | null } & { redirectTo: string | null };

const NO_SESSION = {
  accessToken: null,
  refreshToken: null,
  tokenType: null,
  expiresIn: null,
  userId: null,
  orgId: null,
} as const;

/** What is known of a sign-in when it fails. */
interface TriedSignIn {
  /** Where a browser goes on. Taken from the stored state only. */
  redirectUri: string | null;
  provider: TriedProvider | null;
}

/** What finishing a try needs of its provider. */
interface SignInAnswer {
  identity: VerifiedIdentity;
  /** Of SAML: it is used once. */
  assertion: { id: string; expiresAt: Date } | null;
}

/**
 * Sign-in at identity providers (spec, Single sign-on). Every message of a provider that is not accepted gets the same
 * answer; the log has the reason.
 */
export class SsoService {
  readonly #deps: SsoDeps;
  readonly #states: SsoStates;
  readonly #oidc: OidcClient;
  readonly #saml: ServiceProvider;
  readonly #discoveries: Budget;
  readonly #starts: Budget;

  constructor(deps: SsoDeps) {
    const { config, changes, seal, outbound, saml, budgets } = deps;
    this.#deps = deps;
    this.#states = new SsoStates({ changes, seal });
    this.#oidc = new OidcClient(outbound);
    this.#saml = saml;
    this.#discoveries = budgets.of('sso_discoveries', config.ssoStartsPerMinute, 60);
    this.#starts = budgets.of('sso_starts', config.ssoStartsPerMinute, 60);
  }

  /**
   * How users with this address sign in. Only its domain is looked at, so the answer is the same whether or not there
   * is an account. @throws RATE_LIMIT_EXCEEDED
   */
  async discover(caller: AnyCaller, email: string): Promise<DiscoveredDomain> {
    await this.#discoveries.demand(caller.request.ip);
    const found = await this.#deps.identityProviders.byDomain(domainOfEmail(email));
    return found
      ? { ssoAvailable: true, providerName: found.name, protocol: found.protocol }
      : { ssoAvailable: false, providerName: null, protocol: null };
  }

  /**
   * Begins a sign-in.
   * @throws RESOURCE_NOT_FOUND `identity_provider`; InputError at `redirectUri`; RATE_LIMIT_EXCEEDED; UPSTREAM_ERROR,
   * UPSTREAM_TIMEOUT if the provider cannot be asked
   */
  async initiate(caller: AnyCaller, { email, redirectUri }: { email: string; redirectUri: string | null }) {
    const { config, publicUrl, identityProviders } = this.#deps;
    await this.#starts.demand(caller.request.ip);
    if (redirectUri !== null && !mayRedirectTo(redirectUri, { listed: config.ssoRedirectUris, publicUrl: publicUrl() }))
      throw invalidInput(['input', 'redirectUri'], "the address is not in the service's setting SSO_REDIRECT_URIS");
    const domain = domainOfEmail(email);
    const provider = await identityProviders.byDomain(domain);
    if (!provider) throw notFound('identity_provider', domain ?? email);
    const wanted = { kind: 'sign_in', redirectUri, loginHint: email } as const;
    const { redirectUrl } = await this.#begin(caller, provider, wanted, async () => null);
    return { redirectUrl, protocol: provider.protocol };
  }

  /**
   * Begins a sign-in that shows what would happen, and changes nothing.
   * @param start makes the test that will have the result, in the same transaction
   * @returns where the administrator signs in, and the id of the test
   * @throws as {@link initiate}
   */
  async beginTest(
    caller: AnyCaller,
    provider: IdentityProvider,
    start: (tx: Tx) => Promise<string>,
  ): Promise<{ redirectUrl: string; testId: string }> {
    return this.#begin(caller, provider, { kind: 'test', redirectUri: null, loginHint: null }, start);
  }

  /** Finishes a sign-in with the code of an OpenID provider. @throws as {@link finishSaml}; UPSTREAM_ERROR */
  async finishOidc(
    caller: AnyCaller,
    callback: { code: string; state: string; iss: string | null },
  ): Promise<Finished> {
    return this.#finishing(caller, 'oidc', async (tried) => {
      const state = await this.#take(caller, callback.state, tried);
      const provider = await this.#providerOf(state, 'oidc');
      return this.#finish(caller, provider, { state }, async () => {
        const { nonce, verifier } = state;
        if (nonce === null || verifier === null) throw new SsoRefusal('the state is of another protocol');
        const clientSecret = await this.#deps.identityProviders.clientSecret(provider);
        const request = { redirectUri: this.#oidcCallback, state: callback.state, nonce, verifier };
        const identity = await this.#oidc.finish(oidcView(provider, clientSecret), request, callback);
        return { identity, assertion: null };
      });
    });
  }

  /**
   * Finishes a sign-in with the response of a SAML provider.
   * @param callback `relayState` is the state, if the service had asked
   * @throws AUTHENTICATION_FAILED, the same for everything that is wrong; FORBIDDEN with a reason for who may not sign
   * in; RATE_LIMIT_EXCEEDED; SERVICE_UNAVAILABLE
   */
  async finishSaml(
    caller: AnyCaller,
    { samlResponse: message, relayState }: { samlResponse: string; relayState: string | null },
  ): Promise<Finished> {
    return this.#finishing(caller, 'saml', async (tried) => {
      this.#saml.demandRoom();
      const unsolicited = await this.#unsolicited(message, relayState);
      if (unsolicited) tried.provider = unsolicited;
      const state = unsolicited ? null : await this.#take(caller, relayState ?? '', tried);
      const provider = unsolicited ?? (await this.#providerOf(state!, 'saml'));
      const redirectUri = unsolicited ? this.#wanted(relayState) : null;
      return this.#finish(caller, provider, { state, redirectUri }, async () => {
        const accepted = await this.#saml.finish(samlView(provider), message, state?.requestId ?? null);
        const { identity, assertionId: id, expiresAt } = accepted;
        return { identity, assertion: { id, expiresAt } };
      });
    });
  }

  /**
   * Ends a sign-in that an OpenID provider refused, for a browser.
   * @returns where it goes on: to the address that the sign-in was begun with, if the state is its own, or to the page
   * @throws RATE_LIMIT_EXCEEDED
   */
  async refused(caller: AnyCaller, state: string): Promise<string> {
    const { redirectTo } = await this.#finishing(caller, 'oidc', async (tried) => {
      const taken = await this.#take(caller, state, tried);
      const provider = await this.#providerOf(taken, 'oidc');
      return this.#finish(caller, provider, { state: taken }, async () => {
        throw new SsoRefusal('the provider refused to sign the user in');
      });
    });
    return redirectTo ?? this.#page;
  }

  /**
   * Opens the session that a code stands for: of a sign-in at a provider, or at the page of the service.
   * @throws AUTHENTICATION_FAILED, RATE_LIMIT_EXCEEDED
   */
  async exchange(caller: AnyCaller, code: string): Promise<SignIn> {
    const { federatedSignIn, sessionCodes, refusals } = this.#deps;
    await refusals.check(caller);
    try {
      return (await sessionCodes.exchange(caller, code)) ?? (await federatedSignIn.exchange(caller, code));
    } catch (error) {
      if (error instanceof ApiError && error.code === 'AUTHENTICATION_FAILED') await refusals.count(caller);
      throw error;
    }
  }

  /** What a SAML provider has to know of the service, as XML. @throws RESOURCE_NOT_FOUND `identity_provider` */
  async metadata(providerId: string): Promise<string> {
    const provider = await this.#deps.identityProviders.byId(providerId);
    if (provider?.protocol !== 'saml') throw notFound('identity_provider', providerId);
    return this.#saml.metadata(samlView(provider));
  }

  get #page(): string {
    return `${this.#deps.publicUrl()}/account/sign-in`;
  }

  get #oidcCallback(): string {
    return `${this.#deps.publicUrl()}/v1/auth/sso/callback/oidc`;
  }

  /** @param testOf makes the test that the sign-in is, or none */
  async #begin<TestId extends string | null>(
    caller: AnyCaller,
    provider: IdentityProvider,
    wanted: Pick<BegunSignIn, 'kind' | 'redirectUri'> & { loginHint: string | null },
    testOf: (tx: Tx) => Promise<TestId>,
  ): Promise<{ redirectUrl: string; testId: TestId }> {
    const { browser } = caller.request;
    const { loginHint, ...kept } = wanted;
    const state = this.#states.newState();
    const [nonce, verifier] =
      provider.protocol === 'oidc' ? [randomBytes(32).toString('base64url'), this.#oidc.newVerifier()] : [null, null];
    const requestId = provider.protocol === 'saml' ? `_${randomBytes(20).toString('hex')}` : null;
    const redirectUrl = await this.#asking(caller, provider, () =>
      requestId === null
        ? this.#oidc.authorizationUrl(
            oidcView(provider, null),
            { redirectUri: this.#oidcCallback, state, nonce: nonce!, verifier: verifier! },
            loginHint,
          )
        : this.#saml.authorizationUrl(samlView(provider), { requestId, relayState: state }),
    );
    // a program that asks, and has no cookies, opens the address in a browser that has none either
    const isBound = browser !== undefined && (browser.isBrowser || kept.redirectUri !== null);
    const mark = isBound ? browser.mark() : null;
    const testId = await this.#deps.changes.run(caller, async (tx) => {
      const test = await testOf(tx);
      this.#states.begin(tx, state, {
        ...kept,
        testId: test,
        orgId: provider.orgId,
        identityProviderId: provider.id,
        nonce,
        verifier,
        requestId,
        browser: mark,
      });
      return test;
    });
    return { redirectUrl, testId };
  }

  async #take(caller: AnyCaller, state: string, tried: TriedSignIn): Promise<OpenState> {
    const taken = await this.#states.take(caller, state, caller.request.browser?.token ?? null);
    tried.redirectUri = taken.redirectUri;
    tried.provider = { id: taken.identityProviderId, orgId: taken.orgId };
    return taken;
  }

  async #providerOf({ identityProviderId }: OpenState, protocol: string): Promise<IdentityProvider> {
    const provider = await this.#deps.identityProviders.byId(identityProviderId);
    if (provider?.protocol !== protocol)
      throw new SsoRefusal('the provider was switched off, or is of another protocol');
    return provider;
  }

  /** The provider of a response that nobody asked for; `null` if the service had asked, or takes none. */
  async #unsolicited(message: string, relayState: string | null): Promise<IdentityProvider | null> {
    if (relayState !== null && /^[\w-]{43}$/.test(relayState)) return null;
    const id = await this.#saml.recipientOf(message);
    const provider = id === null ? null : await this.#deps.identityProviders.byId(id);
    return provider?.protocol === 'saml' && provider.samlAllowsUnsolicited ? provider : null;
  }

  /** Where a provider that nobody asked wants the browser to go on; `null` unless the operator allows it. */
  #wanted(relayState: string | null): string | null {
    const { config, publicUrl } = this.#deps;
    const targets = { listed: config.ssoRedirectUris, publicUrl: publicUrl() };
    return relayState !== null && mayFollowUnasked(relayState, targets) ? relayState : null;
  }

  /** @param ask verifies the answer of the provider */
  async #finish(
    caller: AnyCaller,
    provider: IdentityProvider,
    { state, redirectUri: wanted = null }: { state: OpenState | null; redirectUri?: string | null },
    ask: () => Promise<SignInAnswer>,
  ): Promise<Finished> {
    const { federatedSignIn } = this.#deps;
    if (state?.testId) {
      await this.#finishTest(provider, state.testId, ask);
      return { ...NO_SESSION, redirectTo: `${this.#page}?tested=${state.testId}` };
    }
    const { identity, assertion } = await ask();
    if (assertion) await this.#useAssertion(provider, assertion);
    const redirectUri = state?.redirectUri ?? wanted;
    if (redirectUri === null)
      return { ...(await federatedSignIn.signIn(provider, identity, caller)), redirectTo: null };
    // the page itself signs its browser in by the code: nobody else may be sent there with it
    const isBound = isOwnPage(redirectUri, this.#deps.publicUrl());
    const browser = isBound ? (caller.request.browser?.token ?? randomToken()) : null;
    const code = await federatedSignIn.signInForCode(provider, identity, caller, browser);
    return { ...NO_SESSION, redirectTo: withParameter(redirectUri, 'code', code) };
  }

  /** Stores what a test sign-in has shown, or why it failed. */
  async #finishTest(provider: IdentityProvider, testId: string, ask: () => Promise<SignInAnswer>): Promise<void> {
    const { federatedSignIn, sql } = this.#deps;
    let [failure, result]: [string | null, object | null] = [null, null];
    try {
      const { identity } = await ask();
      const { claims, ...shown } = identity;
      result = { identity: shown, claims, evaluation: await federatedSignIn.evaluate(provider, identity) };
    } catch (error) {
      if (!isRefusal(error) && !(error instanceof OutboundError)) throw error;
      failure = error.message;
    }
    const { text, values } = statement`
      update identity_provider_tests set status = ${failure === null ? 'succeeded' : 'failed'}, failure = ${failure},
        result = ${result === null ? null : JSON.stringify(result)}::jsonb, finished_at = now()
      where id = ${testId} and status = 'pending'`;
    await sql.write(text, values);
  }

  /** @throws SsoRefusal if it was used before, on any node */
  async #useAssertion(
    { id }: IdentityProvider,
    { id: assertionId, expiresAt }: { id: string; expiresAt: Date },
  ): Promise<void> {
    const { sql } = this.#deps;
    const { text, values } = statement`
      insert into sso_assertions (identity_provider_id, assertion_id, expires_at)
      values (${id}, ${assertionId}, ${expiresAt}) on conflict do nothing`;
    if ((await sql.write(text, values)) === 0) throw new SsoRefusal('the assertion was used before');
  }

  /** Asks a provider on behalf of somebody who begins. @throws UPSTREAM_ERROR, UPSTREAM_TIMEOUT */
  async #asking<T>(caller: AnyCaller, provider: IdentityProvider, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const failure = upstreamError(error, provider);
      if (!failure) throw error;
      this.#deps.refusals.log(caller, { what: 'sign-in', protocol: provider.protocol, error });
      throw failure;
    }
  }

  /**
   * Answers everything that is refused in the same way, and counts it. A browser goes where the sign-in was begun, or
   * to the page: with one word for all refusals, and nothing that tells them apart.
   */
  async #finishing(
    caller: AnyCaller,
    protocol: string,
    finish: (tried: TriedSignIn) => Promise<Finished>,
  ): Promise<Finished> {
    const { isRest, browser } = caller.request;
    await this.#deps.refusals.check(caller);
    const tried: TriedSignIn = { redirectUri: null, provider: null };
    try {
      return await finish(tried);
    } catch (error) {
      const refusal = await this.#refusalOf(caller, { protocol, error, tried });
      if (!refusal || !isRest || !browser?.wantsPage) throw refusal ?? error;
      return { ...NO_SESSION, redirectTo: withParameter(tried.redirectUri ?? this.#page, 'error', 'access_denied') };
    }
  }

  /** The answer to what was refused; `null` for any other error. */
  async #refusalOf(
    caller: AnyCaller,
    { protocol, error, tried }: { protocol: string; error: unknown; tried: TriedSignIn },
  ): Promise<ApiError | null> {
    if (error instanceof ApiError) return error.code === 'FORBIDDEN' ? error : null;
    const isRefused = isRefusal(error);
    if (!isRefused && !(error instanceof OutboundError)) return null;
    const { refusals } = this.#deps;
    await refusals.refuse(caller, { what: 'sign-in', protocol, error });
    const answer = isRefused ? notAccepted() : upstreamError(error, null)!;
    if (tried.provider) refusals.record(caller, tried.provider, { failure: error.message, answer });
    return answer;
  }
}

const isRefusal = (error: unknown): error is SsoRefusal | ClientSecretUnusable =>
  error instanceof SsoRefusal || error instanceof ClientSecretUnusable;

/** The one answer to a message that is not accepted. */
const notAccepted = () =>
  new ApiError(
    'AUTHENTICATION_FAILED',
    {},
    'The sign-in at the identity provider was not accepted. Start again. If it fails again, an administrator finds ' +
      'the reason in the log of the service.',
  );

function upstreamError(error: unknown, provider: IdentityProvider | null): ApiError | null {
  const upstream = provider?.name ?? 'identity provider';
  if (error instanceof OutboundError)
    return error.code === 'timeout'
      ? new ApiError('UPSTREAM_TIMEOUT', { upstream }, `The identity provider did not answer in time.`)
      : new ApiError('UPSTREAM_ERROR', { upstream }, `The identity provider could not be reached. ${error.message}`);
  if (error instanceof SsoRefusal)
    return new ApiError(
      'UPSTREAM_ERROR',
      { upstream },
      'The identity provider did not answer with a valid configuration.',
    );
  return null;
}
