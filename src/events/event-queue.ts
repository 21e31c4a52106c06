import type { StreamEvent } from '../infra/events.ts';

/** A client that is this far behind is let go, so that it cannot fill the server's memory; it comes back and resumes. */
const MAX_QUEUED = 1_000;

/** What one stream has yet to read. */
export class EventQueue implements AsyncIterableIterator<StreamEvent> {
  readonly #onEnd: () => void;
  readonly #queued: StreamEvent[] = [];
  #waiting: ((result: IteratorResult<StreamEvent>) => void) | null = null;
  #ended = false;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  push(event: StreamEvent): void {
    if (this.#ended) return;
    if (this.#waiting) {
      this.#waiting({ value: event, done: false });
      this.#waiting = null;
    } else if (this.#queued.push(event) > MAX_QUEUED) {
      this.end();
    }
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#queued.length = 0;
    this.#waiting?.({ value: undefined, done: true });
    this.#waiting = null;
    this.#onEnd();
  }

  async next(): Promise<IteratorResult<StreamEvent>> {
    const event = this.#queued.shift();
    if (event) return { value: event, done: false };
    if (this.#ended) return { value: undefined, done: true };
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  async return(): Promise<IteratorResult<StreamEvent>> {
    this.end();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
