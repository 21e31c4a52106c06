import { addressAt } from './address.ts';
import { AuthenticationFailedError, errorOf } from './errors.ts';

/** What a client sends as `Authorization: Bearer …`. */
export interface Credentials {
  /** The token for the next request; `null` sends none. */
  token(): Promise<string | null>;
  /** Called when the service refused a token. @returns whether there is another one now */
  renew?(refused: string): Promise<boolean>;
}

/** A token that does not change: an API token, an app token, or an access token of another program. */
export const bearer = (token: string): Credentials => ({ token: () => Promise.resolve(token) });

/** An access token, and what replaces it. */
export interface TokenPair {
  access_token: string;
  /** Without it, the access token is all there is. */
  refresh_token?: string;
  /** Seconds until the access token expires. */
  expires_in: number;
}

/** An access token is replaced this long before it expires. */
const EARLY_MS = 30_000;

/** Tokens that replace each other. However many requests need a new one at once, one refresh is sent. */
export abstract class RefreshedTokens<Tokens extends TokenPair> implements Credentials {
  readonly #onTokens: ((tokens: Tokens) => void | Promise<void>) | undefined;
  #tokens: Tokens;
  #expiresAt: number;
  #refreshing: Promise<void> | null = null;

  constructor(tokens: Tokens, onTokens: ((tokens: Tokens) => void | Promise<void>) | undefined) {
    this.#tokens = tokens;
    this.#onTokens = onTokens;
    this.#expiresAt = expiryOf(tokens);
  }

  /** Exchanges a refresh token. @throws AuthenticationFailedError when it is worth nothing any more */
  protected abstract exchange(refreshToken: string): Promise<Tokens>;

  async token(): Promise<string> {
    if (Date.now() > this.#expiresAt - EARLY_MS && this.#tokens.refresh_token !== undefined) await this.#refresh();
    return this.#tokens.access_token;
  }

  async renew(refused: string): Promise<boolean> {
    if (refused !== this.#tokens.access_token) return true;
    if (this.#tokens.refresh_token === undefined) return false;
    try {
      await this.#refresh();
      return true;
    } catch (error) {
      // it has ended: the refusal of the request says so
      if (error instanceof AuthenticationFailedError) return false;
      throw error;
    }
  }

  #refresh(): Promise<void> {
    this.#refreshing ??= this.#replace().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #replace(): Promise<void> {
    this.#tokens = await this.exchange(this.#tokens.refresh_token!);
    this.#expiresAt = expiryOf(this.#tokens);
    await this.#onTokens?.(this.#tokens);
  }
}

const expiryOf = ({ expires_in }: TokenPair): number => Date.now() + expires_in * 1_000;

/** The tokens of a signed-in user, as `login` and `register` answer them. */
export type SessionTokens = Required<TokenPair>;

interface SessionOptions {
  /** Address of the service. */
  url: string;
  tokens: SessionTokens;
  /** Called with each new pair: a stored session is worth nothing once its refresh token was replaced. */
  onTokens?: (tokens: SessionTokens) => void | Promise<void>;
  fetch?: typeof fetch;
}

/** The session of a user. */
export class Session extends RefreshedTokens<SessionTokens> {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    super(options.tokens, options.onTokens);
    this.#options = options;
  }

  protected async exchange(refresh_token: string): Promise<SessionTokens> {
    const { url, fetch: send = fetch } = this.#options;
    const response = await send(addressAt(url, '/v1/auth/refresh'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ refresh_token }),
    });
    if (!response.ok) throw await errorOf(response);
    return (await response.json()) as SessionTokens;
  }
}
