import type { RequestCache } from './request-cache.ts';

/**
 * Loaders of rows that all share who ask in one turn of the event loop, such as the readers of an event: however many
 * they are, it is one statement. Rows are the same for everybody; what a reader may see of them is asked by each.
 * Nothing is kept beyond that turn: whoever asks later reads again.
 */
export class RowsTogether implements RequestCache {
  readonly #kept = new Map<string, unknown>();

  once<T>(key: string, make: () => T): T {
    if (this.#kept.size === 0) setImmediate(() => this.#kept.clear());
    if (!this.#kept.has(key)) this.#kept.set(key, make());
    return this.#kept.get(key) as T;
  }
}
