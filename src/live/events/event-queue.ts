import type { StreamEvent } from '../../data/outbox.ts';
import type { CloseReason } from './close-reason.ts';
import type { Position, Snapshot } from './position.ts';

/**
 * A client that is this far behind is disconnected, so that it cannot fill the server's memory. It can reconnect and
 * resume.
 */
const MAX_QUEUED = 1_000;
const MAX_QUEUED_LENGTH = 1024 * 1024;

/** Everything of an event except its details, about. */
const ENVELOPE_LENGTH = 400;
/** Measured once for all queues, and only if an event has to wait. */
const lengths = new WeakMap<StreamEvent, number>();

function lengthOf(event: StreamEvent): number {
  const known = lengths.get(event);
  if (known !== undefined) return known;
  const length = ENVELOPE_LENGTH + JSON.stringify(event.data).length;
  lengths.set(event, length);
  return length;
}

/** The unread events of one stream: every event of its workspace after a position. */
export class EventQueue implements AsyncIterableIterator<StreamEvent> {
  /** The queue gets every event that was committed after this position, and none before it. */
  readonly start: Position;
  /** What had happened when it began: some of it may come after {@link start}. */
  readonly before: Snapshot;
  readonly #onEnd: () => void;
  readonly #queued: StreamEvent[] = [];
  #waiting: ((result: IteratorResult<StreamEvent, undefined>) => void) | null = null;
  #queuedLength = 0;
  #hasEnded = false;
  #reason: CloseReason | null = null;

  constructor(start: Position, before: Snapshot, onEnd: () => void) {
    this.start = start;
    this.before = before;
    this.#onEnd = onEnd;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Why it ended; `null` while it is open, and when its reader left. */
  get reason(): CloseReason | null {
    return this.#reason;
  }

  /** Whether its reader has taken everything, and waits. */
  get isWaiting(): boolean {
    return this.#waiting !== null;
  }

  push(event: StreamEvent): void {
    if (this.#hasEnded) return;
    if (this.#waiting) {
      this.#waiting({ value: event, done: false });
      this.#waiting = null;
    } else {
      this.#queuedLength += lengthOf(event);
      if (this.#queued.push(event) > MAX_QUEUED || this.#queuedLength > MAX_QUEUED_LENGTH) this.end('slow_consumer');
    }
  }

  /** The first reason counts. Unread events are dropped: a reader that resumes gets them. */
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
    if (event) this.#queuedLength -= lengthOf(event);
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
