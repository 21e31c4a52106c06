import { hash } from 'node:crypto';
import { isJsonObject } from '../../kernel/json-object.ts';
import { MAX_SHOWN_BYTES } from './action-answer.ts';
import { MAX_ANSWER_BYTES } from './large-answers.ts';

/** Most items of all pages together, and most bytes. */
export interface ItemBounds {
  items: number;
  bytes: number;
  /** Of the items that are shown: the first ones. What follows is kept as a text. `null` for all that there are. */
  shownBytes: number | null;
}

/** Of pages that are answered as one list. */
export const OF_ONE_LIST: ItemBounds = { items: 10_000, bytes: MAX_ANSWER_BYTES, shownBytes: MAX_SHOWN_BYTES };
/** Of pages that leave one by one: what is kept of them are the keys of their items. */
export const OF_A_STREAM: ItemBounds = { items: 100_000, bytes: 32 * 1024 * 1024, shownBytes: null };

const COMMA = Buffer.from(',');
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
  /** Those that are shown, and nobody has taken away yet. */
  #list: unknown[] = [];
  /** The text of all, page by page, where not all are shown. */
  readonly #texts: Buffer[] = [];
  /** How many there were. */
  count = 0;
  readonly #uniqueKey: string;
  readonly #bounds: ItemBounds;
  readonly #seen = new Set<string | number>();
  #bytes = 2;
  #isCut = false;

  constructor(uniqueKey: string, bounds: ItemBounds = OF_ONE_LIST) {
    this.#uniqueKey = uniqueKey;
    this.#bounds = bounds;
  }

  /** Of the text of the whole list. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether not all of them are shown. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** The text of the whole list, as JSON. */
  whole(): Buffer {
    const between = this.#texts.flatMap((text, at) => (at === 0 ? [text] : [COMMA, text]));
    return Buffer.concat([Buffer.from('['), ...between, Buffer.from(']')]);
  }

  /** Takes the items away that are shown and have come since the last time. */
  take(): unknown[] {
    const taken = this.#list;
    this.#list = [];
    return taken;
  }

  /** Takes the items of a page. @returns `null` if there is room for more; `repeated` if none of them was new */
  add(items: readonly unknown[]): Fullness | null {
    const fresh = items.filter((item) => !this.#isKnown(item));
    if (items.length > 0 && fresh.length === 0) return 'repeated';
    const texts: string[] = [];
    const full = this.#take(fresh, texts);
    if (this.#bounds.shownBytes !== null && texts.length > 0) this.#texts.push(Buffer.from(texts.join(',')));
    if (full) return full;
    for (const item of fresh) {
      const key = this.#keyOf(item);
      if (key !== null) this.#seen.add(key);
    }
    return null;
  }

  #take(items: readonly unknown[], texts: string[]): Fullness | null {
    const { bytes: most, items: mostItems, shownBytes } = this.#bounds;
    for (const item of items) {
      const text = JSON.stringify(item);
      const bytes = Buffer.byteLength(text) + 1;
      if (this.count === mostItems) return 'items';
      if (this.#bytes + bytes > most) return 'size';
      this.#bytes += bytes;
      this.count++;
      texts.push(text);
      // the first that is too large ends what is shown, also if smaller ones follow
      this.#isCut ||= shownBytes !== null && this.#bytes > shownBytes;
      if (!this.#isCut) this.#list.push(item);
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
