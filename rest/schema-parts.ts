/** A JSON Schema of OpenAPI 3.1. */
export type JsonSchema = { [keyword: string]: unknown };

/** A named schema of the document. */
export const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

/** Text without NUL. Lone surrogates are refused too, but no pattern that all tools read can express that. */
export const TEXT = '^[^\\x00]*$';

/** A key of a body: no NUL, and no name that reaches a prototype. */
export const KEY = '^(?!__proto__$)[^\\x00]*$';

/** The same schema, with `null` allowed. */
export function nullable(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.enum))
    return {
      ...schema,
      ...(schema.type ? { type: [schema.type, 'null'] } : {}),
      enum: [...(schema.enum as unknown[]), null],
    };
  if (typeof schema.type === 'string') return { ...schema, type: [schema.type, 'null'] };
  return schema.$ref ? { anyOf: [schema, { type: 'null' }] } : schema;
}
