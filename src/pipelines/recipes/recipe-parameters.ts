import { type ConstraintIssue, checkConstraints } from '../../kernel/constraints.ts';
import { limits } from './recipe.words.ts';
import type { RecipeDefinition, RecipeParameter } from './recipe-document.ts';

/** The values of parameters, by name. */
export type ParameterValues = Readonly<Record<string, string | number | boolean>>;

const issue = (path: string[], type: string, msg: string, input: unknown): ConstraintIssue => ({
  path,
  type,
  msg,
  input,
});

/**
 * The values of a recipe's parameters: what is given, and defaults. What is wrong is named by the parameter.
 * @param given anything
 */
export function parameterValues(
  declared: readonly RecipeParameter[],
  given: Readonly<Record<string, unknown>>,
): { values: ParameterValues; issues: ConstraintIssue[] } {
  const names = new Set(declared.map(({ name }) => name));
  const issues = Object.keys(given)
    .filter((name) => !names.has(name))
    .map((name) => issue([name], 'extra_forbidden', 'Extra inputs are not permitted', given[name]));
  const entries = declared.flatMap((parameter): [string, string | number | boolean][] => {
    const { name } = parameter;
    const value = (Object.hasOwn(given, name) ? given[name] : null) ?? parameter.default ?? null;
    if (value === null) {
      issues.push(issue([name], 'missing', 'Field required', given));
      return [];
    }
    const found = valueIssues(parameter, value).map((one) => ({ ...one, path: [name, ...one.path] }));
    issues.push(...found);
    return found.length > 0 ? [] : [[name, value as string | number | boolean]];
  });
  return { values: Object.fromEntries(entries), issues };
}

/** What is wrong with a value of a parameter. */
export function valueIssues(parameter: RecipeParameter, value: unknown): ConstraintIssue[] {
  const { type, minimum, maximum } = parameter;
  switch (type) {
    case 'string':
      if (typeof value !== 'string') return [issue([], 'string_type', 'Input should be a valid string', value)];
      return checkConstraints(value, {
        maxLength: parameter.max_length ?? MAX_LENGTH,
        oneOf: parameter.enum ?? undefined,
      });
    case 'boolean':
      return typeof value === 'boolean' ? [] : [issue([], 'bool_type', 'Input should be a valid boolean', value)];
    case 'integer':
      if (!Number.isSafeInteger(value)) return [issue([], 'int_type', 'Input should be a valid integer', value)];
      break;
    case 'number':
      if (typeof value !== 'number') return [issue([], 'float_type', 'Input should be a valid number', value)];
  }
  return checkConstraints(value as number, { min: minimum ?? undefined, max: maximum ?? undefined });
}

const MAX_LENGTH = 4_000;
const PLACEHOLDER = /\{\{parameters\.([a-z][a-z0-9_]*)\}\}/g;
const ONLY_PLACEHOLDER = /^\{\{parameters\.([a-z][a-z0-9_]*)\}\}$/;

/** A definition is larger than it may be once its parameters have their values. */
export class TooLarge extends Error {
  constructor() {
    super(`The definition has more than ${limits.bytes} bytes.`);
  }
}

/**
 * The definition with values in place of `{{parameters.NAME}}`. A text that is nothing else becomes the value itself,
 * with its type. What is not declared stays: a text may be a template of something else.
 * @throws TooLarge
 */
export function withParameters(definition: RecipeDefinition, values: ParameterValues): RecipeDefinition {
  // few large values in many places make much of a little
  let room = limits.bytes;
  return mapTexts(definition, (text) => {
    const [, whole] = ONLY_PLACEHOLDER.exec(text) ?? [];
    const of = (name: string, otherwise: string) => {
      if (!Object.hasOwn(values, name)) return otherwise;
      const value = values[name]!;
      room -= String(value).length;
      if (room < 0) throw new TooLarge();
      return value;
    };
    if (whole) return of(whole, text);
    return text.replaceAll(PLACEHOLDER, (match, name: string) => String(of(name, match)));
  });
}

/** The names of parameters that texts of a value contain. */
export function parametersIn(value: object): Set<string> {
  const names = new Set<string>();
  mapTexts(value, (text) => {
    for (const [, name] of text.matchAll(PLACEHOLDER)) names.add(name!);
    return text;
  });
  return names;
}

/** A copy of a JSON value with other texts. @param options.keys whether its keys are texts too */
export function mapTexts<Value>(value: Value, change: (text: string) => unknown, { keys = false } = {}): Value {
  const mapped = (at: unknown): unknown => {
    if (typeof at === 'string') return change(at);
    if (Array.isArray(at)) return at.map(mapped);
    if (typeof at !== 'object' || at === null) return at;
    return Object.fromEntries(
      Object.entries(at).map(([key, inner]) => [keys ? String(change(key)) : key, mapped(inner)]),
    );
  };
  return mapped(value) as Value;
}
