import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isObjectType,
  Kind,
} from 'graphql';
import { has } from './directives.ts';

/**
 * A fragment with `@whole` also selects all other plain fields of its type, in the order in which the type has them:
 * those that are no objects and take no arguments. Other fragments stay as they are.
 */
export function completed(schema: GraphQLSchema, fragment: FragmentDefinitionNode): FragmentDefinitionNode {
  const type = schema.getType(fragment.typeCondition.name.value);
  if (!has(fragment, 'whole') || !isObjectType(type)) return fragment;
  const { selections } = fragment.selectionSet;
  const listed = new Set(selections.flatMap((node) => (node.kind === Kind.FIELD ? [node.name.value] : [])));
  const others = Object.values(type.getFields())
    .filter((field) => field.args.length === 0 && isLeafType(getNamedType(field.type)) && !listed.has(field.name))
    .map(({ name }): FieldNode => {
      const field: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: name } };
      return fragment.loc ? { ...field, loc: fragment.loc } : field;
    });
  return { ...fragment, selectionSet: { ...fragment.selectionSet, selections: [...selections, ...others] } };
}

/** A document with its fragments {@link completed}. */
export const completedDocument = (schema: GraphQLSchema, document: DocumentNode): DocumentNode => ({
  ...document,
  definitions: document.definitions.map((node) =>
    node.kind === Kind.FRAGMENT_DEFINITION ? completed(schema, node) : node,
  ),
});
