import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { closestWord } from '../../kernel/closest-word.ts';
import { type ConstraintIssue, expectation } from '../../kernel/constraints.ts';

/** A JSON Schema, draft 2020-12, as far as this service writes them. */
export interface ToolJsonSchema {
  $schema?: string;
  $id?: string;
  $ref?: string;
  $defs?: Readonly<Record<string, ToolJsonSchema>>;
  title?: string;
  description?: string;
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  enum?: readonly string[];
  default?: unknown;
  examples?: readonly unknown[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  items?: ToolJsonSchema;
  properties?: Readonly<Record<string, ToolJsonSchema>>;
  patternProperties?: Readonly<Record<string, ToolJsonSchema>>;
  additionalProperties?: ToolJsonSchema | boolean;
  required?: readonly string[];
}

/** Enough to repair a form; a hostile value may break thousands of rules. */
const MAX_ISSUES = 50;

const ajv = new Ajv2020({ allErrors: true, verbose: true, strict: true, validateFormats: false });

/** What is wrong with a value, as issues with their place in it; `[]` if nothing is. */
export type ShapeCheck = (value: unknown) => ConstraintIssue[];

/**
 * The check of a schema. A property that is `null` counts as absent, wherever the schema names it, unless it may be any
 * value: clients send back what answers show.
 */
export function shapeCheck(schema: ToolJsonSchema): ShapeCheck {
  let validate: ValidateFunction | null = null;
  return (value) => {
    validate ??= ajv.compile(schema); // by the first check: a start has no use for it
    const checked = withoutNulls(value, schema, schema);
    if (validate(checked)) return [];
    return (validate.errors ?? []).slice(0, MAX_ISSUES).map((error) => issueOf(error, checked));
  };
}

/** The schema that a `$ref` names, which is always one of `$defs`. */
export const resolved = (schema: ToolJsonSchema, root: ToolJsonSchema): ToolJsonSchema =>
  schema.$ref ? root.$defs![schema.$ref.slice('#/$defs/'.length)]! : schema;

/** The value without the properties that are `null` and named by the schema with a type. */
export function withoutNulls(value: unknown, given: ToolJsonSchema, root: ToolJsonSchema): unknown {
  const schema = resolved(given, root);
  if (Array.isArray(value))
    return schema.items ? value.map((item) => withoutNulls(item, schema.items!, root)) : (value as unknown[]);
  if (typeof value !== 'object' || value === null) return value;
  const { properties = {}, additionalProperties } = schema;
  const others = typeof additionalProperties === 'object' ? additionalProperties : null;
  const kept: [string, unknown][] = [];
  let isSame = true;
  for (const [key, item] of Object.entries(value) as [string, unknown][]) {
    const property = Object.hasOwn(properties, key) ? properties[key]! : null;
    const of = property ?? others;
    const isAbsent = item === null && property && resolved(property, root).type;
    const found = of ? withoutNulls(item, of, root) : item;
    if (!isAbsent) kept.push([key, found]);
    if (isAbsent || found !== item) isSame = false;
  }
  // a copy costs the most where there are many keys, of which the schema names few
  return isSame ? value : Object.fromEntries(kept);
}

/** `/0/parameters/1/name` -> `[0, 'parameters', 1, 'name']` */
function pathOf(pointer: string, root: unknown): (string | number)[] {
  let at = root;
  return pointer
    .split('/')
    .slice(1)
    .map((part) => {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      const step = Array.isArray(at) ? Number(key) : key;
      at = (at as Record<string | number, unknown>)[step];
      return step;
    });
}

const words: Readonly<Record<string, [type: string, word: string]>> = {
  object: ['dict_type', 'dictionary'],
  array: ['list_type', 'list'],
  string: ['string_type', 'string'],
  integer: ['int_type', 'integer'],
  number: ['float_type', 'number'],
  boolean: ['bool_type', 'boolean'],
};

const plural = (count: number) => `${count} item${count === 1 ? '' : 's'}`;

/** An error of the validator in the words of every other invalid input (defaults 0.2). */
function issueOf(error: ErrorObject, root: unknown): ConstraintIssue {
  const { instancePath, keyword, params, data, message = '' } = error;
  const path = pathOf(instancePath, root);
  const issue = (type: string, msg: string, ctx?: Record<string, unknown>): ConstraintIssue => ({
    path,
    type,
    msg,
    input: data,
    ...(ctx && { ctx }),
  });
  const { limit } = params as { limit: number };
  const size = { field_type: 'List', actual_length: Array.isArray(data) ? data.length : undefined };
  switch (keyword) {
    case 'required':
      return { ...issue('missing', 'Field required'), path: [...path, String(params.missingProperty)] };
    case 'additionalProperties':
      return extraIssue(path, String(params.additionalProperty), data, error.parentSchema as ToolJsonSchema);
    case 'type': {
      const [type, word] = words[String(params.type)] ?? ['value_error', String(params.type)];
      return issue(type, `Input should be a valid ${word}`);
    }
    case 'enum': {
      const expected = expectation((params.allowedValues as unknown[]).map(String));
      return issue('literal_error', `Input should be ${expected}`, { expected });
    }
    case 'pattern':
      return issue('string_pattern_mismatch', `String should match pattern '${String(params.pattern)}'`, {
        pattern: params.pattern,
      });
    case 'minLength':
      return issue('string_too_short', `String should have at least ${limit} character${limit === 1 ? '' : 's'}`, {
        min_length: limit,
      });
    case 'maxLength':
      return issue('string_too_long', `String should have at most ${limit} characters`, { max_length: limit });
    case 'minimum':
      return issue('greater_than_equal', `Input should be greater than or equal to ${limit}`, { ge: limit });
    case 'maximum':
      return issue('less_than_equal', `Input should be less than or equal to ${limit}`, { le: limit });
    case 'minItems':
      return issue('too_short', `List should have at least ${plural(limit)} after validation`, {
        ...size,
        min_length: limit,
      });
    case 'maxItems':
      return issue('too_long', `List should have at most ${plural(limit)} after validation`, {
        ...size,
        max_length: limit,
      });
    case 'maxProperties':
      return issue('too_long', `Dictionary should have at most ${plural(limit)} after validation`, {
        field_type: 'Dictionary',
        max_length: limit,
      });
    default:
      return issue('value_error', `Value error, ${message}`, { error: message });
  }
}

function extraIssue(path: (string | number)[], key: string, data: unknown, { properties = {} }: ToolJsonSchema) {
  const meant = closestWord(key, Object.keys(properties));
  const hint = meant === null ? '' : `: did you mean '${meant}'?`;
  return {
    path: [...path, key],
    type: 'extra_forbidden',
    msg: `Extra inputs are not permitted${hint}`,
    input: (data as Record<string, unknown>)[key],
  };
}

/** The value with the schema's defaults in place of what it leaves out. */
export function withDefaults(value: unknown, given: ToolJsonSchema, root: ToolJsonSchema = given): unknown {
  const schema = resolved(given, root);
  if (Array.isArray(value))
    return schema.items ? value.map((item) => withDefaults(item, schema.items!, root)) : (value as unknown[]);
  if (typeof value !== 'object' || value === null) return value;
  const filled: Record<string, unknown> = { ...value };
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const of = resolved(property, root);
    if (filled[name] === undefined && of.default !== undefined) filled[name] = structuredClone(of.default);
    if (filled[name] !== undefined) filled[name] = withDefaults(filled[name], of, root);
  }
  return filled;
}

/**
 * The form of a schema before anybody fills it in: each property with its default, or empty. A list shows one element
 * where elements have a form of their own.
 */
export function templateOf(given: ToolJsonSchema, root: ToolJsonSchema = given): unknown {
  const schema = resolved(given, root);
  if (schema.type === 'object' && schema.properties)
    return Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, templateOfProperty(property, root)]),
    );
  if (schema.default !== undefined) return schema.default;
  if (schema.type === 'array')
    return schema.items && resolved(schema.items, root).properties ? [templateOf(schema.items, root)] : [];
  return schema.type === 'object' ? {} : null;
}

/** A form within a form of its own kind ends the template: it is empty. */
function templateOfProperty(property: ToolJsonSchema, root: ToolJsonSchema): unknown {
  const isItself = property.$ref !== undefined;
  return isItself ? {} : templateOf(property, root);
}
