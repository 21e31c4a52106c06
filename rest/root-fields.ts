import type { DocumentNode, GraphQLField, GraphQLSchema, OperationTypeNode, SelectionSetNode } from 'graphql';
import { Kind } from 'graphql';
import type { ErrorCode } from '../src/kernel/errors.ts';
import { operationOf } from './documents.ts';

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
