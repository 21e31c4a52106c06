import {
  defaultFieldResolver,
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  getNamedType,
  isLeafType,
  isNonNullType,
  isObjectType,
  type SelectionSetNode,
} from 'graphql';
import { completerOf } from './completion.ts';
import type { Complete, Field, Selection, Values } from './types.ts';
import { argumentsReader } from './values.ts';

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
  readonly property: string;
  readonly #collect: Collect;
  readonly #known = new Map<GraphQLObjectType, Selection>();
  #isPlain: boolean | undefined;

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
    const property = propertyOf(definition);
    this.column = property !== null && isLeafType(type) ? type : null;
    this.property = property ?? definition.name;
  }

  get isPlain(): boolean {
    if (this.#isPlain === undefined) {
      const type = getNamedType(this.definition.type);
      const isObject = isObjectType(type) && !type.isTypeOf;
      this.#isPlain = isObject && this.selectionOf(type).fields.every(({ column }) => column !== null);
    }
    return this.#isPlain;
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

/** The property that the resolver of a field reads, which may have another name; `null` if it does anything else. */
function propertyOf({ name, resolve = defaultFieldResolver, extensions }: GraphQLField<unknown, unknown>) {
  if (resolve === defaultFieldResolver) return name;
  const { pothosExposedField: exposed, pothosOriginalResolve: original } = extensions;
  return typeof exposed === 'string' && resolve === original ? exposed : null;
}
