import {
  type FieldNode,
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLField,
  GraphQLFloat,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLSchema,
  GraphQLString,
  getArgumentValues,
  getNullableType,
  isEnumType,
  isInputType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  typeFromAST,
  type ValueNode,
  type VariableDefinitionNode,
  valueFromAST,
} from 'graphql';
import type { Values } from './types.ts';

/** Reads values; `undefined` where graphql-js must do it, because of a value that is wrong or not plain. */
type Read = (given: Values) => Values | undefined;

const isText = (value: unknown) => typeof value === 'string';
const PLAIN: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map<unknown, (value: unknown) => boolean>([
  [GraphQLString, isText],
  [GraphQLID, isText],
  [GraphQLBoolean, (value) => typeof value === 'boolean'],
  [GraphQLFloat, (value) => Number.isFinite(value)],
  [GraphQLInt, (value) => typeof value === 'number' && (value | 0) === value],
]);

/** Tells whether a value other than null is already as graphql-js would coerce it; `null` for types that convert. */
export function plainCheckOf(type: GraphQLInputType): ((value: unknown) => boolean) | null {
  const nullable = getNullableType(type);
  if (!isEnumType(nullable)) return PLAIN.get(nullable) ?? null;
  const values = nullable.getValues();
  const names = new Set<unknown>(values.map(({ name }) => name));
  return values.every(({ name, value }) => name === value) ? (value) => names.has(value) : null;
}

/** Reads the variables of an operation, if all of them are plain scalars. */
export function plainVariables(schema: GraphQLSchema, { variableDefinitions = [] }: OperationDefinitionNode): Read {
  const steps = variableDefinitions.map((definition) => plainVariable(schema, definition));
  const plain = steps.filter((step) => step !== null);
  if (plain.length < steps.length) return () => undefined;
  return (given) => {
    const variables: Values = {};
    for (const step of plain) if (!step(given, variables)) return undefined;
    return variables;
  };
}

type ReadValue = (given: Values, into: Values) => boolean;

function plainVariable(schema: GraphQLSchema, { variable, type: node, defaultValue }: VariableDefinitionNode) {
  const name = variable.name.value;
  const type = typeFromAST(schema, node as never);
  const isPlain = isInputType(type) && plainCheckOf(type);
  if (!isPlain || name === '__proto__') return null;
  const isRequired = isNonNullType(type);
  const otherwise = defaultValue && valueFromAST(defaultValue, type);
  const step: ReadValue = (given, into) => {
    if (!Object.hasOwn(given, name)) {
      if (defaultValue) into[name] = otherwise;
      return Boolean(defaultValue) || !isRequired;
    }
    const value = given[name];
    into[name] = value;
    return value === null ? !isRequired : isPlain(value);
  };
  return step;
}

/** Reads the arguments of a field. Each call of a resolver gets its own object. */
export function argumentsReader(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
): (variables: Values) => Values {
  if (definition.args.length === 0) return () => ({});
  const steps = definition.args.map((argument) =>
    plainArgument(argument, node.arguments?.find(({ name }) => name.value === argument.name)?.value),
  );
  const plain = steps.filter((step) => step !== null);
  const readAll = (variables: Values) => getArgumentValues(definition, node, variables);
  if (plain.length < steps.length) return readAll;
  return (variables) => {
    const values: Values = {};
    for (const step of plain) if (!step(variables, values)) return readAll(variables);
    return values;
  };
}

/** `null` for objects and lists that are written in the document: resolvers may keep them. */
function plainArgument({ name, type, defaultValue }: GraphQLArgument, given: ValueNode | undefined): ReadValue | null {
  const isRequired = isNonNullType(type);
  const omitted: ReadValue = (_variables, into) => {
    if (defaultValue !== undefined) into[name] = defaultValue;
    return defaultValue !== undefined || !isRequired;
  };
  if (!given) return omitted;
  if (given.kind === Kind.VARIABLE) {
    const variable = given.name.value;
    return (variables, into) => {
      if (!Object.hasOwn(variables, variable)) return omitted(variables, into);
      const value = variables[variable];
      into[name] = value;
      return value === null ? !isRequired : value !== undefined;
    };
  }
  if (given.kind === Kind.LIST || given.kind === Kind.OBJECT) return null;
  const value: unknown = valueFromAST(given, type);
  if (value === undefined || (typeof value === 'object' && value !== null)) return null;
  return (_variables, into) => {
    into[name] = value;
    return true;
  };
}
