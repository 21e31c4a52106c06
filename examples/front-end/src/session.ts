import { Client, fetchExchange } from 'urql';
import { RefreshDocument } from './generated/documents';

/** What `login` and `refresh` answer. */
interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Seconds. */
  readonly expiresIn: number;
}

/** An access token is exchanged this long before it ends, so that no request carries one that ends on its way. */
const AHEAD_MS = 10_000;

/**
 * The tokens of the signed-in user. They are in memory only: whatever a page can read from its storage, a script that
 * slipped into the page can send away. So a reload asks for the password again.
 */
export class Session {
  #tokens: Tokens;
  #endsAt: number;
  #refreshing: Promise<void> | undefined;
  readonly #client: Client;
  readonly #ended: () => void;

  /** `ended` is called when the service takes the refresh token no more. */
  constructor(tokens: Tokens, url: string, ended: () => void) {
    this.#tokens = tokens;
    this.#endsAt = endOf(tokens);
    this.#ended = ended;
    this.#client = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });
  }

  get accessToken(): string {
    return this.#tokens.accessToken;
  }

  /** Whether the access token should be exchanged before the next request. */
  get isStale(): boolean {
    return Date.now() > this.#endsAt - Math.min(AHEAD_MS, this.#tokens.expiresIn * 500);
  }

  /** An access token that is good for a while: for connections, which carry it once. */
  async freshToken(): Promise<string> {
    if (this.isStale) await this.refresh();
    return this.accessToken;
  }

  /** Exchanges the tokens. Callers at the same time share one exchange. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#exchange().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #exchange(): Promise<void> {
    const input = { refreshToken: this.#tokens.refreshToken };
    const { data, error } = await this.#client.mutation(RefreshDocument, { input }).toPromise();
    if (data) {
      this.#tokens = data.refresh;
      this.#endsAt = endOf(data.refresh);
    } else if (!error?.networkError) this.#ended();
  }
}

const endOf = (tokens: Tokens): number => Date.now() + tokens.expiresIn * 1_000;
