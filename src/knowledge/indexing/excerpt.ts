const WORD = /[\p{L}\p{M}\p{N}]+/gu;

/**
 * The part of a text that has most of the words, at most `length` UTF-16 units, between words and never within a code
 * point.
 * @param lexemes stems; a word that begins like one, apart from the last letter, counts
 */
export function excerptOf(text: string, lexemes: readonly string[], length: number): string {
  if (text.length <= length) return text;
  const stems = lexemes.map((lexeme) => (lexeme.length > 4 ? lexeme.slice(0, -1) : lexeme));
  const hits = [...text.matchAll(WORD)].flatMap(({ 0: word, index }) => {
    const lower = word.toLowerCase();
    const stem = stems.find((start) => lower.startsWith(start));
    return stem === undefined ? [] : [{ at: index, end: index + word.length, stem }];
  });
  const best = bestOf(hits, length);
  const middle = best ? Math.floor((best.from + best.to) / 2) : 0;
  const from = Math.max(0, Math.min(middle - Math.floor(length / 2), text.length - length));
  return trimmed(text, from, Math.min(text.length, from + length));
}

interface Hit {
  at: number;
  end: number;
  stem: string;
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

/** Without the parts of words at its ends, unless nothing else would be left. */
function trimmed(text: string, from: number, to: number): string {
  const part = text.slice(from, to);
  const start = from === 0 ? 0 : part.search(/\s/) + 1;
  const end = to === text.length ? part.length : part.search(/\s\S*$/);
  const words = end > start ? part.slice(start, end).trim() : part;
  return words.isWellFormed() ? words : words.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '');
}
