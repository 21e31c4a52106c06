import type { ResourceWord } from './resources.ts';
import type { Task } from './tasks.ts';

/** A column that holds references to secrets: `sec_…`, or `secret://name`. Its table has an `org_id` and an `id`. */
export interface SecretReference {
  /** The resource word of the row, for the refusal to destroy a secret that it references. */
  resource: ResourceWord;
  table: string;
  column: string;
}

/**
 * What the owner of tables declares. The wiring collects it from all services.
 *
 * Retention runs every hour: the owners in the order of `src/wiring/retention-order.ts`, and of each owner
 * `endElsewhere`, `removeFiles`, `removeParts` and the statements of `retention`, in this order. Only the rows know
 * what they have elsewhere and in files, so a method that throws ends the turn of its owner: the rows stay, and the
 * next run repeats the methods from the start. The rows of owners that need this one stay as well. All other owners
 * have their turn.
 */
export interface Owner {
  /** Its background work. */
  readonly tasks?: readonly Task[];
  /** Statements that remove or empty rows past their retention. One that fails stops no other. */
  readonly retention?: readonly string[];
  /** Ends what rows past their retention have elsewhere, as tokens at providers or sources. */
  endElsewhere?(): Promise<unknown>;
  /** Removes what such rows have outside the database. */
  removeFiles?(): Promise<unknown>;
  /** Removes in parts what belongs to such rows and is too much to go with them in one statement. */
  removeParts?(): Promise<unknown>;
  readonly secretReferences?: readonly SecretReference[];
}
