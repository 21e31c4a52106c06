import type { AnyCaller } from '../kernel/caller.ts';
import { ApiError } from '../kernel/errors.ts';
import { Slots } from '../kernel/slots.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { ReplicaReads } from './replica-reads.ts';
import type { ReadRunner, Sql } from './sql.ts';

/** The part of the pool that slow reads may hold: the rest is always there for everything else. */
const SHARE = 0.4;
/** How long a read waits for its turn. */
const WAIT_MS = 3_000;
const WAITING_PER_ORGANIZATION = 50;

interface SlowReadsOptions {
  sql: Sql;
  database: Pick<Database, 'transaction'>;
  /** Where the reads of a request may go instead. */
  replicaReads?: ReplicaReads | null;
  poolSize: number;
  /** How long a statement of a search may take. */
  searchTimeoutMs: number;
}

/**
 * Reads that may take seconds by what is there and what is asked for: searches, traversals, exports and sums. They have
 * a share of the pool, and each organization has half of it: what one tenant asks for never takes the connections that
 * the requests of all others need.
 */
export class SlowReads {
  readonly #options: SlowReadsOptions;
  readonly #slots: Slots;

  constructor(options: SlowReadsOptions) {
    this.#options = options;
    const total = Math.max(1, Math.floor(options.poolSize * SHARE));
    const perOwner = Math.max(1, Math.floor(total / 2));
    this.#slots = new Slots({ total, perOwner, waitingPerOwner: WAITING_PER_ORGANIZATION }, tooManyAtOnce);
  }

  /**
   * The reads of an organization. Each waits for its turn and throws SERVICE_UNAVAILABLE with `retry_after` when that
   * does not come.
   * @param limitMs ends a statement earlier than the limit of the pool does, with the same error
   * @param caller may be answered from a replica
   */
  of(orgId: string, { limitMs, caller }: { limitMs?: number; caller?: AnyCaller } = {}): ReadRunner {
    return { read: (text, values) => this.#inTurn(orgId, () => this.#read(text, values, limitMs, caller)) };
  }

  /** The same for a search: each of its statements ends after `SEARCH_TIMEOUT_MS`. */
  searchesOf(orgId: string, caller?: AnyCaller): ReadRunner {
    return this.of(orgId, { limitMs: this.#options.searchTimeoutMs, caller });
  }

  async #read<Row extends object>(
    text: string,
    values: unknown[],
    limitMs?: number,
    caller?: AnyCaller,
  ): Promise<Row[]> {
    const { sql, database, replicaReads } = this.#options;
    if (caller && replicaReads)
      return replicaReads.run(caller, (at) => readWithin<Row>(at.sql, at, text, values, limitMs));
    return readWithin(sql, database, text, values, limitMs);
  }

  async #inTurn<T>(orgId: string, work: () => Promise<T>): Promise<T> {
    const turn = new AbortController();
    const late = setTimeout(() => turn.abort(tooManyAtOnce()), WAIT_MS);
    await this.#slots.take(orgId, turn.signal).finally(() => clearTimeout(late));
    try {
      return await work();
    } finally {
      this.#slots.release(orgId);
    }
  }
}

/** A read that ends after a time of its own. */
async function readWithin<Row extends object>(
  sql: Sql,
  { transaction }: Pick<Database, 'transaction'>,
  text: string,
  values: unknown[],
  limitMs?: number,
): Promise<Row[]> {
  if (limitMs === undefined) return sql.read<Row>(text, values);
  return transaction(async (own) => {
    // such a statement is long: PostgreSQL would plan it for each of its values, which takes longer than most of them
    const settings = `select set_config('statement_timeout', '${limitMs}', true),
      set_config('plan_cache_mode', 'force_generic_plan', true)`;
    const results = await own.commit([{ text: settings }, sql.queryOf(text, values)]);
    return results.at(-1)!.rows as Row[];
  });
}

const tooManyAtOnce = () =>
  new ApiError(
    'SERVICE_UNAVAILABLE',
    { retry_after: 1, reason: 'too_many_at_once' },
    'Too many searches, traversals, exports or sums of the organization run at once. Try again later.',
  );
