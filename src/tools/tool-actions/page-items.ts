import { isJsonObject } from '../../kernel/json-object.ts';
import { MAX_SHOWN_BYTES } from './action-answer.ts';

/** Most items of all pages together. */
const MAX_ITEMS = 10_000;

/** Why no more items are taken. */
type Fullness = 'size' | 'items' | 'repeated';

/** Why no further page was read. */
export type PagesEnd = 'end' | 'max_pages' | 'time' | 'rate_limit' | 'failed' | 'elsewhere' | Fullness;

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
  readonly list: unknown[] = [];
  readonly #uniqueKey: string;
  readonly #seen = new Set<string | number>();
  #bytes = 2;

  constructor(uniqueKey: string) {
    this.#uniqueKey = uniqueKey;
  }

  /** Takes the items of a page. @returns `null` if there is room for more; `repeated` if none of them was new */
  add(items: readonly unknown[]): Fullness | null {
    const fresh = items.filter((item) => !this.#isKnown(item));
    if (items.length > 0 && fresh.length === 0) return 'repeated';
    for (const item of fresh) {
      const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
      if (this.list.length === MAX_ITEMS) return 'items';
      if (this.#bytes + bytes > MAX_SHOWN_BYTES) return 'size';
      this.#bytes += bytes;
      this.list.push(item);
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
    return typeof key === 'string' || typeof key === 'number' ? key : null;
  }
}
