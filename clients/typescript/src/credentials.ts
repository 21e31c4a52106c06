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

/** The tokens of a signed-in user, as `login` and `register` answer them. */
export interface SessionTokens {
  access_token: string;
  refresh_token: string;
  /** Seconds until the access token expires. */
  expires_in: number;
}

interface SessionOptions {
  /** Address of the service. */
  url: string;
  tokens: SessionTokens;
  /** Called with each new pair: a stored session is worth nothing once its refresh token was replaced. */
  onTokens?: (tokens: SessionTokens) => void | Promise<void>;
  fetch?: typeof fetch;
}

/** An access token is replaced this long before it expires. */
const EARLY_MS = 30_000;

/** The session of a user. However many requests need a new access token at once, one refresh is sent. */
export class Session implements Credentials {
  readonly #options: SessionOptions;
  #tokens: SessionTokens;
  #expiresAt: number;
  #refreshing: Promise<void> | null = null;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#tokens = options.tokens;
    this.#expiresAt = expiryOf(options.tokens);
  }

  async token(): Promise<string> {
    if (Date.now() > this.#expiresAt - EARLY_MS) await this.#refresh();
    return this.#tokens.access_token;
  }

  async renew(refused: string): Promise<boolean> {
    if (refused === this.#tokens.access_token) {
      try {
        await this.#refresh();
      } catch (error) {
        // the session has ended: the refusal of the request says so
        if (error instanceof AuthenticationFailedError) return false;
        throw error;
      }
    }
    return true;
  }

  #refresh(): Promise<void> {
    this.#refreshing ??= this.#exchange().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #exchange(): Promise<void> {
    const { url, onTokens, fetch: send = fetch } = this.#options;
    const response = await send(new URL('/v1/auth/refresh', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ refresh_token: this.#tokens.refresh_token }),
    });
    if (!response.ok) throw await errorOf(response);
    this.#tokens = (await response.json()) as SessionTokens;
    this.#expiresAt = expiryOf(this.#tokens);
    await onTokens?.(this.#tokens);
  }
}

const expiryOf = ({ expires_in }: SessionTokens): number => Date.now() + expires_in * 1_000;
