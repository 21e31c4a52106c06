import {
  defaultFieldResolver,
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  getArgumentValues,
  isLeafType,
  isNonNullType,
  Kind,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';
import { completerOf } from './completion.ts';
import type { Complete, Field, Selection, Values } from './types.ts';

/** Collects the selection of an object type from selection sets. */
export type Collect = (type: GraphQLObjectType, sets: readonly SelectionSetNode[]) => Selection;

/** See {@link Field}. Its own selection is collected on first use. */
export class PlannedField implements Field {
  readonly key: string;
  readonly parentType: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly nodes: readonly [FieldNode, ...FieldNode[]];
  readonly isNonNull: boolean;
  readonly resolve: GraphQLFieldResolver<unknown, unknown>;
  readonly argumentsOf: (variables: Values) => Values;
  readonly complete: Complete;
  readonly column: GraphQLLeafType | null;
  readonly #collect: Collect;
  readonly #known = new Map<GraphQLObjectType, Selection>();

  constructor(
    collect: Collect,
    parentType: GraphQLObjectType,
    definition: GraphQLField<unknown, unknown>,
    key: string,
    nodes: readonly [FieldNode, ...FieldNode[]],
  ) {
    this.#collect = collect;
    this.parentType = parentType;
    this.definition = definition;
    this.key = key;
    this.nodes = nodes;
    this.isNonNull = isNonNullType(definition.type);
    this.resolve = definition.resolve ?? defaultFieldResolver;
    this.argumentsOf = argumentsReader(definition, nodes[0]);
    this.complete = completerOf(definition.type);
    const type = isNonNullType(definition.type) ? definition.type.ofType : definition.type;
    this.column = this.resolve === defaultFieldResolver && isLeafType(type) ? type : null;
  }

  selectionOf(type: GraphQLObjectType): Selection {
    let known = this.#known.get(type);
    if (!known) {
      const sets = this.nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
      known = this.#collect(type, sets);
      this.#known.set(type, known);
    }
    return known;
  }
}

/** Arguments that do not depend on variables are read once. Each call of a resolver gets its own object. */
function argumentsReader(definition: GraphQLField<unknown, unknown>, node: FieldNode): (variables: Values) => Values {
  if (definition.args.length === 0) return () => ({});
  const read = (variables: Values) => getArgumentValues(definition, node, variables);
  if (node.arguments?.some(({ value }) => usesVariable(value))) return read;
  let known: Values | null = null;
  return (variables) => {
    if (known) return { ...known };
    const values = read(variables);
    if (Object.values(values).every((value) => typeof value !== 'object' || value === null)) known = { ...values };
    return values;
  };
}

const usesVariable = (node: ValueNode): boolean =>
  node.kind === Kind.VARIABLE ||
  (node.kind === Kind.LIST && node.values.some(usesVariable)) ||
  (node.kind === Kind.OBJECT && node.fields.some((field) => usesVariable(field.value)));
