import type { JsonShape } from '../src/kernel/constraints.ts';
import { type JsonSchema, KEY, nullable, reference, TEXT } from './schema-parts.ts';

type Components = Record<string, JsonSchema>;

/**
 * Adds the form of a JSON object to the components, with the forms that it refers to, and returns a reference to it.
 * The document says what a form leaves open: texts without NUL, and `null` for what may be left out.
 */
export function addShape(components: Components, { name, schema }: JsonShape): JsonSchema {
  return add(components, name, schema as JsonSchema, schema as JsonSchema);
}

function add(components: Components, name: string, schema: JsonSchema, root: JsonSchema): JsonSchema {
  if (!(name in components)) {
    components[name] = {}; // a form may contain itself
    components[name] = documented(components, schema, root);
  }
  return reference(name);
}

/** `Part of a parameter` -> `PartOfAParameter` */
const componentName = ({ title }: JsonSchema) =>
  String(title).replaceAll(/(?:^|\s+)(\w)/g, (_, letter: string) => letter.toUpperCase());

function documented(components: Components, schema: JsonSchema, root: JsonSchema): JsonSchema {
  const of = (inner: unknown) => documented(components, inner as JsonSchema, root);
  if (typeof schema.$ref === 'string') {
    const found = (root.$defs as Components)[schema.$ref.split('/').at(-1)!]!;
    return add(components, componentName(found), found, root);
  }
  const { $schema: _dialect, $defs: _definitions, ...own } = schema;
  switch (schema.type) {
    case undefined:
      return own;
    case 'string':
      return schema.enum || schema.pattern ? own : { ...own, pattern: TEXT };
    case 'array':
      return { ...own, items: schema.items ? of(schema.items) : {} };
    case 'object': {
      // an empty object says the same as none, and generators refuse it as a default where null is allowed
      const { default: _empty, ...rest } = own;
      return { ...rest, ...objectKeywords(schema, of) };
    }
    default:
      return own;
  }
}

function objectKeywords(schema: JsonSchema, of: (inner: unknown) => JsonSchema): JsonSchema {
  const required = (schema.required ?? []) as readonly string[];
  const properties = Object.entries((schema.properties ?? {}) as Components).map(([key, inner]) => {
    const shown = of(inner);
    return [key, required.includes(key) || !isTyped(inner) ? shown : nullable(shown)];
  });
  return {
    ...(properties.length > 0 && { properties: Object.fromEntries(properties) as Components }),
    propertyNames: { pattern: KEY },
    additionalProperties: additional(schema.additionalProperties, of),
  };
}

const additional = (given: unknown, of: (inner: unknown) => JsonSchema): JsonSchema | boolean => {
  if (given === false) return false;
  return given ? of(given) : true;
};

const isTyped = ({ type, $ref }: JsonSchema) => type !== undefined || $ref !== undefined;
