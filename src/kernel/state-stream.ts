/** A state that events change: as it is at once, and again after each event that changed it. */
export class StateStream<Event, State> implements AsyncIterableIterator<State> {
  readonly #events: AsyncIterator<Event, unknown>;
  readonly #isAbout: (event: Event) => boolean;
  readonly #read: (event: Event | null) => Promise<State>;
  readonly #isSame: (before: State, after: State) => boolean;
  #last: { state: State } | null = null;

  /**
   * @param isAbout whether the state may be another one after an event
   * @param read the state now: after an event, or at the beginning
   * @param isSame whether the event changed nothing: it is not sent again; by default it always did
   */
  constructor(
    events: AsyncIterableIterator<Event>,
    isAbout: (event: Event) => boolean,
    read: (event: Event | null) => Promise<State>,
    isSame: (before: State, after: State) => boolean = () => false,
  ) {
    this.#events = events;
    this.#isAbout = isAbout;
    this.#read = read;
    this.#isSame = isSame;
  }

  async next(): Promise<IteratorResult<State, undefined>> {
    if (!this.#last) return this.#changedTo(await this.#read(null));
    for (;;) {
      const step = await this.#events.next();
      if (step.done) return { done: true, value: undefined };
      if (!this.#isAbout(step.value)) continue;
      const state = await this.#read(step.value);
      if (!this.#isSame(this.#last.state, state)) return this.#changedTo(state);
    }
  }

  #changedTo(state: State): IteratorResult<State, undefined> {
    this.#last = { state };
    return { done: false, value: state };
  }

  async return(): Promise<IteratorResult<State, undefined>> {
    await this.#events.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
