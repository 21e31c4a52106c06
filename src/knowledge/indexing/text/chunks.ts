import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { PART } from './grams.ts';
import { UNSPACED } from './unspaced.ts';

/** A stretch of a text. */
export interface Chunk {
  /** Offsets in UTF-16 units; `end` is after the last. */
  start: number;
  end: number;
  /** Number of its tokens (cl100k_base). */
  tokens: number;
}

/** Sizes in tokens (defaults §5). */
export const chunkTokens = { most: 500, overlap: 50 } as const;

/**
 * A word with the white space before it, or white space at the end. Longer ones are cut after so many code points,
 * because the cost of counting tokens grows with the square of a word, and because neighbours share whole ones.
 */
const WORD = new RegExp(`\\s{0,64}(?:[${UNSPACED}]{1,8}|[^\\s${UNSPACED}]{1,32})|\\s{1,64}`, 'gu');

/**
 * Cuts a text into chunks of at most 500 tokens. Each but the first begins with up to the last 50 tokens of the one
 * before, or with more if these are less than {@link PART} characters. Together they are the whole text, and no cut is
 * within a code point.
 */
export function chunksOf(text: string): Chunk[] {
  const words = wordsOf(text);
  const chunks: Chunk[] = [];
  for (let first = 0; first < words.length; ) {
    let after = first;
    let tokens = 0;
    while (after < words.length && tokens + words[after]!.tokens <= chunkTokens.most) tokens += words[after++]!.tokens;
    const last = words[after - 1]!;
    const [start, end] = [words[first]!.start, last.end];
    if (text.slice(start, end).trim() !== '') chunks.push({ start, end, tokens });
    if (after === words.length) break;
    first = overlapping(words, first, after);
  }
  return chunks;
}

/** The first word of the next chunk: it begins within the last one, but after its first word. */
function overlapping(words: readonly Chunk[], first: number, after: number): number {
  let next = after;
  const { end } = words[after - 1]!;
  for (let tokens = 0; next - 1 > first; next -= 1) {
    tokens += words[next - 1]!.tokens;
    const isPart = next < after && end - words[next]!.start >= PART;
    if (tokens > chunkTokens.overlap && isPart) break;
  }
  return next;
}

/** Words repeat: their tokens are counted once. */
function wordsOf(text: string): Chunk[] {
  const known = new Map<string, number>();
  const words: Chunk[] = [];
  for (const { 0: word, index: start } of text.matchAll(WORD)) {
    let tokens = known.get(word);
    if (tokens === undefined) {
      tokens = countTokens(word, ORDINARY);
      if (known.size < MOST_KNOWN) known.set(word, tokens);
    }
    words.push({ start, end: start + word.length, tokens });
  }
  return words;
}

const MOST_KNOWN = 20_000;
/** Words that mean something to a model, such as `<|endoftext|>`, are texts like all others here. */
const ORDINARY = { disallowedSpecial: new Set<string>() };
