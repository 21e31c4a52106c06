import {
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type ValueNode,
} from 'graphql';
import type { ActivityOutcome } from '../../data/activity.ts';
import type { Context } from '../../graphql/context.ts';
import { type ActivityLabel, entryOf } from '../../graphql/plugins/activity-label.ts';
import { ApiError, codeOf, type ErrorCode, errorCatalogue, InputError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import type { OperationRequest } from './operation-request.ts';

type Variables = Readonly<Record<string, unknown>>;

/**
 * Records an operation of a known caller that was refused before any resolver ran: a resolver records itself. It
 * leaves one record, however many fields it has, about the first of its root fields that has a record at all; the
 * document need not be valid. Takes no longer than reading the document once.
 * @param code the code of errors that have none
 * @param alias records the root field of this name in the answer instead
 */
export function recordRefused(
  schema: GraphQLSchema,
  asked: OperationRequest,
  context: Context,
  { error, code, alias }: { error: GraphQLError; code: ErrorCode; alias?: string | number },
): void {
  recordFirst(schema, asked, context, { outcome: () => outcomeOf(error, code), alias });
}

/**
 * Records an operation that was valid and is not made, because nobody has agreed to it yet, or somebody has refused.
 * @param code says which, in the record's `metadata`
 */
export function recordUnconfirmed(
  schema: GraphQLSchema,
  asked: OperationRequest,
  context: Context,
  code: string,
): void {
  const outcome = { statusCode: context.anyCaller.request.successStatus, success: false };
  recordFirst(schema, asked, context, { outcome: () => outcome, metadata: { code } });
}

interface RecordOptions {
  outcome: () => ActivityOutcome;
  alias?: string | number | undefined;
  metadata?: Record<string, unknown>;
}

function recordFirst(
  schema: GraphQLSchema,
  { document, operationName, variables }: OperationRequest,
  { anyCaller, services }: Context,
  { outcome, alias, metadata }: RecordOptions,
): void {
  if (!anyCaller.principal) return;
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!operation || !root) return;
  const fields = root.getFields();
  const given = { ...defaultsOf(operation), ...variables };
  for (const node of selected(operation, document.definitions.filter(isFragment), root.name, given)) {
    const label = fields[node.name.value]?.extensions.activity as ActivityLabel | null | undefined;
    if (!label || (alias !== undefined && (node.alias ?? node.name).value !== alias)) continue;
    const entry = entryOf(label, anyCaller, identifiersOf(node, given));
    services.activity.record(anyCaller, metadata ? { ...entry, metadata } : entry, outcome());
    return;
  }
}

/**
 * The refusal of a subscription of which `@skip` and `@include` leave nothing; `null` if something is left. The rules
 * of validation know no variables, and graphql-js takes for granted that there is a field.
 */
export function emptySelection(
  schema: GraphQLSchema,
  { document, operationName, variables }: OperationRequest,
): GraphQLError | null {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!root) return null;
  const given = { ...defaultsOf(operation), ...variables };
  for (const _field of selected(operation, document.definitions.filter(isFragment), root.name, given)) return null;
  return new GraphQLError('The subscription selects nothing: @skip and @include exclude all of it.', {
    nodes: operation,
  });
}

/**
 * Whether a root field failed before its resolver ran, because of an argument that only execution can check, such as
 * a `null` for one that has a default.
 */
export const isOfArguments = ({ path, originalError }: GraphQLError): boolean =>
  path?.length === 1 &&
  originalError instanceof GraphQLError &&
  !(originalError instanceof ApiError || originalError instanceof InputError) &&
  originalError.message.startsWith('Argument "');

function outcomeOf(error: GraphQLError, otherwise: ErrorCode): ActivityOutcome {
  const isKnown = error instanceof ApiError || error instanceof InputError;
  const given = error.extensions.code as ErrorCode | undefined;
  const errorCode = isKnown ? codeOf(error) : given && given in errorCatalogue ? given : otherwise;
  return { statusCode: errorCatalogue[errorCode].status, errorCode };
}

const isFragment = (node: { kind: Kind }): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION;

/** The root fields of an operation, in their order. Visits each fragment once: they may form cycles. */
function* selected(
  { selectionSet }: OperationDefinitionNode,
  fragments: readonly FragmentDefinitionNode[],
  rootName: string,
  variables: Variables,
): Generator<FieldNode> {
  const unseen = new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
  const waiting: SelectionNode[] = selectionSet.selections.toReversed();
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (isLeftOut(node, variables)) continue;
    if (node.kind === Kind.FIELD) {
      yield node;
      continue;
    }
    const spread = node.kind === Kind.FRAGMENT_SPREAD ? unseen.get(node.name.value) : node;
    if (node.kind === Kind.FRAGMENT_SPREAD) unseen.delete(node.name.value);
    if (!spread || (spread.typeCondition && spread.typeCondition.name.value !== rootName)) continue;
    for (const inner of spread.selectionSet.selections.toReversed()) waiting.push(inner);
  }
}

const isLeftOut = ({ directives = [] }: SelectionNode, variables: Variables): boolean =>
  directives.some(({ name, arguments: given = [] }) => {
    const condition = given[0] && scalarOf(given[0].value, variables);
    return (name.value === 'skip' && condition === true) || (name.value === 'include' && condition === false);
  });

/**
 * The arguments of a field that are identifiers. Others are left out, because nothing has checked them: a client that
 * mixes up its variables would have a secret in the records.
 */
const identifiersOf = ({ arguments: given = [] }: FieldNode, variables: Variables): Record<string, string> =>
  Object.fromEntries(
    given.flatMap(({ name, value }) => {
      const text = scalarOf(value, variables);
      return typeof text === 'string' && (isId(text) || text === DEFAULT_NAMESPACE) ? [[name.value, text]] : [];
    }),
  );

/** A text or a boolean of the document or of its variables. */
function scalarOf(node: ValueNode, variables: Variables): unknown {
  if (node.kind === Kind.VARIABLE) return variables[node.name.value];
  return node.kind === Kind.STRING || node.kind === Kind.BOOLEAN ? node.value : undefined;
}

const defaultsOf = ({ variableDefinitions = [] }: OperationDefinitionNode): Variables =>
  Object.fromEntries(
    variableDefinitions.flatMap(({ variable, defaultValue }) =>
      defaultValue ? [[variable.name.value, scalarOf(defaultValue, {})]] : [],
    ),
  );
