import { KeptText } from './kept-text.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * The names and values of JSON, a line each: `name: value`. It reads what looks like JSON, in one pass and at any
 * depth, also lines of JSON and the start of a longer file.
 */
export function jsonText(json: string): KeptText {
  const text = new KeptText();
  for (let at = 0; at < json.length && !text.isFull; ) {
    const code = json.charCodeAt(at);
    if (isPunctuation(code)) {
      at += 1;
      continue;
    }
    const end = code === QUOTE ? endOfString(json, at) : endOfLiteral(json, at);
    text.add(code === QUOTE ? unescaped(json.slice(at, end)) : json.slice(at, end));
    at = end;
    while (at < json.length && json.charCodeAt(at) <= 0x20) at += 1;
    text.add(json[at] === ':' ? ': ' : '\n');
  }
  return text;
}

/** White space and `,:[]{}`. */
const isPunctuation = (code: number): boolean =>
  code <= 0x20 || code === 0x2c || code === 0x3a || code === 0x5b || code === 0x5d || code === 0x7b || code === 0x7d;

/** After the closing quote, or the end of all if there is none. */
function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return json.length;
}

function endOfLiteral(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && !isPunctuation(json.charCodeAt(at)) && json.charCodeAt(at) !== QUOTE) at += 1;
  return at;
}

function unescaped(literal: string): string {
  const inner = literal.endsWith('"') && literal.length > 1 ? literal.slice(1, -1) : literal.slice(1);
  if (!inner.includes('\\')) return inner;
  try {
    return JSON.parse(literal) as string;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return inner;
  }
}
