import { InputError, type InputIssue } from '../../kernel/errors.ts';
import { faultOf } from '../tool-instances/configuration.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { SafePatterns } from '../tool-instances/safe-pattern.ts';
import type { ConfigField } from '../tools/tool-shapes.ts';
import { isRecord } from './json-values.ts';

const MAX_ISSUES = 50;
const MAX_DEPTH = 16;

type Path = (string | number)[];
type Described = Readonly<Record<string, unknown>>;

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
  const patterns = new SafePatterns();
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
    issues.push(...faultsOf(parameter, value, [...path, name], patterns, 0));
    values[name] = value;
  }
  if (issues.length > 0) throw new InputError(issues.slice(0, MAX_ISSUES));
  return values;
}

/** What is wrong with the value of a parameter, and with the parts of a structured one. */
function faultsOf(
  described: Described,
  value: unknown,
  path: Path,
  patterns: SafePatterns,
  depth: number,
): InputIssue[] {
  const { min_length, max_length, min_value, max_value, pattern, enum: listed } = described;
  const validation = { min_length, max_length, min_value, max_value, pattern, enum: listed };
  const fault = faultOf({ ...described, validation } as unknown as ConfigField, value, patterns);
  if (fault) {
    const { at = [], type, msg, ctx } = fault;
    return [issueAt([...path, ...at], type, msg, ctx)];
  }
  if (depth === MAX_DEPTH) return [];
  if (Array.isArray(value))
    return isRecord(described.items)
      ? value.flatMap((item, index) =>
          partFaults(described.items as Described, item, [...path, index], patterns, depth),
        )
      : [];
  return isRecord(value) && isRecord(described.properties)
    ? propertyFaults(described.properties, value, path, patterns, depth)
    : [];
}

function propertyFaults(
  properties: Described,
  value: Described,
  path: Path,
  patterns: SafePatterns,
  depth: number,
): InputIssue[] {
  return Object.entries(properties).flatMap(([name, part]) => {
    if (!isRecord(part)) return [];
    const found = Object.hasOwn(value, name) ? value[name] : undefined;
    if (found === undefined || found === null)
      return part.required === true ? [issueAt([...path, name], 'missing', 'Field required')] : [];
    return partFaults(part, found, [...path, name], patterns, depth);
  });
}

/** A part without a type takes any value, while a parameter without one is a text. */
const partFaults = (part: Described, value: unknown, path: Path, patterns: SafePatterns, depth: number) =>
  faultsOf({ ...part, type: part.type ?? 'any' }, value, path, patterns, depth + 1);

const issueAt = (path: Path, type: string, msg: string, ctx?: Record<string, unknown>): InputIssue => ({
  path,
  type,
  msg,
  input: '[redacted]',
  ...(ctx && { ctx }),
});
