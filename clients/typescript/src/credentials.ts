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

/** Sends something without credentials. @throws ApiError */
export async function post({ url, fetch: send = fetch }: Service, path: string, body: BodyInit): Promise<Response> {
  return success(await send(addressAt(url, path), { method: 'POST', body }));
}

/** An access token is replaced this long before it expires. */
const EARLY_MS = 30_000;

/** Tokens that replace each other. However many requests need a new one at once, one refresh is sent. */
export class RefreshedTokens<Tokens extends TokenPair> implements Credentials {
  readonly #replace: (refreshToken: string) => Promise<void>;
  #tokens: Tokens;
  #since = Date.now();
  #refreshing: Promise<void> | null = null;

  constructor({ tokens, onTokens }: TokenOptions<Tokens>, exchange: (refreshToken: string) => Promise<Tokens>) {
    this.#tokens = tokens;
    this.#replace = async (refreshToken) => {
      this.#tokens = await exchange(refreshToken);
      this.#since = Date.now();
      await onTokens?.(this.#tokens);
    };
  }

  async token(): Promise<string> {
    const isOld = Date.now() > this.#since + this.#tokens.expires_in * 1_000 - EARLY_MS;
    if (isOld) await this.#refresh();
    return this.#tokens.access_token;
  }

  /** @throws AuthenticationFailedError when the refresh token is worth nothing any more */
  async renew(refused: string): Promise<boolean> {
    return refused !== this.#tokens.access_token || this.#refresh();
  }

  /** @returns whether there are other tokens now */
  async #refresh(): Promise<boolean> {
    const { refresh_token } = this.#tokens;
    if (refresh_token === undefined) return false;
    this.#refreshing ??= this.#replace(refresh_token).finally(() => {
      this.#refreshing = null;
    });
    await this.#refreshing;
    return true;
  }
}

/** The session of a user. */
export class Session extends RefreshedTokens<SessionTokens> {
  constructor(options: TokenOptions<SessionTokens>) {
    super(options, async (refresh_token) => {
      const body = new Blob([JSON.stringify({ refresh_token })], { type: 'application/json' });
      return (await post(options, '/v1/auth/refresh', body)).json() as Promise<SessionTokens>;
    });
  }
}
