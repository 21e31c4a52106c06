import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLSchema,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isIntrospectionType,
  isListType,
  isObjectType,
  isScalarType,
} from 'graphql';
import { type Constraints, constraintsOf, MAX_ID_LENGTH, MAX_JSON_BYTES } from '../kernel/constraints.ts';
import { jsonTypeOf } from '../kernel/json-type.ts';

type Input = GraphQLArgument | GraphQLInputField;

/**
 * Gives identifiers, JSON values and words of a set the bounds of their types where an argument or input field states
 * none.
 * @throws Error for a text, a map or a list without a bound: it would admit megabytes
 */
export function addDefaultBounds(schema: GraphQLSchema): void {
  const unbounded: string[] = [];
  for (const [place, input] of inputsOf(schema)) {
    const stated = constraintsOf(input);
    const constraints = boundedBy(getNullableType(input.type), stated);
    if (!constraints) unbounded.push(place);
    else if (constraints !== stated) input.extensions = { ...input.extensions, constraints };
  }
  if (unbounded.length > 0) throw new Error(`State 'constraints' that bound the size of: ${unbounded.join(', ')}.`);
}

function inputsOf(schema: GraphQLSchema): [string, Input][] {
  return Object.values(schema.getTypeMap()).flatMap((type): [string, Input][] => {
    if (isIntrospectionType(type)) return [];
    if (isInputObjectType(type))
      return Object.values(type.getFields()).map((field) => [`${type.name}.${field.name}`, field]);
    if (!isObjectType(type)) return [];
    return Object.values(type.getFields()).flatMap((field) =>
      field.args.map((argument): [string, Input] => [`${type.name}.${field.name}(${argument.name}:)`, argument]),
    );
  });
}

/** The constraints of an input with those of its type; `null` if its values may have any size. */
function boundedBy(type: GraphQLInputType, stated: Constraints): Constraints | null {
  if (isListType(type)) {
    const given = stated.item ?? NONE;
    const item = boundedBy(getNullableType(type.ofType), given);
    if (!item || stated.maxItems === undefined) return null;
    return item === given ? stated : { ...stated, item };
  }
  if (isEnumType(type) && type.extensions.isWords)
    return { oneOf: type.getValues().map(({ value }) => value as string), ...stated };
  if (!isScalarType(type)) return stated;
  if (type.name === 'ID') return { maxLength: MAX_ID_LENGTH, ...stated };
  const json = jsonTypeOf(type);
  if (json === 'string') return isBoundedText(stated) ? stated : null;
  if (json !== 'object' && json !== 'any') return stated;
  const { jsonValues } = type.extensions;
  if (!jsonValues) return { maxBytes: MAX_JSON_BYTES, ...stated };
  const isBounded = stated.maxItems !== undefined && (jsonValues !== 'string' || isBoundedText(stated.item ?? NONE));
  return isBounded ? stated : null;
}

const NONE: Constraints = {};

function isBoundedText({ maxLength, maxBytes, oneOf, pattern }: Constraints): boolean {
  if (maxLength !== undefined || maxBytes !== undefined || oneOf) return true;
  return pattern !== undefined && !REPEATS_FREELY.test(pattern.replaceAll(ONE_CHARACTER, ''));
}

/** What matches one character of a pattern: there `*` and `+` are characters. */
const ONE_CHARACTER = /\\.|\[(?:\\.|[^\]])*\]/g;
const REPEATS_FREELY = /[*+]|\{\d+,\}/;
