import { isSameSecret, randomToken, tokenHash } from '../access/random-token.ts';
import type { Sql } from '../data/sql.ts';
import { canonicalJson } from '../kernel/json-object.ts';
import type { Principal } from '../kernel/principal.ts';
import type { Seal } from '../platform/keys/seal.ts';

/** How long somebody may think about it, as with the actions of tools (decision 69). */
const CONFIRM_SECONDS = 300;
const TOKEN = /^([\w-]{20,64})\.(\d{10})\.([\da-f]{64})$/;

// an entry like that of an Idempotency-Key, which nobody can name: it is kept for a day, a confirmation five minutes
const USE = `insert into idempotency_keys (id, request_hash, user_id) values ($1, 'confirmed', $2)
  on conflict (id) do nothing returning id`;

/** What is confirmed. */
export interface ConfirmedCall {
  principal: Principal;
  /** Whether the client asks a person, or the model repeats its call: one does not stand for the other. */
  how: 'asked' | 'repeated';
  /** All that decides what is done. */
  call: unknown;
}

/**
 * Confirmations of changes. Each is good once, for five minutes, for the same user and token and exactly the same
 * change. It says itself what it is for, sealed; only that it was used is stored.
 */
export class McpConfirmations {
  readonly #seal: Seal;
  readonly #sql: Sql;

  constructor(seal: Seal, sql: Sql) {
    this.#seal = seal;
    this.#sql = sql;
  }

  issue(confirmed: ConfirmedCall): string {
    const start = `${randomToken()}.${Math.floor(Date.now() / 1_000) + CONFIRM_SECONDS}`;
    return `${start}.${this.#sealOf(start, confirmed)}`;
  }

  /** Uses up a confirmation. @returns whether it is for this call; not if it was used, has expired or is another's */
  async use(token: string, confirmed: ConfirmedCall): Promise<boolean> {
    const [, random = '', until = '', seal = ''] = TOKEN.exec(token) ?? [];
    if (!random || Number(until) * 1_000 <= Date.now()) return false;
    if (!isSameSecret(seal, this.#sealOf(`${random}.${until}`, confirmed))) return false;
    const id = tokenHash(`mcp confirmation ${token}`);
    const used = await this.#sql.change(USE, [id, confirmed.principal.userId]);
    return used.length > 0;
  }

  #sealOf(start: string, { principal: { userId, token }, how, call }: ConfirmedCall): string {
    return this.#seal.fingerprint(canonicalJson([start, userId, token?.id ?? null, how, call]));
  }
}
