import { success } from './errors.ts';
import type { operations } from './generated/rest.ts';

/** What a client sends as `Authorization: Bearer …`. */
export interface Credentials {
  /** The token for the next request; `null` sends none. */
  token(): Promise<string | null>;
  /** Called when the service refused a token. @returns whether there is another one now */
  renew?(refused: string): Promise<boolean>;
}

/** A token that does not change: an API token, an app token, or an access token of another program. */
export const bearer = (token: string | null): Credentials => ({ token: () => Promise.resolve(token) });

type Refreshed = operations['RefreshTokens']['responses'][200]['content']['application/json'];
/** The tokens of a signed-in user, as `login` and `register` answer them. */
export type SessionTokens = Omit<Refreshed, 'token_type'>;
/** An access token, and what replaces it. Without a refresh token, the access token is all there is. */
export type TokenPair = Omit<SessionTokens, 'refresh_token'> & Partial<Pick<SessionTokens, 'refresh_token'>>;

export interface Service {
  /** Address of the service, with the path below which a proxy serves it, if there is one. */
  url: string;
  fetch?: typeof fetch;
}

export interface TokenOptions<Tokens extends TokenPair> extends Service {
  tokens: Tokens;
  /** Called with each new pair. Store it: the refresh token that was replaced is worth nothing. */
  onTokens?: (tokens: Tokens) => void | Promise<void>;
}

/** An address below the service. */
export const addressAt = (url: string, path: string): string => url.replace(/\/+$/, '') + path;

/** Sends something without credentials, and reads the JSON of the answer, if it has any. @throws ApiError */
export async function post<Answer>({ url, fetch: send = fetch }: Service, path: string, body: BodyInit) {
  const text = await (await success(await send(addressAt(url, path), { method: 'POST', body }))).text();
  return (text === '' ? null : JSON.parse(text)) as Answer;
}

/** An access token is replaced this long before it expires. */
const EARLY_SECONDS = 30;

/** Tokens that replace each other. However many requests need a new one at once, one refresh is sent. */
export abstract class RefreshedTokens<Tokens extends TokenPair, Source = Service> implements Credentials {
  readonly #options: Source & TokenOptions<Tokens>;
  #tokens: Tokens;
  #since = Date.now();
  #refreshing: Promise<boolean> | null = null;

  constructor(options: Source & TokenOptions<Tokens>) {
    this.#options = options;
    this.#tokens = options.tokens;
  }

  /** Exchanges a refresh token. @throws AuthenticationFailedError when it is worth nothing any more */
  protected abstract exchange(refreshToken: string, from: Source): Promise<Tokens>;

  async token(): Promise<string> {
    if (Date.now() > this.#since + (this.#tokens.expires_in - EARLY_SECONDS) * 1_000) await this.#refresh();
    return this.#tokens.access_token;
  }

  async renew(refused: string): Promise<boolean> {
    return refused !== this.#tokens.access_token || this.#refresh();
  }

  /** @returns whether there are other tokens now */
  #refresh(): Promise<boolean> {
    this.#refreshing ??= this.#replace().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  async #replace(): Promise<boolean> {
    const { refresh_token } = this.#tokens;
    if (refresh_token === undefined) return false;
    // a refresh token stays good where no other one is given
    this.#tokens = { ...this.#tokens, ...(await this.exchange(refresh_token, this.#options)) };
    this.#since = Date.now();
    await this.#options.onTokens?.(this.#tokens);
    return true;
  }
}

/** The session of a user. */
export class Session extends RefreshedTokens<SessionTokens> {
  protected exchange(refresh_token: string, service: Service): Promise<SessionTokens> {
    const body = new Blob([JSON.stringify({ refresh_token })], { type: 'application/json' });
    return post(service, '/v1/auth/refresh', body);
  }
}
