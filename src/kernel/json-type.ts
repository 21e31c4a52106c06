import { type GraphQLScalarType, isSpecifiedScalarType } from 'graphql';

/** The JSON type of a scalar. */
export type JsonType = 'string' | 'date-time' | 'integer' | 'int53' | 'number' | 'boolean' | 'object' | 'any';

const specified: Record<string, JsonType> = {
  ID: 'string',
  String: 'string',
  Int: 'integer',
  Float: 'number',
  Boolean: 'boolean',
};

/** Custom scalars declare it in `extensions.jsonType`. @throws Error for one that does not */
export function jsonTypeOf(scalar: GraphQLScalarType): JsonType {
  const type = isSpecifiedScalarType(scalar) ? specified[scalar.name] : (scalar.extensions.jsonType as JsonType);
  if (!type) throw new Error(`The scalar ${scalar.name} does not say what it is in JSON.`);
  return type;
}
