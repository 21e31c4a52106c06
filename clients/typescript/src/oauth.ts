import delay from 'delay';
import type { ApiError } from './api-error.ts';
import { randomText, sha256, urlSafe } from './bytes.ts';
import { addressAt, post, RefreshedTokens, type Service, type TokenPair } from './credentials.ts';
import { apiError } from './errors.ts';
import { again } from './requests.ts';

/** An application that is registered at the service as `public`. */
export interface OAuthApplication extends Service {
  clientId: string;
}

/** Tokens of a grant. `refresh_token` is there if the application asked for `offline_access`, or for a device. */
export type GrantTokens = TokenPair;

/** What a user has granted to an application. */
export class Grant extends RefreshedTokens<GrantTokens, OAuthApplication> {
  protected exchange(refresh_token: string, application: OAuthApplication): Promise<GrantTokens> {
    return postForm(application, 'token', { grant_type: 'refresh_token', refresh_token });
  }
}

/** What a user does to let a device in: types the code at the address, within so many seconds. */
export type DeviceRequest = { user_code: string; verification_uri: string; expires_in: number };

interface DeviceOptions extends OAuthApplication {
  /** Names of permissions, or `read`, `write`, `admin`, with blanks between them. */
  scope: string;
  /** Called once with what to show to the user. */
  onCode: (request: DeviceRequest) => void;
  signal?: AbortSignal;
}

/**
 * Signs a user in who has a browser elsewhere (RFC 8628).
 * @throws ApiError with the code `access_denied` or `expired_token`
 */
export async function signInWithDevice({ scope, onCode, signal, ...application }: DeviceOptions): Promise<GrantTokens> {
  type Begun = DeviceRequest & { device_code: string; interval?: number };
  const begun = await postForm<Begun>(application, 'device/auth', { scope });
  onCode(begun);
  const { device_code, interval = 5 } = begun;
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code };
  let seconds = interval;
  const waitMs = (error: unknown) => {
    const { code } = error as Partial<ApiError>;
    if (code === 'slow_down') seconds += 5;
    return code === 'slow_down' || code === 'authorization_pending' ? seconds * 1_000 : null;
  };
  await delay(seconds * 1_000, signal && { signal });
  return again(() => postForm(application, 'token', form), waitMs, signal);
}

/** A sign-in in this browser that has begun: where to send the browser, and what to keep until it comes back. */
export type CodeRequest = { url: string; state: string; verifier: string };

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
  return postForm<GrantTokens>(application, 'token', { ...form, code_verifier: begun.verifier });
}

/** Gives a grant back: none of its tokens is good any more. */
export const endGrant = (application: OAuthApplication, { access_token, refresh_token }: GrantTokens): Promise<void> =>
  postForm(application, 'token/revocation', { token: refresh_token ?? access_token });

/** Sends a form to the authorization server. @throws ApiError */
const postForm = <Answer>(application: OAuthApplication, path: string, form: Record<string, string>) =>
  post<Answer>(application, `/oauth/${path}`, new URLSearchParams({ client_id: application.clientId, ...form }));
