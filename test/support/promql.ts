/** A selector of a query, or its metric with the labels by which the query groups it. */
export interface Selected {
  metric: string;
  labels: string[];
}

type Token = { kind: 'name' | 'text' | 'number' | 'sign'; text: string };

const TOKENS = [
  ['text', /"(?:[^"\\]|\\.)*"|'[^']*'/y],
  ['number', /(?:\d[\w.]*|\$__\w+)/y],
  ['name', /[a-zA-Z_:][\w:]*/y],
  ['sign', /[=!]~|[=!<>]=|[^\s\w]/y],
] as const;

const KEYWORDS = new Set(['or', 'and', 'unless', 'bool', 'offset', 'on', 'ignoring', 'group_left', 'group_right']);

function tokensOf(query: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < query.length; ) {
    if (/\s/.test(query[at]!)) {
      at += 1;
      continue;
    }
    const found = TOKENS.flatMap(([kind, pattern]) => {
      pattern.lastIndex = at;
      const text = pattern.exec(query)?.[0];
      return text === undefined ? [] : [{ kind, text }];
    })[0];
    if (!found) throw new Error(`Not PromQL at ${at}: ${query}`);
    tokens.push(found);
    at += found.text.length;
  }
  return tokens;
}

/** Where the bracket at this place is closed. */
function closing(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (/^[([{]$/.test(tokens[at]!.text)) depth += 1;
    if (/^[)\]}]$/.test(tokens[at]!.text)) depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`A bracket is not closed: ${tokens.map(({ text }) => text).join(' ')}`);
}

const namesIn = (tokens: readonly Token[]): string[] =>
  tokens.filter(({ kind }) => kind === 'name').map(({ text }) => text);

/**
 * The metrics that a query of PromQL selects, with the labels that it expects of them: those of its matchers, and those
 * by which what is around them groups. It knows what our dashboard and alerts use: `by` stands before its operand.
 */
export function selectedBy(query: string): Selected[] {
  return selectedIn(tokensOf(query));
}

function selectedIn(tokens: readonly Token[]): Selected[] {
  const found: Selected[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const { kind, text } = tokens[at]!;
    const next = tokens[at + 1]?.text;
    if (kind !== 'name' || KEYWORDS.has(text)) continue;
    if (text === 'by') {
      const [end, start] = [closing(tokens, at + 1), closing(tokens, at + 1) + 1];
      const operand = closing(tokens, start);
      const labels = namesIn(tokens.slice(at + 2, end));
      const inner = selectedIn(tokens.slice(start + 1, operand));
      found.push(...inner.map((one) => ({ ...one, labels: [...one.labels, ...labels] })));
      at = operand;
    } else if (next === '{') {
      const end = closing(tokens, at + 1);
      const matchers = tokens
        .slice(at + 2, end)
        .filter((_token, place, all) => /^[=!]/.test(all[place + 1]?.text ?? ''));
      found.push({ metric: text, labels: namesIn(matchers) });
      at = end;
    } else if (next !== '(' && next !== 'by') found.push({ metric: text, labels: [] });
  }
  return found;
}
