import { type RE2JS as Expression, RE2JS, RE2JSException } from 're2js';
import { lruOf } from '../../kernel/lru.ts';
import type { ExtractPattern } from './transform-action.ts';
import { type TransformBudget, TransformFault } from './transform-budget.ts';

const MAX_PATTERN = 1_000;
/** Most instructions of one expression. */
const MAX_PROGRAM = 20_000;
/** Steps of the engine for one search: about a second at worst. */
const MAX_STEPS = 64_000_000;

const FLAGS: Readonly<Record<string, number>> = {
  i: RE2JS.CASE_INSENSITIVE,
  m: RE2JS.MULTILINE,
  s: RE2JS.DOTALL,
};

const compiled = lruOf<Expression | string>(500);

/**
 * An expression of RE2, whose time grows with the text alone: it has no look-around and no back-references. The other
 * flags of JavaScript change nothing here: `multiple` says what `g` says, and texts are always read as Unicode.
 * @returns why it cannot be used, if it cannot
 */
export function compiledPattern(pattern: string, flags = ''): Expression | string {
  if (pattern.length > MAX_PATTERN) return `it has more than ${MAX_PATTERN} characters`;
  const bits = [...flags].reduce((sum, flag) => sum | (FLAGS[flag] ?? 0), 0);
  const key = `${bits} ${pattern}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const found = compile(pattern, bits);
  compiled.set(key, found);
  return found;
}

function compile(pattern: string, bits: number): Expression | string {
  try {
    const expression = RE2JS.compile(pattern, bits);
    return expression.programSize() > MAX_PROGRAM ? 'it is too large' : expression;
  } catch (error) {
    if (error instanceof RE2JSException) return 'it is no regular expression of RE2, which has no look-around';
    throw error;
  }
}

/** @throws TransformFault for an expression that cannot be used, which a check refuses before */
export function usablePattern(pattern: string, flags?: string): Expression {
  const found = compiledPattern(pattern, flags);
  if (typeof found === 'string') throw new TransformFault(`an expression cannot be used: ${found}`);
  return found;
}

/** What takes too many steps is refused before it begins. @throws TransformFault */
export function demandSteps(expression: Expression, text: string): void {
  if (expression.programSize() * text.length > MAX_STEPS)
    throw new TransformFault('an expression would take too long for this text');
}

/** What each pattern takes from a text, by its name. @throws TransformFault */
export function extracted(
  patterns: readonly ExtractPattern[],
  text: string,
  budget: TransformBudget,
): Record<string, unknown> {
  return Object.fromEntries(patterns.map((pattern) => [pattern.name, taken(pattern, text, budget)]));
}

function taken(pattern: ExtractPattern, text: string, budget: TransformBudget): unknown {
  const expression = usablePattern(pattern.pattern, pattern.flags);
  demandSteps(expression, text);
  const group = pattern.group ?? 0;
  if (group > expression.groupCount())
    throw new TransformFault(`the expression '${pattern.name}' has no group ${group}`);
  const matcher = expression.matcher(text);
  const sticky = (pattern.flags ?? '').includes('y');
  const otherwise = pattern.default ?? null;
  const found: (string | null)[] = [];
  let last = 0;
  while (matcher.find()) {
    if (sticky && matcher.start() !== last) break;
    last = matcher.end();
    const value = matcher.group(group) ?? otherwise;
    budget.write((value?.length ?? 0) + 8);
    if (pattern.multiple !== true) return value;
    found.push(value);
    budget.items(found.length);
    budget.tick();
  }
  return pattern.multiple === true ? found : otherwise;
}
