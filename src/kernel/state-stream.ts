/** A state that events change: as it is at once, and again after each event about it. */
export class StateStream<Event, State> implements AsyncIterableIterator<State> {
  readonly #events: AsyncIterator<Event, unknown>;
  readonly #isAbout: (event: Event) => boolean;
  readonly #read: (event: Event | null) => Promise<State>;
  #hasBegun = false;

  /**
   * @param isAbout whether the state may be another one after an event
   * @param read the state now: after an event, or at the beginning
   */
  constructor(
    events: AsyncIterableIterator<Event>,
    isAbout: (event: Event) => boolean,
    read: (event: Event | null) => Promise<State>,
  ) {
    this.#events = events;
    this.#isAbout = isAbout;
    this.#read = read;
  }

  async next(): Promise<IteratorResult<State, undefined>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      return { done: false, value: await this.#read(null) };
    }
    for (;;) {
      const step = await this.#events.next();
      if (step.done) return { done: true, value: undefined };
      if (this.#isAbout(step.value)) return { done: false, value: await this.#read(step.value) };
    }
  }

  async return(): Promise<IteratorResult<State, undefined>> {
    await this.#events.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
