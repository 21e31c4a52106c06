import type { ResourceWord } from './resources.ts';
import type { Task } from './tasks.ts';

/** A column that holds references to secrets: `sec_…`, or `secret://name`. Its table has an `org_id` and an `id`. */
export interface SecretReference {
  /** The resource word of the row, for the refusal to destroy a secret that it references. */
  resource: ResourceWord;
  table: string;
  column: string;
}

/** What the owner of tables declares. The wiring collects it from all services. */
export interface Owner {
  /** Its background work. */
  readonly tasks?: readonly Task[];
  /** Statements that remove or empty rows past their retention. They run every hour, in this order. */
  readonly retention?: readonly string[];
  /** Removes what such rows have outside the database, before the rows are removed. */
  removeFiles?(): Promise<unknown>;
  /** Ends what such rows have elsewhere, as tokens at providers or sources, before anything is removed. */
  endElsewhere?(): Promise<unknown>;
  /** Removes in parts what belongs to such rows and is too much to go with them in one statement. */
  removeParts?(): Promise<unknown>;
  readonly secretReferences?: readonly SecretReference[];
}
