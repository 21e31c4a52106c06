import type { LRUCache } from 'lru-cache';
import { lruOf } from '../kernel/lru.ts';

/** The keys dropped while many values were being read. */
interface Reading {
  dropped: Set<string>;
  many: IsDropped[];
}

type IsDropped = (key: string) => boolean;

const wasDropped = ({ dropped, many }: Reading, key: string): boolean =>
  dropped.has(key) || many.some((isDropped) => isDropped(key));

/**
 * Caches what access checks read for less than a second. So a revocation takes effect within a second on every node;
 * this node drops the entry at once. A load in progress is not cached if its key is dropped meanwhile.
 */
export class FreshCache<Value extends object> {
  readonly #entries: LRUCache<string, Value>;
  readonly #reading = new Set<Reading>();
  readonly #loading = new Map<string, Promise<Value>>();

  constructor(options: { ttlMs?: number; max?: number } = {}) {
    this.#entries = lruOf<Value>(options.max ?? 50_000, { ttl: options.ttlMs ?? 900, ttlResolution: 20 });
  }

  /** The cached value, or the result of `load`. Equal simultaneous loads are one. */
  get(key: string, load: () => Promise<Value>): Value | Promise<Value> {
    return this.#entries.get(key) ?? this.#loading.get(key) ?? this.#load(key, load);
  }

  /** The cached value, if there is one. */
  peek(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  /**
   * Reads many values again in one query. Values dropped meanwhile are not cached.
   * @param load returns the values in the order of the keys
   */
  async readAgain(keys: readonly string[], load: (keys: readonly string[]) => Promise<Value[]>): Promise<void> {
    if (keys.length === 0) return;
    const reading: Reading = { dropped: new Set(), many: [] };
    this.#reading.add(reading);
    const start = performance.now();
    try {
      const values = await load(keys);
      const isUntouched = reading.dropped.size === 0 && reading.many.length === 0;
      for (let index = 0; index < keys.length; index++) {
        const key = keys[index]!;
        if (isUntouched || !wasDropped(reading, key)) this.#entries.set(key, values[index]!, { start });
      }
    } finally {
      this.#reading.delete(reading);
    }
  }

  /** Drops a value. The next `get` loads it again. */
  drop(key: string): void {
    for (const { dropped } of this.#reading) dropped.add(key);
    this.#entries.delete(key);
    this.#loading.delete(key);
  }

  /** Drops every value whose key starts with this text. */
  dropAll(prefix: string): void {
    this.#dropMany((key) => key.startsWith(prefix));
  }

  /** Drops every value whose key ends with this text. */
  dropEnding(suffix: string): void {
    this.#dropMany((key) => key.endsWith(suffix));
  }

  /** Drops everything. */
  clear(): void {
    for (const { many } of this.#reading) many.push(() => true);
    this.#entries.clear();
    this.#loading.clear();
  }

  #dropMany(isDropped: IsDropped): void {
    for (const { many } of this.#reading) many.push(isDropped);
    for (const key of this.#entries.keys()) if (isDropped(key)) this.#entries.delete(key);
    for (const key of this.#loading.keys()) if (isDropped(key)) this.#loading.delete(key);
  }

  #load(key: string, load: () => Promise<Value>): Promise<Value> {
    // its age counts from the query, not from the result: a slow result is already old
    const start = performance.now();
    const pending = load().then(
      (value) => {
        if (this.#loading.get(key) === pending) {
          this.#loading.delete(key);
          this.#entries.set(key, value, { start });
        }
        return value;
      },
      (error: unknown) => {
        if (this.#loading.get(key) === pending) this.#loading.delete(key);
        throw error;
      },
    );
    this.#loading.set(key, pending);
    return pending;
  }
}
