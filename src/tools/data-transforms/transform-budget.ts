/** Texts that a transform writes, in all, in UTF-16 units. */
const MAX_WRITTEN = 2_000_000;
/** Elements that a transform makes, or goes through, in one list. */
export const MAX_ITEMS = 10_000;
/** Time of the clock. The thread that a transform runs in ends a little later, whatever happens. */
const MAX_MS = 3_000;

/** Why a transform has no result; the sentence is for the caller and shows no value. */
export class TransformFault extends Error {
  override readonly name = 'TransformFault';
}

/** What one transform may take. */
export class TransformBudget {
  #written = 0;
  readonly #endsAt = performance.now() + MAX_MS;
  readonly #sizes = new WeakMap<object, number>();

  /** @throws TransformFault if it writes too much */
  write(units: number): void {
    this.#written += units;
    if (this.#written > MAX_WRITTEN) throw new TransformFault('the result is too large');
  }

  /** Counts a value that stands in a result, maybe many times. @throws TransformFault */
  writeValue(value: unknown): void {
    this.write(this.#sizeOf(value));
  }

  /** @throws TransformFault for too many elements */
  items(count: number): void {
    if (count > MAX_ITEMS) throw new TransformFault(`a list has more than ${MAX_ITEMS} elements`);
  }

  /** @throws TransformFault when the time is over */
  tick(): void {
    if (performance.now() > this.#endsAt) throw new TransformFault('it takes too long for these values');
  }

  #sizeOf(value: unknown): number {
    if (typeof value === 'string') return value.length;
    if (typeof value !== 'object' || value === null) return 8;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    const size = JSON.stringify(value).length;
    this.#sizes.set(value, size);
    return size;
  }
}
