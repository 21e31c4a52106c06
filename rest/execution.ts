import type { DocumentNode, GraphQLField, GraphQLSchema, OperationTypeNode, SelectionSetNode } from 'graphql';
import { execute, Kind, subscribe } from 'graphql';
import type { ErrorCode } from '../src/core/errors.ts';
import { Plan } from '../src/core/execution/plan.ts';
import { operationOf } from './documents.ts';
import type { CompiledOperation, Run } from './operation.ts';

/** How an operation is executed: a query by a plan, anything else by graphql-js. */
export function executionOf(
  schema: GraphQLSchema,
  document: DocumentNode,
): Pick<CompiledOperation, 'run' | 'subscribe'> {
  const operation = operationOf(document);
  const plan = operation.operation === 'query' ? new Plan(schema, document, operation) : null;
  const interpreted: Run = (contextValue, variableValues) =>
    execute({ schema, document, contextValue, variableValues });
  return {
    run: plan ? (context, variables) => plan.run(context, variables) : interpreted,
    subscribe: async (contextValue, variableValues) =>
      subscribe({ schema, document, contextValue, variableValues }) as ReturnType<CompiledOperation['subscribe']>,
  };
}

/** Public means: every field that is asked of the root may be asked by a stranger. */
export const isPublic = (fields: readonly RootField[]): boolean =>
  fields.every((field) => field?.extensions.access === 'public');

/** What the root fields declare of their failures, beyond those that an operation's form tells. */
export const declaredFailures = (fields: readonly RootField[]): ErrorCode[] => [
  ...new Set(fields.flatMap((field) => (field?.extensions.mayFail as ErrorCode[] | undefined) ?? [])),
];

type RootField = GraphQLField<unknown, unknown> | undefined;

/** The fields that a document asks of the root. */
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
