import { Worker } from 'node:worker_threads';
import { threadOf } from '../../paths.ts';
import { ExtractionError, type ExtractionFailure } from './extraction-error.ts';
import type { ExtractedText, ExtractionAnswer, ExtractionEnd, ExtractionTask } from './extraction-messages.ts';
import { limits } from './text-limits.ts';

const IDLE_MS = 5_000;
const LOOK_MS = 20;
/** For the start of the thread, the loading of its modules, and the cutting of a text whose size is bounded. */
const OWN_MS = 60_000;

/** Limits that a test may lower. */
export interface ExtractionOptions {
  timeMs?: number;
  growthBytes?: number;
}

/**
 * Takes the text out of content, in a worker thread: one piece of content at a time, because a parser may need all that
 * the limits allow. The thread starts with the first piece of content and ends when it has been idle for five seconds.
 * When a file exceeds a limit or its parser fails, only its own work ends, and the next one gets a new thread.
 */
export class TextExtraction {
  readonly #timeMs: number;
  readonly #growthBytes: number;
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor({ timeMs = limits.timeMs, growthBytes = limits.growthBytes }: ExtractionOptions = {}) {
    this.#timeMs = timeMs;
    this.#growthBytes = growthBytes;
  }

  /** @param task its bytes are handed over: the caller no longer has them. @throws ExtractionError */
  async extract(task: ExtractionTask): Promise<ExtractedText> {
    const work = this.#last.then(() => this.#extract(task));
    this.#last = work.catch(() => undefined); // reported to whoever asked
    return work;
  }

  /** Ends the thread. Work in progress fails, as it does when the process is killed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end();
  }

  async #extract(task: ExtractionTask): Promise<ExtractedText> {
    if (this.#isClosed) throw new ExtractionError('crash');
    clearTimeout(this.#idle);
    try {
      const answer = await this.#asked(task);
      if ('failure' in answer) throw new ExtractionError(answer.failure);
      this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
      return answer.result;
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  /** @throws ExtractionError when the thread ends before it answers, or exceeds its limits */
  #asked(task: ExtractionTask): Promise<ExtractionEnd> {
    this.#worker ??= startWorker();
    const worker = this.#worker;
    const growth = this.#growthBytes + limits.growthRatio * task.bytes.length;
    let most = Number.POSITIVE_INFINITY;
    let deadline = performance.now() + OWN_MS;
    return new Promise<ExtractionEnd>((resolve, reject) => {
      const settle = (finish: () => void) => {
        clearInterval(watch);
        worker.off('message', onAnswer).off('error', onError).off('exit', onExit);
        finish();
      };
      const fail = (reason: ExtractionFailure, cause?: unknown) =>
        settle(() => reject(new ExtractionError(reason, cause)));
      const onAnswer = (answer: ExtractionAnswer) => {
        // what loading the modules takes is not the file's doing
        if (answer === 'reading') {
          most = process.memoryUsage.rss() + growth;
          deadline = performance.now() + this.#timeMs;
        } else if (answer === 'read') {
          most = Number.POSITIVE_INFINITY;
          deadline = performance.now() + OWN_MS;
        } else settle(() => resolve(answer));
      };
      const onError = (error: NodeJS.ErrnoException) =>
        fail(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'crash', error);
      const onExit = () => fail('crash');
      const watch = setInterval(() => {
        if (performance.now() > deadline) fail('timeout');
        else if (process.memoryUsage.rss() > most) fail('memory');
      }, LOOK_MS).unref();
      worker.on('message', onAnswer).on('error', onError).on('exit', onExit);
      worker.postMessage(task, [task.bytes.buffer as ArrayBuffer]);
    });
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}

/** A thread without the environment and the arguments of the process. */
function startWorker(): Worker {
  const { file, execArgv } = threadOf('indexing/text/extraction-worker');
  const worker = new Worker(file, {
    env: {},
    argv: [],
    execArgv,
    resourceLimits: { maxOldGenerationSizeMb: limits.heapMiB, maxYoungGenerationSizeMb: 16 },
  });
  worker.unref();
  // while it works, who waits for it has a listener of its own
  worker.on('error', () => undefined);
  return worker;
}
