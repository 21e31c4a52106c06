import type { DocumentNode, GraphQLField, GraphQLSchema, OperationTypeNode, SelectionSetNode } from 'graphql';
import { execute, Kind } from 'graphql';
import { Plan } from '../src/engine/execution/plan.ts';
import { subscribeLive } from '../src/engine/live/live-stream.ts';
import type { ErrorCode } from '../src/kernel/errors.ts';
import { markRead } from '../src/kernel/read-input.ts';
import { operationOf } from './documents.ts';
import type { Input } from './input.ts';
import type { CompiledOperation } from './operation.ts';

/** Executes a query by a plan, any other operation by graphql-js. */
export function executionOf(
  schema: GraphQLSchema,
  document: DocumentNode,
): Pick<CompiledOperation, 'run' | 'subscribe'> {
  const operation = operationOf(document);
  const plan = operation.operation === 'query' ? new Plan(schema, document, operation) : null;
  const start = (contextValue: object, { variables, checked }: Input) => {
    if (checked) markRead(contextValue, checked);
    return { schema, document, contextValue, variableValues: variables };
  };
  return {
    run: (context, input) => {
      const started = start(context, input);
      return plan ? plan.run(context, input.variables) : execute(started);
    },
    // errors become the answer's body, or the last frame, which mask them
    subscribe: async (context, input) => subscribeLive(start(context, input), (result) => result),
  };
}

/** Public: every selected root field is open to callers without a principal. */
export const isPublic = (fields: readonly RootField[]): boolean =>
  fields.every((field) => field?.extensions.access === 'public');

/** The failures that root fields declare, beyond those that follow from the form of the operation. */
export const declaredFailures = (fields: readonly RootField[]): ErrorCode[] => [
  ...new Set(fields.flatMap((field) => (field?.extensions.mayFail as ErrorCode[] | undefined) ?? [])),
];

type RootField = GraphQLField<unknown, unknown> | undefined;

/** The root fields that a document selects. */
export function rootFieldsOf(schema: GraphQLSchema, document: DocumentNode, type: OperationTypeNode): RootField[] {
  const fields = schema.getRootType(type)?.getFields() ?? {};
  const names: string[] = [];
  const fragments = new Map(
    document.definitions.flatMap((node) =>
      node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [],
    ),
  );
  const walk = (set: SelectionSetNode | undefined): void => {
    for (const node of set?.selections ?? []) {
      if (node.kind === Kind.FIELD) names.push(node.name.value);
      else walk(node.kind === Kind.INLINE_FRAGMENT ? node.selectionSet : fragments.get(node.name.value)?.selectionSet);
    }
  };
  walk(operationOf(document).selectionSet);
  return names.map((name) => fields[name]);
}
