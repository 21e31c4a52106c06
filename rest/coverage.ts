import {
  type FieldNode,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  Kind,
  type OperationDefinitionNode,
  type ValueNode,
  valueFromAST,
} from 'graphql';
import { type Constraints, checkConstraints, constraintsOf } from '../src/kernel/constraints.ts';
import { jsonTypeOf } from '../src/kernel/json-type.ts';
import { isWords } from './names.ts';
import type { Parameters } from './parameters.ts';

type Element = GraphQLArgument | GraphQLInputField;

/**
 * Whether reading a request checks all that the schema demands of each argument of a root field, and its constants obey
 * the schema. Only then need the schema not check them again. What is not known here counts as unchecked.
 */
export function coversArguments(
  node: FieldNode,
  field: GraphQLField<unknown, unknown>,
  { variableDefinitions = [] }: OperationDefinitionNode,
  { parameters, body }: Parameters,
): boolean {
  const coversVariable = (name: string, element: Element): boolean => {
    const definition = variableDefinitions.find(({ variable }) => variable.name.value === name);
    if (definition?.defaultValue && !isFine(valueFromAST(definition.defaultValue, element.type), element)) return false;
    // a variable that was not sent
    if (!isFine(element.defaultValue, element)) return false;
    const constraints = constraintsOf(element);
    if (body?.name === name) return !constraints.notNull && isReadWhole(body.type, constraints);
    const parameter = parameters.find((candidate) => candidate.name === name);
    if (!parameter) return false;
    return isWithin(parameter.constraints, constraints) && isReadWhole(parameter.type, parameter.constraints);
  };
  const covers = (value: ValueNode | undefined, element: Element): boolean => {
    if (!value) return isFine(element.defaultValue, element);
    if (value.kind === Kind.VARIABLE) return coversVariable(value.name.value, element);
    const type = getNullableType(element.type);
    if (value.kind !== Kind.OBJECT || !isInputObjectType(type))
      return isFine(valueFromAST(value, element.type), element);
    return Object.values(type.getFields()).every((inner) =>
      covers(value.fields.find(({ name }) => name.value === inner.name)?.value, inner),
    );
  };
  return field.args.every((argument) =>
    covers(node.arguments?.find(({ name }) => name.value === argument.name)?.value, argument),
  );
}

/** Whether a constant obeys the schema. */
function isFine(value: unknown, element: Element): boolean {
  if (value === undefined) return true;
  const constraints = constraintsOf(element);
  if (value === null) return !constraints.notNull;
  return !isInputObjectType(getNullableType(element.type)) && checkConstraints(value, constraints).length === 0;
}

/** The constraints that the readers of `coerce.ts` check, of types that have not all of them. */
const OF_LISTS = new Set(['minItems', 'maxItems', 'item', 'notNull']);
const OF_OTHERS = new Set(['notNull']);
const OF_WORDS = new Set([...OF_OTHERS, 'oneOf']);
/** They are no bounds: `sameAs` is compared by the schema, before the operation runs. */
const NO_BOUNDS = new Set(['sensitive', 'sameAs']);

/** Whether the reader of a type checks all of these constraints, and those of everything in it. */
function isReadWhole(type: GraphQLInputType, constraints: Constraints): boolean {
  const nullable = getNullableType(type);
  const has = (known: ReadonlySet<string>) =>
    Object.keys(constraints).every((key) => known.has(key) || NO_BOUNDS.has(key));
  if (isListType(nullable)) return has(OF_LISTS) && isReadWhole(nullable.ofType, constraints.item ?? {});
  if (isInputObjectType(nullable))
    return (
      has(OF_OTHERS) &&
      Object.values(nullable.getFields()).every((field) => isReadWhole(field.type, constraintsOf(field)))
    );
  if (isEnumType(nullable)) return has(isWords(nullable) ? OF_WORDS : OF_OTHERS);
  // a scalar that reads texts in its own way would be checked before it does
  return jsonTypeOf(nullable) !== 'string' || ['ID', 'String'].includes(nullable.name);
}

/** Whether what keeps the constraints of a parameter keeps those of the argument that it feeds. */
function isWithin(own: Constraints, wanted: Constraints): boolean {
  return Object.entries(wanted).every(([key, bound]) => {
    const mine = own[key as keyof Constraints];
    if (key.startsWith('min')) return typeof mine === 'number' && mine >= (bound as number);
    if (key.startsWith('max')) return typeof mine === 'number' && mine <= (bound as number);
    if (key === 'oneOf') return own.oneOf?.every((value) => wanted.oneOf!.includes(value)) ?? false;
    if (key === 'item') return own.item !== undefined && isWithin(own.item, wanted.item!);
    return NO_BOUNDS.has(key) || mine === bound;
  });
}
