import { RE2JS, RE2JSException } from 're2js';
import { lruOf } from '../../kernel/lru.ts';

const MAX_PATTERN = 1_000;
/** Steps of the engine for all patterns of one configuration: about 100 ms at worst. */
const MAX_STEPS = 4_000_000;

const compiled = lruOf<RE2JS>(500);

/** What a comparison found. `unusable`: the pattern is no regular expression of RE2, or would take too long. */
export type PatternResult = 'matches' | 'differs' | 'unusable';

/**
 * Compares texts with patterns that an administrator wrote, like JSON Schema: anywhere in the text unless the pattern
 * is anchored. The engine takes time in proportion to the text, without backtracking, so that no pattern can block the
 * process; it has no look-around and no back-references.
 */
export class SafePatterns {
  #left = MAX_STEPS;

  match(pattern: string, text: string): PatternResult {
    const regex = compile(pattern);
    if (!regex) return 'unusable';
    this.#left -= regex.programSize() * text.length;
    if (this.#left < 0) return 'unusable';
    return regex.matcher(text).find() ? 'matches' : 'differs';
  }
}

function compile(pattern: string): RE2JS | null {
  if (pattern.length > MAX_PATTERN) return null;
  const known = compiled.get(pattern);
  if (known) return known;
  try {
    const regex = RE2JS.compile(pattern);
    compiled.set(pattern, regex);
    return regex;
  } catch (error) {
    if (error instanceof RE2JSException) return null;
    throw error;
  }
}
