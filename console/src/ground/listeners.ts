/** Who draws a value that is kept outside of React, for `useSyncExternalStore`. */
export class Listeners {
  readonly #all = new Set<() => void>();

  /** @returns what ends it */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  };

  /** Says that the value has changed. */
  readonly tell = (): void => {
    for (const listener of this.#all) listener();
  };
}
