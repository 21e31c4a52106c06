import { LRUCache } from 'lru-cache';

interface LruOptions {
  ttl?: number;
  ttlResolution?: number;
}

/**
 * A cache with a maximum number of entries that allocates memory as it fills. The library's own `max` allocates
 * everything at once: 2 MiB for 50,000 entries.
 */
export const lruOf = <Value extends NonNullable<unknown>>(
  entries: number,
  options: LruOptions = {},
): LRUCache<string, Value> =>
  new LRUCache<string, Value>({ ...options, maxSize: entries, sizeCalculation: () => 1 } as LRUCache.Options<
    string,
    Value,
    unknown
  >);
