import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';

/**
 * Whether a valid subscription selects only the event itself, which is the same for everybody who may receive it:
 * columns of the event, and fields with `extensions.sameForAll`. Anything else (arguments, directives, other objects)
 * depends on the reader, or may do so one day.
 */
export function showsEventOnly(schema: GraphQLSchema, document: DocumentNode, operationName?: string | null): boolean {
  const operation = getOperationAST(document, operationName);
  const root = schema.getSubscriptionType();
  if (!operation || !root) return false;
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  /** Each fragment is visited once, however often it is spread. */
  const seen = new Set<string>();

  const passes = (set: SelectionSetNode, type: GraphQLObjectType): boolean =>
    set.selections.every((node) => {
      if (node.directives?.length) return false;
      if (node.kind === Kind.FIELD) return fieldPasses(node, type);
      if (node.kind === Kind.INLINE_FRAGMENT) return passesOn(node.typeCondition?.name.value ?? type.name, node);
      const fragment = fragments.get(node.name.value);
      if (!fragment || seen.has(fragment.name.value)) return fragment !== undefined;
      seen.add(fragment.name.value);
      return passesOn(fragment.typeCondition.name.value, fragment);
    });
  const passesOn = (name: string, { selectionSet }: { selectionSet: SelectionSetNode }): boolean => {
    const type = schema.getType(name);
    return isObjectType(type) && passes(selectionSet, type);
  };
  const fieldPasses = ({ name, selectionSet }: FieldNode, type: GraphQLObjectType): boolean => {
    if (name.value === '__typename') return true;
    const field = type.getFields()[name.value];
    if (!field) return false;
    const { sameForAll, pothosExposedField } = field.extensions;
    // the gate of the root is checked for each stream; no other gate would be checked
    if (type !== root && (field.args.length > 0 || field.extensions.gate)) return false;
    if (!selectionSet) return sameForAll === true || (type !== root && pothosExposedField !== undefined);
    const object = getNamedType(field.type);
    return sameForAll === true && isObjectType(object) && passes(selectionSet, object);
  };
  return passes(operation.selectionSet, root);
}
