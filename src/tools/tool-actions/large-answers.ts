import os from 'node:os';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import { moduleOf } from '../../paths.ts';
import type { LargerAnswers } from '../../platform/outbound/exchange.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { BoundedThread, ThreadError, type ThreadLimits } from '../../platform/threads/bounded-thread.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import type { ShownAnswer } from './action-answer.ts';
import type { AnswerTask } from './answer-thread.ts';

/** Most bytes of an answer, and of what the pages of a list give together. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Answers of more than the usual bytes that are in memory at once. Credentials are looked for in the whole of an
 * answer, so none of it can leave before its last byte has come.
 */
const ROOM: SlotLimits = { total: 8, perOwner: 2, waitingPerOwner: 16, reserved: 4 };
/**
 * How long a call waits for room. It has a place among the calls of its organization meanwhile, and a list that has
 * room may wait for such a place: so the wait is short.
 */
const WAIT_MS = 2_000;
/** From when a call has room until its answer is read: the rest of the body, a retry, its turn in the thread. */
const HELD_MS = 30_000;

/** The slowest, a text with many credentials to look for, takes about a second where a processor is free. */
const READ_MS = 10_000;
const MOST_READ_MS = 20_000;
/** The same work takes longer on a machine that has more to do than it has processors. */
const readMs = (): number =>
  Math.min(MOST_READ_MS, READ_MS * Math.max(1, os.loadavg()[0]! / os.availableParallelism()));
const LIMITS: ThreadLimits = { timeMs: readMs, heapMiB: 512, mostPending: ROOM.total };

/** Room for what one execution reads beyond the usual bytes. */
export interface AnswerRoom extends LargerAnswers {
  /** Waits for it as long as the signal allows: for whoever holds nothing meanwhile that others wait for. */
  hold: (signal: AbortSignal) => Promise<void>;
  /** Whether it was needed. */
  readonly isTaken: boolean;
  /** Ends a call that has had room for too long, with the reason `answer_not_read`. */
  readonly signal: AbortSignal;
}

interface LargeAnswersOptions {
  /** Told of faults of the service while an answer is read. */
  onFault: (error: unknown, what: string) => void;
  room?: SlotLimits;
  thread?: Partial<ThreadLimits>;
  waitMs?: number;
  heldMs?: number;
}

/** What is more than the usual bytes: few of it is in memory at once, and it is read in a thread of its own. */
export class LargeAnswers {
  readonly #slots: Slots;
  readonly #thread: BoundedThread;
  readonly #options: Required<Pick<LargeAnswersOptions, 'onFault' | 'waitMs' | 'heldMs'>>;

  constructor({ onFault, room = ROOM, thread = {}, waitMs = WAIT_MS, heldMs = HELD_MS }: LargeAnswersOptions) {
    this.#options = { onFault, waitMs, heldMs };
    this.#slots = new Slots(room, notRead);
    this.#thread = new BoundedThread(moduleOf('tools/tool-actions/answer-thread'), { ...LIMITS, ...thread });
  }

  /** Does some work that may need room, which is given back at its end. */
  async with<T>(owner: string, work: (room: AnswerRoom) => Promise<T>): Promise<T> {
    const slots = this.#slots;
    const { waitMs, heldMs } = this.#options;
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    let isTaken = false;
    let isOver = false;
    const hold = async (signal: AbortSignal) => {
      if (isTaken) return;
      await slots.take(owner, signal);
      // whoever asked may have stopped to wait
      if (isOver) {
        slots.release(owner);
        throw new OutboundError('aborted');
      }
      isTaken = true;
      timer = setTimeout(() => late.abort(notRead()), heldMs);
    };
    const room = async (signal: AbortSignal) => {
      const brief = AbortSignal.timeout(waitMs);
      try {
        await hold(AbortSignal.any([signal, brief]));
      } catch (error) {
        // also when the time of the call is over meanwhile: the target has answered, and is not asked again
        throw OutboundError.in(error)?.code === 'aborted' ? error : notRead();
      }
    };
    try {
      return await work({
        maxBytes: MAX_ANSWER_BYTES,
        room,
        hold,
        get isTaken() {
          return isTaken;
        },
        signal: late.signal,
      });
    } finally {
      isOver = true;
      clearTimeout(timer);
      if (isTaken) slots.release(owner);
    }
  }

  /**
   * The same as `shownAnswer`, for an answer that has taken room.
   * @param secrets what is removed from it
   * @throws OutboundError if that takes too much, cannot be done now, or fails; the reason of the signal
   */
  async shown(
    action: ToolAction,
    answer: OutboundResponse,
    { secrets, signal }: { secrets: readonly string[]; signal: AbortSignal },
  ): Promise<ShownAnswer> {
    const { method, response_result_path, output_schema } = action;
    const { status, headers, body, url } = answer;
    const task: AnswerTask = {
      action: { method, response_result_path, output_schema },
      answer: { status, headers: [...headers], body, url },
      secrets,
    };
    try {
      const shown = (await this.#thread.run(task, signal)) as ShownAnswer;
      return { ...shown, whole: shown.whole && { ...shown.whole, content: bufferOf(shown.whole.content) } };
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error;
      switch (error.reason) {
        case 'full':
        case 'closed':
          throw notRead();
        case 'timeout':
        case 'memory':
          throw new OutboundError('too_complex');
        case 'fault':
        case 'crash':
          // the provider may have done what it was asked: that is recorded, whatever became of its answer
          this.#options.onFault(error, 'the answer of an action could not be read');
          throw notRead();
      }
    }
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

const notRead = () => new OutboundError('answer_not_read');

/** What comes from a thread has lost its class. */
const bufferOf = (bytes: Uint8Array | null): Buffer | null =>
  bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
