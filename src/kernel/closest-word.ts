/** Letters that may be wrong, missing or too many in a word that is still recognized. */
const TOLERATED = 2;
/** Nobody mistypes a longer word, and comparing one costs. */
const LONGEST = 130;

/**
 * The word that was most likely meant: one that differs in at most two letters, and in less than half of them. Two
 * words are compared in time proportional to their length: a stranger may have sent both.
 */
export function closestWord(given: string, known: Iterable<string>): string | null {
  if (given.length > LONGEST) return null;
  let closest: string | null = null;
  let least = Math.min(TOLERATED, Math.floor((given.length - 1) / 2)) + 1;
  for (const word of known) {
    const distance = distanceOf(given.toLowerCase(), word.toLowerCase(), least);
    if (distance < least) [closest, least] = [word, distance];
  }
  return closest;
}

/** The edit distance of two words, at most the limit. Only cells near the diagonal are looked at. */
function distanceOf(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const line = Array.from({ length: b.length + 1 }, () => limit);
    if (row < limit) line[0] = row;
    for (let at = Math.max(1, row - limit); at <= Math.min(b.length, row + limit); at++) {
      const replaced = before[at - 1]! + (a[row - 1] === b[at - 1] ? 0 : 1);
      line[at] = Math.min(replaced, before[at]! + 1, line[at - 1]! + 1, limit);
    }
    if (Math.min(...line) >= limit) return limit;
    before = line;
  }
  return before[b.length]!;
}
