import eld from 'eld/extrasmall';

/** Characters of the beginning and of the middle of a text that are looked at. */
const SAMPLE = 2_000;
/** From so many letters on a text is long enough. */
const LETTERS = 30;
/** By so much the likeliest language of a shorter one must be likelier than the next, of scores from 0 to 1. */
const MARGIN = 0.1;

const LETTER = /\p{L}/gu;
const LATIN = /\p{Script=Latin}/u;

/**
 * The language of a text, as ISO 639-1. `null` if it cannot be told: the text is too short, or none.
 * @param text in Unicode
 */
export function languageOf(text: string): string | null {
  const middle = Math.max(SAMPLE, Math.floor((text.length - SAMPLE) / 2));
  const sample = `${text.slice(0, SAMPLE)} ${text.slice(middle, middle + SAMPLE)}`.toWellFormed();
  const found = eld.detect(sample);
  if (found.language === '') return null;
  // few languages share one of the other scripts, and words of no other language are in the way
  if (!LATIN.test(sample)) return found.language;
  if (!found.isReliable()) return null;
  const [first = 0, second = 0] = Object.values(found.getScores()).sort((a, b) => b - a);
  const isClear = first - second >= MARGIN || (sample.match(LETTER)?.length ?? 0) >= LETTERS;
  return isClear ? found.language : null;
}
