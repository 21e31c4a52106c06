import { InputError, type InputIssue, invalidInput } from '../../kernel/errors.ts';
import { isJsonObject } from '../../kernel/json-object.ts';
import { onceFor } from '../../kernel/once-for.ts';
import { faultOf } from '../tool-instances/configuration.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { SafePatterns } from '../tool-instances/safe-pattern.ts';
import type { ConfigField } from '../tools/tool-shapes.ts';

const MAX_ISSUES = 50;
const MAX_DEPTH = 16;
/** Properties that are looked for in the values of a call, in all. */
const MAX_LOOKS = 500_000;

type Path = (string | number)[];
type Described = Readonly<Record<string, unknown>>;

/** What one check shares. */
interface Checking {
  patterns: SafePatterns;
  looks: number;
}

/** Where the arguments of a call are. */
export const PARAMETERS: Path = ['input', 'parameters'];

/** The parameters of an action. */
export const parametersIn = ({ parameters }: ToolAction): ToolAction[] =>
  Array.isArray(parameters) ? (parameters as ToolAction[]) : [];

/**
 * The arguments of a call with the defaults of its action.
 * @param configuration of the instance, which stands for a required parameter of the same name
 * @throws InputError with the place of each fault; it shows no value, because some are secret
 */
export function checkedArguments(
  action: ToolAction,
  configuration: Described,
  given: Described,
  path: Path,
): Record<string, unknown> {
  const issues: InputIssue[] = [];
  const checking: Checking = { patterns: new SafePatterns(), looks: 0 };
  const parameters = parametersIn(action);
  const known = new Set(parameters.map(({ name }) => name));
  for (const name of Object.keys(given))
    if (!known.has(name)) issues.push(issueAt([...path, name], 'extra_forbidden', 'Extra inputs are not permitted'));
  const values: Record<string, unknown> = {};
  for (const parameter of parameters) {
    const { name, default: initial, required } = parameter;
    const value = Object.hasOwn(given, name) ? given[name] : initial;
    if (value === undefined || value === null) {
      if (required === true && !Object.hasOwn(configuration, name))
        issues.push(issueAt([...path, name], 'missing', 'Field required'));
      continue;
    }
    issues.push(...faultsOf(parameter, value, [...path, name], checking, 0));
    values[name] = value;
  }
  if (issues.length > 0) throw new InputError(issues.slice(0, MAX_ISSUES));
  return values;
}

/** What is wrong with the value of a parameter, and with the parts of a structured one. */
function faultsOf(described: Described, value: unknown, path: Path, checking: Checking, depth: number): InputIssue[] {
  const { type: of, options, min_length, max_length, min_value, max_value, pattern, enum: listed } = described;
  const validation = { min_length, max_length, min_value, max_value, pattern, enum: listed };
  const fault = faultOf({ type: of, options, validation } as unknown as ConfigField, value, checking.patterns);
  if (fault) {
    const { at = [], type, msg, ctx } = fault;
    return [issueAt([...path, ...at], type, msg, ctx)];
  }
  if (depth === MAX_DEPTH) return [];
  if (Array.isArray(value))
    return isJsonObject(described.items)
      ? value.flatMap((item, index) =>
          partFaults(described.items as Described, item, [...path, index], checking, depth),
        )
      : [];
  return isJsonObject(value) && isJsonObject(described.properties)
    ? propertyFaults(described.properties, value, path, checking, depth)
    : [];
}

function propertyFaults(
  properties: Described,
  value: Described,
  path: Path,
  checking: Checking,
  depth: number,
): InputIssue[] {
  const entries = entriesOf(properties);
  checking.looks += entries.length;
  if (checking.looks > MAX_LOOKS) throw invalidInput(path, 'the arguments have too many parts to check');
  return entries.flatMap(([name, part]) => {
    if (!isJsonObject(part)) return [];
    const found = Object.hasOwn(value, name) ? value[name] : undefined;
    if (found === undefined || found === null)
      return part.required === true ? [issueAt([...path, name], 'missing', 'Field required')] : [];
    return partFaults(part, found, [...path, name], checking, depth);
  });
}

// a list has many elements of one description
const entriesOf = onceFor((properties: Described) => Object.entries(properties));
const describedPart = onceFor((part: Described): Described => ({ ...part, type: part.type ?? 'any' }));

/** A part without a type takes any value, while a parameter without one is a text. */
const partFaults = (part: Described, value: unknown, path: Path, checking: Checking, depth: number) =>
  faultsOf(describedPart(part), value, path, checking, depth + 1);

const issueAt = (path: Path, type: string, msg: string, ctx?: Record<string, unknown>): InputIssue => ({
  path,
  type,
  msg,
  input: '[redacted]',
  ...(ctx && { ctx }),
});
