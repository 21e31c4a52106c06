import fc from 'fast-check';
import type { JsonSchema } from '../../rest/schema-parts.ts';

/** What no schema of a body likes in most places. */
const odd = fc.constantFrom<unknown>(
  null,
  '',
  ' ',
  'nul \0 inside',
  'half of a pair \ud800',
  'x'.repeat(70),
  'x'.repeat(4_001),
  -1,
  0,
  1.5,
  2 ** 31,
  2 ** 53,
  true,
  [],
  ['x'],
  [null],
  {},
  { a: 1 },
  { '': 'x' },
  { ['k'.repeat(65)]: 'x' },
  { 'nul \0': 'x' },
  { deep: { deeper: ['nul \0'] } },
);

/** Values that mostly fit a schema, and now and then do not: somewhere, by type, length, bound, form or a null. */
export function arbitraryJson(
  schema: JsonSchema,
  components: Record<string, JsonSchema>,
  depth = 0,
): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 40, arbitrary: fitting(schema, components, depth) }, { weight: 1, arbitrary: odd });
}

function fitting(schema: JsonSchema, components: Record<string, JsonSchema>, depth: number): fc.Arbitrary<unknown> {
  const of = (inner: unknown) => arbitraryJson(inner as JsonSchema, components, depth + 1);
  // a form may contain itself
  if (typeof schema.$ref === 'string' && depth > 6) return fc.constant({});
  if (typeof schema.$ref === 'string') return fitting(components[schema.$ref.split('/').at(-1)!]!, components, depth);
  if (Array.isArray(schema.anyOf)) return depth > 4 ? fc.constant('x') : fc.oneof(...schema.anyOf.map(of));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  if (Array.isArray(schema.type))
    return fc.oneof(...schema.type.map((type: unknown) => fitting({ ...schema, type }, components, depth)));
  switch (schema.type) {
    case undefined:
      return schema.pattern === undefined ? fc.jsonValue({ maxDepth: 2 }) : textFor(schema);
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: Number(schema.minimum ?? -1_000), max: Number(schema.maximum ?? 1_000) });
    case 'number':
      return fc.double({ min: Number(schema.minimum ?? -1e6), max: Number(schema.maximum ?? 1e6), noNaN: true });
    case 'array':
      return fc.array(of(schema.items), { maxLength: 3 });
    case 'object':
      return objectFor(schema, of);
    default:
      return textFor(schema);
  }
}

function objectFor(schema: JsonSchema, of: (inner: unknown) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const properties = schema.properties as Record<string, JsonSchema> | undefined;
  if (!properties)
    return fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), of(schema.additionalProperties), { maxKeys: 3 });
  const required = (schema.required as string[] | undefined) ?? [];
  const fields = Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, of(inner)]));
  return fc.record(fields, { requiredKeys: required, noNullPrototype: true }).chain((whole) =>
    // now and then without something that must be there
    fc.integer({ min: 0, max: 20 }).map((n) => (n > 0 ? whole : without(whole, required[0]))),
  );
}

const without = (whole: Record<string, unknown>, name: string | undefined) =>
  Object.fromEntries(Object.entries(whole).filter(([key]) => key !== name));

function textFor({ format, pattern, minLength, maxLength }: JsonSchema): fc.Arbitrary<string> {
  if (format === 'email') return fc.emailAddress();
  if (format === 'uri') return fc.webUrl();
  if (format === 'date-time')
    return fc
      .date({ min: new Date('0002-01-01T00:00:00Z'), max: new Date('9998-12-31T00:00:00Z'), noInvalidDate: true })
      .map((date) => date.toISOString());
  const isFree = pattern === undefined || pattern === '^[^\\x00]*$';
  // the generator does not look ahead or behind; the judge does
  const simple = String(pattern).replace(/\(\?<?[!=][^)]*\)/g, '');
  if (!isFree) return fc.stringMatching(new RegExp(simple, 'u'), { maxLength: 64 });
  const min = Number(minLength ?? 0);
  return fc.string({ minLength: min, maxLength: Math.min(Number(maxLength ?? 40), min + 40), unit: 'grapheme' });
}
