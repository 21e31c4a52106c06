/**
 * Why and where a text is not JSON. Positions are 0-based, in UTF-16 code units. The reasons are those of Python's
 * parser.
 */
export interface JsonFault {
  position: number;
  reason: string;
}

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or end' | 'nothing';

const reasons: Record<Expected, string> = {
  value: 'Expecting value',
  'value or ]': 'Expecting value',
  key: 'Expecting property name enclosed in double quotes',
  'key or }': 'Expecting property name enclosed in double quotes',
  ':': "Expecting ':' delimiter",
  ', or end': "Expecting ',' delimiter",
  nothing: 'Extra data',
};

const SPACE = /[ \t\n\r]*/y;
const PLAIN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Finds the first fault of a text that `JSON.parse` refused. The engine's message names a position only for some texts,
 * and quotes the text, which may contain a password. Not recursive, because a hostile text may be deeper than the
 * stack.
 */
export function jsonFault(text: string): JsonFault {
  const open: ('{' | '[')[] = [];
  let expected: Expected = 'value';
  let at = 0;
  const closed = (): Expected => (open.length === 0 ? 'nothing' : ', or end');
  for (;;) {
    at = end(SPACE, text, at) ?? at;
    const char = text[at];
    if (
      (char === '}' && expected === 'key or }') ||
      (char === ']' && expected === 'value or ]') ||
      (expected === ', or end' && char === (open.at(-1) === '{' ? '}' : ']'))
    ) {
      open.pop();
      expected = closed();
      at += 1;
    } else if (expected === ', or end' && char === ',') {
      expected = open.at(-1) === '{' ? 'key' : 'value';
      at += 1;
    } else if (expected === ':' && char === ':') {
      expected = 'value';
      at += 1;
    } else if (char === '"' && expected !== ':' && expected !== ', or end' && expected !== 'nothing') {
      const string = endOfString(text, at);
      if (typeof string !== 'number') return string;
      at = string;
      expected = expected.startsWith('key') ? ':' : closed();
    } else if (expected === 'value' || expected === 'value or ]') {
      const after: number | null = char === '{' || char === '[' ? at + 1 : end(PLAIN, text, at);
      if (after === null) return { position: at, reason: reasons[expected] };
      if (char === '{' || char === '[') open.push(char);
      expected = char === '{' ? 'key or }' : char === '[' ? 'value or ]' : closed();
      at = after;
    } else return { position: at, reason: reasons[expected] };
  }
}

function end(pattern: RegExp, text: string, from: number): number | null {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : null;
}

function endOfString(text: string, from: number): number | JsonFault {
  for (let at = from + 1; at < text.length; ) {
    const char = text.charAt(at);
    if (char === '"') return at + 1;
    if (char < ' ') return { position: at, reason: 'Invalid control character at' };
    const after = char === '\\' ? end(ESCAPE, text, at) : at + 1;
    if (after === null) return { position: at, reason: 'Invalid \\escape' };
    at = after;
  }
  return { position: from, reason: 'Unterminated string starting at' };
}
