import type { ResourceWord } from './resources.ts';
import type { Task } from './tasks.ts';

/** A column that holds references to secrets: `sec_…`, or `secret://name`. Its table has an `org_id` and an `id`. */
export interface SecretReference {
  /** What a row is called where it keeps a secret from being destroyed. */
  resource: ResourceWord;
  table: string;
  column: string;
}

/** What the owner of tables declares, as properties; the wiring collects it from all services. */
export interface Owner {
  /** Its background work. */
  readonly tasks?: readonly Task[];
  /** Statements that remove or empty what is past its time. They run every hour, in this order. */
  readonly retention?: readonly string[];
  /** Removes what such rows have outside of the database, before any row goes. */
  removeFiles?(): Promise<unknown>;
  readonly secretReferences?: readonly SecretReference[];
}
