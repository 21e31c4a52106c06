import type { ResourceWord } from '../kernel/resources.ts';
import type { Tx } from './tx.ts';

/** Something that uses a row, as a refusal to delete the row names it. */
export interface RowDependent {
  resource_type: ResourceWord;
  resource_id: string;
  [detail: string]: unknown;
}

/** Most of them that a refusal names. */
export const MAX_DEPENDENTS = 50;

/** What uses the rows of a group below: a group above says it, and the wiring passes it down. */
export interface RowDependents<Row> {
  /** Locks what uses a row that is about to go. Call it before that row is locked: see `locks.ts`. */
  lock(tx: Tx, row: Row): Promise<void>;
  /**
   * What uses the row, at most {@link MAX_DEPENDENTS}. Call it once the row is locked: nothing begins to use it then.
   */
  find(tx: Tx, row: Row): Promise<RowDependent[]>;
  /** Takes the row from what uses it, with a record and an event for each. */
  detach(tx: Tx, row: Row): Promise<void>;
}
