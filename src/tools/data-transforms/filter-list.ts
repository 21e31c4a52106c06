import { canonicalJson } from '../../kernel/json-object.ts';
import { stepsOf } from '../tool-actions/result-path.ts';
import type { FilterCondition } from './transform-action.ts';
import type { TransformBudget } from './transform-budget.ts';
import { demandSteps, usablePattern } from './transform-patterns.ts';
import { valueAtSteps } from './transform-templates.ts';

type Test = (found: unknown) => boolean;

/** What is missing compares like `null`; only `exists` tells them apart. */
const jsonOf = (value: unknown): string => canonicalJson(value ?? null);

/** Numbers with numbers and texts with texts; nothing else is before or after something. */
const ordered =
  (value: unknown, isRight: (order: number) => boolean): Test =>
  (found) => {
    if (typeof found === 'number' && typeof value === 'number') return isRight(found - value);
    if (typeof found === 'string' && typeof value === 'string')
      return isRight(found === value ? 0 : found < value ? -1 : 1);
    return false;
  };

const among = (value: unknown): Test => {
  const listed = new Set((Array.isArray(value) ? value : []).map(jsonOf));
  return (found) => listed.has(jsonOf(found));
};

/** A part of a text, or an element of a list. */
const containing = (value: unknown): Test => {
  const wanted = jsonOf(value);
  return (found) =>
    typeof found === 'string'
      ? typeof value === 'string' && found.includes(value)
      : Array.isArray(found) && found.some((item) => jsonOf(item) === wanted);
};

const equal = (value: unknown): Test => {
  const wanted = jsonOf(value);
  return (found) => jsonOf(found) === wanted;
};

const matching = (value: unknown): Test => {
  const expression = usablePattern(String(value));
  return (found) => {
    if (typeof found !== 'string') return false;
    demandSteps(expression, found);
    return expression.matcher(found).find();
  };
};

const not =
  (test: Test): Test =>
  (found) =>
    !test(found);

const tests: Readonly<Record<string, (value: unknown) => Test>> = {
  eq: equal,
  ne: (value) => not(equal(value)),
  gt: (value) => ordered(value, (order) => order > 0),
  gte: (value) => ordered(value, (order) => order >= 0),
  lt: (value) => ordered(value, (order) => order < 0),
  lte: (value) => ordered(value, (order) => order <= 0),
  in: among,
  not_in: (value) => not(among(value)),
  contains: containing,
  not_contains: (value) => not(containing(value)),
  starts_with: (value) => (found) => typeof found === 'string' && typeof value === 'string' && found.startsWith(value),
  ends_with: (value) => (found) => typeof found === 'string' && typeof value === 'string' && found.endsWith(value),
  regex: matching,
  exists: (value) => (found) => (found !== undefined) === (value !== false),
};

/** The elements for which all conditions hold, or the others. @throws TransformFault */
export function filteredList(
  list: readonly unknown[],
  conditions: readonly FilterCondition[],
  mode: 'include' | 'exclude',
  budget: TransformBudget,
): unknown[] {
  const asked = conditions.map(({ field, operator = 'eq', value }) => ({
    steps: stepsOf(field) ?? [field],
    test: tests[operator]!(value),
  }));
  return list.filter((item) => {
    budget.tick();
    const holds = asked.every(({ steps, test }) => test(valueAtSteps(item, steps)));
    return holds === (mode === 'include');
  });
}
