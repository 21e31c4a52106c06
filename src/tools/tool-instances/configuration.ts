import { checkConstraints, expectation } from '../../kernel/constraints.ts';
import type { InputIssue } from '../../kernel/errors.ts';
import { isJsonObject } from '../../kernel/json-object.ts';
import { onceFor } from '../../kernel/once-for.ts';
import { type ConfigField, isSensitive, keyFieldsOf } from '../tools/tool-shapes.ts';
import { SafePatterns } from './safe-pattern.ts';

/** Largest size of everything that one instance keeps secret, in bytes of JSON. */
const MAX_SECRET_BYTES = 64 * 1024;

/** The fields that a tool asks for. */
export interface ToolFields {
  /** Fields of the configuration, and the credentials that are typed in. */
  fields: ReadonlyMap<string, ConfigField>;
  /** Those whose values go to the vault. */
  sensitive: ReadonlySet<string>;
  /** A tool that describes no configuration takes any. */
  isFree: boolean;
}

/** The fields of a tool. All credentials are sensitive; a field of the configuration comes first. */
export function fieldsOf(tool: { configSchema: unknown; credentialSchema: unknown }): ToolFields {
  const config = tool.configSchema as ConfigField[];
  const credentials = keyFieldsOf(tool.credentialSchema as object[]);
  const sensitive = [...config.filter(isSensitive), ...credentials].map(({ name }) => name);
  // a credential is not required here: an instance may be connected later
  const fields = [...credentials.map((field) => ({ ...field, required: false })), ...config];
  return {
    fields: new Map(fields.map((field) => [field.name, field])),
    sensitive: new Set(sensitive),
    isFree: config.length === 0,
  };
}

/** A configuration, taken apart. */
export interface CheckedConfiguration {
  issues: InputIssue[];
  /** What is stored and shown, with defaults in place of what is absent. */
  plain: Record<string, unknown>;
  /** What goes to the vault. */
  secrets: Record<string, unknown>;
  /** Secrets that were given as `null`: they go. */
  cleared: string[];
}

/**
 * Checks a configuration with the fields of the tool. Secrets that are absent stay as they are, so they are never
 * missing. A key that the tool does not know is refused, because it is a typing error or would be ignored; but one that
 * is stored already may stay, from an earlier version of the tool.
 * @param stored the plain configuration so far
 * @param path of the configuration in the arguments, for the issues, which never show a value
 */
export function checkConfiguration(
  { fields, sensitive, isFree }: ToolFields,
  given: Readonly<Record<string, unknown>>,
  stored: Readonly<Record<string, unknown>>,
  path: readonly string[],
): CheckedConfiguration {
  const checked: CheckedConfiguration = { issues: [], plain: {}, secrets: {}, cleared: [] };
  const patterns = new SafePatterns();
  for (const [name, value] of Object.entries(given)) {
    const field = fields.get(name);
    if (!field) {
      if (isFree || Object.hasOwn(stored, name)) checked.plain[name] = value;
      else checked.issues.push(issueAt([...path, name], extra));
    } else if (value === null) {
      if (sensitive.has(name)) checked.cleared.push(name);
    } else {
      const issue = faultOf(field, value, patterns);
      if (issue) checked.issues.push(issueAt([...path, name, ...(issue.at ?? [])], issue));
      else if (sensitive.has(name)) checked.secrets[name] = value;
      else checked.plain[name] = value;
    }
  }
  for (const field of fields.values()) {
    const { name, required, default: initial } = field;
    if (sensitive.has(name) || (Object.hasOwn(given, name) && given[name] !== null)) continue;
    if (initial !== undefined && initial !== null) checked.plain[name] = initial;
    else if (required) checked.issues.push(issueAt([...path, name], missing));
  }
  if (Buffer.byteLength(JSON.stringify(checked.secrets)) > MAX_SECRET_BYTES)
    checked.issues.push(issueAt(path, tooLarge));
  return checked;
}

interface Fault {
  type: string;
  msg: string;
  ctx?: Record<string, unknown>;
  /** Where in the value. */
  at?: number[];
}

/** The issue of a fault; values are never shown, because some are secret. */
const issueAt = (path: readonly (string | number)[], { at: _at, ...fault }: Fault): InputIssue => ({
  path: [...path],
  ...fault,
  input: '[redacted]',
});

const extra: Fault = { type: 'extra_forbidden', msg: 'Extra inputs are not permitted' };
const missing: Fault = { type: 'missing', msg: 'Field required' };
const tooLarge: Fault = {
  type: 'too_long',
  msg: `Credentials should have at most ${MAX_SECRET_BYTES} bytes`,
  ctx: { max_length: MAX_SECRET_BYTES },
};

const types: Readonly<Record<string, { fault: Fault; accepts: (value: unknown) => boolean }>> = {
  string: { fault: typed('string', 'string'), accepts: (value) => typeof value === 'string' },
  secret: { fault: typed('string', 'string'), accepts: (value) => typeof value === 'string' },
  file: { fault: typed('string', 'string'), accepts: (value) => typeof value === 'string' },
  integer: { fault: typed('int', 'integer'), accepts: (value) => Number.isSafeInteger(value) },
  number: { fault: typed('float', 'number'), accepts: (value) => typeof value === 'number' },
  boolean: { fault: typed('bool', 'boolean'), accepts: (value) => typeof value === 'boolean' },
  array: { fault: typed('list', 'list'), accepts: Array.isArray },
  object: {
    fault: typed('dict', 'dictionary'),
    accepts: isJsonObject,
  },
};

function typed(word: string, noun: string): Fault {
  return { type: `${word}_type`, msg: `Input should be a valid ${noun}` };
}

/** What is wrong with the value of a field; `null` if nothing is. A type that is another word accepts any value. */
export function faultOf(field: ConfigField, value: unknown, patterns: SafePatterns): Fault | null {
  const type = field.type ?? 'string';
  const known = Object.hasOwn(types, type) ? types[type]! : null;
  if (known && !known.accepts(value)) return known.fault;
  return choiceFault(field, value) ?? boundFault(field.validation ?? {}, value, patterns);
}

/** Options and enumerations apply to the value, or to each element of a list. */
function choiceFault({ options, validation }: ConfigField, value: unknown): Fault | null {
  const choices = options ? optionsOf(options) : null;
  const given = validation?.enum;
  const listed = Array.isArray(given) ? listedIn(given) : null;
  const items: unknown[] = Array.isArray(value) ? value : [value];
  for (const [index, item] of items.entries()) {
    const allowed = [choices?.values.has(String(item)), listed?.values.has(item)];
    if (!allowed.includes(false)) continue;
    const { expected } = allowed[0] === false ? choices! : listed!;
    return {
      type: 'literal_error',
      msg: `Input should be ${expected}`,
      ctx: { expected },
      ...(Array.isArray(value) && { at: [index] }),
    };
  }
  return null;
}

const choicesIn = (values: readonly unknown[]) =>
  values.length > 0 ? { values: new Set(values), expected: expectation(values.map(String)) } : null;

// a list has many elements with the same choices
const listedIn = onceFor((values: unknown[]) => choicesIn(values));
const optionsOf = onceFor((options: NonNullable<ConfigField['options']>) =>
  choicesIn(options.flatMap((option) => (option.value === undefined ? [] : [option.value]))),
);

type Validation = Readonly<Record<string, unknown>>;

/** The first of these that is a number. */
const numberIn = (validation: Validation, ...names: string[]): number | undefined =>
  names.map((name) => validation[name]).find((value) => typeof value === 'number');

/** The bounds of a number, a text or a list, found by the check that all input of this service passes. */
function boundFault(validation: Validation, value: unknown, patterns: SafePatterns): Fault | null {
  if (typeof value !== 'number' && typeof value !== 'string' && !Array.isArray(value)) return null;
  const [issue] = checkConstraints(value, {
    min: numberIn(validation, 'min_value', 'min'),
    max: numberIn(validation, 'max_value', 'max'),
    minLength: numberIn(validation, 'min_length'),
    maxLength: numberIn(validation, 'max_length'),
    minItems: numberIn(validation, 'min_items', 'min_length'),
    maxItems: numberIn(validation, 'max_items', 'max_length'),
  });
  if (issue) return { type: issue.type, msg: issue.msg, ...(issue.ctx && { ctx: issue.ctx }) };
  const { pattern } = validation;
  return typeof value === 'string' && typeof pattern === 'string' ? patternFault(patterns, pattern, value) : null;
}

function patternFault(patterns: SafePatterns, pattern: string, value: string): Fault | null {
  const result = patterns.match(pattern, value);
  if (result === 'matches') return null;
  if (result === 'differs')
    return { type: 'string_pattern_mismatch', msg: `String should match pattern '${pattern}'`, ctx: { pattern } };
  const error = `the tool's pattern '${pattern}' cannot be checked: correct the tool`;
  return { type: 'value_error', msg: `Value error, ${error}`, ctx: { error } };
}
