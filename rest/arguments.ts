import type {
  DocumentNode,
  FieldNode,
  GraphQLArgument,
  GraphQLField,
  GraphQLSchema,
  OperationDefinitionNode,
  ValueNode,
} from 'graphql';
import { coerceInputValue, getNullableType, isInputObjectType, Kind, valueFromAST } from 'graphql';
import { plainCheckOf } from '../src/engine/execution/values.ts';
import type { ArgumentIssues } from '../src/kernel/constraints.ts';
import { coversArguments } from './coverage.ts';
import { operationOf } from './documents.ts';
import { byPlace, type Locator } from './locate.ts';
import type { CompiledOperation } from './operation.ts';
import type { Parameters } from './parameters.ts';

type Variables = Record<string, unknown>;
type ArgumentReader = (variables: Variables) => unknown;

/**
 * Compiles the checks that compare arguments of a request with each other. `document` is the executed document, with
 * one root field.
 */
export function comparison(
  schema: GraphQLSchema,
  document: DocumentNode,
  parameters: Parameters,
  locator: Locator,
): CompiledOperation['compare'] {
  const operation = operationOf(document);
  const node = operation.selectionSet.selections.find((selection) => selection.kind === Kind.FIELD);
  const field = node && schema.getRootType(operation.operation)?.getFields()[node.name.value];
  const argumentIssues = field?.extensions.argumentIssues as ArgumentIssues | undefined;
  if (!node || !field || !argumentIssues) return () => undefined;
  const issuesOf = argumentIssues(field);
  const readers = issuesOf ? argumentReaders(operation, node, field) : [];
  const path = [(node.alias ?? node.name).value];
  const isCovered = coversArguments(node, field, operation, parameters);
  return (context, input, request) => {
    const { variables, issues } = input;
    const args: Variables = {};
    for (const [name, read] of readers) args[name] = read(variables);
    const found = issuesOf?.(args, context) ?? [];
    if (found.length > 0) {
      const wrong = new Set(issues.items.map(({ loc }) => loc.join('.')));
      for (const { loc, type, msg, input: given, ctx } of locator.locate({ path }, found, request))
        if (!wrong.has(loc.join('.'))) issues.addAt(loc, type, msg, given, ctx);
      issues.items.sort(byPlace);
    }
    if (isCovered && issues.items.length === 0) input.checked = { node, compared: args };
  };
}

function argumentReaders(
  { variableDefinitions = [] }: OperationDefinitionNode,
  node: FieldNode,
  field: GraphQLField<unknown, unknown>,
): [string, ArgumentReader][] {
  return field.args.map((argument) => {
    const value = node.arguments?.find(({ name }) => name.value === argument.name)?.value;
    const name = value?.kind === Kind.VARIABLE ? value.name.value : null;
    const ownDefault = variableDefinitions.find(({ variable }) => variable.name.value === name)?.defaultValue;
    return [argument.name, readerOf(argument, name, ownDefault ?? value)];
  });
}

/**
 * Gives `undefined` for values that cannot be read. An input object stays as read from the body, and parts of it may be
 * invalid.
 */
function readerOf(
  { type, defaultValue }: GraphQLArgument,
  variable: string | null,
  fixed: ValueNode | undefined,
): ArgumentReader {
  const otherwise = fixed && fixed.kind !== Kind.VARIABLE ? valueFromAST(fixed, type) : defaultValue;
  if (variable === null) return () => otherwise;
  if (isInputObjectType(getNullableType(type))) return (variables) => variables[variable] ?? otherwise;
  const isPlain = plainCheckOf(type);
  return (variables) => {
    const given = variables[variable];
    if (given === undefined) return otherwise;
    if (isPlain?.(given)) return given;
    let isWrong = false;
    const value: unknown = coerceInputValue(given, type, () => {
      isWrong = true;
    });
    return isWrong ? undefined : value;
  };
}
