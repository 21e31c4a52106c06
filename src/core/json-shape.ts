const QUOTE = 34;
const BACKSLASH = 92;
/** How each bracket changes the depth. */
const BRACKETS = new Map([
  [91, 1],
  [123, 1],
  [93, -1],
  [125, -1],
]);

/** The maximum depth of a text, and the maximum number of its lists and objects. */
export interface JsonBounds {
  maxDepth: number;
  maxBrackets?: number;
}

/**
 * Whether a JSON text is too deep, or has too many lists and objects, to be parsed: a million brackets block the
 * process for half a second. Reads the text once, allocates nothing, and does not check that it is valid JSON.
 */
export function isOverloaded(text: string, { maxDepth, maxBrackets = Number.POSITIVE_INFINITY }: JsonBounds): boolean {
  let depth = 0;
  let brackets = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfText(text, at);
    else if (code >= 91) {
      const step = BRACKETS.get(code);
      if (step === undefined) continue;
      depth += step;
      if (step > 0 && (depth > maxDepth || ++brackets > maxBrackets)) return true;
    }
  }
  return false;
}

/** The position where the string that starts at a quote ends. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}
