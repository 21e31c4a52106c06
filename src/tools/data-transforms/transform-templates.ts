import { namesIn, replaced } from '../tools/placeholders.ts';
import { rootOf } from './transform-action.ts';
import { type TransformBudget, TransformFault } from './transform-budget.ts';

type NamedValues = Readonly<Record<string, unknown>>;

/** Where templates find values: what the work itself names first, then what was given. */
export interface TransformValues {
  /** `input`, `item`, `index`, `result`, as far as there is one. */
  own: NamedValues;
  /** The parameters of the call, then the configuration. */
  given: readonly NamedValues[];
}

/** A template that is one placeholder stands for its value, others for a text. */
const WHOLE = /^\s*\{\{[^{}]*\}\}\s*$/;

/** The text of a value: JSON of what is none. */
export const plainText = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '');

/** The value at the steps of a path, of which each is a property of its own; `undefined` if there is none. */
export function valueAtSteps(value: unknown, steps: readonly (string | number)[]): unknown {
  let found = value;
  for (const step of steps) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as Record<string | number, unknown>)[step];
  }
  return found;
}

/** `undefined` for a name without a value */
function lookUp({ own, given }: TransformValues, name: string): unknown {
  const root = rootOf(name);
  const steps = name.split('.').slice(1);
  if (Object.hasOwn(own, root)) return valueAtSteps(own[root], steps);
  // the name of a parameter may have dots
  for (const values of given) if (Object.hasOwn(values, name)) return values[name];
  for (const values of given) if (Object.hasOwn(values, root)) return valueAtSteps(values[root], steps);
  return undefined;
}

/** What a template makes; `undefined` if a name in it has no value: no empty text stands for what nobody gave. */
export function filledTemplate(template: string, values: TransformValues, budget: TransformBudget): unknown {
  const names = namesIn(template);
  if (names.length === 1 && WHOLE.test(template)) {
    const value = lookUp(values, names[0]!);
    budget.writeValue(value);
    return value;
  }
  const texts = new Map<string, string>();
  let size = template.length;
  for (const name of names) {
    if (!texts.has(name)) {
      const value = lookUp(values, name);
      if (value === undefined || value === null) return undefined;
      texts.set(name, plainText(value));
    }
    size += texts.get(name)!.length;
  }
  budget.write(size);
  return replaced(template, (name) => texts.get(name)!);
}

/** The same where there must be a value. @throws TransformFault */
export function neededTemplate(template: string, values: TransformValues, budget: TransformBudget): unknown {
  const value = filledTemplate(template, values, budget);
  if (value !== undefined) return value;
  const isMissing = (name: string) => filledTemplate(`{{${name}}}`, values, budget) ?? null;
  const name = namesIn(template).find((one) => isMissing(one) === null);
  throw new TransformFault(`it needs a value of '${(name ?? '').slice(0, 200)}'`);
}
