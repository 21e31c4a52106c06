const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
/** How each bracket changes the depth. */
const BRACKETS = new Map([
  [91, 1],
  [123, 1],
  [93, -1],
  [125, -1],
]);

/**
 * The largest number of values in what one request sends, where each key counts as {@link VALUES_PER_KEY} more. Keys
 * cost the most: six thousand that differ, in objects of fifty, take the process some tens of milliseconds from the
 * parser to the answer, and 2 MiB can hold thirty times as many.
 */
export const MAX_JSON_VALUES = 20_000;
export const VALUES_PER_KEY = 2;

/** The maximum depth of a text, and the maximum number of its values, with its keys. */
export interface JsonBounds {
  maxDepth: number;
  maxValues: number;
}

/** What a text has too much of. */
export type Overload = 'depth' | 'values';

/**
 * What a request may still send, counted while its texts are scanned and before any of them is parsed. Each comma and
 * each opening bracket counts as a value: a list or an object counts together with its first entry, and every further
 * entry by its comma. Each colon counts as a key.
 */
export class JsonBudget {
  readonly #maxDepth: number;
  #left: number;

  constructor({ maxDepth, maxValues }: JsonBounds) {
    this.#maxDepth = maxDepth;
    this.#left = maxValues;
  }

  /**
   * Takes the keys and values of a JSON text, of which there are none left after an overload. Reads the text once,
   * allocates nothing, and does not check that it is valid JSON.
   */
  take(text: string): Overload | null {
    let depth = 0;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) at = endOfText(text, at);
      else if (code === COMMA) this.#left--;
      else if (code === COLON) this.#left -= VALUES_PER_KEY;
      else if (code >= 91) {
        const step = BRACKETS.get(code);
        if (step === undefined) continue;
        depth += step;
        if (step > 0) this.#left--;
        if (depth > this.#maxDepth) return 'depth';
      }
      if (this.#left < 0) return 'values';
    }
    return null;
  }

  /** Takes the items of a list between commas. */
  takeItems(text: string): Overload | null {
    for (let at = text.indexOf(','); at >= 0 && this.#left >= 0; at = text.indexOf(',', at + 1)) this.#left--;
    return this.#left < 0 ? 'values' : null;
  }
}

/** What a JSON text that comes alone has too much of. */
export const overloadOf = (text: string, bounds: JsonBounds): Overload | null => new JsonBudget(bounds).take(text);

/** The position where the string that starts at a quote ends. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}
