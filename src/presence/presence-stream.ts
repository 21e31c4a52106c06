import type { StreamEvent } from '../data/outbox.ts';
import type { PresentUser } from './presence.service.ts';

const DONE: IteratorResult<PresentUser[], undefined> = { done: true, value: undefined };

/** Who is present: at once, and again after each event about it. Several changes at once may come as one. */
export class PresenceStream implements AsyncIterableIterator<PresentUser[]> {
  readonly #events: AsyncIterator<StreamEvent, unknown>;
  readonly #list: (event: StreamEvent | null) => Promise<PresentUser[]>;
  #hasBegun = false;

  /** @param list who is present now; after an event, or at the beginning */
  constructor(events: AsyncIterableIterator<StreamEvent>, list: (event: StreamEvent | null) => Promise<PresentUser[]>) {
    this.#events = events;
    this.#list = list;
  }

  async next(): Promise<IteratorResult<PresentUser[], undefined>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: await this.#list(null) };
    }
    for (;;) {
      const step = await this.#events.next();
      if (step.done) return DONE;
      if (step.value.type.startsWith('presence.')) return { done: false, value: await this.#list(step.value) };
    }
  }

  async return(): Promise<IteratorResult<PresentUser[], undefined>> {
    await this.#events.return?.();
    return DONE;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
