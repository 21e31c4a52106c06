/** The shortest part of a text that is found wherever it is. */
const GRAM = 3;
/**
 * The longest part that is looked for, in UTF-16 units: a longer one is found by its beginning. Neighbouring chunks
 * share at least so much.
 */
export const PART = 32;

/** What an exact part of a text is looked for by. */
export interface Part {
  text: string;
  grams: readonly number[];
}

/** A number for every three characters in a row of a text: what lacks one of a part does not contain it. */
export function gramsOf(text: string): number[] {
  const codes = Array.from(folded(text), (character) => character.codePointAt(0)!);
  const grams = new Set<number>();
  for (let at = 0; at + GRAM <= codes.length; at += 1) grams.add(gram(codes[at]!, codes[at + 1]!, codes[at + 2]!));
  return [...grams];
}

/** The exact part that a query is, besides its words; `null` if it is too short. */
export function partOf(query: string): Part | null {
  const trimmed = query.trim();
  const isCut = trimmed.length > PART;
  const text = isCut ? trimmed.slice(0, trimmed.slice(0, PART).isWellFormed() ? PART : PART - 1).trim() : trimmed;
  const grams = gramsOf(text);
  return grams.length === 0 ? null : { text, grams };
}

/** A text without differences that nobody means: of case, width, composition and white space. */
const folded = (text: string): string => text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ').replace(/\s+/g, ' ');

/** A positive integer of 32 bits. The factors are those of a hash of three coordinates: they spread neighbours. */
const gram = (first: number, second: number, third: number): number =>
  ((first * 73_856_093) ^ (second * 19_349_663) ^ (third * 83_492_791)) & 0x7f_ff_ff_ff;
