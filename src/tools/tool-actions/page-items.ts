import { hash } from 'node:crypto';
import { isJsonObject } from '../../kernel/json-object.ts';
import { MAX_SHOWN_BYTES } from './action-answer.ts';

/** Most items of all pages together, and most bytes. */
export interface ItemBounds {
  items: number;
  bytes: number;
}

/** Of pages that are answered as one list. */
export const OF_ONE_LIST: ItemBounds = { items: 10_000, bytes: MAX_SHOWN_BYTES };
/** Of pages that leave one by one: what is kept of them are the keys of their items. */
export const OF_A_STREAM: ItemBounds = { items: 100_000, bytes: 32 * 1024 * 1024 };

/** Characters of a key that is kept as it is: of a longer one, its digest is, which no other key looks like. */
const LONGEST_KEY = 64;

/** Why no more items are taken. */
type Fullness = 'size' | 'items' | 'repeated';

/** Why no further page was read. */
export type PagesEnd = 'end' | 'max_pages' | 'time' | 'rate_limit' | 'failed' | 'elsewhere' | 'left' | Fullness;

/** How the pages of an execution were read. */
export interface ReadPages {
  /** How many were read. */
  count: number;
  /** How many items they gave. */
  items: number;
  /** Whether there is more, or may be. */
  hasMore: boolean;
  ended: PagesEnd;
}

/** The items of the pages of a list. One that an earlier page had is not taken again. */
export class PageItems {
  /** Those that nobody has taken away yet. */
  #list: unknown[] = [];
  /** How many there were. */
  count = 0;
  readonly #uniqueKey: string;
  readonly #bounds: ItemBounds;
  readonly #seen = new Set<string | number>();
  #bytes = 2;

  constructor(uniqueKey: string, bounds: ItemBounds = OF_ONE_LIST) {
    this.#uniqueKey = uniqueKey;
    this.#bounds = bounds;
  }

  /** Takes the items away that have come since the last time. */
  take(): unknown[] {
    const taken = this.#list;
    this.#list = [];
    return taken;
  }

  /** Takes the items of a page. @returns `null` if there is room for more; `repeated` if none of them was new */
  add(items: readonly unknown[]): Fullness | null {
    const fresh = items.filter((item) => !this.#isKnown(item));
    if (items.length > 0 && fresh.length === 0) return 'repeated';
    for (const item of fresh) {
      const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
      if (this.count === this.#bounds.items) return 'items';
      if (this.#bytes + bytes > this.#bounds.bytes) return 'size';
      this.#bytes += bytes;
      this.#list.push(item);
      this.count++;
    }
    for (const item of fresh) {
      const key = this.#keyOf(item);
      if (key !== null) this.#seen.add(key);
    }
    return null;
  }

  #isKnown(item: unknown): boolean {
    const key = this.#keyOf(item);
    return key !== null && this.#seen.has(key);
  }

  #keyOf(item: unknown): string | number | null {
    if (!isJsonObject(item) || !Object.hasOwn(item, this.#uniqueKey)) return null;
    const key = item[this.#uniqueKey];
    if (typeof key === 'string' && key.length > LONGEST_KEY) return ` ${hash('sha256', key)}`;
    return typeof key === 'string' || typeof key === 'number' ? key : null;
  }
}
