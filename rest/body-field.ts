import type {
  FieldNode,
  GraphQLCompositeType,
  GraphQLField,
  GraphQLOutputType,
  GraphQLSchema,
  OperationDefinitionNode,
  SelectionSetNode,
} from 'graphql';
import { getNamedType, getNullableType, isCompositeType, isListType, Kind, typeFromAST } from 'graphql';
import { directiveNode, has } from './directives.ts';
import { problemAt } from './documents.ts';
import { resultKey } from './selection.ts';

/** The field of an operation whose value is the response body. */
export interface BodyField {
  node: FieldNode;
  type: GraphQLOutputType;
  /** The path from the root to the field: key in the result and type of each step. */
  path: { key: string; type: GraphQLOutputType }[];
  /** The root field of that path. */
  root: GraphQLField<unknown, unknown>;
}

interface SelectedField {
  node: FieldNode;
  field: GraphQLField<unknown, unknown>;
}

/** Finds the one `@body` field. Mistakes are added to `problems`. */
export function bodyFieldOf(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  problems: string[],
): BodyField | null {
  const root = schema.getRootType(operation.operation);
  if (!root) return null; // reported by graphql-js
  const found: SelectedField[][] = [];
  search(schema, root, operation.selectionSet, [], found);
  const [steps, ...more] = found;
  const name = operation.name?.value ?? '';
  if (!steps) problems.push(problemAt(operation, `Operation '${name}' has no @body field.`));
  for (const extra of more)
    problems.push(problemAt(extra.at(-1)?.node, `Operation '${name}' has more than one @body field.`));
  const [first] = steps ?? [];
  const last = steps?.at(-1);
  if (!steps || !first || !last) return null;
  for (const { node, field } of steps.slice(0, -1)) {
    if (isListType(getNullableType(field.type))) problems.push(problemAt(node, '@body cannot stand below a list.'));
  }
  for (const { node } of steps) {
    if (has(node, 'flatten')) problems.push(problemAt(node, '@flatten changes nothing on the way to the @body field.'));
  }
  return {
    node: last.node,
    type: last.field.type,
    path: steps.map(({ node, field }) => ({ key: resultKey(node), type: field.type })),
    root: first.field,
  };
}

function search(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
  set: SelectionSetNode,
  above: SelectedField[],
  found: SelectedField[][],
): void {
  for (const node of set.selections) {
    if (node.kind === Kind.FRAGMENT_SPREAD) continue;
    if (node.kind === Kind.INLINE_FRAGMENT) {
      const condition = node.typeCondition ? typeFromAST(schema, node.typeCondition) : type;
      if (isCompositeType(condition)) search(schema, condition, node.selectionSet, above, found);
      continue;
    }
    const field = 'getFields' in type ? type.getFields()[node.name.value] : undefined;
    if (!field) continue;
    const steps = [...above, { node, field }];
    if (has(node, 'body')) found.push(steps);
    const named = getNamedType(field.type);
    if (node.selectionSet && isCompositeType(named)) search(schema, named, node.selectionSet, steps, found);
  }
}

/**
 * `@body`, `@empty`, `@nothing`, `@redirect` and `@eventId` inside a fragment would mean a different operation at each
 * use.
 */
export function misplaced(node: FieldNode): string[] {
  return ['body', 'empty', 'nothing', 'redirect', 'eventId'].flatMap((name) => {
    const directive = directiveNode(node, name);
    return directive ? [problemAt(directive, `@${name} cannot stand in a fragment.`)] : [];
  });
}
