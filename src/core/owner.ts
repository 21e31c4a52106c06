import type { Task } from './tasks.ts';

/** What the owner of tables declares, as properties; the wiring collects it from all services. */
export interface Owner {
  /** Its background work. */
  readonly tasks?: readonly Task[];
}
