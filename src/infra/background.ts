/**
 * Work that an answer does not wait for, e.g. a mail whose sending must not show in the time of the answer. A stop waits for it.
 */
export class Background {
  readonly #running = new Set<Promise<void>>();
  readonly #onFault: (error: unknown, what: string) => void;

  constructor(onFault: (error: unknown, what: string) => void) {
    this.#onFault = onFault;
  }

  /** The number of pieces of work that are under way. */
  get depth(): number {
    return this.#running.size;
  }

  /** Starts work; a failure is logged under `what`. */
  run(what: string, work: () => Promise<unknown>): void {
    const running = work().then(
      () => undefined,
      (error: unknown) => this.#onFault(error, what),
    );
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  /** Resolves when nothing is under way. */
  async drain(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
