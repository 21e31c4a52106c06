import { Worker } from 'node:worker_threads';
import type { ThreadAnswer } from './thread-work.ts';

/** What one thread may take. */
export interface ThreadLimits {
  /** Time of the clock for a task, or what it is when one begins. */
  timeMs: number | (() => number);
  /** The heap of the thread. Its buffers are not counted. */
  heapMiB: number;
  /** Tasks that run or wait. */
  mostPending: number;
}

/** Why a task has no result: `fault` and `crash` are faults of the program, the others of what it was asked. */
export type ThreadFailure = 'full' | 'closed' | 'timeout' | 'memory' | 'fault' | 'crash';

const FAILURES: Readonly<Record<ThreadFailure, string>> = {
  full: 'Too many tasks wait for the thread.',
  closed: 'The thread has ended with the service.',
  timeout: 'The task took longer than it may.',
  memory: 'The task took more memory than it may.',
  fault: 'The task failed.',
  crash: 'The thread has ended.',
};

/** A task that has no result. Nothing of the task is in it. */
export class ThreadError extends Error {
  override readonly name = 'ThreadError';
  readonly reason: ThreadFailure;

  constructor(reason: ThreadFailure, message = FAILURES[reason]) {
    super(message);
    this.reason = reason;
  }
}

/** What loading the modules of a thread may take on a busy machine. */
const START_MS = 60_000;

/**
 * Does tasks in a thread of its own, one after the other, so that expensive ones hold up nothing but each other. The
 * thread starts with the first task, and ends with the service. A task that takes too much ends it, and the next one
 * gets a new thread. It has no environment, and nobody reads what it writes: both may be secret.
 */
export class BoundedThread {
  readonly #module: { file: string; execArgv: string[] };
  readonly #limits: ThreadLimits;
  #worker: Worker | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #pending = 0;
  #isClosed = false;

  /** @param module serves the tasks (`serveTasks`) */
  constructor(module: { file: string; execArgv: string[] }, limits: ThreadLimits) {
    this.#module = module;
    this.#limits = limits;
  }

  /** Tasks that run or wait. */
  get pending(): number {
    return this.#pending;
  }

  /** Whether a task would be refused now. */
  get isFull(): boolean {
    return this.#pending >= this.#limits.mostPending;
  }

  /** @returns what the module made of the task @throws ThreadError */
  async run(task: unknown): Promise<unknown> {
    if (this.isFull) throw new ThreadError('full');
    this.#pending += 1;
    const work = this.#last.then(() => this.#run(task));
    this.#last = work.catch(() => undefined); // reported to whoever asked
    return work.finally(() => {
      this.#pending -= 1;
    });
  }

  /** Ends the thread. Tasks that have no result yet fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async #run(task: unknown): Promise<unknown> {
    if (this.#isClosed) throw new ThreadError('closed');
    try {
      const worker = this.#worker ?? (await this.#start());
      const { timeMs } = this.#limits;
      const answer = this.#next(worker, typeof timeMs === 'number' ? timeMs : timeMs());
      worker.postMessage(task);
      const end = await answer;
      if (typeof end === 'object' && 'result' in end) return end.result;
      throw typeof end === 'object' ? faultError(end.fault) : new ThreadError('crash');
    } catch (error) {
      if (!(error instanceof ThreadError) || error.reason !== 'fault') await this.#end();
      throw this.#isClosed ? new ThreadError('closed') : error;
    }
  }

  async #start(): Promise<Worker> {
    const { file, execArgv } = this.#module;
    const { heapMiB } = this.#limits;
    const resourceLimits = { maxOldGenerationSizeMb: heapMiB };
    const worker = new Worker(file, { execArgv, resourceLimits, env: {}, stdout: true, stderr: true });
    worker.unref();
    worker.stdout.resume();
    worker.stderr.resume();
    // while it works, who waits for it has listeners of its own
    worker.on('error', () => undefined);
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = null;
    });
    this.#worker = worker;
    await this.#next(worker, START_MS);
    return worker;
  }

  /** The next answer of a thread. @throws ThreadError when there is none in time, or the thread ends */
  #next(worker: Worker, ms: number): Promise<ThreadAnswer> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void) => {
        clearTimeout(deadline);
        worker.off('message', onMessage).off('error', onError).off('exit', onExit);
        finish();
      };
      const fail = (reason: ThreadFailure) => settle(() => reject(new ThreadError(reason)));
      const deadline = setTimeout(() => fail('timeout'), ms);
      const onMessage = (answer: ThreadAnswer) => settle(() => resolve(answer));
      const onError = (error: Error & { code?: string }) =>
        fail(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'crash');
      const onExit = () => fail('crash');
      worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    });
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}

/** Its stack is the one in the thread. */
function faultError({ name, at }: { name: string; at: string }): ThreadError {
  const error = new ThreadError('fault', `${FAILURES.fault} (${name})`);
  error.stack = `ThreadError: ${error.message}\n${at}`;
  return error;
}
