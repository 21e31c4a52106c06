import { isJsonObject } from '../../kernel/json-object.ts';
import { SafePatterns } from '../tool-instances/safe-pattern.ts';
import {
  at,
  cut,
  type DocumentReferences,
  Gap,
  type JsonPart,
  type LocatedPart,
  referenceOf,
  within,
} from './references.ts';

/*
 * JSON Schemas of a document as the parameters and results of actions have them. References are put in place, so cycles
 * end, depth is limited, and so is the number of schemas that one operation may lead to.
 */

const MAX_DESCRIPTION = 1_000;
const MAX_PROPERTIES = 50;
const MAX_VALUES = 200;
const MAX_DEFAULT = 1_000;
const MAX_MERGED = 50;
/** Schemas that one operation may lead to. */
const MAX_STEPS = 2_000;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean', 'array', 'object']);

/** What is told of a schema that an action has less exactly. */
export type Simplified = (place: string, message: string) => void;

interface SchemaDepth {
  depth: number;
  /** The schemas around it. */
  around: readonly JsonPart[];
}

/** A schema without references, unions of one, and `allOf`. */
interface Flat extends LocatedPart {
  /** What describes the place, beside a reference. */
  description: string | null;
  isNullable: boolean;
  around: readonly JsonPart[];
}

/** Reads the schemas of one operation. */
export class SchemaParts {
  readonly #references: DocumentReferences;
  readonly #simplified: Simplified;
  readonly #maxDepth: number;
  readonly #patterns = new SafePatterns();
  #steps = 0;

  constructor(references: DocumentReferences, maxDepth: number, simplified: Simplified) {
    this.#references = references;
    this.#maxDepth = maxDepth;
    this.#simplified = simplified;
  }

  /** What describes a value, as a parameter of an action does. @throws Gap */
  part(given: unknown, place: string, where: SchemaDepth = { depth: 0, around: [] }): Record<string, unknown> {
    const flat = this.#flat(given, place, where);
    if (!flat) return {};
    const { value: schema, description, around } = flat;
    const type = typeOf(schema);
    const inner = { depth: where.depth + 1, around };
    return defined({
      type,
      description: description ?? cut(at(schema, 'description'), MAX_DESCRIPTION),
      ...this.#bounds(schema, flat.place),
      ...(at(schema, 'format') === 'password' && { sensitive: true }),
      properties: type === 'object' ? this.#properties(schema, flat.place, inner) : undefined,
      items: type === 'array' && isJsonObject(at(schema, 'items')) ? this.#items(schema, flat.place, inner) : undefined,
    });
  }

  /** What an answer promises: the types, properties and elements that are checked. @throws Gap */
  output(given: unknown, place: string, where: SchemaDepth = { depth: 0, around: [] }): Record<string, unknown> {
    const flat = this.#flat(given, place, where);
    if (!flat || where.depth > this.#maxDepth) return {};
    const { value: schema, around } = flat;
    const type = typeOf(schema);
    const inner = { depth: where.depth + 1, around };
    const properties = at(schema, 'properties');
    const required = at(schema, 'required');
    const items = at(schema, 'items');
    return defined({
      // the type of the result itself is one word
      type: flat.isNullable && type ? (where.depth === 0 ? undefined : [type, 'null']) : type,
      description: where.depth === 0 ? cut(at(schema, 'description'), MAX_DESCRIPTION) : undefined,
      properties:
        type === 'object' && isJsonObject(properties)
          ? Object.fromEntries(
              Object.entries(properties).map(([name, property]) => [
                name,
                this.output(property, within(flat.place, 'properties', name), inner),
              ]),
            )
          : undefined,
      required: Array.isArray(required) && type === 'object' ? required.filter(isText) : undefined,
      items:
        type === 'array' && isJsonObject(items) ? this.output(items, within(flat.place, 'items'), inner) : undefined,
    });
  }

  #items(schema: JsonPart, place: string, inner: SchemaDepth) {
    return inner.depth > this.#maxDepth
      ? this.#deep(place)
      : this.part(at(schema, 'items'), within(place, 'items'), inner);
  }

  #properties(schema: JsonPart, place: string, inner: SchemaDepth): Record<string, unknown> | undefined {
    const properties = at(schema, 'properties');
    if (!isJsonObject(properties)) return undefined;
    if (inner.depth > this.#maxDepth) return this.#deep(place);
    const entries = Object.entries(properties).filter(([, property]) => isJsonObject(property));
    if (entries.length > MAX_PROPERTIES) {
      this.#simplified(place, `An object with more than ${MAX_PROPERTIES} properties takes any.`);
      return undefined;
    }
    const given = at(schema, 'required');
    const required = new Set(Array.isArray(given) ? given : []);
    return Object.fromEntries(
      entries.flatMap(([name, property]) => {
        const inPlace = within(place, 'properties', name);
        if (isJsonObject(property) && at(property, 'readOnly') === true) return [];
        return [[name, { ...this.part(property, inPlace, inner), ...(required.has(name) && { required: true }) }]];
      }),
    );
  }

  #deep(place: string): undefined {
    this.#simplified(place, 'What is nested deeper is not described.');
    return undefined;
  }

  #bounds(schema: JsonPart, place: string): Record<string, unknown> {
    const count = (name: string) => {
      const value = at(schema, name);
      return Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined;
    };
    const number = (name: string) => {
      const value = at(schema, name);
      return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
    };
    const initial = at(schema, 'default');
    const isSmall = initial !== undefined && initial !== null && JSON.stringify(initial).length <= MAX_DEFAULT;
    return {
      pattern: this.#pattern(schema, place),
      enum: this.#values(schema, place),
      default: isSmall ? initial : undefined,
      min_length: count('minLength') ?? count('minItems'),
      max_length: count('maxLength') ?? count('maxItems'),
      min_value: number('minimum'),
      max_value: number('maximum'),
    };
  }

  #pattern(schema: JsonPart, place: string): string | undefined {
    const pattern = at(schema, 'pattern');
    if (!isText(pattern)) return undefined;
    if (pattern.isWellFormed() && this.#patterns.match(pattern, '') !== 'unusable') return pattern;
    this.#simplified(within(place, 'pattern'), 'The pattern cannot be checked without backtracking.');
    return undefined;
  }

  #values(schema: JsonPart, place: string): unknown[] | undefined {
    const given = at(schema, 'const') === undefined ? at(schema, 'enum') : [at(schema, 'const')];
    if (!Array.isArray(given) || given.length === 0) return undefined;
    const values = given.filter((value) => value !== null);
    if (values.length <= MAX_VALUES && values.every((value) => typeof value !== 'object')) return values;
    this.#simplified(within(place, 'enum'), `Only up to ${MAX_VALUES} plain values are checked.`);
    return undefined;
  }

  /** `null` if any value is accepted. */
  #flat(given: unknown, place: string, { around }: SchemaDepth): Flat | null {
    if (++this.#steps > MAX_STEPS)
      throw new Gap('too_large', place, `Its schemas lead to more than ${MAX_STEPS} others.`);
    if (!isJsonObject(given)) return null; // `true`, which accepts any value
    const found = this.#references.resolved(given, place);
    const schema = found.value;
    if (around.includes(schema)) {
      this.#simplified(place, 'The schema contains itself: what is within takes any value.');
      return null;
    }
    const description = referenceOf(given) === null ? null : cut(at(given, 'description'), MAX_DESCRIPTION);
    const inside = [...around, schema];
    const flat = { ...found, description, isNullable: isNullable(schema), around: inside };
    const union = at(schema, 'oneOf') ?? at(schema, 'anyOf');
    if (Array.isArray(union)) return this.#ofUnion(flat, union);
    const all = at(schema, 'allOf');
    return Array.isArray(all) ? { ...flat, value: this.#merged(schema, all, found.place, inside) } : flat;
  }

  #ofUnion(flat: Flat, union: readonly unknown[]): Flat | null {
    const others = union.filter((member) => !(isJsonObject(member) && at(member, 'type') === 'null'));
    if (others.length === 1) {
      const inner = this.#flat(others[0], flat.place, { depth: 0, around: flat.around });
      return inner && { ...inner, isNullable: inner.isNullable || flat.isNullable || others.length < union.length };
    }
    this.#simplified(flat.place, 'A choice between schemas takes any value of their type.');
    const types = new Set(
      others.slice(0, MAX_MERGED).map((member) => {
        const inner = this.#flat(member, flat.place, { depth: 0, around: flat.around });
        return inner ? typeOf(inner.value) : undefined;
      }),
    );
    const [type] = types;
    return { ...flat, value: types.size === 1 && type !== undefined ? { type } : {}, isNullable: true };
  }

  /** One schema of those that all apply: the first word on anything counts. */
  #merged(schema: JsonPart, all: readonly unknown[], place: string, around: readonly JsonPart[]): JsonPart {
    if (all.length > MAX_MERGED) throw new Gap('too_large', place, `More than ${MAX_MERGED} schemas apply at once.`);
    const { allOf: _all, ...own } = schema;
    const members = all.map((member, index) => this.#flat(member, within(place, 'allOf', index), { depth: 0, around }));
    const parts = [own, ...members.map((member) => member?.value ?? {})];
    const properties = parts.flatMap((part) => {
      const given = at(part, 'properties');
      return isJsonObject(given) ? Object.entries(given) : [];
    });
    const required = parts.flatMap((part) => {
      const given = at(part, 'required');
      return Array.isArray(given) ? (given as unknown[]) : [];
    });
    return {
      ...Object.fromEntries(parts.toReversed().flatMap((part) => Object.entries(part))),
      ...(properties.length > 0 && { properties: Object.fromEntries(properties.toReversed()) }),
      ...(required.length > 0 && { required }),
    };
  }
}

const isText = (value: unknown): value is string => typeof value === 'string';

const defined = (entries: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined && value !== null));

const isNullable = (schema: JsonPart): boolean => {
  const type = at(schema, 'type');
  return at(schema, 'nullable') === true || (Array.isArray(type) && type.includes('null'));
};

/** The one type of a schema; `undefined` if it does not say, or has several. */
function typeOf(schema: JsonPart): string | undefined {
  const given = [at(schema, 'type')].flat().filter((type) => type !== 'null');
  const [type] = given;
  if (given.length === 1 && TYPES.has(type)) return type as string;
  if (given.length > 1) return undefined;
  if (isJsonObject(at(schema, 'properties'))) return 'object';
  return isJsonObject(at(schema, 'items')) ? 'array' : undefined;
}
