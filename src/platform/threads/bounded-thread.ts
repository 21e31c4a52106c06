import { Worker } from 'node:worker_threads';
import { Slots } from '../../kernel/slots.ts';
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
  readonly #turns: Slots;
  #isClosed = false;

  /** @param module serves the tasks (`serveTasks`) */
  constructor(module: { file: string; execArgv: string[] }, limits: ThreadLimits) {
    this.#module = module;
    this.#limits = limits;
    const waiting = limits.mostPending - 1;
    this.#turns = new Slots({ total: 1, perOwner: 1, waitingPerOwner: waiting }, () => new ThreadError('full'));
  }

  /** Tasks that run or wait. */
  get pending(): number {
    return this.#turns.running + this.#turns.waiting;
  }

  /** Whether a task would be refused now. */
  get isFull(): boolean {
    return this.pending >= this.#limits.mostPending;
  }

  /**
   * Does a task, after those that were asked for before it.
   * @param signal ends it when nobody waits for it any more: one that has not begun is left out, and one that runs ends
   * the thread
   * @returns what the module made of it
   * @throws ThreadError; the reason of the signal
   */
  async run(task: unknown, signal: AbortSignal = new AbortController().signal): Promise<unknown> {
    await this.#turns.take('', signal);
    try {
      return await this.#run(task, signal);
    } finally {
      this.#turns.release('');
    }
  }

  /** Ends the thread. Tasks that have no result yet fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async #run(task: unknown, signal: AbortSignal): Promise<unknown> {
    if (this.#isClosed) throw new ThreadError('closed');
    try {
      const worker = this.#worker ?? (await this.#start(signal));
      const { timeMs } = this.#limits;
      const answer = this.#next(worker, typeof timeMs === 'number' ? timeMs : timeMs(), signal);
      worker.postMessage(task);
      const end = await answer;
      if (typeof end === 'object' && 'result' in end) return end.result;
      throw typeof end === 'object' ? faultError(end.fault) : new ThreadError('crash');
    } catch (error) {
      if (!(error instanceof ThreadError) || error.reason !== 'fault') await this.#end();
      throw this.#isClosed ? new ThreadError('closed') : error;
    }
  }

  async #start(signal: AbortSignal): Promise<Worker> {
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
    await this.#next(worker, START_MS, signal);
    return worker;
  }

  /**
   * The next answer of a thread.
   * @throws ThreadError when there is none in time, or the thread ends; the reason of the signal
   */
  #next(worker: Worker, ms: number, signal: AbortSignal): Promise<ThreadAnswer> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void) => {
        clearTimeout(deadline);
        signal.removeEventListener('abort', onAbort);
        worker.off('message', onMessage).off('error', onError).off('exit', onExit);
        finish();
      };
      const fail = (reason: ThreadFailure) => settle(() => reject(new ThreadError(reason)));
      const deadline = setTimeout(() => fail('timeout'), ms);
      const onMessage = (answer: ThreadAnswer) => settle(() => resolve(answer));
      const onError = (error: Error & { code?: string }) =>
        fail(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'crash');
      const onExit = () => fail('crash');
      const onAbort = () => settle(() => reject(signal.reason));
      worker.on('message', onMessage).on('error', onError).on('exit', onExit);
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
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
