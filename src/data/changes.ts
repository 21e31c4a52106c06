import type { Caller } from '../access/caller.ts';
import { errorCatalogue } from '../kernel/errors.ts';
import type { Task } from '../kernel/tasks.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { Transaction } from '../platform/postgres/transaction.ts';
import { type ActivityEntry, activityRow, recordOfChanged } from './activity.ts';
import type { VersionedRow, VersionedTable } from './expectation.ts';
import type { Asked } from './find-row.ts';
import type { JobQueue, NewJobOptions } from './job-queue.ts';
import { type LockableTable, LockOrder, type LockStrength, type RowLocks } from './locks.ts';
import type { Notify, Occasion } from './occasions.ts';
import { OpenChange } from './open-change.ts';
import type { EventEntry } from './outbox.ts';
import type { Sql } from './sql.ts';
import type { Columns, NewRow, Row, TableName } from './tables.ts';
import { type Statement, type Write, Written } from './writes.ts';

/**
 * An open change: its rows, its audit record and its events commit together or not at all. Writes are buffered as long
 * as possible and sent with the record and the events; a change that reads nothing first is a single statement. A
 * `query` sees everything that was written before it.
 */
export interface Tx extends Asked, RowLocks {
  /** Locks a row that must exist, together with the other writes. @param orElse the error when there is none */
  demand<Name extends LockableTable>(
    table: Name,
    where: Columns<Name>,
    strength: LockStrength,
    orElse: () => Error,
  ): void;
  /** Demands something else than a row, together with the other writes: a statement that fails if it is not so. */
  demandThat(condition: Pick<Write, 'shape' | 'text' | 'values'>): void;
  /** Writes a new row. */
  insert<Name extends TableName>(table: Name, row: NewRow<Name>): void;
  /** Writes a new row and returns it as the database stores it. */
  create<Name extends TableName>(table: Name, row: NewRow<Name>): Written<Row<Name>>;
  /** Sets columns of the rows that have these values, if there are any. */
  update<Name extends TableName>(table: Name, where: Columns<Name>, set: Columns<Name>): void;
  /**
   * Changes the one row that has these values, and returns it as it is afterwards. @param orElse the error when there
   * is none
   */
  change<Name extends TableName>(
    table: Name,
    where: Columns<Name>,
    set: Columns<Name>,
    orElse: () => Error,
  ): Written<Row<Name>>;
  /** Removes the rows that have these values. @param orElse the error when there is none; without it none is fine */
  remove<Name extends TableName>(table: Name, where: Columns<Name>, orElse?: () => Error): void;
  /** Runs a hand-written statement, for what the other methods cannot express. */
  write(statement: Statement): void;
  /** Sends the pending writes and waits for them: for a row that is needed before the end. */
  written<T>(row: Written<T>): Promise<T>;
  /**
   * Records what was done. A request has one record, named by the last call, because intermediate steps are recorded
   * before; these are listed in its metadata as `also`.
   */
  audit(entry: ActivityEntry): void;
  /** Adds an event to the stream of the workspace or organization. Events carry ids, not rows. */
  emit(event: EventEntry): void;
  /** Makes notifications of something that no stream sends. Those of events are made without it. */
  announce(occasion: Occasion): void;
  /**
   * Adds a job that runs after the commit, on any node, with retries until it succeeds. Without a commit there is no
   * job.
   * @param options.key replaces the waiting job with this key
   * @param options.runAt the earliest time to run
   * @param options.turnOf the organization for which it is done: those that have jobs waiting take turns
   */
  enqueue<Payload extends object>(task: Task<Payload>, payload: Payload, options?: NewJobOptions): void;
  /**
   * Runs an action after the commit, such as dropping caches. It never runs without a commit, and is lost if the
   * process is killed.
   */
  afterCommit(action: () => void): void;
  /**
   * Locks the row that is changed and reads its version, if the caller expects one. Call it before the row is written.
   * An unexpected version fails the change only when everything else succeeded: missing, forbidden and conflicting
   * resources are reported first.
   */
  expectVersion<Name extends VersionedTable>(row: VersionedRow<Name>): Promise<void>;
}

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
  async run<T>(caller: Caller, work: (tx: Tx) => Promise<T | Written<T>>): Promise<T> {
    return this.#run(caller, work);
  }

  /**
   * Changes one row with one statement, which also records it. It is committed when this returns. `null` when there was
   * no row.
   */
  async runStatement<Row extends object>(caller: Caller, change: StatementChange): Promise<Row | null> {
    const { text, values, audit, metadata } = change;
    const record = recordOfChanged(values.length + 1, metadata);
    const whole = `with changed as (${text}), recorded as (${record.text}) select * from changed`;
    const rows = await again(() =>
      this.#deps.sql.change<Row>(whole, [...values, ...record.parameters(activityRow(caller, audit))]),
    );
    if (rows.length > 0) caller.request.recorded = true;
    return rows[0] ?? null;
  }

  async #run<T>(caller: Caller, work: (tx: OpenChange) => Promise<T | Written<T>>): Promise<T> {
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
