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
const ROOM: SlotLimits = { total: 8, perOwner: 2, waitingPerOwner: 16 };

/** The slowest, a text with many credentials to look for, takes about a second where a processor is free. */
const READ_MS = 10_000;
const MOST_READ_MS = 60_000;
/** The same work takes longer on a machine that has more to do than it has processors. */
const readMs = (): number =>
  Math.min(MOST_READ_MS, READ_MS * Math.max(1, os.loadavg()[0]! / os.availableParallelism()));
const LIMITS: ThreadLimits = { timeMs: readMs, heapMiB: 512, mostPending: ROOM.total };

/** Room for what one execution reads beyond the usual bytes. */
export interface AnswerRoom extends LargerAnswers {
  /** Whether it was needed. */
  readonly isTaken: boolean;
}

/** What is more than the usual bytes: few of it is in memory at once, and it is read in a thread of its own. */
export class LargeAnswers {
  readonly #slots: Slots;
  readonly #thread: BoundedThread;

  constructor({ room = ROOM, thread = {} }: { room?: SlotLimits; thread?: Partial<ThreadLimits> } = {}) {
    this.#slots = new Slots(room, () => new OutboundError('busy'));
    this.#thread = new BoundedThread(moduleOf('tools/tool-actions/answer-thread'), { ...LIMITS, ...thread });
  }

  /** Does some work that may need room, which is given back at its end. */
  async with<T>(owner: string, work: (room: AnswerRoom) => Promise<T>): Promise<T> {
    const slots = this.#slots;
    let isTaken = false;
    let isOver = false;
    const room = async (signal: AbortSignal) => {
      if (isTaken) return;
      await slots.take(owner, signal);
      // whoever asked may have stopped to wait
      if (isOver) {
        slots.release(owner);
        throw new OutboundError('aborted');
      }
      isTaken = true;
    };
    try {
      return await work({
        maxBytes: MAX_ANSWER_BYTES,
        room,
        get isTaken() {
          return isTaken;
        },
      });
    } finally {
      isOver = true;
      if (isTaken) slots.release(owner);
    }
  }

  /**
   * The same as `shownAnswer`, for an answer that has taken room.
   * @param secrets what is removed from it
   * @throws OutboundError if that takes too much
   */
  async shown(action: ToolAction, answer: OutboundResponse, secrets: readonly string[]): Promise<ShownAnswer> {
    const { method, response_result_path, output_schema } = action;
    const { status, headers, body, url } = answer;
    const task: AnswerTask = {
      action: { method, response_result_path, output_schema },
      answer: { status, headers: [...headers], body, url },
      secrets,
    };
    try {
      const shown = (await this.#thread.run(task)) as ShownAnswer;
      return { ...shown, whole: shown.whole && { ...shown.whole, content: bufferOf(shown.whole.content) } };
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error;
      switch (error.reason) {
        case 'full':
          throw new OutboundError('busy');
        case 'closed':
          throw new OutboundError('aborted');
        case 'timeout':
        case 'memory':
          throw new OutboundError('too_complex');
        case 'fault':
        case 'crash':
          throw error;
      }
    }
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

/** What comes from a thread has lost its class. */
const bufferOf = (bytes: Uint8Array | null): Buffer | null =>
  bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
