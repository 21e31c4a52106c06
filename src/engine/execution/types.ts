import type {
  FieldNode,
  FragmentDefinitionNode,
  GraphQLField,
  GraphQLFieldResolver,
  GraphQLLeafType,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
  ResponsePath,
} from 'graphql';

export type Values = Record<string, unknown>;

/** What all runs of an operation share. */
export interface Operation {
  readonly schema: GraphQLSchema;
  readonly node: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
}

/** The fields of an object in their order, and a factory for objects that already have their names. */
export interface Selection {
  readonly fields: readonly Field[];
  readonly blank: () => Values;
}

/** A field of a selection, with everything that is known before it runs. */
export interface Field {
  readonly key: string;
  readonly parentType: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly nodes: readonly FieldNode[];
  readonly isNonNull: boolean;
  readonly resolve: GraphQLFieldResolver<unknown, unknown>;
  readonly complete: Complete;
  /** The leaf type of a value that is read from a {@link property} of its object; else `null`. */
  readonly column: GraphQLLeafType | null;
  /** That property. */
  readonly property: string;
  /** Whether its value has objects, and all that is selected of them is a {@link column}: no resolver is called. */
  readonly isPlain: boolean;
  /** @throws GraphQLError for invalid arguments */
  argumentsOf(variables: Values): Values;
  /** The selection of this field for an object type. */
  selectionOf(type: GraphQLObjectType): Selection;
}

/** One execution of an operation. */
export interface Execution {
  readonly operation: Operation;
  readonly contextValue: unknown;
  /** Executes the fields of an object concurrently. @throws the error that makes the object null */
  fieldsOf(selection: Selection, source: unknown, path: ResponsePath | undefined): Values | Promise<unknown>;
  /**
   * Makes a nullable value null after a failure. @throws GraphQLError if it is not nullable: then the enclosing value
   * becomes null
   */
  failed(field: Field, isNonNull: boolean, path: ResponsePath, cause: unknown): null;
}

/** Turns the result of a resolver into its response value. @throws the error that makes the value null */
export type Complete = (
  execution: Execution,
  field: Field,
  info: GraphQLResolveInfo,
  path: ResponsePath,
  value: unknown,
) => unknown;

export const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
