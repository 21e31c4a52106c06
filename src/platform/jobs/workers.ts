import { EventEmitter } from 'node:events';
import type { TaskList, WorkerEvents, WorkerPool } from 'graphile-worker';
import type pg from 'pg';

const CONCURRENCY = 4;
// `Jobs` announces new and due jobs, so that idle workers need not poll
const POLL_MS = 60_000;
const STOP_MS = 10_000;

/** The options of the workers. */
export interface WorkersOptions {
  pool: pg.Pool;
  tasks: TaskList;
  /** The flags of jobs that must not be taken now: names of tasks. */
  forbidden: () => string[];
  /** Receives the messages of the library, with the `error` if there is one. */
  onFault: (error: unknown, what: string) => void;
}

/** Some workers of graphile-worker over the service's pool. */
export class Workers {
  readonly #pool: WorkerPool;
  #isSound = true;

  private constructor(start: (events: WorkerEvents) => WorkerPool, onFault: WorkersOptions['onFault']) {
    const events: WorkerEvents = new EventEmitter();
    events.on('worker:getJob:error', ({ error }) => {
      // all workers get the same error: it is reported once
      if (this.#isSound) onFault(error, 'jobs could not be fetched');
      this.#isSound = false;
    });
    this.#pool = start(events);
    this.#pool.promise
      .catch(() => undefined)
      .finally(() => {
        this.#isSound = false;
      });
  }

  /**
   * Starts the workers. The library is loaded only now, so that the start of the service does not wait for its 60 ms.
   */
  static async start({ pool, tasks, forbidden, onFault }: WorkersOptions): Promise<Workers> {
    const { Logger, runTaskList } = await import('graphile-worker');
    const logger = new Logger(() => (level, message, meta) => {
      // failed jobs are logged by `Jobs`; the library would add their payloads
      if (level !== 'error' || meta?.failure === true) return;
      onFault(meta?.error ?? new Error(message), `job queue: ${message.split('\n')[0]}`);
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
            forbiddenFlags: forbidden,
            // as a batch of one: a failure then ends the workers, which are replaced, instead of being an unhandled
            // rejection
            preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
          },
          tasks,
          withoutListening(pool),
        ),
      onFault,
    );
  }

  /**
   * Whether the workers can take jobs. After an error they may not recover: the library caches the failure of its first
   * query.
   */
  get isSound(): boolean {
    return this.#isSound;
  }

  /** Makes up to `count` of them poll for jobs at once. */
  nudge(count: number): void {
    if (this.#isSound) this.#pool.nudge(Math.min(count, CONCURRENCY));
  }

  /**
   * Takes no more jobs and waits for the running ones. Jobs that still run after ten seconds are released and repeated.
   */
  async stop(): Promise<void> {
    this.#isSound = false;
    const timer = setTimeout(() => void this.#force(), STOP_MS);
    await this.#end(() => this.#pool.gracefulShutdown());
    clearTimeout(timer);
  }

  #force(): Promise<void> {
    return this.#end(() => this.#pool.forcefulShutdown('the service stops'));
  }

  /** The library has logged any errors; the locks end with their lease. */
  async #end(shutdown: () => unknown): Promise<void> {
    try {
      await shutdown();
    } catch {
      this.#isSound = false;
    }
  }
}

/**
 * The same pool, but without a connection for LISTEN. The library requests one with a callback and would keep it
 * forever; nothing sends notifications, and they would not arrive through PgBouncer.
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
