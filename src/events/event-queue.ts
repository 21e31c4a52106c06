import type { StreamEvent } from '../data/outbox.ts';
import type { CloseReason } from './close-reason.ts';
import type { Position } from './position.ts';

/**
 * A client that is this far behind is let go, so that it cannot fill the server's memory; it comes back and resumes.
 */
const MAX_QUEUED = 1_000;

/** What one stream has yet to read: every event of its workspace behind a position. */
export class EventQueue implements AsyncIterableIterator<StreamEvent> {
  /** All that was committed behind this position comes, nothing from before it. */
  readonly start: Position;
  readonly #onEnd: () => void;
  readonly #queued: StreamEvent[] = [];
  #waiting: ((result: IteratorResult<StreamEvent, undefined>) => void) | null = null;
  #hasEnded = false;
  #reason: CloseReason | null = null;

  constructor(start: Position, onEnd: () => void) {
    this.start = start;
    this.#onEnd = onEnd;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Why it ended; `null` while it has not, and when its reader left. */
  get reason(): CloseReason | null {
    return this.#reason;
  }

  push(event: StreamEvent): void {
    if (this.#hasEnded) return;
    if (this.#waiting) {
      this.#waiting({ value: event, done: false });
      this.#waiting = null;
    } else if (this.#queued.push(event) > MAX_QUEUED) {
      this.end('slow_consumer');
    }
  }

  /** The first reason counts. What was not read yet is dropped: a reader that resumes gets it. */
  end(reason: CloseReason | null): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#reason = reason;
    this.#queued.length = 0;
    this.#waiting?.({ value: undefined, done: true });
    this.#waiting = null;
    this.#onEnd();
  }

  next(): Promise<IteratorResult<StreamEvent, undefined>> {
    const event = this.#queued.shift();
    if (event) return Promise.resolve({ value: event, done: false });
    if (this.#hasEnded) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  async return(): Promise<IteratorResult<StreamEvent, undefined>> {
    this.end(null);
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
