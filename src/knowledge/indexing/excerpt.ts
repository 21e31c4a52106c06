import { UNSPACED } from './text/unspaced.ts';

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const UNSPACED_START = new RegExp(`^[${UNSPACED}]`, 'u');
/** So much at the ends of a part is left out to end between words. */
const MOST_TRIMMED = 40;

/**
 * The part of a text that has most of the words, at most `length` UTF-16 units, between words and never within a code
 * point.
 * @param lexemes stems; a word that begins like one, apart from the last letter, counts. Characters of a script without
 * spaces count wherever they are
 * @param part what is shown where there is no such word
 */
export function excerptOf(text: string, lexemes: readonly string[], length: number, part = ''): string {
  if (text.length <= length) return text;
  const hits = [...wordHits(text, lexemes), ...pairHits(text, lexemes)].sort((a, b) => a.at - b.at);
  const best = bestOf(hits, length) ?? stretchOf(text, part);
  const middle = best ? Math.floor((best.from + best.to) / 2) : 0;
  const from = Math.max(0, Math.min(middle - Math.floor(length / 2), text.length - length));
  return trimmed(text, from, Math.min(text.length, from + length));
}

interface Hit {
  at: number;
  end: number;
  stem: string;
}

function wordHits(text: string, lexemes: readonly string[]): Hit[] {
  const stems = lexemes
    .filter((lexeme) => !UNSPACED_START.test(lexeme))
    .map((lexeme) => (lexeme.length > 4 ? lexeme.slice(0, -1) : lexeme));
  if (stems.length === 0) return [];
  return [...text.matchAll(WORD)].flatMap(({ 0: word, index }) => {
    const lower = word.toLowerCase();
    const stem = stems.find((start) => lower.startsWith(start));
    return stem === undefined ? [] : [{ at: index, end: index + word.length, stem }];
  });
}

function pairHits(text: string, lexemes: readonly string[]): Hit[] {
  return lexemes
    .filter((lexeme) => UNSPACED_START.test(lexeme))
    .flatMap((stem) => {
      const hits: Hit[] = [];
      for (let at = text.indexOf(stem); at >= 0; at = text.indexOf(stem, at + 1))
        hits.push({ at, end: at + stem.length, stem });
      return hits;
    });
}

/** The stretch with the most different words, then with the most words. */
function bestOf(hits: readonly Hit[], length: number): { from: number; to: number } | null {
  let best: { from: number; to: number; worth: number } | null = null;
  const counts = new Map<string, number>();
  let first = 0;
  for (const [last, hit] of hits.entries()) {
    counts.set(hit.stem, (counts.get(hit.stem) ?? 0) + 1);
    while (hit.end - hits[first]!.at > length && first < last) {
      const { stem } = hits[first]!;
      const left = counts.get(stem)! - 1;
      if (left === 0) counts.delete(stem);
      else counts.set(stem, left);
      first += 1;
    }
    const worth = counts.size * 1_000 + Math.min(999, last - first);
    if (!best || worth > best.worth) best = { from: hits[first]!.at, to: hit.end, worth };
  }
  return best;
}

function stretchOf(text: string, part: string): { from: number; to: number } | null {
  const from = part === '' ? -1 : text.toLowerCase().indexOf(part.toLowerCase());
  return from < 0 ? null : { from, to: from + part.length };
}

/** Without the parts of words at its ends, unless these are long or nothing else would be left. */
function trimmed(text: string, from: number, to: number): string {
  const part = text.slice(from, to);
  const before = from === 0 ? 0 : part.search(/\s/) + 1;
  const after = to === text.length ? part.length : part.search(/\s\S*$/);
  const start = before > MOST_TRIMMED ? 0 : before;
  const end = part.length - after > MOST_TRIMMED ? part.length : after;
  const words = end > start ? part.slice(start, end).trim() : part;
  return words.isWellFormed() ? words : words.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '');
}
