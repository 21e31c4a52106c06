import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogFunctionFactory, TaskList, WorkerEvents, WorkerPool } from 'graphile-worker';
import type pg from 'pg';

// `Jobs` announces new and due jobs, so that idle workers need not poll
const POLL_MS = 60_000;
const STOP_MS = 10_000;
/** For giving back jobs that are not done by then: one statement. */
const FORCE_MS = 3_000;

/** Tasks that share some workers. */
export interface Lane {
  tasks: TaskList;
  workers: number;
}

/** The options of the workers. */
export interface WorkersOptions {
  pool: pg.Pool;
  /** Each has workers of its own, so that none of them waits for another. */
  lanes: readonly Lane[];
  /** Receives the messages of the library, with the `error` if there is one. */
  onFault: (error: unknown, what: string) => void;
  /** For how long jobs that run may go on when the workers are stopped. Default: ten seconds. */
  stopMs?: number;
}

/**
 * Who is told of faults: nobody once the workers have stopped. The library keeps the options of all workers that ever
 * ran, and with them whatever they refer to.
 */
interface FaultReceiver {
  onFault: WorkersOptions['onFault'] | null;
}

/** Some workers of graphile-worker over the service's pool. */
export class Workers {
  readonly #pools: readonly { pool: WorkerPool; workers: number }[];
  readonly #events: WorkerEvents = new EventEmitter();
  readonly #receiver: FaultReceiver;
  readonly #stopMs: number;
  #isSound = true;
  #stopping: Promise<void> | null = null;

  private constructor(
    lanes: readonly Lane[],
    start: (lane: Lane, events: WorkerEvents) => WorkerPool,
    receiver: FaultReceiver,
    stopMs: number,
  ) {
    this.#receiver = receiver;
    this.#stopMs = stopMs;
    this.#events.on('worker:getJob:error', ({ error }) => {
      // all workers get the same error: it is reported once
      if (this.#isSound) receiver.onFault?.(error, 'jobs could not be fetched');
      this.#isSound = false;
    });
    this.#pools = lanes.map((lane) => ({ pool: start(lane, this.#events), workers: lane.workers }));
    for (const { pool } of this.#pools)
      pool.promise
        .catch(() => undefined)
        .finally(() => {
          this.#isSound = false;
        });
  }

  /**
   * Starts the workers. The library is loaded only now, so that the start of the service does not wait for its 60 ms.
   */
  static async start({ pool, lanes, onFault, stopMs = STOP_MS }: WorkersOptions): Promise<Workers> {
    const { Logger, runTaskList } = await import('graphile-worker');
    const receiver: FaultReceiver = { onFault };
    const logger = new Logger(loggingTo(receiver));
    return new Workers(
      lanes,
      ({ tasks, workers }, events) =>
        runTaskList(
          {
            schema: 'jobs',
            concurrency: workers,
            pollInterval: POLL_MS,
            noHandleSignals: true,
            logger,
            events,
            // as a batch of one: a failure then ends the workers, which are replaced, instead of being an unhandled
            // rejection
            preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
          },
          tasks,
          withoutListening(pool),
        ),
      receiver,
      stopMs,
    );
  }

  /**
   * Whether the workers can take jobs. After an error they may not recover: the library caches the failure of its first
   * query.
   */
  get isSound(): boolean {
    return this.#isSound;
  }

  /** Makes up to `count` of each lane poll for jobs at once. */
  nudge(count: number): void {
    if (this.#isSound) for (const { pool, workers } of this.#pools) pool.nudge(Math.min(count, workers));
  }

  /** Takes no more jobs and waits for the running ones. Those that still run after `stopMs` are given back. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#isSound = false;
    await Promise.all(this.#pools.map(({ pool }) => end(pool, this.#stopMs)));
    this.#events.removeAllListeners();
    this.#receiver.onFault = null;
  }
}

/**
 * Ends workers within a limit: jobs that are not done by then are given back. The library logs what fails, and locks
 * that stay end with their lease. Without a limit this could take for ever: the library waits until it has noted each
 * failed job, and when it could note neither of two, its count of them never comes to zero.
 */
async function end(pool: WorkerPool, withinMs: number): Promise<void> {
  const inTime = new AbortController();
  const { signal } = inTime;
  const force = async (): Promise<void> => {
    await delay(withinMs, undefined, { signal });
    await Promise.race([pool.forcefulShutdown('the service stops'), delay(FORCE_MS, undefined, { signal })]);
  };
  await Promise.allSettled([Promise.race([pool.gracefulShutdown(), force()])]);
  inTime.abort();
}

/** What the library logs as an error. Failed jobs are logged by `Jobs`: the library would add their payloads. */
const loggingTo =
  (receiver: FaultReceiver): LogFunctionFactory =>
  () =>
  (level, message, meta) => {
    if (level !== 'error' || meta?.failure === true) return;
    receiver.onFault?.(meta?.error ?? new Error(message), `job queue: ${message.split('\n')[0]}`);
  };

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
