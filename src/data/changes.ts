import type { AnyCaller } from '../kernel/caller.ts';
import { errorCatalogue } from '../kernel/errors.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { Transaction } from '../platform/postgres/transaction.ts';
import { type ActivityEntry, activityRow, recordOfChanged } from './activity.ts';
import type { JobQueue } from './job-queue.ts';
import { LockOrder } from './locks.ts';
import type { Notify } from './occasions.ts';
import { OpenChange } from './open-change.ts';
import type { ReplicaReads } from './replica-reads.ts';
import type { Sql } from './sql.ts';
import type { Tx } from './tx.ts';
import { Written } from './writes.ts';

/** A change of a single statement, for cases where a transaction of several statements costs too much. */
export interface StatementChange {
  /** `update … returning …` of one row or none. */
  text: string;
  values: unknown[];
  audit: ActivityEntry;
  /** SQL over the changed row `c` that returns additional metadata of the record, as jsonb. */
  metadata: string;
}

/** Thrown in `work` that did not take enough locks: the next attempt takes them all. */
export class TryAgain extends Error {
  /** PostgreSQL's code for a transaction that must be repeated. */
  readonly code = '40001';
}

// deadlock, serialization failure, and Prisma's name for both
const TRY_AGAIN = /40001|40P01|P2034/;
const ATTEMPTS = 4;

export interface ChangesDeps {
  database: Pick<Database, 'transaction'>;
  sql: Sql;
  jobs: JobQueue;
  notify: Notify;
  /** Whether a lock out of order fails the change: in tests, which set `NODE_ENV=test`. */
  assertsLockOrder: boolean;
  onCommit: () => void;
  /** Where its caller's later reads may go; `null` without replicas. */
  replicaReads?: ReplicaReads | null;
}

/** The write path. */
export class Changes {
  readonly #deps: ChangesDeps;

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
  }

  /**
   * Runs `work` in one transaction with its activity records and events. Repeated up to three times when PostgreSQL
   * chose it as the victim of a deadlock, so `work` must not touch anything but `tx`.
   * @returns the result of `work`; for a row that is still to be written, the row
   */
  async run<T>(caller: AnyCaller, work: (tx: Tx) => Promise<T | Written<T>>): Promise<T> {
    return this.#run(caller, work);
  }

  /**
   * Changes one row with one statement, which also records it. It is committed when this returns. `null` when there was
   * no row.
   */
  async runStatement<Row extends object>(caller: AnyCaller, change: StatementChange): Promise<Row | null> {
    const { text, values, audit, metadata } = change;
    const record = recordOfChanged(values.length + 1, metadata);
    const whole = `with changed as (${text}), recorded as (${record.text}) select * from changed`;
    const rows = await again(() =>
      this.#deps.sql.change<Row>(whole, [...values, ...record.parameters(activityRow(caller, audit))]),
    );
    if (rows.length > 0) caller.request.recorded = true;
    await this.#deps.replicaReads?.committed(caller);
    return rows[0] ?? null;
  }

  async #run<T>(caller: AnyCaller, work: (tx: OpenChange) => Promise<T | Written<T>>): Promise<T> {
    const once = async (transaction: Transaction) => {
      const locks = this.#deps.assertsLockOrder ? new LockOrder() : null;
      const change = new OpenChange(caller, { ...this.#deps, transaction, locks });
      const value = await work(change);
      return { value, ...(await change.commit()) };
    };
    const { value, hasEvents, hasJobs } = await again(() => this.#deps.database.transaction(once));
    // readers of events and workers have their own timers and connections: they are notified outside of the transaction
    if (hasEvents) this.#deps.onCommit();
    if (hasJobs) this.#deps.jobs.added();
    await this.#deps.replicaReads?.committed(caller);
    return value instanceof Written ? value.row : value;
  }
}

/** Repeats the work, up to three times, when PostgreSQL chose it as the victim of a deadlock. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !isTransient(error)) throw error;
      const jitterMs = Math.random() * 20 * attempt;
      await new Promise((done) => setTimeout(done, jitterMs));
    }
  }
}

function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const extensionCode = (error as { extensions?: { code?: string } }).extensions?.code;
  if (extensionCode !== undefined && extensionCode in errorCatalogue) return false;
  const code = 'code' in error ? String(error.code) : '';
  return TRY_AGAIN.test(code) || TRY_AGAIN.test(error.message);
}

// the codes of PostgreSQL and of Prisma
const NOT_UNIQUE = new Set<unknown>(['23505', 'P2002']);

/**
 * Whether an error is the violation of a unique constraint. The service that owns the table turns it into its domain
 * error.
 */
export function brokenUnique(error: unknown): boolean {
  return error instanceof Error && 'code' in error && NOT_UNIQUE.has(error.code);
}
