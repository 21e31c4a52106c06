import { addressAt } from './address.ts';
import { RefreshedTokens, type TokenPair } from './credentials.ts';
import { ApiError, apiError, errorOf } from './errors.ts';
import { pause } from './resilient-fetch.ts';

/** An application that is registered at the service as `public`. */
export interface OAuthApplication {
  /** Address of the service. */
  url: string;
  clientId: string;
  fetch?: typeof fetch;
}

/** Tokens of a grant. `refresh_token` is there if the application asked for `offline_access`, or for a device. */
export type GrantTokens = TokenPair;

interface Metadata {
  authorization_endpoint: string;
  device_authorization_endpoint: string;
  token_endpoint: string;
  revocation_endpoint: string;
}

/** What a user does to let a device in. */
export interface DeviceRequest {
  /** The code to type at the address. */
  user_code: string;
  verification_uri: string;
  /** Seconds until the code expires. */
  expires_in: number;
}

interface DeviceOptions extends OAuthApplication {
  /** Names of permissions, or `read`, `write`, `admin`, with blanks between them. */
  scope: string;
  /** Called once with what to show to the user. */
  onCode: (request: DeviceRequest) => void;
  signal?: AbortSignal;
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** RFC 8628: without an interval, and how much longer after `slow_down`. */
const INTERVAL_SECONDS = 5;

/**
 * Signs a user in who has a browser elsewhere (RFC 8628).
 * @throws ApiError with the code `access_denied` or `expired_token`
 */
export async function signInWithDevice({ scope, onCode, signal, ...application }: DeviceOptions): Promise<GrantTokens> {
  const metadata = await metadataOf(application);
  type Begun = DeviceRequest & { device_code: string; interval?: number };
  const begun = await post<Begun>(application, metadata.device_authorization_endpoint, { scope });
  onCode(begun);
  for (let seconds = begun.interval ?? INTERVAL_SECONDS; ; ) {
    await pause(seconds * 1_000, signal);
    const form = { grant_type: DEVICE_GRANT, device_code: begun.device_code };
    try {
      return await post<GrantTokens>(application, metadata.token_endpoint, form);
    } catch (error) {
      const code = error instanceof ApiError ? error.code : null;
      if (code === 'slow_down') seconds += INTERVAL_SECONDS;
      else if (code !== 'authorization_pending') throw error;
    }
  }
}

/** A sign-in in this browser that has begun. Keep it until the browser comes back. */
export interface CodeRequest {
  /** Where to send the browser. */
  url: string;
  state: string;
  verifier: string;
}

/** Begins a sign-in in a browser, with a code and PKCE. */
export async function beginSignIn(
  application: OAuthApplication,
  { redirectUri, scope }: { redirectUri: string; scope: string },
): Promise<CodeRequest> {
  const [state, verifier] = [randomText(), randomText()];
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const url = new URL((await metadataOf(application)).authorization_endpoint);
  const query = {
    response_type: 'code',
    client_id: application.clientId,
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
    // a refresh token is given to whoever says yes to it
    ...(scope.split(' ').includes('offline_access') && { prompt: 'consent' }),
  };
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return { url: url.href, state, verifier };
}

/**
 * Ends a sign-in in a browser.
 * @param back the address that the browser came back to
 * @throws ApiError with the code of the refusal, or `state_mismatch` for an answer to another request
 */
export async function finishSignIn(
  application: OAuthApplication,
  { state, verifier }: Pick<CodeRequest, 'state' | 'verifier'>,
  back: string | URL,
): Promise<GrantTokens> {
  const { origin, pathname, searchParams } = new URL(back);
  const refused = (code: string, message: string) => apiError({ status: 400, code, message });
  if (searchParams.get('state') !== state) throw refused('state_mismatch', 'The answer is for another request.');
  const error = searchParams.get('error');
  if (error !== null) throw refused(error, searchParams.get('error_description') ?? error);
  const issuer = addressAt(application.url, '/oauth');
  if (searchParams.get('iss') !== issuer) throw refused('issuer_mismatch', 'The answer is from another server.');
  return post(application, (await metadataOf(application)).token_endpoint, {
    grant_type: 'authorization_code',
    code: searchParams.get('code') ?? '',
    redirect_uri: origin + pathname,
    code_verifier: verifier,
  });
}

interface GrantOptions extends OAuthApplication {
  tokens: GrantTokens;
  /** Called with each new pair: a stored grant is worth nothing once its refresh token was replaced. */
  onTokens?: (tokens: GrantTokens) => void | Promise<void>;
}

/** What a user has granted to an application. */
export class Grant extends RefreshedTokens<GrantTokens> {
  readonly #application: OAuthApplication;

  constructor({ tokens, onTokens, ...application }: GrantOptions) {
    super(tokens, onTokens);
    this.#application = application;
  }

  protected async exchange(refresh_token: string): Promise<GrantTokens> {
    const { token_endpoint } = await metadataOf(this.#application);
    const form = { grant_type: 'refresh_token', refresh_token };
    const tokens = await post<GrantTokens>(this.#application, token_endpoint, form);
    return { refresh_token, ...tokens };
  }
}

/** Gives a grant back: none of its tokens is good any more. */
export async function endGrant(application: OAuthApplication, tokens: GrantTokens): Promise<void> {
  const { revocation_endpoint } = await metadataOf(application);
  await post(application, revocation_endpoint, { token: tokens.refresh_token ?? tokens.access_token });
}

async function metadataOf({ url, fetch: send = fetch }: OAuthApplication): Promise<Metadata> {
  const response = await send(addressAt(url, '/.well-known/oauth-authorization-server/oauth'));
  if (!response.ok) throw await errorOf(response);
  return (await response.json()) as Metadata;
}

async function post<Answer>(
  { clientId, fetch: send = fetch }: OAuthApplication,
  url: string,
  form: Record<string, string>,
): Promise<Answer> {
  const response = await send(url, { method: 'POST', body: new URLSearchParams({ client_id: clientId, ...form }) });
  const body = (await response.json().catch(() => ({}))) as { error?: string; error_description?: string };
  if (response.ok) return body as Answer;
  const { error = `HTTP_${response.status}`, error_description: message = error } = body;
  // a grant that has ended is one: whoever asks signs in again
  const code = error === 'invalid_grant' ? 'AUTHENTICATION_FAILED' : error;
  throw apiError({ status: response.status, code, message, traceId: response.headers.get('x-trace-id') });
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const randomText = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));
