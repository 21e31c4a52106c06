import { type GraphQLSchema, isInputObjectType } from 'graphql';
import { JsonSchemas } from './json-schema.ts';
import type { CompiledOperation } from './operation.ts';
import type { JsonSchema } from './schema-parts.ts';

/** How deep a body is described, and how long. */
const MAX_DEPTH = 3;
const MAX_DESCRIPTION = 100;
/** What a model has no use for. */
const LEFT_OUT: ReadonlySet<string> = new Set(['externalDocs', 'format', 'propertyNames', 'x-max-bytes', 'pattern']);

/** The inputs of an operation as one object, by their names in requests. */
export function toolInputOf(schema: GraphQLSchema, operation: CompiledOperation): Record<string, JsonSchema> {
  const schemas = new JsonSchemas();
  const properties: Record<string, JsonSchema> = {};
  for (const { wireName, in: where, type, constraints, description, defaultValue } of operation.parameters)
    if (where !== 'header')
      properties[wireName] = {
        ...schemas.input(type, constraints, true),
        ...(defaultValue !== undefined && { default: defaultValue }),
        description,
      };
  const { body } = operation;
  if (body) properties.body = schemas.input(body.type, {});
  const isInput = (name: string) => isInputObjectType(schema.getType(name));
  const plain = (given: unknown, depth: number): unknown => {
    if (Array.isArray(given)) return given.map((item) => plain(item, depth));
    if (typeof given !== 'object' || given === null) return given;
    const { $ref } = given as JsonSchema;
    if (typeof $ref === 'string') {
      const name = $ref.slice($ref.lastIndexOf('/') + 1);
      // the forms of descriptors are long: `describe` and the documentation have them
      return isInput(name) && depth < MAX_DEPTH ? plain(schemas.components[name], depth + 1) : { type: 'object' };
    }
    return Object.fromEntries(
      Object.entries(given).flatMap(([key, value]): [string, unknown][] => {
        if (LEFT_OUT.has(key)) return [];
        if (key === 'description') return depth > 1 || value === '' ? [] : [[key, shortened(String(value))]];
        if (key === 'default') return [[key, value]];
        if (key !== 'properties') return [[key, plain(value, depth)]];
        const entries = Object.entries(value as object).map(([name, of]) => [name, plain(of, depth)] as const);
        return [[key, Object.fromEntries(entries)]];
      }),
    );
  };
  return Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, plain(of, 0) as JsonSchema]));
}

/** The first sentence of a description, if it is short. */
function shortened(text: string): string {
  const [first = ''] = text.split(/(?<=\.)\s/, 1);
  return first.length <= MAX_DESCRIPTION ? first : `${first.slice(0, MAX_DESCRIPTION).toWellFormed()}…`;
}
