import delay from 'delay';
import { randomText, sha256, urlSafe } from './bytes.ts';
import { addressAt, post, RefreshedTokens, type Service, type TokenOptions, type TokenPair } from './credentials.ts';
import { apiError } from './errors.ts';
import { again } from './requests.ts';

/** An application that is registered at the service as `public`. */
export interface OAuthApplication extends Service {
  clientId: string;
}

/** Tokens of a grant. `refresh_token` is there if the application asked for `offline_access`, or for a device. */
export type GrantTokens = TokenPair;

/** What a user has granted to an application. */
export class Grant extends RefreshedTokens<GrantTokens> {
  constructor(options: OAuthApplication & TokenOptions<GrantTokens>) {
    super(options, async (refresh_token) => {
      const tokens = await exchange(options, { grant_type: 'refresh_token', refresh_token });
      return { refresh_token, ...tokens };
    });
  }
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

/**
 * Signs a user in who has a browser elsewhere (RFC 8628).
 * @throws ApiError with the code `access_denied` or `expired_token`
 */
export async function signInWithDevice({ scope, onCode, signal, ...application }: DeviceOptions): Promise<GrantTokens> {
  const begun = await (await postForm(application, '/device/auth', { scope })).json();
  const { device_code, interval = 5 } = begun as { device_code: string; interval?: number };
  onCode(begun as DeviceRequest);
  let seconds = interval;
  await delay(seconds * 1_000, signal && { signal });
  const poll = () => exchange(application, { grant_type: DEVICE_GRANT, device_code });
  const waitMs = (error: unknown) => {
    const { code } = error as { code?: string };
    if (code === 'slow_down') seconds += 5;
    return code === 'slow_down' || code === 'authorization_pending' ? seconds * 1_000 : null;
  };
  return again(poll, waitMs, signal);
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
  { url, clientId }: OAuthApplication,
  { redirectUri, scope }: { redirectUri: string; scope: string },
): Promise<CodeRequest> {
  const [state, verifier] = [randomText(), randomText()];
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: urlSafe(await sha256(new TextEncoder().encode(verifier))),
    code_challenge_method: 'S256',
    // a refresh token is given to whoever says yes to it
    ...(scope.split(' ').includes('offline_access') && { prompt: 'consent' }),
  });
  return { url: addressAt(url, `/oauth/auth?${query}`), state, verifier };
}

/**
 * Ends a sign-in in a browser.
 * @param back the address that the browser came back to
 * @throws ApiError with the code of the refusal, or `state_mismatch` for an answer to another request
 */
export async function finishSignIn(application: OAuthApplication, begun: Omit<CodeRequest, 'url'>, back: string | URL) {
  const { origin, pathname, searchParams } = new URL(back);
  const { state, iss, error, error_description, code = '' } = Object.fromEntries(searchParams);
  const refused = (code: string, message = code) => apiError({ status: 400, code, message });
  if (state !== begun.state) throw refused('state_mismatch', 'The answer is for another request.');
  if (error) throw refused(error, error_description);
  if (iss !== addressAt(application.url, '/oauth')) throw refused('issuer_mismatch', 'Another server has answered.');
  const form = { grant_type: 'authorization_code', code, redirect_uri: origin + pathname };
  return exchange(application, { ...form, code_verifier: begun.verifier });
}

/** Gives a grant back: none of its tokens is good any more. */
export async function endGrant(application: OAuthApplication, tokens: GrantTokens): Promise<void> {
  await postForm(application, '/token/revocation', { token: tokens.refresh_token ?? tokens.access_token });
}

/** Sends a form to the authorization server. @throws ApiError */
const postForm = (application: OAuthApplication, path: string, form: Record<string, string>) =>
  post(application, `/oauth${path}`, new URLSearchParams({ client_id: application.clientId, ...form }));

/** Exchanges what an application has for tokens. @throws ApiError */
const exchange = async (application: OAuthApplication, form: Record<string, string>) =>
  (await (await postForm(application, '/token', form)).json()) as GrantTokens;
