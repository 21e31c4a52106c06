import { activeSpan } from '../kernel/spans.ts';
import { type Task, TRACE } from '../kernel/tasks.ts';
import { ADD_IN_TURN } from './turns-of-jobs.ts';
import type { Statement } from './writes.ts';

/** How often the queue tries to add a job. Each try fails only if the job with its key begins to run during it. */
const LOOKS = 10;

/** A job to add. */
export interface NewJob {
  task: Task;
  payload: object;
  /** Replaces the waiting job with this key, if there is one. */
  key?: string | undefined;
  /** The earliest time to run. Default: at once. */
  runAt?: Date | undefined;
  /**
   * For whom it is done, such as an organization: those that have jobs waiting take turns. Default: the organization of
   * the caller.
   */
  turnOf?: string | undefined;
}

/** What may be said of a job beside its payload. */
export type NewJobOptions = Omit<NewJob, 'task' | 'payload'>;

/** Takes the jobs that changes add. They run after the commit, on any node. */
export class JobQueue {
  readonly #tasks = new Map<string, Task>();
  #onAdded: () => void = () => undefined;

  /** Declares the tasks of all owners. @throws Error when two have the same name */
  declare(tasks: readonly Task[]): void {
    for (const task of tasks) {
      if (this.#tasks.has(task.name)) throw new Error(`Two tasks are named '${task.name}'.`);
      this.#tasks.set(task.name, task);
    }
  }

  get tasks(): readonly Task[] {
    return [...this.#tasks.values()];
  }

  /**
   * Adds jobs in the transaction of the change. A job whose key another one has takes the place of that one while it
   * waits, and comes after it once it runs. The library looks whether it waits before it takes the place: if a worker
   * takes the other one in between, nothing is added (graphile/worker#580). A second look sees that it runs.
   *
   * @throws Error for an undeclared task
   */
  async add(
    jobs: readonly NewJob[],
    query: (statement: Statement) => Promise<{ key: string | null }[]>,
  ): Promise<void> {
    let missing = jobs;
    for (let look = 0; look < LOOKS && missing.length > 0; look++) {
      const keys = new Set((await query(this.insertion(missing))).map(({ key }) => key));
      missing = missing.filter(({ key }) => key !== undefined && !keys.has(key));
    }
    if (missing.length > 0) throw new Error(`The job '${missing[0]!.task.name}' could not be added.`);
  }

  /** The statement that adds jobs, and answers the keys of those that it added. @throws Error for an undeclared task */
  insertion(jobs: readonly NewJob[]): Statement & { values: [string] } {
    // the work of a request that is recorded goes on in its trace
    const traceparent = activeSpan()?.traceparent;
    const rows = jobs.map(({ task, payload: given, key, runAt, turnOf }) => {
      if (this.#tasks.get(task.name) !== task) throw new Error(`No service declares the task '${task.name}'.`);
      const turn = turnOf === undefined ? task.name : `${task.name} ${turnOf}`;
      const payload = traceparent ? { ...given, [TRACE]: traceparent } : given;
      return { task: task.name, payload, tries: task.tries, key, run_at: runAt, turn, lane: this.#laneOf(task) };
    });
    return { text: ADD_IN_TURN, values: [JSON.stringify(rows)] };
  }

  /** The tasks whose jobs wait for the same workers. */
  #laneOf({ name, atOnce }: Task): string[] {
    if (atOnce !== undefined) return [name];
    return this.tasks.flatMap((task) => (task.atOnce === undefined && !task.schedule ? [task.name] : []));
  }

  /** Call it after the commit: this node looks for jobs at once. */
  added(): void {
    this.#onAdded();
  }

  /** @param listener is called when this process has added jobs */
  onAdded(listener: () => void): void {
    this.#onAdded = listener;
  }
}
