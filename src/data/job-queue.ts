import type { Task } from '../core/tasks.ts';

/** A job that is added. */
export interface NewJob {
  task: Task;
  payload: object;
  /** Takes the place of the job with this key that waits, if there is one. */
  key?: string | undefined;
  /** Not before then; at once if absent. */
  runAt?: Date | undefined;
}

const ADD = `select count(*)::int from jobs.add_jobs(array(
  select (j.task, j.payload, null, j.run_at, j.tries, j.key, null, null)::jobs.job_spec
  from json_to_recordset($1::json) as j(task text, payload json, run_at timestamptz, tries smallint, key text)))`;

/** Where changes put the jobs that they add. They are done after the commit, by any node. */
export class JobQueue {
  readonly #tasks = new Map<string, Task>();
  #onAdded: () => void = () => undefined;

  /** Takes the tasks of all owners. @throws Error when two have one name */
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
   * The statement that adds jobs, for the transaction of the change that wants them. @throws Error for an undeclared
   * task
   */
  insertion(jobs: readonly NewJob[]): { text: string; values: [string] } {
    const rows = jobs.map(({ task, payload, key, runAt }) => {
      if (this.#tasks.get(task.name) !== task) throw new Error(`No service declares the task '${task.name}'.`);
      return { task: task.name, payload, tries: task.tries, key, run_at: runAt };
    });
    return { text: ADD, values: [JSON.stringify(rows)] };
  }

  /** Call it after the commit: this node looks for jobs at once. */
  added(): void {
    this.#onAdded();
  }

  /** @param listener is called when jobs were added by this process */
  onAdded(listener: () => void): void {
    this.#onAdded = listener;
  }
}
