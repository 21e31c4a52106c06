import { limits } from './text-limits.ts';

/** Collects text up to the limit of the output. */
export class KeptText {
  readonly #parts: string[] = [];
  #bytes = 0;

  get isFull(): boolean {
    return this.#bytes >= limits.outputBytes;
  }

  add(text: string): void {
    if (this.isFull || text === '') return;
    const kept = firstBytes(text, limits.outputBytes - this.#bytes);
    this.#parts.push(kept);
    // what is cut off ends the text, also when a code point did not fit into the rest
    this.#bytes = kept.length < text.length ? limits.outputBytes : this.#bytes + Buffer.byteLength(kept);
  }

  /** The text as the database takes it: without NUL and halves of surrogate pairs, with LF ends of lines. */
  toString(): string {
    return storable(this.#parts.join(''));
  }
}

/** The start of a text that takes at most so many bytes in UTF-8, never half a code point. */
function firstBytes(text: string, bytes: number): string {
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text;
  const cut = Buffer.from(text).subarray(0, bytes);
  let end = cut.length;
  // the last code point may be cut: its first byte is at most three before the end
  while (end > 0 && (cut[end - 1]! & 0b1100_0000) === 0b1000_0000) end -= 1;
  const first = cut[end - 1] ?? 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  const whole = end - 1 + length <= cut.length ? cut.length : end - 1;
  return cut.toString('utf8', 0, whole);
}

/** Control characters but tabs and ends of lines: the database refuses NUL, and nobody searches the others. */
const CONTROLS = /[^\P{Cc}\t\n]/gu;

const storable = (text: string): string => text.replace(/\r\n?/g, '\n').replace(CONTROLS, ' ').toWellFormed();
