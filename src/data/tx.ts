import type { Task } from '../kernel/tasks.ts';
import type { ActivityEntry } from './activity.ts';
import type { QueryRunner } from './find-row.ts';
import type { NewJobOptions } from './job-queue.ts';
import type { LockableTable, LockStrength, RowLocks } from './locks.ts';
import type { Occasion } from './occasions.ts';
import type { EventEntry } from './outbox.ts';
import type { Columns, NewRow, Row, TableName } from './tables.ts';
import type { VersionedRow, VersionedTable } from './versioned-rows.ts';
import type { Statement, Write, Written } from './writes.ts';

/**
 * An open change: its rows, its audit record and its events commit together or not at all. Writes are buffered as long
 * as possible and sent with the record and the events; a change that reads nothing first is a single statement. A
 * `query` sees everything that was written before it.
 */
export interface Tx extends QueryRunner, RowLocks {
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
   * @param options.turnOf the organization for which it is done, by default the caller's: those that have jobs waiting
   * take turns
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
