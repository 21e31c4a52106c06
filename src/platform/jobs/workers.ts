import { EventEmitter } from 'node:events';
import type { TaskList, WorkerEvents, WorkerPool } from 'graphile-worker';
import type pg from 'pg';

const CONCURRENCY = 4;
// new and due jobs are announced by `Jobs`, so that idle workers need not ask by themselves
const POLL_MS = 60_000;
const STOP_MS = 10_000;

/** What workers report. */
export interface WorkersOptions {
  pool: pg.Pool;
  tasks: TaskList;
  /** Takes what the library says of itself; `error` where there is one. */
  onFault: (error: unknown, what: string) => void;
}

/** Some workers of graphile-worker over the service's pool. */
export class Workers {
  readonly #pool: WorkerPool;
  #isSound = true;

  private constructor(start: (events: WorkerEvents) => WorkerPool, onFault: WorkersOptions['onFault']) {
    const events: WorkerEvents = new EventEmitter();
    events.on('worker:getJob:error', ({ error }) => {
      // all of them meet what one met: it is said once
      if (this.#isSound) onFault(error, 'jobs could not be taken');
      this.#isSound = false;
    });
    this.#pool = start(events);
    this.#pool.promise
      .catch(() => undefined)
      .finally(() => {
        this.#isSound = false;
      });
  }

  /** Starts them. The library is loaded only now: it takes 60 ms that no start has to wait for. */
  static async start({ pool, tasks, onFault }: WorkersOptions): Promise<Workers> {
    const { Logger, runTaskList } = await import('graphile-worker');
    const logger = new Logger(() => (level, message, meta) => {
      // failed jobs are logged by `Jobs`; the library would add their payloads
      if (level !== 'error' || meta?.failure === true) return;
      onFault(meta?.error ?? new Error(message), `the job queue says: ${message.split('\n')[0]}`);
    });
    return new Workers(
      (events) =>
        runTaskList(
          {
            schema: 'jobs',
            concurrency: CONCURRENCY,
            pollInterval: POLL_MS,
            noHandleSignals: true,
            logger,
            events,
            // as a batch of one: a failure then ends the workers, which are replaced, and is no unhandled rejection
            preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
          },
          tasks,
          withoutListening(pool),
        ),
      onFault,
    );
  }

  /**
   * Whether they can take jobs. Once they met an error they may not recover: the library keeps what failed at its first
   * query.
   */
  get isSound(): boolean {
    return this.#isSound;
  }

  /** Has up to `count` of them look for jobs at once. */
  nudge(count: number): void {
    if (this.#isSound) this.#pool.nudge(Math.min(count, CONCURRENCY));
  }

  /** Takes nothing more and waits for what runs. What still runs after ten seconds is released and done again. */
  async stop(): Promise<void> {
    this.#isSound = false;
    const timer = setTimeout(() => void this.#force(), STOP_MS);
    await this.#end(() => this.#pool.gracefulShutdown());
    clearTimeout(timer);
  }

  #force(): Promise<void> {
    return this.#end(() => this.#pool.forcefulShutdown('the service stops'));
  }

  /** What goes wrong was logged by the library; the locks end with their lease. */
  async #end(shutdown: () => unknown): Promise<void> {
    try {
      await shutdown();
    } catch {
      this.#isSound = false;
    }
  }
}

/**
 * The same pool, but it gives no connection to listen on. The library asks for one with a callback and would keep it
 * for ever; nothing sends notifications, and through PgBouncer they would not arrive.
 */
function withoutListening(pool: pg.Pool): pg.Pool {
  return new Proxy(pool, {
    get(target, key) {
      if (key === 'connect') return (listen?: unknown) => (listen ? undefined : target.connect());
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
