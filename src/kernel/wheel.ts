/** How many times a wheel ticks in its period. */
const SLOTS = 60;

/** Gives each member one turn per period, with a single timer for all of them. Without members there is no timer. */
export class Wheel {
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<() => void>());
  readonly #tickMs: number;
  #at = 0;
  #size = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(periodMs: number) {
    this.#tickMs = periodMs / SLOTS;
  }

  /** @param turn must not throw or add members @returns a function that removes the member */
  add(turn: () => void): () => void {
    const slot = this.#slots[this.#at]!;
    slot.add(turn);
    this.#size += 1;
    this.#timer ??= setInterval(() => this.#tick(), this.#tickMs).unref();
    return () => {
      if (!slot.delete(turn)) return;
      this.#size -= 1;
      if (this.#size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #tick(): void {
    this.#at = (this.#at + 1) % SLOTS;
    for (const turn of this.#slots[this.#at]!) turn();
  }
}
