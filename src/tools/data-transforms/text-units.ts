import ranks from 'gpt-tokenizer/bpeRanks/cl100k_base';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import type { TransformBudget } from './transform-budget.ts';

/** A part of a text that is not cut. `end` is after its last UTF-16 unit. */
export interface TextUnit {
  start: number;
  end: number;
  /** How much it counts. */
  size: number;
}

/**
 * How `cl100k_base` takes a text apart before it looks for tokens. The runs are bounded, because the cost of finding
 * tokens grows with the square of a run: in longer runs than this, tokens are counted part by part.
 */
const PART = new RegExp(
  [
    /'(?:[sdmtSDMT]|[lL]{2}|[vV][eE]|[rR][eE])/,
    /[^\r\n\p{L}\p{N}]?\p{L}{1,128}/u,
    /\p{N}{1,3}/u,
    / ?[^\s\p{L}\p{N}]{1,128}[\r\n]{0,128}/u,
    /\s{0,128}[\r\n]{1,128}/,
    /\s{1,128}(?!\S)/,
    /\s{1,128}/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gu',
);
const MOST_KNOWN = 20_000;
/** Words of a model that mean something to it, such as the end of a text: here they are texts like all others. */
const ORDINARY = { disallowedSpecial: new Set<string>() };

/** The tokens of a text. Those that share a code point count together. */
export function tokenUnits(text: string, budget: TransformBudget): TextUnit[] {
  const known = new Map<string, TextUnit[]>();
  const units: TextUnit[] = [];
  for (const { 0: part, index } of text.matchAll(PART)) {
    let found = known.get(part);
    if (!found) {
      found = unitsOfPart(part);
      if (known.size < MOST_KNOWN) known.set(part, found);
      budget.tick();
    }
    for (const { start, end, size } of found) units.push({ start: index + start, end: index + end, size });
  }
  return units;
}

function unitsOfPart(part: string): TextUnit[] {
  const units: TextUnit[] = [];
  let [start, end, size] = [0, 0, 0];
  // bytes of UTF-8; `decode` of the library would keep a part of a code point for its next call
  let [ofTokens, ofText] = [0, 0];
  for (const token of encode(part, ORDINARY)) {
    size++;
    ofTokens += bytesOfToken(token);
    while (ofText < ofTokens) {
      const point = part.codePointAt(end)!;
      ofText += bytesOfCodePoint(point);
      end += point > 0xffff ? 2 : 1;
    }
    // a token may end within a code point
    if (ofText > ofTokens) continue;
    units.push({ start, end, size });
    [start, size] = [end, 0];
  }
  return units;
}

function bytesOfToken(token: number): number {
  const bytes = ranks[token]!;
  return typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length;
}

function bytesOfCodePoint(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point < 0x10000 ? 3 : 4;
}

/** The code points of a text. */
export function characterUnits(text: string): TextUnit[] {
  const units: TextUnit[] = [];
  for (let start = 0; start < text.length; ) {
    const end = start + (text.codePointAt(start)! > 0xffff ? 2 : 1);
    units.push({ start, end, size: 1 });
    start = end;
  }
  return units;
}

/** What ends a sentence: marks before white space, marks of scripts without spaces, an empty line. */
const SENTENCE_END = /[.!?…]{1,8}["')\]»”’]{0,4}(?=\s|$)|[。！？]{1,8}["'」』）”’]{0,4}|\n[^\S\n]{0,64}\n/gu;
/** A point before a small letter is that of an abbreviation. */
const GOES_ON = /^\s{1,16}\p{Ll}/u;

/**
 * The sentences of a text, without the white space between them. `Intl.Segmenter` takes the square of some texts, such
 * as tables of numbers.
 */
export function sentenceUnits(text: string, budget: TransformBudget): TextUnit[] {
  const units: TextUnit[] = [];
  let start = 0;
  for (const { 0: mark, index } of text.matchAll(SENTENCE_END)) {
    const end = index + mark.length;
    if (mark.startsWith('.') && GOES_ON.test(text.slice(end, end + 20))) continue;
    units.push(...trimmed(text, start, end));
    start = end;
    budget.tick();
  }
  units.push(...trimmed(text, start, text.length));
  return units;
}

/** The paragraphs of a text: lines that no empty line separates. */
export function paragraphUnits(text: string): TextUnit[] {
  const units: TextUnit[] = [];
  let from: number | null = null;
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    const isBlank = text.slice(start, end).trim() === '';
    if (isBlank && from !== null) units.push(...trimmed(text, from, start));
    from = isBlank ? null : (from ?? start);
    start = end + 1;
  }
  if (from !== null) units.push(...trimmed(text, from, text.length));
  return units;
}

/** The parts of a text between delimiters. */
export function delimitedParts(text: string, delimiter: string, budget: TransformBudget): TextUnit[] {
  const parts: TextUnit[] = [];
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf(delimiter, start);
    const end = found < 0 ? text.length : found;
    parts.push(...trimmed(text, start, end));
    start = end + delimiter.length;
    budget.tick();
  }
  return parts;
}

/** A stretch of a text without white space at its ends; none if it is nothing else. */
function trimmed(text: string, start: number, end: number): TextUnit[] {
  const part = text.slice(start, end);
  const left = part.length - part.trimStart().length;
  const length = part.trim().length;
  return length === 0 ? [] : [{ start: start + left, end: start + left + length, size: 1 }];
}
