import type { Caller } from '../access/caller.ts';
import { errorCatalogue } from '../core/errors.ts';
import type { Task } from '../core/tasks.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { Transaction } from '../platform/postgres/transaction.ts';
import { type ActivityEntry, activityRow, recordOfChanged } from './activity.ts';
import type { VersionedRow, VersionedTable } from './expectation.ts';
import type { Asked } from './find-row.ts';
import type { JobQueue, NewJob } from './job-queue.ts';
import { type LockableTable, LockOrder, type LockStrength, type RowLocks } from './locks.ts';
import { OpenChange } from './open-change.ts';
import type { EventEntry } from './outbox.ts';
import type { Sql } from './sql.ts';
import type { Columns, NewRow, Row, TableName } from './tables.ts';
import { type Statement, Written } from './writes.ts';

/**
 * A change that is being made: its rows, its audit record and its events commit together or not at all. What is written
 * waits, as far as it can, and leaves with the record and the events; a change that reads nothing before is a single
 * statement. What is asked with `query` sees everything that was written before it.
 */
export interface Tx extends Asked, RowLocks {
  /**
   * A row that has to be there, locked together with what else is written. @param orElse the error when there is none
   */
  demand<Name extends LockableTable>(
    table: Name,
    where: Columns<Name>,
    strength: LockStrength,
    orElse: () => Error,
  ): void;
  /** Writes a new row. */
  insert<Name extends TableName>(table: Name, row: NewRow<Name>): void;
  /** Writes a new row and gives it as the database has it. */
  create<Name extends TableName>(table: Name, row: NewRow<Name>): Written<Row<Name>>;
  /** Sets columns of the rows that have these values, if there are any. */
  update<Name extends TableName>(table: Name, where: Columns<Name>, set: Columns<Name>): void;
  /**
   * Changes the one row that has these values, and gives it as it is then. @param orElse the error when there is none
   */
  change<Name extends TableName>(
    table: Name,
    where: Columns<Name>,
    set: Columns<Name>,
    orElse: () => Error,
  ): Written<Row<Name>>;
  /** Removes the rows that have these values. @param orElse the error when there is none; without it none is fine */
  remove<Name extends TableName>(table: Name, where: Columns<Name>, orElse?: () => Error): void;
  /** Writes by a statement of the caller's: for what the others cannot say. */
  write(statement: Statement): void;
  /** Writes what waits, and waits for it: for a row that is needed before the end. */
  written<T>(row: Written<T>): Promise<T>;
  /**
   * Says what was done. A request has one record: the last call names it, because what is done on the way is said
   * before; that is listed in its metadata as `also`.
   */
  audit(entry: ActivityEntry): void;
  /** Adds an event of the workspace's or organization's stream. Events carry ids, not rows. */
  emit(event: EventEntry): void;
  /**
   * Adds a job that is done after the commit, on any node, with tries until it succeeds; there is none if the
   * transaction does not commit.
   * @param options.key takes the place of the job with this key that waits
   * @param options.runAt not before then
   */
  enqueue<Payload extends object>(task: Task<Payload>, payload: Payload, options?: Pick<NewJob, 'key' | 'runAt'>): void;
  /**
   * Runs after the commit: caches to drop. Never runs if the transaction did not commit; a killed process forgets it.
   */
  afterCommit(action: () => void): void;
  /**
   * Locks the row that is changed and looks at its version, if the caller expects one; call it before the row is
   * written. A version that is not the expected one fails the change when everything else in it went well: what is
   * missing, forbidden or in conflict is told first.
   */
  expectVersion<Name extends VersionedTable>(row: VersionedRow<Name>): Promise<void>;
}

/** A change that is one statement, for where a transaction of many would cost too much. */
export interface StatementChange {
  /** `update … returning …` of one row or none. */
  text: string;
  values: unknown[];
  audit: ActivityEntry;
  /** SQL over the changed row `c` that gives more metadata of the record, as jsonb. */
  metadata: string;
}

/** Thrown in `work` that found its locks to be too few: another try takes them all. */
export class TryAgain extends Error {
  /** As PostgreSQL calls a transaction that must be repeated. */
  readonly code = '40001';
}

// deadlock, serialization failure, and Prisma's name for both
const TRY_AGAIN = /40001|40P01|P2034/;
const ATTEMPTS = 4;

export interface ChangesDeps {
  database: Pick<Database, 'transaction'>;
  sql: Sql;
  jobs: JobQueue;
  /** Whether a lock out of order fails the change: where it is made, not where it is used. */
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
   * Runs `work` in one transaction with its activity records and events. Done again, up to three times, when PostgreSQL
   * broke a deadlock at its cost; so `work` must not touch anything but `tx`.
   * @returns what `work` does; of a row that is still to be written, the row
   */
  async run<T>(caller: Caller, work: (tx: Tx) => Promise<T | Written<T>>): Promise<T> {
    return this.#run(caller, work);
  }

  /**
   * The row that one statement changes, recorded by that very statement: committed when it is here. `null` when there
   * was none.
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
    // what reads events and does jobs has its own timers and connections: it begins outside of the transaction
    if (hasEvents) this.#deps.onCommit();
    if (hasJobs) this.#deps.jobs.added();
    return value instanceof Written ? value.row : value;
  }
}

/** Does it once more, up to three times, when PostgreSQL broke a deadlock at its cost. */
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

// as PostgreSQL calls it, and Prisma
const NOT_UNIQUE = new Set<unknown>(['23505', 'P2002']);

/** Whether an error is a broken unique constraint; the service that owns the table turns it into its domain error. */
export function brokenUnique(error: unknown): boolean {
  return error instanceof Error && 'code' in error && NOT_UNIQUE.has(error.code);
}
