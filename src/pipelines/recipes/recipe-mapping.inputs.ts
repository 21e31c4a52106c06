import type { InputFields } from '../../graphql/inputs.ts';
import { MAX_ID_LENGTH } from '../../kernel/constraints.ts';
import { shapeCheck, type ToolJsonSchema } from '../../tools/tools/json-shape.ts';

const mappingSchema: ToolJsonSchema = {
  title: 'Recipe mapping',
  type: 'object',
  maxProperties: 1_000,
  additionalProperties: { type: 'string', minLength: 1, maxLength: MAX_ID_LENGTH },
  description: 'What takes the place of what, by its name.',
};
const shape = { name: 'RecipeMapping', schema: mappingSchema, check: shapeCheck(mappingSchema) };

/** A field of an input that says what takes the place of names. */
export const mappingOf = (t: InputFields, description: string) =>
  t.field({ type: 'JSONObject', constraints: { shape }, description });
