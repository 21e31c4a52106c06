/** Something that the service does by itself again and again. Tasks are safe to run on several nodes at once. */
export interface Task {
  name: string;
  everyMs: number;
  run(): Promise<unknown>;
}

/** Runs tasks in the background, each when its last run has ended. */
export class Maintenance {
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #running = new Set<Promise<void>>();
  #stopped = false;

  constructor(tasks: readonly Task[], onFault: (error: unknown, what: string) => void) {
    this.#onFault = onFault;
    for (const task of tasks) this.#schedule(task);
  }

  /** Starts nothing more and waits for what runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.all(this.#running);
  }

  #schedule(task: Task): void {
    if (this.#stopped) return;
    // nodes that were started together should not all come at the same moment
    const delayMs = task.everyMs * (0.9 + Math.random() * 0.2);
    this.#timers.set(
      task.name,
      setTimeout(() => {
        const running = this.#once(task);
        this.#running.add(running);
        void running.finally(() => this.#running.delete(running));
      }, delayMs).unref(),
    );
  }

  async #once(task: Task): Promise<void> {
    try {
      await task.run();
    } catch (error) {
      this.#onFault(error, `the task '${task.name}' failed`);
    }
    this.#schedule(task);
  }
}
