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

/** What a metric has at a moment, and its labels. */
export interface Sample {
  metric: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** A sample of a result: it has no name any more. */
export type Evaluated = Pick<Sample, 'labels' | 'value'>;

const AGGREGATIONS: Readonly<Record<string, (values: readonly number[]) => number>> = {
  count: (values) => values.length,
  max: (values) => Math.max(...values),
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
};

/**
 * What a query comes to at a moment at which there are these samples. It knows names of metrics, aggregations with or
 * without `by`, and `>` with a number after it; it throws at all else.
 */
export function evaluated(query: string, samples: readonly Sample[]): Evaluated[] {
  const tokens = tokensOf(query);
  const textAt = (at: number) => tokens[at]?.text;
  if (textAt(tokens.length - 2) === '>' && tokens.at(-1)!.kind === 'number') {
    const [limit, compared] = [Number(textAt(tokens.length - 1)), tokens.slice(0, -2)];
    return resultOf(compared, samples).filter(({ value }) => value > limit);
  }
  return resultOf(tokens, samples);
}

function resultOf(tokens: readonly Token[], samples: readonly Sample[]): Evaluated[] {
  const [name] = tokens;
  if (tokens.length === 1 && name!.kind === 'name') return samples.filter(({ metric }) => metric === name!.text);
  const aggregate = AGGREGATIONS[name?.text ?? ''];
  const isGrouped = tokens[1]?.text === 'by';
  const open = isGrouped ? closing(tokens, 2) + 1 : 1;
  if (!aggregate || tokens[open]?.text !== '(' || closing(tokens, open) !== tokens.length - 1)
    throw new Error(`Not read: ${tokens.map(({ text }) => text).join(' ')}`);
  const by = isGrouped ? namesIn(tokens.slice(3, open - 1)) : [];
  const groups = new Map<string, { labels: Sample['labels']; values: number[] }>();
  for (const { labels, value } of resultOf(tokens.slice(open + 1, -1), samples)) {
    // a label that is absent and an empty one are the same
    const kept = Object.fromEntries(by.flatMap((label) => (labels[label] ? [[label, labels[label]]] : [])));
    const group = groups.get(JSON.stringify(kept)) ?? { labels: kept, values: [] };
    group.values.push(value);
    groups.set(JSON.stringify(kept), group);
  }
  return [...groups.values()].map(({ labels, values }) => ({ labels, value: aggregate(values) }));
}
