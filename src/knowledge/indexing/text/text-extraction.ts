import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { moduleOf } from '../../../paths.ts';
import { ExtractionError, type ExtractionFailure } from './extraction-error.ts';
import {
  EXPANDS_EXIT,
  type ExtractedText,
  type ExtractionAnswer,
  type ExtractionEnd,
  type ExtractionTask,
  GIVES_WAY,
  TIMEOUT_SIGNAL,
} from './extraction-messages.ts';
import { limits } from './text-limits.ts';

/**
 * For the start of the process with the loading of its modules, for the parser, whose own limit is of the processor,
 * and for the cutting of a text whose size is bounded: each may have to wait for a busy machine.
 */
const OWN_MS = 60_000;

/** Limits, and how long the process that has nothing to read is kept (default: 5 s). */
export interface ExtractionOptions {
  timeMs?: number;
  growthBytes?: number;
  idleMs?: number;
}

const IDLE_MS = 5_000;

/**
 * Takes the text out of content, in a process of its own (docs/decisions/0019): one piece of content at a time, because
 * a parser may need all that the limits allow. The process starts with the first piece of content and ends when it has
 * been idle for five seconds. When a file exceeds a limit or its parser fails, only its own work ends, and the next one
 * gets a new process.
 */
export class TextExtraction {
  readonly #timeMs: number;
  readonly #growthBytes: number;
  readonly #idleMs: number;
  #child: ChildProcess | null = null;
  #idle: NodeJS.Timeout | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #hasFailed = false;

  constructor({ timeMs = limits.timeMs, growthBytes = limits.growthBytes, idleMs = IDLE_MS }: ExtractionOptions = {}) {
    this.#timeMs = timeMs;
    this.#growthBytes = growthBytes;
    this.#idleMs = idleMs;
  }

  /** @throws ExtractionError */
  async extract(content: Omit<ExtractionTask, 'growthBytes' | 'timeMs'>): Promise<ExtractedText> {
    const growthBytes = this.#growthBytes + limits.growthRatio * content.bytes.length;
    const work = this.#last.then(() => this.#extract({ ...content, growthBytes, timeMs: this.#timeMs }));
    this.#last = work.catch(() => undefined); // reported to whoever asked
    return work;
  }

  /** Ends the process. Work in progress fails, as it does when the service is killed. */
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
      this.#hasFailed = false;
      this.#idle = setTimeout(() => void this.#end(), this.#idleMs).unref();
      return answer.result;
    } catch (error) {
      this.#hasFailed = true;
      await this.#end();
      throw error;
    }
  }

  /** @throws ExtractionError when the process ends before it answers, or takes too long */
  #asked(task: ExtractionTask): Promise<ExtractionEnd> {
    // a file that ends the process makes the service pay for the next one: that one gives way from its start
    this.#child ??= startProcess({ givesWay: this.#hasFailed });
    const child = this.#child;
    return new Promise<ExtractionEnd>((resolve, reject) => {
      let deadline: NodeJS.Timeout | undefined;
      const settle = (finish: () => void) => {
        clearTimeout(deadline);
        child.off('message', onAnswer).off('error', onError).off('exit', onExit);
        finish();
      };
      const fail = (reason: ExtractionFailure, cause?: unknown) =>
        settle(() => reject(new ExtractionError(reason, cause)));
      const within = (ms: number) => {
        clearTimeout(deadline);
        deadline = setTimeout(() => fail('timeout'), ms).unref();
      };
      const onAnswer = (message: unknown) => {
        const answer = message as ExtractionAnswer;
        // what loading the modules takes is not the file's doing
        if (answer === 'reading' || answer === 'read') within(OWN_MS);
        else settle(() => resolve(answer));
      };
      const onError = (error: Error) => fail('crash', error);
      const onExit = (code: number | null, signal: NodeJS.Signals | null) =>
        fail(code === EXPANDS_EXIT ? 'expands' : ((signal && ENDED_BY[signal]) ?? 'crash'));
      child.on('message', onAnswer).on('error', onError).on('exit', onExit);
      within(OWN_MS);
      child.send(task);
    });
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idle);
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

/** Its own guard or the system ended it; or V8 did, at the limit of the heap. */
const ENDED_BY: Partial<Record<NodeJS.Signals, ExtractionFailure>> = {
  SIGKILL: 'memory',
  SIGABRT: 'memory',
  [TIMEOUT_SIGNAL]: 'timeout',
};

/** A process without the environment, the arguments and the outputs of the service. */
function startProcess({ givesWay }: { givesWay: boolean }): ChildProcess {
  const { file, execArgv } = moduleOf('knowledge/indexing/text/extraction-process');
  const child = fork(file, [], {
    env: {},
    execArgv: [...execArgv, `--max-old-space-size=${limits.heapMiB}`],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  // at once: the threads that it starts inherit it
  if (givesWay && child.pid !== undefined) setPriority(child.pid, GIVES_WAY);
  child.unref();
  child.channel?.unref();
  // while it works, who waits for it has a listener of its own
  child.on('error', () => undefined);
  return child;
}
