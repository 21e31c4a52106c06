import { isJsonObject } from '../../kernel/json-object.ts';
import { onceFor } from '../../kernel/once-for.ts';
import { typeMatches } from './json-values.ts';

/** Enough to say what differs, and little enough for any answer. */
const MAX_DEPTH = 32;
const MAX_STEPS = 20_000;
/** Names and types that are looked for, in all. */
const MAX_LOOKS = 500_000;

/**
 * Where an answer differs from what its action promises: `items[3].id`, with what is wrong; `null` if nowhere. Of the
 * JSON Schema, it checks `type`, `required`, `properties`, `items` and `enum`: expressions that strangers wrote are not
 * run.
 */
export function differenceFrom(schema: unknown, value: unknown): string | null {
  let steps = 0;
  let looks = 0;
  const check = (of: unknown, found: unknown, at: string, depth: number): string | null => {
    if (!isJsonObject(of) || depth > MAX_DEPTH || ++steps > MAX_STEPS) return null;
    looks += looksOf(of);
    if (looks > MAX_LOOKS) return null;
    const types = [of.type].flat().filter((type) => typeof type === 'string');
    if (types.length > 0 && !types.some((type) => typeMatches(type, found)))
      return `${at || 'the result'} is not of the type ${types.join(' or ').slice(0, 100)}`;
    if (Array.isArray(of.enum) && !valuesOf(of.enum).has(found))
      return `${at || 'the result'} is none of the values of its enumeration`;
    if (isJsonObject(found)) return ofProperties(of, found, at, depth);
    if (!Array.isArray(found) || !isJsonObject(of.items)) return null;
    for (const [index, item] of found.entries()) {
      const fault = check(of.items, item, `${at}[${index}]`, depth + 1);
      if (fault) return fault;
    }
    return null;
  };
  const ofProperties = (of: Record<string, unknown>, found: Record<string, unknown>, at: string, depth: number) => {
    const required = Array.isArray(of.required) ? of.required : [];
    const missing = required.find((name) => typeof name === 'string' && !Object.hasOwn(found, name)) as unknown;
    const place = (name: string) => `${at}${at === '' ? '' : '.'}${name.slice(0, 100)}`;
    if (typeof missing === 'string') return `${place(missing)} is missing`;
    for (const [name, property] of Object.entries(isJsonObject(of.properties) ? of.properties : {})) {
      const fault = Object.hasOwn(found, name) ? check(property, found[name], place(name), depth + 1) : null;
      if (fault) return fault;
    }
    return null;
  };
  return check(schema, value, '', 0);
}

// an answer has many elements of one schema
const valuesOf = onceFor((values: unknown[]) => new Set(values));
const looksOf = onceFor(
  ({ type, required, properties }: Record<string, unknown>) =>
    [type, required].reduce<number>((sum, list) => sum + (Array.isArray(list) ? list.length : 0), 0) +
    (isJsonObject(properties) ? Object.keys(properties).length : 0),
);
