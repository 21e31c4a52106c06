import { canonicalJson } from '../../kernel/json-object.ts';
import { type TransformBudget, TransformFault } from './transform-budget.ts';
import { plainText } from './transform-templates.ts';

/** @throws TransformFault at the first element that is no number */
function numbersIn(list: readonly unknown[]): number[] {
  return list.map((item, index) => {
    if (typeof item === 'number' && Number.isFinite(item)) return item;
    throw new TransformFault(`the element ${index} of the list is no number`);
  });
}

/** JSON has no infinity. @throws TransformFault */
function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new TransformFault('the numbers are too large');
}

const sum = (list: readonly unknown[]): number => finite(numbersIn(list).reduce((total, item) => total + item, 0));

/** Numbers are compared with numbers and texts with texts. @throws TransformFault for a list of both, or of others */
function extreme(list: readonly unknown[], isBetter: (a: number | string, b: number | string) => boolean): unknown {
  if (list.every((item) => typeof item === 'string'))
    return list.reduce<string | null>((best, item) => (best === null || isBetter(item, best) ? item : best), null);
  return numbersIn(list).reduce((best, item) => (isBetter(item, best) ? item : best));
}

function joined(list: readonly unknown[], separator: string, budget: TransformBudget): string {
  const texts = list.map((item) => plainText(item ?? ''));
  budget.write(texts.reduce((size, text) => size + text.length + separator.length, 0));
  return texts.join(separator);
}

/** The first of those that are the same. */
function unique(list: readonly unknown[]): unknown[] {
  const seen = new Set<string>();
  return list.filter((item) => {
    const json = canonicalJson(item);
    if (seen.has(json)) return false;
    seen.add(json);
    return true;
  });
}

/** One value of a list. Of an empty one, nothing is `null`. @throws TransformFault */
export function aggregated(
  list: readonly unknown[],
  operation: string,
  separator: string,
  budget: TransformBudget,
): unknown {
  switch (operation) {
    case 'join':
      return joined(list, separator, budget);
    case 'count':
      return list.length;
    case 'sum':
      return sum(list);
    case 'avg':
      return list.length === 0 ? null : sum(list) / list.length;
    case 'min':
      return extreme(list, (a, b) => a < b);
    case 'max':
      return extreme(list, (a, b) => a > b);
    case 'first':
      return list[0] ?? null;
    case 'last':
      return list.at(-1) ?? null;
    default:
      return unique(list);
  }
}
