import * as oauth from 'openid-client';
import { ApiError } from '../../kernel/errors.ts';
import { clientSecretBasic } from '../../platform/outbound/client-secret.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OAuthService } from '../tools/tool-shapes.ts';
import { labelIn, plainLine, standardAnswer } from './token-answer.ts';

/** The client that a tool instance has at a provider. */
export interface OAuthClient {
  service: OAuthService;
  /** What callers know the provider by. */
  upstream: string;
  clientId: string;
  /** `null` for a public client. */
  clientSecret: string | null;
  /** The organization on whose behalf it calls. */
  orgId: string;
}

/** What a provider granted. */
export interface OAuthGrant {
  accessToken: string;
  refreshToken: string | null;
  /** Seconds that the access token lives; `null` if the provider does not say. */
  lifetime: number | null;
  /** `null` if the provider does not say: then those that were asked for. */
  scopes: string[] | null;
  accountLabel: string | null;
}

/**
 * Why a provider granted nothing. `invalid_grant`: the code or the refresh token is not valid, and will not be.
 * `refused`: an OAuth error that is about the client or the request. `unreachable`, `timeout`, `bad_answer`: the
 * provider did not say anything that can be trusted.
 */
export type RefusalKind = 'invalid_grant' | 'refused' | 'unreachable' | 'timeout' | 'bad_answer';

/** A provider granted nothing. The message is fit for the caller: it has no token and no address. */
export class ProviderRefusal extends Error {
  override readonly name = 'ProviderRefusal';
  readonly kind: RefusalKind;
  readonly upstream: string;

  constructor(kind: RefusalKind, upstream: string, message: string) {
    super(message);
    this.kind = kind;
    this.upstream = upstream;
  }

  /** The error of an operation that needed the answer: 504 if it came too late, otherwise 502. */
  toApiError(): ApiError {
    return this.kind === 'timeout'
      ? new ApiError('UPSTREAM_TIMEOUT', { upstream: this.upstream }, this.message)
      : new ApiError('UPSTREAM_ERROR', { upstream: this.upstream }, this.message);
  }
}

const MESSAGE_LENGTH = 300;
/** Codes of RFC 6749 are such words; anything else is not repeated. */
const ERROR_WORD = /^[a-zA-Z0-9_.-]{1,64}$/;
/** A year: a longer lifetime is none that anybody would see end. */
const MAX_LIFETIME = 31_536_000;
/** Characters of both tokens together. */
const MAX_TOKENS = 64 * 1024;
const MAX_SCOPES = 100;
/** The name of an account is worth no longer wait of the user who connects it. */
const LABEL_TIMEOUT_MS = 4_000;
const LABEL_BYTES = 256 * 1024;

/**
 * OAuth 2.0 with any provider that follows RFC 6749: authorization codes with PKCE (RFC 7636), refresh tokens,
 * revocation (RFC 7009) and tokens for one resource (RFC 8707). Endpoints come from the tool, so nothing is discovered.
 */
export class OAuthProvider {
  readonly #outbound: Outbound;

  constructor(outbound: Outbound) {
    this.#outbound = outbound;
  }

  /** A new PKCE verifier, for one authorization. */
  newVerifier(): string {
    return oauth.randomPKCECodeVerifier();
  }

  /** The address that a user opens in order to grant access. */
  async authorizationUrl(
    client: OAuthClient,
    request: { redirectUri: string; state: string; verifier: string; scopes: readonly string[] },
  ): Promise<string> {
    const { service } = client;
    const parameters = new URLSearchParams(service.authorization_parameters ?? {});
    const scope = request.scopes.join(service.scope_separator ?? ' ');
    if (scope !== '') parameters.set('scope', scope);
    parameters.set('redirect_uri', request.redirectUri);
    parameters.set('state', request.state);
    if (service.resource) parameters.set('resource', service.resource);
    if (service.pkce !== false) {
      parameters.set('code_challenge', await oauth.calculatePKCECodeChallenge(request.verifier));
      parameters.set('code_challenge_method', 'S256');
    }
    return oauth.buildAuthorizationUrl(this.#configuration(client), parameters).href;
  }

  /** Exchanges an authorization code. @throws ProviderRefusal */
  async exchange(
    client: OAuthClient,
    { code, verifier, redirectUri }: { code: string; verifier: string; redirectUri: string },
  ): Promise<OAuthGrant> {
    const parameters = new URLSearchParams({ code, redirect_uri: redirectUri });
    if (client.service.pkce !== false) parameters.set('code_verifier', verifier);
    if (client.service.resource) parameters.set('resource', client.service.resource);
    return this.#granted(client, (configuration) =>
      oauth.genericGrantRequest(configuration, 'authorization_code', parameters),
    );
  }

  /** @throws ProviderRefusal */
  async refresh(client: OAuthClient, refreshToken: string): Promise<OAuthGrant> {
    const { resource } = client.service;
    const parameters = resource ? { resource } : undefined;
    return this.#granted(client, (configuration) => oauth.refreshTokenGrant(configuration, refreshToken, parameters));
  }

  /**
   * The name of the account that granted tokens: from the token answer, or else from where the tool says that it can be
   * asked. `null` if nobody says it: it only helps people to tell connections apart.
   */
  async accountLabelOf(
    { service, orgId }: OAuthClient,
    { accountLabel, accessToken }: OAuthGrant,
  ): Promise<string | null> {
    const { userinfo_url: url, account_label_path: path } = service;
    if (accountLabel !== null || !url) return accountLabel;
    try {
      const answer = await this.#outbound.request({
        url,
        owner: orgId,
        headers: { accept: 'application/json', authorization: `Bearer ${accessToken}` },
        timeoutMs: LABEL_TIMEOUT_MS,
        maxBytes: LABEL_BYTES,
        redirect: 'error',
      });
      return answer.isOk ? labelIn(answer.json(), path ?? null) : null;
    } catch (error) {
      if (OutboundError.in(error)) return null;
      throw error;
    }
  }

  /** Revokes a token, which may be unknown to the provider already. @throws ProviderRefusal */
  async revoke(client: OAuthClient, token: string, kind: 'access_token' | 'refresh_token'): Promise<void> {
    try {
      await oauth.tokenRevocation(this.#configuration(client), token, { token_type_hint: kind });
    } catch (error) {
      throw refusalOf(error, client.upstream);
    }
  }

  async #granted(
    client: OAuthClient,
    ask: (configuration: oauth.Configuration) => Promise<oauth.TokenEndpointResponse>,
  ): Promise<OAuthGrant> {
    let accountLabel: string | null = null;
    const configuration = this.#configuration(client, (label) => {
      accountLabel = label;
    });
    try {
      const { access_token, refresh_token, expires_in, scope } = await ask(configuration);
      if (access_token === '' || access_token.length + (refresh_token?.length ?? 0) > MAX_TOKENS)
        throw new TypeError('The tokens are empty or too long.');
      return {
        accessToken: access_token,
        refreshToken: refresh_token || null,
        lifetime: expires_in === undefined ? null : Math.min(Math.floor(expires_in), MAX_LIFETIME),
        scopes: scope === undefined ? null : scopesIn(scope),
        accountLabel,
      };
    } catch (error) {
      throw refusalOf(error, client.upstream);
    }
  }

  #configuration(client: OAuthClient, onLabel: (label: string) => void = () => undefined): oauth.Configuration {
    const { service, clientId, clientSecret, orgId } = client;
    const configuration = new oauth.Configuration(
      {
        // needed by the library; no token names it, because ID tokens are not read
        issuer: new URL(service.token_url).origin,
        authorization_endpoint: service.authorization_url,
        token_endpoint: service.token_url,
        ...(service.revocation_url ? { revocation_endpoint: service.revocation_url } : {}),
      },
      clientId,
      undefined,
      authenticationOf(service, clientSecret),
    );
    // whether http is allowed is decided by the outbound client
    oauth.allowInsecureRequests(configuration);
    const send = this.#outbound.fetchFor({ owner: orgId });
    configuration[oauth.customFetch] = async (url, { signal: _signal, ...init }) =>
      standardAnswer(await send(url, { ...init, ...requestAs(service, init), redirect: 'error' }), onLabel);
    return configuration;
  }
}

const scopesIn = (scope: string): string[] =>
  scope
    .split(' ')
    .map((word) => plainLine(word, 255))
    .filter((word) => word !== '')
    .slice(0, MAX_SCOPES);

/** Headers and body of a request to a token or revocation endpoint, in the form that the provider takes. */
function requestAs(
  { token_request_format: format, token_request_headers: more }: OAuthService,
  { headers: given, body }: Pick<oauth.CustomFetchOptions, 'headers' | 'body'>,
): { headers: Headers; body: oauth.FetchBody } {
  const headers = new Headers(more ?? {});
  for (const [name, value] of new Headers(given)) headers.set(name, value);
  if (format !== 'json' || !(body instanceof URLSearchParams)) return { headers, body };
  headers.set('content-type', 'application/json');
  // a hint of RFC 7009, which such providers do not follow and may refuse as an unknown field
  const { token_type_hint: _hint, ...fields } = Object.fromEntries(body);
  return { headers, body: JSON.stringify(fields) };
}

function authenticationOf({ token_endpoint_auth_method: method }: OAuthService, secret: string | null) {
  if (secret === null || method === 'none') return oauth.None();
  return method === 'client_secret_basic' ? clientSecretBasic(secret) : oauth.ClientSecretPost(secret);
}

function refusalOf(error: unknown, upstream: string): ProviderRefusal {
  const outbound = OutboundError.in(error);
  if (outbound) {
    const kind = outbound.code === 'timeout' ? 'timeout' : 'unreachable';
    return new ProviderRefusal(kind, upstream, `The provider '${upstream}' could not be reached. ${outbound.message}`);
  }
  if (error instanceof oauth.ResponseBodyError) {
    const word = ERROR_WORD.test(error.error) ? error.error : 'an error';
    const more = error.error_description ? `: ${error.error_description}` : '';
    const text = plainLine(`The provider '${upstream}' answered ${word}${more}`, MESSAGE_LENGTH);
    const isServerFault = error.status >= 500 || /^(server_error|temporarily_unavailable)$/.test(error.error);
    const kind = isServerFault ? 'unreachable' : error.error === 'invalid_grant' ? 'invalid_grant' : 'refused';
    return new ProviderRefusal(kind, upstream, text);
  }
  if (error instanceof oauth.ClientError || error instanceof TypeError)
    return new ProviderRefusal('bad_answer', upstream, `The provider '${upstream}' answered with no usable token.`);
  throw error;
}
