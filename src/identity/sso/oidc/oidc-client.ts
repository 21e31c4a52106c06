import { createHash } from 'node:crypto';
import * as oauth from 'openid-client';
import { clientSecretBasic } from '../../../platform/outbound/client-secret.ts';
import type { Outbound } from '../../../platform/outbound/outbound.ts';
import { OutboundError } from '../../../platform/outbound/outbound-error.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import type { VerifiedIdentity } from '../verified-identity.ts';
import { Discovery, type ProviderMetadata } from './discovery.ts';
import { identityOf } from './oidc-identity.ts';
import type { OidcProvider } from './oidc-provider.ts';

/** What a sign-in remembers until its callback. */
export interface OidcRequest {
  redirectUri: string;
  state: string;
  nonce: string;
  /** The PKCE verifier. */
  verifier: string;
}

/** What a browser brings back. */
export interface OidcCallback {
  code: string;
  state: string;
  /** RFC 9207; `null` if the provider does not send it. */
  iss: string | null;
}

/** By how many seconds the clock of a provider may be wrong. */
const SKEW_SECONDS = 60;
const MAX_SUBJECT = 255;
const MAX_SESSION_ID = 255;

/**
 * Sign-in with any OpenID provider: the authorization code flow with PKCE. An ID token is accepted only with the
 * provider's signature, although it comes from the provider itself.
 */
export class OidcClient {
  readonly #outbound: Outbound;
  readonly #discovery: Discovery;
  readonly #now: () => number;

  constructor(outbound: Outbound, now: () => number = Date.now) {
    this.#outbound = outbound;
    this.#discovery = new Discovery(outbound, now);
    this.#now = now;
  }

  /** A new PKCE verifier, for one sign-in. */
  newVerifier(): string {
    return oauth.randomPKCECodeVerifier();
  }

  /**
   * The address that a browser opens in order to sign in.
   * @param loginHint the address that the user has entered
   * @throws SsoRefusal, OutboundError
   */
  async authorizationUrl(provider: OidcProvider, request: OidcRequest, loginHint: string | null): Promise<string> {
    const { metadata } = await this.#discovery.of(provider);
    const scopes = provider.scopes.length === 0 ? ['email', 'profile'] : provider.scopes;
    return oauth.buildAuthorizationUrl(this.#configuration(provider, metadata), {
      redirect_uri: request.redirectUri,
      scope: [...new Set(['openid', ...scopes])].join(' '),
      state: request.state,
      nonce: request.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(request.verifier),
      code_challenge_method: 'S256',
      ...(loginHint === null ? {} : { login_hint: loginHint }),
    }).href;
  }

  /**
   * Exchanges the code, and verifies what the provider says.
   * @throws SsoRefusal for everything that is not as it must be; OutboundError if the provider does not answer
   */
  async finish(provider: OidcProvider, request: OidcRequest, callback: OidcCallback): Promise<VerifiedIdentity> {
    const { metadata, keys } = await this.#discovery.of(provider);
    const configuration = this.#configuration(provider, metadata);
    const { redirectUri, state: expectedState, nonce: expectedNonce, verifier: pkceCodeVerifier } = request;
    const back = new URL(redirectUri);
    for (const name of ['code', 'state', 'iss'] as const) {
      const value = callback[name];
      if (value !== null) back.searchParams.set(name, value);
    }
    const tokens = await refusing('the answer of the token endpoint is not valid', () =>
      oauth.authorizationCodeGrant(configuration, back, {
        expectedState,
        expectedNonce,
        pkceCodeVerifier,
        idTokenExpected: true,
      }),
    );
    const claims = tokens.claims()!;
    const algorithm = await keys.verify(tokens.id_token!);
    this.#check(provider, claims, { algorithm, accessToken: tokens.access_token });
    const userInfo = metadata.userinfo_endpoint
      ? await refusing('the answer of the user info endpoint is not valid', () =>
          oauth.fetchUserInfo(configuration, tokens.access_token, claims.sub),
        )
      : {};
    const identity = identityOf(claims, userInfo, provider.groupAttribute);
    return { ...identity, ...sessionOf(claims), idToken: tokens.id_token! };
  }

  /** What the library leaves open. */
  #check(
    { clientId }: OidcProvider,
    { iat, azp, sub, at_hash: given }: oauth.IDToken,
    { algorithm, accessToken }: { algorithm: string; accessToken: string },
  ): void {
    if (iat > this.#now() / 1_000 + SKEW_SECONDS) throw new SsoRefusal('the ID token was issued in the future');
    if (azp !== undefined && azp !== clientId) throw new SsoRefusal('the ID token was issued to another client');
    if (sub === '' || sub.length > MAX_SUBJECT) throw new SsoRefusal('the ID token has no usable subject');
    if (given !== undefined && given !== accessTokenHash(accessToken, algorithm))
      throw new SsoRefusal('the ID token belongs to another access token');
  }

  #configuration(
    { clientId, clientSecret, orgId }: OidcProvider,
    { userinfo_endpoint, end_session_endpoint: _unused, ...metadata }: ProviderMetadata,
  ): oauth.Configuration {
    const configuration = new oauth.Configuration(
      { ...metadata, ...(userinfo_endpoint === undefined ? {} : { userinfo_endpoint }) } as oauth.ServerMetadata,
      clientId,
      { [oauth.clockTolerance]: SKEW_SECONDS },
      authenticationOf(metadata.token_endpoint_auth_methods_supported, clientSecret),
    );
    // whether http is allowed is decided by the outbound client
    oauth.allowInsecureRequests(configuration);
    const send = this.#outbound.fetchFor({ owner: orgId });
    configuration[oauth.customFetch] = (url, { signal: _signal, ...init }) => send(url, { ...init, redirect: 'error' });
    return configuration;
  }
}

function authenticationOf(methods: readonly string[], secret: string | null): oauth.ClientAuth {
  if (secret === null) return oauth.None();
  return methods.includes('client_secret_post') ? oauth.ClientSecretPost(secret) : clientSecretBasic(secret);
}

/** The session at the provider, if it names one that can be kept. */
const sessionOf = ({ sid }: oauth.IDToken): { sessionIndex?: string } =>
  typeof sid === 'string' && sid !== '' && sid.length <= MAX_SESSION_ID ? { sessionIndex: sid } : {};

/** OpenID Connect Core 1.0, section 3.1.3.6. */
function accessTokenHash(accessToken: string, algorithm: string): string {
  const digest = createHash(`sha${/\d{3}$/.exec(algorithm)?.[0] ?? '512'}`)
    .update(accessToken)
    .digest();
  return digest.subarray(0, digest.length / 2).toString('base64url');
}

/** Runs a step of the library. Its errors quote what the provider sent, so only their kind is kept. */
async function refusing<T>(otherwise: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const outbound = OutboundError.in(error);
    if (outbound) throw outbound;
    throw new SsoRefusal(reasonOf(error) ?? otherwise);
  }
}

function reasonOf(error: unknown): string | null {
  if (error instanceof oauth.AuthorizationResponseError) return 'the provider refused to sign the user in';
  if (error instanceof oauth.ResponseBodyError)
    return error.error === 'invalid_grant'
      ? 'the provider does not accept the code'
      : 'the provider refused the request for tokens';
  // the errors of the library have fixed texts; what they quote is in their cause
  const texts: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) texts.push(at.message);
  return REASONS.find(([pattern]) => texts.some((text) => pattern.test(text)))?.[1] ?? null;
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/response parameter "iss"|"iss" \(issuer\) response/, 'the answer names another issuer than the provider, or none'],
  [/"state"/, 'the answer has another state'],
  [/"nonce"/, 'the ID token has another nonce, or none'],
  [/"iss" \(issuer\)/, 'the ID token is from another issuer'],
  [/"azp"|untrusted audiences/, 'the ID token was issued to another client'],
  [/"aud" \(audience\)/, 'the ID token is for another audience'],
  [/"exp"/, 'the ID token has expired or has no expiry'],
  [/"nbf"/, 'the ID token is not valid yet'],
  [/"iat"/, 'the ID token does not say when it was issued'],
  [/JWT "sub"/, 'the ID token has no usable subject'],
  [/body "sub"/, 'the user info is for another subject'],
  [/"alg"|JWS algorithm/, 'the ID token is signed with an algorithm that is not accepted'],
  [/"id_token"/, 'the provider sent no ID token'],
  [/JWT|JWE/, 'the ID token is not a signed JWT'],
];
