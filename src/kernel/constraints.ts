import type { GraphQLField } from 'graphql';
import type { InputIssue } from './errors.ts';

/**
 * Bounds of arguments and input fields, declared once in the schema (`constraints:` on an argument or input field) and
 * enforced for GraphQL by the constraints plugin and for REST by `rest/input.ts`. Wording: pydantic 2 (defaults §0.2).
 */
export interface Constraints {
  minLength?: number;
  maxLength?: number;
  /** Source of a regular expression that the whole string must match. */
  pattern?: string;
  /** Inclusive bounds of a number. */
  min?: number;
  max?: number;
  /** Closed set of strings. */
  oneOf?: readonly string[];
  /** How many elements a list may have; `maxItems`: how many keys a map may have, too. */
  minItems?: number;
  maxItems?: number;
  /** Constraints of each element of a list, or of each string value of a map. */
  item?: Constraints;
  /** Largest size of a string or a JSON value, in bytes of its UTF-8 text. */
  maxBytes?: number;
  /** The form of a JSON object. */
  shape?: JsonShape;
  /** `email`: syntax only (defaults §1). */
  format?: 'email' | 'uri';
  /** The field may be left out, but not set to `null`: what an update cannot clear. */
  notNull?: boolean;
  /** If the value is given, it must equal this argument of the field. */
  sameAs?: string;
  /** The value must never be echoed: errors show `[redacted]`. */
  sensitive?: boolean;
}

/** A form of JSON objects, for OpenAPI and for its check. */
export interface JsonShape {
  /** Its name in OpenAPI. */
  name: string;
  /** A JSON Schema. A property that has a type and is not required may also be `null`. */
  schema: object;
  /** Names of its properties that may hold secrets, at any depth: errors show `[redacted]` in place of their values. */
  sensitive?: readonly string[];
  /** What is wrong with an object that keeps the other bounds; paths are relative to it. */
  check: (value: object) => ConstraintIssue[];
}

/** The constraints that the schema states on an argument or input field. */
export const constraintsOf = (element: { extensions: Readonly<Record<string, unknown>> }): Constraints =>
  (element.extensions.constraints as Constraints | undefined) ?? {};

/** Pattern of a value of an open set (defaults §0.3). */
export const OPEN_WORD = '[a-z][a-z0-9_.:-]{0,63}';

/** One broken constraint; `path` is relative to the value (list index, key). */
export interface ConstraintIssue {
  path: (string | number)[];
  type: string;
  msg: string;
  input: unknown;
  ctx?: Record<string, unknown>;
}

/**
 * Gives what finds the invalid combinations of a root field's arguments, `null` if none depends on another; stored in
 * `extensions.argumentIssues` of the field. Arguments that could not be read are omitted.
 */
export type ArgumentIssues = (
  field: GraphQLField<unknown, unknown>,
) => ((args: Readonly<Record<string, unknown>>, context: object) => InputIssue[]) | null;

/** The deepest nesting of a JSON value that is accepted. */
export const MAX_JSON_DEPTH = 64;
/** The longest key of a map whose values are all of one type. */
export const MAX_KEY_LENGTH = 64;
/** The longest text that names an object. A longer part of a path has no route. */
export const MAX_ID_LENGTH = 1_024;
/** The largest JSON value, unless an input has a bound of its own (defaults §0.5). */
export const MAX_JSON_BYTES = 256 * 1024;

const patterns = new Map<string, RegExp>();
function compiled(source: string): RegExp {
  let regex = patterns.get(source);
  if (!regex) {
    regex = new RegExp(`^(?:${source})$`, 'u');
    patterns.set(source, regex);
  }
  return regex;
}

const EMAIL = /^[^\s@"(),:;<>[\\\]\p{C}]{1,64}@(?=.{1,255}$)[\p{L}\p{N}](?:[\p{L}\p{N}.-]*[\p{L}\p{N}])?$/u;

/** What the first half of each surrogate pair begins with. */
const FIRST_OF_PAIR = 0xd800;

/** Text that PostgreSQL cannot store as sent: NUL, or half of a surrogate pair. */
export function isUnstorable(text: string): boolean {
  return text.includes('\u0000') || !text.isWellFormed();
}

function codePoints(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === FIRST_OF_PAIR) count--;
  return count;
}

function checkString(value: string, c: Constraints): ConstraintIssue[] {
  const issue = (type: string, msg: string, ctx?: Record<string, unknown>): ConstraintIssue[] => [
    { path: [], type, msg, input: value, ...(ctx ? { ctx } : {}) },
  ];
  if (isUnstorable(value))
    return issue(
      'string_unicode',
      'Input should be a valid string, NUL characters and lone surrogates are not allowed',
    );
  // length counts code points, as pydantic does
  const length = c.minLength !== undefined || c.maxLength !== undefined ? codePoints(value) : 0;
  if (c.minLength !== undefined && length < c.minLength) {
    return issue(
      'string_too_short',
      `String should have at least ${c.minLength} character${c.minLength === 1 ? '' : 's'}`,
      { min_length: c.minLength },
    );
  }
  if (c.maxLength !== undefined && length > c.maxLength) {
    return issue(
      'string_too_long',
      `String should have at most ${c.maxLength} character${c.maxLength === 1 ? '' : 's'}`,
      { max_length: c.maxLength },
    );
  }
  if (c.maxBytes !== undefined && Buffer.byteLength(value) > c.maxBytes)
    return issue('string_too_long', `String should have at most ${c.maxBytes} bytes`, { max_bytes: c.maxBytes });
  if (c.oneOf && !c.oneOf.includes(value)) {
    const expected = expectation(c.oneOf);
    return issue('literal_error', `Input should be ${expected}`, { expected });
  }
  if (c.pattern !== undefined && !compiled(c.pattern).test(value)) {
    return issue('string_pattern_mismatch', `String should match pattern '^${c.pattern}$'`, {
      pattern: `^${c.pattern}$`,
    });
  }
  if (c.format === 'email' && !EMAIL.test(value)) {
    return issue('value_error', 'value is not a valid email address', {
      reason: 'It must have exactly one @-sign and a host name after it.',
    });
  }
  if (c.format === 'uri' && !/^https?:$/.test(URL.parse?.(value)?.protocol ?? protocolOf(value))) {
    return issue('url_parsing', 'Input should be a valid URL with the scheme http or https', {
      error: 'relative URL or unknown scheme',
    });
  }
  return [];
}

function protocolOf(value: string): string {
  return URL.canParse(value) ? new URL(value).protocol : '';
}

/** `'a', 'b' or 'c'`, as pydantic lists the values of a literal. */
export function expectation(values: readonly string[]): string {
  const quoted = values.map((value) => `'${value}'`);
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`;
}

function checkNumber(value: number, c: Constraints): ConstraintIssue[] {
  if (c.min !== undefined && value < c.min) {
    return [
      {
        path: [],
        type: 'greater_than_equal',
        msg: `Input should be greater than or equal to ${c.min}`,
        input: value,
        ctx: { ge: c.min },
      },
    ];
  }
  if (c.max !== undefined && value > c.max) {
    return [
      {
        path: [],
        type: 'less_than_equal',
        msg: `Input should be less than or equal to ${c.max}`,
        input: value,
        ctx: { le: c.max },
      },
    ];
  }
  return [];
}

function checkList(value: readonly unknown[], c: Constraints): ConstraintIssue[] {
  const sized = (type: string, word: string, bound: number, key: string): ConstraintIssue[] => [
    {
      path: [],
      type,
      msg: `List should have at ${word} ${bound} item${bound === 1 ? '' : 's'} after validation, not ${value.length}`,
      input: value,
      ctx: { field_type: 'List', [key]: bound, actual_length: value.length },
    },
  ];
  if (c.minItems !== undefined && value.length < c.minItems)
    return sized('too_short', 'least', c.minItems, 'min_length');
  if (c.maxItems !== undefined && value.length > c.maxItems) return sized('too_long', 'most', c.maxItems, 'max_length');
  return value.flatMap((item, index) => nested(index, item, c.item ?? {}));
}

function nested(key: string | number, value: unknown, c: Constraints): ConstraintIssue[] {
  return checkConstraints(value, c).map((issue) => ({ ...issue, path: [key, ...issue.path] }));
}

/** The bounds of a map: its number of keys, and the constraints of each string. */
function checkMap(value: object, { maxItems, item }: Constraints): ConstraintIssue[] {
  const entries = maxItems === undefined && !item ? [] : Object.entries(value);
  if (maxItems !== undefined && entries.length > maxItems) {
    return [
      {
        path: [],
        type: 'too_long',
        msg: `Dictionary should have at most ${maxItems} items after validation, not ${entries.length}`,
        input: value,
        ctx: { field_type: 'Dictionary', max_length: maxItems, actual_length: entries.length },
      },
    ];
  }
  return item ? entries.flatMap(([key, child]) => nested(key, child, item)) : [];
}

/** A value in a JSON value. */
interface Nested {
  at: unknown;
  depth: number;
  key: string | number;
  outer: Nested | null;
}

const placeOf = ({ key, outer }: Nested): (string | number)[] => (outer ? [...placeOf(outer), key] : []);

/**
 * Finds text in a free JSON value that PostgreSQL cannot store, and nesting past {@link MAX_JSON_DEPTH}.
 * Iterative, because a hostile value may be deeper than the stack.
 */
function checkJson(value: object, c: Constraints): ConstraintIssue[] {
  const stack: Nested[] = [{ at: value, depth: 1, key: '', outer: null }];
  for (let entry = stack.pop(); entry; entry = stack.pop()) {
    const { at, depth } = entry;
    if (typeof at === 'string' && isUnstorable(at)) {
      return [
        {
          path: placeOf(entry),
          type: 'string_unicode',
          msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
          input: at,
        },
      ];
    }
    if (typeof at !== 'object' || at === null) continue;
    if (depth > MAX_JSON_DEPTH) {
      return [
        {
          path: [],
          type: 'recursion_loop',
          msg: `JSON should be nested at most ${MAX_JSON_DEPTH} levels deep`,
          input: '[nested too deeply]',
          ctx: { max_depth: MAX_JSON_DEPTH },
        },
      ];
    }
    for (const [key, child] of Object.entries(at)) {
      if (isUnstorable(key) || key === '__proto__') {
        return [
          {
            path: placeOf(entry),
            type: 'invalid_key',
            msg: 'Keys should be valid strings, NUL characters, lone surrogates and __proto__ are not allowed',
            input: '[invalid key]',
          },
        ];
      }
      stack.push({ at: child, depth: depth + 1, key: Array.isArray(at) ? Number(key) : key, outer: entry });
    }
  }
  if (c.maxBytes !== undefined) {
    const bytes = Buffer.byteLength(JSON.stringify(value));
    if (bytes > c.maxBytes) {
      return [
        {
          path: [],
          type: 'too_long',
          msg: `JSON should have at most ${c.maxBytes} bytes, not ${bytes}`,
          input: '[too large]',
          ctx: { max_length: c.maxBytes, actual_length: bytes },
        },
      ];
    }
  }
  return [];
}

/**
 * Every constraint that a coerced value breaks; `[]` when it is fine. `null` and `undefined` are never checked: the
 * type decides whether they are allowed.
 */
export function checkConstraints(value: unknown, constraints: Constraints): ConstraintIssue[] {
  if (value === null || value === undefined) return [];
  if (typeof value === 'string') return checkString(value, constraints);
  if (typeof value === 'number') return checkNumber(value, constraints);
  if (Array.isArray(value) && !constraints.maxBytes) return checkList(value, constraints);
  if (typeof value !== 'object' || value instanceof Date) return [];
  const issues = [...checkJson(value, constraints), ...checkMap(value, constraints)];
  return issues.length > 0 ? issues : (constraints.shape?.check(value) ?? []);
}
